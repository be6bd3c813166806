"""Which engine is at work: versions for reports, receipts and `--version`; opens nothing."""

from __future__ import annotations

import apsw

from . import __version__


def versions() -> dict[str, str]:
    """The versions of this tool, of apsw and of the SQLite inside it."""
    return {"version": __version__, "apsw": apsw.apsw_version(), "sqlite": apsw.sqlite_lib_version()}
