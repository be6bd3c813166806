"""Hold a printed document against its own published schema; runs no command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import click
import jsonschema
import msgspec

from hermes_dbtools import schemas
from hermes_dbtools.cli import cli
from tests.running import PUBLISHER


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of a document's schema, as a program in another language would have it."""
    schema = json.loads(msgspec.json.encode(schemas.json_schema(name)))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def checked(content: str | bytes) -> tuple[str, dict[str, Any]]:
    """The name of a document and the document. Fails where no schema is published, or it does not fit its own."""
    document = json.loads(content, parse_constant=_no_number)
    assert isinstance(document, dict), "no document says its format"
    name = str(document.get("format")).removeprefix(PUBLISHER)
    assert name in schemas.TYPES, f"a document without a published schema: {document.get('format')!r}"
    errors = [
        f"{'/'.join(map(str, e.absolute_path))}: {e.message:.200}"
        for e in validator(name).iter_errors(document)
    ]
    assert errors == [], name
    return name, document


def commands_with_json() -> set[str]:
    """Every command that can answer in JSON, by its words."""
    return {words for words, command in _commands(cli, "") if _offers_json(command)}


def _commands(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def _offers_json(command: click.Command) -> bool:
    return any(
        isinstance(param.type, click.Choice) and "json" in param.type.choices for param in command.params
    )


def _no_number(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")
