"""Render the list of sessions and one session as text and JSON; computes nothing and opens nothing.

Only here are titles printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..columns import columns
from ..documents import plain
from ..shown import call, one_line
from ..sizes import counted, moment_text, short, size_text

if TYPE_CHECKING:
    from ..sessions.export import Exported
    from ..sessions.listing import Listed
    from ..sessions.rebuild import Prepared
    from ..sessions.showing import Member, Shown

FORMAT_VERSION = 1
MOST = 20
"""Lines of one kind in the text of one session; JSON has them all."""


def list_text(sessions: Sequence[Listed], total: int) -> str:
    """The table of sessions; `total` is how many there are without a limit."""
    rows = [
        [
            short(_id(one.id)),
            one_line(one.source),
            one.kind,
            short(one_line(one.title), 32),
            "" if one.started_at is None else moment_text(one.started_at),
            f"{one.messages:,}",
            _state(one),
            one.hidden,
        ]
        for one in sessions
    ]
    heads = ["id", "source", "kind", "title", "started", "messages", "state", "why hidden"]
    lines = [columns(rows, heads)] if rows else []
    lines.append(
        f"{counted(total, 'session')}" + (f", {len(rows):,} shown: --limit 0" if len(rows) < total else "")
    )
    return "\n".join(lines) + "\n"


def list_document(sessions: Sequence[Listed], total: int) -> dict[str, Any]:
    """The same as JSON, ids whole."""
    return {
        "format": "hermes-dbtools/sessions",
        "format_version": FORMAT_VERSION,
        "total": total,
        "sessions": [_session(one) for one in sessions],
    }


def show_text(shown: Shown) -> str:
    """Everything about one session, most important first."""
    one = shown.session
    lines = [f"{_id(one.id)} · {one_line(one.source)} · {one.kind} · {_sessions_state(one)}"]
    lines += [f"title    {one_line(one.title)}"] if one.title else []
    lines.append(
        f"started  {_moment(one.started_at)}" + (f"   ended {_moment(one.ended_at)}" if one.ended_at else "")
    )
    lines.append(f"listed   {_listed(one)}")
    lines += ["", "lineage", *(_branch(member, one.id) for member in shown.family)]
    rows = [[share.table, share.column, f"{share.rows:,}", size_text(share.bytes)] for share in shown.tables]
    rows += [["state_meta", name, "1", size_text(size)] for name, size in shown.settings]
    heads = ["table", "by", "rows", "bytes"]
    lines += ["", columns(rows, heads, indent="  ")]
    if shown.images:
        lines += ["", f"files named: {len(shown.images):,}"]
        lines += _some([f"  {i.state:8} {i.form}: {one_line(i.path)}" for i in shown.images])
    if shown.receipts:
        lines += ["", "receipts", *(f"  {r.id} {r.status}" for r in shown.receipts)]
    lines += ["", *_findings(shown)]
    return "\n".join(lines) + "\n"


def show_document(shown: Shown) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "format": "hermes-dbtools/session",
        "format_version": FORMAT_VERSION,
        "session": _session(shown.session),
        "lineage": [
            {
                **_session(member.listed),
                "depth": member.place.depth,
                "markers": dict(member.place.relative.markers),
                "loop": member.place.loop,
            }
            for member in shown.family
        ],
        "tables": [
            {"table": s.table, "column": s.column, "rows": s.rows, "bytes": s.bytes} for s in shown.tables
        ],
        "settings": [{"key": name, "bytes": size} for name, size in shown.settings],
        "images": [
            {"path": i.path, "form": i.form, "state": i.state, "times": i.times} for i in shown.images
        ],
        "receipts": [{"id": r.id, "status": r.status, "created_at": r.created_at} for r in shown.receipts],
        "findings": [
            {
                "code": f.code,
                "slug": f.slug,
                "severity": f.severity.word,
                "key": f.key,
                "message": f.message,
                "evidence": plain(f.evidence),
                "next": f.next,
            }
            for f in shown.findings
        ],
        "could_not_scan": shown.scan_error,
    }


def rebuild_text(prepared: Prepared) -> str:
    """The dry run of a rebuild."""
    (step,) = prepared.plan.steps
    lines = ["dry run: nothing is written", "", f"  {one_line(step.title)}"]
    for file in prepared.files:
        notes = [f"{file.messages:,} messages", size_text(file.size)]
        notes += [f"{file.skipped:,} broken entries passed over"] if file.skipped else []
        notes += ["its end is cut off"] if file.cut else []
        lines.append(f"  {one_line(file.name)}: {', '.join(notes)}")
    lines += [f"  not used: {one_line(name)}" for name in prepared.ignored]
    return "\n".join(lines) + "\n"


def _session(one: Listed) -> dict[str, Any]:
    return {
        "id": plain(one.id),
        "source": one.source,
        "kind": one.kind,
        "parent": plain(one.parent),
        "title": one.title,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "messages": one.messages,
        "state": one.state,
        "reason": one.reason,
        "holder": one.holder,
        "expires_at": one.expires_at,
        "hidden": one.hidden,
        "shown_as": plain(one.shown_as),
    }


def _branch(member: Member, session_id: object) -> str:
    one = member.listed
    mark = "*" if one.id == session_id and not member.place.loop else " "
    told = [one.kind, one.state + (f" ({one_line(one.reason)})" if one.reason else "")]
    markers: Mapping[str, str] = dict(member.place.relative.markers)
    told += [f"{name}={one_line(value)}" for name, value in markers.items()]
    told += [f"{one.messages:,} messages"]
    if member.place.loop:
        told = ["and so on: a loop"]
    return f" {mark} {'  ' * member.place.depth}{_id(one.id)}  {' · '.join(told)}"


def _findings(shown: Shown) -> list[str]:
    if shown.scan_error:
        return [f"findings are not known: {one_line(shown.scan_error)}"]
    if not shown.findings:
        return ["no finding about it"]
    told = [f"  {f.severity.word:8} {f.code} {f.slug}: {one_line(f.message)}" for f in shown.findings]
    return ["findings about it", *_some(told)]


def _state(one: Listed) -> str:
    return one.state + (f": {one_line(one.reason)}" if one.reason else "")


def _sessions_state(one: Listed) -> str:
    holder = f", {one_line(one.holder)}" if one.holder else ""
    until = f", until {moment_text(one.expires_at)}" if one.expires_at and one.expires_at < 2**40 else ""
    return f"{_state(one)}{holder}{until}"


def _listed(one: Listed) -> str:
    if one.hidden:
        return f"no: {one.hidden}"
    return "yes" if one.shown_as in (one.id, None) else f"yes, as {_id(one.shown_as)}"


def _id(value: object) -> str:
    return f"hex:{value.hex()}" if isinstance(value, bytes) else one_line(str(value))


def _moment(value: float | None) -> str:
    return "unknown" if value is None else moment_text(value)


def _some(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST
    return [*lines[:MOST], f"  … and {more:,} more"] if more > 0 else list(lines)


def rebuild_next(prepared: Prepared, options: str) -> list[str]:
    """The command that does what was shown."""
    return [call("hermes-dbtools sessions rebuild", f"{options} --apply", [prepared.session_id])]


def exported_text(done: Exported) -> str:
    """What an export wrote."""
    return (
        f"{one_line(done.path)}: {counted(len(done.sessions), 'session')}, {done.messages:,} "
        f"message{'' if done.messages == 1 else 's'}, {size_text(done.size)}\n"
    )
