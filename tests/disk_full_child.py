"""Run commands in forks of this process on a disk that is full from the nth write on; started by tests only.

A line of JSON on stdin: the folders that count as the disk, the words of the command, the number of the first write that fails
(0: none), whether all later ones fail too, and who may hold the database. The answer: exit code, what was printed, and what
each write was.

A write is what may need room: SQLite's writes, truncates and syncs, files and folders made, second and new names, bytes of
ordinary files, whoever writes them, their size, and their syncs.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import gc
import importlib
import io
import json
import os
import pkgutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import hermes_dbtools
from hermes_dbtools import __main__, file_marks, file_state, holders, private_files, queries

WRITES = frozenset("wax+")


class Disk:
    """Counts writes; from some number on there is no room."""

    def __init__(self, folders: list[str], first: int, *, always: bool) -> None:
        self.folders = tuple(folders)
        self.first = first
        self.always = always
        self.writes: list[str] = []

    def full(self, what: str, path: object, *, grows: bool = True) -> bool:
        """Count a write to a path; whether there is no room for it. What grows nothing fails once at most."""
        name = Path(os.fsdecode(str(path))).name if path else "scratch"
        self.writes.append(f"{what} {name}")
        number = len(self.writes)
        return bool(self.first) and (number >= self.first if self.always and grows else number == self.first)

    def use(self, what: str, path: object, *, grows: bool = True) -> None:
        """The same for what raises OSError."""
        if self.full(what, path, grows=grows):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def holds(self, path: object) -> bool:
        """Whether a path, or the file of a descriptor, lies on this disk."""
        return path_of(path).startswith(self.folders)


def path_of(path: object) -> str:
    """The absolute path of a path or a descriptor; '' where there is none."""
    if isinstance(path, int):
        try:
            return str(Path(f"/proc/self/fd/{path}").readlink())
        except OSError:
            return ""
    return str(Path.cwd() / os.fsdecode(path))  # type: ignore[arg-type]  # whatever os.open takes


class File(apsw.VFSFile):
    """A file of SQLite."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.disk, self.name = disk, name.filename() if hasattr(name, "filename") else name

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        grows = offset + len(data) > super().xFileSize()
        if self.disk.full("page", self.name, grows=grows):
            raise apsw.FullError("no room")
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        if self.disk.full("size", self.name, grows=False):
            raise apsw.FullError("no room")
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        del flags
        if self.disk.full("sync", self.name, grows=False):
            raise apsw.FullError("no room")


class FullVfs(apsw.VFS):
    """The file system of SQLite."""

    def __init__(self, disk: Disk) -> None:
        super().__init__("full", "unix", makedefault=True)
        self.disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        path = name.filename() if hasattr(name, "filename") else name
        creates = flags[0] & apsw.SQLITE_OPEN_CREATE and path and not os.path.lexists(path)
        if creates and self.disk.full("made", path):
            raise apsw.CantOpenError("no room")
        return File(self.disk, name, flags)


class Plain(io.FileIO):
    """An ordinary file that is written to: half of what does not fit is written."""

    disk: Disk
    path: str

    def write(self, data: Any) -> int:
        if self.disk.full("bytes", self.path):
            super().write(bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)

    def truncate(self, size: int | None = None) -> int:
        self.disk.use("size", self.path)
        return super().truncate(size)


def fill(disk: Disk) -> None:
    """Let this process run out of room."""
    real_open, real_os_open = io.open, os.open

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if not WRITES & set(mode) or not disk.holds(file):
            return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not isinstance(file, int) and opener is None and not os.path.lexists(file):
            disk.use("made", file)
        raw = Plain(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.disk, raw.path = disk, path_of(file)
        whole = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return whole if "b" in mode else io.TextIOWrapper(whole, encoding, errors, newline)

    def os_opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_CREAT and disk.holds(path) and not os.path.lexists(path):
            disk.use("made", path)
        return real_os_open(path, flags, *more, **named)

    def counted(function: str, what: str, place: int, *, grows: bool = True, done: bool = True) -> None:
        real: Callable[..., Any] = getattr(os, function)

        def call(*arguments: Any, **named: Any) -> Any:
            if disk.holds(path := arguments[place]):
                disk.use(what, path_of(path), grows=grows)
            return real(*arguments, **named) if done else None

        setattr(os, function, call)

    io.open = opened
    builtins.open = opened
    os.open = os_opened
    for function in ("write", "writev", "pwrite", "pwritev", "sendfile"):
        counted(function, "bytes", 0)
    counted("copy_file_range", "bytes", 1)
    for function in ("truncate", "ftruncate", "posix_fallocate"):
        counted(function, "size", 0)
    for function in ("fsync", "fdatasync"):
        counted(function, "sync", 0, grows=False, done=False)
    counted("mkdir", "made", 0)
    for function in ("link", "symlink"):
        counted(function, "named", 1)
    for function in ("rename", "replace"):
        counted(function, "named", 1, grows=False)
    private_files.free_bytes.__code__ = plenty.__code__


def look_only_at(pids: list[int]) -> None:
    """Let no process be looked at for whether it holds the database but these: there are many others, again and again."""
    names = vars(holders)
    real = names["_numbered"]
    names["_numbered"] = lambda folder: pids if folder == Path("/proc") else real(folder)


def wait_for_nobody() -> None:
    """Look twice without a pause: nobody else writes to the files."""
    vars(file_state)["_BETWEEN_LOOKS"] = 0
    file_marks.TICK = 0


def plenty(folder: Path) -> int:
    """What a disk says that is only found to be full by writing to it."""
    del folder
    return 1 << 50


def run(request: dict[str, Any]) -> dict[str, Any]:
    disk = Disk(request["folders"], request["first"], always=request["always"])
    vfs = FullVfs(disk)
    tempfile.tempdir = disk.folders[-1]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    sys.argv = ["hermes-dbtools", *request["words"]]
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        fill(disk)
        look_only_at(request["holders"])
        wait_for_nobody()
        try:
            __main__.main()
        except SystemExit as end:
            code = end.code
        except BaseException:  # noqa: BLE001 - whatever it is, the test sees it
            traceback.print_exc()
    del vfs
    out.flush()
    printed = out.buffer.getvalue().decode()
    return {"code": code, "out": printed, "err": err.getvalue(), "writes": disk.writes}


def imported() -> None:
    """Import every module and read every query once, not in each fork."""
    for module in pkgutil.walk_packages(hermes_dbtools.__path__, "hermes_dbtools."):
        if not module.name.endswith("pytest_plugin"):
            importlib.import_module(module.name)
    folder = Path(str(queries.resource("sql")))
    for file in folder.rglob("*.sql"):
        if "fixture" not in file.parts:
            queries.load(file.relative_to(folder).with_suffix("").as_posix())
    gc.freeze()


def main() -> None:
    imported()
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            keep = io.open
            answer = json.dumps(run(request)).encode()
            with keep(writing, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
            answer = pipe.read()
        os.waitpid(child, 0)
        print(answer.decode(), flush=True)


if __name__ == "__main__":
    main()
