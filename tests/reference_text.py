"""What README and runbooks/reference.md say of commands, options, exit codes and damage classes, made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from hermes_dbtools.cli import cli
from hermes_dbtools.damage import REGISTRY

WRITE = "HERMES_DBTOOLS_WRITE_README"
"""Set it to 1 to write the generated parts of README and the reference anew; what changed is for a reviewer to see."""

USUAL = ("--color", "--help")
"""Options of every command."""

BEGIN, END = "<!-- generated: {} -->\n\n", "\n<!-- end -->"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command that can be called, with its name and a context, in the order of the help."""
    yield from _below("", cli, click.Context(cli, info_name="hermes-dbtools"))


def commands_table() -> str:
    """The commands of README: how each is called and what it does, in one line."""
    lines = ["| command | does |", "| --- | --- |"]
    for name, command, context in commands():
        arguments = " ".join(piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")
        call = f"{name} {arguments}".strip().replace("|", "\\|")
        lines.append(f"| `{call}` | {_first_line(command)} |")
    return "\n".join(lines) + "\n"


def catalogue_table() -> str:
    """The damage classes, in the order of their codes."""
    lines = ["| code | damage | severity | what is wrong |", "| --- | --- | --- | --- |"]
    for damage in sorted(REGISTRY, key=lambda damage: damage.code):
        lines.append(f"| {damage.code} | `{damage.slug}` | {damage.severity.word} | {damage.title} |")
    return "\n".join(lines) + "\n"


def reference() -> str:
    """Every command with its options and exit codes, as Markdown."""
    parts = [
        "# Reference: commands, options, exit codes\n",
        (
            "Made from the commands themselves; `hermes-dbtools COMMAND --help` says the same."
            " Every command also takes `--color`\n"
            "(`auto`, `always` or `never`: colours in tables; `auto` is on a terminal, unless `NO_COLOR` is set) and `--help`.\n"
        ),
    ]
    for name, command, context in commands():
        parts.append(f"## {name}\n")
        pieces = " ".join(command.collect_usage_pieces(context))
        parts.append(f"`hermes-dbtools {name} {pieces}`\n")
        parts.append(_paragraphs(command.help or ""))
        if rows := [_option(option, context) for option in command.params if _told(option)]:
            parts.append("\n".join(["| option | does |", "| --- | --- |", *rows]) + "\n")
        codes, example = _ending(command)
        parts.append("\n".join(["| exit code | means |", "| --- | --- |", *codes]) + "\n")
        parts.append(f"Example: `{example}`\n")
    return "\n".join(parts)


def exit_codes() -> set[int]:
    """Every exit code that some help names."""
    return {int(row.split()[1]) for _name, command, _context in commands() for row in _ending(command)[0]}


def generated(text: str, name: str) -> str:
    """The part of a file that is generated under this name. Raises ValueError where there is none."""
    begin = BEGIN.format(name)
    start = text.index(begin) + len(begin)
    return text[start : text.index(END, start)]


def with_generated(text: str, name: str, part: str) -> str:
    """The file with this part made anew."""
    begin = BEGIN.format(name)
    start = text.index(begin) + len(begin)
    return text[:start] + part + text[text.index(END, start) :]


def _below(
    name: str, command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    if not isinstance(command, click.Group):
        yield name, command, context
        return
    for one in command.list_commands(context):
        found = command.get_command(context, one)
        assert found is not None
        yield from _below(f"{name} {one}".strip(), found, click.Context(found, parent=context, info_name=one))


def _told(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.opts[0] not in USUAL


def _option(param: click.Parameter, context: click.Context) -> str:
    assert isinstance(param, click.Option)
    record = param.get_help_record(context)
    assert record is not None
    call, what = (re.sub(r"\s+", " ", word).replace("|", "\\|").strip() for word in record)
    return f"| `{call}` | {what} |"


def _first_line(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0].removesuffix(".").replace("|", "\\|")


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text)) + "\n"


def _ending(command: click.Command) -> tuple[list[str], str]:
    lines = (command.epilog or "").splitlines()
    codes = [re.fullmatch(r"  (\d+)  (.+)", line) for line in lines]
    example = next(line.strip() for line in lines if line.startswith("  hermes-dbtools"))
    return [f"| {found[1]} | {found[2].replace('|', chr(92) + '|')} |" for found in codes if found], example
