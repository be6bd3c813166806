"""Images in messages: which bytes decode, which parts are images, and that no bytes make the checks fail."""

from __future__ import annotations

import base64
import json
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools.image_check import dimensions, flaw
from hermes_dbtools.inline_images import in_text, parts_of


def png(
    width: int, height: int, *, depth: int = 8, colour: int = 2, interlace: int = 0, rows: bytes | None = None
) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    line = 1 + (width * {0: 1, 2: 3, 6: 4}[colour] * depth + 7) // 8
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    packed = zlib.compress(bytes(line * height) if rows is None else rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00"
    b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////"
    "wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="
)
WEBP = b"RIFF" + struct.pack("<I", 4 + 8 + 10) + b"WEBPVP8 " + struct.pack("<I", 10) + bytes(10)
"""Only its frame: its pixels are no picture."""


@pytest.mark.parametrize(
    "image", [png(1, 1), png(300, 200), png(3, 5, depth=1, colour=0), png(7, 7, colour=6), GIF]
)
def test_sound_images_pass(image: bytes) -> None:
    assert flaw(image) == ""
    assert flaw(image + b"\0\0") == "", "what follows the end is not looked at"


def test_an_interlaced_image_needs_all_its_passes() -> None:
    passes = [(1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)]
    rows = bytes(sum(lines * (1 + 3 * columns) for columns, lines in passes))
    assert flaw(png(8, 8, interlace=1, rows=rows)) == ""
    assert flaw(png(8, 8, interlace=1, rows=rows[:-1])) == "rows of it are missing"


@pytest.mark.parametrize("image", [png(40, 40), GIF[:-1]], ids=["png", "gif"])
def test_an_image_that_is_cut_off_anywhere_does_not_pass(image: bytes) -> None:
    for end in range(12, len(image) - 1):
        assert flaw(image[:end], "image/png"), end


def test_jpeg_and_webp_need_their_end() -> None:
    assert flaw(JPEG) in (JPEG_PASSES, "it is cut off")
    assert flaw(JPEG[:40]) == "it is cut off"
    assert flaw(WEBP[:-4]) == "it is cut off"


JPEG_PASSES = ""


def test_a_wrong_check_sum_is_named() -> None:
    image = bytearray(png(40, 40))
    image[50] ^= 1
    assert flaw(bytes(image)) in ("a check sum of it is wrong", "its compressed rows are broken")


@pytest.mark.parametrize(
    ("data", "media_type", "why"),
    [
        (b"", "image/png", "it is empty"),
        (b"Not found", "image/png", "its bytes are no image"),
        (b"<html>", "image/webp", "its bytes are no image"),
        (b"<svg xmlns='x'/>", "image/svg+xml", ""),
        (b"\0\0\0\x20ftypheic" + bytes(40), "image/heic", ""),
        (b"\x01\x02\x03 unknown", "image/x-new", ""),
        (b"plain words", "image/x-new", "its bytes are no image"),
    ],
)
def test_bytes_that_are_no_image_and_formats_that_are_not_judged(
    data: bytes, media_type: str, why: str
) -> None:
    assert flaw(data, media_type) == why


def test_dimensions_come_from_the_first_bytes() -> None:
    assert dimensions(png(9000, 3)[:40]) == (9000, 3)
    assert dimensions(GIF[:12]) == (1, 1)
    assert dimensions(JPEG) == (1, 1)
    assert dimensions(b"\xff\xd8\xff\xe0") == (0, 0)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([png(5, 5), GIF, JPEG, WEBP]), st.binary(max_size=40), st.integers(0, 90))
def test_no_bytes_make_the_checks_fail(image: bytes, noise: bytes, place: int) -> None:
    data = image[:place] + noise + image[place + len(noise) :]
    assert isinstance(flaw(data), str)
    assert len(dimensions(data)) == 2


def test_all_forms_of_a_part_are_images_and_nothing_else_is() -> None:
    encoded = base64.b64encode(png(2, 2)).decode()
    url = f"data:image/png;base64,{encoded}"
    content = [
        {"type": "text", "text": url},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": url},
        {"type": "input_image", "image_url": url},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": encoded}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AAAA"}},
        {
            "type": "tool_result",
            "content": [{"type": "image", "source": {"type": "base64", "data": encoded}}],
        },
        None,
        7,
    ]
    found = list(parts_of(b"\0json:" + json.dumps(content).encode()))
    assert [(image.place, image.media_type) for image in found] == [
        ("$[1]", "image/png"),
        ("$[2]", "image/png"),
        ("$[3]", "image/png"),
        ("$[4]", "image/gif"),
        ("$[7].content[0]", "image"),
    ]
    assert all(image.decoded() == png(2, 2) for image in found)


def test_plain_text_and_broken_json_have_no_parts() -> None:
    assert list(parts_of(b"data:image/png;base64,AAAA")) == []
    assert list(parts_of(b"\0json:[{")) == []
    assert list(in_text(b"x data:image/png;base64," + b"A" * 100 + b" y")) == [100]
    assert list(in_text(b"data:image/png;base64,AAAA")) == []


def test_base64_with_line_ends_decodes_and_other_letters_do_not() -> None:
    def parts(data: str) -> bytes:
        return (
            b"\0json:" + json.dumps([{"type": "image", "source": {"type": "base64", "data": data}}]).encode()
        )

    (image,) = parts_of(parts("QUJD\nREVG"))
    assert image.decoded() == b"ABCDEF"
    (image,) = parts_of(parts("not base64!"))
    assert image.decoded() is None
