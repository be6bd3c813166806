"""Every command of every runbook is run on a home with the damage that it is about, and prints what the runbook says."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from hermes_dbtools import catalogue
from hermes_dbtools.cli import COMMANDS, cli
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.model import Severity
from tests.runbook_homes import home
from tests.runbook_outputs import WRITE, Command, Place, Session, alike, commands, normal, rewritten
from tests.running import CHECKOUT, tool

RUNBOOKS = CHECKOUT / "runbooks"
PATHS = sorted(file.relative_to(RUNBOOKS).with_suffix("").as_posix() for file in RUNBOOKS.rglob("*.md"))
INLINE = re.compile(r"`(hermes-dbtools(?: [^`]+)?)`")
STANDS_FOR = re.compile(r"[A-Z]+(=[A-Z]+)?$|.*<\w+>|…|\[")
"""A word for which the reader puts another one."""

SLUGS = {damage.slug for damage in REGISTRY}
PROCEDURES = {slug for slug, _title in catalogue.procedures()}


def text_of(path: str) -> str:
    return (RUNBOOKS / f"{path}.md").read_text("utf-8")


def inline(text: str) -> Iterator[list[str]]:
    """The calls of this tool within sentences, those words apart that the reader puts in."""
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for call in INLINE.findall(outside):
        words = shlex.split(call)
        if len(words) > 1:
            yield words


@pytest.mark.parametrize("path", PATHS)
def test_a_runbook_prints_what_its_commands_print(path: str, tmp_path: Path) -> None:
    held = text_of(path)

    @contextmanager
    def opened(name: str) -> Iterator[Place]:
        part = f"{path}#{name}" if name else path
        with home(part, tmp_path / (name or "home")) as place:
            yield place
            if name == "":
                try_inline(held, place)

    found = rewritten(held, opened)
    if os.environ.get(WRITE):
        (RUNBOOKS / f"{path}.md").write_text(found, "utf-8")
    else:
        assert held == found, f"{WRITE}=1 writes it anew"


def try_inline(text: str, place: Place) -> None:
    """Run what stands within sentences, after all blocks: it is understood, whatever it finds."""
    session = Session(place)
    for words in inline(text):
        if len(words) > 2 and not any(STANDS_FOR.match(word) for word in words):
            yes = ["--yes"] if "--apply" in words and "--yes" not in words else []
            session.run(" ".join([*words, *yes]))


@pytest.mark.parametrize("path", PATHS)
def test_the_commands_within_sentences_are_understood(path: str) -> None:
    for words in inline(text_of(path)):
        if not STANDS_FOR.match(words[1]) and "[OPTIONS]" not in words:
            understood(words[1:])


def understood(words: list[str]) -> None:
    """Fails for a command, an option or a number of arguments that there is not."""
    group: click.Command = cli
    context = click.Context(cli, info_name="hermes-dbtools")
    while isinstance(group, click.Group):
        name, *words = words
        found = group.get_command(context, name)
        assert found is not None, name
        group, context = found, click.Context(found, parent=context, info_name=name)
    parser = group.make_parser(context)
    options, arguments, _order = parser.parse_args(list(words))
    del options
    assert arguments == [], f"{words}: {arguments}"


@pytest.mark.parametrize("path", PATHS)
def test_what_a_runbook_names_exists(path: str) -> None:
    text = text_of(path)
    for code in re.findall(r"HDB\d{3}", text):
        assert any(damage.code == code for damage in REGISTRY), code
    for slug in re.findall(r"hermes-dbtools (?:runbook|checks) ([a-z][a-z-]+)", text):
        assert slug in SLUGS | PROCEDURES, slug
    for slug, answer in re.findall(r"--choose ([a-z-]+)=([a-z-]+)", text):
        (damage,) = [damage for damage in REGISTRY if damage.slug == slug]
        assert answer in damage.answers
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (RUNBOOKS / path).parent.joinpath(target).exists(), target


def test_first_response_leads_to_every_error_and_to_every_procedure() -> None:
    text = text_of("first-response")
    table = text.partition("## Symptoms")[2].partition("## Stop")[0]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table))
    assert named <= SLUGS
    errors = {damage.slug for damage in REGISTRY if damage.severity is Severity.ERROR}
    assert errors - named == set()
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert all(len(row) == 3 for row in rows)
    assert {re.findall(r"`(\w+)", row[2])[0] for row in rows} <= set(COMMANDS)
    tree = set(re.findall(r"-> runbook ([a-z-]+)", text))
    assert tree <= SLUGS | PROCEDURES
    others = {"first-response", "reference", "ci-on-fixtures", "many-hosts"}
    assert PROCEDURES - others <= tree


@pytest.mark.parametrize("path", [path for path in PATHS if path != "reference"])
def test_a_runbook_has_steps_and_says_how_to_undo(path: str) -> None:
    text = text_of(path)
    assert re.search(r"^1\. ", text, re.MULTILINE)
    assert re.search(r"^ *\$ ", text, re.MULTILINE)
    changes = re.search(
        r"^ *\$ .*(--apply|sqlite3 \S*state\.db .*(UPDATE|DELETE|DROP|PRAGMA j))", text, re.MULTILINE
    )
    assert not changes or re.search(r"^## Undo$", text, re.MULTILINE)


BOOK = """# One

```console
$ hermes-dbtools scan --quiet
$ printf 'a\\nb 20261130T114617Z-b70df433\\n'
x
…
```

   1. Two.

   ```console
   $ cd sessions
   $ pwd; hermes-dbtools undo --apply --yes
   ~/.hermes/sessions
   …
   ```
"""


def test_blocks_are_written_anew_only_where_they_differ(tmp_path: Path) -> None:
    assert [(one.indent, one.text) for one in commands(BOOK)][1:3] == [
        ("", "printf 'a\\nb 20261130T114617Z-b70df433\\n'"),
        ("   ", "cd sessions"),
    ]
    made = rewritten(BOOK, lambda _name: home("counters/session_counter_drift", tmp_path))
    assert made == BOOK.replace("x\n…", "a\nb 20261130T114617Z-b70df433").replace(
        "scan --quiet\n", "scan --quiet\n" + made.split("scan --quiet\n")[1].split("$ printf")[0]
    )
    assert "session-counter-drift" in made


@pytest.mark.parametrize(
    ("held", "said", "same"),
    [
        (["a  12 KB", "…", "b"], ["a    1.3 MB", "1", "2", "b"], True),
        (["a", "…"], ["a"], True),
        (["a", "…"], ["b"], False),
        (["receipt 20261130T114617Z-b70df433"], ["receipt 20270101T000000Z-00000000"], True),
        (["  12 sessions"], ["  13 sessions"], False),
        (["64 clean"], ["65 clean"], True),
        ([""], [], False),
    ],
)
def test_what_is_compared(held: list[str], said: list[str], same: bool) -> None:
    assert alike(held, said) is same


def test_what_varies_is_left_out() -> None:
    assert normal("held by hermes (pid 12)   since 2026-11-30 12:59:27Z") == (
        "held by hermes (pid PID)  since MOMENT"
    )
    assert Command("a", "", 0, 0).text == "a"


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("ORPHANED_MESSAGES", "# HDB201 orphaned-messages"),
        ("hdb201", "# HDB201 orphaned-messages"),
        ("../references/orphaned_messages.md", "# HDB201 orphaned-messages"),
        ("procedures/foreign_key_failure.md", "# A save fails: FOREIGN KEY constraint failed"),
    ],
)
def test_a_runbook_is_printed_by_whatever_names_it(word: str, title: str) -> None:
    assert catalogue.runbook(word).splitlines()[0] == title


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("runbook", "orphan"), "near it: orphaned-bindings, "),
        (("runbook", "foreign key"), "near it: foreign-key-failure, foreign-key-violations"),
        (("checks", "sarch-index-damage"), "near it: search-index-damage"),
        (("scan", "--select", "orphaned_messages"), "near it: orphaned-messages"),
        (("fixture", "x.db", "--damage", "duplicate-title"), "near it: duplicate-titles"),
        (("runbook", "a\nb" * 99), "…"),
    ],
)
def test_a_name_that_nothing_has_leads_to_those_that_are_near_it(
    words: tuple[str, ...], near: str, tmp_path: Path
) -> None:
    ran = tool(*words, cwd=tmp_path)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert near in ran.err
    assert ran.err.endswith(" lists them\n")
