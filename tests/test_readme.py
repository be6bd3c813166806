"""What README says is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from hermes_dbtools.cli import COMMANDS
from hermes_dbtools.damage import REGISTRY

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_the_catalogue_in_readme_is_the_registry() -> None:
    rows = re.findall(r"^\| (HDB\d{3}) \| `([a-z-]+)` \| (\w+) \| (.+) \|$", README, re.MULTILINE)
    assert rows == [
        (d.code, d.slug, d.severity.word, d.title) for d in sorted(REGISTRY, key=lambda d: d.code)
    ]


def test_every_command_stands_in_readme_and_every_command_there_exists() -> None:
    section = README.split("## Commands")[1].split("## Exit codes")[0]
    named = {
        word
        for cell in re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
        for word in re.findall(r"`(\w+)", cell)
    }
    assert named >= set(COMMANDS)
    for line in re.findall(r"hermes-dbtools (\w+)", README):
        assert line in COMMANDS, line


def test_no_placeholder_is_left() -> None:
    assert not re.search(r"^(SESSION|CATALOGUE|SPEED)$|TODO", README, re.MULTILINE)
