"""Write one life into one store: ids by role, times in days before now, and notes of what came back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tests.real.lineage_verbs import MARKED_BRANCHES, MARKED_DELEGATES
from tests.real.store import Store

DAY = 86400.0
TICK = 0.5
"""Seconds the store's clock moves at each look while a life is written."""


@dataclass
class Life:
    """What a life left in a store: ids by role, roles deleted again, and answers worth keeping."""

    release: str
    prefix: str
    ids: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    notes: dict[str, Any] = field(default_factory=dict)

    def kept(self) -> dict[str, str]:
        """Return the ids by role of the sessions that are still there."""
        return {role: session_id for role, session_id in self.ids.items() if role not in self.gone}

    @staticmethod
    def word(role: str) -> str:
        """Return a word that only the messages of that role's session (and copies of them) hold."""
        return "word" + "".join(character for character in role if character.isalnum())


class Book:
    """A store being written to, and the life that comes of it."""

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.release = store.release
        self.prefix = prefix
        self.life = Life(store.release, prefix)
        self.now = time.time()
        version = tuple(int(part) for part in store.release.split("."))
        self.marks_branches = version >= MARKED_BRANCHES
        self.marks_delegates = version >= MARKED_DELEGATES
        self.live_branch = "tui" if self.marks_branches else "cli"
        self._methods = frozenset(store.call("ping")["methods"])

    def id(self, role: str) -> str:
        """Return the session id of a role, the same in every run."""
        return self.life.ids.setdefault(role, f"{self.prefix}{role}")

    def can(self, method: str) -> bool:
        """Tell whether the release has a public method."""
        return method in self._methods

    def call(self, verb: str, **args: Any) -> Any:
        """Send one request to the store."""
        return self.store.call(verb, **args)

    def go_to(self, days_ago: float) -> None:
        """Set the store's clock to so many days before the life was begun; today it is the real one."""
        if days_ago:
            self.call("clock", at=self.now - days_ago * DAY, step=TICK)
        else:
            self.call("clock")

    def chat(
        self,
        role: str,
        *,
        source: str = "cli",
        turns: int = 2,
        end: str | None = None,
        title: str | None = None,
        **more: Any,
    ) -> str:
        """Create a session of that role with turns of a user and an assistant; `end` is its end reason."""
        named = f"{title} {self.prefix}".strip() if title else None
        session_id = self.id(role)
        self.call("create", session_id=session_id, source=source, title=named, model="small-model", **more)
        for turn in range(turns):
            self.say(role, f"{self.life.word(role)} question {turn}")
            self.say(role, f"answer {turn} about {self.life.word(role)}", role="assistant")
        if end is not None:
            self.call("end", session_id=session_id, end_reason=end)
        return session_id

    def say(self, role_of_session: str, text: str, role: str = "user") -> int:
        """Append one text message; returns its id."""
        return int(self.call("append", session_id=self.id(role_of_session), role=role, content=text))

    def user_row(self, role: str, place: int) -> int:
        """Return the id of an active user row of a session, by its place among them."""
        rows = self.call("messages", session_id=self.id(role))
        return int([row["id"] for row in rows if row["role"] == "user"][place])

    def flag(self, method: str, role: str, **value: bool) -> None:
        """Set one of a session's flags by the store's method for it."""
        self.call("call", method=method, arguments={"session_id": self.id(role), **value})

    def measure(self, role: str, **figures: Any) -> None:
        """Account tokens to a session, as one call of the main loop."""
        route = {"model": "small-model", "billing_provider": "a-provider", "api_call_count": 1}
        self.call("usage", session_id=self.id(role), **route, **figures)

    def keep_books(self, role: str, thread: str) -> None:
        """Give a session a route, a topic, a goal and usage, where the release keeps them."""
        session_id = self.id(role)
        key = f"agent:main:telegram:dm:{self.prefix}{thread}"
        if self.can("record_gateway_session_peer"):
            peer = {
                "source": "telegram",
                "user_id": "7",
                "session_key": key,
                "chat_id": thread,
                "chat_type": "dm",
            }
            arguments = {"session_id": session_id, **peer}
            self.call("call", method="record_gateway_session_peer", arguments=arguments)
        if self.can("save_gateway_routing_entry"):
            self.call("route", session_key=key, session_id=session_id)
        if self.can("bind_telegram_topic"):
            topic = f"{self.prefix}{thread}"
            self.call("bind", session_id=session_id, chat_id="70", thread_id=topic, session_key=key)
        self.call("goal", session_id=session_id)
        self.measure(role, input_tokens=120, output_tokens=12)

    def note(self, name: str, answer: Any) -> None:
        """Keep an answer of the store with the life."""
        self.life.notes[name] = answer

    def forget(self, *roles: str) -> None:
        """Say that these roles' sessions are gone from the store, or will be when the life is over."""
        self.life.gone.update(roles)
