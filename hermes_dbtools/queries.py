"""Load the named SQL blocks of sql/**.sql; never runs one.

A file holds blocks. Each begins with `-- name: <name>`, may say `-- needs: <object> …`, and is followed by comment
lines that say what a row means and exactly one statement. A block may be written several times with different needs;
the first one whose needs the file's shape has is used. A need is `table`, `table.column`, `index:<name>` or
`view:<name>`; with `!` before it, the absence of that object. `-- with: <name>` puts another block of the file before
the statement, as a common table expression of that name; where that has variants, so has this one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement, with the comment above it, the objects it needs and the block that it is written with."""

    name: str
    sql: str
    doc: str
    needs: tuple[str, ...]
    uses: str = ""


class MalformedSqlFile(Exception):
    """A block without a statement, without a comment, or with the name and needs of another."""


def resource(folder: str) -> Traversable:
    """The shipped folder `sql` or `runbooks`: inside the package in a wheel, beside it in a checkout."""
    inside = files("hermes_dbtools") / folder
    return inside if inside.is_dir() else Path(__file__).resolve().parent.parent / folder


@functools.cache
def load(path: str) -> tuple[Query, ...]:
    """Every block of `sql/<path>.sql`, in the order of the file.

    Raises MalformedSqlFile when a block is empty, undocumented or doubled, FileNotFoundError when there is no such file.
    """
    target = resource("sql")
    for part in f"{path}.sql".split("/"):
        target = target / part
    blocks = _parse(path, target.read_text("utf-8"))
    return tuple(whole for query in blocks for whole in _whole(path, query, blocks))


def choose(path: str, name: str, has: Callable[[str], bool]) -> Query | None:
    """The first block of this name whose needs all hold, or None. Raises KeyError when the file has no such name."""
    blocks = [query for query in load(path) if query.name == name]
    if not blocks:
        raise KeyError(f"{path}.sql has no block {name!r}")
    for query in blocks:
        if all(not has(need[1:]) if need.startswith("!") else has(need) for need in query.needs):
            return query
    return None


def _whole(path: str, query: Query, blocks: tuple[Query, ...]) -> Iterator[Query]:
    """The block with each variant of the block that it is written with, needs and all; itself where there is none."""
    if not query.uses:
        yield query
        return
    variants = [block for block in blocks if block.name == query.uses]
    if not variants or query.name == query.uses:
        raise MalformedSqlFile(f"{path}.sql: block {query.name!r} is written with {query.uses!r}")
    for used in (whole for variant in variants for whole in _whole(path, variant, blocks)):
        # A materialized expression would hold the whole table in memory.
        before = f"WITH {query.uses} AS NOT MATERIALIZED (\n{used.sql.removesuffix(';')})\n"
        yield replace(query, sql=before + query.sql, needs=(*query.needs, *used.needs))


def _parse(path: str, text: str) -> tuple[Query, ...]:
    blocks: list[Query] = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for part in ("\n" + text).split("\n-- name:")[1:]:
        head, _, rest = part.partition("\n")
        name = head.strip()
        needs: tuple[str, ...] = ()
        uses = ""
        doc: list[str] = []
        body: list[str] = []
        for line in rest.splitlines():
            if not body and line.startswith("-- needs:"):
                needs = (*needs, *line.removeprefix("-- needs:").split())
            elif not body and line.startswith("-- with:"):
                uses = line.removeprefix("-- with:").strip()
            elif not body and line.startswith("--"):
                doc.append(line.removeprefix("--").strip())
            elif body or line.strip():
                body.append(line)
        sql = "\n".join(body).strip()
        if not name or not sql.endswith(";") or not doc:
            raise MalformedSqlFile(
                f"{path}.sql: block {name!r} needs a comment and a statement that ends in ';'"
            )
        if (name, needs) in seen:
            raise MalformedSqlFile(f"{path}.sql: block {name!r} stands twice with the same needs")
        seen.add((name, needs))
        blocks.append(Query(name, sql, " ".join(doc), needs, uses))
    if not blocks:
        raise MalformedSqlFile(f"{path}.sql has no block")
    return tuple(blocks)


def statement(path: str, name: str) -> str:
    """The SQL of a block that has one variant and no needs. Raises KeyError when there is no such block."""
    for query in load(path):
        if query.name == name and not query.needs:
            return query.sql
    raise KeyError(f"{path}.sql has no block {name!r} without needs")


def fill(sql: str, **identifiers: str | Iterable[str]) -> str:
    """Put quoted identifiers into the `{places}` of a template block; several are joined by commas."""
    quoted = {
        place: quote(names) if isinstance(names, str) else ", ".join(quote(name) for name in names)
        for place, names in identifiers.items()
    }
    return re.sub(r"\{(\w+)\}", lambda match: quoted[match.group(1)], sql)


def quote(identifier: str) -> str:
    """An identifier as SQLite reads it in a statement or a pragma."""
    return '"' + identifier.replace('"', '""') + '"'
