"""Run one command or snippet in a process of its own and tell its seconds and peak memory; judges nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """One finished process: wall seconds, peak resident bytes, exit code and what it printed."""

    seconds: float
    peak_bytes: int
    code: int
    out: str


def run(*arguments: str) -> Run:
    """Run Python with these arguments, as a whole process."""
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        out = process.stdout.read()
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.perf_counter() - started, usage.ru_maxrss * 1024, process.returncode, out)


def tool(*arguments: str) -> Run:
    """Run hermes-dbtools."""
    return run("-m", "hermes_dbtools", *arguments)


def timed(snippet: str, *arguments: str) -> float:
    """Seconds that a snippet says it took: it prints them as its last line."""
    done = run("-c", snippet, *arguments)
    assert done.code == 0, done.out
    return float(done.out.split()[-1])


def machine() -> str:
    """The size of this machine, for figures that are quoted."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"
