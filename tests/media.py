"""A home with a store and media files, for tests; never outside the folder it is given."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_dbtools.damage._declare import ScanContext
from hermes_dbtools.damage.media.dangling_image_references import DAMAGE
from hermes_dbtools.fixtures.rows import Filled
from hermes_dbtools.home import Home
from hermes_dbtools.model import Finding
from tests.looking import looking
from tests.shapes.make import execute, fill, make

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MediaHome:
    """A home whose store has the media shape (or another) and some healthy sessions."""

    home: Home
    sessions: Filled

    @property
    def database(self) -> Path:
        """The store."""
        return self.home.database

    def store(self, data: bytes, name: str | None = None) -> Entry:
        """Put a file at its content-addressed place, as the gateway does, and return its reference."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.home.native_inputs_dir / digest / (name or f"api_{digest[:32]}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return {"path": str(path), "sha256": digest, "size": len(data)}

    def admit(self, *media: object, at: str = "api_turn_v1", status: str = "terminal", **values: Any) -> int:
        """Add an admission with one list of media; `values` replace columns. Returns its number."""
        payload = values.pop("payload", {"text": "look", at: {"media": list(media)}})
        ((count,),) = execute(self.database, "SELECT count(*) FROM session_admissions")
        row = {
            "admission_id": f"{count:032x}",
            "request_id": f"request {count}",
            "principal_id": "api",
            "target_session_id": self.sessions.plain[0],
            "lineage_json": "[]",
            "payload_json": payload if isinstance(payload, str) else json.dumps(payload),
            "payload_digest": "d",
            "intent": "queue",
            "status": status,
            "owner_epoch": 1,
            "generation": 1,
        } | values
        sql = f"INSERT INTO session_admissions ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})"
        execute(self.database, sql, list(row.values()))
        ((seq,),) = execute(self.database, "SELECT max(seq) FROM session_admissions")
        return int(seq)

    def say(self, content: str | bytes, session: str | None = None, **values: Any) -> int:
        """Add a message; `values` are further columns. Returns its id."""
        row = {
            "session_id": session or self.sessions.plain[0],
            "role": "user",
            "content": content,
            "timestamp": 1_780_000_500.0,
        } | values
        sql = f"INSERT INTO messages ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})"
        execute(self.database, sql, list(row.values()))
        ((message_id,),) = execute(self.database, "SELECT max(id) FROM messages")
        return int(message_id)

    def picture(self, digests: Sequence[Entry], session: str | None = None, **values: Any) -> int:
        """Add a message whose media_content needs these images; returns its id."""
        images = [{"path": ["content", index], "prefix": "", **entry} for index, entry in enumerate(digests)]
        sidecar = {"version": 1, "text": "a", "content": [None], "images": images, "display": True}
        return self.say("a", session, media_content=json.dumps(sidecar), **values)

    @contextmanager
    def looking(self, *, writable: bool = False) -> Iterator[ScanContext]:
        """A context as a scan makes it, in this home."""
        with looking(self.database, writable=writable) as context:
            yield dataclasses.replace(context, home=self.home)

    def found(self) -> list[Finding]:
        """What HDB701 finds."""
        with self.looking() as context:
            return list(DAMAGE.find(context))

    def kinds(self) -> list[tuple[str, str]]:
        """Kind and severity of what HDB701 finds."""
        return [(finding.kind, finding.severity.word) for finding in self.found()]


def media_home(folder: Path, shape: str = "media") -> MediaHome:
    """A home with a filled store, an empty native-inputs and an empty transcript_media."""
    home = Home(folder, folder / "state.db", "default")
    (folder / "sessions").mkdir(parents=True)
    home.native_inputs_dir.mkdir(parents=True)
    home.transcript_media_dir.mkdir(parents=True)
    make(home.database, shape)
    return MediaHome(home, fill(home.database))
