"""Many databases and many hosts: scans over processes, merged reports, and the playbook run by Ansible itself."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import jsonschema
import msgspec
import pytest

from hermes_dbtools import demo, holders, merging, parallel, schemas
from hermes_dbtools.model import UsageError
from hermes_dbtools.report.merged import merged_text
from hermes_dbtools.report_document import ReportDocument
from hermes_dbtools.scanning import ScanOptions
from tests.running import CHECKOUT, COMMAND, Ran, environment, tool
from tests.test_cli import cut_off, healthy, orphaned

PLAYBOOK = CHECKOUT / "runbooks" / "many-hosts" / "scan.yml"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with profiles: each looks into the others for the sessions that it misses."""
    home = tmp_path_factory.mktemp("fleet")
    demo.make_home(home)
    for name in ("one", "two", "three"):
        (home / "profiles" / name).mkdir(parents=True)
    demo.make_home(home / "profiles" / "one")
    healthy(home / "profiles" / "two")
    cut_off(home / "profiles" / "three")
    return home


@pytest.mark.parametrize(("format_", "jobs"), [("table", "2"), ("json", "7")])
def test_the_report_is_the_same_however_many_processes_make_it(fleet: Path, format_: str, jobs: str) -> None:
    words = ("scan", "--all-profiles", fleet, fleet / "state.db", fleet / "gone.db", "--format", format_)
    alone = tool(*words)
    assert alone.code == 1
    assert alone.out.count(str(fleet / "profiles")) >= 3
    assert tool(*words, "--jobs", jobs) == alone


def test_a_fellow_of_a_scan_is_no_holder(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    reader = "import sys; f = open(sys.argv[1], 'rb'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", reader, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        look = (
            "import sys, pathlib; from hermes_dbtools.holders import also_ours, find_holders;"
            "fellows = also_ours(map(int, sys.argv[2:])); fellows.__enter__();"
            "print([one.pid for one in find_holders(pathlib.Path(sys.argv[1])).processes])"
        )
        for fellows, found in (([], [other.pid]), ([str(other.pid)], [])):
            command = [sys.executable, "-c", look, str(path), *fellows]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
            assert json.loads(done.stdout) == found
        other.communicate(b"")
    assert set() == holders._FELLOWS, "whoever writes has none"  # noqa: SLF001


def test_a_worker_that_dies_reads_as_could_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(healthy(tmp_path / name)) for name in ("a", "b", "c")]
    monkeypatch.setattr(parallel, "_work", _dies)
    report = parallel.scan(paths, ScanOptions(), lambda _what: None, jobs=2)
    assert report.exit_code == 3
    assert [database.path for database in report.databases] == paths
    assert all("the process that looked at it ended" in database.error for database in report.databases)


def _dies(connection: object, options: object) -> None:
    del connection, options
    os._exit(9)


def test_a_fault_in_a_worker_is_a_fault_of_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(healthy(tmp_path / name)) for name in ("a", "b")]
    monkeypatch.setattr(parallel, "_work", _fails)
    with pytest.raises(ZeroDivisionError):
        parallel.scan(paths, ScanOptions(), lambda _what: None, jobs=2)


def _fails(connection: Connection, options: object) -> None:
    del options
    connection.recv()
    connection.recv()
    connection.send(ZeroDivisionError("a fault"))


def test_a_word_that_no_class_has_is_told_once(fleet: Path) -> None:
    ran = tool("scan", fleet, "--all-profiles", "--jobs", "2", "--select", "nonsense")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert tool("scan", fleet, "--jobs", "0").code == 2


STOPS = """
import sys
if "--multiprocessing-fork" in sys.orig_argv:
    import os, signal
    from hermes_dbtools import scanning
    def stop(*_words):
        with open({fifo!r}, "w") as ready:
            print(os.getpid(), file=ready)
        while True:
            signal.pause()
    scanning.scan_home = stop
"""
"""A worker that says who it is when it begins to look, and then looks for ever."""


def test_an_interrupted_scan_over_processes_ends_quietly(tmp_path: Path) -> None:
    paths = [healthy(tmp_path / name) for name in ("a", "b")]
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(STOPS.format(fifo=str(fifo)), "utf-8")
    env = environment(PYTHONPATH=f"{site}{os.pathsep}{CHECKOUT}")
    with subprocess.Popen(
        [*COMMAND, "scan", *map(str, paths), "--jobs", "2"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        pids: list[str] = []
        while len(pids) < 2:
            pids += fifo.read_text("utf-8").split()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert err.decode().strip() == "hermes-dbtools: interrupted; nothing more was changed"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def reports(folder: Path, **stores: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    files = []
    for name, path in stores.items():
        file = folder / f"{name}.json"
        assert tool("scan", path, "--format", "json", "--output", file).code in (0, 1, 3)
        files.append(str(file))
    return files


def test_reports_of_many_hosts_are_one_table(tmp_path: Path) -> None:
    bad, fine = orphaned(tmp_path / "bad"), healthy(tmp_path / "fine")
    files = reports(tmp_path / "reports", web2=bad, web1=fine, web3=tmp_path / "gone.db")
    ran = tool("report", "merge", *files)
    assert (ran.code, ran.err) == (1, "")
    lines = [line.split(maxsplit=3) for line in ran.out.splitlines()]
    assert lines[0] == ["host", "database", "severity", "code    damage             found"]
    assert [line[0] for line in lines[1:4]] == ["web1", "web2", "web3"]
    assert lines[1][2:] == ["nothing", "found"]
    assert lines[2][2] == "error"
    assert "HDB201" in lines[2][3]
    assert lines[3][2:4] == [
        "could",
        f"not look                             {tmp_path}/gone.db: no such file or folder; check the path",
    ]
    assert ran.out.splitlines()[-1] == "3 hosts · 3 databases · 1 error · could not look 1 time"
    assert tool("report", "merge", *reversed(files)).out == ran.out, "the order of the files does not matter"
    assert tool("report", "merge", files[1]).code == 0
    assert tool("report", "merge", *files[1:]).code == 3


def test_a_report_that_is_given_twice_counts_once_and_is_named(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    for name in ("first", "second"):
        assert (
            tool(
                "scan", path, "--host", "web1", "--format", "json", "--output", tmp_path / f"{name}.json"
            ).code
            == 1
        )
    once = tool("report", "merge", tmp_path / "first.json")
    twice = tool(
        "report", "merge", tmp_path / "second.json", tmp_path / "first.json", tmp_path / "first.json"
    )
    assert (twice.code, twice.out, once.err) == (once.code, once.out, "")
    assert twice.err.splitlines() == [
        f"hermes-dbtools: {tmp_path}/{name}.json: the report of web1 that {tmp_path}/first.json is; it counts once"
        for name in ("first", "second")
    ]
    assert tool(
        "scan", path, "--host", "web1", "--deep", "--format", "json", "--output", tmp_path / "second.json"
    ).code
    both = tool("report", "merge", tmp_path / "first.json", tmp_path / "second.json")
    assert f"{path} of web1 is in {tmp_path}/first.json too; both count" in both.err
    assert "1 host · 2 databases" in both.out


def test_a_merged_report_fits_its_schema_and_holds_the_reports_whole(tmp_path: Path) -> None:
    files = reports(tmp_path / "reports", a=orphaned(tmp_path / "home"))
    ran = tool("report", "merge", *files, "--format", "json")
    document = json.loads(ran.out)
    jsonschema.Draft202012Validator(schemas.json_schema("merged-report")).validate(document)
    assert document["hosts"] == [
        {"host": "a", "file": files[0], "report": json.loads(Path(files[0]).read_bytes())}
    ]
    assert document["exit_code"] == ran.code == 1


def test_a_host_is_called_what_the_scan_was_told(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    file = tmp_path / "x.json"
    assert tool("scan", path, "--host", "db one", "--format", "json", "--output", file).code == 0
    assert msgspec.json.decode(file.read_bytes(), type=ReportDocument).host == "db one"
    assert tool("report", "merge", file).out.splitlines()[1].startswith("db one")


def test_the_report_of_a_newer_release_is_merged_too(tmp_path: Path) -> None:
    (file,) = reports(tmp_path / "reports", a=orphaned(tmp_path / "home"))
    document = json.loads(Path(file).read_bytes())
    document["news"] = document["databases"][0]["news"] = document["databases"][0]["results"][0]["news"] = [1]
    document["databases"][0]["results"].append(
        {**document["databases"][0]["results"][0], "code": "HDB999", "slug": "unheard-of", "status": "damaged",
         "severity": "error", "count": 1, "found": "1 thing"}
    )  # fmt: skip
    Path(file).write_text(json.dumps(document), "utf-8")
    merged = merging.merge([file])
    assert "HDB999  unheard-of" in merged_text(merged)
    assert merged.document.hosts[0].report == document


NO_REPORTS = {
    "empty": b"",
    "text": b"Traceback (most recent call last):",
    "cut": b'{"format": "hermes-dbtools/report", "format_version": 1, "databases": [',
    "deep": b"[" * 100_000,
    "bytes": b"\xff",
    "list": b"[]",
    "plan": b'{"format": "hermes-dbtools/plan", "format_version": 1}',
    "newer": b'{"format": "hermes-dbtools/report", "format_version": 2}',
    "merged": b'{"format": "hermes-dbtools/merged-report", "format_version": 1, "hosts": []}',
    "summary": b'{"format": "hermes-dbtools/report", "format_version": 1, "tool": {}, "databases": [], "summary": 1}',
}


@pytest.mark.parametrize("name", NO_REPORTS)
def test_what_is_no_report_is_one_clear_line(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.json"
    file.write_bytes(NO_REPORTS[name])
    with pytest.raises(UsageError) as told:
        merging.merge([str(file)])
    assert str(told.value).startswith(f"{file}: not a report of scan --format json: ")
    assert "\n" not in str(told.value)


def test_what_is_no_report_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    for file in ("a.json", "gone.json", "."):
        ran = tool("report", "merge", file, cwd=tmp_path)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert ran.err.startswith(f"hermes-dbtools: {file}: ")
    assert tool("report", "merge").code == 2


def program(folder: Path) -> Path:
    """A `hermes-dbtools` as a host would have it."""
    file = folder / "hermes-dbtools"
    file.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n', "utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hosts")
    healthy(folder / "web1")
    orphaned(folder / "web2" / "profiles" / "work")
    here = program(folder)
    local = f"ansible_connection=local hermes_dbtools={here}"
    (folder / "hosts.ini").write_text(
        f"[fine]\nweb1 {local} hermes_home={folder}/web1\n"
        f"[bad]\nweb2 {local} hermes_home={folder}/web2\n"
        f"[silent]\nweb3 ansible_connection=local hermes_dbtools={folder}/not-there\n"
        f"web4 {local} ansible_remote_tmp=/proc/not-there\n",
        "utf-8",
    )
    return folder


def played(hosts: Path, limit: str, *words: str) -> Ran:
    env = environment(
        ANSIBLE_HOME=str(hosts / "ansible"), ANSIBLE_LOCAL_TEMP=str(hosts / "ansible" / "tmp"),
        ANSIBLE_NOCOLOR="1", ANSIBLE_RETRY_FILES_ENABLED="0", ANSIBLE_DEPRECATION_WARNINGS="0", LC_ALL="C.UTF-8",
    )  # fmt: skip
    command = [
        sys.executable, "-m", "ansible", "playbook", "-i", str(hosts / "hosts.ini"), "--limit", limit, str(PLAYBOOK),
        "-e", f"reports={hosts}/reports", "-e", f"hermes_dbtools_here={hosts}/hermes-dbtools",
        "-e", f"ansible_python_interpreter={sys.executable}", *words,
    ]  # fmt: skip
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=hosts)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_playbook_gathers_the_reports_of_a_fleet(hosts: Path) -> None:
    (hosts / "reports").mkdir()
    (hosts / "reports" / "web3.json").write_text("{}", "utf-8")
    ran = played(hosts, "all")
    assert ran.code == 2, ran
    assert "a host has findings; no report from web3, web4" in ran.out
    assert '"web3: ' in ran.out
    assert {path.name for path in (hosts / "reports").iterdir()} == {"web1.json", "web2.json"}
    for name in ("web1", "web2"):
        file = hosts / "reports" / f"{name}.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert msgspec.json.decode(file.read_bytes(), type=ReportDocument).host == name
    merged = tool("report", "merge", *sorted((hosts / "reports").iterdir())).out
    assert "HDB201" in merged
    for line in merged.splitlines():
        assert line in ran.out
    assert not list((hosts / "web2").rglob("dbtools")), "nothing is changed on a host"


def test_the_playbook_succeeds_where_all_is_well(hosts: Path) -> None:
    ran = played(hosts, "fine")
    assert ran.code == 0, ran
    assert "1 host · 1 database · nothing found" in ran.out
