"""Check the words an operator uses for damage classes and their answers; looks at no file."""

from __future__ import annotations

from collections.abc import Iterable

from .damage._declare import Damage
from .model import UsageError
from .sizes import short

NEAR = 6
"""Names that are offered for one that nothing has."""


def selected(registry: Iterable[Damage], select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """The codes that `select` and `ignore` leave; each word is a code, a slug or a family.

    Raises UsageError for a word that no class has.
    """
    registry = tuple(registry)
    known = {word for damage in registry for word in (damage.code, damage.slug, damage.family)}
    for word in (*select, *ignore):
        if word not in known and word.upper() not in known:
            raise unknown(word, "damage class or family", known, "checks")

    def named(words: tuple[str, ...], damage: Damage) -> bool:
        return any(word in (damage.slug, damage.family) or word.upper() == damage.code for word in words)

    return frozenset(
        damage.code
        for damage in registry
        if (not select or named(select, damage)) and not named(ignore, damage)
    )


def find_class(registry: Iterable[Damage], word: str) -> Damage:
    """The class of this slug or code. Raises UsageError when there is none."""
    slugs = []
    for damage in registry:
        if word == damage.slug or word.upper() == damage.code:
            return damage
        slugs.append(damage.slug)
    raise unknown(word, "damage class", slugs, "checks")


def unknown(word: str, what: str, names: Iterable[str], command: str) -> UsageError:
    """That nothing has this name, with the names that are near it and the command that lists all."""
    from difflib import get_close_matches

    meant = word.lower().replace("_", "-").replace(" ", "-")
    ordered = sorted(names)
    near = [name for name in ordered if len(meant) > 2 and (meant in name or name in meant)]
    near += get_close_matches(meant, ordered, NEAR)
    told = ", ".join([*dict.fromkeys(near)][:NEAR])
    like = f"; near it: {told}" if told else ""
    return UsageError(f"no {what} is called {short(word, 60)!r}{like}; hermes-dbtools {command} lists them")


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
