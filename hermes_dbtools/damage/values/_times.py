"""Judge times and say what they should be; reads no database. Times are epoch seconds, as numbers.

A time is sound between the first second of 1970 and the beginning of 2103, the window in which readers of the store
believe it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...model import Value

FIRST, LAST = 1.0, 4_200_000_000.0
DIVISORS = (1_000.0, 1_000_000.0)
"""Milliseconds and microseconds: other units occur in no report."""

DAY = 86_400.0
STEP = 0.001
"""Seconds between rows for which only one neighbour is known."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One row's time: its id, its value where that is a number, and whether it is NULL."""

    id: int
    value: Value
    null: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """What is known of the time around some rows; None where it is not.

    `before` and `after` are of the messages of other sessions that were put in just before and just after.
    """

    start: float | None
    end: float
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What unsound rows should hold: a divisor where the value follows from the data, a time where it is estimated."""

    divided: dict[int, float]
    estimated: dict[int, float]
    unknown: tuple[int, ...]


def sound(value: object) -> float | None:
    """The value as a time, None where it is none."""
    if isinstance(value, int | float) and math.isfinite(value) and FIRST <= value <= LAST:
        return float(value)
    return None


def divisor(value: object, low: float, high: float) -> float | None:
    """By what a time must be divided to lie between two times, None where no division does that."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return next((by for by in DIVISORS if sound(value / by) and low <= value / by <= high), None)


def started(value: object, now: float) -> float | None:
    """When something started, as well as one value tells it: sound, or sound once divided."""
    by = divisor(value, FIRST, now)
    return sound(value) or (value / by if by and isinstance(value, int | float) else None)


def answers(moments: Sequence[Moment], span: Span) -> Answers:
    """What the unsound rows of one session should hold; `moments` are all its rows in the order of ids.

    A division counts where its result lies between the neighbours: the row before, sound or divided, and the next sound row;
    the start of the session and now, where there is no such row. In a session without any sound row, what was put in before and
    after it in other sessions counts too. The others are spread evenly between their neighbours.
    """
    times = [None if moment.null else sound(moment.value) for moment in moments]
    divided = _divide(moments, times, span) or _divide_among_others(moments, times, span)
    estimated: dict[int, float] = {}
    unknown: list[int] = []
    place = 0
    while place < len(moments):
        if times[place] is not None:
            place += 1
            continue
        end = place
        while end < len(moments) and times[end] is None:
            end += 1
        run = moments[place:end]
        guesses = _spread(
            len(run), times[place - 1] if place else None, times[end] if end < len(times) else None, span
        )
        if guesses is None:
            unknown += [moment.id for moment in run]
        else:
            estimated |= {moment.id: guess for moment, guess in zip(run, guesses, strict=True)}
        place = end
    return Answers(divided, estimated, tuple(unknown))


def _divide(moments: Sequence[Moment], times: list[float | None], span: Span) -> dict[int, float]:
    """The divisors of rows whose division lands; their times are filled in."""
    following: list[float | None] = [None] * len(times)
    after: float | None = None
    for place in range(len(times) - 1, -1, -1):
        following[place] = after
        after = times[place] if times[place] is not None else after
    divided: dict[int, float] = {}
    before = span.start
    for place, moment in enumerate(moments):
        time = times[place]
        if time is None and not moment.null:
            later = following[place]
            low = before if before is not None else (later - DAY if later is not None else None)
            high = later if later is not None else span.end
            by = divisor(moment.value, min(low, high), max(low, high)) if low is not None else None
            if by is not None and isinstance(moment.value, int | float):
                divided[moment.id] = by
                time = times[place] = moment.value / by
        before = time if time is not None else before
    return divided


def _divide_among_others(
    moments: Sequence[Moment], times: list[float | None], span: Span
) -> dict[int, float]:
    """The divisors of rows of a session without any sound row, by what others got around them; a day is left for clocks."""
    if any(time is not None for time in times) or (span.before is None and span.after is None):
        return {}
    low = span.before if span.before is not None else span.after
    high = span.after if span.after is not None else span.end
    divided: dict[int, float] = {}
    for place, moment in enumerate(moments):
        by = None if low is None else divisor(moment.value, min(low, high) - DAY, max(low, high) + DAY)
        if by is not None and isinstance(moment.value, int | float):
            divided[moment.id] = by
            times[place] = moment.value / by
    return divided


def _spread(count: int, before: float | None, after: float | None, span: Span) -> list[float] | None:
    if before is None and after is None:
        before = span.start
    if before is not None and after is not None:
        step = (after - before) / (count + 1)
        return [round(before + step * (number + 1), 6) for number in range(count)]
    if before is not None:
        return [round(before + STEP * (number + 1), 6) for number in range(count)]
    if after is not None:
        return [round(after - STEP * (count - number), 6) for number in range(count)]
    return None


@dataclass(frozen=True, slots=True)
class Facts:
    """What else is known of one session: its start, end, first and last message, and the starts of its neighbours."""

    start: float | None
    end: float | None
    first: float | None
    last: float | None
    before: float | None
    after: float | None

    def start_estimate(self) -> float | None:
        """When it may have started: with its first message, at its end, between its neighbours."""
        between = [time for time in (self.before, self.after) if time is not None]
        return self.first or self.end or (sum(between) / len(between) if between else None)

    def is_start(self, value: object, now: float) -> float | None:
        """The divisor that puts a value shortly before the first message or between the neighbours."""
        by = None
        if self.first is not None:
            by = divisor(value, self.first - DAY, self.first)
        if by is None and self.before is not None:
            by = divisor(value, self.before, self.after if self.after is not None else now)
        return by


def divisor_of(column: str, value: Value, facts: Facts, now: float) -> float | None:
    """By what a time of a session must be divided to fit what else is known of it, None where nothing does."""
    if column == "started_at":
        return facts.is_start(value, now)
    low = facts.start or facts.first
    if low is None:
        return None
    later = DAY if column.startswith("compression_") else 0.0
    return divisor(value, low, now + later)


def estimate_of(column: str, facts: Facts) -> float | None:
    """What an unsound time becomes; None for NULL, or where nothing is known of a time that must be there."""
    if column == "started_at":
        return facts.start_estimate()
    if column == "ended_at":
        return facts.last or facts.start
    return facts.last if column == "last_activity_at" else None
