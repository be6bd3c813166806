"""Damage healthy files of real stores, each way by itself; never through the product and never by a store's own call.

Rows are damaged on a stdlib connection of a process of its own, foreign keys off, as the `sqlite3` shell has it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from tests.real.chapters import PROMPT
from tests.real.lives import Healthy

MISSING = "never-was"
"""An id that no life has."""

Sql = tuple[str, Sequence[Any]]
Row = tuple[str, str, str]
"""Code, key and severity of a finding."""

_SHELL = """
import json, sqlite3, sys
path, pragmas, statements = json.load(sys.stdin)
connection = sqlite3.connect(path, isolation_level=None)
for pragma in ["foreign_keys = OFF", *pragmas]:
    connection.execute("PRAGMA " + pragma).fetchall()
changed = []
connection.execute("BEGIN IMMEDIATE")
for sql, bindings in statements:
    changed.append(connection.execute(sql, bindings).rowcount)
connection.execute("COMMIT")
connection.close()
print(json.dumps(changed))
"""


@dataclass(frozen=True)
class Harm:
    """One damage: what does it, all findings at warning or above it must give, and how it is mended.

    `left` are the findings that stay after a repair with these choices: those that are mended by hand alone.
    """

    statements: tuple[Sql, ...]
    expect: tuple[Row, ...]
    choices: tuple[str, ...] = ()
    lossy: bool = False
    left: tuple[Row, ...] = ()
    schema: tuple[str, ...] = ()

    def do(self, path: Path) -> None:
        """Damage the file, its schema first; every statement must change a row."""
        if self.schema:
            shell(path, [(sql, ()) for sql in self.schema], ["writable_schema = ON"])
        changed = shell(path, self.statements)
        assert 0 not in changed, (self.statements, changed)


@dataclass(frozen=True)
class Facts:
    """What the harms need to know of a healthy file before they damage it."""

    healthy: Healthy
    tables: frozenset[str]
    columns: frozenset[str]
    ids: dict[str, str] = field(default_factory=dict)

    def bound(self) -> str | None:
        """A session without messages that a Telegram topic is bound to."""
        return bound_session(self.healthy) if "telegram_dm_topic_bindings" in self.tables else None


def shell(path: Path, statements: Iterable[Sql], pragmas: Sequence[str] = ()) -> list[int]:
    """Run statements in one transaction as the `sqlite3` shell would; returns the rows each changed."""
    document = json.dumps([str(path), list(pragmas), [[sql, list(bindings)] for sql, bindings in statements]])
    done = subprocess.run(
        [sys.executable, "-c", _SHELL],
        input=document,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def rows(path: Path, sql: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """Rows of a file that no other connection of this process has open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(sql, bindings))
    finally:
        connection.close()


def facts(healthy: Healthy) -> Facts:
    """Look at a healthy file."""
    names = rows(healthy.path, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = frozenset(name for (name,) in names)
    columns = frozenset(
        f"{table}.{column}"
        for table in tables
        for (column,) in rows(healthy.path, "SELECT name FROM pragma_table_xinfo(?)", (table,))
    )
    return Facts(healthy, tables, columns, healthy.life.kept())


def bound_session(healthy: Healthy) -> str | None:
    """The newest session that a topic is bound to and that has no message."""
    sql = (
        "SELECT b.session_id FROM telegram_dm_topic_bindings AS b"
        " WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = b.session_id)"
        " ORDER BY b.session_id DESC LIMIT 1"
    )
    return next((str(session_id) for (session_id,) in rows(healthy.path, sql)), None)


def _row_gone(session_id: str) -> Sql:
    return "DELETE FROM sessions WHERE id = ?", (session_id,)


def _messages_gone(session_id: str) -> Sql:
    return "DELETE FROM messages WHERE session_id = ?", (session_id,)


def _orphaned(facts: Facts, role: str) -> Harm | None:
    if role not in facts.ids:
        return None
    session_id = facts.ids[role]
    return Harm((_row_gone(session_id),), (("HDB201", session_id, "error"),))


def orphaned_tools(facts: Facts) -> Harm | None:
    """The row of a titled session with tool calls is gone."""
    return _orphaned(facts, "tools")


def orphaned_chat(facts: Facts) -> Harm | None:
    """The row of a chat with route, topic, goal and usage is gone: one finding, for one cause."""
    return _orphaned(facts, "chat")


def orphaned_pictures(facts: Facts) -> Harm | None:
    """The row of a session with NUL-`json:` rows and a live branch is gone."""
    return _orphaned(facts, "images")


def orphaned_compression_parent(facts: Facts) -> Harm | None:
    """The row of a session that compression closed is gone; its continuation goes on."""
    return _orphaned(facts, "rotated")


def orphaned_middle_of_a_chain(facts: Facts) -> Harm | None:
    """The row of a session between two compressions is gone."""
    return _orphaned(facts, "rotated-2")


def orphaned_inactive_rows(facts: Facts) -> Harm | None:
    """The row of a session whose messages were all rewound is gone."""
    return _orphaned(facts, "rewound-whole")


def tombstoned(facts: Facts) -> Harm | None:
    """The row of a session is gone, and a tombstone says that its user deleted it: nothing is planned."""
    session_id = facts.ids["handoff-pending"]
    key = f"gateway.retired_session.v1.{session_id}"
    found = ("HDB201", session_id, "error")
    tomb = ("INSERT INTO state_meta (key, value) VALUES (?, '1')", (key,))
    return Harm((_row_gone(session_id), tomb), (found,), left=(found,))


def missing_branch_parent(facts: Facts) -> Harm | None:
    """The parent of a branch is gone with its messages."""
    root, branch = facts.ids["root"], facts.ids["branch"]
    return Harm((_messages_gone(root), _row_gone(root)), (("HDB202", branch, "error"),))


def missing_delegate_parent(facts: Facts) -> Harm | None:
    """The parent of a sub-agent is gone with its messages; only a marked sub-agent is left as it is."""
    parent, child = facts.ids["delegate"], facts.ids["delegate-of-delegate"]
    config = rows(facts.healthy.path, "SELECT model_config FROM sessions WHERE id = ?", (child,))[0][0]
    found = ("HDB202", child, "error")
    left = (found,) if "_delegate_from" in (config or "") else ()
    return Harm((_messages_gone(parent), _row_gone(parent)), (found,), left=left)


def orphaned_usage(facts: Facts) -> Harm | None:
    """The row of a session without messages is gone, its usage is left."""
    if "session_model_usage" not in facts.tables:
        return None
    session_id = facts.ids["accounted"]
    key = f"session_model_usage {session_id}"
    return Harm((_row_gone(session_id),), (("HDB203", key, "error"),), lossy=True)


def missing_prompt(facts: Facts) -> Harm | None:
    """A stored prompt is gone that sessions name."""
    if "system_prompts" not in facts.tables:
        return None
    sql = (
        "SELECT p.hash FROM system_prompts AS p WHERE p.prompt = ?"
        " AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = p.hash)"
    )
    ((prompt,),) = rows(facts.healthy.path, sql, (PROMPT,))
    gone = ("DELETE FROM system_prompts WHERE hash = ?", (prompt,))
    return Harm((gone,), (("HDB204", f"system_prompt_hash {prompt[:12]}", "error"),))


def orphaned_binding(facts: Facts) -> Harm | None:
    """The row of an empty session is gone, a topic is still bound to it."""
    session_id = facts.bound()
    if session_id is None:
        return None
    statements = [_row_gone(session_id)]
    usage = "SELECT 1 FROM session_model_usage WHERE session_id = ?"
    if "session_model_usage" in facts.tables and rows(facts.healthy.path, usage, (session_id,)):
        statements.append(("DELETE FROM session_model_usage WHERE session_id = ?", (session_id,)))
    return Harm(tuple(statements), (("HDB205", session_id, "error"),), lossy=True)


def broken_plugin_key(_facts: Facts) -> Harm | None:
    """A table that no release knows names a session that never was."""
    table = (
        "CREATE TABLE plugin_notes (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(id))"
    )
    found = ("HDB206", "plugin_notes(session_id) -> sessions", "error")
    note = ("INSERT INTO plugin_notes (session_id) VALUES (?)", (MISSING,))
    return Harm(((table, ()), note), (found,), left=(found,))


def used_branchless_root(facts: Facts) -> Harm | None:
    """A session ended as branched has no branch and was written to afterwards."""
    session_id = facts.ids["untitled"]
    found = ("HDB301", f"branchless-root:{session_id}", "warning")
    ended = "UPDATE sessions SET ended_at = started_at + 1, end_reason = 'branched' WHERE id = ?"
    later = "UPDATE messages SET timestamp = timestamp + 200 WHERE session_id = ?"
    return Harm(
        ((ended, (session_id,)), (later, (session_id,))), (found,), ("branched-root-leftovers=reopen",)
    )


def null_active(facts: Facts) -> Harm | None:
    """The active flag may be NULL, as very old upgrades declared it, and messages have none."""
    if "messages.active" not in facts.columns:
        return None
    session_id = facts.ids["current"]
    declared = (
        "UPDATE sqlite_schema SET sql = replace(replace(sql, ' active INTEGER NOT NULL', ' active INTEGER'),"
        """ '"active" INTEGER NOT NULL', '"active" INTEGER') WHERE type = 'table' AND name = 'messages'"""
    )
    forgotten = "UPDATE messages SET active = NULL WHERE session_id = ?"
    return Harm(((forgotten, (session_id,)),), (("HDB404", session_id, "error"),), schema=(declared,))


def wrong_counter(facts: Facts) -> Harm | None:
    """A session counts more than it has."""
    session_id = facts.ids["measured"]
    wrong = "UPDATE sessions SET message_count = 99, tool_call_count = 7 WHERE id = ?"
    return Harm(((wrong, (session_id,)),), (("HDB501", session_id, "warning"),))


def zero_counter(facts: Facts) -> Harm | None:
    """A session with messages counts none: the store's own sweep of empty sessions would delete them."""
    session_id = facts.ids["handoff-failed"]
    wrong = "UPDATE sessions SET message_count = 0 WHERE id = ?"
    return Harm(((wrong, (session_id,)),), (("HDB501", session_id, "error"),))


HARMS: dict[str, Callable[[Facts], Harm | None]] = {
    harm.__name__: harm
    for harm in (
        orphaned_tools,
        orphaned_chat,
        orphaned_pictures,
        orphaned_compression_parent,
        orphaned_middle_of_a_chain,
        orphaned_inactive_rows,
        tombstoned,
        missing_branch_parent,
        missing_delegate_parent,
        orphaned_usage,
        missing_prompt,
        orphaned_binding,
        broken_plugin_key,
        used_branchless_root,
        null_active,
        wrong_counter,
        zero_counter,
    )
}
"""Every way to damage rows, by name; None where the release has nothing of the kind."""


def flip_page(path: Path, name: str) -> None:
    """Turn bits over in the header of a leaf page of a table or an index, as a bad disk does."""
    sql = (
        "SELECT pageno, pgsize FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno DESC LIMIT 1"
    )
    ((page, size),) = rows(path, sql, (name,))
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        header = bytes(byte ^ 0x5A for byte in file.read(8))
        file.seek((page - 1) * size)
        file.write(header)


def empty(path: Path) -> None:
    """Leave 0 bytes."""
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    """Leave the size and nothing but zero bytes."""
    path.write_bytes(bytes(path.stat().st_size))


def headless(path: Path) -> None:
    """Overwrite the header."""
    with path.open("r+b") as file:
        file.write(b"not a database")


def cut_off(path: Path) -> None:
    """Cut the second half off."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "empty": empty,
    "zeroes": zeroed,
    "wrong-header": headless,
    "truncated": cut_off,
}
"""Ways to make a file unreadable, by the kind of the finding."""
