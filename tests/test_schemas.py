"""Every document that the tool prints or keeps is what its published schema says, and none has no schema."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from hermes_dbtools import schemas
from hermes_dbtools.cli import cli, scan
from tests.published import checked, commands_with_json
from tests.repairs import CHAT, CONTINUATION, COUNTERS, LOST_SESSION, ROOT, THIRD, new_home
from tests.running import CHECKOUT, PUBLISHER
from tests.shapes.make import execute

ENDLESS_LEASE = (
    "INSERT INTO session_turn_leases (conversation_id, holder, acquired_at, expires_at)"
    f" VALUES ('{ROOT}', 'pid=1:turn=t1', 1, 9e999)"
)
"""A session that is live until its lease is taken away."""

Asked = tuple[str, str, int]

LIFE: tuple[Asked, ...] = (
    ("scan DB FOLDER/missing.db", "report", 1),
    ("scan DB --timings", "report", 1),
    ("scan DB --baseline FOLDER/known.json --update-baseline", "report", 0),
    ("scan DB --baseline FOLDER/known.json --host web1 --output FOLDER/web1.json", "", 0),
    ("report merge FOLDER/web1.json", "merged-report", 0),
    (f"explain DB {THIRD}", "explain", 1),
    ("explain DB --log FOLDER/agent.log", "explain", 1),
    ("sessions list DB", "sessions", 0),
    (f"sessions show {ROOT} --home DB", "session", 0),
    ("space DB", "space", 0),
    ("backup DB", "backup", 0),
    ("backup DB", "backup", 0),
    ("backup DB --list", "backups", 0),
    ("repair DB", "plan", 1),
    ("repair DB --rehearse --save-plan FOLDER/plan.json", "plan", 1),
    ("repair DB --apply --yes", "receipt", 1),
    ("repair DB --apply --yes", "plan", 1),
    ("undo DB", "receipt", 0),
    ("undo DB --apply --yes", "receipt", 0),
    ("history DB", "history", 0),
    ("restore latest DB", "restore", 0),
    ("restore latest DB --apply --yes", "restore", 0),
    ("backup DB --list", "backups", 0),
    (f"sessions rebuild {THIRD} --home DB", "plan", 0),
    (f"sessions rebuild {THIRD} --home DB --apply --yes", "receipt", 0),
    (f"sessions export {ROOT} --home DB -o -", "export", 0),
    (f"sessions delete {CHAT} {ROOT} --home DB", "plan", 1),
    (f"sessions delete {CHAT} {ROOT} --home DB --apply --yes", "deletion", 1),
    ("sessions prune --older-than 1d --home DB", "plan", 1),
    ("sessions prune --older-than 1d --home DB --apply --yes", "deletion", 1),
    (f"sessions show {CONTINUATION} --home DB", "session", 0),
    ("history DB", "history", 0),
    ("compare FOLDER/old.db DB", "compare", 1),
    ("salvage DB FOLDER/salvaged.db", "salvage", 0),
)
"""The life of one store: commands in order, the document that each prints, and its exit code."""


def test_every_command_prints_what_its_schema_says(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "30", LOST_SESSION, COUNTERS, ENDLESS_LEASE)
    execute(home.database, "VACUUM INTO ?", (str(tmp_path / "old.db"),))
    (tmp_path / "agent.log").write_text("Session DB append_message failed: FOREIGN KEY constraint failed\n")
    told = []
    for line, _name, _code in LIFE:
        words = line.replace("DB", str(home.root)).replace("FOLDER", str(tmp_path)).split()
        ran = CliRunner().invoke(cli, [*words, "--format", "json"])
        told.append((line, checked(ran.stdout_bytes)[0] if ran.stdout_bytes else "", ran.exit_code))
    assert told == list(LIFE)
    found = [checked(path.read_bytes())[0] for path in tmp_path.rglob("*.json")]
    assert set(found) == {"report", "baseline", "plan", "receipt", "manifest"}


def test_every_command_and_every_document_has_its_place_in_that_life() -> None:
    asked = {words for words in commands_with_json() if any(line.startswith(words) for line, *_ in LIFE)}
    assert asked == commands_with_json()
    kept = {"baseline", "manifest"}
    assert {name for _line, name, _code in LIFE} | kept == {"", *schemas.TYPES}


def test_every_format_that_the_code_names_has_a_schema() -> None:
    files = (CHECKOUT / "hermes_dbtools").rglob("*.py")
    named = {
        word for path in files for word in re.findall(rf'"{PUBLISHER}([a-z-]+)"', path.read_text("utf-8"))
    }
    assert named == set(schemas.TYPES) == set(scan.DOCUMENTS)


@pytest.mark.parametrize("name", schemas.TYPES)
def test_a_schema_is_printed_and_says_of_which_document_it_is(name: str) -> None:
    ran = CliRunner().invoke(cli, ["scan", "--json-schema", name])
    assert ran.exit_code == 0
    printed = json.loads(ran.stdout_bytes)
    assert printed == json.loads(msgspec.json.encode(schemas.json_schema(name)))
    (body,) = [one for one in printed["$defs"].values() if one.get("title") == schemas.TYPES[name].__name__]
    assert body["properties"]["format"]["enum"] == [PUBLISHER + name]
    assert body["properties"]["format_version"]["enum"] == [1]
