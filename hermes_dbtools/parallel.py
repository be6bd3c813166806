"""Scan databases in several processes, with the report that one process would make; never writes.

Each worker scans one database at a time and knows its fellows, as this process does: a class may look into another profile, and
who reads a file for the same command is no holder of it. Several names of one file are one worker's, one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from . import home as homes
from . import scanning
from .holders import also_ours
from .home import Home
from .model import CouldNotLook, DatabaseReport, Report, UsageError
from .scanning import ScanOptions, Target
from .selection import selected
from .sizes import path_text

ENDED = "the process that looked at it ended"
PATIENCE = 10
"""How much nicer than others a process is that only takes the time they leave."""

LAST_SECONDS = 10
"""How long a worker that was told to stop may take to remove its private copies."""

Group = tuple[int, ...]
"""Places in the list of targets, all of one file."""


@dataclass(frozen=True, slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection

    def interrupt(self) -> None:
        """Let it stop looking, and remove its private copies."""
        if self.process.pid and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)


def scan(
    targets: Sequence[Target], options: ScanOptions, progress: Callable[[str], None], *, jobs: int = 1
) -> Report:
    """As `scanning.scan`, with up to `jobs` databases at a time; the report is the same whatever `jobs` is."""
    groups = _groups(targets)
    if jobs == 1 or len(groups) == 1:
        return scanning.scan(targets, options, progress)
    selected(options.registry, options.select, options.ignore)
    found: dict[int, DatabaseReport] = {}
    with _workers(min(jobs, len(groups)), options) as workers:
        for group, reports in _answers([worker.connection for worker in workers], groups, targets):
            found.update(zip(group, reports, strict=True))
            progress(f"{len(found)} of {len(targets)} databases")
    reports = tuple(found[place] for place in range(len(targets)))
    return Report(reports, scanning.exit_code(reports, options.fail_on))


@dataclass(slots=True)
class Scans:
    """Scans of some homes, each home in a process of its own."""

    _homes: Sequence[Home]
    _workers: Sequence[_Worker]

    def begin(self, place: int, options: ScanOptions, *, patient: bool = False) -> None:
        """Begin to scan the home at a place, whose last scan is done. `patient`: in the time that others leave, from now on."""
        with suppress(OSError):  # it is gone: the answer says so
            self._workers[place].connection.send((self._homes[place], options, patient))

    def report(self, place: int) -> DatabaseReport:
        """Wait for the report on the home at a place."""
        try:
            answer = self._workers[place].connection.recv()
        except (EOFError, OSError):
            path = path_text(self._homes[place].database)
            return DatabaseReport(path, 0, "", None, (), 0, (), error=f"{path}: {ENDED}")
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, DatabaseReport)
        return answer


@contextmanager
def scans(homes: Sequence[Home]) -> Iterator[Scans]:
    """Processes that scan homes while this one does something else."""
    with _workers(len(homes), ScanOptions()) as workers:
        yield Scans(homes, workers)


def _groups(targets: Sequence[Target]) -> list[Group]:
    groups: dict[object, list[int]] = {}
    for place, target in enumerate(targets):
        try:
            found = homes.resolve(target).database.stat()
            key: object = (found.st_dev, found.st_ino)
        except (CouldNotLook, UsageError, OSError):
            key = place
        groups.setdefault(key, []).append(place)
    return [tuple(group) for group in groups.values()]


def _answers(
    connections: Sequence[Connection], groups: Sequence[Group], targets: Sequence[Target]
) -> Iterator[tuple[Group, Sequence[DatabaseReport]]]:
    waiting = deque(groups)
    busy: dict[object, Group] = {}
    idle = deque(connections)
    while waiting or busy:
        while waiting and idle:
            connection = idle.popleft()
            busy[connection] = waiting.popleft()
            with suppress(OSError):  # it is gone: the answer says so
                connection.send([targets[place] for place in busy[connection]])
        if not busy:  # no worker is left
            yield from ((group, _lost(group, targets)) for group in waiting)
            return
        for ready in wait(list(busy)):  # type: ignore[arg-type]
            assert isinstance(ready, Connection)
            group = busy.pop(ready)
            try:
                answer = ready.recv()
            except (EOFError, OSError):
                yield group, _lost(group, targets)
                continue
            idle.append(ready)
            if isinstance(answer, Exception):
                raise answer
            yield group, answer


def _lost(group: Group, targets: Sequence[Target]) -> list[DatabaseReport]:
    paths = ["" if targets[place] is None else path_text(targets[place] or "") for place in group]
    return [
        DatabaseReport(path, 0, "", None, (), 0, (), error=f"{path}: {ENDED}; try again with --jobs 1")
        for path in paths
    ]


@contextmanager
def _workers(count: int, options: ScanOptions) -> Iterator[list[_Worker]]:
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    try:
        with _interrupts_held():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=_work, args=(theirs, options), daemon=True)
                process.start()
                theirs.close()
                workers.append(_Worker(process, ours))
        pids = [worker.process.pid for worker in workers if worker.process.pid]
        for worker in workers:
            with suppress(OSError):
                worker.connection.send([*pids, os.getpid()])
        with also_ours(pids):
            yield workers
    except BaseException:
        for worker in workers:
            worker.interrupt()
        raise
    finally:
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            _end(worker.process)


def _end(process: BaseProcess) -> None:
    """Wait for a worker, which ends when nobody can ask it any more."""
    process.join(LAST_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process begun in here inherits that Ctrl-C waits until it is ready to end quietly."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, options: ScanOptions) -> None:
    """The life of a worker: told its fellows, then asked for one file after the other, until nobody asks."""
    signal.signal(signal.SIGINT, _stop_once)
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with also_ours(connection.recv()):
            while True:
                connection.send(_answer(connection.recv(), options))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _stop_once(_number: int, _frame: object) -> None:
    """A terminal's Ctrl-C and the coordinator's signal both come; the second must not cut off the removal of copies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _answer(
    asked: list[Target] | tuple[Home, ScanOptions, bool], options: ScanOptions
) -> tuple[DatabaseReport, ...] | DatabaseReport | Exception:
    try:
        if isinstance(asked, list):
            return scanning.scan(asked, options, None).databases
        home, own, patient = asked
        if patient and hasattr(os, "nice"):
            os.nice(PATIENCE)
        chosen = selected(own.registry, own.select, own.ignore)
        return scanning.report_of(home, own, chosen, lambda _what: None)
    except Exception as error:  # noqa: BLE001 - a fault of ours is told where the others are
        error.add_note(traceback.format_exc())
        return error
