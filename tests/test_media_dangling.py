"""HDB701 on homes with and without their files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import queries
from hermes_dbtools.damage._declare import NotApplicable
from hermes_dbtools.damage.media import _held
from hermes_dbtools.damage.media.dangling_image_references import DAMAGE
from hermes_dbtools.model import Finding, Remedy
from tests.media import Entry, MediaHome, media_home
from tests.shapes.make import SHAPES, execute, fill, make


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MediaHome:
    monkeypatch.setenv("HERMES_DESKTOP_USER_DATA_DIR", str(tmp_path / "desktop"))
    return media_home(tmp_path / "home")


def remedy(finding: Finding, answer: str) -> Remedy:
    return next(one for one in finding.remedies if one.answer == answer)


def key(seq: int, path: str) -> str:
    return f"{seq} {hashlib.sha256(path.encode()).hexdigest()[:16]}"


def drop(home: MediaHome) -> None:
    with home.looking(writable=True) as context:
        for finding in list(DAMAGE.find(context)):
            step = remedy(finding, "drop").step
            for statement in step.statements if step else ():
                query = queries.choose(DAMAGE.sql, statement.block, context.has)
                assert query is not None
                context.connection.execute(query.sql, dict(statement.bindings))
                assert context.connection.changes() == statement.expect


def gone(home: MediaHome, data: bytes = b"gone", name: str | None = None) -> Entry:
    entry = home.store(data, name)
    Path(entry["path"]).unlink()
    return entry


@pytest.mark.parametrize("shape", SHAPES)
def test_a_healthy_store_of_every_shape_has_no_finding(tmp_path: Path, shape: str) -> None:
    assert media_home(tmp_path / "home", shape).found() == []


def test_files_that_are_there_are_no_finding(home: MediaHome) -> None:
    entry, document = home.store(b"one"), home.store(b"paper", "paper.pdf")
    home.admit(entry)
    home.admit(entry, at="attachments_v1", status="queued")
    line = f"read\n[Shared attachment] file: {document['path']}\n"
    home.admit(payload={"text": line}, request_id="hosted:1", status="unknown")
    home.say(f"[Image attached at: {entry['path']}]")
    (home.home.transcript_media_dir / entry["sha256"]).write_bytes(b"one")
    home.picture([{"sha256": entry["sha256"]}])
    assert home.found() == []


def test_a_missing_api_image_of_a_settled_turn_is_an_error(home: MediaHome) -> None:
    entry, whole = gone(home), home.store(b"whole")
    seq = home.admit(whole, entry)
    (finding,) = home.found()
    assert (finding.kind, finding.severity.word, finding.key) == (
        "held-missing",
        "error",
        key(seq, entry["path"]),
    )
    assert finding.evidence["places"] == ["api_image $.api_turn_v1.media[1]"]
    assert "all image clean-up is stopped" in finding.message
    assert finding.session_ids == (home.sessions.plain[0],)
    assert finding.evidence["sha256"] == entry["sha256"]


@pytest.mark.parametrize("place", ["attachments_v1", "native_text_v1"])
@pytest.mark.parametrize("status", ["queued", "started", "unknown", "terminal"])
def test_attachments_are_held_until_their_turn_is_settled(home: MediaHome, place: str, status: str) -> None:
    home.admit(gone(home, name="photo.png"), at=place, status=status)
    found = home.found()
    assert [one.kind for one in found] == ([] if status == "terminal" else ["held-missing"])
    assert all("may still run" in (remedy(one, "drop").refused or "") for one in found)


@pytest.mark.parametrize("request_id", ["hosted:1", "other"])
def test_documents_are_held_by_the_prompt_of_a_hosted_room_only(home: MediaHome, request_id: str) -> None:
    line = f"read\n[Shared attachment] file: {gone(home, name='paper.pdf')['path']}\n"
    home.admit(payload={"text": line}, request_id=request_id, status="started")
    assert home.kinds() == ([("held-missing", "error")] if request_id == "hosted:1" else [])


def test_what_is_no_regular_file_or_not_in_its_folder_is_an_error(home: MediaHome, tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(b"outside")
    link, folder = gone(home, b"link"), gone(home, b"folder")
    Path(link["path"]).symlink_to(outside)
    Path(folder["path"]).mkdir()
    linked = gone(home, b"parent")
    Path(linked["path"]).parent.rmdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / Path(linked["path"]).name).write_bytes(b"parent")
    Path(linked["path"]).parent.symlink_to(tmp_path / "other")
    climbing = f"{home.home.native_inputs_dir}/../native-inputs/x.png"
    home.admit(
        link,
        folder,
        linked,
        {"path": str(outside)},
        {"path": climbing},
        {"path": "relative.png"},
        {"path": ""},
    )
    assert [kind for kind, _severity in home.kinds()] == [
        "held-not-regular",
        "held-not-regular",
        "held-outside",
        "held-outside",
        "held-outside",
        "held-outside",
        "held-outside",
    ]
    assert all(remedy(one, "relink").step is None for one in home.found())


def test_a_home_behind_a_link_is_judged_by_the_real_path(home: MediaHome, tmp_path: Path) -> None:
    entry = home.store(b"real")
    seq = home.admit(entry)
    behind = tmp_path / "link"
    behind.symlink_to(home.home.root)
    linked = dataclasses.replace(home, home=dataclasses.replace(home.home, root=behind))
    assert linked.found() == []
    spelt = str(entry["path"]).replace(str(home.home.root), str(behind))
    home.admit(entry | {"path": spelt})
    assert [one.key for one in linked.found()] == [key(seq + 1, spelt)]


def test_values_that_are_no_references_stop_nothing(home: MediaHome) -> None:
    home.admit(7, None, {}, "x", {"path": 7}, ["y"], {"path": r"C:\a.png"})
    home.admit(payload='{"api_turn_v1": {"media": [')
    home.admit(payload='{"api_turn_v1": {"media": {"path": "/x"}}}')
    home.admit(payload='["api_turn_v1", "media"]')
    data = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    data += [{"type": "image_url", "image_url": {"url": "hermes-retained:" + "ab" * 32}}]
    home.admit(payload={"text": data, "api_turn_v1": {"media": []}})
    home.admit({"path": "/with\0nul"})
    home.say("\0json:" + json.dumps(data))
    home.say(b"\0json:[{\xff")
    execute(home.database, "UPDATE messages SET media_content = '{\"images\": 7' WHERE id = 1")
    reference = json.dumps({"path": "/gone", "sha256": "ab" * 32, "size": 1})
    execute(
        home.database,
        "INSERT INTO state_meta (key, value) VALUES ('gateway.media.retired.v1.x', ?)",
        [reference],
    )
    assert [one.evidence["path"] for one in home.found()] == ["/with\0nul"]


def test_a_path_that_is_not_utf8_is_found_and_not_changed(home: MediaHome) -> None:
    payload = b'{"api_turn_v1": {"media": [{"path": "/h/\xff.png", "sha256": "", "size": 1}]}}'
    seq = home.admit({"path": "/x"})
    execute(
        home.database,
        "UPDATE session_admissions SET payload_json = CAST(? AS TEXT) WHERE seq = ?",
        [payload, seq],
    )
    (finding,) = home.found()
    assert finding.evidence["path"] == r"/h/\udcff.png"
    assert remedy(finding, "drop").refused == "its path is not UTF-8"


def test_drop_takes_out_the_dead_entries_and_nothing_else(home: MediaHome) -> None:
    first, second, whole = gone(home, b"1"), gone(home, b"2"), home.store(b"3")
    others: list[object] = [7, True, None, "text", ["list"]]
    payload = {
        "n": 1,
        "api_turn_v1": {"media": [first, whole, *others, second, first], "history": []},
        "text": "é",
    }
    seq = home.admit(payload=payload)
    assert len(home.found()) == 2
    drop(home)
    ((text,),) = execute(home.database, "SELECT payload_json FROM session_admissions WHERE seq = ?", [seq])
    assert json.loads(text) == payload | {"api_turn_v1": {"media": [whole, *others], "history": []}}
    assert home.found() == []


def test_a_drop_leaves_the_keys_of_other_findings_as_they_are(home: MediaHome) -> None:
    home.admit(gone(home, b"1"), gone(home, b"2"))
    first, second = home.found()
    step = remedy(first, "drop").step
    assert step is not None
    with home.looking(writable=True) as context:
        query = queries.choose(DAMAGE.sql, "drop-held", context.has)
        assert query is not None
        context.connection.execute(query.sql, dict(step.statements[0].bindings))
        assert [one.key for one in DAMAGE.find(context)] == [second.key]


def test_a_drop_that_finds_nothing_left_changes_nothing(home: MediaHome) -> None:
    home.admit(gone(home))
    (finding,) = home.found()
    drop(home)
    step = remedy(finding, "drop").step
    assert step is not None
    with home.looking(writable=True) as context:
        query = queries.choose(DAMAGE.sql, "drop-held", context.has)
        assert query is not None
        context.connection.execute(query.sql, dict(step.statements[0].bindings))
        assert context.connection.changes() == 0


def test_relink_names_the_one_file_that_has_the_bytes(home: MediaHome) -> None:
    entry = gone(home, b"the bytes")
    images = home.home.root / "cache" / "images"
    images.mkdir()
    (images / "img_1.png").write_bytes(b"the bytes")
    (images / "img_2.png").write_bytes(b"not those")
    (images / "link.png").symlink_to("img_1.png")
    home.admit(entry)
    (finding,) = home.found()
    step = remedy(finding, "relink").step
    assert step is not None
    (copy,) = step.files
    assert step.statements == ()
    assert (copy.source, copy.target) == (str(images / "img_1.png"), entry["path"])
    assert (copy.sha256, copy.size) == (entry["sha256"], 9)
    shutil.copyfile(copy.source, copy.target)
    assert home.found() == []


def test_relink_is_refused_without_exactly_one_file(home: MediaHome) -> None:
    home.admit(gone(home, b"the bytes"))
    assert "no files" in (remedy(home.found()[0], "relink").refused or "")
    images = home.home.root / "cache" / "images"
    images.mkdir()
    (images / "one.png").write_bytes(b"the bytes")
    os.link(images / "one.png", images / "same file.png")
    assert remedy(home.found()[0], "relink").step is not None
    (images / "two.png").write_bytes(b"the bytes")
    assert "2 files" in (remedy(home.found()[0], "relink").refused or "")


def test_relink_is_refused_where_the_name_or_size_does_not_fit(home: MediaHome) -> None:
    entry = gone(home, b"the bytes")
    (home.home.root / "images").mkdir()
    (home.home.root / "images" / "x.png").write_bytes(b"the bytes")
    other = str(entry["path"]).replace(entry["sha256"], "ab" * 32)
    home.admit(entry | {"path": other})
    home.admit(entry | {"size": 8})
    assert [remedy(one, "relink").step for one in home.found()] == [None, None]


def test_a_transcript_that_lost_images_is_a_warning_on_active_rows(home: MediaHome) -> None:
    there, lost = hashlib.sha256(b"there").hexdigest(), hashlib.sha256(b"lost").hexdigest()
    (home.home.transcript_media_dir / there).write_bytes(b"there")
    ids = [home.picture([{"sha256": there}, {"encoded_sha256": lost}]), home.picture([{"sha256": lost}])]
    home.picture([{"sha256": lost}], active=0)
    kept = home.picture([{"sha256": there}])
    (finding,) = home.found()
    assert (finding.kind, finding.severity.word) == ("transcript-image", "warning")
    assert (finding.evidence["messages"], finding.evidence["files"]) == (2, 1)
    (home.home.root / "images").mkdir()
    (home.home.root / "images" / lost).write_bytes(b"lost")
    step = remedy(home.found()[0], "relink").step
    assert step is not None
    assert step.files[0].target == str(home.home.transcript_media_dir / lost)
    drop(home)
    sql = "SELECT id FROM messages WHERE media_content IS NOT NULL AND active = 1"
    assert [row[0] for row in execute(home.database, sql)] == [kept]
    assert home.found() == []
    assert ids == sorted(ids)


def test_a_link_in_the_transcript_store_is_no_file(home: MediaHome) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    (home.home.root / "x").write_bytes(b"x")
    (home.home.transcript_media_dir / digest).symlink_to(home.home.root / "x")
    home.picture([{"sha256": digest}])
    (finding,) = home.found()
    assert (finding.kind, remedy(finding, "relink").step) == ("transcript-image", None)


def test_mentions_of_lost_files_are_one_note_for_each_session(home: MediaHome) -> None:
    composer = home.home.composer_images_dirs[0]
    composer.mkdir(parents=True)
    home.home.composer_pastes_dir.mkdir()
    api, paste = gone(home)["path"], home.home.composer_pastes_dir / "pasted_content_1.txt"
    one, two = home.sessions.plain[:2]
    home.say(
        f"[Image attached at: {api}] and @image:`{composer}/a b.png` and again @image:`{composer}/a b.png`",
        one,
    )
    home.say("\0json:" + json.dumps([{"type": "text", "text": f"@file:{paste}"}]), one)
    home.say("see", one, tool_calls=json.dumps([{"function": {"arguments": f"@file:{paste}"}}]), active=0)
    home.say(f"@image:{composer}/b.png", two, active=0)
    home.say(f"@image:'{composer}/c.png'.", two)
    found = home.found()
    assert [(one.kind, one.severity.word, one.key) for one in found] == [
        ("mention", "note", f"mentions {session}") for session in sorted((one, two))
    ]
    folders = [one.evidence["folders"] for one in sorted(found, key=lambda finding: finding.key)]
    assert folders == [
        {"composer-images": 1, "composer-pastes": 1, "native-inputs": 1},
        {"composer-images": 1},
    ]
    assert all(answer.step is None for finding in found for answer in finding.remedies)


def test_files_that_hermes_removes_by_design_are_one_note(home: MediaHome) -> None:
    root = home.home.root
    home.say(f"MEDIA:{root}/cache/images/img_1.png", timestamp=1_780_000_100.0)
    home.say(f"[Image attached at: {root}/image_cache/img_2.jpg]", home.sessions.plain[1])
    home.say(f"[Image attached at: {gone(home, name='photo of me.jpg')['path']}]", timestamp=float("inf"))
    (finding,) = home.found()
    assert (finding.kind, finding.severity.word) == ("swept", "note")
    assert (finding.evidence["references"], finding.evidence["oldest"]) == (3, 1_780_000_100.0)
    assert finding.evidence["newest"] == 1_780_000_500.0


def test_arbitrary_paths_and_files_that_are_there_are_not_mentioned(home: MediaHome) -> None:
    images = home.home.root / "images"
    images.mkdir()
    for name in ("a b.png", "c%20d.png", "é.png", "f [1].png", "g.png"):
        (images / name).write_bytes(b"x")
    home.say("MEDIA:/tmp/x.png @image:/nowhere/y.png [Image attached: https://example.invalid/z.png]")
    home.say(f"MEDIA:{images}/a b.png")
    home.say(f"MEDIA:{images}/a%20b.png and MEDIA:{images}/c%20d.png")
    home.say(f"[Image attached at: {images}/f [1].png]")
    home.say(f"**MEDIA:{images}/g.png**, (MEDIA:{images}/g.png).")
    home.say(json.dumps({"text": "x", "nested": json.dumps({"out": f"MEDIA:{images}/é.png"})}))
    home.say(f"MEDIA:{images}/../../etc/passwd.png")
    home.say(f"MEDIA:{images}/cut short")
    home.say(f"MEDIA:{images}")
    assert home.found() == []


def test_a_held_file_that_is_gone_is_not_mentioned_again(home: MediaHome) -> None:
    entry = gone(home)
    home.admit(entry)
    home.say(f"[Image attached at: {entry['path']}]")
    assert home.kinds() == [("held-missing", "error")]


def test_a_folder_that_is_absent_as_a_whole_is_one_finding(home: MediaHome) -> None:
    for number in range(20):
        entry = home.store(str(number).encode())
        home.admit(entry)
        home.say(f"[Image attached at: {entry['path']}]")
        home.picture([{"sha256": entry["sha256"]}])
    shutil.rmtree(home.home.root / "cache")
    found = {one.key: one for one in home.found()}
    assert {key: one.severity.word for key, one in found.items()} == {
        "native-inputs": "warning",
        "transcript_media": "note",
    }
    assert found["native-inputs"].evidence["held"] == 20
    assert "the whole folder is absent" in (remedy(found["native-inputs"], "drop").refused or "")


def test_files_of_another_home_are_one_finding_where_none_came_along(home: MediaHome) -> None:
    for number in range(20):
        digest = hashlib.sha256(bytes([number])).hexdigest()
        home.admit({"path": f"/other/.hermes/cache/documents/native-inputs/{digest}/api_x.png"})
    assert home.kinds() == [("held-outside", "error")] * 20
    home.home.native_inputs_dir.rmdir()
    assert home.kinds() == [("folder-absent", "warning")]


def test_a_database_outside_a_home_is_not_judged(tmp_path: Path) -> None:
    alone = media_home(tmp_path / "home")
    alone.admit({"path": "/other/native-inputs/x/api_x.png"})
    alone.picture([{"sha256": "ab" * 32}])
    assert len(alone.found()) == 2
    for name in ("sessions", "cache"):
        shutil.rmtree(alone.home.root / name)
    with pytest.raises(NotApplicable, match="no Hermes home"):
        alone.found()
    with alone.looking() as context, pytest.raises(NotApplicable, match="no Hermes home"):
        list(DAMAGE.find(dataclasses.replace(context, home=None)))


def test_very_many_lost_files_are_one_finding_for_each_session(
    home: MediaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_held, "LISTED", 5)
    for number in range(6):
        home.admit(
            gone(home, str(number).encode()),
            {"path": f"/other/native-inputs/{'ab' * 32}/api_{number}.png"},
            target_session_id=home.sessions.plain[number % 2],
        )
    found = home.found()
    assert [one.kind for one in found] == ["held-other-home", "held-many", "held-many"]
    assert [one.evidence["references"] for one in found] == [6, 3, 3]
    drop(home)
    assert [one.kind for one in home.found()] == ["held-other-home"]


def test_what_cannot_be_seen_is_not_called_missing(home: MediaHome, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = home.store(b"x")
    home.admit(entry)

    seen = os.lstat

    def refuse(path: str) -> os.stat_result:
        if str(path).startswith(str(home.home.native_inputs_dir) + "/"):
            raise PermissionError(13, "Permission denied")
        return seen(path)

    with home.looking() as context:
        monkeypatch.setattr(os, "lstat", refuse)
        with pytest.raises(PermissionError):
            list(DAMAGE.find(context))


def test_finding_opens_no_file_and_changes_nothing(home: MediaHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home.admit(home.store(b"x"), {"path": "/elsewhere.png"})

    def refuse(*_arguments: object) -> int:
        raise AssertionError("an image was opened")

    with home.looking() as context:
        monkeypatch.setattr(os, "open", refuse)
        assert len(list(DAMAGE.find(context))) == 1


def test_the_number_of_bound_variables_does_not_grow(home: MediaHome) -> None:
    for number in range(1200):
        home.say(f"MEDIA:{home.home.root}/images/{number}.png")
    seen: list[int] = []

    def trace(_cursor: apsw.Cursor, _sql: str, bindings: object) -> bool:
        seen.append(len(bindings) if isinstance(bindings, dict | tuple) else 0)
        return True

    with home.looking() as context:
        context.connection.exec_trace = trace
        (finding,) = DAMAGE.find(context)
    assert finding.evidence["references"] == 1200
    assert max(seen) < 32, "one for each mark of the content pass, whatever the file holds"


def test_a_store_without_a_ledger_is_read_for_its_texts(tmp_path: Path) -> None:
    for shape in ("11", "14", "22", "31"):
        home = media_home(tmp_path / shape, shape)
        home.say(f"MEDIA:{home.home.root}/images/gone.png")
        assert home.kinds() == [("swept", "note")]
    alone = make(tmp_path / "plain.db", "11")
    assert fill(alone).plain
