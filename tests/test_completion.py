"""What a shell offers while a command is typed: asked as the shells ask, and in bash itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_dbtools.cli import COMMANDS, completing, sessions, shells
from hermes_dbtools.damage import REGISTRY
from tests.running import CHECKOUT, COMMAND, SECONDS, environment, tool
from tests.shell_typing import interactive

VARIABLE = shells.VARIABLE
SHELLS = ("bash", "zsh", "fish")
README = (CHECKOUT / "README.md").read_text("utf-8")


def offered(words: str, incomplete: str) -> list[str]:
    """The words offered, as fish asks for them."""
    env = environment(
        **{VARIABLE: "fish_complete", "COMP_WORDS": f"hermes-dbtools {words}", "COMP_CWORD": incomplete}
    )
    ran = tool(env=env)
    assert (ran.code, ran.err) == (0, "")
    return [line.split(",", 1)[1].partition("\t")[0] for line in ran.out.splitlines() if "," in line]


@pytest.mark.parametrize(
    ("words", "incomplete", "some"),
    [
        ("", "", COMMANDS),
        ("", "re", ("report", "repair", "restore")),
        ("sessions", "", sessions.COMMANDS),
        ("scan", "--fo", ("--format",)),
        ("scan --format", "", ("table", "junit", "sarif")),
        ("scan --select", "orph", ("orphaned-messages", "orphaned-usage", "orphaned-ledger-rows")),
        ("scan --select", "HDB20", ("HDB201", "HDB209")),
        ("scan --select", "ref", ("references",)),
        ("scan --ignore", "references,lin", ("references,lineage", "references,lineage-cycles")),
        ("repair --choose", "orphaned-m", ("orphaned-messages=adopt", "orphaned-messages=purge")),
        ("repair --choose", "orphaned-messages=p", ("orphaned-messages=purge",)),
        ("checks", "dup", ("duplicate-titles", "duplicate-messages", "duplicate-branches")),
        ("runbook", "", ("first-response", "disk-full", "split-wal")),
        ("runbook", "HDB7", ("HDB701", "HDB707")),
        (
            "fixture state.db --damage",
            "unreadable-file:",
            ("unreadable-file:zeroes", "unreadable-file:truncated"),
        ),
        ("scan --color", "", ("auto", "always", "never")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_offered(words: str, incomplete: str, some: tuple[str, ...]) -> None:
    found = offered(words, incomplete)
    assert set(some) <= set(found)
    assert all(word.startswith(incomplete) for word in found)
    if some is COMMANDS or len(some) == 1:
        assert set(found) == set(some)


def test_only_classes_that_leave_a_choice_are_offered_for_one() -> None:
    found = {word.partition("=")[0] for word in offered("repair --choose", "")}
    assert found == {damage.slug for damage in REGISTRY if len(damage.answers) > 1}


@pytest.mark.parametrize("words", ["scan", "repair", "compare", "salvage", "undo", "scan --baseline"])
def test_files_are_left_to_the_shell(words: str) -> None:
    env = environment(
        **{VARIABLE: "zsh_complete", "COMP_WORDS": f"hermes-dbtools {words} ", "COMP_CWORD": "9"}
    )
    env["COMP_CWORD"] = str(len(words.split()) + 1)
    assert tool(env=env).out.split()[:1] == ["file"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_and_what_readme_says_of_them(shell: str) -> None:
    ran = tool(env=environment(**{VARIABLE: f"{shell}_source"}))
    assert ran.code == 0
    assert f"{shell}_complete" in ran.out
    assert "hermes-dbtools" in ran.out
    line = f"{VARIABLE}={shell}_source hermes-dbtools"
    assert line in README, "how it is switched on"
    found = shutil.which(shell)
    if found is not None:
        done = subprocess.run(
            [found, "-n"], input=ran.out, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_in_bash_itself(tmp_path: Path) -> None:
    program = tmp_path / "hermes-dbtools"
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', "utf-8")
    program.chmod(0o755)
    script = f"""
    eval "$({VARIABLE}=bash_source hermes-dbtools)"
    complete -p hermes-dbtools >&2
    COMP_WORDS=(hermes-dbtools scan --select never-)
    COMP_CWORD=3
    _hermes_dbtools_completion hermes-dbtools never- --select
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    env = environment(PATH=f"{tmp_path}:/usr/bin:/bin")
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "never-ended-sessions\n"), done
    assert "_hermes_dbtools_completion hermes-dbtools" in done.stderr


TYPED = (
    ("repair --choose orphaned-m", "orphaned-messages="),
    ("repair --choose orphaned-messages=p", "orphaned-messages=purge"),
    ("repair --choose=orphaned-messages=p", "--choose=orphaned-messages=purge"),
    ("repair --choose orphaned-messages=purge --allow", "--allow-lossy"),
    ("scan --format=js", "--format=json"),
    ("fixture new.db --damage unreadable-file:ze", "unreadable-file:zeroes"),
    ("scan stat", "scan state.db"),
)
"""What is begun, and what a Tab makes of it."""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_in_the_shell_itself(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "state.db").touch()
    with interactive(shell, tmp_path) as ready:
        for typed, made in TYPED:
            assert made in ready.tab(f"hermes-dbtools {typed}", made)


@pytest.mark.parametrize(
    ("pieces", "words", "before"),
    [
        ("repair --choose slug = a", ["repair", "--choose", "slug=a"], "slug="),
        ("repair --choose slug =", ["repair", "--choose", "slug="], "slug="),
        ("repair --choose slug=a", ["repair", "--choose", "slug=a"], ""),
        ("repair --choose slug = a --apply", ["repair", "--choose", "slug=a", "--apply"], ""),
        ("fixture --damage slug : kind = 3", ["fixture", "--damage", "slug:kind=3"], "slug:kind="),
        ("", [], ""),
    ],
)
def test_the_pieces_of_bash_are_put_together(pieces: str, words: list[str], before: str) -> None:
    assert shells.joined(pieces.split()) == (words, before)


def test_the_words_for_files_are_those_of_the_help() -> None:
    text = "".join(path.read_text("utf-8") for path in (CHECKOUT / "hermes_dbtools" / "cli").glob("*.py"))
    for word in completing.FILES:
        assert f'metavar="{word}"' in text, word
