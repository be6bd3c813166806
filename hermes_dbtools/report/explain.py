"""Render the answer of `explain` as text, for a person at three in the morning; computes nothing and opens nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..shown import one_line
from ..sizes import counted, moment_text

if TYPE_CHECKING:
    from ..explain.document import Command, Explanation, Failing, Kind, Log, Session

MOST = 3
"""Lines of one kind in the text; JSON has them all."""

MOST_SESSIONS = 5
"""Sessions of a log that are told one by one, those that something is wrong with first."""


def text(answer: Explanation) -> str:
    """What is wrong, why, who holds it, and what to do next."""
    lines = [_headline(answer)]
    if answer.log is not None:
        lines += _log(answer.log)
    if answer.log is not None or not answer.sessions:
        lines += ["", one_line(answer.verdict)]
    ordered = sorted(answer.sessions, key=lambda one: (not one.failing, not one.findings))
    for session in ordered[:MOST_SESSIONS]:
        lines += ["", *_session(session)]
    if (more := len(ordered) - MOST_SESSIONS) > 0:
        lines += ["", f"… and {counted(more, 'more session')}: --format json"]
    lines += _totals(answer)
    lines += [f"could not look at {one_line(one)}" for one in answer.could_not_look[:MOST]]
    return "\n".join([*lines, "", *_next(answer.next)]) + "\n"


def _headline(answer: Explanation) -> str:
    holders = ", ".join(f"{one_line(one.name)} (pid {one.pid})" for one in answer.holders)
    parts = [one_line(PurePath(answer.database).name), f"held by {holders}" if holders else "held by nobody"]
    if answer.all_live:
        parts.append(one_line(answer.all_live))
    return " · ".join(parts)


def _log(log: Log) -> list[str]:
    count = sum(kind.count for kind in log.kinds)
    lines = [f"{one_line(log.name)}: {counted(count, 'line')} about the store"]
    for kind in log.kinds:
        lines.append(f"  {kind.kind}: {kind.means}")
        lines.append(f"    {_when(kind)}")
        if kind.follows:
            lines.append(
                f"    {kind.follows} came within the minute before: look at that first, this may only follow"
            )
        if not kind.found:
            lines.append(f"    now: {kind.calm}")
    if log.more_sessions:
        lines.append(f"  {counted(log.more_sessions, 'line')} about further sessions")
    return lines


def _when(kind: Kind) -> str:
    times = f"{kind.first} to {kind.last}" if kind.first != kind.last else kind.first
    parts = [counted(kind.count, "line"), times or "without a time", *kind.statements]
    if kind.sessions:
        parts.append(counted(len(kind.sessions), "session"))
    return " · ".join(parts)


def _session(session: Session) -> list[str]:
    state = session.state + (f" ({one_line(session.ended)})" if session.ended else "")
    lines = [f"{one_line(session.id)} · {state}", f"  why     {one_line(session.verdict)}"]
    lines += _some("fails", [_failing(one) for one in session.failing])
    lines += _some("delete", [_failing(one) for one in session.delete_blocked_by])
    rows = [f"{one.table} {one.rows:,}" for one in session.named_by]
    lines += [f"  rows    {one_line(', '.join(rows))}"] if rows else []
    lines += [f"  held    {_held(session)}"] if session.live is not None else []
    lines += [f"  listed  no: {one_line(session.hidden)}"] if session.hidden else []
    if session.shown_as not in ("", session.id):
        lines.append(f"  listed  as {one_line(session.shown_as)}")
    also = [f"in profile {one}" for one in session.profiles] + [
        f"transcript {one}" for one in session.transcripts
    ]
    lines += [f"  also    {one_line(', '.join(also))}"] if also else []
    told = [f"{one.severity} {one.code} {one.slug}: {one_line(one.message)}" for one in session.findings]
    return lines + _some("found", list(dict.fromkeys(told)))


def _failing(one: Failing) -> str:
    return one_line(f"{one.statement}: {one.key}: {one.because}")


def _held(session: Session) -> str:
    assert session.live is not None
    live = session.live
    holder = f", {live.holder}" if live.holder else ""
    until = f", until {moment_text(live.expires_at)}" if live.expires_at and live.expires_at < 2**40 else ""
    return one_line(f"{live.reason}{holder}{until}")


def _totals(answer: Explanation) -> list[str]:
    """What was found in the file, where the question is about the file."""
    if answer.log is None and answer.sessions:
        return []
    shown = Counter(one.slug for session in answer.sessions[:MOST_SESSIONS] for one in session.findings)
    told = [
        f"{one.severity} {one.code} {one.slug}: {one.count:,} in all"
        for one in answer.totals
        if one.count > shown[one.slug]
    ]
    return ["", *_some("file", told)] if told else []


def _next(commands: Sequence[Command]) -> list[str]:
    width = max((len(one.command) for one in commands), default=0)
    return [
        f"{'next:' if place == 0 else '':7}{one.command:{width}}   {one.does}"
        for place, one in enumerate(commands)
    ]


def _some(label: str, told: Iterable[str]) -> list[str]:
    lines = list(told)
    more = len(lines) - MOST
    shown = [f"  {label if place == 0 else '':7} {line}" for place, line in enumerate(lines[:MOST])]
    return [*shown, f"          … and {more:,} more"] if more > 0 else shown
