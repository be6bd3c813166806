"""What a shell offers while a command is typed: slugs, codes, families, answers, runbooks and files; looks at no database."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

FILES = frozenset(
    {"FILE", "FOLDER", "OUTPUT", "SOURCE", "BEFORE", "AFTER", "BACKUP", "[DB]", "[DB]...", "FILE..."}
)
"""What options and arguments that take a path are called in the help."""


def selection(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Words of --select and --ignore: slugs and families, codes where one was begun; several with commas between."""
    from ..damage import REGISTRY

    before, comma, word = incomplete.rpartition(",")
    families = dict.fromkeys(damage.family for damage in REGISTRY)
    items = [CompletionItem(name, help=f"every check of {name}") for name in families]
    return _beginning([*items, *_classes(word)], word, before + comma)


def classes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A damage class."""
    return _beginning(_classes(incomplete), incomplete)


def runbooks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A damage class, or a procedure."""
    from .. import catalogue

    items = [CompletionItem(slug, help=title) for slug, title in catalogue.procedures()]
    return _beginning([*items, *_classes(incomplete)], incomplete)


def choices(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """SLUG=ANSWER, of the classes that have more than one answer."""
    from ..damage import REGISTRY

    items = [
        CompletionItem(f"{damage.slug}={answer}", help=damage.title)
        for damage in REGISTRY
        if len(damage.answers) > 1
        for answer in damage.answers
    ]
    return _beginning(items, incomplete)


def makers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A damage that a fixture can have, and its kinds."""
    from ..fixtures.makers import MAKERS

    words = [
        word for slug, maker in MAKERS.items() for word in (slug, *(f"{slug}:{kind}" for kind in maker.kinds))
    ]
    return _beginning([CompletionItem(word) for word in words], incomplete)


def _classes(word: str) -> list[CompletionItem]:
    from ..damage import REGISTRY

    codes = word[:1].isupper()
    return [CompletionItem(damage.code if codes else damage.slug, help=damage.title) for damage in REGISTRY]


def _beginning(items: Iterable[CompletionItem], word: str, before: str = "") -> list[CompletionItem]:
    return [
        CompletionItem(before + item.value, help=item.help) for item in items if item.value.startswith(word)
    ]
