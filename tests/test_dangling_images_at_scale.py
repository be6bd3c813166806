"""HDB701 on very many images: exactly the broken ones, little memory, few SQL terms and variables."""

from __future__ import annotations

import hashlib
import json
import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from hermes_dbtools.damage.media.dangling_image_references import DAMAGE
from tests.media import MediaHome, media_home
from tests.shapes.make import execute_many

SIZES = (2_500, pytest.param(100_000, marks=pytest.mark.bench))
"""Images, fifty to a session; the files of the larger size take most of the time."""

PEAK = 4_000_000
"""Bytes that Python may hold at once while it looks."""


@dataclass(frozen=True)
class Crowded:
    """A home and the numbers of the images that are gone, and of those outside every folder the store knows."""

    media: MediaHome
    missing: range
    outside: range


@pytest.fixture(params=SIZES)
def crowded(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Crowded]:
    images = int(request.param)
    sessions = images // 50
    missing = range(images // 20, images, images * 14 // 100)
    outside = range(images // 10 - 1, images, images * 33 // 100)
    home = media_home(tmp_path / "home")
    ids = [(f"api {number:05}", 1_780_000_000.0 + number) for number in range(sessions)]
    execute_many(
        home.database, "INSERT INTO sessions (id, source, started_at) VALUES (?, 'api_server', ?)", ids
    )
    admissions, messages = [], []
    for number, (session, moment) in enumerate(ids):
        paths = []
        for image in range(number, images, sessions):
            entry = home.store(str(image).encode())
            if image in missing:
                Path(entry["path"]).unlink()
            elif image in outside:
                entry["path"] = shutil.move(entry["path"], f"{tmp_path}/{image}.png")
            payload = json.dumps({"api_turn_v1": {"media": [entry]}})
            admissions.append((f"{image:032x}", str(image), session, payload))
            paths.append(f"[Image attached at: {entry['path']}]")
        messages.append((session, "\n".join(paths), moment))
    execute_many(
        home.database,
        """
        INSERT INTO session_admissions
               (admission_id, request_id, principal_id, target_session_id, lineage_json, payload_json,
                payload_digest, intent, status)
        VALUES (?, ?, 'api', ?, '[]', ?, 'd', 'queue', 'terminal')
        """,
        admissions,
    )
    execute_many(
        home.database,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
        messages,
    )
    yield Crowded(home, missing, outside)
    shutil.rmtree(home.home.root)


def test_very_many_images(crowded: Crowded) -> None:
    assert (len(crowded.missing), len(crowded.outside)) == (7, 3)
    statements: dict[str, int] = {}

    def trace(_cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        statements[sql] = max(
            statements.get(sql, 0), len(bindings) if isinstance(bindings, dict | tuple) else 0
        )
        return True

    with crowded.media.looking() as context:
        context.connection.exec_trace = trace
        tracemalloc.start()
        found = list(DAMAGE.find(context))
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert sorted(finding.kind for finding in found) == ["held-missing"] * 7 + ["held-outside"] * 3
    digests = {
        hashlib.sha256(str(image).encode()).hexdigest() for image in (*crowded.missing, *crowded.outside)
    }
    assert {finding.evidence["sha256"] for finding in found} == digests
    assert len(statements) == 4, "the queue, how far the ids reach, the pass over content, the suspects again"
    assert max(statements.values()) < 32, "one for each mark of the content pass, whatever the file holds"
    assert peak < PEAK
