"""Read what a store keeps of deleted sessions and sort it by what is wrong; decides no answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ... import retirement
from ...model import Value
from .._declare import Damage, ScanContext, text, whole
from ..references._missing import adopted_ids


@dataclass(slots=True)
class HeldText:
    """Keys of one deleted session under which something that its user wrote is still kept."""

    results: list[str] = field(default_factory=list)
    admissions: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Terminal:
    """Everything that is wrong with the terminal keys.

    `lost` are admissions that no identity leads to: (admission, session, key of the identity, whether that key is
    there). `dangling` are digests of identities with the admission that is gone, None where it cannot be read.
    """

    texts: dict[Value, HeldText] = field(default_factory=lambda: defaultdict(HeldText))
    unreadable: list[Value] = field(default_factory=list)
    lost: list[tuple[str, str, str, bool]] = field(default_factory=list)
    dangling: list[tuple[str, Value]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Admitted:
    """One admission of a request that was admitted more than once."""

    id: Value
    session_id: Value
    deleted: bool


def terminal(damage: Damage, context: ScanContext) -> Terminal:
    """What is wrong with terminal admissions, identities, workers, and receipts of changes."""
    found = Terminal()
    identities = {
        text(digest): (text(admission), bool(there))
        for digest, admission, there in damage.rows(context, "identities")
    }
    claimed = _admissions(damage, context, found, identities)
    found.dangling = [
        (str(digest), admission)
        for digest, (admission, there) in identities.items()
        if not there and isinstance(digest, str) and digest not in claimed
    ]
    _workers(damage, context, found)
    _changes(damage, context, found)
    return found


def repeated(damage: Damage, context: ScanContext) -> Iterator[list[Admitted]]:
    """The admissions of each request of the Responses API that was admitted more than once."""
    groups: dict[int, list[Admitted]] = defaultdict(list)
    for number, admission, session_id, deleted in damage.rows(context, "repeated"):
        groups[whole(number)].append(Admitted(text(admission), text(session_id), bool(deleted)))
    yield from groups.values()


def _admissions(
    damage: Damage, context: ScanContext, found: Terminal, identities: dict[Value, tuple[Value, bool]]
) -> set[str]:
    """Sort the terminal admissions; returns the digests that admissions claim for their identity."""
    claimed: set[str] = set()
    for value, readable, *words, holds_input, result in damage.rows(context, "admissions"):
        admission = text(value)
        session_id, principal, request = map(text, words)
        if not readable:
            found.unreadable.append(admission)
            continue
        if isinstance(admission, str) and isinstance(session_id, str) and session_id:
            if holds_input:
                found.texts[session_id].admissions.append(retirement.TERMINAL_ADMISSION + admission)
            if result == 1:
                found.texts[session_id].results.append(retirement.RESULT + admission)
            if isinstance(principal, str) and isinstance(request, str):
                key = retirement.identity_key(principal, session_id, request)
                digest = key.removeprefix(retirement.TERMINAL_IDENTITY)
                claimed.add(digest)
                leads_to, there = identities.get(digest, (None, False))
                if leads_to != admission and not there:
                    found.lost.append((admission, session_id, key, digest in identities))
    return claimed


def _workers(damage: Damage, context: ScanContext, found: Terminal) -> None:
    for value, owner, digest in damage.rows(context, "receipts"):
        execution, session_id = text(value), text(owner)
        if not isinstance(execution, str) or not isinstance(session_id, str):
            continue
        key = retirement.TERMINAL_WORKER + execution
        held = (
            found.texts[session_id].workers if text(digest) != retirement.closing_digest(session_id) else None
        )
        if held is not None and key not in held[-1:]:
            held.append(key)


def _changes(damage: Damage, context: ScanContext, found: Terminal) -> None:
    rows = [
        (text(digest), text(session_id)) for digest, _place, session_id in damage.rows(context, "changes")
    ]
    adopted = adopted_ids(context, (session_id for _digest, session_id in rows))
    owners: dict[str, Value] = {}
    for digest, session_id in rows:
        if session_id not in adopted and isinstance(digest, str):
            owners.setdefault(retirement.MUTATION + digest, session_id)
    for key, owner in owners.items():
        found.texts[owner].changes.append(key)
