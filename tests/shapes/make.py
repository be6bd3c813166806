"""Make a store file of a known shape, run SQL on it, fill it; never leaves it open or with a sidecar.

What is made is the product's (hermes_dbtools/fixtures); here both engines can do it. An engine makes or fills the same store
once in a process: it depends on nothing else, so the next one gets the same bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from hermes_dbtools.fixtures.bulk import Bulk, bulk_steps
from hermes_dbtools.fixtures.healthy import healthy
from hermes_dbtools.fixtures.names import PARTS
from hermes_dbtools.fixtures.rows import Filled, insert_steps
from hermes_dbtools.fixtures.shapes import empty_steps, script
from tests.shapes.engines import Bindings, Engine, Row, Step, run

__all__ = ["PARTS", "SHAPES", "columns", "execute", "execute_many", "fill", "fill_many", "make", "script"]

SHAPES = ("11", "14", "19", "22", "25", "30", "31", "runtime", "media")
"""The shapes that stand for all of them in the tests, oldest first."""

FILE_MODE = 0o644
"""What SQLite makes files with."""

KEPT_BYTES = 1_000_000

_MADE: dict[Hashable, bytes] = {}
_FILLED: dict[Hashable, tuple[bytes, Filled]] = {}

COLUMNS = """
    SELECT m.name, c.name
    FROM sqlite_master AS m
    INNER JOIN pragma_table_info(m.name) AS c
    WHERE m.type = 'table' AND m.name NOT LIKE 'messages_fts%'
"""


def make(
    path: Path,
    shape: str,
    *,
    parts: Sequence[str] = (),
    journal_mode: str = "wal",
    engine: Engine = "ours",
) -> Path:
    """Create an empty store of this shape at `path` and return the path; nothing may be there yet.

    Raises FileExistsError, UsageError for a shape and FileNotFoundError for a part that does not exist.
    """
    if path.exists():
        raise FileExistsError(path)
    asked = (shape, tuple(parts), journal_mode, engine)
    if asked in _MADE:
        path.touch(FILE_MODE, exist_ok=False)
        path.write_bytes(_MADE[asked])
    else:
        run(path, empty_steps(shape, parts, journal_mode), engine)
        _MADE[asked] = path.read_bytes()
    return path


def execute(
    path: Path,
    sql: str,
    bindings: Bindings = (),
    *,
    foreign_keys: bool = False,
    engine: Engine = "ours",
) -> list[Row]:
    """Run one statement by itself and return its rows; foreign keys are off unless asked for."""
    return run(path, [Step(sql, [bindings])], engine, foreign_keys=foreign_keys)


def execute_many(path: Path, sql: str, rows: Sequence[Bindings], *, engine: Engine = "ours") -> None:
    """Run one statement for each set of bindings in one transaction, foreign keys off."""
    run(path, [Step(sql, rows)], engine)


def columns(path: Path, *, engine: Engine = "ours") -> dict[str, set[str]]:
    """The columns of each table but those of the search indexes."""
    found: dict[str, set[str]] = {}
    for table, column in run(path, [Step(COLUMNS, [()])], engine):
        found.setdefault(table, set()).add(column)
    return found


def fill(path: Path, sessions: int = 3, messages: int = 4, *, engine: Engine = "ours") -> Filled:
    """Add the rows of `healthy` to an empty store and say which sessions they make; foreign keys are on."""
    asked = (_alone(path), sessions, messages, engine)
    if asked in _FILLED:
        content, filled = _FILLED[asked]
        path.write_bytes(content)
        return filled
    rows = healthy(columns(path, engine=engine), sessions, messages)
    run(path, insert_steps(rows), engine, foreign_keys=True)
    if asked[0] is not None and path.stat().st_size < KEPT_BYTES:
        _FILLED[asked] = (path.read_bytes(), rows.filled)
    return rows.filled


def fill_many(
    path: Path,
    sessions: int,
    messages_per_session: int,
    content_bytes: int = 200,
    *,
    nul_every: int = 0,
    engine: Engine = "ours",
) -> None:
    """Add many sessions with healthy messages of `content_bytes` bytes each, search indexes included.

    Every `nul_every`th message is a list of parts behind a NUL byte; 0 makes none.
    """
    last = run(path, [Step("SELECT COALESCE(MAX(q.seq), 0) FROM sqlite_sequence AS q", [()])], engine)[0][0]
    bulk = Bulk(sessions, messages_per_session, content_bytes, nul_every, after=last)
    run(path, bulk_steps(columns(path, engine=engine), bulk), engine)


def _alone(path: Path) -> bytes | None:
    """The bytes of a small store; None where it is large, or a sidecar may hold more."""
    if path.stat().st_size >= KEPT_BYTES or any(
        path.with_name(path.name + tail).exists() for tail in ("-wal", "-journal")
    ):
        return None
    return path.read_bytes()
