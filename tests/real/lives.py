"""Make healthy files of every release: busy lives, upgrades in a chain or one jump, and copies of both."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.real.book import Book, Life
from tests.real.chapters import CHAPTERS
from tests.real.store import Store
from tests.real.wheels import RELEASES, SYNC_RELEASES

CHAIN = SYNC_RELEASES
"""An upgrade through every release in turn."""
JUMP = (SYNC_RELEASES[0], SYNC_RELEASES[-1])
"""An upgrade from the oldest to the newest in one jump."""
ASYNC_CHAIN = RELEASES
"""An upgrade on to the asynchronous release, whose file then keeps its old search index."""
UPGRADES = {"chain": CHAIN, "jump": JUMP, "async-chain": ASYNC_CHAIN}


@dataclass(frozen=True)
class Healthy:
    """A healthy file, the release that made or last used it, and the lives it holds, oldest first."""

    path: Path
    release: str
    lives: tuple[Life, ...]

    @property
    def life(self) -> Life:
        """The life written last."""
        return self.lives[-1]


def busy_life(store: Store, prefix: str = "") -> Life:
    """Live through every chapter in a started store; ids are `prefix` and the role, the same in every run."""
    book = Book(store, prefix)
    for chapter in CHAPTERS:
        chapter(book)
    return book.life


def hidden_life(store: Store, prefix: str = "") -> Life:
    """Make the branches a release hides from its own lists: unmarked ones whose root is live or reopened.

    Only the releases before 0.16 leave `live-branch` unmarked; `hidden-fork` is unmarked in all.
    """
    book = Book(store, prefix)
    book.chat("hiding-root", title="Hides its fork")
    book.call("fork", parent=book.id("hiding-root"), child=book.id("hidden-fork"))
    book.call("reopen", session_id=book.id("hiding-root"))
    book.chat("live-root", title="Lives on")
    book.call("branch", parent=book.id("live-root"), child=book.id("live-branch"), form="tui")
    book.say("live-root", "the root goes on")
    return book.life


def go_on(store: Store, life: Life) -> None:
    """Go on with the sessions of an older release's life: append, branch, compress, rewind, delete."""
    book = Book(store, life.prefix)
    book.life = life
    book.say("current", "after the upgrade")
    book.call("branch", parent=life.ids["tools"], child=book.id("branch-after-upgrade"))
    book.call("compress", session_id=life.ids["rotated-3"], child=book.id("rotated-4"))
    if book.can("rewind_to_message"):
        book.call("rewind", session_id=life.ids["current"], message_id=book.user_row("current", -1))
    if book.can("archive_and_compact"):
        book.call("compress", session_id=life.ids["chat"])
    book.call("delete", session_id=life.ids["reopened"])
    book.call("delete_empty")
    book.forget("reopened", "empty-ended")


def upgraded(path: Path, chain: tuple[str, ...]) -> Healthy:
    """Make a file with the first release of `chain` and open and use it with each later one in turn."""
    lives: list[Life] = []
    for number, release in enumerate(chain):
        with Store(path, release) as store:
            if lives:
                go_on(store, lives[-1])
            lives.append(busy_life(store, f"r{number}-"))
    return Healthy(path, chain[-1], tuple(lives))


def fresh(path: Path, release: str) -> Healthy:
    """Make a file of one release with one busy life."""
    with Store(path, release) as store:
        life = busy_life(store)
    return Healthy(path, release, (life,))


def copy_of(kind: str, folder: Path) -> Healthy:
    """Copy a healthy file into `folder` as its state.db: `kind` is a release or a name in UPGRADES.

    The original is made once in a process and is never opened again, so a copy costs milliseconds.
    """
    original = _made(kind)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "state.db"
    shutil.copyfile(original.path, path)
    return Healthy(path, original.release, original.lives)


KINDS = (*RELEASES, *UPGRADES)
"""Every kind copy_of knows."""


@cache
def _made(kind: str) -> Healthy:
    path = _folder() / kind / "state.db"
    return upgraded(path, UPGRADES[kind]) if kind in UPGRADES else fresh(path, kind)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hermes-dbtools-lives-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
