"""The files that media folders name by the digest of their bytes; opens them, follows no link and changes none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

from ...media_files import MediaFolders
from ...media_references import SHA256
from ...model import CouldNotLook
from ._held import shown


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A regular file. `name` is its place under the media folders, `digest` the SHA-256 that its bytes should have."""

    path: str
    name: str
    digest: str

    def open(self) -> BufferedReader:
        """Its bytes. Raises CouldNotLook where they may not be read."""
        try:
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError as error:
            raise CouldNotLook(f"{shown(self.path)}: {error.strerror}") from None
        return os.fdopen(handle, "rb")


def stored_files(folders: MediaFolders) -> Iterator[StoredFile]:
    """Every such file, in order of name. Temporary names (with a dot before them) are left out."""
    if folders.native_inputs.present:
        root = folders.native_inputs.place
        for folder in _listed(root, folders=True):
            if SHA256.fullmatch(folder):
                for name in _listed(f"{root}/{folder}"):
                    if not name.startswith("."):
                        yield StoredFile(f"{root}/{folder}/{name}", f"native-inputs/{folder}/{name}", folder)
    if folders.transcript_media.present:
        root = folders.transcript_media.place
        for name in _listed(root):
            if SHA256.fullmatch(name):
                yield StoredFile(f"{root}/{name}", f"transcript_media/{name}", name)


def _listed(place: str, *, folders: bool = False) -> list[str]:
    try:
        with os.scandir(place) as listing:
            return sorted(
                entry.name
                for entry in listing
                if (entry.is_dir if folders else entry.is_file)(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []
