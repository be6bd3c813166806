"""Say whether a released store can use its file: list, read, append, search, delete; it never repairs one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from tests.real.store import Store, StoreError

ADDED = "appendedbythejudge"
"""A word no life holds."""


def listing(store: Store) -> list[str]:
    """Return the ids the release's own list shows, in its order; a compression chain shows as its tip."""
    return [row["id"] for row in store.call("listed")]


def texts(store: Store, session_id: str) -> list[str]:
    """Return the texts of a session's active messages in order; of a multimodal one its joined text parts."""
    return [text_of(row["content"]) for row in store.call("messages", session_id=session_id)]


def text_of(content: Any) -> str:
    """Return the text of one message's content."""
    if isinstance(content, list):
        return " ".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


def assert_clean(store: Store) -> None:
    """The store's own engine finds nothing: pages, foreign keys, and every search index by content."""
    found = store.call("integrity")
    assert found["integrity_check"] == ["ok"]
    assert found["foreign_key_check"] == []
    assert set(found["search"].values()) <= {"ok"}, found["search"]


def assert_keys_are_on(store: Store) -> None:
    """The store enforces foreign keys: an append to a session that is not there fails."""
    with pytest.raises(StoreError) as refused:
        store.call("append", session_id="the-judge-knows-no-such-session", content="refused")
    assert refused.value.kind == "IntegrityError"


def assert_usable(
    store: Store,
    session_id: str,
    expected_texts: Sequence[str],
    listed_before: Collection[str] = (),
    *,
    word: str | None = None,
    listed_as: str | None = None,
    delete: bool = True,
) -> None:
    """The release uses the session as one of its own, and all that was listed before is listed still.

    `word` must be found in the session by search; without it the longest word of the texts is looked for.
    `listed_as` is the id it shows under (its tip, where compression closed it). With `delete` it is deleted
    at the end, and everything else must stay as it was.
    """
    shown = listed_as or session_id
    assert_keys_are_on(store)
    before = listing(store)
    assert shown in before
    assert set(listed_before) <= set(before)
    assert texts(store, session_id) == list(expected_texts)
    assert_found(store, session_id, word or _longest_word(expected_texts))
    assert_appends(store, session_id)
    assert_clean(store)
    if delete:
        assert_deletes(store, session_id, set(before) - {shown})
        assert_clean(store)


def assert_appends(store: Store, session_id: str) -> None:
    """An append works, is the last message read, and is found by search."""
    row_id = store.call("append", session_id=session_id, content=f"a text {ADDED} at the end")
    last = store.call("messages", session_id=session_id)[-1]
    assert (last["id"], text_of(last["content"])) == (row_id, f"a text {ADDED} at the end")
    assert_found(store, session_id, ADDED)


def assert_found(store: Store, session_id: str, word: str) -> None:
    """Search finds the word in the session."""
    assert session_id in {row["session_id"] for row in store.call("search", query=word)}


def assert_deletes(store: Store, session_id: str, others: Collection[str]) -> None:
    """The release deletes the session with its messages; the other listed sessions stay listed.

    Sub-agents of the session go with it where the release says so, so `others` is what the list showed.
    """
    assert store.call("delete", session_id=session_id)
    assert store.rows("SELECT id FROM messages WHERE session_id = ?", session_id) == []
    after = listing(store)
    assert session_id not in after
    assert set(others) <= set(after)
    assert session_id not in {row["session_id"] for row in store.call("search", query=ADDED)}


def _longest_word(lines: Sequence[str]) -> str:
    words = [word for line in lines for word in line.split() if word.isalnum()]
    return max(words, key=len)
