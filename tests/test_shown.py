"""Words of commands that are printed: a shell takes each as what it stands for, whatever is in it and in every locale."""

from __future__ import annotations

import subprocess

import apsw
import pytest

from hermes_dbtools.shown import IOERR_SHMSIZE, call, reason, shell_word
from hermes_dbtools.sizes import path_text

NAMES = [
    b"plain", b"two words", b"it's $HOME `id`", b"a\nb", b"it's\n\\n", b"\x1b[31mred", b"\xff\xfe not text", b"a\\b",
    "é日".encode(), "nbsp\u00a0".encode(), "nel\u0085".encode(), "bidi\u202e".encode(), "a·b…".encode(), b"", b"\x017",
]  # fmt: skip


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_shell_takes_every_name_as_it_is(locale: str) -> None:
    words = " ".join(shell_word(path_text(name)) for name in NAMES)
    assert words.isprintable()
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], env={"LC_ALL": locale}, capture_output=True, check=True
    ).stdout
    assert said.split(b"\0")[:-1] == NAMES


def test_ids_that_begin_like_an_option_come_last() -> None:
    assert call("show", " --apply", ["a", "b c"]) == "show a 'b c' --apply"
    assert call("show", " --apply", ["a", "-b"]) == "show --apply -- a -b"


def test_a_disk_without_room_for_shared_memory_is_said_as_that() -> None:
    assert IOERR_SHMSIZE == apsw.SQLITE_IOERR_SHMSIZE
    error = apsw.IOError("disk I/O error")
    error.extendedresult = IOERR_SHMSIZE
    assert reason(error) == "no room for its -shm"
    assert reason(apsw.IOError("disk I/O error")) == "disk I/O error"
    assert reason(FileNotFoundError(2, "No such file or directory")) == "no such file or directory"
