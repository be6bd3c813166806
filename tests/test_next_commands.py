"""What `next:` prints: from a scan on, each command as the one before printed it, until nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.printed import commands, typed
from tests.running import tool_here

CHAINS = {
    "unmarked-branches": ["", " --choose unmarked-branches=mark", " --choose unmarked-branches=mark --apply"],
    "orphaned-usage": ["", " --allow-lossy", " --allow-lossy --apply"],
    "orphaned-messages": ["", " --apply"],
    "search-shadow-leftovers": ["", " --apply"],
}
"""The options of the repairs that follow a scan."""


@pytest.mark.parametrize("slug", CHAINS)
def test_a_scan_leads_to_a_mended_file(slug: str, tmp_path: Path) -> None:
    path = tmp_path / "it's one.db"
    assert tool_here("fixture", path, "--damage", slug).code == 0
    ran = tool_here("scan", path)
    for options in CHAINS[slug]:
        command = commands(ran)[0]
        assert command.startswith("hermes-dbtools repair ")
        assert command.endswith(f".db'{options}")
        ran = typed(command, tmp_path)
    assert ran.code == 0, ran.out + ran.err
    assert tool_here("scan", path).code == 0


def test_what_is_mended_by_hand_alone_leads_to_its_runbook(tmp_path: Path) -> None:
    assert tool_here("fixture", tmp_path / "state.db", "--damage", "lineage-cycles").code == 0
    assert commands(tool_here("repair", tmp_path / "state.db")) == ["hermes-dbtools runbook lineage-cycles"]


def test_an_answer_that_was_chosen_already_is_not_offered_again(tmp_path: Path) -> None:
    assert tool_here("fixture", tmp_path / "state.db", "--damage", "orphaned-delegates").code == 0
    asked = tool_here("repair", tmp_path / "state.db", "--choose", "orphaned-delegates=purge")
    assert commands(asked) == [
        f"hermes-dbtools repair {tmp_path}/state.db --choose orphaned-delegates=purge --allow-lossy",
        "hermes-dbtools runbook orphaned-delegates",
    ]
    assert "step" in typed(commands(asked)[0], tmp_path).out
