"""Loops, leases and the ledger beyond their cases: holders, scale, broken values, and what a retirement keeps."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_dbtools import apply_plan, make_plan, retirement, scan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.cycles import Cycle, cycles_of, cyclic_sessions
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.damage._declare import Damage
from hermes_dbtools.damage.references import unreferenced_system_prompts
from hermes_dbtools.damage.runtime import idempotency_leftovers, orphaned_ledger_rows, stale_leases
from hermes_dbtools.home import resolve
from hermes_dbtools.model import DatabaseReport, Finding, StalePlan
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.processes import Processes
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import UndoOptions
from tests.looking import findings, looking, mend
from tests.shapes.make import execute, fill, make
from tests.test_cases import digest

NOW = 1_790_000_000.0
CODES = (
    *("HDB207", "HDB208", "HDB209", "HDB210", "HDB305"),
    *("HDB901", "HDB902", "HDB903", "HDB904", "HDB905"),
)
MINE = tuple(damage for damage in REGISTRY if damage.code in CODES)
PLAIN = "20260528_222640_d4735e"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = make(tmp_path / "state.db", "runtime")
    fill(made)
    return made


def look(path: Path, *codes: str) -> DatabaseReport:
    (report,) = scan((path,), ScanOptions(select=codes or CODES, limit=None, now=NOW)).databases
    return report


def found(path: Path, damage: Damage) -> list[tuple[str, str]]:
    return [(finding.kind, finding.key) for finding in findings(damage, path)]


# Loops


Links = dict[bytes, tuple[bytes | None, bytes | None]]
NODES = tuple(bytes([letter]) for letter in b"abcdef")
ENDS = st.one_of(st.none(), st.sampled_from(NODES))


@given(st.dictionaries(st.sampled_from(NODES), st.tuples(ENDS, ENDS), max_size=6))
def test_a_session_is_in_a_loop_if_and_only_if_it_reaches_itself(links: Links) -> None:
    cycles = cycles_of((key, parent, marker) for key, (parent, marker) in links.items())
    inside = {session.encode() for cycle in cycles for session in cycle.ids if isinstance(session, str)}
    assert inside == {key for key in links if key in reached(links, key)}
    for cycle in cycles:
        first = str(cycle.ids[0]).encode()
        others = {key for key in reached(links, first) if first in reached(links, key)}
        assert {str(session).encode() for session in cycle.ids} == others


def reached(links: Links, start: bytes) -> set[bytes]:
    seen: set[bytes] = set()
    waiting = [start]
    while waiting:
        for end in links.get(waiting.pop(), (None, None)):
            if end is not None and end not in seen:
                seen.add(end)
                waiting.append(end)
    return seen


def test_a_chain_of_many_thousand_sessions_needs_no_recursion() -> None:
    names = [b"%06d" % number for number in range(50_000)]
    chain = list(zip(names, [None, *names], strict=False))
    assert cycles_of(chain) == ()
    closed = [(names[0], names[-1]), *chain[1:]]
    (cycle,) = cycles_of(closed)
    assert (len(cycle.ids), cycle.over) == (50_000, "parents")


def test_which_links_make_the_loop() -> None:
    assert [cycle.over for cycle in cycles_of([(b"a", b"b", None), (b"b", b"a", b"a")])] == ["parents"]
    assert [cycle.over for cycle in cycles_of([(b"a", None, b"b"), (b"b", None, b"a")])] == ["markers"]
    assert [cycle.over for cycle in cycles_of([(b"a", b"b", None), (b"b", None, b"a")])] == ["both"]


def test_a_delete_can_ask_which_sessions_are_in_a_loop(path: Path) -> None:
    execute(path, "UPDATE sessions SET parent_session_id = id WHERE id = ?", (PLAIN,))
    execute(path, "INSERT INTO sessions (id, source, started_at) VALUES (CAST(x'ff' AS TEXT), 'cli', 1.0)")
    execute(
        path,
        "UPDATE sessions SET parent_session_id = CAST(x'ff' AS TEXT) WHERE id = CAST(x'ff' AS TEXT)",
    )
    with looking(path) as context:
        assert cyclic_sessions(context.connection, context.has) == {
            PLAIN: Cycle((PLAIN,), "parents"),
            b"\xff": Cycle((b"\xff",), "parents"),
        }


# Leases


def lease(path: Path, holder: str, expires_at: float = NOW + 300) -> None:
    execute(
        path,
        "INSERT INTO session_turn_leases (conversation_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)",
        (PLAIN, holder, NOW - 10, expires_at),
    )


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PIDs are believed, wherever the tests run."""
    nobody = Processes(host="here", proc=tmp_path / "no-proc")
    monkeypatch.setattr(stale_leases, "processes_of", lambda _path, _hosts: nobody)


@pytest.mark.usefixtures("believed")
def test_a_lease_of_a_process_that_is_gone_is_stale_before_it_runs_out(path: Path) -> None:
    lease(path, f"pid={ended_process()}:turn=t")
    assert found(path, stale_leases.DAMAGE) == [("dead-holder", f"session_turn_leases {PLAIN}")]
    assert mend(stale_leases.DAMAGE, path, "remove") == 1
    assert found(path, stale_leases.DAMAGE) == []


@pytest.mark.usefixtures("believed")
@pytest.mark.parametrize(
    "holder", ["pid=1:turn=t", "nobody", "pid={gone}:host=elsewhere:turn=t", "pid=0:turn=t"]
)
def test_a_lease_of_a_living_process_of_another_host_or_of_nobody_is_left(path: Path, holder: str) -> None:
    lease(path, holder.format(gone=ended_process()))
    assert found(path, stale_leases.DAMAGE) == []


def test_a_gateway_of_another_host_makes_every_holder_doubtful(path: Path) -> None:
    execute(
        path,
        "INSERT INTO gateway_heartbeats (backend_id, pid, started_at, last_heartbeat, host) VALUES ('b', 7, ?, ?, 'elsewhere')",
        (NOW - 100, NOW - 50),
    )
    lease(path, f"pid={ended_process()}:turn=t")
    assert found(path, stale_leases.DAMAGE) == []


def test_a_lease_that_has_run_out_is_removed_only_while_nobody_has_the_file_open(path: Path) -> None:
    lease(path, "pid=1:turn=t", NOW - 1)
    plan = make_plan(look(path))
    assert [step.code for step in plan.steps] == ["HDB903"]
    with held(path):
        report = look(path)
        assert [finding.key for finding in all_of(report)] == [f"session_turn_leases {PLAIN}"]
        assert make_plan(report).steps == ()
        with pytest.raises(StalePlan):
            apply_plan(resolve(path), plan, ApplyOptions(online=True, now=NOW))
    assert apply_plan(resolve(path), plan, ApplyOptions(now=NOW)).status == "committed"
    assert all_of(look(path)) == []


def test_a_lease_that_was_renewed_since_is_not_removed(path: Path) -> None:
    lease(path, "pid=1:turn=t", NOW - 1)
    plan = make_plan(look(path))
    execute(path, "UPDATE session_turn_leases SET expires_at = ?", (NOW - 0.5,))
    with pytest.raises(StalePlan):
        apply_plan(resolve(path), plan, ApplyOptions(now=NOW))


def all_of(report: DatabaseReport) -> list[Finding]:
    return [finding for result in report.results for finding in result.findings]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process has the file open, and idles."""
    code = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute('SELECT count(*) FROM sessions').fetchone()\n"
        "print('open', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        yield
        process.stdin.write("\n")


# The ledger


def test_the_digest_of_a_request_is_that_of_its_sorted_json() -> None:
    text = '{"payload":{"principal":"é","request":"r"},"target":"s"}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert retirement.identity_key("é", "s", "r") == f"gateway.terminal_identity.v1.{digest}"
    text = '{"payload":{"operation":"execution.finish","payload":{}},"target":"s"}'
    assert retirement.closing_digest("s") == hashlib.sha256(text.encode()).hexdigest()
    path = hashlib.sha256(b"/a/b").hexdigest()
    assert retirement.retired_media_key("/a/b") == f"gateway.media.retired.v1.{path}"


def admit(path: Path, count: int, *, images: int = 0) -> None:
    """Many finished requests of a session that is gone, each with its images."""
    media = json.dumps(
        [{"path": f"/h/NUMBER/{place}.png", "sha256": "aa", "size": 3} for place in range(images)]
    )
    execute(
        path,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO session_admissions (admission_id, request_id, principal_id, target_session_id, lineage_json,"
        " payload_json, payload_digest, intent, status, outcome, owner_epoch, generation)"
        " SELECT printf('%032x', i), 'request-' || i, 'api', 'gone', '[]',"
        " json_object('text', 'words', 'api_turn_v1', json_object('media', json(replace(?, 'NUMBER', i)))),"
        " 'digest-' || i, 'queue', 'terminal', 'completed', 1, 1 FROM n",
        (count, media),
    )


def retry(path: Path, principal: str, session_id: str, request: str) -> dict[str, Any]:
    """What the store finds for a request sent again after its session was deleted: its terminal admission."""
    assert execute(path, "SELECT 1 FROM state_meta WHERE key = ?", (retirement.TOMBSTONE + session_id,))
    read = "SELECT value FROM state_meta WHERE key = ?"
    ((identity,),) = execute(path, read, (retirement.identity_key(principal, session_id, request),))
    ((saved,),) = execute(path, read, (retirement.TERMINAL_ADMISSION + json.loads(identity),))
    return dict(json.loads(saved))


def test_a_retired_request_is_answered_and_its_images_may_go(path: Path) -> None:
    admit(path, 3, images=2)
    mend(orphaned_ledger_rows.DAMAGE, path, "retire")
    answer = retry(path, "api", "gone", "request-2")
    assert (answer["payload_digest"], answer["payload_json"], answer["outcome"]) == (
        "digest-2",
        "{}",
        "completed",
    )
    kept = dict(
        execute(path, "SELECT key, value FROM state_meta WHERE key GLOB 'gateway.media.retired.v1.*'")
    )
    paths = {json.loads(value)["path"] for value in kept.values()}
    assert paths == {f"/h/{number}/{place}.png" for number in (1, 2, 3) for place in (0, 1)}
    assert set(kept) == {retirement.retired_media_key(name) for name in paths}
    assert found(path, idempotency_leftovers.DAMAGE) == []
    assert found(path, orphaned_ledger_rows.DAMAGE) == []


def test_an_image_that_two_requests_share_is_written_once(path: Path) -> None:
    admit(path, 2, images=1)
    execute(path, "UPDATE session_admissions SET payload_json = replace(payload_json, '/h/2/', '/h/1/')")
    admit_again = "INSERT INTO state_meta (key, value) VALUES (?, '{}')"
    execute(path, admit_again, (retirement.retired_media_key("/h/elsewhere.png"),))
    mend(orphaned_ledger_rows.DAMAGE, path, "retire")
    count = "SELECT count(*) FROM state_meta WHERE key GLOB 'gateway.media.retired.v1.*'"
    assert execute(path, count) == [(2,)]


def test_no_statement_and_no_number_of_statements_grows_with_the_requests(path: Path) -> None:
    admit(path, 2_000, images=2)
    (finding,) = findings(orphaned_ledger_rows.DAMAGE, path)
    step = finding.remedies[1].step
    assert step is not None
    assert len(step.statements) == 5
    assert all(len(statement.bindings) <= 2 for statement in step.statements)
    assert mend(orphaned_ledger_rows.DAMAGE, path, "retire") == 2_000 + 2_000 + 4_000 + 2_000 + 1


def test_words_in_thousands_of_keys_are_emptied_by_one_statement(path: Path) -> None:
    execute(
        path,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO state_meta (key, value) SELECT printf('gateway.mutation.v1.%064x', i),"
        " json_object('digest', 'd', 'result', json_object('session_id', 'gone', 'title', 'words')) FROM n",
    )
    (finding,) = findings(idempotency_leftovers.DAMAGE, path)
    assert finding.evidence["changes"] == 3000
    assert mend(idempotency_leftovers.DAMAGE, path, "compact") == 3000
    assert found(path, idempotency_leftovers.DAMAGE) == []


def test_a_lost_identity_answers_its_request_again(path: Path) -> None:
    admit(path, 1)
    mend(orphaned_ledger_rows.DAMAGE, path, "retire")
    execute(path, "DELETE FROM state_meta WHERE key GLOB 'gateway.terminal_identity.v1.*'")
    assert [kind for kind, _key in found(path, idempotency_leftovers.DAMAGE)] == ["lost-identity"]
    assert mend(idempotency_leftovers.DAMAGE, path, "compact") == 1
    assert retry(path, "api", "gone", "request-1")["payload_digest"] == "digest-1"


def test_neither_finding_nor_plan_holds_words_requests_or_secrets(path: Path) -> None:
    admit(path, 2, images=1)
    execute(path, "UPDATE session_admissions SET payload_json = json_set(payload_json, '$.text', 'SECRET')")
    execute(path, "UPDATE session_admissions SET request_id = 'SECRET' || seq, principal_id = 'SECRET'")
    execute(path, "UPDATE worker_executions SET session_id = 'gone', adoption_digest = 'SECRET'")
    execute(path, "UPDATE worker_receipts SET result_json = 'SECRET'")
    for number, key in enumerate(("gateway.api.conversation.v1.SECRET", "gateway.mutation.v1.a")):
        value = ("gone", '{"result": {"session_id": "gone", "title": "SECRET"}}')[number]
        execute(path, "INSERT INTO state_meta (key, value) VALUES (?, ?)", (key, value))
    execute(
        path,
        'INSERT INTO gateway_routing VALUES (\'\', \'SECRET\', \'{"session_key": "SECRET", "session_id": "gone"}\', 1.0)',
    )
    lease(path, "SECRET", NOW - 1)
    report = look(path)
    assert {finding.code for finding in all_of(report)} == {"HDB207", "HDB208", "HDB901", "HDB903", "HDB904"}
    assert "SECRET" not in repr(all_of(report))


def test_a_prompt_in_the_place_of_its_hash_is_not_printed(path: Path) -> None:
    execute(path, "INSERT INTO system_prompts VALUES ('You are SECRET.', ''), ('You are SECRET too.', 'x')")
    named = findings(unreferenced_system_prompts.DAMAGE, path)
    assert [finding.key.partition(":")[0] for finding in named] == ["not-a-hash"] * 2
    assert "SECRET" not in repr([(one.key, one.message, one.evidence) for one in named])
    assert mend(unreferenced_system_prompts.DAMAGE, path, "drop") == 2


def test_everything_that_one_lost_session_leaves_is_mended_in_one_plan_and_taken_back(path: Path) -> None:
    admit(path, 3, images=1)
    execute(path, "UPDATE session_admissions SET payload_json = '{}'")
    execute(path, "UPDATE worker_executions SET session_id = 'gone'")
    values = {
        "goal:gone": "{}",
        "gateway.api.settings.v1.gone": "{}",
        "gateway.api.binding.v1.gone": "{}",
        "gateway.api.conversation.v1.a": "gone",
        "gateway.local_policy.v1:gone": '{"entry": {"session_id": "gone"}}',
        "gateway.mutation.v1.a": '{"result": {"session_id": "gone", "title": "words"}}',
    }
    for key, value in values.items():
        execute(path, "INSERT INTO state_meta (key, value) VALUES (?, ?)", (key, value))
    entry = '{"session_key": "k", "session_id": "gone"}'
    execute(path, "INSERT INTO gateway_routing VALUES ('', 'k', ?, 1.0)", (entry,))
    execute(path, "INSERT INTO compression_locks VALUES ('gone', 'pid=1', 1.8e9, 1.8e9)")
    execute(path, "UPDATE compression_locks SET acquired_at = ?, expires_at = ?", (NOW - 900, NOW - 600))
    before = digest(path)
    report = look(path)
    assert {finding.code for finding in all_of(report)} == {"HDB207", "HDB208", "HDB901", "HDB903", "HDB904"}
    choices = {"orphaned-ledger-rows": "retire", "idempotency-leftovers": "compact"}
    plan = make_plan(report, PlanOptions(choices, allow_lossy=True))
    assert len(plan.steps) == len(all_of(report)), plan.skipped
    receipt = apply_plan(resolve(path), plan, ApplyOptions(now=NOW))
    assert all_of(look(path)) == []
    undo(resolve(path), receipt, UndoOptions(now=NOW))
    assert digest(path) == before


# Bad values


def spoiled(path: Path) -> None:
    """Every kind of bad value in every place that these classes read."""
    undecodable = b'{"session_id": "\xff", "session_key": "\xff"}'.hex()
    execute(path, f"INSERT INTO gateway_routing VALUES ('', 'k', CAST(x'{undecodable}' AS TEXT), 1.0)")
    bad = (
        b"\xff\xfe",
        "CAST(x'ff41' AS TEXT)",
        "'not json'",
        "NULL",
        "1e999",
        "'[1, {'",
        "'\"text\"'",
        "x'00'",
    )
    for number, value in enumerate(bad):
        text = value if isinstance(value, str) else "x'fffe'"
        for prefix in PREFIXES:
            execute(path, f"INSERT INTO state_meta (key, value) VALUES ('{prefix}' || {number}, {text})")
            execute(
                path,
                f"INSERT INTO state_meta (key, value) VALUES ('{prefix}' || {number} || CAST(x'ff' AS TEXT), '{{}}')",
            )
        if text != "NULL":
            execute(path, f"INSERT INTO gateway_routing VALUES ('', 'k{number}', {text}, {text})")
            execute(path, f"INSERT INTO session_turn_leases VALUES ('s{number}', {text}, {text}, {text})")
            execute(path, f"INSERT INTO compression_locks VALUES ({text}, {text}, 1.0, 2.0)")
            execute(path, f"INSERT INTO system_prompts VALUES ({text}, 'x')")
            execute(
                path,
                "INSERT INTO async_delegations (delegation_id, origin_session, parent_session_id, state, dispatched_at,"
                " updated_at, delivery_state, origin_session_id)"
                f" VALUES ('d{number}', '', {text}, {text}, {text}, 1.0, {text}, {text})",
            )
            execute(
                path,
                "INSERT INTO session_admissions (admission_id, request_id, principal_id, target_session_id, lineage_json,"
                " payload_json, payload_digest, intent, status, owner_epoch, generation)"
                f" VALUES ('a{number}', {text}, 'p{number}', {text}, {text}, {text}, {text}, 'queue', 'terminal', {text}, 1)",
            )
            execute(
                path,
                "INSERT INTO worker_executions VALUES (?, "
                + text
                + ", 'cron', "
                + text
                + ", 1, 'unknown', 'd', 1)",
                (f"w{number}",),
            )
            execute(path, f"INSERT INTO worker_receipts VALUES ('gone{number}', 1, {text}, {text})")
        execute(path, f"UPDATE sessions SET model_config = {text} WHERE rowid = {number + 1}")


PREFIXES = (
    *("goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.api.conversation.v1."),
    *("gateway.local_policy.v1:", "gateway.retired_session.v1.", "gateway.terminal_admission.v1."),
    *("gateway.terminal_identity.v1.", "gateway.terminal_worker.v1.", "gateway.admission.result.v1."),
    "gateway.mutation.v1.",
)


@pytest.mark.parametrize("damage", MINE, ids=lambda damage: damage.slug)
def test_bad_values_stop_no_class_and_keys_stay_unique(path: Path, damage: Damage) -> None:
    spoiled(path)
    some = findings(damage, path)
    keys = [finding.key for finding in some]
    assert len(keys) == len(set(keys))
    assert some == findings(damage, path, trust_indexes=False)
    if damage.code not in ("HDB305", "HDB902", "HDB905"):
        assert keys


@pytest.mark.parametrize("damage", MINE, ids=lambda damage: damage.slug)
def test_every_answer_mends_what_it_says_among_bad_values(path: Path, damage: Damage) -> None:
    spoiled(path)
    for answer in damage.answers:
        mend(damage, path, answer)
    left = [
        finding.key
        for finding in findings(damage, path)
        if any(remedy.step and not remedy.refused for remedy in finding.remedies)
    ]
    assert left == []
