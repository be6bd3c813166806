"""The files that admissions hold: find those that upstream cannot use; reads no image and repairs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...media_files import Copy, MediaFolders, State, Wanted, split
from ...media_references import SHA256, Form, Reference, admission_references, hosted_references
from ...model import FileCopy, Finding, Remedy, Safety, Statement, Step, Value
from ...sizes import counted
from .._declare import Damage, ScanContext, printable, text, whole

FILE, STOPPER = "damage/media/dangling_image_references", "HDB701"
"""Where the questions about held files are kept, and the code of the class that reports those files."""

LISTED = 1000
"""Up to so many broken references are one finding each; more of them are one finding for each session."""

STOPS = "all image clean-up is stopped"

Copies = Mapping[str, tuple[Copy, ...]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A held path of one admission that upstream cannot use; `references` are its places in the payload."""

    session: Value
    terminal: bool
    state: State
    references: tuple[Reference, ...]

    @property
    def reference(self) -> Reference:
        """The first place; the others name the same path."""
        return self.references[0]

    @property
    def path(self) -> str:
        """The path as it stands in the payload; may hold surrogate escapes."""
        return self.reference.path

    @property
    def other_home(self) -> str:
        """The `native-inputs` of another home that the path names, or ''."""
        if self.state is not State.OUTSIDE:
            return ""
        root, digest = split(split(self.path)[0])
        return root if SHA256.fullmatch(digest) and root.endswith("/native-inputs") else ""

    def wanted(self) -> Wanted | None:
        """The file to look for, where it is missing at the place that its digest gives it."""
        digest = self.reference.sha256
        if self.state is not State.MISSING or digest is None or split(split(self.path)[0])[1] != digest:
            return None
        return Wanted(digest, self.reference.size)


def broken_references(context: ScanContext, folders: MediaFolders) -> list[Broken]:
    """Every held path that is missing, not a regular file or not in its folder, by admission and place."""
    broken: list[Broken] = []
    for seq, session, terminal, lists, prompt in context.rows(FILE, "admissions"):
        found: dict[str, list[Reference]] = {}
        references = [*admission_references(whole(seq), bool(terminal), _bytes(lists))]
        if isinstance(prompt, bytes):
            references.extend(hosted_references(whole(seq), prompt, folders.native_inputs.place))
        for reference in references:
            if reference.held and (reference.path in found or folders.held(reference.path) is not State.FINE):
                found.setdefault(reference.path, []).append(reference)
        for path, places in found.items():
            broken.append(Broken(text(session), bool(terminal), folders.held(path), tuple(places)))
    return broken


def held_findings(damage: Damage, broken: Iterable[Broken], copies: Copies) -> Iterator[Finding]:
    """One finding for each broken reference; where they are very many, for each session or other home."""
    broken = list(broken)
    if len(broken) <= LISTED:
        for one in broken:
            yield _single(damage, one, copies)
        return
    homes: dict[str, list[Broken]] = {}
    sessions: dict[Value, list[Broken]] = {}
    for one in broken:
        if one.other_home:
            homes.setdefault(one.other_home, []).append(one)
        else:
            sessions.setdefault(one.session, []).append(one)
    for place, group in sorted(homes.items()):
        yield _other_home(damage, place, group)
    for session, group in sorted(sessions.items(), key=lambda item: printable(item[0])):
        yield _session(damage, session, group, copies)


def shown(path: str) -> str:
    """A path that any output can print."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def put_back(
    damage: Damage, key: str, session: Value, wanted: Mapping[str, Wanted | None], copies: Copies
) -> Remedy:
    """The answer `relink`: the missing files, by path, are copied from the one place that has their bytes."""
    files: list[FileCopy] = []
    refused = None
    for path, want in sorted(wanted.items()):
        found = copies.get(want.sha256, ()) if want else ()
        if want is None:
            refused = (
                "nothing can be put back there: it is outside its folder, in use, or not named by its digest"
            )
        elif len(found) != 1:
            refused = (
                f"{len(found) or 'no'} files in the media folders have its digest; exactly one is needed"
            )
        elif want.size is not None and found[0].size != want.size:
            refused = "the recorded size is not that of the file that has its digest"
        elif shown(path) != path:
            refused = "its path is not UTF-8"
        else:
            files.append(FileCopy(found[0].path, path, want.sha256, found[0].size))
        if refused:
            return Remedy("relink", Safety.EXACT, refused=refused)
    title = f"put back {counted(len(files), 'file')} by digest"
    step = Step(damage.code, damage.slug, key, "relink", title, (session,), (), tuple(files))
    return Remedy("relink", Safety.EXACT, step)


def _single(damage: Damage, one: Broken, copies: Copies) -> Finding:
    reference = one.reference
    # Places move when an entry before them is dropped, so the key is made of the path.
    key = f"{reference.key} {hashlib.sha256(one.path.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"
    kind = {
        State.MISSING: "held-missing",
        State.NOT_REGULAR: "held-not-regular",
        State.OUTSIDE: "held-outside",
    }[one.state]
    return damage.finding(
        table="session_admissions",
        key=key,
        kind=kind,
        message=f"admission {reference.key} holds a file that is {one.state.value}: {STOPS}",
        evidence={
            "admission": reference.key,
            "session": printable(one.session),
            "settled": one.terminal,
            "places": [f"{place.form.name.lower()} {place.place}" for place in one.references],
            "path": shown(one.path),
            "sha256": reference.sha256,
            "size": reference.size,
            "copies": len(copies.get(reference.sha256 or "", ())),
        },
        session_ids=(one.session,),
        remedies=(
            Remedy("report", Safety.MANUAL),
            put_back(damage, key, one.session, {one.path: one.wanted()}, copies),
            _drop(damage, key, one.session, [one]),
        ),
    )


def _session(damage: Damage, session: Value, group: list[Broken], copies: Copies) -> Finding:
    key = f"session {printable(session)}"
    return damage.finding(
        table="session_admissions",
        key=key,
        kind="held-many",
        message=f"admissions of one session hold {len(group)} files that are not usable: {STOPS}",
        evidence={
            "session": printable(session),
            "references": len(group),
            "admissions": len({one.reference.key for one in group}),
            **{
                state.name.lower(): sum(one.state is state for one in group)
                for state in State
                if state is not State.FINE
            },
        },
        session_ids=(session,),
        remedies=(
            Remedy("report", Safety.MANUAL),
            put_back(damage, key, session, {one.path: one.wanted() for one in group}, copies),
            _drop(damage, key, session, group),
        ),
    )


def _other_home(damage: Damage, place: str, group: list[Broken]) -> Finding:
    reason = "the files belong to another home: put the home back at its place first"
    return damage.finding(
        table="session_admissions",
        key=shown(place),
        kind="held-other-home",
        message=f"{len(group)} held files are named in the folder of another home: {STOPS}",
        evidence={
            "references": len(group),
            "sessions": len({one.session for one in group}),
            "folder": shown(place),
        },
        remedies=(
            Remedy("report", Safety.MANUAL),
            Remedy("relink", Safety.EXACT, refused=reason),
            Remedy("drop", Safety.LOSSY, refused=reason),
        ),
    )


def _drop(damage: Damage, key: str, session: Value, group: list[Broken]) -> Remedy:
    if any(not one.terminal for one in group):
        return Remedy("drop", Safety.LOSSY, refused="the admission is not settled: its turn may still run")
    if any(place.form is not Form.API_IMAGE for one in group for place in one.references):
        return Remedy("drop", Safety.LOSSY, refused="only API images of settled admissions can be dropped")
    if any(shown(one.path) != one.path for one in group):
        return Remedy("drop", Safety.LOSSY, refused="its path is not UTF-8")
    paths = json.dumps(sorted({one.path for one in group}))
    admissions = sorted({one.reference.key for one in group})
    statement = Statement(
        "drop-held",
        {"session": session, "first": admissions[0], "last": admissions[-1], "paths": paths},
        len(admissions),
        "session_admissions",
        "update",
    )
    title = f"take {counted(len(group), 'held reference')} out of settled admissions"
    step = damage.step(key=key, answer="drop", title=title, statements=(statement,), session_ids=(session,))
    return Remedy("drop", Safety.LOSSY, step)


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
