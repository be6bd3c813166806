"""Answer a question about a session or a log: look, scan, and put together what it comes to; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import apsw

from ..damage._declare import ScanContext
from ..home import Home
from ..model import CouldNotLook
from ..sizes import counted, path_text
from . import findings, looking, places, statements, verdicts
from .document import About, Explanation, Held, Holding, Kind, Log, Session
from .failures import failures
from .findings import Answer, Question
from .looking import Looked, Seen
from .next_commands import commands, deletes, place_of, session_word
from .reading_log import LogReading
from .reading_log import Seen as Lines

Progress = Callable[[str], None]

UNREADABLE = (apsw.Error, CouldNotLook, OSError)
"""Why rows may not be readable; then the scan says what is wrong with the file."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question: what was looked up, what was found, and the log where it came from one."""

    home: Home
    looked: Looked
    answer: Answer
    again: str
    log: LogReading | None = None

    @property
    def deleting(self) -> bool:
        """Whether the question is about a delete that failed."""
        kinds = self.log.kinds.values() if self.log is not None else ()
        return any(failures().statements.delete in lines.statements for lines in kinds)


def explain_session(home: Home, word: str, progress: Progress, now: float | None = None) -> Explanation:
    """Why a session fails or is hidden. `word` is an id, its unique beginning or a title; `now` is epoch seconds.

    Raises UsageError for a word that nothing knows, CouldNotLook where nothing of the file can be looked at.
    """
    moment = time.time() if now is None else now
    try:
        looked = looking.sessions(home, moment, lambda context: (places.meant(context, word),))
    except UNREADABLE as error:
        return _without_rows(home, moment, progress, error)
    (seen,) = looked.sessions
    answer = findings.look(home, Question((seen.place.id,), seen.family), moment, progress)
    place = place_of(home)
    again = f"hermes-dbtools explain{place.database} {session_word(seen.place.id)}"
    return _explanation(_Asked(home, looked, answer, again))


def explain_log(
    home: Home, log: LogReading, progress: Progress, now: float | None = None, again: str = ""
) -> Explanation:
    """What the failures of a log mean, of the sessions that it names and of the file.

    `again` asks the same; without it (a log on standard input is gone), a session is asked about again.
    """
    moment = time.time() if now is None else now
    select = _classes(log)
    ids = tuple(log.ids)

    def named(_context: ScanContext) -> tuple[str, ...]:
        return ids

    try:
        looked = looking.sessions(home, moment, named) if log.kinds else Looked(())
    except UNREADABLE as error:
        return _without_rows(home, moment, progress, error, log)
    family = {one for seen in looked.sessions for one in seen.family}
    question = Question(ids, family, everyone=True, select=select)
    answer = findings.look(home, question, moment, progress)
    return _explanation(_Asked(home, looked, answer, again or _again(home, looked), log))


def _again(home: Home, looked: Looked) -> str:
    """Ask again about the first session that is live, else about the file."""
    held = [seen.place.id for seen in looked.sessions if seen.live is not None]
    database = place_of(home).database
    return (
        f"hermes-dbtools explain{database} {session_word(held[0])}"
        if held
        else f"hermes-dbtools scan{database}"
    )


def _classes(log: LogReading) -> tuple[str, ...]:
    """The classes that the kinds of a log point at; the structure is always asked."""
    words = list(failures().structure)
    for lines in log.kinds.values():
        words += lines.failure.classes
    return tuple(dict.fromkeys(words))


def _without_rows(
    home: Home, now: float, progress: Progress, error: Exception, log: LogReading | None = None
) -> Explanation:
    """The answer where rows cannot be read: what is wrong with the file. Raises CouldNotLook where that is not told."""
    question = Question((), everyone=True, select=failures().structure)
    answer = findings.look(home, question, now, progress)
    if not answer.broken_file:
        raise CouldNotLook(str(error)) from None
    return _explanation(_Asked(home, Looked(()), answer, "", log))


def _explanation(asked: _Asked) -> Explanation:
    answer = asked.answer
    sessions = [_session(asked, seen) for seen in asked.looked.sessions]
    grave = _grave(asked)
    fails = any(verdicts.wrong(seen) for seen in asked.looked.sessions)
    bad = bool(grave) or fails
    mended = grave | {one.slug for one in answer.about if (fails or not grave) and one.relation == "own"}
    blind = [*answer.blind, *(f"profile {name}: could not look" for name in asked.looked.unseen)]
    next_ = commands(place_of(asked.home), answer, mended, asked.looked.sessions, asked.again)
    if asked.deleting and not answer.broken_file:
        next_ = [*deletes(place_of(asked.home), asked.looked.sessions), *next_]
    return Explanation(
        format="hermes-dbtools/explain",
        format_version=1,
        database=path_text(asked.home.database),
        holders=[Holding(one.pid, one.name) for one in answer.report.holders],
        all_live=answer.report.all_live,
        log=_log(asked) if asked.log is not None else None,
        sessions=sessions,
        totals=answer.totals,
        could_not_look=blind,
        verdict=_verdict(asked, bad=bad),
        next=next_,
        exit_code=1 if bad else 3 if answer.blind else 0,
    )


def _concerning(asked: _Asked, seen: Seen) -> list[About]:
    """The findings about a session; where it was asked for by itself, also those of its family and of the file."""
    own = asked.answer.concerned.get(seen.place.id, [])
    if asked.log is not None:
        return list(own)
    return [*own, *(one for one in asked.answer.about if one.relation != "own")]


def _grave(asked: _Asked) -> set[str]:
    """The classes that answer the question: from warning on, and notes about a session of a log that points at them."""
    pointed = _pointed(asked.answer, _classes(asked.log)) if asked.log is not None else set()
    return {
        one.slug
        for one in asked.answer.about
        if one.severity != "note" or (one.relation == "own" and one.slug in pointed)
    }


def _pointed(answer: Answer, words: Collection[str]) -> set[str]:
    """The slugs that words mean: slugs themselves, or families."""
    return {result.slug for result in answer.report.results if {result.slug, result.family} & {*words}}


def _session(asked: _Asked, seen: Seen) -> Session:
    place = seen.place
    about = _concerning(asked, seen)
    live = seen.live
    return Session(
        id=place.id,
        state=_state(seen),
        ended=place.ended,
        deleted=place.deleted,
        hidden=seen.hidden,
        shown_as=seen.shown_as,
        live=Held(live.reason, live.holder, live.expires_at) if live else None,
        named_by=place.named_by,
        transcripts=list(place.transcripts),
        profiles=list(place.profiles),
        failing=list(seen.failing),
        delete_blocked_by=[one for one in seen.blocked if asked.deleting or not statements.ledger(one)],
        findings=about,
        verdict=verdicts.BROKEN_FILE if asked.answer.broken_file else verdicts.sentence(seen, about),
    )


def _state(seen: Seen) -> str:
    place = seen.place
    if not place.row:
        return "missing"
    if seen.live is not None:
        return "live"
    if place.archived:
        return "archived"
    return "closed" if place.closed else "open"


def _log(asked: _Asked) -> Log:
    assert asked.log is not None
    grave = _grave(asked)
    structure = failures().structure
    kinds = [
        _kind(lines, _pointed(asked.answer, (*structure, *lines.failure.classes)) & grave)
        for lines in asked.log.kinds.values()
    ]
    return Log(asked.log.name, asked.log.bytes, kinds, asked.log.more_ids)


def _kind(lines: Lines, found: Collection[str]) -> Kind:
    failure = lines.failure
    return Kind(
        kind=failure.kind,
        count=lines.count,
        first=lines.first,
        last=lines.last,
        means=failure.means,
        follows=lines.follows,
        statements=lines.statements,
        sessions=list(lines.ids),
        found=bool(found),
        calm=failure.calm,
    )


def _verdict(asked: _Asked, *, bad: bool) -> str:
    """The one sentence above everything else."""
    answer, sessions = asked.answer, asked.looked.sessions
    if answer.broken_file:
        return verdicts.BROKEN_FILE
    if asked.log is None:
        (seen,) = sessions
        return verdicts.sentence(seen, _concerning(asked, seen))
    if not asked.log.kinds:
        return "the log holds no failure of the store"
    failing = sum(verdicts.wrong(seen) for seen in sessions)
    if failing:
        return f"{failing:,} of {counted(len(sessions), 'session')} of this log cannot be saved now"
    if bad:
        return "what the log complains of is still in the file"
    if answer.blind:
        return "nothing was found, and not everything could be looked at"
    return "nothing is wrong in the file now"
