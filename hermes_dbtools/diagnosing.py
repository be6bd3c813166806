"""From a request to a report in its format, as the `scan` command needs it; writes at most the baseline it was given."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from . import baseline, catalogue, documents, engine, parallel
from .damage import REGISTRY
from .model import Report, UsageError
from .replacing import replace_content
from .report import scans
from .report.formats import RENDERERS
from .report.setting import Setting
from .scanning import ScanOptions, exit_code
from .targets import Target


@dataclass(frozen=True, slots=True)
class Request:
    """What the operator asked for; `host` is a name for the report to carry."""

    targets: tuple[Target, ...]
    options: ScanOptions
    jobs: int = 1
    baseline_file: str | None = None
    update_baseline: bool = False
    host: str = ""


def diagnose(request: Request, progress: Callable[[str], None]) -> Report:
    """Scan, and hold what was found against the baseline, brought up to date before where that was asked.

    Raises UsageError for a baseline that is none or cannot be written.
    """
    if request.update_baseline and request.baseline_file is None:
        raise UsageError("--update-baseline needs --baseline FILE")
    known = _known(request)
    options = request.options if known is None else replace(request.options, limit=None)
    report = parallel.scan(request.targets, options, progress, jobs=request.jobs)
    if known is not None:
        if request.update_baseline:
            known = baseline.updated(report, known, options.fail_on)
            _write(known)
        today = datetime.datetime.fromtimestamp(options.now, datetime.UTC).date()
        report = baseline.accept(report, known, today)
    return msgspec.structs.replace(
        report, host=request.host, exit_code=exit_code(report.databases, options.fail_on)
    )


def rendered(report: Report, request: Request, format_: str, *, verbose: bool, timings: bool) -> bytes:
    """The report in a format; names are relative to the folder it was asked for in."""
    if format_ == "table":
        return scans.scan_text(report, verbose=verbose, timings=timings).encode("utf-8", "backslashreplace")
    document = documents.report_document(report, engine.versions(), timings=timings)
    if format_ == "json":
        return documents.encode(document)
    fail_on = request.options.fail_on
    setting = Setting(catalogue.rules(), str(Path.cwd()), "never" if fail_on is None else fail_on.word)
    text = RENDERERS[format_](documents.typed_report(document), setting)
    return text.encode("utf-8", "backslashreplace")


def _known(request: Request) -> baseline.Baseline | None:
    if request.baseline_file is None:
        return None
    codes = frozenset(damage.code for damage in REGISTRY)
    return baseline.load(request.baseline_file, codes, may_be_missing=request.update_baseline)


def _write(known: baseline.Baseline) -> None:
    try:
        replace_content(known.file, baseline.encode(known))
    except (OSError, ValueError) as error:
        raise UsageError(f"{known.file}: {getattr(error, 'strerror', None) or error}") from None
