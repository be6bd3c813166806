"""Read the product's own sources: modules, imports and strings; runs none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

from tests.running import CHECKOUT

PACKAGE = CHECKOUT / "hermes_dbtools"


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of the product by its dotted name without the package's; the package itself is ''."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imports(name: str, tree: ast.Module, known: Mapping[str, object]) -> set[str]:
    """The modules of ours (by the names of `known`) and of others that a module imports anywhere but for type checkers."""
    package = name if (PACKAGE / name.replace(".", "/") / "__init__.py").exists() else name.rpartition(".")[0]
    found: set[str] = set()
    for node in _running(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            base = ".".join([*parts[: len(parts) - node.level + 1], *(node.module or "").split(".")]).strip(
                "."
            )
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                found.add(inner if inner in known else base)
    return found - {name}


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module with its line, docstrings apart; a place in an f-string is `{}`."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docs | parts:
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )


def _running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _running(child)
