"""Salvage one file into a new one: the order of the work; the source is never opened with SQLite and never written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from .. import naming, partials, queries
from ..file_marks import sidecar
from ..model import CouldNotLook, Refused
from ..private_files import create_private
from ..scratch_room import room_for_copy
from ..shape import Shape, read_shape
from ..shown import reason, shown
from ..sizes import path_text
from ..verification import verify_copy
from . import building, losses, parents, shapes, skeleton, values
from .asking import number
from .carrying import Carried, Carrier
from .doubts import find_doubts
from .facts import Salvaged, SalvagedTable
from .mapping import MappedTable, Store, map_store
from .pages import Pages
from .schema import read_schema
from .source import Source, private_source

Progress = Callable[[str], None]

NO_STORE = "what is left of it is no Hermes store; nothing was made"


def salvage(source: Path, output: Path, progress: Progress = lambda _text: None) -> Salvaged:
    """Read what can be read of `source` and make a store of the same shape of it at `output`, 0600, whole or not at all.

    Raises Refused when something is at `output` or it cannot be written, CouldNotLook when nothing can be read.
    """
    refuse_output(output)
    with private_source(source, progress) as found, _new_file(output, found) as partial:
        try:
            with Pages(found.copy, found.header.page_size, found.header.reserved) as pages:
                done = _build(found, pages, partial, output, progress)
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
            raise Refused(_unwritten_line(output, error)) from None
        return done


def refuse_output(output: Path) -> None:
    """Raise Refused when a file could not be made there, or would find the sidecar of another."""
    for path in (output, *(sidecar(output, suffix) for suffix in ("-wal", "-shm", "-journal"))):
        if os.path.lexists(path):
            raise Refused(f"{shown(path)} is there already; name a new file")
    if not output.parent.is_dir():
        raise Refused(f"{shown(output.parent)} is not a folder; make it first")


@contextmanager
def _new_file(output: Path, source: Source) -> Iterator[Path]:
    """A 0600 file beside `output` that takes its name at the end, or leaves nothing."""
    partial = _partial(output, source)
    try:
        yield partial
        try:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            naming.give_name(partial, output)
        except FileExistsError:
            raise Refused(f"{shown(output)} is there already; name a new file") from None
        except OSError as error:
            raise Refused(_unwritten_line(output, error)) from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                (sidecar(partial, suffix) if suffix else partial).unlink(missing_ok=True)


def _partial(output: Path, source: Source) -> Path:
    try:
        partials.remove_abandoned(output)
    except OSError as error:
        raise Refused(_unwritten_line(output, error)) from None
    partial = partials.partial_of(output)
    os.close(create_private(partial, source.state))
    return partial


def _unwritten_line(output: Path, error: Exception) -> str:
    return f"{shown(output)}: cannot be written ({reason(error)}); nothing was made"


@dataclass(frozen=True, slots=True)
class _Finished:
    """What was done after the rows had come."""

    not_made: tuple[str, ...]
    mended: parents.Mended
    search: tuple[str, ...]
    search_problem: str
    checked: values.Values


def _build(source: Source, pages: Pages, partial: Path, output: Path, progress: Progress) -> Salvaged:
    free = pages.claim_free_list(source.header.free_trunk, source.header.free_count)
    progress("its schema")
    schema = shapes.complete(read_schema(pages, source.header), pages)
    connection = building.begin(partial, source.header)
    try:
        made, not_made = building.make_tables(connection, schema.objects)
        shape = _shape(connection)
        progress("its pages")
        store = map_store(source, pages, schema, shape, made)
        doubts = find_doubts(source.copy, schema.objects) if store.whole else ()
        tables = _rows(connection, store, progress)
        finished = _finish(connection, store, tables, progress)
    finally:
        connection.close()
    verified = verify_copy(partial, search=False, progress=progress)
    return Salvaged(
        source=path_text(source.state.path),
        output=path_text(output),
        size=source.state.size,
        page_size=source.header.page_size,
        page_count=pages.count,
        header="derived" if source.header.derived else "file",
        schema=schema.origin,
        shape=schema.shape,
        log=source.log,
        log_lost=source.log_lost,
        free_list="whole" if free else "unreadable",
        unread_bytes=source.unread_bytes,
        tables=tables,
        schema_pages=schema.unreadable,
        uncertain=schema.uncertain,
        unplaced=store.unplaced,
        not_made=(*not_made, *finished.not_made),
        search=finished.search,
        search_problem=finished.search_problem,
        recovered=finished.mended.recovered,
        detached=finished.mended.detached,
        unpointed=_counts(finished.mended.unpointed),
        left_out=_counts(finished.mended.left_out),
        violations=finished.mended.violations,
        other_type=finished.checked.other_type,
        not_text=finished.checked.not_text,
        counters_off=finished.checked.counters_off,
        highest_ids="file" if store.sequences_whole else "lost",
        doubts=doubts,
        problems=verified.problems,
    )


def _rows(connection: apsw.Connection, store: Store, progress: Progress) -> tuple[SalvagedTable, ...]:
    """Carry the rows and say what was lost. The copy is attached for no longer than that."""
    copy, header = store.source.copy, store.source.header
    with room_for_copy(store.source.state.path):
        readable = skeleton.give_schema(copy, header, store.pages, store.schema.objects)
    with building.attached(connection, copy if readable else None) as reader:
        carrier = Carrier(connection, store.pages, header, reader)
        for number, one in enumerate(store.mapped):
            progress(f"tables: {number} of {len(store.mapped)} ({one.form.name})")
            one.carried = _carry(carrier, one, store.shape)
        if not any(one.carried.rows for one in store.mapped):
            raise CouldNotLook(f"{shown(store.source.state.path)}: no row can be read; nothing was made")
        progress("what was lost")
        return tuple(_table(connection, store, one) for one in store.mapped)


def _finish(
    connection: apsw.Connection, store: Store, tables: Sequence[SalvagedTable], progress: Progress
) -> _Finished:
    """Make the rest of the store and look at every value."""
    objects, state, moment = store.schema.objects, store.source.state, _modified(store.source)
    connection.execute("BEGIN IMMEDIATE")
    _raise_sequences(connection, store, tables)
    progress("its indexes")
    not_made = building.make_rest(connection, objects, "index")
    mended = parents.mend(connection, store.shape, state, moment)
    for kind in ("view", "virtual", "trigger"):
        not_made += building.make_rest(connection, objects, kind)
    progress("its search indexes")
    building.right_triggers(connection)
    search, search_problem = building.refill_search(connection)
    progress("its values")
    checked = values.check_values(connection, read_shape(connection), state, moment)
    _application_id(connection, store.source)
    connection.execute("COMMIT")
    if store.source.header.wal_mode:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    return _Finished(tuple(not_made), mended, tuple(search), search_problem, checked)


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}


def _shape(connection: apsw.Connection) -> Shape:
    try:
        return read_shape(connection)
    except CouldNotLook:
        raise CouldNotLook(NO_STORE) from None


def _carry(carrier: Carrier, one: MappedTable, shape: Shape) -> Carried:
    if one.form.without_rowid:
        return carrier.carry_without_rowid(one.form, shape.tables[one.form.name].primary_key)
    return carrier.carry(one.form, one.tree, one.strays)


def _raise_sequences(connection: apsw.Connection, store: Store, tables: Sequence[SalvagedTable]) -> None:
    """Give no id again that the old file gave: what it counted, and what lost rows had."""
    if not number(connection, queries.statement("salvage/rows", "autoincrement")):
        return
    raise_, begin = (
        queries.statement("salvage/rows", block) for block in ("raise-sequence", "begin-sequence")
    )
    for table in tables:
        lost = max((last for _first, last in table.ranges), default=0)
        seq = max(store.sequences.get(table.name, 0), lost)
        connection.execute(raise_, {"table": table.name, "seq": seq})
        if table.name in store.sequences:
            connection.execute(begin, {"table": table.name, "seq": seq})


def _table(connection: apsw.Connection, store: Store, one: MappedTable) -> SalvagedTable:
    carried = one.carried
    damaged = not one.tree.whole
    lost = losses.Losses()
    if damaged or carried.refused:
        sequence = store.sequences.get(one.form.name)
        lost = losses.find(connection, store.pages, store.schema.objects, one.form, one.tree, sequence)
    return SalvagedTable(
        name=one.form.name,
        rows=carried.rows,
        by_sqlite=carried.by_sqlite,
        by_pages=carried.by_pages,
        from_damaged=carried.from_damaged,
        refused=carried.refused,
        damaged=damaged,
        lost=lost.lost,
        proof=lost.proof,
        at_most=lost.at_most,
        pages=tuple(sorted(set(one.tree.damaged))),
        ranges=lost.ranges,
        sessions=lost.sessions,
    )


def _modified(source: Source) -> float:
    return int(source.state.path.stat().st_mtime)


def _application_id(connection: apsw.Connection, source: Source) -> None:
    """Where the header is lost, the id follows from the mark of the store that it was made from."""
    if not source.header.derived or source.header.application_id:
        return
    for (value,) in connection.execute(queries.statement("salvage/values", "generation")):
        with contextlib.suppress(ValueError, AttributeError):
            number = (int(value.decode("ascii")[:8], 16) & 0x7FFFFFFF) or 1
            connection.execute(f"PRAGMA application_id={number}")
