from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .measure import Run, timed, tool

pytestmark = pytest.mark.bench

MILLION = 1_000_000
SESSIONS = 5_000

BY_HAND = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
started = time.perf_counter()
for sql in (
    "PRAGMA foreign_key_check",
    "SELECT COUNT(*) FROM messages AS m LEFT JOIN sessions AS s ON s.id = m.session_id WHERE s.id IS NULL",
    "SELECT COUNT(*) FROM sessions AS c LEFT JOIN sessions AS p ON p.id = c.parent_session_id"
    " WHERE c.parent_session_id IS NOT NULL AND p.id IS NULL",
):
    connection.execute(sql).fetchall()
print(time.perf_counter() - started)
"""
QUICK_CHECK = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
started = time.perf_counter()
connection.execute("PRAGMA quick_check").fetchall()
print(time.perf_counter() - started)
"""

Built = Callable[..., Path]
Figure = Callable[[str], None]


def best(times: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(times))


def scanned(path: Path, *options: str) -> tuple[Run, float, float]:
    """The run, the seconds of the classes alone and those of the structural gate."""
    done = tool("scan", str(path), "--format", "json", "--timings", *options)
    assert done.code == 0, done.out
    (database,) = json.loads(done.out)["databases"]
    return done, sum(result["seconds"] for result in database["results"]), database["gate_seconds"]


def test_references_and_lineage_cost_sessions_not_messages(built: Built, figure: Figure) -> None:
    small, large = built(MILLION // 10, SESSIONS), built(MILLION, SESSIONS)
    select = ("--select", "references,lineage")
    classes_small = best(5, lambda: scanned(small, *select)[1])
    classes_large = best(5, lambda: scanned(large, *select)[1])
    by_hand = best(3, lambda: timed(BY_HAND, str(large)))
    whole = best(3, lambda: scanned(large, *select)[0].seconds)
    quick_check = timed(QUICK_CHECK, str(large))
    figure(
        f"references and lineage: classes {classes_large:.3f} s at 1,000,000 messages, {classes_small:.3f} s at 100,000;"
        f" by hand {by_hand:.2f} s ({classes_large / by_hand:.2f} x);"
        f" whole command {whole:.2f} s against {by_hand + quick_check:.1f} s with quick_check"
        f" ({whole / (by_hand + quick_check):.2f} x)"
    )
    assert classes_large <= 0.25 * by_hand
    assert classes_large <= 2 * classes_small + 0.01, (
        "ten times the messages in as many sessions must not cost more"
    )
    assert whole <= 0.25 * (by_hand + quick_check)


def test_a_default_scan_costs_half_a_quick_check_at_most(built: Built, figure: Figure) -> None:
    path = built(MILLION, SESSIONS)
    done, _classes, gate = min((scanned(path) for _ in range(3)), key=lambda one: one[0].seconds)
    quick_check = timed(QUICK_CHECK, str(path))
    beyond = done.seconds - gate
    figure(
        f"default scan: {done.seconds:.2f} s, {beyond:.2f} s beyond the structural check, quick_check {quick_check:.1f} s"
        f" ({beyond / quick_check:.2f} x)"
    )
    assert beyond <= 0.5 * quick_check


def test_memory_is_the_same_at_three_times_the_size(built: Built, figure: Figure) -> None:
    one = scanned(built(MILLION, SESSIONS))[0].peak_bytes
    three = scanned(built(3 * MILLION, SESSIONS))[0].peak_bytes
    figure(
        f"peak memory of a scan: {one / 1e6:.0f} MB at 1,000,000 messages, {three / 1e6:.0f} MB at 3,000,000"
    )
    assert one < 120e6
    assert three < 120e6
    assert three < 1.2 * one
