"""Render a report as workflow commands of GitHub Actions, one annotation per damage class that found something; computes nothing.

A job shows few annotations, so a class has one for each database, with its first findings in it.
"""

from __future__ import annotations

from ..report_document import ReportDocument, ResultDocument
from ..shown import one_line
from .outcomes import finding_text, found_text, summary
from .setting import Setting

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
SHOWN = 10
"""Findings of one class that an annotation lists."""


def render(document: ReportDocument, setting: Setting) -> str:
    """The annotations, then a line for each database."""
    lines: list[str] = []
    for database in document.databases:
        name = setting.name(database.path)
        if database.error:
            lines.append(_command("error", name, "could not look", [database.error]))
            lines.append(_plain(f"{name}: could not look"))
            continue
        lines += [line for result in database.results if (line := _annotation(result, name, setting))]
        lines.append(_plain(f"{name}: {summary(database.results)}"))
    return "\n".join(lines) + "\n"


def _annotation(result: ResultDocument, name: str, setting: Setting) -> str:
    title = f"{result.code} {result.slug}"
    if result.status == "could-not-look":
        return _command("error", name, f"{title}: could not look", [result.reason])
    if not result.counts:
        return ""
    return _command(COMMANDS[result.severity], name, title, _message(result, setting))


def _message(result: ResultDocument, setting: Setting) -> list[str]:
    counted = [finding for finding in result.findings if finding.accepted is None]
    lines = [setting.rules[result.code].title + ": " + found_text(result)]
    lines += [finding_text(finding) for finding in counted[:SHOWN]]
    if (left := result.count - result.accepted - min(SHOWN, len(counted))) > 0:
        lines.append(f"… and {left:,} more")
    return [*lines, f"hermes-dbtools runbook {result.slug}"]


def _command(command: str, file: str, title: str, lines: list[str]) -> str:
    message = "%0A".join(_data(one_line(line)) for line in lines)
    return f"::{command} file={_property(file)},title={_property(title)}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """A line that is no command: the runner obeys `::` at the start of a line and `##[` anywhere in it."""
    line = one_line(text).replace("##[", "## [")
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line
