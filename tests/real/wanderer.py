"""Drive a released store at random, as agents, gateways and users of one drive it; only by its public calls, never beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.real.book import DAY, TICK
from tests.real.lineage_verbs import MARKED_BRANCHES
from tests.real.store import Store, StoreError

Numbers = tuple[int, int, int]
Deed = tuple[str, Numbers]
"""What is done, and three numbers that choose with whom and how."""

SOURCES = ("cli", "cli", "tui", "telegram", "telegram", "discord", "cron", "tool", "api_server", "acp")
RESET = ("cli", "tui", "telegram", "discord")
"""Sources of sessions that a user can reset."""
REASONS = ("cli_close", "tui_shutdown", "session_reset", "agent_close", "cron_complete", "session_switch")
JUMPS = (20.0, 3600.0, DAY, 8 * DAY, 35 * DAY)
"""Seconds between two deeds that a clock may have moved."""


class Wanderer:
    """A started store, the sessions made in it, and a clock that begins `days` before now and only goes on."""

    def __init__(self, store: Store, days: float = 200) -> None:
        self.store = store
        self.ids: list[str] = []
        self.rewound: dict[str, int] = {}
        self.routes: dict[str, str] = {}
        self.unmarked: set[str] = set()
        self.releases = {store.release}
        self.made = 0
        self.at = time.time() - days * DAY
        self.tick()

    def go(self, deeds: Sequence[Deed]) -> None:
        """Do one deed after the other, then bring the clock to the present; what a release refuses is not done."""
        for name, numbers in deeds:
            try:
                DEEDS[name](self, numbers)
            except StoreError as refused:
                if refused.kind not in REFUSALS:
                    raise
        self.store.call("clock")

    def on(self, store: Store) -> Wanderer:
        """Go on in a newer release of the same file."""
        self.store = store
        self.releases.add(store.release)
        self.tick()
        return self

    @property
    def upgraded(self) -> bool:
        """Whether more than one release used the file."""
        return len(self.releases) > 1

    def tick(self, seconds: float = 0.0) -> None:
        """Let the store's clock go on, never past the present."""
        self.at = min(self.at + seconds, time.time() - 60)
        self.store.call("clock", at=self.at, step=TICK / 10)
        self.at += 5

    def new_id(self) -> str:
        """An id that was never used."""
        self.made += 1
        return f"s{self.made:03}"

    def some(self, number: int) -> str:
        """A session that is there; makes one when there is none."""
        there = [one for one in self.ids if self.row(one)]
        if not there:
            return self.begin((number, 0, 0))
        return there[number % len(there)]

    def open(self, number: int) -> str:
        """A session that is open, reopened as a resume does it where it is not."""
        session_id = self.some(number)
        row = self.row(session_id)
        if row["ended_at"] is not None:
            self.call("reopen", session_id=session_id)
        return session_id

    def row(self, session_id: str) -> dict[str, Any]:
        """The session as its store has it, empty where it is gone."""
        return self.call("session", session_id=session_id) or {}

    def call(self, verb: str, **args: Any) -> Any:
        """Send one request to the store."""
        return self.store.call(verb, **args)

    def follow(self, parent: str, child: str) -> None:
        """Let the routes of a session name the one that goes on with its chat, as a gateway does."""
        for session_key in [one for one, target in self.routes.items() if target == parent]:
            self.call("route", session_key=session_key, session_id=child)
            self.routes[session_key] = child

    def begin(self, numbers: Numbers) -> str:
        """A new session, as the surface it begins on makes it."""
        source = SOURCES[numbers[0] % len(SOURCES)]
        session_id = self.new_id()
        more: dict[str, Any] = {"model": "small-model"}
        if source in ("telegram", "discord"):
            more |= {
                "user_id": "7",
                "chat_id": str(numbers[1]),
                "chat_type": "dm",
                "session_key": key(numbers[1]),
            }
        if source == "cli":
            more |= {"cwd": "/srv/project", "system_prompt": f"You are agent {numbers[2] % 3}."}
        self.call("create", session_id=session_id, source=source, **more)
        self.ids.append(session_id)
        return session_id

    def talk(self, numbers: Numbers) -> None:
        """Turns of a user and an agent, some with tool calls and pictures."""
        session_id = self.open(numbers[0])
        for turn in range(1 + numbers[1] % 3):
            self.made += 1
            self.call("append", session_id=session_id, content=f"question {self.made}")
            if (numbers[2] + turn) % 3 == 0:
                calls = [f"call_{self.made}_{number}" for number in range(1 + numbers[1] % 2)]
                self.call("tool_turn", session_id=session_id, call_ids=calls)
            if (numbers[2] + turn) % 7 == 1:
                self.call("image", session_id=session_id, text="a picture")
            self.call("append", session_id=session_id, role="assistant", content=f"answer {self.made}")

    def branch(self, numbers: Numbers) -> None:
        """A branch from a session with messages."""
        child = self.new_id()
        parent, form = self.open(numbers[0]), ("cli", "tui")[numbers[1] % 2]
        self.call("branch", parent=parent, child=child, form=form)
        self.ids.append(child)
        if not marks_branches(self.store.release):
            self.unmarked.add(child)
        self.follow(parent, child)

    def fork(self, numbers: Numbers) -> None:
        """A fork of the API server, which leaves no marker."""
        parent, child = self.open(numbers[0]), self.new_id()
        self.call("fork", parent=parent, child=child)
        self.ids.append(child)
        self.unmarked.add(child)
        self.follow(parent, child)

    def delegate(self, numbers: Numbers) -> None:
        """A sub-agent's run."""
        child = self.new_id()
        self.call("delegate", parent=self.open(numbers[0]), child=child, end=bool(numbers[1] % 4))
        self.ids.append(child)

    def rotate(self, numbers: Numbers) -> None:
        """A compression that goes on in a child."""
        parent, child = self.open(numbers[0]), self.new_id()
        self.call("compress", session_id=parent, child=child, keep=numbers[1] % 4)
        self.ids.append(child)
        self.follow(parent, child)

    def compact(self, numbers: Numbers) -> None:
        """A compression in place."""
        self.call("compress", session_id=self.open(numbers[0]), keep=numbers[1] % 4)

    def rewind(self, numbers: Numbers) -> None:
        """A rewind to a message of the user."""
        session_id = self.open(numbers[0])
        said = [row["id"] for row in self.call("messages", session_id=session_id) if row["role"] == "user"]
        if said:
            target = said[numbers[1] % len(said)]
            self.call("rewind", session_id=session_id, message_id=target)
            self.rewound[session_id] = target

    def restore(self, _numbers: Numbers) -> None:
        """The last rewind taken back, where nothing else happened to the session since."""
        if self.rewound:
            session_id, target = self.rewound.popitem()
            self.call("restore", session_id=session_id, message_id=target)

    def replace(self, numbers: Numbers) -> None:
        """A transcript written anew with its first messages alone."""
        session_id = self.open(numbers[0])
        kept = self.call("conversation", session_id=session_id)
        self.call("replace", session_id=session_id, messages=kept[: 1 + numbers[1] % 4])
        self.rewound.pop(session_id, None)

    def account(self, numbers: Numbers) -> None:
        """Tokens of the main loop, sometimes by an absolute figure, or of a task beside it."""
        figures = {"model": "small-model", "billing_provider": "a-provider"}
        used = {"input_tokens": numbers[1], "output_tokens": numbers[2]}
        session_id = self.some(numbers[0])
        if numbers[2] % 5 == 0:
            self.call(
                "auxiliary_usage", session_id=session_id, task="title_generation", input_tokens=numbers[1]
            )
        else:
            more = {"absolute": True} if numbers[2] % 5 == 1 else {"api_call_count": 1}
            self.call("usage", session_id=session_id, **figures, **used, **more)

    def keep_books(self, numbers: Numbers) -> None:
        """A route, a topic or a goal."""
        session_id = self.open(numbers[0])
        if numbers[1] % 3 == 0:
            self.call("route", session_key=key(numbers[2]), session_id=session_id)
            self.routes[key(numbers[2])] = session_id
        elif numbers[1] % 3 == 1:
            names = {"chat_id": "70", "thread_id": str(numbers[2]), "session_key": key(numbers[2])}
            self.call("bind", session_id=session_id, **names)
        else:
            self.call("goal", session_id=session_id)

    def hold(self, numbers: Numbers) -> None:
        """A lock or a lease of a process that has gone."""
        verb = ("lock", "lease")[numbers[1] % 2]
        self.call(verb, session_id=self.open(numbers[0]), holder="pid=999999:turn=t")

    def handoff(self, numbers: Numbers) -> None:
        """A hand-over as far as it came."""
        outcome = ("pending", "running", "completed", "failed")[numbers[1] % 4]
        self.call("handoff", session_id=self.open(numbers[0]), outcome=outcome)

    def end(self, numbers: Numbers) -> None:
        """The end of a session; a gateway ends the chat of a route with a reset alone."""
        session_id = self.some(numbers[0])
        reason = REASONS[numbers[1] % len(REASONS)]
        routed = session_id in self.routes.values()
        self.call("end", session_id=session_id, end_reason="session_reset" if routed else reason)

    def reopen(self, numbers: Numbers) -> None:
        """A session opened again."""
        self.open(numbers[0])

    def reset(self, numbers: Numbers) -> None:
        """A chat begun anew: the old session ended, the next one under it where the release links them."""
        session_id, child = self.open(numbers[0]), self.new_id()
        row = self.row(session_id)
        if row["source"] not in RESET:
            return
        self.call("end", session_id=session_id, end_reason="session_reset")
        peer = {name: row.get(name) for name in ("user_id", "session_key", "chat_id", "chat_type")}
        parent = {"parent": session_id} if row.get("session_key") else {}
        self.call("create", session_id=child, source=row["source"], **peer, **parent)
        self.ids.append(child)
        self.follow(session_id, child)

    def flag(self, numbers: Numbers) -> None:
        """A title, a shelf, a pin."""
        session_id = self.some(numbers[0])
        if numbers[1] % 2:
            self.call("title", session_id=session_id, title=f"Title {numbers[2] % 20}")
        else:
            self.call("archive", session_id=session_id, archived=bool(numbers[2] % 3))

    def delete(self, numbers: Numbers) -> None:
        """One or several sessions deleted."""
        chosen = {self.some(number) for number in numbers[: 1 + numbers[2] % 3]}
        if len(chosen) == 1:
            self.call("delete", session_id=chosen.pop())
        else:
            self.call("delete_many", session_ids=sorted(chosen))

    def sweep(self, numbers: Numbers) -> None:
        """What a store clears up by itself."""
        verbs = ("prune", "delete_empty", "prune_ghosts", "finalize_compressions")
        verb = verbs[numbers[1] % 4]
        self.call(verb, **({"older_than_days": (30, 90)[numbers[2] % 2]} if verb == "prune" else {}))

    def move(self, numbers: Numbers) -> None:
        """A session exported, deleted and imported."""
        session_id = self.some(numbers[0])
        exported = self.call("export", session_id=session_id)
        self.call("delete", session_id=session_id)
        self.call("import_sessions", sessions=[exported])

    def wait(self, numbers: Numbers) -> None:
        """Nothing for a while, and the store opened again."""
        self.tick(JUMPS[numbers[0] % len(JUMPS)])
        if numbers[1] % 4 == 0:
            self.call("reopen_store")


def marks_branches(release: str) -> bool:
    """Whether a branch of the release has a marker."""
    return tuple(map(int, release.split("."))) >= MARKED_BRANCHES


def key(number: int) -> str:
    """A routing key of one of a few chats."""
    return f"agent:main:telegram:dm:{number % 5}"


REFUSALS = ("Unsupported", "ValueError")
"""What a store raises where it refuses; anything else fails the test."""

DEEDS: dict[str, Callable[[Wanderer, Numbers], Any]] = {
    deed.__name__: deed
    for deed in (
        Wanderer.begin,
        Wanderer.talk,
        Wanderer.branch,
        Wanderer.fork,
        Wanderer.delegate,
        Wanderer.rotate,
        Wanderer.compact,
        Wanderer.rewind,
        Wanderer.restore,
        Wanderer.replace,
        Wanderer.account,
        Wanderer.keep_books,
        Wanderer.hold,
        Wanderer.handoff,
        Wanderer.end,
        Wanderer.reopen,
        Wanderer.reset,
        Wanderer.flag,
        Wanderer.delete,
        Wanderer.sweep,
        Wanderer.move,
        Wanderer.wait,
    )
}
"""Every deed by its name."""
