"""Render a report as Markdown for a job summary: a table for each database, its findings folded away; computes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..report_document import DatabaseDocument, ReportDocument, ResultDocument
from ..shown import one_line
from ..sizes import answers_text, short
from .outcomes import accepted_text, file_text, found_text, summary
from .setting import Setting

SHOWN = 20
"""Findings of one class that are listed: a summary has a limit of one MiB."""

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&@$])")


def render(document: ReportDocument, setting: Setting) -> str:
    """One section for each database, and one for what the baseline does not cover any more."""
    sections = [_section(database, setting) for database in document.databases]
    return "\n".join([*sections, *_baseline(document)])


def _section(database: DatabaseDocument, setting: Setting) -> str:
    lines = [f"### {_text(setting.name(database.path)) or 'no database'}", ""]
    if database.error:
        return "\n".join([*lines, f"could not look: {_text(database.error)}", ""])
    lines += [_text(file_text(database)), ""]
    damaged = sorted((r for r in database.results if r.status == "damaged"), key=_worst_first)
    if damaged:
        lines += _table(
            ("severity", "code", "damage", "found", "repair"), (_row(r, setting) for r in damaged)
        )
        lines.append("")
    lines += [_text(summary(database.results)), ""]
    if any(result.findings for result in damaged):
        lines += ["<details><summary>Findings</summary>", "", *_findings(damaged), "", "</details>", ""]
    return "\n".join(lines)


def _worst_first(result: ResultDocument) -> tuple[bool, int, str]:
    return (not result.counts, ("error", "warning", "note").index(result.severity), result.code)


def _row(result: ResultDocument, setting: Setting) -> tuple[str, ...]:
    severity = result.severity if result.counts else "accepted"
    answers = answers_text(setting.rules[result.code].answers)
    return (severity, result.code, result.slug, found_text(result), answers)


def _findings(damaged: Iterable[ResultDocument]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for result in damaged:
        rows += [
            (result.code, f.table, short(one_line(f.key)), f.message + accepted_text(f))
            for f in result.findings[:SHOWN]
        ]
        if (left := result.count - min(SHOWN, len(result.findings))) > 0:
            rows.append((result.code, "", "", f"… and {left:,} more"))
    return _table(("code", "table", "key", "what"), rows)


def _baseline(document: ReportDocument) -> list[str]:
    use = document.baseline
    if use is None or not (use.expired or use.unused):
        return []
    rows = [
        (e.code, e.table, e.key, e.database, f"expired on {e.expires}, counts again") for e in use.expired
    ]
    rows += [(e.code, e.table, e.key, e.database, "not there any more") for e in use.unused]
    head = f"### Baseline {_text(use.file)}"
    return ["\n".join([head, "", *_table(("code", "table", "key", "database", "entry"), rows), ""])]


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(headers)
    lines = [_line(names), _line(["---"] * len(names))]
    return lines + [_line(_text(cell) for cell in row) for row in rows]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Text that Markdown shows as it is: what could be markup, HTML or the end of a cell has a backslash before it."""
    return SPECIAL.sub(r"\\\1", one_line(text))
