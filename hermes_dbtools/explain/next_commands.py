"""Say which commands to run next, each as a shell takes it; runs none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..home import DATABASE_NAME, Home, default_home, other_profiles
from ..model import CouldNotLook, UsageError
from ..plan import FIRST, PlanOptions, make_plan, mending_answers
from ..shown import shell_word
from ..sizes import path_text
from .document import Command
from .findings import Answer
from .looking import Seen

REBUILT = "transcript-without-session"
"""The class whose repair is a command of its own, session by session."""

REPAIR = "hermes-dbtools repair"

STRUCTURE = "HDB002"
"""The class of files whose rows are got out by a salvage."""

OUTPUT = "salvaged.db"

MOST = 3
"""Sessions that get a command of their own."""


@dataclass(frozen=True, slots=True)
class Place:
    """The file as an argument of a command: as DB and as `--home`, each with a space before it, '' for the default one."""

    home: Home
    database: str
    option: str


def place_of(home: Home) -> Place:
    """How commands name the file of a home."""
    try:
        default = home.database == default_home() / DATABASE_NAME
    except UsageError:
        default = False
    word = shell_word(path_text(home.database))
    return Place(home, "" if default else f" {word}", "" if default else f" --home {word}")


def commands(
    place: Place, answer: Answer, slugs: Collection[str], sessions: Sequence[Seen], again: str
) -> list[Command]:
    """What to run, most important first: about the classes of `slugs`. `again` asks the same question."""
    if answer.broken_file:
        first = next(one for one in answer.about if one.code in FIRST)
        commands = [Command(f"hermes-dbtools runbook {first.slug}", "what to do first, step by step")]
        return [*commands, *(_salvage(place) if first.code == STRUCTURE else ())]
    found = [*_repairs(place, answer, slugs, again), *_elsewhere(place, sessions)]
    hidden = [one for one in sessions if one.hidden]
    if hidden and not any(one.command.startswith(REPAIR) for one in found):
        word = session_word(hidden[0].place.id)
        found.insert(
            0, Command(f"hermes-dbtools sessions show{place.option} {word}", "its lineage and all rows of it")
        )
    if not found:
        found.append(Command(f"hermes-dbtools scan{place.database}", "the whole file"))
    return found


def _repairs(place: Place, answer: Answer, slugs: Collection[str], again: str) -> Iterator[Command]:
    """The repair of what was found: of what needs no consent, then of what drops data, then what is done by hand."""
    plan = make_plan(answer.report, PlanOptions())
    allowed = make_plan(answer.report, PlanOptions(allow_lossy=True))
    planned = [slug for slug in _slugs(step.slug for step in plan.steps) if slug in slugs]
    lossy = [slug for slug in _slugs(step.slug for step in allowed.steps) if slug in {*slugs} - {*planned}]
    repair = f"{REPAIR}{place.database} --select "
    if planned:
        yield Command(repair + ",".join(planned), "what would be changed (nothing is written)")
    if lossy:
        yield Command(
            f"{repair}{','.join(lossy)} --allow-lossy", "what would be dropped (nothing is written)"
        )
    if not planned and any(one.slug in slugs for one in plan.skipped_active):
        yield Command(again, "again, when nobody uses the session any more")
    left = _slugs(one.slug for one in plan.skipped if one.slug in slugs)
    for slug in [slug for slug in left if slug not in (*planned, *lossy, REBUILT)][:MOST]:
        choices = list(mending_answers(answer.report, slug))
        for choice in [one for one, lossy in choices if not lossy]:
            command = f"{repair}{slug} --choose {slug}={choice}"
            yield Command(command, f"what {choice!r} would change (nothing is written)")
        yield Command(f"hermes-dbtools runbook {slug}", "what it means, step by step")
        for choice in [one for one, lossy in choices if lossy]:
            command = f"{repair}{slug} --choose {slug}={choice} --allow-lossy"
            yield Command(command, f"what {choice!r} would drop (nothing is written)")


def _elsewhere(place: Place, sessions: Iterable[Seen]) -> Iterator[Command]:
    """What to do for sessions that are not in the file."""
    lost = [one.place for one in sessions if not one.place.row]
    for one in [one for one in lost if one.transcripts and not one.deleted][:MOST]:
        yield Command(
            f"hermes-dbtools sessions rebuild{place.option} {session_word(one.id)}",
            "what a rebuild from its transcript would add (nothing is written)",
        )
    for one in [one for one in lost if one.profiles][:MOST]:
        for other in _files(place.home, one.profiles):
            yield Command(
                f"hermes-dbtools explain {other} {session_word(one.id)}", "the same question, of that profile"
            )


def _salvage(place: Place) -> Iterator[Command]:
    """How to get at the rows of a damaged file."""
    source, output = (
        shell_word(path_text(path)) for path in (place.home.database, place.home.database.with_name(OUTPUT))
    )
    yield Command(
        f"hermes-dbtools salvage {source} {output}",
        "carries what can be read into a new file (the damaged one is not written)",
    )


def deletes(place: Place, sessions: Iterable[Seen]) -> Iterator[Command]:
    """How to delete what a plain delete cannot."""
    for one in [one for one in sessions if one.blocked][:MOST]:
        yield Command(
            f"hermes-dbtools sessions delete{place.option} {session_word(one.place.id)}",
            "what a delete in the right order would remove (nothing is written)",
        )


def _files(home: Home, profiles: Sequence[str]) -> list[str]:
    """The files of other profiles by their names."""
    try:
        others = other_profiles(home)
    except CouldNotLook:
        return []
    return [shell_word(path_text(other.database)) for other in others if other.profile in profiles][:1]


def _slugs(slugs: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(slugs))


def session_word(word: str) -> str:
    """An id as the last argument of a command."""
    return f"-- {shell_word(word)}" if word.startswith("-") else shell_word(word)
