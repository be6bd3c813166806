"""Delete sessions, or undo that, in this process and end it by SIGKILL at a named place; started by tests only.

Arguments: home, `delete` or `undo`, the place as tests/crash_child.py takes it, and the ids.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_dbtools import undo
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.sessions.api import delete_sessions
from hermes_dbtools.undoing import UndoOptions, choose_receipt
from tests.crash_child import wrap
from tests.repairs import NOW


def main(home: Home, operation: str, place: str, ids: list[str]) -> None:
    wrap(place)
    if operation == "delete":
        delete_sessions(ids, home, now=NOW)
    else:
        undo(home, choose_receipt(home, None), UndoOptions(now=NOW))
    sys.exit("the place was never reached")


if __name__ == "__main__":
    main(resolve(Path(sys.argv[1])), sys.argv[2], sys.argv[3], sys.argv[4:])
