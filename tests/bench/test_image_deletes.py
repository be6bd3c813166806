"""Deletes of sessions that hold a hundred thousand retained images; the smaller ones are in tests/test_images_at_scale.py."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_images_at_scale import assert_deleted, crowd


@pytest.mark.bench
def test_a_hundred_thousand_images_cost_ten_times_as_much_as_ten_thousand(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    seconds = []
    for images in (10_000, 100_000):
        one = crowd(tmp_path / str(images), images)
        started, worked = time.perf_counter(), time.process_time()
        done = one.delete()
        seconds.append(time.process_time() - worked)
        figure(
            f"delete of sessions with {images:,} images: {time.perf_counter() - started:.1f} s, {seconds[-1]:.1f} s at work"
        )
        assert_deleted(one, done)
        shutil.rmtree(one.media.home.root)
    assert seconds[1] < 15 * seconds[0]
