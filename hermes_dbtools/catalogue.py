"""The catalogue of damage classes and their runbooks as text; looks at no database."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from . import queries
from .columns import columns
from .damage import REGISTRY
from .report.setting import Rule
from .runbook_text import without_comments
from .selection import find_class, unknown
from .sizes import answers_text

PROCEDURES = "procedures"
"""The folder of runbooks that begin with a situation and not with a damage class."""

BESIDE = ("first-response.md", "reference.md")
"""Runbooks that lie beside the folders, in the order of the list."""


def listing() -> str:
    """Every class in one line, in the order of scan and of repair."""
    rows = [
        [d.code, d.slug, d.family, d.severity.word, d.safety.value, answers_text(d.answers)] for d in REGISTRY
    ]
    headers = ["code", "damage", "family", "severity", "safety", "answers (default first)"]
    return columns(rows, headers) + "\n"


def entry(word: str) -> str:
    """What one class means, why it happens, how it is repaired and what that may cost."""
    damage = find_class(REGISTRY, word)
    lines = [
        f"{damage.code} {damage.slug} ({damage.family}, {damage.severity.word}, {damage.safety.value})",
        "",
    ]
    lines.append(damage.title)
    for heading, body in damage.sections.items():
        lines += ["", heading, "-" * len(heading), body]
    lines += ["", f"next:  hermes-dbtools runbook {damage.slug}"]
    return "\n".join(lines) + "\n"


def rules() -> dict[str, Rule]:
    """The classes by code as the formats of a report show them."""
    return {
        d.code: Rule(
            d.code,
            d.slug,
            d.family,
            d.severity.word,
            d.safety.value,
            d.answers,
            d.title,
            d.sections["What it means"],
            d.sections["Repair"],
        )
        for d in REGISTRY
    }


def procedures() -> tuple[tuple[str, str], ...]:
    """Every runbook that is about no single class, with its title: what to begin with, then in order of name."""
    found = sorted(file.name for file in _folder(PROCEDURES).iterdir() if file.name.endswith(".md"))
    paths = [*BESIDE, *(f"{PROCEDURES}/{name}" for name in found)]
    return tuple((_slug(path), _title(_text(path))) for path in paths)


def runbooks() -> str:
    """The runbooks there are."""
    rows = [*procedures(), *((damage.slug, damage.title) for damage in REGISTRY)]
    return columns(rows, ["runbook", "for"]) + "\n"


def runbook(word: str) -> str:
    """The runbook of one class or the procedure of this name, as Markdown. Raises UsageError when there is none.

    A name may be that of its file, as links in other runbooks have it.
    """
    files = {_slug(path): path for path in BESIDE}
    files |= {
        slug: f"{PROCEDURES}/{slug.replace('-', '_')}.md"
        for slug, _title in procedures()
        if slug not in files
    }
    files |= {name: f"{damage.path}.md" for damage in REGISTRY for name in (damage.slug, damage.code.lower())}
    name = _slug(word.lower())
    if name not in files:
        raise unknown(word, "runbook", files, "runbook")
    return without_comments(_text(files[name]))


def playbook() -> str:
    """The Ansible playbook that scans many hosts, as YAML."""
    return _text("many-hosts/scan.yml")


def _text(path: str) -> str:
    return _folder(path).read_text("utf-8")


def _folder(path: str) -> Traversable:
    target = queries.resource("runbooks")
    for part in path.split("/"):
        target = target / part
    return target


def _slug(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md").replace("_", "-")


def _title(markdown: str) -> str:
    return markdown.partition("\n")[0].lstrip("# ")
