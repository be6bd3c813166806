"""Let a released gateway fail to save, each time for another reason, and let it log that; imports neither apsw nor the product.

Started as `python -m tests.real.gateway_log WHEEL HOME`; what the release logs is in HOME/logs, in its own format.
"""
# ruff: noqa: SLF001 - what no public call can do to a store

from __future__ import annotations

import logging
import os
import resource
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

GONE, KEPT = "20260301_101500_aaaaaa", "20260301_101600_bbbbbb"
FAILURES = (
    "foreign-key", "locked", "read-only", "disk-full", "disk-io", "not-null", "older-shape",
    "search-index", "search-index", "structure", "no-tokenizer",
)  # fmt: skip
"""The kinds of failure in order; the last one stays. A damaged index is rebuilt twice before the store gives up."""


def fail(store: Any, path: Path, kind: str) -> None:
    """Let one append fail."""
    ours: sqlite3.Connection = store._db._conn
    other = sqlite3.connect(path, isolation_level=None)
    say: dict[str, Any] = {"role": "user", "content": "words " * 2000}
    undo: tuple[str, ...] = ()
    if kind == "locked":
        other.execute("BEGIN IMMEDIATE")
    if kind == "read-only":
        ours.execute("PRAGMA query_only = 1")
        undo = ("PRAGMA query_only = 0",)
    if kind == "disk-full":
        ours.execute("PRAGMA max_page_count = 1")
        undo = ("PRAGMA max_page_count = 1000000",)
    if kind == "disk-io":
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    if kind == "not-null":
        say["role"] = None
    if kind == "older-shape":
        other.execute("ALTER TABLE messages RENAME COLUMN api_content TO api_content_new")
        undo = ("ALTER TABLE messages RENAME COLUMN api_content_new TO api_content",)
    if kind == "no-tokenizer":
        _forget_tokenizer(other)
    if kind in ("search-index", "structure"):
        other.execute("UPDATE messages_fts_data SET block = X'FFFFFFFFFFFFFFFFFFFFFFFF' WHERE id = 10")
    store.append_to_transcript(GONE if kind == "foreign-key" else KEPT, say)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store._clear_dirty_transcript(KEPT)
    other.close()
    for statement in undo:
        ours.execute(statement)


def _forget_tokenizer(other: sqlite3.Connection) -> None:
    """Give an index a tokenizer that this process lacks, as one with another SQLite would have made it."""
    other.execute("PRAGMA writable_schema = 1")
    other.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'trigram''', 'cjk_unicode61''') WHERE name = 'messages_fts_trigram'"
    )
    (version,) = other.execute("PRAGMA schema_version").fetchone()
    other.execute(f"PRAGMA schema_version = {version + 1}")


def main(wheel: str, home: Path) -> None:
    """Open the gateway's store of a home and let it fail in every way."""
    os.environ["HERMES_HOME"] = str(home)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.path.insert(0, wheel)
    import hermes_logging
    from gateway.config import GatewayConfig
    from gateway.session import SessionStore
    from hermes_state import SessionDB

    hermes_logging.setup_logging(hermes_home=home, mode="gateway")
    SessionDB._WRITE_MAX_RETRIES = 2
    store = SessionStore(home / "sessions", GatewayConfig())
    store._db.create_session(KEPT, "telegram")
    store._db._conn.execute("PRAGMA busy_timeout = 20")
    for kind in FAILURES:
        fail(store, home / "state.db", kind)
    logging.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
