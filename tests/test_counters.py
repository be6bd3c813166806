"""Counters: what the released stores make is never accused, what no store makes is found and set right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.damage.counters.session_counter_drift import DAMAGE
from tests.looking import findings, mend
from tests.real.lives import KINDS, copy_of
from tests.real.store import Store
from tests.real.wheels import RELEASES
from tests.shapes.make import execute, fill, make


class Story:
    """One session of a released store that lives through a list of calls."""

    def __init__(self, store: Store, session_id: str, methods: set[str]) -> None:
        self.store = store
        self.session_id = session_id
        self.methods = methods
        store.call("create", session_id=session_id)

    def can(self, name: str) -> bool:
        """Whether the release knows the call that this word of a story needs."""
        needs = {
            "rewind": "rewind_to_message",
            "restore": "restore_rewound",
            "compact": "archive_and_compact",
            "replace-active": "archive_and_compact",
            "drop": "publish_compression_child",
        }
        return needs.get(name, "append_message") in self.methods

    def live(self, word: str) -> None:
        """Make one call."""
        getattr(self, word.replace("-", "_"))()

    def say(self) -> None:
        """A question and an answer that calls two tools."""
        self._call("append", role="user", content="question")
        count = len(self._rows())
        self._call("tool_turn", call_ids=[f"{self.session_id}-{count}-a", f"{self.session_id}-{count}-b"])

    def rewind(self) -> None:
        """Back to the newest question."""
        self._call("rewind", message_id=self._questions()[-1])

    def rewind_whole(self) -> None:
        """Back to the first question."""
        self._call("rewind", message_id=self._questions()[0])

    def restore(self) -> None:
        """Every inactive row active again."""
        self._call("restore", message_id=1)

    def compact(self) -> None:
        """Compress in place, two rows stay."""
        self._call("compress", keep=2)

    def replace(self, **how: Any) -> None:
        """Write the first half of the conversation anew."""
        rows = self._call("conversation")
        self._call("replace", messages=rows[: len(rows) // 2], **how)

    def replace_active(self) -> None:
        """Write the first half of the live conversation anew, leave what is set aside."""
        self.replace(active_only=True)

    def drop(self) -> None:
        """Write the first half anew and set the old rows aside."""
        self.replace(archive_dropped=True)

    def clear(self) -> None:
        """Remove every message."""
        self._call("clear")

    def _call(self, verb: str, **arguments: Any) -> Any:
        return self.store.call(verb, session_id=self.session_id, **arguments)

    def _rows(self) -> list[dict[str, Any]]:
        return self.store.rows("SELECT * FROM messages WHERE session_id = ? ORDER BY id", self.session_id)

    def _questions(self) -> list[int]:
        return [row["id"] for row in self._rows() if row["role"] == "user" and row.get("active", 1)]


STORIES = (
    ("say", "say"),
    ("say", "clear"),
    ("say", "clear", "say"),
    ("say", "say", "replace", "say"),
    ("say", "say", "rewind", "say"),
    ("say", "say", "rewind", "say", "rewind", "rewind"),
    ("say", "say", "rewind-whole"),
    ("say", "say", "rewind", "restore", "say"),
    ("say", "say", "rewind", "replace-active", "say"),
    ("say", "say", "rewind", "replace"),
    ("say", "say", "compact", "say"),
    ("say", "say", "compact", "say", "compact", "compact"),
    ("say", "say", "compact", "rewind", "say"),
    ("say", "say", "compact", "restore", "say"),
    ("say", "say", "rewind", "compact", "say"),
    ("say", "say", "rewind", "compact", "restore"),
    ("say", "say", "compact", "replace-active", "say"),
    ("say", "say", "drop", "say"),
    ("say", "say", "drop", "drop", "rewind-whole"),
)


@pytest.mark.parametrize("release", RELEASES)
def test_no_call_of_a_released_store_is_drift(tmp_path: Path, release: str) -> None:
    path = tmp_path / "state.db"
    lived = 0
    with Store(path, release) as store:
        methods = set(store.call("ping")["methods"])
        for number, words in enumerate(STORIES):
            story = Story(store, f"s{number}", methods)
            if all(story.can(word.replace("-whole", "")) for word in words):
                lived += 1
                for word in words:
                    story.live(word)
    assert lived >= 4
    assert findings(DAMAGE, path) == []
    assert findings(DAMAGE, path, trust_indexes=False) == []


@pytest.mark.parametrize("kind", KINDS)
def test_busy_lives_and_upgrades_have_no_drift(tmp_path: Path, kind: str) -> None:
    assert findings(DAMAGE, copy_of(kind, tmp_path).path) == []


def test_unreadable_call_list_leaves_the_calls_unjudged(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    execute(path, "UPDATE messages SET tool_calls = '[broken' WHERE id = 10")
    execute(
        path, "UPDATE sessions SET tool_call_count = 50, message_count = 50 WHERE id = ?", (ids.plain[2],)
    )
    (found,) = findings(DAMAGE, path)
    assert [statement.block for statement in found.remedies[0].step.statements] == ["repair-messages"]  # type: ignore[union-attr]
    assert "active_tool_calls" not in found.evidence


def test_only_the_wrong_column_is_written(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    execute(path, "UPDATE sessions SET tool_call_count = 50 WHERE id = ?", (ids.plain[2],))
    (found,) = findings(DAMAGE, path)
    assert "message_count" not in found.message
    assert mend(DAMAGE, path, "repair") == 1
    assert findings(DAMAGE, path) == []


def test_file_without_a_count_of_rewinds_is_judged(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "14")
    ids = fill(path)
    execute(path, "ALTER TABLE sessions DROP COLUMN rewind_count")
    assert findings(DAMAGE, path) == []
    execute(path, "UPDATE sessions SET message_count = 9 WHERE id = ?", (ids.plain[2],))
    assert [found.key for found in findings(DAMAGE, path)] == [ids.plain[2]]


def test_counter_text_that_is_not_utf8_is_named_by_its_type_only(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    execute(path, "UPDATE sessions SET message_count = CAST(x'ff41' AS TEXT) WHERE id = ?", (ids.plain[2],))
    (found,) = findings(DAMAGE, path)
    assert found.evidence["message_count"] == "text"
    assert mend(DAMAGE, path, "repair") == 1
    assert findings(DAMAGE, path) == []
