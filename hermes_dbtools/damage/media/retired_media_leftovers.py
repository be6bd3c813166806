"""Files that a delete marked for removal, or only their marks, are still there.

What it means
-------------
A delete of the store writes a key for each file of the sessions that go, removes the files that nothing else needs, then the keys
of the files that are gone. Here a key is left though its file is gone (`gone`), or the file is still there and nothing names or
holds it (`free`). Each later delete looks at all of these files again.

Why it happens
--------------
The clean-up failed after the delete was committed: in public reports a thousand images made its query too large, so that the
delete was answered with an error, every later one tried the same files again, and the gateway did not start. A crash between the
two does the same, and one held file that cannot be identified (dangling-image-references) stops every clean-up.

Repair
------
`collect` finishes the clean-up: keys of files that are gone are removed; files that are free are moved beside the receipt after
the COMMIT, and their keys removed. Undo brings both back.

Safety
------
Exact: it is what the store does itself. A key whose file some message, admission or stored value still names, or that shares its
bytes with a held file, waits by design: a branch may show the image for years. A file goes only from its own place below
`native-inputs` and only with the digest that its place says; links, and files of another home, are left alone with their keys.
While another process holds the store no file is moved. A database without its folder `native-inputs`, or outside a home, is not
judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...media_files import MediaFolders, State, folders_of
from ...media_names import name_of
from ...model import FileTrash, Finding, Remedy, Safety, Severity, Statement, Step
from ...retirement import retired_media_key
from ...sizes import counted, size_text
from .._declare import Damage, NotApplicable, ScanContext, declare
from ._held import STOPPER, broken_references
from ._unnamed import HELD, MediaFile, media_file, unnamed

KEYS_AT_ONCE = 10_000
"""Keys that one statement removes; the recorder writes its changes down between two statements."""


@dataclass(slots=True)
class Leftovers:
    """Keys whose file is gone, and files that may go by their keys."""

    gone: list[str] = field(default_factory=list)
    there: dict[str, MediaFile] = field(default_factory=dict)


def _find(context: ScanContext) -> Iterator[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    if folders is None:
        raise NotApplicable("the file lies in no Hermes home: nothing says where its images are")
    if not folders.native_inputs.present:
        return
    found = _read(context, folders)
    if found.gone:
        message = f"{_keys(found.gone)} of files that are gone"
        title = f"remove {message}"
        step = _step("gone", title, found.gone, ())
        yield DAMAGE.finding(
            table="state_meta",
            key="gone",
            kind="gone",
            message=message,
            evidence={"keys": len(found.gone)},
            remedies=(Remedy("collect", Safety.EXACT, step),),
        )
    files = unnamed(context, list(found.there.values()))
    if files:
        stopped = any(broken_references(context, folders))
        yield _free(files, HELD if context.file.holders.held else None, stopped=stopped)


def _read(context: ScanContext, folders: MediaFolders) -> Leftovers:
    found = Leftovers()
    for key, value in DAMAGE.rows(context, "retired"):
        path, digest = _reference(value)
        if not path or retired_media_key(path) != key:
            continue
        state = folders.held(path)
        if state is State.MISSING:
            found.gone.append(key)
        elif state is State.FINE and name_of(path) == digest and (file := media_file(path)) is not None:
            found.there[key] = file
    return found


def _reference(value: object) -> tuple[str, str]:
    """Path and digest of a stored reference; '' where it is none."""
    try:
        parsed = json.loads(value) if isinstance(value, bytes) else None
    except (ValueError, RecursionError):
        return "", ""
    path, digest = (parsed.get("path"), parsed.get("sha256")) if isinstance(parsed, dict) else ("", "")
    return (path if isinstance(path, str) else ""), (digest if isinstance(digest, str) else "")


def _free(files: list[MediaFile], refused: str | None, *, stopped: bool) -> Finding:
    keys = sorted(retired_media_key(file.path) for file in files)
    size = sum(file.size for file in files)
    found = counted(len(files), "file")
    title = f"move {found} away that a delete marked: {size_text(size)}"
    step = _step("free", title, keys, tuple(file.trash() for file in sorted(files, key=lambda one: one.path)))
    evidence: dict[str, object] = {"keys": len(keys), "files": len(files), "bytes": size}
    if stopped:
        evidence["caused_by"] = STOPPER
    return DAMAGE.finding(
        table="state_meta",
        key="free",
        kind="free",
        message=f"{found} that a delete marked for removal and nothing names: {size_text(size)}",
        evidence=evidence,
        remedies=(Remedy("collect", Safety.EXACT, None if refused else step, refused),),
    )


def _step(key: str, title: str, keys: Sequence[str], trash: tuple[FileTrash, ...]) -> Step:
    portions = [keys[first : first + KEYS_AT_ONCE] for first in range(0, len(keys), KEYS_AT_ONCE)]
    statements = tuple(
        Statement("forget", {"keys": json.dumps(portion)}, len(portion), "state_meta", "delete")
        for portion in portions
    )
    return Step(DAMAGE.code, DAMAGE.slug, key, "collect", title, (), statements, trash=trash)


def _keys(keys: Sequence[str]) -> str:
    return f"{len(keys):,} key{'' if len(keys) == 1 else 's'}"


DAMAGE: Damage = declare(
    __name__,
    __doc__,
    code="HDB707",
    severity=Severity.WARNING,
    safety=Safety.EXACT,
    answers=("collect",),
    needs=("state_meta.key", "session_admissions.payload_json"),
    reads=("messages", "session_admissions", "state_meta"),
    noun=("leftover of deletes", "leftovers of deletes"),
    sums=(("keys", "keys"), ("bytes", "bytes")),
    find=_find,
)
