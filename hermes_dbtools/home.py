"""Know where the files of a Hermes home are; never opens, creates or changes one.

Facts of upstream (`hermes_constants.py`): one `state.db` per profile, the root profile in the home itself and
named ones in `profiles/<name>/`; a legacy folder is used as long as it has content (`get_hermes_dir`).
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .model import CouldNotLook, UsageError
from .shown import reason, shown

DATABASE_NAME = "state.db"
DEFAULT_PROFILE = "default"
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one profile and its database; where `database` is a link, the folder the link lies in."""

    root: Path
    database: Path
    profile: str

    @property
    def sessions_dir(self) -> Path:
        """Transcripts and request dumps, one set per session."""
        return self.root / "sessions"

    @property
    def dbtools_dir(self) -> Path:
        """Receipts, undo files and backups of this tool."""
        return self.root / "dbtools"

    @property
    def active_sessions_file(self) -> Path:
        """The registry of processes that own a session right now."""
        return self.root / "runtime" / "active_sessions.json"

    @property
    def documents_dir(self) -> Path:
        """The document cache: `document_cache` while that has content, else `cache/documents`."""
        legacy = self.root / "document_cache"
        return legacy if _has_content(legacy) else self.root / "cache" / "documents"

    @property
    def native_inputs_dir(self) -> Path:
        """Bytes of attachments and images that admissions name, in folders named by SHA-256."""
        return self.documents_dir / "native-inputs"

    @property
    def transcript_media_dir(self) -> Path:
        """Images of `messages.media_content`, each file named by its SHA-256."""
        return self.root / "cache" / "transcript_media"

    @property
    def composer_pastes_dir(self) -> Path:
        """Pasted text that messages name as `@file:`."""
        return self.root / "composer-pastes"

    @property
    def composer_images_dirs(self) -> tuple[Path, ...]:
        """Where the desktop application may keep images that messages name as `@image:`, likeliest first."""
        return tuple(folder / "composer-images" for folder in _desktop_data_folders(os.environ))


def default_home() -> Path:
    """`$HERMES_HOME`, else the platform's default (`~/.hermes`); reads the environment, not the disk.

    Raises UsageError where neither says a folder: a user without a home, or `~name` of nobody.
    """
    try:
        return _default_home()
    except RuntimeError as error:
        raise UsageError(f"no default home ({error}); set HERMES_HOME, or name a state.db") from None


def _default_home() -> Path:
    told = os.environ.get("HERMES_HOME", "").strip()
    if told:
        return Path(told).expanduser()
    suffix = os.environ.get("HERMES_DATA_DIR_SUFFIX", "")
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "").strip()
        return (Path(local) if local else Path.home() / "AppData" / "Local") / f"hermes{suffix}"
    return Path.home() / f".hermes{suffix}"


def resolve(target: str | bytes | Path | None, *, missing_ok: bool = False) -> Home:
    """The home of a `state.db` or a home folder; without a target the default home.

    Whatever stands at the path of the database, be it a FIFO, is a Home: `database.examine` says what it is. With
    `missing_ok` also a folder whose database is lost, or a missing `*.db` in a folder: a place to restore to.
    Raises UsageError for a path that no file can have, CouldNotLook when there is nothing at it.
    """
    named = default_home() if target is None else Path(os.fsdecode(target))
    if "\0" in str(named) or (target is not None and not os.fsdecode(target)):
        raise UsageError("a path may not be empty or hold a NUL; name a state.db or a Hermes home")
    path = _absolute(named)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink() or (missing_ok and path.suffix == ".db" and path.parent.is_dir()):
            return _home(path.parent, path)
        hint = "set HERMES_HOME, or name a state.db or a Hermes home" if target is None else "check the path"
        raise CouldNotLook(f"{shown(path)}: no such file or folder; {hint}") from None
    except OSError as error:
        raise CouldNotLook(
            f"{shown(path)}: {reason(error)}; run as the user who owns it, or check the path"
        ) from None
    if not stat.S_ISDIR(mode):
        return _home(path.parent, path)
    if not missing_ok and not os.path.lexists(path / DATABASE_NAME) and _searchable(path):
        hint = (
            "name one of profiles/*/state.db, or use --all-profiles" if profiles(path) else "check the path"
        )
        raise CouldNotLook(f"{shown(path)}: a folder without {DATABASE_NAME}; {hint}")
    return _home(path, path / DATABASE_NAME)


def profiles(home_root: Path) -> tuple[Home, ...]:
    """The root profile, then the named ones in name order; only those that have a database.

    Raises CouldNotLook when `profiles/` cannot be listed: a profile left out unseen would read as clean.
    """
    root = _absolute(home_root)
    found = [_home(root, root / DATABASE_NAME)] if os.path.lexists(root / DATABASE_NAME) else []
    try:
        names = sorted(entry.name for entry in (root / "profiles").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        names = []
    except OSError as error:
        raise CouldNotLook(
            f"{shown(root / 'profiles')}: {reason(error)}; run as the user who owns it, or name one state.db"
        ) from None
    for name in names:
        folder = root / "profiles" / name
        if PROFILE_NAME.fullmatch(name) and os.path.lexists(folder / DATABASE_NAME):
            found.append(_home(folder, folder / DATABASE_NAME))
    return tuple(found)


def other_profiles(home: Home) -> tuple[Home, ...]:
    """The other profiles of the home that this one belongs to, in the order of `profiles`."""
    top = home.root if home.profile == DEFAULT_PROFILE else home.root.parent.parent
    return tuple(other for other in profiles(top) if not _same_file(other.database, home.database))


def _home(root: Path, database: Path) -> Home:
    named = root.parent.name == "profiles" and PROFILE_NAME.fullmatch(root.name)
    return Home(root, database, root.name if named else DEFAULT_PROFILE)


def _absolute(path: Path) -> Path:
    # Links stay as written, for messages name files by them; `..` behind a link needs the real folder.
    if ".." not in path.parts:
        return Path.cwd() / path
    folder, name = (path, "") if path.name == ".." else (path.parent, path.name)
    return Path(os.path.realpath(folder)) / name


def _searchable(folder: Path) -> bool:
    return os.access(folder, os.X_OK)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other


def _has_content(path: Path) -> bool:
    """Upstream's rule: an empty folder or a dangling link is not in use; what cannot be inspected is."""
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return True
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _desktop_data_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Electron's `userData` of the application "Hermes" (upstream: `hermes_cli/desktop_composer_images.py`).

    The environment of this process need not be the desktop's, so the folders without it are candidates too.
    """
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support" / "Hermes"
    elif sys.platform == "win32":
        base = Path(environment.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "Hermes"
    else:
        base = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Hermes"
    override = environment.get("HERMES_DESKTOP_USER_DATA_DIR")
    suffixed = base.with_name(base.name + environment.get("HERMES_DATA_DIR_SUFFIX", ""))
    candidates = (Path(override),) if override else ()
    return tuple(dict.fromkeys((*candidates, suffixed, base)))
