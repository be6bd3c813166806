"""Render a report as JUnit XML: one suite per database, one case per damage class; computes nothing.

A class that counts for `--fail-on` is a failure, one that could not look an error; what does not apply, or was not selected, is
skipped. What was found below `--fail-on`, or is accepted, passes and says so.
"""

from __future__ import annotations

from xml.etree import ElementTree

from ..report_document import DatabaseDocument, ReportDocument, ResultDocument
from ..shown import one_line
from .outcomes import finding_text, found_text
from .setting import Setting

SHOWN = 100
"""Findings of one class that a failure lists."""

Counts = dict[str, int]


def render(document: ReportDocument, setting: Setting) -> str:
    """The suites of a report."""
    root = ElementTree.Element("testsuites", name="hermes-dbtools")
    for database in document.databases:
        _suite(root, database, setting)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, database: DatabaseDocument, setting: Setting) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=one_line(setting.name(database.path)))
    if database.error:
        case = ElementTree.SubElement(suite, "testcase", classname="file", name="could be looked at")
        ElementTree.SubElement(case, "error", message=one_line(database.error), type="could-not-look")
    for result in database.results:
        _case(suite, result, setting)
    suite.set("tests", str(len(suite)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))


def _case(suite: ElementTree.Element, result: ResultDocument, setting: Setting) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=result.family, name=f"{result.code} {result.slug}"
    )
    if result.seconds is not None:
        case.set("time", f"{result.seconds:.6f}")
    match result.status:
        case "could-not-look":
            ElementTree.SubElement(case, "error", message=one_line(result.reason), type=result.status)
        case "not-applicable" | "skipped":
            ElementTree.SubElement(case, "skipped", message=one_line(result.reason))
        case "damaged" if result.counts and setting.fails(result.severity):
            failure = ElementTree.SubElement(
                case, "failure", message=one_line(found_text(result)), type=result.severity
            )
            failure.text = _findings(result)
        case "damaged":
            ElementTree.SubElement(case, "system-out").text = _findings(result)
        case _:
            pass


def _findings(result: ResultDocument) -> str:
    lines = [one_line(found_text(result))]
    lines += [f"{one.severity} {finding_text(one)}" for one in result.findings[:SHOWN]]
    if (left := result.count - min(SHOWN, len(result.findings))) > 0:
        lines.append(f"… and {left:,} more")
    return "\n".join(lines)
