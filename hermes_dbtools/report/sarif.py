"""Render a report as SARIF 2.1.0: rules of the catalogue, a result for each finding, each database an artifact; computes nothing.

A check that could not look is a notification, and the invocation was then not successful. An accepted finding is a suppressed
result. A finding keeps its fingerprint as long as its database (by name), class, table, key and kind are the same.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import msgspec

from ..identity import Identity, fingerprint
from ..report_document import DatabaseDocument, FindingDocument, ReportDocument, ResultDocument
from ..shown import one_line
from .outcomes import finding_text
from .setting import Rule, Setting

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "hermesDbtools/v1"
ROOT = "SRCROOT"
"""The folder that relative names start from; whoever reads the file knows where that is."""


def render(document: ReportDocument, setting: Setting) -> str:
    """The log of one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(document, setting)]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _run(document: ReportDocument, setting: Setting) -> dict[str, Any]:
    used = {r.code for d in document.databases for r in d.results if r.status != "skipped"}
    rules = [rule for code, rule in setting.rules.items() if code in used]
    places = {rule.code: place for place, rule in enumerate(rules)}
    return {
        "tool": {
            "driver": {
                "name": "hermes-dbtools",
                "version": document.tool.version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [_invocation(document, setting)],
        "artifacts": [_artifact(database, setting) for database in document.databases],
        "results": [
            {"ruleIndex": places[result.code], **_result(result, finding, place, database, setting)}
            for place, database in enumerate(document.databases)
            for result in database.results
            for finding in result.findings
        ],
        "columnKind": "unicodeCodePoints",
    }


def _rule(rule: Rule) -> dict[str, Any]:
    text = f"{rule.meaning}\n\nRepair: {rule.repair}\n\nhermes-dbtools runbook {rule.slug} says what to do, step by step."
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.meaning},
        "help": {"text": text},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [rule.family], "safety": rule.safety, "slug": rule.slug},
    }


def _invocation(document: ReportDocument, setting: Setting) -> dict[str, Any]:
    notifications: list[dict[str, Any]] = []
    for place, database in enumerate(document.databases):
        location = {"physicalLocation": {"artifactLocation": _location(place, database, setting)}}
        if database.error:
            notifications.append(_notification("error", database.error, location))
        for result in database.results:
            rule = {"associatedRule": {"id": result.code}}
            if result.status == "could-not-look":
                text = f"{result.code} {result.slug} could not look: {result.reason}"
                notifications.append({**_notification("error", text, location), **rule})
            elif result.truncated:
                text = f"{result.code} {result.slug}: {len(result.findings):,} of {result.count:,} findings are listed"
                notifications.append({**_notification("note", text, location), **rule})
    return {
        "executionSuccessful": all(one["level"] != "error" for one in notifications),
        "exitCode": document.exit_code,
        "toolExecutionNotifications": notifications,
    }


def _notification(level: str, text: str, location: dict[str, Any]) -> dict[str, Any]:
    return {"level": level, "message": {"text": one_line(text)}, "locations": [location]}


def _artifact(database: DatabaseDocument, setting: Setting) -> dict[str, Any]:
    length = {} if database.error else {"length": database.size}
    return {
        "location": _uri(database, setting),
        **length,
        "roles": ["analysisTarget"],
        "mimeType": "application/vnd.sqlite3",
    }


def _result(
    result: ResultDocument, finding: FindingDocument, place: int, database: DatabaseDocument, setting: Setting
) -> dict[str, Any]:
    name = setting.name(database.path)
    identity = Identity(name, result.code, finding.table, finding.key, finding.kind)
    item: dict[str, Any] = {
        "ruleId": result.code,
        "level": finding.severity,
        "message": {"text": finding_text(finding)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _location(place, database, setting),
                    "region": {"startLine": 1},  # code scanning of GitHub shows nothing without one
                },
                "logicalLocations": [
                    {
                        "fullyQualifiedName": one_line("/".join(filter(None, (finding.table, finding.key)))),
                        "kind": "row" if finding.table else "file",
                    }
                ],
            }
        ],
        "partialFingerprints": {FINGERPRINT: fingerprint(identity)},
        "properties": {"evidence": finding.evidence, "repair": finding.repair, "next": finding.next},
    }
    if finding.accepted is not None:
        suppression = {"kind": "external", "status": "accepted"}
        if finding.accepted.reason:
            suppression["justification"] = finding.accepted.reason
        item["suppressions"] = [suppression]
    return item


def _location(place: int, database: DatabaseDocument, setting: Setting) -> dict[str, Any]:
    return {**_uri(database, setting), "index": place}


def _uri(database: DatabaseDocument, setting: Setting) -> dict[str, str]:
    name = setting.name(database.path)
    if PurePath(name).is_absolute():
        return {"uri": PurePath(name).as_uri()}
    return {"uri": quote(name), "uriBaseId": ROOT}
