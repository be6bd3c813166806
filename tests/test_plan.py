"""A plan is a pure function of a report and of what the operator allows; every finding is in exactly one place."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools.model import (
    DatabaseReport,
    Finding,
    LiveSession,
    Remedy,
    Result,
    Safety,
    Severity,
    ShapeSummary,
    Statement,
    Status,
    Step,
    Value,
)
from hermes_dbtools.plan import (
    DEFAULT_MAX_ROWS,
    PlanOptions,
    fingerprint,
    make_plan,
    rows_removed,
    totals,
)

SESSIONS: tuple[Value, ...] = ("one", "two", "three", b"\xff")
ANSWERS = ("adopt", "purge", "report")
SLUGS = (("HDB201", "orphaned-messages"), ("HDB203", "orphaned-usage"), ("HDB501", "session-counter-drift"))

statements = st.builds(
    Statement,
    block=st.sampled_from(["a", "b"]),
    bindings=st.fixed_dictionaries({"id": st.sampled_from(SESSIONS)}),
    expect=st.integers(0, 6_000),
    table=st.sampled_from(["messages", "sessions", "session_model_usage"]),
    operation=st.sampled_from(["insert", "update", "delete"]),
)


@st.composite
def findings(draw: st.DrawFn, code: str, slug: str, key: str) -> Finding:
    sessions = tuple(draw(st.lists(st.sampled_from(SESSIONS), max_size=2)))
    remedies = []
    for answer in draw(st.lists(st.sampled_from(ANSWERS), unique=True, max_size=3)):
        done = tuple(draw(st.lists(statements, min_size=1, max_size=2)))
        touched = (*sessions, *draw(st.lists(st.sampled_from(SESSIONS), max_size=1)))
        step = Step(
            code, slug, key, answer, f"{answer} {key}", touched, done, bytes_freed=draw(st.integers(0, 9))
        )
        remedies.append(
            Remedy(
                answer,
                draw(st.sampled_from(list(Safety))),
                None if answer == "report" else step,
                draw(st.sampled_from([None, None, "it is refused"])),
            )
        )
    return Finding(code, slug, Severity.ERROR, "messages", key, "m", {}, sessions, remedies=tuple(remedies))


@st.composite
def reports(draw: st.DrawFn) -> DatabaseReport:
    results = []
    for code, slug in SLUGS:
        keys = [f"{slug} {number}" for number in range(draw(st.integers(0, 3)))]
        found = tuple(draw(findings(code, slug, key)) for key in keys)
        status = Status.DAMAGED if found else Status.CLEAN
        results.append(
            Result(
                code,
                slug,
                "references",
                Severity.ERROR,
                status,
                count=len(found),
                findings=found,
                extent=draw(st.sampled_from(["rows", "session", "apart"])),
            )
        )
    for code, slug in (("HDB002", "structural-damage"), ("HDB805", "unavailable-tokenizer")):
        status = draw(st.sampled_from([Status.CLEAN] * 9 + [Status.DAMAGED]))
        results.append(Result(code, slug, "storage", Severity.ERROR, status))
    live = draw(st.lists(st.sampled_from(SESSIONS), unique=True, max_size=2))
    return DatabaseReport(
        path="/home/state.db",
        size=1,
        journal_mode="wal",
        shape=ShapeSummary(22, draw(st.sampled_from([True] * 9 + [False])), (), "inline"),
        holders=(),
        uninspected_processes=0,
        results=tuple(results),
        live=tuple(LiveSession(session, "turn lease") for session in live),
        all_live=draw(st.sampled_from([""] * 9 + ["it cannot be read who is live"])),
        message_total=draw(st.integers(0, 20_000)),
    )


options = st.builds(
    PlanOptions,
    choices=st.dictionaries(st.sampled_from([slug for _code, slug in SLUGS]), st.sampled_from(ANSWERS)),
    allow_lossy=st.booleans(),
    max_rows=st.none() | st.integers(0, 20_000),
)


@given(reports(), options)
@settings(max_examples=300, deadline=None)
def test_every_finding_is_in_exactly_one_place(report: DatabaseReport, allowed: PlanOptions) -> None:
    plan = make_plan(report, allowed)
    found = Counter((f.slug, f.key) for result in report.results for f in result.findings)
    places = itertools.chain(
        ((step.slug, step.key) for step in plan.steps),
        ((skip.slug, skip.key) for skip in plan.skipped),
        ((skip.slug, skip.key) for skip in plan.skipped_active),
    )
    assert Counter(places) == found
    assert all(skip.reason for skip in plan.skipped)


@given(reports(), options)
@settings(max_examples=300, deadline=None)
def test_equal_reports_give_equal_plans_in_the_order_of_the_report(
    report: DatabaseReport, allowed: PlanOptions
) -> None:
    plan = make_plan(report, allowed)
    assert make_plan(report, allowed) == plan
    assert plan.fingerprint == fingerprint(plan.steps)
    order = [f.key for result in report.results for f in result.findings]
    places = [order.index(step.key) for step in plan.steps]
    assert places == sorted(places)


@given(reports(), options)
@settings(max_examples=300, deadline=None)
def test_no_step_is_planned_that_was_not_allowed(report: DatabaseReport, allowed: PlanOptions) -> None:
    plan = make_plan(report, allowed)
    known = {
        (f.key, r.answer): (f, r) for result in report.results for f in result.findings for r in f.remedies
    }
    live = {session.session_id for session in report.live}
    for step in plan.steps:
        finding, remedy = known[step.key, step.answer]
        assert remedy.step == step
        assert remedy.refused is None
        assert remedy.safety is not Safety.LOSSY or allowed.allow_lossy
        assert not live & {*finding.session_ids, *step.session_ids}
        assert not (report.all_live and (finding.session_ids or step.session_ids))
        chosen = allowed.choices.get(finding.slug)
        answers = [one.answer for one in finding.remedies]
        assert step.answer == (chosen if chosen in answers else answers[0])
    if plan.steps:
        assert report.shape is not None
        assert report.shape.known
        assert not any(r.code == "HDB002" and r.status is Status.DAMAGED for r in report.results)
    if any(r.code == "HDB805" and r.status is Status.DAMAGED for r in report.results):
        assert not any(s.table == "messages" for step in plan.steps for s in step.statements)


@given(reports(), options)
@settings(max_examples=300, deadline=None)
def test_what_stops_the_whole_file_is_the_reason_of_every_skip(
    report: DatabaseReport, allowed: PlanOptions
) -> None:
    if not any(r.code == "HDB002" and r.status is Status.DAMAGED for r in report.results):
        return
    by_hand = {f.key for result in report.results for f in result.findings if not f.remedies}
    for skip in make_plan(report, allowed).skipped:
        assert (
            skip.key in by_hand
            or "comes first" in skip.reason
            or "newer" in skip.reason
            or "refused" in skip.reason
        )


@given(reports(), options)
@settings(max_examples=300, deadline=None)
def test_no_plan_removes_more_rows_than_it_may(report: DatabaseReport, allowed: PlanOptions) -> None:
    plan = make_plan(report, allowed)
    removed = sum(rows_removed(step) for step in plan.steps)
    assert removed == totals(plan)["rows_removed"]
    assert removed <= plan.max_rows
    assert plan.max_rows == (DEFAULT_MAX_ROWS if allowed.max_rows is None else allowed.max_rows)
    if allowed.max_rows is None:
        assert sum(rows_removed(step, "messages") for step in plan.steps) <= report.message_total // 2


@given(reports(), options)
@settings(max_examples=100, deadline=None)
def test_the_named_limit_is_enough(report: DatabaseReport, allowed: PlanOptions) -> None:
    plan = make_plan(report, allowed)
    limits = {int(s.reason.rpartition("--max-rows ")[2]) for s in plan.skipped if "--max-rows" in s.reason}
    assert len(limits) <= 1
    for limit in limits:
        raised = make_plan(report, PlanOptions(allowed.choices, allowed.allow_lossy, limit))
        assert not any("--max-rows" in skip.reason for skip in raised.skipped)
        assert sum(rows_removed(step) for step in raised.steps) == limit


@given(st.lists(statements, min_size=2, max_size=4))
def test_a_fingerprint_tells_every_step_apart(some: list[Statement]) -> None:
    steps = [Step("HDB201", "orphaned-messages", "k", "adopt", "t", (), (one,)) for one in some]
    for first, second in itertools.combinations(steps, 2):
        assert (fingerprint((first,)) == fingerprint((second,))) == (first == second)
    assert fingerprint(steps) != fingerprint(steps[1:])


def test_a_fingerprint_tells_values_apart_that_json_does_not() -> None:
    made = [
        fingerprint((Step("HDB201", "orphaned-messages", "k", "adopt", "t", (one,)),))
        for one in (b"ab", "YWI=", None, float("inf"), float("-inf"), 1, 1.0, "1")
    ]
    assert len(set(made)) == len(made)
