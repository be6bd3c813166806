"""Say what each answer of each repair would free, and how many bytes of images there are; plans nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .damage._declare import whole
from .home import Home
from .model import Result, Status
from .scanning import LOOK_ERRORS, ScanOptions, scan_home
from .selection import selected
from .space_model import Gain


@dataclass(slots=True)
class _Sum:
    safety: str
    rows: int = 0
    files: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Gains:
    """What repairs would free; `unknown`: why nothing is known. Bytes of images are None where their class could not look."""

    gains: tuple[Gain, ...] = ()
    unreferenced: int | None = None
    inline: int | None = None
    inline_count: int | None = None
    unknown: str = ""


def gains(home: Home, now: float, progress: Callable[[str], None]) -> Gains:
    """Scan once, with all findings, and add up what their answers would free. `now` is epoch seconds."""
    options = ScanOptions(limit=None, now=now, fail_on=None)
    try:
        report = scan_home(home, options, selected(options.registry, (), ()), progress)
    except LOOK_ERRORS as error:
        return Gains(unknown=str(error))
    if report.error:
        return Gains(unknown=report.error)
    known = {result.slug: result for result in report.results}
    return Gains(
        tuple(gain for result in report.results for gain in _of_class(result)),
        _evidence(known.get("unreferenced-images"), "bytes"),
        _evidence(known.get("inline-images"), "bytes"),
        _evidence(known.get("inline-images"), "images"),
    )


def _of_class(result: Result) -> list[Gain]:
    sums: dict[str, _Sum] = {}
    for finding in result.findings:
        for remedy in finding.remedies:
            one = sums.setdefault(remedy.answer, _Sum(remedy.safety.value))
            if remedy.refused is not None:
                one.refused += 1
            if remedy.step is not None:
                one.rows += remedy.step.bytes_freed
                one.files += sum(file.size for file in remedy.step.trash)
    return [
        Gain(result.code, result.slug, answer, one.safety, one.rows, one.files, one.refused)
        for answer, one in sums.items()
        if one.rows or one.files
    ]


def _evidence(result: Result | None, name: str) -> int | None:
    if result is None or result.status not in (Status.CLEAN, Status.DAMAGED):
        return None
    return sum(whole(finding.evidence.get(name)) for finding in result.findings)
