"""A damage class is the same in its four homes, and every SQL block is complete, documented, used and valid."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path

import apsw
import apsw.ext
import pytest

from hermes_dbtools import queries, utf8
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.damage._declare import HEADINGS, Damage
from hermes_dbtools.model import Safety
from hermes_dbtools.shape import Shape, read_shape
from tests.running import CHECKOUT
from tests.shapes.make import PARTS, SHAPES, script
from tests.sources import PACKAGE, modules, strings

FAMILIES = (
    "storage", "schema", "references", "lineage", "values", "counters", "transcript", "media", "search", "runtime",
)  # fmt: skip
"""In the order of their hundreds: storage is HDB0xx."""

HOMES = {
    "hermes_dbtools/damage": ".py",
    "sql/damage": ".sql",
    "tests/cases": ".toml",
    "runbooks": ".md",
}

WRITES = re.compile(r"^(INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP)\b", re.MULTILINE)
QUOTED = re.compile(r"'(?:[^']|'')*'|--[^\n]*")
PLACE = re.compile(r"\{\w+\}")
FOR_OPERATORS = "For an operator"
SQL = re.compile(
    r"\b(SELECT\s+[\w*({:']|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|ALTER\s+TABLE|REPLACE\s+INTO"
    r"|WITH\s+RECURSIVE|(CREATE|DROP)\s+(TEMP\s+|UNIQUE\s+|VIRTUAL\s+)*(TABLE|INDEX|TRIGGER|VIEW)\s+[\w\"{])",
)


def paths() -> set[str]:
    return {damage.path for damage in REGISTRY}


@pytest.mark.parametrize("folder", HOMES)
def test_the_four_homes_of_a_class(folder: str) -> None:
    root, ending = CHECKOUT / folder, HOMES[folder]
    found = {
        path.relative_to(root).with_suffix("").as_posix()
        for path in root.glob(f"*/*{ending}")
        if not path.name.startswith("_") and path.parent.name in FAMILIES
    }
    assert found == paths()


def test_codes_are_unique_and_of_their_familys_hundred() -> None:
    codes = [damage.code for damage in REGISTRY]
    slugs = [damage.slug for damage in REGISTRY]
    assert len(set(codes)) == len(codes)
    assert len(set(slugs)) == len(slugs)
    assert not set(slugs) & set(FAMILIES), "a word of --select must mean one thing"
    for damage in REGISTRY:
        assert re.fullmatch(r"HDB\d{3}", damage.code)
        assert FAMILIES[int(damage.code[3])] == damage.family, damage.code
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", damage.slug)


def test_every_class_is_where_its_name_says() -> None:
    for damage in REGISTRY:
        assert damage.find.__module__ == f"hermes_dbtools.damage.{damage.path.replace('/', '.')}"


def test_every_class_explains_itself() -> None:
    for damage in REGISTRY:
        assert tuple(damage.sections) == HEADINGS
        assert damage.title[0].isupper()
        assert "\n" not in damage.title
        assert len(damage.title) <= 120
        assert all(len(body) > 20 for body in damage.sections.values())
        assert all(damage.noun)
        assert damage.answers
        assert len(set(damage.answers)) == len(damage.answers)
        if damage.safety is Safety.MANUAL:
            assert damage.answers == ("report",)


def test_what_a_class_cedes_to_comes_before_it() -> None:
    place = {damage.code: number for number, damage in enumerate(REGISTRY)}
    for damage in REGISTRY:
        assert all(place[code] < place[damage.code] for code in damage.cedes_to if code in place), damage.code


def test_every_runbook_is_steps_that_name_the_class() -> None:
    for damage in REGISTRY:
        text = (CHECKOUT / "runbooks" / f"{damage.path}.md").read_text("utf-8")
        assert text.startswith("# "), damage.path
        assert damage.slug in text, damage.path
        assert damage.code in text, damage.path
        assert re.search(r"^1\. ", text, re.MULTILINE), f"{damage.path}: no numbered steps"
        assert "hermes-dbtools " in text, damage.path


def test_every_case_file_tells_cases() -> None:
    for damage in REGISTRY:
        table = tomllib.loads((CHECKOUT / "tests" / "cases" / f"{damage.path}.toml").read_text("utf-8"))
        assert table["case"], damage.path


def files() -> list[str]:
    """Every SQL file of the product as `queries.load` takes it; those of fixtures are scripts, not blocks."""
    root = CHECKOUT / "sql"
    found = (path.relative_to(root).with_suffix("").as_posix() for path in sorted(root.rglob("*.sql")))
    return [path for path in found if not path.startswith("fixture/")]


def blocks() -> Iterator[tuple[str, queries.Query]]:
    for file in files():
        for query in queries.load(file):
            yield file, query


@cache
def told(file: str) -> tuple[str, ...]:
    """Every text of the modules that may use a file; a place in an f-string is `*`."""
    near = f"damage.{file.split('/')[1]}." if file.startswith("damage/") else ""
    users = [held for name, held in texts().items() if name.startswith(near) or file in held]
    return tuple(text.replace("{}", "*") for text in chain.from_iterable(users))


@cache
def texts() -> Mapping[str, tuple[str, ...]]:
    """Every text of each module."""
    return {name: tuple(text for _line, text in strings(tree)) for name, tree in modules().items()}


@pytest.mark.parametrize("file", files())
def test_every_block_is_used(file: str) -> None:
    head = (CHECKOUT / "sql" / f"{file}.sql").read_text("utf-8").partition("-- name:")[0]
    for query in queries.load(file):
        used = any(query.name == other.uses for other in queries.load(file)) or any(
            fnmatchcase(query.name, text) for text in told(file) if text.strip("*-_ ")
        )
        assert used or FOR_OPERATORS in head.replace("\n-- ", " ").replace("These are for an", "For an"), (
            query.name
        )


@pytest.mark.parametrize("file", files())
def test_every_block_is_one_documented_statement(file: str) -> None:
    for query in queries.load(file):
        assert re.fullmatch(r"[a-z]+([-_][a-z]+)*", query.name), query.name
        assert query.doc[0].isupper() or query.doc.startswith("`"), query.name
        assert query.doc.endswith((".", ":", ")")), query.name
        assert QUOTED.sub("", query.sql).count(";") == 1, query.name
        assert not re.search(r"\?\d*[\s,)]", PLACE.sub("", query.sql)), f"{query.name}: bindings have names"


def test_a_block_is_loaded_whole_with_each_variant_of_what_it_is_written_with() -> None:
    found = [q for q in queries.load("damage/transcript/missing_tool_names") if q.name == "nameable"]
    assert [query.needs for query in found] == [("messages.active",), ()]
    for query in found:
        assert query.sql.startswith("WITH unnamed AS NOT MATERIALIZED (\nWITH tools AS NOT MATERIALIZED (\n")
        assert ("active" in query.sql) == bool(query.needs)


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[str, tuple[apsw.Connection, Shape]]]:
    """An empty store of each shape, and one with each part, with the temporary and scratch tables of the product."""
    made = {}
    names = [(shape, ()) for shape in SHAPES] + [("runtime", (part,)) for part in PARTS]
    for shape, parts in names:
        connection = apsw.Connection(":memory:")
        utf8.register(connection)
        for name in (f"shape_{shape}", *parts):
            connection.execute(script(name))
        for _file, query in blocks():
            if query.sql.startswith(("CREATE TEMP", "CREATE TABLE")) and not PLACE.search(query.sql):
                connection.execute(query.sql)
        connection.execute("PRAGMA writable_schema = ON")
        made["+".join((shape, *parts))] = (connection, read_shape(connection))
    yield made
    for connection, _shape in made.values():
        connection.close()


def holds(shape: Shape, need: str) -> bool:
    return not shape.has(need[1:]) if need.startswith("!") else shape.has(need)


def class_of(file: str) -> Damage | None:
    return next((damage for damage in REGISTRY if damage.sql == file), None)


@pytest.mark.parametrize("file", files())
def test_every_block_fits_every_shape_whose_needs_it_has(
    file: str, stores: dict[str, tuple[apsw.Connection, Shape]]
) -> None:
    damage = class_of(file)
    for query in queries.load(file):
        if PLACE.search(query.sql):
            continue  # a template: what uses it is tested with real names
        reads = not WRITES.search(query.sql)
        fitted = 0
        for name, (connection, shape) in stores.items():
            if not all(holds(shape, need) for need in (*(damage.needs if damage else ()), *query.needs)):
                continue
            try:
                info = apsw.ext.query_info(connection, query.sql)
            except apsw.SQLError as error:
                if str(error).endswith("already exists"):
                    fitted += 1  # it makes what this shape has
                    continue
                # A step is made only of rows that were found; a question is asked of every file that fits.
                assert not reads, (name, query.name, query.needs)
                continue
            fitted += 1
            assert not info.query_remaining, query.name
            assert info.is_readonly == reads or query.sql.startswith("CREATE TEMP"), query.name
        assert fitted, f"{query.name} {query.needs} fits no shape there is"


def test_what_finds_is_read_only_and_in_order() -> None:
    for file, query in blocks():
        if file.startswith("damage/") and query.name.startswith("find"):
            assert not WRITES.search(query.sql), (file, query.name)
            assert "ORDER BY" in query.sql, (file, query.name)


def test_every_variant_but_the_last_has_needs() -> None:
    for file in files():
        names: dict[str, list[queries.Query]] = {}
        for query in queries.load(file):
            names.setdefault(query.name, []).append(query)
        for name, variants in names.items():
            assert all(query.needs for query in variants[:-1]), (file, name)


def test_python_holds_no_sql() -> None:
    found = [
        f"{name}:{line}: {text[:60]}"
        for name, tree in modules().items()
        for line, text in strings(tree)
        if SQL.search(text)
    ]
    assert found == []


def test_no_error_is_passed_over() -> None:
    silent = re.compile(r"except[^\n]*:\s*(#[^\n]*\n\s*)?(pass|\.\.\.)\s*$", re.MULTILINE)
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        assert not silent.search(text), path.name
        assert not unfinished.search(text), path.name


def test_nothing_names_a_machine() -> None:
    """No path of one machine and no host of a registry in what is committed."""
    words = re.compile(r"(?<!\w)/(root|work|home/\w+)/|shared/|\.library|pypi\.org|githubusercontent")
    here = Path(__file__).name
    for folder in ("hermes_dbtools", "sql", "tests", "runbooks", ".ci"):
        for path in sorted((CHECKOUT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and path.name != here:
                found = words.search(path.read_text("utf-8", "replace"))
                assert not found, (path.relative_to(CHECKOUT), found)
