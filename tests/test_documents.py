"""What a document says comes back as it was: every value that a column can hold."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools import documents, plan_documents
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.model import (
    FileCopy,
    Plan,
    Receipt,
    Skipped,
    SkippedActive,
    Statement,
    Step,
    UsageError,
    Value,
)
from hermes_dbtools.plan import fingerprint, totals

values: st.SearchStrategy[Value] = (
    st.none()
    | st.text()
    | st.binary()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.sampled_from(["inf", "-inf", '{"hex": "ff"}', "\0json:[]"])
)
damages = [damage for damage in REGISTRY if damage.code in ("HDB201", "HDB203", "HDB501")]
texts = st.text(max_size=20)
copies = st.builds(FileCopy, source=texts, target=texts, sha256=texts, size=st.integers(0, 2**40))


@st.composite
def steps(draw: st.DrawFn) -> Step:
    damage = draw(st.sampled_from(damages))
    blocks = {"HDB201": ["adopt", "purge"], "HDB203": ["drop"], "HDB501": ["recount"]}[damage.code]
    known = [name for name in blocks if _has_block(damage.code, name)] or [_any_block(damage.code)]
    statements = st.builds(
        Statement,
        block=st.sampled_from(known),
        bindings=st.dictionaries(texts, values, max_size=4),
        expect=st.integers(0, 2**40),
        table=texts,
        operation=st.sampled_from(["insert", "update", "delete"]),
        split=st.none() | texts,
    )
    done = tuple(draw(st.lists(statements, max_size=3)))
    files = tuple(draw(st.lists(copies, min_size=0 if done else 1, max_size=2)))
    return Step(
        damage.code, damage.slug, draw(texts), draw(texts), draw(texts),
        tuple(draw(st.lists(values, max_size=3))), done, files, draw(st.integers(0, 2**40)),
    )  # fmt: skip


def _has_block(code: str, name: str) -> bool:
    return name in _blocks(code)


def _any_block(code: str) -> str:
    return _blocks(code)[0]


def _blocks(code: str) -> list[str]:
    from hermes_dbtools import queries

    (damage,) = [damage for damage in REGISTRY if damage.code == code]
    return [query.name for query in queries.load(damage.sql)]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    planned = tuple(draw(st.lists(steps(), max_size=3)))
    return Plan(
        database=draw(texts),
        fingerprint=fingerprint(planned),
        steps=planned,
        skipped=tuple(draw(st.lists(st.builds(Skipped, texts, texts, texts, texts), max_size=2))),
        skipped_active=tuple(
            draw(st.lists(st.builds(SkippedActive, texts, texts, texts, values, texts), max_size=2))
        ),
        choices=draw(st.dictionaries(texts, texts, max_size=2)),
        allow_lossy=draw(st.booleans()),
        max_rows=draw(st.integers(0, 2**40)),
        idle=draw(st.none() | st.floats(1, 1e9)),
    )


@given(values)
def test_every_value_comes_back(value: Value) -> None:
    document = json.loads(json.dumps(documents.packed(value), allow_nan=False))
    back = documents.value(document)
    assert back == value
    assert type(back) is type(value)
    if isinstance(value, float):
        assert math.copysign(1, value) == math.copysign(1, float(back or 0.0)) or value == 0


@pytest.mark.parametrize(
    "document",
    [
        2**63,
        -(2**63) - 1,
        True,
        [],
        {},
        {"hex": "z"},
        {"hex": 1},
        {"real": "1"},
        {"real": "nan"},
        {"hex": "", "real": "inf"},
    ],
)
def test_what_no_column_can_hold_is_none(document: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        documents.value(document)


@given(plans())
@settings(max_examples=200, deadline=None)
def test_every_plan_comes_back(plan: Plan) -> None:
    content = documents.encode(plan_documents.plan_document(plan, totals(plan)))
    json.loads(content, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert plan_documents.decode_plan(content, "plan.json") == plan
    assert documents.encode(plan_documents.plan_document(plan, totals(plan))) == content


@given(plans())
@settings(max_examples=50, deadline=None)
def test_an_applied_plan_of_another_release_is_still_read(plan: Plan) -> None:
    document = plan_documents.plan_document(plan, totals(plan))
    for entry in document["steps"]:
        if "sql" in entry:
            entry["sql"] = "SELECT 1;"
    content = documents.encode(document)
    assert plan_documents.decode_plan(content, "plan.json", applied=True) == plan
    if any(step.statements for step in plan.steps):
        with pytest.raises(UsageError, match="its SQL is not that of"):
            plan_documents.decode_plan(content, "plan.json")


receipts = st.builds(
    Receipt,
    id=texts,
    status=st.sampled_from(["pending", "committed", "rolled-back", "undone"]),
    database=texts,
    created_at=st.floats(0, 2e9),
    tool=st.dictionaries(texts, texts, max_size=2),
    fingerprint=texts,
    steps=st.integers(0, 99),
    codes=st.dictionaries(texts, st.integers(0, 99), max_size=2),
    changed=st.dictionaries(texts, st.integers(0, 99), max_size=2),
    cascaded=st.dictionaries(texts, st.integers(0, 99), max_size=2),
    undo=texts,
    undo_sha256=texts,
    backup=texts,
    lock_seconds=st.floats(0, 1e6),
    files=st.lists(copies, max_size=2).map(tuple),
    search_rebuilt=st.lists(texts, max_size=2).map(tuple),
    nul_rule=st.sampled_from(["", "stops", "whole"]),
    lists_sha256=st.dictionaries(texts, texts, max_size=2),
)


@given(receipts)
@settings(max_examples=100, deadline=None)
def test_every_receipt_comes_back(receipt: Receipt) -> None:
    content = documents.encode_receipt(receipt)
    assert json.loads(content)["format"] == "hermes-dbtools/receipt"
    assert documents.decode_receipt(content) == receipt


@given(receipts, st.integers(1, 400))
@settings(max_examples=100, deadline=None)
def test_a_receipt_cut_short_is_none(receipt: Receipt, cut: int) -> None:
    content = documents.encode_receipt(receipt)
    with pytest.raises((msgspec.MsgspecError, ValueError)):
        documents.decode_receipt(content[: max(0, len(content) - 1 - cut)])
