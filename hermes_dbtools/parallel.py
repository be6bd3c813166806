"""Scan databases in several processes, with the report that one process would make; never writes.

Each worker scans one database at a time and knows its fellows: a class may look into another profile, and a worker that reads a
file is no holder of it. Several names of one file are one worker's, one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from . import home as homes
from . import scanning
from .holders import also_ours
from .model import CouldNotLook, DatabaseReport, Report, UsageError
from .scanning import ScanOptions, Target
from .selection import selected
from .sizes import path_text

LAST_SECONDS = 10
"""How long a worker that was told to stop may take to remove its private copies."""

Group = tuple[int, ...]
"""Places in the list of targets, all of one file."""


def scan(
    targets: Sequence[Target], options: ScanOptions, progress: Callable[[str], None], *, jobs: int = 1
) -> Report:
    """As `scanning.scan`, with up to `jobs` databases at a time; the report is the same whatever `jobs` is."""
    groups = _groups(targets)
    if jobs == 1 or len(groups) == 1:
        return scanning.scan(targets, options, progress)
    selected(options.registry, options.select, options.ignore)
    found: dict[int, DatabaseReport] = {}
    with _workers(min(jobs, len(groups)), options) as connections:
        for group, reports in _answers(connections, groups, targets):
            found.update(zip(group, reports, strict=True))
            progress(f"{len(found)} of {len(targets)} databases")
    reports = tuple(found[place] for place in range(len(targets)))
    return Report(reports, scanning.exit_code(reports, options.fail_on))


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
    error = "the process that looked at it ended; try again with --jobs 1"
    paths = ["" if targets[place] is None else path_text(targets[place] or "") for place in group]
    return [DatabaseReport(path, 0, "", None, (), 0, (), error=f"{path}: {error}") for path in paths]


@contextmanager
def _workers(count: int, options: ScanOptions) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = []
    connections: list[Connection] = []
    try:
        with _interrupts_held():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=_work, args=(theirs, options), daemon=True)
                process.start()
                theirs.close()
                processes.append(process)
                connections.append(ours)
        pids = [process.pid for process in processes if process.pid]
        for connection in connections:
            with suppress(OSError):
                connection.send(pids)
        yield connections
    except BaseException:
        for process in processes:
            if process.pid and process.is_alive():  # it stops looking, and removes its private copies
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        for connection in connections:
            connection.close()
        _end(processes)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Wait for workers, which end when nobody can ask them any more."""
    for process in processes:
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
        also_ours(connection.recv())
        while True:
            connection.send(_reports(connection.recv(), options))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _stop_once(_number: int, _frame: object) -> None:
    """A terminal's Ctrl-C and the coordinator's signal both come; the second must not cut off the removal of copies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _reports(targets: list[Target], options: ScanOptions) -> tuple[DatabaseReport, ...] | Exception:
    try:
        return scanning.scan(targets, options, None).databases
    except Exception as error:  # noqa: BLE001 - a fault of ours is told where the others are
        error.add_note(traceback.format_exc())
        return error
