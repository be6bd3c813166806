"""What a renderer may know beside the report document: the catalogue, and how names are written; opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..identity import name_below
from ..report_document import ReportDocument

ORDER = ("note", "warning", "error")


@dataclass(frozen=True, slots=True)
class Rule:
    """A damage class as people read it. `safety` says what its repair may do to data; `answers` have the default first."""

    code: str
    slug: str
    family: str
    severity: str
    safety: str
    answers: tuple[str, ...]
    title: str
    meaning: str
    repair: str


@dataclass(frozen=True, slots=True)
class Setting:
    """The rules by code, the folder that paths are named from, and the lowest severity that counts (or `never`)."""

    rules: Mapping[str, Rule]
    folder: str
    fail_on: str = "warning"

    def name(self, path: str) -> str:
        """A database as it is named in an annotation or a heading."""
        return name_below(path, self.folder)

    def fails(self, severity: str) -> bool:
        """Whether findings of this severity make the exit code 1."""
        return self.fail_on in ORDER and ORDER.index(severity) >= ORDER.index(self.fail_on)


Renderer = Callable[[ReportDocument, Setting], str]
