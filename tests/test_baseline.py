"""Baselines: what is known is accepted, shown and not counted; whatever else is wrong still counts."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools import baseline, demo, schemas
from hermes_dbtools.diagnosing import Request, diagnose, rendered
from hermes_dbtools.model import (
    BaselineEntry,
    DatabaseReport,
    Finding,
    Report,
    Result,
    Severity,
    Status,
    UsageError,
)
from hermes_dbtools.scanning import ScanOptions
from tests.running import Ran, environment, tool_here
from tests.shapes.make import execute
from tests.test_cli import cut_off, missing

SELECT = ("--select", "HDB201,HDB202,HDB203,HDB501")
CODES = frozenset(("HDB201", "HDB202", "HDB203", "HDB501"))
TODAY = datetime.date(2026, 5, 4)
HEAD = 'format = "hermes-dbtools/baseline"\nformat_version = 1\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.make_home(tmp_path_factory.mktemp("made")).root


@pytest.fixture
def store(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "fixtures")) / "state.db"


def scanned(
    *stores: Path,
    file: str = "known.toml",
    update: bool = False,
    select: str = SELECT[1],
    fail_on: Severity | None = Severity.WARNING,
    format_: str = "table",
) -> Ran:
    """As the command does, in this process."""
    options = ScanOptions(select=tuple(select.split(",")), fail_on=fail_on)
    request = Request(tuple(map(str, stores)), options, 1, file, update)
    report = diagnose(request, lambda _what: None)
    text = rendered(report, request, format_, verbose=False, timings=False)
    return Ran(report.exit_code, text.decode("utf-8"), "")


def updated(store: Path, file: str = "known.toml", fail_on: Severity | None = Severity.WARNING) -> str:
    scanned(store, file=file, update=True, fail_on=fail_on)
    return Path(file).read_text("utf-8")


def test_what_is_accepted_is_shown_and_not_counted(store: Path) -> None:
    assert tool_here("scan", store, *SELECT).code == 1
    updated(store)
    ran = scanned(store)
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines() if "HDB" in line]
    assert [line[:2] for line in lines] == [["accepted", code] for code in sorted(CODES)]
    assert "9 findings accepted" in ran.out
    assert "next:" not in ran.out
    document = json.loads(scanned(store, format_="json").out)
    assert document["summary"] == {
        "errors": 0, "warnings": 0, "notes": 0, "could_not_look": 0, "accepted": 9,
    }  # fmt: skip
    (database,) = document["databases"]
    for result in database["results"]:
        if result["status"] == "damaged":
            assert result["accepted"] == result["count"]
            assert all(
                finding["accepted"] == {"reason": "", "expires": None} for finding in result["findings"]
            )


def test_what_is_new_counts_beside_what_is_accepted(store: Path) -> None:
    updated(store)
    execute(store, "DELETE FROM sessions WHERE id = (SELECT MAX(id) FROM sessions WHERE message_count > 0)")
    ran = scanned(store)
    assert ran.code == 1
    assert "of them accepted" in ran.out
    assert "HDB201" in next(line for line in ran.out.splitlines() if line.startswith("  error"))


def test_a_finding_of_another_kind_on_an_accepted_key_counts(store: Path) -> None:
    text = updated(store)
    Path("known.toml").write_text(text.replace('kind = "branch"', 'kind = "tail"'), "utf-8")
    ran = scanned(store)
    assert ran.code == 1
    assert "missing-parent-session  2 sessions · 1 of them accepted" in ran.out


def test_an_update_keeps_reasons_and_dates_and_drops_what_is_gone(store: Path) -> None:
    first = updated(store)
    file = Path("known.toml")
    told = first.replace(
        'kind = "branch"', 'kind = "branch"\nreason = "a fixture of \\"old\\" homes"\nexpires = 2999-12-31'
    )
    file.write_text(told, "utf-8")
    assert updated(store) == told, "nothing has changed"
    assert tool_here("repair", store, "--select", "HDB202", "--apply", "--yes").code == 0
    ran = scanned(store)
    assert ran.code == 0
    assert "HDB202 sessions 20260529_094000_fd583e of fixtures/state.db is not there any more" in ran.out
    left = updated(store)
    assert "HDB202" not in left
    assert left.count("[[accepted]]") == 7
    assert "is not there any more" not in scanned(store).out


def test_an_update_leaves_what_it_did_not_look_at(store: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(store.parent, tmp_path / "other")) / "state.db"
    assert scanned(store, other, file="k.json", update=True).code == 0
    entries = json.loads(Path("k.json").read_text("utf-8"))["accepted"]
    assert [entry["database"] for entry in entries] == ["fixtures/state.db"] * 9 + ["other/state.db"] * 9
    for path in (store, other):
        assert tool_here("repair", path, "--apply", "--yes", "--allow-lossy").code == 0
    assert scanned(store, file="k.json", update=True, select="HDB202").code == 0
    left = json.loads(Path("k.json").read_text("utf-8"))["accepted"]
    assert left == [e for e in entries if (e["database"], e["code"]) != ("fixtures/state.db", "HDB202")]
    other.unlink()
    assert scanned(other, file="k.json", update=True).code == 3
    assert json.loads(Path("k.json").read_text("utf-8"))["accepted"] == left, "it could not look"


def test_a_database_that_was_moved_is_named_and_keeps_its_entries(store: Path) -> None:
    before = updated(store)
    moved = store.rename(store.with_name("moved.db"))
    ran = scanned(moved)
    assert ran.code == 1
    assert ran.out.count(" of fixtures/state.db is not there any more\n") == before.count("[[accepted]]")
    Path("known.toml").write_text(before.replace("fixtures/state.db", "fixtures/moved.db"), "utf-8")
    again = scanned(moved)
    assert (again.code, "any more" in again.out) == (0, False)
    assert before.count("[[accepted]]") == updated(moved).count("[[accepted]]")


def test_an_update_enters_what_counts_for_fail_on(store: Path) -> None:
    assert '"HDB501"' not in updated(store, fail_on=Severity.ERROR)
    assert scanned(store).code == 1
    assert '"HDB501"' in updated(store)
    assert updated(store, fail_on=None).count("[[accepted]]") == 9
    Path("known.toml").unlink()
    assert updated(store, fail_on=None).count("[[accepted]]") == 0


def test_an_expired_entry_counts_again_and_is_reported(store: Path) -> None:
    text = updated(store).replace('kind = "branch"', 'kind = "branch"\nexpires = 2020-02-29')
    Path("known.toml").write_text(text, "utf-8")
    ran = scanned(store)
    assert ran.code == 1
    named = "HDB202 sessions 20260529_094000_fd583e of fixtures/state.db"
    assert f"known.toml: {named} expired on 2020-02-29 and counts again\n" in ran.out
    document = json.loads(scanned(store, format_="json").out)
    (expired,) = document["baseline"]["expired"]
    assert (expired["code"], expired["expires"]) == ("HDB202", "2020-02-29")
    assert updated(store) == text, "only its author makes it last longer"
    assert scanned(store).code == 1


def test_the_last_day_still_counts_as_accepted() -> None:
    entry = BaselineEntry("a.db", "HDB201", "messages", "s", expires=TODAY)
    known = baseline.Baseline("/folder/known.toml", (entry,))
    report = reported([("s", Severity.ERROR)])
    for day, accepted in ((TODAY, 1), (TODAY + datetime.timedelta(days=1), 0)):
        ((result,),) = [d.results for d in baseline.accept(report, known, day).databases]
        assert result.accepted == accepted
        assert result.counts == (not accepted)


def test_the_severity_is_that_of_what_counts() -> None:
    report = reported([("a", Severity.ERROR), ("b", Severity.NOTE), ("c", Severity.WARNING)])
    known = baseline.Baseline("/folder/known.toml", (entry("a"), entry("c")))
    ((result,),) = [d.results for d in baseline.accept(report, known, TODAY).databases]
    assert (result.severity, result.accepted, result.counts) == (Severity.NOTE, 2, True)
    assert [bool(finding.accepted) for finding in result.findings] == [True, False, True], "in their order"


def test_of_more_than_can_be_shown_those_that_count_come_first() -> None:
    keys = [f"s{number:04}" for number in range(1500)]
    report = reported([(key, Severity.ERROR) for key in keys])
    known = baseline.Baseline("/folder/known.toml", tuple(entry(key) for key in keys[:1200]))
    ((result,),) = [d.results for d in baseline.accept(report, known, TODAY).databases]
    assert (result.count, result.accepted, result.truncated) == (1500, 1200, True)
    assert len(result.findings) == baseline.LIMIT
    assert [finding.key for finding in result.findings[:301]] == [*keys[1200:], keys[0]]


def entry(key: str) -> BaselineEntry:
    return BaselineEntry("a.db", "HDB201", "messages", key)


def reported(found: list[tuple[str, Severity]]) -> Report:
    findings = tuple(
        Finding("HDB201", "orphaned-messages", severity, "messages", key, "x", {}) for key, severity in found
    )
    result = Result(
        "HDB201", "orphaned-messages", "references", max(severity for _key, severity in found), Status.DAMAGED,
        count=len(findings), findings=findings,
    )  # fmt: skip
    return Report((DatabaseReport("/folder/a.db", 1, "wal", None, (), 0, (result,)),), 1)


def test_a_baseline_hides_nothing_that_could_not_be_looked_at(tmp_path: Path) -> None:
    path = cut_off(tmp_path / "home")
    file = str(tmp_path / "k.toml")
    everything = {"file": file, "select": "HDB003,HDB201"}
    assert scanned(path, update=True, **everything).code == 3  # type: ignore[arg-type]
    assert scanned(path, **everything).code == 3  # type: ignore[arg-type]
    assert scanned(missing(tmp_path), **everything).code == 3  # type: ignore[arg-type]


def test_toml_and_json_say_the_same(store: Path) -> None:
    text = updated(store)
    document = json.loads(updated(store, file="known.json"))
    assert tomllib.loads(text) == document
    for file in ("known.toml", "known.json"):
        assert scanned(store, file=file).code == 0


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
entries = st.builds(
    BaselineEntry,
    database=texts,
    code=st.sampled_from(sorted(CODES)),
    table=texts,
    key=texts,
    kind=texts,
    reason=texts,
    expires=st.none() | st.dates(),
)


@given(
    st.lists(
        entries, max_size=4, unique_by=lambda one: (one.database, one.code, one.table, one.key, one.kind)
    )
)
@settings(max_examples=150, deadline=None)
def test_every_baseline_comes_back(
    tmp_path_factory: pytest.TempPathFactory, listed: list[BaselineEntry]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("any.toml", "any.json"):
        known = baseline.Baseline(str(folder / name), tuple(listed))
        (folder / name).write_bytes(baseline.encode(known))
        assert baseline.load(str(folder / name), CODES) == known


@pytest.mark.usefixtures("store")
def test_a_checkout_elsewhere_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    words = ("scan", "fixtures", *SELECT, "--baseline", "ci/known.toml")
    assert tool_here(*words, "--update-baseline", cwd=tmp_path).code == 0
    assert 'database = "../fixtures/state.db"' in (tmp_path / "ci" / "known.toml").read_text("utf-8")
    elsewhere = tmp_path / "elsewhere"
    for name in ("ci", "fixtures"):
        shutil.copytree(tmp_path / name, elsewhere / name)
    assert tool_here(*words, cwd=elsewhere).code == 0
    absolute = (
        "scan",
        elsewhere / "fixtures" / "state.db",
        *SELECT,
        "--baseline",
        elsewhere / "ci" / "known.toml",
    )
    assert tool_here(*absolute, cwd=Path("/")).code == 0


MALFORMED: dict[str, str | bytes] = {
    "empty.json": "",
    "empty.toml": "",
    "text.toml": "hello",
    "cut.toml": HEAD + "[[accepted]",
    "cut.json": '{"format": "hermes-dbtools/baseline", "format_version": 1, "accepted": [',
    "deep.json": "[" * 100_000,
    "other.json": '{"format": "hermes-dbtools/plan", "format_version": 1}',
    "newer.toml": 'format = "hermes-dbtools/baseline"\nformat_version = 2\n',
    "list.json": "[]",
    "bytes.toml": b"\xff\xfe",
    "unknown-field.toml": HEAD + 'acepted = []\n',
    "no-key.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\n',
    "number.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\nkey = 3\n',
    "misspelt.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\nkey = "k"\nexpire = 2020-01-01\n',
    "code.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB999"\ntable = "t"\nkey = "k"\n',
    "date.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\nkey = "k"\nexpires = "soon"\n',
    "moment.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\nkey = ""\nexpires = 2020-01-01T00:00:00\n',
    "twice.toml": HEAD + '[[accepted]]\ndatabase = "a"\ncode = "HDB201"\ntable = "t"\nkey = "k"\n' * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_baseline_is_one_clear_line(store: Path, name: str) -> None:
    content = MALFORMED[name]
    data = content if isinstance(content, bytes) else content.encode()
    Path(name).write_bytes(data)
    for update in (False, True):
        with pytest.raises(UsageError) as told:
            scanned(store, file=name, update=update)
        assert str(told.value).startswith(f"{name}: ")
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 200
        assert Path(name).read_bytes() == data, "it is not written over"


def test_what_is_no_baseline_is_exit_code_2(store: Path) -> None:
    Path("known.toml").write_text("hello", "utf-8")
    ran = tool_here("scan", store, "--baseline", "known.toml")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("hermes-dbtools: known.toml: not a baseline: ")


def test_a_baseline_that_cannot_be_read_or_written_is_one_clear_line(store: Path) -> None:
    with pytest.raises(UsageError, match=r"^known.toml: no such file; --update-baseline makes one$"):
        scanned(store)
    for file in (".", "", "gone/known.toml", "fixtures/state.db/known.toml", "a\0b"):
        with pytest.raises(UsageError, match=r"^[^\n]*$"):
            scanned(store, file=file, update=True)
    ran = tool_here("scan", store, "--update-baseline")
    assert (ran.code, ran.err) == (2, "hermes-dbtools: --update-baseline needs --baseline FILE\n")


def test_quiet_prints_only_what_fails(store: Path) -> None:
    updated(store)
    words = ("scan", store, *SELECT, "--baseline", "known.toml")
    assert tool_here(*words, "--quiet") == Ran(0, "", "")
    assert tool_here(*words, "--quiet", "--format", "json", "--output", "report.json") == Ran(0, "", "")
    assert json.loads(Path("report.json").read_bytes())["exit_code"] == 0, (
        "a file that is asked for is written"
    )
    execute(store, "DELETE FROM sessions WHERE id = (SELECT MAX(id) FROM sessions WHERE message_count > 0)")
    loud, quiet = tool_here(*words), tool_here(*words, "--quiet")
    assert (quiet.code, quiet.out) == (1, loud.out)


ALONE = """
import socket, sys
def never(*_words, **_more):
    raise AssertionError("it reached for the network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = never
from hermes_dbtools.__main__ import main
sys.argv = ["hermes-dbtools", *sys.argv[1:]]
main()
"""


def test_it_needs_no_home_and_no_network_and_says_the_same_bytes(store: Path) -> None:
    first = updated(store)
    env = environment(HOME=None, HERMES_HOME=None, XDG_CONFIG_HOME=None, LANG=None, LC_ALL=None, USER=None)
    words = ("scan", "fixtures/state.db", *SELECT, "--baseline", "known.toml", "--update-baseline")
    for format_ in ("table", "sarif"):
        said = [
            subprocess.run(
                [sys.executable, "-c", ALONE, *words, "--format", format_],
                env=env, capture_output=True, check=True, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        assert said[0].stdout == said[1].stdout
        assert [ran.stderr for ran in said] == ["", ""]
    assert Path("known.toml").read_text("utf-8") == first


def test_a_scan_with_a_baseline_leaves_no_trace_beside_it(store: Path, tmp_path: Path) -> None:
    updated(store)
    before = {path.name for path in tmp_path.rglob("*")}
    content = store.read_bytes()
    for _ in range(2):
        scanned(store)
        updated(store)
    assert {path.name for path in tmp_path.rglob("*")} == before
    assert store.read_bytes() == content


def test_a_baseline_has_a_schema(store: Path) -> None:
    validator = jsonschema.Draft202012Validator(schemas.json_schema("baseline"))
    document = json.loads(updated(store, file="known.json"))
    validator.validate(document)
    document["accepted"][0]["expire"] = "2020-01-01"
    assert not validator.is_valid(document)
