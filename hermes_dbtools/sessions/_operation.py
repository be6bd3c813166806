"""What a command on sessions hands to `apply` beside its plan: how to find again what the plan is for; holds no command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..damage._declare import ScanContext
from ..model import Finding, Value


@dataclass(frozen=True, slots=True)
class Operation:
    """One request as a planner: `find` knows the ids that were asked for and yields one finding per root."""

    code: str
    slug: str
    sql: str
    find: Callable[[ScanContext], Iterable[Finding]]

    def rows(
        self,
        context: ScanContext,
        block: str,
        bindings: Mapping[str, Value] | None = None,
        names: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Iterator[tuple[Value, ...]]:
        """Rows of one of its own blocks."""
        return context.rows(self.sql, block, bindings, names)
