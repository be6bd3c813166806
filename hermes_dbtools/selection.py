"""Check the words an operator uses for damage classes and their answers; looks at no file."""

from __future__ import annotations

from collections.abc import Iterable

from .damage._declare import Damage
from .model import UsageError


def selected(registry: Iterable[Damage], select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """The codes that `select` and `ignore` leave; each word is a code, a slug or a family.

    Raises UsageError for a word that no class has.
    """
    registry = tuple(registry)
    known = {word for damage in registry for word in (damage.code, damage.slug, damage.family)}
    for word in (*select, *ignore):
        if word not in known and word.upper() not in known:
            raise UsageError(
                f"no damage class or family is called {word!r}; hermes-dbtools checks lists them"
            )

    def named(words: tuple[str, ...], damage: Damage) -> bool:
        return any(word in (damage.slug, damage.family) or word.upper() == damage.code for word in words)

    return frozenset(
        damage.code
        for damage in registry
        if (not select or named(select, damage)) and not named(ignore, damage)
    )


def find_class(registry: Iterable[Damage], word: str) -> Damage:
    """The class of this slug or code. Raises UsageError when there is none."""
    for damage in registry:
        if word == damage.slug or word.upper() == damage.code:
            return damage
    raise UsageError(f"no damage class is called {word!r}; hermes-dbtools checks lists them")


def checked_choices(registry: Iterable[Damage], choices: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Answers by slug. Raises UsageError for an unknown class, an unknown answer, or two answers for one class."""
    registry = tuple(registry)
    checked: dict[str, str] = {}
    for word, answer in choices:
        damage = find_class(registry, word)
        if answer not in damage.answers:
            raise UsageError(
                f"{damage.slug} has no answer {answer!r}; its answers are {', '.join(damage.answers)}"
            )
        if checked.setdefault(damage.slug, answer) != answer:
            raise UsageError(f"{damage.slug} was given two answers: {checked[damage.slug]} and {answer}")
    return checked


def parse_choice(text: str) -> tuple[str, str]:
    """`SLUG=ANSWER` as a pair. Raises UsageError for anything else."""
    slug, equals, answer = text.partition("=")
    if not equals or not slug or not answer:
        raise UsageError(f"--choose takes SLUG=ANSWER, not {text!r}")
    return slug, answer
