"""The forms of references, read from values alone."""

from __future__ import annotations

import json

import pytest

from hermes_dbtools.media_references import (
    Form,
    admission_references,
    hosted_references,
    mentions,
    transcript_references,
)

DIGEST = "ab" * 32
ENTRY = {"path": f"/h/native-inputs/{DIGEST}/a.png", "sha256": DIGEST, "size": 3}
PATH = "/h/cache/images/img_1.png"


def test_lists_of_a_settled_admission_are_held_only_for_api_images() -> None:
    lists = json.dumps([[ENTRY], [ENTRY], [ENTRY]]).encode()
    found = list(admission_references(7, True, lists))
    assert [(one.form, one.held) for one in found] == [
        (Form.API_IMAGE, True),
        (Form.ATTACHMENT, False),
        (Form.NATIVE_INPUT, False),
    ]
    assert all(one.held for one in admission_references(7, False, lists))
    assert (found[0].key, found[0].place, found[0].size) == (7, "$.api_turn_v1.media[0]", 3)


@pytest.mark.parametrize(
    "lists",
    [
        b"",
        b"[",
        b"\xff\xfe",
        b"7",
        b"[null,null,null]",
        b'[{"path":"/x"},"/x",7]',
        b'[["/x",7,null,{},{"path":7},{"path":null}],[],[]]',
        b'[[{"path":"C:\\\\Users\\\\a.png"},{"path":"\\\\\\\\host\\\\a.png"}],null,null]',
        b"[" * 100_000,
    ],
)
def test_what_is_no_reference_gives_none(lists: bytes) -> None:
    assert list(admission_references(1, False, lists)) == []


def test_a_path_that_is_not_utf8_survives() -> None:
    (one,) = admission_references(1, True, b'[[{"path":"/h/\xff.png","sha256":7,"size":"3"}],null,null]')
    assert (one.path, one.sha256, one.size) == ("/h/\udcff.png", None, None)


def test_hosted_lines_count_only_in_their_folder() -> None:
    root = "/h/native-inputs"
    lines = [
        f"{root}/{DIGEST}/paper.pdf",
        f"{root}/{DIGEST}/api_{DIGEST[:32]}.png",
        f"{root}/{DIGEST}/deep/paper.pdf",
        f"{root}/short/paper.pdf",
        "/elsewhere/native-inputs/" + DIGEST + "/paper.pdf",
        "relative.pdf",
    ]
    text = "read" + "".join(f"\n[Shared attachment] file: {line}\n" for line in lines)
    found = list(hosted_references(3, text.encode(), root))
    assert [(one.path, one.sha256, one.held) for one in found] == [(lines[0], DIGEST, True)]


def test_both_digests_of_a_transcript_image_are_needed() -> None:
    other = "cd" * 32
    images = json.dumps(
        [1, [{"sha256": DIGEST}, {"sha256": DIGEST, "encoded_sha256": other}, {}, 7]]
    ).encode()
    found = [one.path for one in transcript_references(1, images, "/t")]
    assert found == [f"/t/{DIGEST}", f"/t/{DIGEST}", f"/t/{other}"]


@pytest.mark.parametrize(
    "images", [b"[2,[]]", b"[1]", b"null", b"[1,null]", b'[1,[{"sha256":"../../etc/passwd"}]]']
)
def test_other_versions_and_digests_need_nothing(images: bytes) -> None:
    assert list(transcript_references(1, images, "/t")) == []


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Form.IMAGE_NOTE, f"see [Image attached at: {PATH}]"),
        (Form.IMAGE_NOTE, f"[Image attached: {PATH}] and more"),
        (Form.COMPOSER_IMAGE, f"@image:{PATH}"),
        (Form.COMPOSER_IMAGE, f"@image:`{PATH}`"),
        (Form.COMPOSER_IMAGE, f'@image:"{PATH}"'),
        (Form.COMPOSER_IMAGE, f"@image:'{PATH}'"),
        (Form.COMPOSER_IMAGE, f"look at @image:{PATH}, please"),
        (Form.COMPOSER_IMAGE, f"(@image:{PATH})."),
        (Form.PASTED_FILE, f"@file:{PATH}:10-20"),
        (Form.DELIVERY, f"MEDIA:{PATH}"),
        (Form.DELIVERY, f"MEDIA: file://{PATH}\nnext line"),
        (Form.DELIVERY, "MEDIA:/h/cache/images/img%5F1.png"),
        (Form.DELIVERY, f'{{"cut": "MEDIA:{PATH}\\nnext'),
    ],
)
@pytest.mark.parametrize("packing", ["plain", "json", "nul"])
def test_every_way_to_write_a_mention_has_the_path_among_its_readings(
    form: Form, text: str, packing: str
) -> None:
    content = text.encode()
    if packing != "plain":
        content = json.dumps(
            [{"type": "text", "text": text}, {"type": "image_url", "url": "data:image/png,@image:"}]
        ).encode()
    if packing == "nul":
        content = b"\0json:" + content
    (one,) = mentions(content)
    assert one.form is form
    assert PATH in list(one.readings())


def test_several_mentions_of_one_row_are_told_apart() -> None:
    text = f"[Image attached at: {PATH}] [Image attached at: /h/b.png] @file:/h/c d.txt MEDIA:`/h/e f.png`"
    assert [next(one.readings()) for one in mentions(text.encode())] == [
        PATH,
        "/h/b.png",
        "/h/c",
        "/h/e f.png",
    ]
    assert any("/h/c d.txt" in list(one.readings()) for one in mentions(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "[Image attached: https://example.invalid/a.png]",
        "@image:relative.png",
        r"@image:C:\Users\a.png",
        r"MEDIA:\\host\a.png",
        "MEDIA:",
        "@image: ",
        "",
        "\0json:",
    ],
)
def test_what_names_no_local_file_has_no_reading(text: str) -> None:
    assert [reading for one in mentions(text.encode()) for reading in one.readings()] == []


def test_malformed_json_and_undecodable_bytes_are_read_as_they_stand() -> None:
    content = b'\0json:[{"text": "@image:' + PATH.encode() + b"\\n\xff"
    assert any(PATH in list(one.readings()) for one in mentions(content))


def test_every_mark_of_a_long_row_is_seen() -> None:
    assert sum(1 for _one in mentions(b"MEDIA:/a " * 100_000)) == 100_000
