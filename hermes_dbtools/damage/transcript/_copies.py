"""Find exact copies among the messages of one session; holds digests, never a text."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...model import Value
from .._declare import Damage, ScanContext, whole
from ._rows import CHUNK, chunks


@dataclass(slots=True)
class Copies:
    """The copies of one session in one state; the first of equal messages is none. `group` tells equal ones."""

    group: dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    sizes: dict[bytes, int] = field(default_factory=dict)

    def add(self, message_id: int, digest: bytes, size: int) -> None:
        """A message is looked at, in order of id."""
        seen = self.sizes.get(digest)
        self.sizes[digest] = 1 if seen is None else seen + 1
        if seen is not None:
            self.group[message_id] = digest
            self.size += size

    @property
    def count(self) -> int:
        """How many copies there are."""
        return len(self.group)

    @property
    def originals(self) -> int:
        """How many messages they are copies of."""
        return sum(seen > 1 for seen in self.sizes.values())

    @property
    def most(self) -> int:
        """How often the most frequent message is there, the first one included."""
        return max(self.sizes.values())

    @property
    def first(self) -> int:
        """The smallest id of a copy."""
        return min(self.group)

    @property
    def last(self) -> int:
        """The largest id of a copy."""
        return max(self.group)


def copies(damage: Damage, context: ScanContext, session: Value) -> Mapping[bool, Copies]:
    """The copies among the archived messages (True) and among the active ones (False); a state without any is left out."""
    found = {True: Copies(), False: Copies()}
    suspects = {True: array("q"), False: array("q")}
    for message_id, archived in damage.rows(context, "twins", {"session": session}):
        suspects[bool(archived)].append(whole(message_id))
    for archived, ids in suspects.items():
        for wanted in chunks(array("q", sorted(ids))):
            for message_id, same, content, calls in damage.rows(context, "texts", {"ids": wanted}):
                digest = hashlib.blake2b(digest_size=16)
                for part in (same, content, calls):
                    encoded = part if isinstance(part, bytes) else b""
                    digest.update(b"%d:" % len(encoded))
                    digest.update(encoded)
                size = sum(len(part) for part in (content, calls) if isinstance(part, bytes))
                found[archived].add(whole(message_id), digest.digest(), size)
    return {archived: group for archived, group in found.items() if group.count}


def by_design(damage: Damage, context: ScanContext, session: Value, group: Copies) -> bool:
    """Whether all copies are such as compressions leave: once each, in runs beside a summary."""
    beside: list[tuple[int, int]] = []
    for run, before, after in _runs(damage, context, session, group):
        if len({group.group[message_id] for message_id in run}) < len(run):
            return False
        beside.append((before, after))
    neighbours = sorted({message_id for pair in beside for message_id in pair if message_id})
    summaries = set(_summaries(damage, context, neighbours))
    return all(before in summaries or after in summaries for before, after in beside)


def _runs(
    damage: Damage, context: ScanContext, session: Value, group: Copies
) -> Iterator[tuple[list[int], int, int]]:
    """Each run of copies with nothing else between, and the messages before and after it (0: none)."""
    run: list[int] = []
    before = 0
    for (found,) in damage.rows(context, "order", {"session": session}):
        message_id = whole(found)
        if message_id in group.group:
            run.append(message_id)
            continue
        if run:
            yield run, before, message_id
            run = []
        before = message_id
    if run:
        yield run, before, 0


def _summaries(damage: Damage, context: ScanContext, ids: list[int]) -> Iterable[int]:
    for first in range(0, len(ids), CHUNK):
        wanted = json.dumps(ids[first : first + CHUNK])
        for (message_id,) in damage.rows(context, "summaries", {"ids": wanted}):
            yield whole(message_id)
