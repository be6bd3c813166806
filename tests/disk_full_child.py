"""Run commands in forks of this process on a disk that is full from the nth write on; started by tests only.

A line of JSON on stdin: the folder that counts as the disk, the words of the command, the number of the first write that
fails (0: none) and whether all later ones fail too. The answer: exit code, what was printed, and what each write was.

A write is what may need room: SQLite's writes and syncs, files and folders made, second names, and bytes of ordinary files.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from hermes_dbtools import __main__, private_files
from hermes_dbtools.backups import restoring, taking  # noqa: F401 - imported once, not in each fork
from hermes_dbtools.cli import backup, repair, restore  # noqa: F401 - the same


class Disk:
    """Counts writes; from some number on there is no room."""

    def __init__(self, folder: str, first: int, *, always: bool) -> None:
        self.folder = folder
        self.first = first
        self.always = always
        self.writes: list[str] = []

    def full(self, what: str, path: object, *, grows: bool = True) -> bool:
        """Count a write to a path; whether there is no room for it. What grows nothing fails once at most."""
        self.writes.append(f"{what} {Path(os.fsdecode(str(path))).name}")
        number = len(self.writes)
        return bool(self.first) and (number >= self.first if self.always and grows else number == self.first)

    def use(self, what: str, path: object) -> None:
        """The same for what raises OSError."""
        if self.full(what, path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def holds(self, path: object) -> bool:
        """Whether a path lies on this disk."""
        return os.fsdecode(str(path)).startswith(self.folder)


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

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self.disk.full("sync", self.name, grows=False):
            raise apsw.FullError("no room")
        super().xSync(flags)


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


class Python(io.BufferedWriter):
    """An ordinary file that is written to: half of what does not fit is written."""

    disk: Disk
    path: str

    def write(self, data: Any) -> int:
        if self.disk.full("bytes", self.path):
            super().write(bytes(data)[: len(data) // 2])
            super().flush()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


def fill(disk: Disk) -> None:
    """Let this process run out of room."""
    opens, fdopens, syncs = os.open, os.fdopen, os.fsync
    names: dict[int, str] = {}

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_CREAT and disk.holds(path) and not os.path.lexists(path):
            disk.use("made", path)
        descriptor = opens(path, flags, *more, **named)
        names[descriptor] = os.fsdecode(path)
        return descriptor

    def fdopened(descriptor: int, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "w" not in mode or not disk.holds(names.get(descriptor, "")):
            return fdopens(descriptor, mode, *more, **named)
        file = Python(io.FileIO(descriptor, mode))
        file.disk, file.path = disk, names[descriptor]
        return file

    def synced(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if disk.holds(path) and not path.is_dir():
            disk.use("sync", path)
        syncs(descriptor)

    def counted(real: Callable[..., Any], what: str, place: int) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if disk.holds(arguments[place]) and not os.path.lexists(arguments[place]):
                disk.use(what, arguments[place])
            return real(*arguments, **named)

        return call

    os.open, os.fdopen, os.fsync = opened, fdopened, synced  # type: ignore[assignment]
    os.mkdir = counted(os.mkdir, "made", 0)
    os.link = counted(os.link, "named", 1)
    os.rename = counted(os.rename, "named", 1)
    os.replace = counted(os.replace, "named", 1)
    private_files.free_bytes.__code__ = plenty.__code__


def plenty(folder: Path) -> int:
    """What a disk says that is only found to be full by writing to it."""
    del folder
    return 1 << 50


def run(request: dict[str, Any]) -> dict[str, Any]:
    disk = Disk(request["folder"], request["first"], always=request["always"])
    vfs = FullVfs(disk)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    sys.argv = ["hermes-dbtools", *request["words"]]
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        fill(disk)
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


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            answer = json.dumps(run(request)).encode()
            with open(writing, "wb") as pipe:  # noqa: PTH123 - a descriptor
                pipe.write(answer)
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
            answer = pipe.read()
        os.waitpid(child, 0)
        print(answer.decode(), flush=True)


if __name__ == "__main__":
    main()
