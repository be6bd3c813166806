"""Find the files of `sessions/` that belong to sessions that go: transcripts and dumps of requests; moves none.

A dump is named `request_dump_<id>_<time>.json`, and an id may hold `_`: it belongs to the longest id that is a session's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..damage._declare import ScanContext
from ..model import FileTrash
from .ids import there
from .retiring import planned

DUMP, ENDING = "request_dump_", ".json"


def session_files(context: ScanContext, ids: Collection[str]) -> dict[str, list[FileTrash]]:
    """The files of each session, in the order of their names; none where the database stands in no home."""
    folder = context.home.sessions_dir if context.home is not None else None
    if folder is None or folder.is_symlink():
        return {}
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return {}
    owners = dict(_owners(context, names, frozenset(ids)))
    found: dict[str, list[FileTrash]] = {}
    for name, owner in owners.items():
        if (file := planned(str(folder / name), owner)) is not None:
            found.setdefault(owner, []).append(file)
    return found


def _owners(context: ScanContext, names: list[str], ids: frozenset[str]) -> Iterator[tuple[str, str]]:
    dumps: dict[str, list[str]] = {}
    for name in names:
        owner = next((one for one in _plain(name) if one in ids), None)
        if owner is not None:
            yield name, owner
        elif name.startswith(DUMP) and name.endswith(ENDING) and (able := _prefixes(name, ids)):
            dumps[name] = able
    known = there(context, {one for able in dumps.values() for one in able}) if dumps else set()
    for name, able in dumps.items():
        longest = max((one for one in able if one in known), key=len, default="")
        if longest in ids:
            yield name, longest


def _plain(name: str) -> Iterator[str]:
    stem, _, ending = name.rpartition(".")
    if ending in ("json", "jsonl"):
        yield stem
        if ending == "json" and stem.startswith("session_"):
            yield stem.removeprefix("session_")


def _prefixes(name: str, ids: frozenset[str]) -> list[str]:
    """Every id that a dump may be named by; none where none of them goes."""
    middle = name.removeprefix(DUMP).removesuffix(ENDING)
    able = [middle[:place] for place, letter in enumerate(middle) if letter == "_" and place]
    return able if any(one in ids for one in able) else []
