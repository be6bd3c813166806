"""Render a comparison as text and JSON; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from ..columns import columns
from ..model import Severity
from ..shown import one_line, shell_word
from ..sizes import counted, search_text, short, size_text

if TYPE_CHECKING:
    from ..comparing.model import Comparison, RowName, Side, TableComparison

FORMAT_VERSION = 1
SHOWN = 10
"""Lines of one kind before the rest is only counted; JSON has more."""


def compare_document(comparison: Comparison, tool: Mapping[str, str]) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "format": "hermes-dbtools/compare",
        "format_version": FORMAT_VERSION,
        "tool": dict(tool),
        **msgspec.to_builtins(comparison),
    }


def compare_text(comparison: Comparison) -> str:
    """What changed, the worst first: rows lost, then sessions out of view, then damage that is new."""
    lines = [f"before  {_side(comparison.before)}", f"after   {_side(comparison.after)}", ""]
    if comparison.same_file:
        return "\n".join([*lines, "both are the same file: nothing to compare"]) + "\n"
    lines += _table(comparison.tables)
    for word, pick in _KINDS:
        for table in comparison.tables:
            lines += _rows(word, table, getattr(table, f"{pick}_rows"), getattr(table, pick))
    lines += _converted(comparison.tables)
    lines += _out_of_view(comparison)
    lines += _damage(comparison)
    lines += _shape(comparison)
    lines += _left_out(comparison.tables)
    if comparison.blind:
        lines += ["", *_some([f"could not look: {one_line(reason)}" for reason in comparison.blind])]
    return "\n".join([*lines, "", _summary(comparison)]) + "\n"


def compare_next(comparison: Comparison) -> list[str]:
    """What to run next."""
    first, last = comparison.before.shape.schema_version, comparison.after.shape.schema_version
    if first is not None and last is not None and last < first:
        words = f"{shell_word(comparison.after.path)} {shell_word(comparison.before.path)}"
        return [f"hermes-dbtools compare {words}   AFTER has the older schema: the other way round?"]
    after = shell_word(comparison.after.path)
    gravest = sorted(comparison.damage, key=lambda new: -Severity[new.severity.upper()])[:1]
    lines = [f"hermes-dbtools runbook {new.slug}   what it means, step by step" for new in gravest]
    if comparison.damage:
        lines.insert(0, f"hermes-dbtools scan {after}   everything that is damaged now")
    hidden = [one for one in comparison.out_of_view if one.row == "there"][:1]
    lines += [
        f"hermes-dbtools explain {after} {shell_word(one.session)}   why no list shows it" for one in hidden
    ]
    if comparison.lost:
        lines.append("hermes-dbtools runbook after-an-upgrade   what to do where rows were lost")
    return lines


_KINDS = (("lost", "lost"), ("changed", "changed"))


def _side(side: Side) -> str:
    number = side.shape.schema_version
    known = "" if side.shape.known else " (newer than known)"
    parts = [
        f"schema {'unknown' if number is None else number}, {search_text(side.shape.search_layout)}{known}",
        size_text(side.size),
        one_line(side.path),
    ]
    return f"{one_line(PurePath(side.path).name)} · {' · '.join(parts)}"


def _table(tables: Sequence[TableComparison]) -> list[str]:
    rows = [
        [
            one_line(table.table),
            *(f"{count:,}" for count in (table.before, table.after, table.lost, table.gained, table.changed)),
            f"{sum(table.converted.values()):,}",
        ]
        for table in tables
        if table.status == "compared" and (table.before or table.after)
    ]
    heads = ["table", "before", "after", "lost", "gained", "changed", "converted"]
    return columns(rows, heads, indent="  ", numbers=True).splitlines()


def _rows(word: str, table: TableComparison, named: Sequence[RowName], count: int) -> list[str]:
    if not count:
        return []
    columns = "".join(
        f", {one_line(column)} {rows:,}" for column, rows in table.columns.items() if word == "changed"
    )
    lines = ["", f"{word}: {count:,} of {one_line(table.table)}{columns}"]
    shown = named[:SHOWN]
    lines += [f"  {_row(row)}" for row in shown]
    if shown and count > len(shown):
        lines.append(f"  … and {count - len(shown):,} more")
    return lines


def _row(row: RowName) -> str:
    owner = f"of {one_line(short(row.session))}" if row.session else ""
    columns = f"({', '.join(one_line(column) for column in row.columns)})" if row.columns else ""
    return " ".join(word for word in (one_line(row.key), owner, columns) if word)


def _converted(tables: Sequence[TableComparison]) -> list[str]:
    lines = [
        f"converted: {rows:,} of {table.table}: {step}"
        for table in tables
        for step, rows in table.converted.items()
    ]
    return ["", *lines] if lines else []


def _out_of_view(comparison: Comparison) -> list[str]:
    count = comparison.out_of_view_count
    if not count:
        return []
    lines = ["", f"no longer in the list: {counted(count, 'session')}"]
    lines += [
        f"  {one_line(short(one.session))}: {one_line(one.why)}" for one in comparison.out_of_view[:SHOWN]
    ]
    return [*lines, f"  … and {count - SHOWN:,} more"] if count > SHOWN else lines


def _damage(comparison: Comparison) -> list[str]:
    lines: list[str] = []
    for new in comparison.damage:
        before = f", {new.before:,} before" if new.before else ""
        unknown = " (before could not be told)" if new.unknown else ""
        lines += [
            "",
            f"new damage: {new.severity} {new.code} {new.slug}: {new.new:,} new{before}{unknown}",
            *_some([f"  {one_line(key)}" for key in new.keys]),
        ]
    return lines


def _shape(comparison: Comparison) -> list[str]:
    lines = []
    first, last = comparison.before.shape, comparison.after.shape
    if first.schema_version != last.schema_version:
        lines.append(f"schema: {first.schema_version} before, {last.schema_version} after")
    if first.search_layout != last.search_layout:
        lines.append(f"search: {first.search_layout} before, {last.search_layout} after")
    for name, objects in msgspec.structs.asdict(comparison.shape).items():
        words = name.replace("_", " ")
        if name in ("columns_added", "columns_gone"):
            lines += [
                f"{words}, not compared: {one_line(table)}: {_list(columns)}"
                for table, columns in _by_table(objects)
            ]
        elif objects:
            lines.append(f"{words}: {_list(objects)}")
    return ["", *lines] if lines else []


def _by_table(columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    return [
        (table, [column.partition(".")[2] for column in group])
        for table, group in groupby(columns, key=lambda column: column.partition(".")[0])
    ]


def _left_out(tables: Sequence[TableComparison]) -> list[str]:
    lines = [
        f"not compared: {one_line(table.table)}: {one_line(table.reason)}"
        for table in tables
        if table.status == "left-out"
    ]
    return ["", *lines] if lines else []


def _summary(comparison: Comparison) -> str:
    tables = comparison.tables
    lost, changed = comparison.lost, sum(table.changed for table in tables)
    gained = sum(table.gained for table in tables)
    parts = [
        f"{counted(lost, 'row')} lost" if lost else "no row lost",
        f"{gained:,} gained",
        f"{changed:,} changed",
    ]
    if comparison.out_of_view_count:
        parts.append(f"{counted(comparison.out_of_view_count, 'session')} no longer in the list")
    if comparison.damage:
        count = len(comparison.damage)
        parts.append(f"{counted(count, 'kind')} of new damage")
    if comparison.blind:
        parts.append(f"could not look at {len(comparison.blind)}")
    return " · ".join(parts)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name) for name in names[: 3 * SHOWN])
    return shown + (f", … and {len(names) - 3 * SHOWN:,} more" if len(names) > 3 * SHOWN else "")


def _some(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"  … and {more:,} more"] if more > 0 else list(lines)
