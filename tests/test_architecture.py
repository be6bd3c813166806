"""Dependencies point one way, and who may touch a database is who should."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.sources import imports, modules

ORDER = (
    "model",
    "queries",
    "home",
    "plan",
    "report.scans",
    "report.plans",
    "report.receipts",
    "report.sessions",
    "shape",
    "structure",
    "search_index",
    "database",
    "guard",
    "damage._declare",
    "damage",
    "fixtures.making",
    "scanning",
    "comparing.compare",
    "documents",
    "plan_documents",
    "receipts",
    "salvage.salvaging",
    "space",
    "transaction",
    "apply",
    "undoing",
    "backups.taking",
    "backups.restoring",
    "repairing",
    "sessions.api",
    "demo",
    "cli.repair",
    "cli",
    "__main__",
)
"""From the lowest up: none of them needs a later one, directly or through others."""

UNSEEN = {
    "plan": {"apsw", "database", "shape", "queries", "damage"},
    "report.scans": {"apsw", "database", "shape", "queries", "damage"},
    "report.plans": {"apsw", "database", "shape", "queries", "damage"},
    "report.receipts": {"apsw", "database", "shape", "queries", "damage"},
    "report.sessions": {"apsw", "database", "shape", "queries", "damage"},
    "report.formats": {"apsw", "database", "shape", "queries", "damage", "documents", "scanning"},
    "report.merged": {"apsw", "database", "shape", "queries", "damage", "documents", "scanning"},
    "baseline": {"apsw", "database", "shape", "queries", "damage", "documents", "scanning"},
    "report.compare": {"apsw", "database", "shape", "queries", "damage"},
    "report.backups": {"apsw", "database", "shape", "queries", "damage"},
    "backups.restoring": {"transaction", "recorder", "apply", "undoing", "scanning"},
    "report.space": {"apsw", "database", "shape", "queries", "damage"},
    "comparing.compare": {"plan", "transaction", "recorder", "receipts", "apply"},
    "space": {"transaction", "recorder", "apply"},
    "scanning": {
        "plan",
        "report.scans",
        "report.plans",
        "report.receipts",
        "transaction",
        "recorder",
        "receipts",
    },
    "damage": {
        "plan",
        "report.scans",
        "report.plans",
        "report.receipts",
        "recorder",
        "receipts",
        "documents",
        "plan_documents",
    },
    "catalogue": {"database.open_for_repair", "scanning", "apply"},
    "selection": {"scanning", "apply"},
    "targets": {"apsw", "database", "scanning"},
}
"""What a module must not reach, directly or through others."""

WRITERS = {"apply", "undoing"}
"""Who opens a store for writing; `connections` and `database` only hand it out."""

FORBIDDEN = {"sqlite3", "_sqlite3", "pickle", "requests", "urllib.request"}


@cache
def graph() -> dict[str, frozenset[str]]:
    """The modules that each module imports, anywhere in it."""
    trees = modules()
    return {name: frozenset(imports(name, tree, trees)) for name, tree in trees.items()}


@cache
def reached(name: str) -> frozenset[str]:
    """All modules that a module needs, itself apart where nothing leads back to it."""
    found: set[str] = set()
    waiting = list(graph()[name])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(graph().get(module, ()))
    return frozenset(found)


def test_there_is_no_cycle() -> None:
    assert [name for name in graph() if name and name in reached(name)] == []


def test_dependencies_point_one_way() -> None:
    wrong = [
        f"{low} reaches {high}"
        for place, low in enumerate(ORDER)
        for high in ORDER[place + 1 :]
        if high in reached(low)
    ]
    assert wrong == []
    assert set(ORDER) <= set(graph())


@pytest.mark.parametrize("name", UNSEEN)
def test_what_a_module_must_not_reach(name: str) -> None:
    assert reached(name) & UNSEEN[name] == set()


def test_nobody_imports_the_package_itself_but_for_its_version() -> None:
    assert {name for name in graph() if "" in graph()[name]} <= {"engine"}


def test_commands_know_no_database_library() -> None:
    for name in graph():
        if name == "__main__" or name.partition(".")[0] == "cli":
            assert not graph()[name] & {"apsw", "psutil", "database", "shape", "queries"}, name


def test_nobody_imports_what_this_product_must_not_use() -> None:
    assert {name: graph()[name] & FORBIDDEN for name in graph() if graph()[name] & FORBIDDEN} == {}


def test_only_apply_and_undo_open_a_store_for_writing() -> None:
    users = set()
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name):
                word = node.attr if isinstance(node, ast.Attribute) else node.id
                if word == "open_for_repair" and name not in ("connections", "database"):
                    users.add(name)
    assert users == WRITERS


def test_only_a_class_of_damage_knows_another_through_the_registry() -> None:
    classes = {name for name in graph() if name.count(".") == 2 and name.startswith("damage.")}
    for name in classes:
        others = {other for other in graph()[name] & classes if not other.rpartition(".")[2].startswith("_")}
        assert others == set(), name
        assert "damage" not in graph()[name], name
