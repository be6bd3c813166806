"""HDB703 and HDB707: files of media folders that nothing names, and what deletes left of their marks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from hermes_dbtools import make_plan, scan, undo
from hermes_dbtools.apply import ApplyOptions, apply_plan, rehearse
from hermes_dbtools.media_names import named_in
from hermes_dbtools.model import DatabaseReport, FileTrash, Finding, Plan, Receipt, RolledBack, Status
from hermes_dbtools.named_files import of_home
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.retirement import retired_media_key
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import UndoOptions
from tests.live_writers import writer
from tests.media import Entry, MediaHome, media_home
from tests.shapes.make import SHAPES, execute

LATER = time.time() + 2 * 86400
PASTE = "pasted_content_20260101_120000.txt"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MediaHome:
    monkeypatch.setenv("HERMES_DESKTOP_USER_DATA_DIR", str(tmp_path / "desktop"))
    return media_home(tmp_path / "home")


def report(home: MediaHome, now: float = LATER) -> DatabaseReport:
    selected = ("unreferenced-images", "retired-media-leftovers")
    (found,) = scan((home.home.root,), ScanOptions(select=selected, limit=None, now=now)).databases
    assert not [one for one in found.results if one.status is Status.COULD_NOT_LOOK]
    return found


def found(home: MediaHome, now: float = LATER) -> list[Finding]:
    return [finding for result in report(home, now).results for finding in result.findings]


def brief(home: MediaHome, now: float = LATER) -> list[tuple[str, str, object]]:
    return [(one.code, one.key, one.evidence.get("files")) for one in found(home, now)]


def plan(home: MediaHome) -> Plan:
    return make_plan(report(home), PlanOptions(allow_lossy=True, max_rows=100_000))


def repaired(home: MediaHome) -> Receipt:
    return apply_plan(home.home, plan(home), ApplyOptions(now=LATER))


def picture(home: MediaHome, data: bytes) -> Path:
    path = home.home.transcript_media_dir / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return path


def paste(home: MediaHome, name: str = PASTE) -> Path:
    home.home.composer_pastes_dir.mkdir(exist_ok=True)
    path = home.home.composer_pastes_dir / name
    path.write_text("long text")
    return path


def retire(home: MediaHome, entry: Entry, key: str = "") -> str:
    key = key or retired_media_key(entry["path"])
    execute(home.database, "INSERT INTO state_meta (key, value) VALUES (?, ?)", [key, json.dumps(entry)])
    return key


def keys(home: MediaHome) -> list[str]:
    sql = "SELECT key FROM state_meta WHERE key GLOB 'gateway.media.retired.v1.*' ORDER BY key"
    return [str(key) for (key,) in execute(home.database, sql)]


def there(paths: Iterable[object]) -> list[bool]:
    return [Path(str(path)).is_file() for path in paths]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_healthy_home_of_every_shape_has_no_finding(tmp_path: Path, shape: str) -> None:
    assert found(media_home(tmp_path / "home", shape)) == []


def test_files_that_nothing_names_are_one_finding_for_each_folder(home: MediaHome) -> None:
    files = [home.store(b"one")["path"], home.store(b"two", "paper.pdf")["path"]]
    files += [str(picture(home, b"three")), str(paste(home))]
    assert brief(home) == [
        ("HDB703", "native-inputs", 2),
        ("HDB703", "transcript_media", 1),
        ("HDB703", "composer-pastes", 1),
    ]
    assert [one.severity.word for one in found(home)] == ["note"] * 3
    assert [one.evidence["bytes"] for one in found(home)] == [6, 5, 9]
    rehearse(home.home, plan(home), ApplyOptions(now=LATER))
    assert all(there(files))
    receipt = repaired(home)
    assert receipt.status == "committed"
    assert not any(there(files))
    assert [file.left for file in receipt.trash] == [""] * 4
    assert found(home) == []
    assert undo(home.home, receipt, UndoOptions(now=LATER)).status == "undone"
    assert all(there(files))


def test_without_leave_nothing_is_planned(home: MediaHome) -> None:
    home.store(b"one")
    assert make_plan(report(home), PlanOptions()).steps == ()


def test_a_file_is_left_alone_for_a_day_after_its_bytes_or_name_changed(home: MediaHome) -> None:
    path = Path(home.store(b"one")["path"])
    assert found(home, time.time() + 23 * 3600) == []
    os.utime(path, (1e9, 1e9))
    assert found(home, time.time() + 23 * 3600) == [], "its times were set back"
    assert brief(home, time.time() + 25 * 3600) == [("HDB703", "native-inputs", 1)]


@pytest.mark.parametrize("status", ["queued", "started", "unknown", "terminal"])
@pytest.mark.parametrize("at", ["api_turn_v1", "attachments_v1", "native_text_v1"])
def test_what_an_admission_lists_is_named(home: MediaHome, status: str, at: str) -> None:
    home.admit(home.store(b"one"), at=at, status=status)
    assert found(home) == []


def test_documents_and_retained_images_of_payloads_are_named(home: MediaHome) -> None:
    paper, image = home.store(b"paper", "paper.pdf"), home.store(b"image")
    line = f"read\n[Shared attachment] file: {paper['path']}\n"
    home.admit(payload={"text": line}, request_id="hosted:1")
    retained = [{"type": "image_url", "image_url": {"url": f"hermes-retained:{image['sha256']}"}}]
    home.admit(payload={"text": retained})
    paste(home)
    home.admit(payload={"text": f"@file:{home.home.composer_pastes_dir}/{PASTE}"}, status="queued")
    assert found(home) == []


FORMS = {
    "an image note": "[Image attached at: {path}]",
    "plain text": "I wrote {path}, did you see it?",
    "relative": "see native-inputs/{sha256}/api_x.png",
    "an URL": "file://{path}",
    "other system": "C:\\hermes\\native-inputs\\{sha256}\\a.png",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("escaped", ["no", "slashes", "json", "behind NUL", "twice"])
@pytest.mark.parametrize("column", ["content", "tool_calls", "api_content", "display_metadata"])
def test_what_a_message_names_in_any_form_is_named(
    home: MediaHome, form: str, escaped: str, column: str
) -> None:
    said = form.format(**home.store(b"one"))
    text = {
        "no": said,
        "slashes": json.dumps([said]).replace("/", "\\/"),
        "json": json.dumps([{"type": "text", "text": said}]),
        "behind NUL": "\0json:" + json.dumps([{"type": "text", "text": said}]),
        "twice": json.dumps([json.dumps({"path": said})]).replace("/", "\\\\\\/"),
    }[escaped]
    if column == "content":
        home.say(text, active=0)
    elif escaped != "behind NUL":
        home.say("x", role="assistant", active=0, **{column: text})
    else:
        return
    assert found(home) == []


def test_images_of_inactive_messages_are_named(home: MediaHome) -> None:
    one, two = picture(home, b"one"), picture(home, b"two")
    home.picture([{"sha256": one.name}], active=0)
    home.picture([{"encoded_sha256": two.name, "sha256": one.name}])
    assert found(home) == []


@pytest.mark.parametrize("name", [PASTE, "pasted_content_a b.txt", "pasted_content_ä.txt"])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_paste_is_named_by_its_name(home: MediaHome, name: str, escaped: bool) -> None:
    path = paste(home, name)
    home.say(json.dumps([f"@file:{path}"]) if escaped else f"look at `@file:{path}`.", active=0)
    assert found(home) == []
    paste(home, "pasted_content_other.txt")
    assert brief(home) == [("HDB703", "composer-pastes", 1)]


def test_links_folders_foreign_and_temporary_names_are_left_alone(home: MediaHome, tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(b"outside")
    native, images = home.home.native_inputs_dir, home.home.transcript_media_dir
    digest = "ab" * 32
    (native / digest).mkdir()
    (native / digest / "api_x.png").symlink_to(outside)
    (native / digest / ".api_x.png.tmp").write_bytes(b"x")
    (native / digest / "folder.png").mkdir()
    (native / "notes.txt").write_text("x")
    (native / "folder").mkdir()
    (native / "folder" / "a.png").write_bytes(b"x")
    (native / ("cd" * 32)).symlink_to(tmp_path)
    (images / digest).symlink_to(outside)
    (images / ".write-0123").write_bytes(b"x")
    paste(home, "mine.txt")
    (home.home.composer_pastes_dir / PASTE).symlink_to(outside)
    assert found(home) == []


def test_folders_that_are_links_are_left_alone(home: MediaHome, tmp_path: Path) -> None:
    home.store(b"one")
    picture(home, b"two")
    paste(home)
    for number, folder in enumerate(
        (home.home.native_inputs_dir, home.home.transcript_media_dir, home.home.composer_pastes_dir)
    ):
        shutil.move(folder, tmp_path / str(number))
        folder.symlink_to(tmp_path / str(number))
    assert found(home) == []


def test_another_name_of_a_held_file_is_left_alone(home: MediaHome) -> None:
    held, alias = home.store(b"one"), home.home.native_inputs_dir / ("ab" * 32) / "api_x.png"
    home.admit(held)
    alias.parent.mkdir()
    os.link(held["path"], alias)
    os.link(held["path"], home.home.transcript_media_dir / ("cd" * 32))
    assert found(home) == []


def test_a_home_behind_a_link_is_judged_by_names(home: MediaHome, tmp_path: Path) -> None:
    home.admit(home.store(b"one"))
    home.store(b"two")
    link = tmp_path / "link"
    link.symlink_to(home.home.root)
    (seen,) = scan((link,), ScanOptions(select=("unreferenced-images",), now=LATER)).databases
    assert [finding.evidence["files"] for result in seen.results for finding in result.findings] == [1]


def test_a_changed_file_stays_where_it_is(home: MediaHome) -> None:
    whole, changed = Path(home.store(b"one")["path"]), Path(home.store(b"two")["path"])
    changed.write_bytes(b"TWO")
    receipt = repaired(home)
    assert there((whole, changed)) == [False, True]
    assert [file.left for file in receipt.trash if file.path == str(changed)] == [
        "it is no longer the file that was found"
    ]


def test_a_file_that_is_named_between_commit_and_move_stays(home: MediaHome) -> None:
    one, two, three = home.store(b"one"), picture(home, b"two"), paste(home)
    files = [FileTrash(str(path), 3, 0) for path in (one["path"], two, three)]
    ask = of_home(home.home)
    assert ask(files) == {}
    home.say(f"see {one['path']}")
    home.picture([{"sha256": two.name}])
    home.say(f"@file:{three}")
    assert ask(files) == {file.path: "something names it" for file in files}


def test_beside_another_process_and_without_sessions_nothing_is_moved(home: MediaHome) -> None:
    home.store(b"one")
    retire(home, home.store(b"two"))
    with writer(home.database):
        refused = [remedy.refused or "" for one in found(home) for remedy in one.remedies]
        assert ["stop Hermes first" in reason for reason in refused] == [True, True]
        assert plan(home).steps == ()
    ledger = ("worker_receipts", "worker_executions", "session_admissions")
    for table in (*ledger, "messages", "sessions"):
        execute(home.database, f"DELETE FROM {table}")
    (first, _second) = found(home)
    assert "its rows were lost" in (first.remedies[0].refused or "")


def test_a_stopped_clean_up_is_named_as_the_cause(home: MediaHome) -> None:
    home.store(b"one")
    retire(home, home.store(b"two"))
    assert [one.evidence.get("caused_by") for one in found(home)] == [None, None]
    gone = home.store(b"gone")
    Path(gone["path"]).unlink()
    home.admit(gone)
    assert [one.evidence.get("caused_by") for one in found(home)] == ["HDB701", "HDB701"]


def test_marks_of_deletes_are_collected(home: MediaHome) -> None:
    gone, free, shown, linked = (home.store(data) for data in (b"gone", b"free", b"shown", b"linked"))
    for entry in (gone, free, shown, linked):
        retire(home, entry)
    Path(gone["path"]).unlink()
    home.say(f"[Image attached at: {shown['path']}]")
    held = home.home.native_inputs_dir / ("ab" * 32) / "api_x.png"
    held.parent.mkdir()
    os.link(linked["path"], held)
    home.admit({"path": str(held), "sha256": "ab" * 32, "size": 6})
    assert [(one.kind, one.severity.word) for one in found(home)] == [
        ("gone", "warning"),
        ("free", "warning"),
    ]
    receipt = apply_plan(home.home, make_plan(report(home), PlanOptions()), ApplyOptions(now=LATER))
    assert there(one["path"] for one in (free, shown, linked)) == [False, True, True]
    assert keys(home) == sorted(retired_media_key(one["path"]) for one in (shown, linked))
    assert found(home) == []
    undo(home.home, receipt, UndoOptions(now=LATER))
    assert len(keys(home)) == 4
    assert there(one["path"] for one in (gone, free)) == [False, True]


def test_marks_that_are_no_marks_of_this_home_are_left_alone(home: MediaHome, tmp_path: Path) -> None:
    one = home.store(b"one")
    outside = str(tmp_path / "native-inputs" / ("ab" * 32) / "api_x.png")
    for entry in (
        {"path": outside, "sha256": "ab" * 32, "size": 1},
        one | {"sha256": "cd" * 32},
        {"path": f"{home.home.native_inputs_dir}/../x.png", "sha256": "", "size": 1},
        {"path": 7},
    ):
        path = entry["path"]
        retire(home, entry, retired_media_key(path) if isinstance(path, str) else retired_media_key("7"))
    retire(home, home.store(b"two"), "gateway.media.retired.v1." + "0" * 64)
    for key, value in (("1", "{"), ("2", "7"), ("3", None), ("x", "{}"), ("\udcff", "{}")):
        execute(
            home.database,
            "INSERT INTO state_meta (key, value) VALUES (CAST(? AS TEXT), ?)",
            [f"gateway.media.retired.v1.{key}".encode("utf-8", "surrogateescape"), value],
        )
    assert brief(home) == [("HDB703", "native-inputs", 1)], "the file whose mark has a wrong name"


def test_a_link_in_the_place_of_a_marked_file_is_left_alone(home: MediaHome, tmp_path: Path) -> None:
    one = home.store(b"one")
    retire(home, one)
    (tmp_path / "other").write_bytes(b"one")
    Path(one["path"]).unlink()
    Path(one["path"]).symlink_to(tmp_path / "other")
    assert found(home) == []


def test_without_its_folder_or_outside_a_home_nothing_is_judged(home: MediaHome, tmp_path: Path) -> None:
    retire(home, home.store(b"one"))
    shutil.rmtree(home.home.native_inputs_dir)
    assert found(home) == []
    shutil.copyfile(home.database, tmp_path / "state.db")
    (seen,) = scan(
        (tmp_path / "state.db",), ScanOptions(select=("retired-media-leftovers", "unreferenced-images"))
    ).databases
    statuses = [one.status for one in seen.results if one.code in ("HDB703", "HDB707")]
    assert statuses == [Status.NOT_APPLICABLE] * 2


def test_a_mark_whose_file_is_shown_by_a_branch_only_waits_for_it(home: MediaHome) -> None:
    one = home.store(b"one")
    retire(home, one)
    number = home.say(f"[Image attached at: {one['path']}]", active=0)
    assert found(home) == []
    execute(home.database, "DELETE FROM messages WHERE id = ?", [number])
    assert brief(home) == [("HDB707", "free", 1)]


def test_names_are_found_at_any_place_of_a_text() -> None:
    digest = "0a" * 32
    names = {digest, "pasted_content_1"}
    assert named_in([b"x pasted_content_12"], names) == {"pasted_content_1"}, (
        "a longer name keeps a shorter one"
    )
    assert named_in([f"native-inputs/{'0a' * 31}".encode(), b"sha256: 0a"], names) == set()
    assert named_in([f'{{\\"sha256\\": \\"{digest}\\"}}'.encode()], names) == {digest}


def test_a_plan_is_stale_when_a_file_has_changed_since(home: MediaHome) -> None:
    path = Path(home.store(b"one")["path"])
    made = plan(home)
    path.write_bytes(b"another")
    with pytest.raises(RolledBack):
        apply_plan(home.home, made, ApplyOptions(now=LATER))
    assert path.is_file()
