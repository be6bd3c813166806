"""The digest of a file: of the regular file that has the name, and of nothing else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hermes_dbtools import file_digests
from hermes_dbtools.file_digests import file_digest

CONTENT = b"the bytes of an image" * 100_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return path


def test_a_regular_file_by_its_path_or_by_its_name_in_an_open_folder(file: Path) -> None:
    assert file_digest(file) == file_digest(str(file)) == DIGEST
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        assert file_digest(file.name, folder=folder) == DIGEST
    finally:
        os.close(folder)


def test_it_says_how_much_it_has_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "BLOCK", max(1, len(CONTENT) // 5))
    told: list[str] = []
    assert file_digest(file, progress=told.append) == DIGEST
    assert len(told) >= 5
    assert told[-1] == "comparing digests: 99 %"


def test_a_link_only_where_it_may_be_followed(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert file_digest(link) == ""
    assert file_digest(link, follow_links=True) == DIGEST


def test_what_is_no_regular_file_has_none_and_keeps_nobody_waiting(file: Path) -> None:
    os.mkfifo(file.with_name("fifo"))
    for path in (file.with_name("fifo"), file.parent, file.with_name("missing"), file / "below"):
        assert file_digest(path) == file_digest(path, follow_links=True) == ""
