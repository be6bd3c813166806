"""Every document that the tool prints is what its published schema says."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hermes_dbtools import schemas
from tests.repairs import LOST_SESSION, new_home
from tests.running import tool


@pytest.mark.parametrize("options", [(), ("--timings",)], ids=["plain", "timings"])
def test_a_report_fits_its_schema(tmp_path: Path, options: tuple[str, ...]) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    out = tool("scan", str(home.database), str(tmp_path / "missing.db"), "--format", "json", *options).out
    report = msgspec.json.decode(out, type=schemas.ReportDocument)
    assert {result.status for result in report.databases[0].results} >= {"damaged", "clean"}
    assert report.databases[1].error


def test_plans_and_receipts_fit_their_schemas(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    plan = tool("repair", str(home.database), "--format", "json").out
    assert msgspec.json.decode(plan, type=schemas.PlanDocument).steps
    receipt = tool("repair", str(home.database), "--apply", "--yes", "--format", "json").out
    assert msgspec.json.decode(receipt, type=schemas.Receipt).status == "committed"


@pytest.mark.parametrize("name", schemas.TYPES)
def test_a_schema_is_printed_and_names_what_every_document_has(name: str) -> None:
    ran = tool("scan", "--json-schema", name)
    assert ran.code == 0
    printed = json.loads(ran.out)
    assert printed == json.loads(msgspec.json.encode(schemas.json_schema(name)))
    (body,) = [one for one in printed["$defs"].values() if one.get("title") == schemas.TYPES[name].__name__]
    assert body["required"]
