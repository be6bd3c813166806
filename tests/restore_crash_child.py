"""Restore or back up in processes that end themselves by SIGKILL at a named place; started by tests only.

A line of JSON on stdin names home, `backup` or the backup to restore, and the place as tests/crash_child.py takes it; the
answer is the number of the signal, or what went wrong. Each runs in a fork of this process, which imports everything once.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

from hermes_dbtools.backups import restoring, taking
from hermes_dbtools.home import resolve
from tests.crash_child import wrap
from tests.repairs import NOW


def run(home_path: str, word: str, place: str) -> None:
    home = resolve(home_path, missing_ok=True)
    wrap(place)
    if word == "backup":
        taking.back_up(home, taking.BackupOptions(now=NOW))
    else:
        restoring.restore(home, restoring.prepare(home, word), NOW)


def main() -> None:
    for line in sys.stdin:
        home, word, place = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                run(home, word, place)
            except BaseException:  # noqa: BLE001 - whatever it is, the test is told that nobody was killed
                traceback.print_exc()
            os._exit(1)
        _pid, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)


if __name__ == "__main__":
    main()
