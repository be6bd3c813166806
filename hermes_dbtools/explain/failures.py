"""The kinds of failure that a log can hold, as `failures.toml` lists them; looks at no log and no file."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files

import msgspec


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind. `classes` are words as `--select` takes them; `calm` is what it means where they find nothing.

    A `secondary` kind may only follow from a `primary` one of the minute before it.
    """

    kind: str
    words: tuple[str, ...]
    means: str
    classes: tuple[str, ...]
    calm: str
    primary: bool = False
    secondary: bool = False


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the store was doing when it wrote a line, told by words of the line: the statement that failed."""

    words: tuple[str, ...]
    statement: str


class Statements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How statements of the store are called: `insert` of a `{table}`, the `upsert` of a session's row, its `delete`."""

    insert: str
    upsert: str
    delete: str


class Failures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All kinds in the order in which a line is held against them.

    `other_files` are words of lines about another database, `structure` the classes that are asked whatever the kind.
    """

    failure: tuple[Failure, ...]
    operation: tuple[Operation, ...]
    statements: Statements
    other_files: tuple[str, ...]
    structure: tuple[str, ...]

    @property
    def by_kind(self) -> Mapping[str, Failure]:
        """The kinds by their names."""
        return {failure.kind: failure for failure in self.failure}

    @property
    def words(self) -> tuple[str, ...]:
        """Every word that makes a line worth a look."""
        return tuple(dict.fromkeys(word for failure in self.failure for word in failure.words))

    def of(self, line: str) -> Failure | None:
        """The kind of a line in lower case, None where it is about nothing of the store."""
        if any(word in line for word in self.other_files):
            return None
        return next((one for one in self.failure if any(word in line for word in one.words)), None)

    def statement(self, line: str) -> str:
        """The statement that a line in lower case is about, or ''."""
        return next((one.statement for one in self.operation if any(word in line for word in one.words)), "")


@functools.cache
def failures() -> Failures:
    """The kinds that this release knows."""
    text = (files(__package__ or "") / "failures.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Failures)
