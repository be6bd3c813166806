"""What README and the reference say is what there is."""

from __future__ import annotations

import os
import re

import pytest

from hermes_dbtools.cli import COMMANDS
from tests import reference_text
from tests.reference_text import WRITE
from tests.running import CHECKOUT

FILE = CHECKOUT / "README.md"
REFERENCE = CHECKOUT / "runbooks" / "reference.md"

PARTS = {"catalogue": reference_text.catalogue_table, "commands": reference_text.commands_table}


@pytest.mark.parametrize("name", PARTS)
def test_the_generated_parts_of_readme(name: str) -> None:
    text = FILE.read_text("utf-8")
    part = PARTS[name]()
    if os.environ.get(WRITE):
        FILE.write_text(reference_text.with_generated(text, name, part), "utf-8")
        return
    assert reference_text.generated(text, name) == part, f"{WRITE}=1 writes it anew"


def test_the_reference() -> None:
    text = reference_text.reference()
    if os.environ.get(WRITE):
        REFERENCE.write_text(text, "utf-8")
        return
    assert REFERENCE.read_text("utf-8") == text, f"{WRITE}=1 writes it anew"


def test_the_exit_codes_of_readme_are_those_of_the_commands() -> None:
    section = FILE.read_text("utf-8").split("## Exit codes")[1].split("\n## ")[0]
    assert {
        int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)
    } == reference_text.exit_codes()


def test_every_command_of_the_group_is_in_the_table() -> None:
    table = reference_text.commands_table()
    assert [name for name in COMMANDS if f"| `{name}" not in table] == []


def test_the_commands_that_readme_names_exist() -> None:
    for word in re.findall(r"hermes-dbtools (\w+)", FILE.read_text("utf-8")):
        assert word in COMMANDS, word


def test_no_placeholder_is_left() -> None:
    assert not re.search(r"^(SESSION|CATALOGUE|SPEED)$|TODO", FILE.read_text("utf-8"), re.MULTILINE)
