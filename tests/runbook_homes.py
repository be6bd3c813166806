"""The home that each runbook is written for: a fixture with its damage, and what a maker alone cannot do to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from hermes_dbtools import make_fixture
from hermes_dbtools.model import UsageError
from tests.runbook_outputs import Place

OLD = 1_785_000_000.0
"""Epoch seconds of every file of a home: older than a day, whenever the test runs."""

SHAPES = ("22", "runtime", "media")
"""In this order: the first one that can have the damage."""

Also = Callable[[Place], None]


def _older(shape: str) -> Also:
    """A copy of the store from before the damage."""
    return lambda place: _made(place.home / "older.db", shape)


def _made(path: Path, shape: str) -> None:
    make_fixture(path, shape=shape)


def _picture_elsewhere(place: Place) -> None:
    """One of the lost files lies in another folder of the home."""
    _named_by_digest(place, place.folder / "cache" / "images" / "kept.png")


def _picture_in_a_backup(place: Place) -> None:
    """A backup has the right file for one of the wrong ones."""
    (place.home / "backup").mkdir()
    _named_by_digest(place, place.home / "backup" / "a.png")


def _named_by_digest(place: Place, file: Path) -> None:
    """The makers name files by the digest of the session that has them."""
    connection = apsw.Connection(str(place.folder / "state.db"))
    names = [str(name) for (name,) in connection.execute("SELECT id FROM sessions WHERE id LIKE '%_000000'")]
    connection.close()
    file.write_text(names[0], "utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """A home to make; `damage` None is two findings of the runbook's class, without `shape` the first that can have it.

    `settings` are constants of this tool and what they are in the meantime. `sql` runs with foreign keys off, then `also`. The ids in it are those of the healthy sessions that every fixture has.
    """

    damage: tuple[str, ...] | None = None
    shape: str = ""
    sql: str = ""
    also: Also | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


EXAMPLES: Mapping[str, Example] = {
    "lineage/activity_after_end": Example(
        sql="UPDATE messages SET timestamp = timestamp + 2000 WHERE session_id = '20260529_012640_ef2d12'"
    ),
    "lineage/branched_root_leftovers": Example(
        damage=(),
        shape="runtime",
        sql="""
        UPDATE sessions SET model_config = '{"_branched_from": "gone", "_reset_from": "gone too"}'
         WHERE id = '20260528_222640_d4735e';
        UPDATE sessions SET ended_at = 1780026000.0, end_reason = 'branched' WHERE id = '20260529_032640_790269';
        INSERT INTO state_meta (key, value) VALUES
          ('gateway.retired_session.v1.gone', '{}'),
          ('gateway.local_policy.v1:gone', '{"session_id": "gone", "entry": {"session_id": "gone"}}');
        INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES
          ('', 'agent:main:telegram:dm:2', '{"session_key": "agent:main:telegram:dm:2", "session_id": "gone"}', 1780000000),
          ('', 'agent:main:telegram:dm:3', '{"session_key": "agent:main:telegram:dm:3", "session_id": "gone"}', 1780000000);
        """,
    ),
    "lineage/hidden_sessions": Example(
        sql="""
        UPDATE sessions SET parent_session_id = '20260528_212640_6b86b2',
                            model_config = '{"_delegate_from": "20260528_212640_6b86b2"}'
         WHERE id = '20260528_222640_d4735e'
        """
    ),
    "lineage/lineage_cycles": Example(
        damage=(),
        sql="""
        UPDATE sessions SET parent_session_id = '20260528_222640_d4735e' WHERE id = '20260528_212640_6b86b2';
        UPDATE sessions SET parent_session_id = '20260528_212640_6b86b2' WHERE id = '20260528_222640_d4735e';
        """,
    ),
    "lineage/placeholder_sessions": Example(
        damage=("placeholder-sessions",),
        sql="""
        INSERT INTO sessions (id, source, started_at, message_count)
        VALUES ('20260529_021320_0badc0', 'unknown', 1780020800, 2);
        INSERT INTO messages (session_id, role, content, timestamp) VALUES
          ('20260529_021320_0badc0', 'user', 'look it up', 1780020801),
          ('20260529_021320_0badc0', 'assistant', 'found', 1780020802);
        INSERT INTO messages (session_id, role, content, timestamp, tool_calls)
        VALUES ('20260528_222640_d4735e', 'assistant', '', 1780020790,
                '[{"id": "call_d", "type": "function", "function": {"name": "delegate_task", "arguments": "{}"}}]');
        INSERT INTO messages (session_id, role, content, timestamp, tool_call_id, tool_name)
        VALUES ('20260528_222640_d4735e', 'tool',
                '{"results": [{"status": "completed", "session_id": "20260529_021320_0badc0"}]}',
                1780020803, 'call_d', 'delegate_task');
        UPDATE sessions SET message_count = message_count + 2, tool_call_count = tool_call_count + 1
         WHERE id = '20260528_222640_d4735e';
        """,
    ),
    "media/altered_images": Example(also=_picture_in_a_backup),
    "media/dangling_image_references": Example(also=_picture_elsewhere),
    "media/unreferenced_images": Example(settings={"hermes_dbtools.damage.media.unreferenced_images.GRACE_SECONDS": 0}),
    "references/missing_system_prompt": Example(also=_older("runtime")),
    "references/orphaned_messages": Example(
        damage=("orphaned-messages=3",),
        sql="""
        INSERT INTO state_meta (key, value)
        SELECT 'gateway.retired_session.v1.' || m.session_id, '{}' FROM messages AS m
         WHERE m.session_id NOT IN (SELECT id FROM sessions) ORDER BY m.session_id DESC LIMIT 1
        """,
    ),
    "values/invalid_json": Example(
        sql="UPDATE sessions SET model_config = substr(model_config, 1, 12) WHERE id = '20260528_232640_4e0740'",
        also=_older("22"),
    ),
}
"""By the path of the runbook, where two findings of its class are not what it is about."""


def furnish(place: Place, path: str) -> Example:
    """Make the home of one runbook, `path` as it lies under runbooks/ without its ending."""
    example = EXAMPLES.get(path, Example())
    usual = (f"{path.rpartition('/')[2].replace('_', '-')}=2",)
    damage = usual if example.damage is None else example.damage
    _make(place, (example.shape,) if example.shape else SHAPES, damage)
    if example.sql:
        connection = apsw.Connection(str(place.folder / "state.db"))
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(example.sql)
        connection.close()
    if example.also is not None:
        example.also(place)
    for file in place.folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, (OLD, OLD))
    return example


def _make(place: Place, shapes: Sequence[str], damage: Sequence[str]) -> None:
    for shape in shapes:
        try:
            make_fixture(place.folder, shape=shape, damage=damage, home=True)
            return
        except UsageError:
            if shape == shapes[-1]:
                raise
