"""The catalogue of damage classes and their runbooks as text; looks at no database."""

from __future__ import annotations

from tabulate import tabulate

from . import queries
from .damage import REGISTRY
from .report.setting import Rule
from .selection import find_class
from .sizes import answers_text


def listing() -> str:
    """Every class in one line, in the order of scan and of repair."""
    rows = [
        [d.code, d.slug, d.family, d.severity.word, d.safety.value, answers_text(d.answers)] for d in REGISTRY
    ]
    headers = ["code", "damage", "family", "severity", "safety", "answers (default first)"]
    return tabulate(rows, headers, tablefmt="plain", disable_numparse=True) + "\n"


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


def runbooks() -> str:
    """The runbooks there are."""
    rows = [[damage.slug, damage.title] for damage in REGISTRY]
    return tabulate(rows, ["runbook", "for"], tablefmt="plain", disable_numparse=True) + "\n"


def runbook(word: str) -> str:
    """The runbook of one class, as Markdown."""
    return _text(f"{find_class(REGISTRY, word).path}.md")


def playbook() -> str:
    """The Ansible playbook that scans many hosts, as YAML."""
    return _text("many-hosts/scan.yml")


def _text(path: str) -> str:
    target = queries.resource("runbooks")
    for part in path.split("/"):
        target = target / part
    return target.read_text("utf-8")
