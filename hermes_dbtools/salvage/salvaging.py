"""Salvage one file into a new one: the order of the work; the source is never opened with SQLite and never written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from .. import queries
from ..file_marks import sidecar
from ..model import CouldNotLook, Refused
from ..private_files import create_private
from ..receipts import sync_folder
from ..shape import Shape, read_shape
from ..shown import shown
from ..sizes import path_text
from ..verification import verify_copy
from . import building, losses, parents, shapes, skeleton, strays, values
from .carrying import Carried, Carrier
from .doubts import find_doubts
from .facts import Salvaged, SalvagedTable
from .hints import preferred
from .pages import Pages
from .rows import leaf_rows
from .schema import FoundSchema, SchemaObject, read_schema
from .source import Source, private_source
from .tables import TableForm, form_of
from .trees import HIGHEST, LOWEST, Tree, walk

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
            raise Refused(f"{shown(output)}: cannot be written ({error}); nothing was made") from None
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
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    os.close(create_private(partial, source.state))
    try:
        yield partial
        try:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.link(partial, output)
        except FileExistsError:
            raise Refused(f"{shown(output)} is there already; name a new file") from None
        except OSError:  # a file system without hard links
            if os.path.lexists(output):
                raise Refused(f"{shown(output)} is there already; name a new file") from None
            partial.rename(output)
        sync_folder(output.parent)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                (sidecar(partial, suffix) if suffix else partial).unlink(missing_ok=True)


@dataclass(slots=True)
class _Mapped:
    """One table of the new file, what its rows look like, and where they lie in the copy."""

    form: TableForm
    tree: Tree
    strays: tuple[int, ...] = ()
    carried: Carried = field(default_factory=Carried)


@dataclass(frozen=True, slots=True)
class _Store:
    """What was found in the copy: its schema, the shape that it makes, the tables with their pages, the highest ids given."""

    source: Source
    pages: Pages
    schema: FoundSchema
    shape: Shape
    mapped: tuple[_Mapped, ...]
    sequences: Mapping[str, int]
    sequences_whole: bool
    unplaced: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether every tree can be read whole."""
        return self.schema.whole and all(one.tree.whole for one in self.mapped)


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
        store = _Store(source, pages, schema, shape, *_map(source, pages, schema, shape, made))
        doubts = find_doubts(source.copy, schema.objects) if store.whole else ()
        tables = _rows(connection, store, progress)
        finished = _finish(connection, store, progress)
    finally:
        connection.close()
    progress("the new file")
    verified = verify_copy(partial, search=False)
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


def _rows(connection: apsw.Connection, store: _Store, progress: Progress) -> tuple[SalvagedTable, ...]:
    """Carry the rows and say what was lost. The copy is attached for no longer than that."""
    copy, header = store.source.copy, store.source.header
    readable = skeleton.give_schema(copy, header, store.pages, store.schema.objects)
    with building.attached(connection, copy if readable else None) as reader:
        carrier = Carrier(connection, store.pages, header, reader)
        for one in store.mapped:
            progress(f"rows of {one.form.name}")
            one.carried = _carry(carrier, one, store.shape)
        if not any(one.carried.rows for one in store.mapped):
            raise CouldNotLook(f"{shown(store.source.state.path)}: no row can be read; nothing was made")
        progress("what was lost")
        return tuple(_table(connection, store, one) for one in store.mapped)


def _finish(connection: apsw.Connection, store: _Store, progress: Progress) -> _Finished:
    """Make the rest of the store and look at every value."""
    objects, state, moment = store.schema.objects, store.source.state, _modified(store.source)
    connection.execute("BEGIN IMMEDIATE")
    _raise_sequences(connection, store)
    progress("its indexes")
    not_made = building.make_rest(connection, objects, "index")
    mended = parents.mend(connection, store.shape, state, moment)
    for kind in ("view", "virtual", "trigger"):
        not_made += building.make_rest(connection, objects, kind)
    progress("its search indexes")
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


def _map(
    source: Source, pages: Pages, schema: FoundSchema, shape: Shape, made: Sequence[SchemaObject]
) -> tuple[tuple[_Mapped, ...], dict[str, int], bool, tuple[int, ...]]:
    """The tables with the pages of each, the highest ids given and whether all are known, pages that could be of several."""
    mapped = []
    for one in made:
        form = form_of(shape.tables[one.name])
        tree = Tree(one.root)
        if one.root and not form.without_rowid:
            tree = walk(pages, one.root, form.could_be)
        if not one.root:
            tree.missing(LOWEST, HIGHEST)
        mapped.append(_Mapped(form, tree))
    sequences, all_known = _sequences(source, pages, schema)
    return tuple(mapped), sequences, all_known, _place_strays(pages, mapped)


def _sequences(source: Source, pages: Pages, schema: FoundSchema) -> tuple[dict[str, int], bool]:
    """The highest ids that the file had given away, by table, and whether all of them could be read."""
    found: dict[str, int] = {}
    whole = True
    for one in schema.objects:
        if one.name != "sqlite_sequence" or not one.root:
            continue
        tree = walk(pages, one.root, lambda types: len(types) == 2)
        whole = tree.whole
        numbers = [tree.leaf(place)[0] for place in range(tree.leaf_count)]
        for number in (*numbers, *(page for page, _low, _high in tree.partial)):
            for _rowid, row in leaf_rows(pages, number, source.header.codec, lambda types: len(types) == 2):
                if isinstance(row[0], str) and isinstance(row[1], int):
                    found[row[0]] = row[1]
    return found, whole


def _place_strays(pages: Pages, mapped: Sequence[_Mapped]) -> tuple[int, ...]:
    names = [one.form.name for one in mapped]
    asked = []
    for one in mapped:
        missed = strays.wanted(one.form.name, one.tree, one.form.looks_like, preferred(one.form.name, names))
        if missed is not None:
            asked.append(missed)
    found = strays.find(pages, asked)
    for one in mapped:
        one.strays = found.pages.get(one.form.name, ())
    return found.unplaced


def _carry(carrier: Carrier, one: _Mapped, shape: Shape) -> Carried:
    if one.form.without_rowid:
        return carrier.carry_without_rowid(one.form, shape.tables[one.form.name].primary_key)
    return carrier.carry(one.form, one.tree, one.strays)


def _raise_sequences(connection: apsw.Connection, store: _Store) -> None:
    ((counted,),) = connection.execute(queries.statement("salvage/rows", "autoincrement")).fetchall()
    names = {one.form.name for one in store.mapped}
    for table, seq in sorted(store.sequences.items()) if counted else ():
        if table in names:
            for block in ("raise-sequence", "begin-sequence"):
                connection.execute(queries.statement("salvage/rows", block), {"table": table, "seq": seq})


def _table(connection: apsw.Connection, store: _Store, one: _Mapped) -> SalvagedTable:
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
