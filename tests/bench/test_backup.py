"""A backup against `cp` of the same file, and its verification against one `PRAGMA quick_check` and one digest of the copy.

The two run side by side: on a machine with a core to spare the digest costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bench.measure import run
from tests.live_writers import writer

pytestmark = pytest.mark.bench

ROUNDS = 4
COPY_SPEED = 0.5
"""At least so much of the speed of `cp`, whether or not a gateway holds the file."""
VERIFICATION = 1.25
"""At most so much of one quick_check and one digest, one after the other."""
PEAK_BYTES = 300_000_000

MEASURE = """
import json, os, subprocess, sys, time
from pathlib import Path
from hermes_dbtools import database, verification
from hermes_dbtools.backups import taking
from hermes_dbtools.file_digests import file_digest
from hermes_dbtools.home import resolve

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
moments = {}

def told(what):
    moments.setdefault(what, time.perf_counter())

def timed(body):
    started = time.perf_counter()
    body()
    return time.perf_counter() - started

def cp():
    subprocess.run(["cp", str(source), str(folder / "cp.db")], check=True)
    descriptor = os.open(folder / "cp.db", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

def check():
    connection = database.open_private(target)
    assert verification.whole_file(connection) == ((), ())
    connection.close()

target = folder / "copy.db"
for path in (target, folder / "cp.db"):
    path.unlink(missing_ok=True)
copied = timed(cp)
taking.back_up(resolve(source), taking.BackupOptions(output=target), told)
told("end")
print(json.dumps({
    "cp": copied,
    "copy": moments["verifying"] - moments["copying"],
    "verification": moments["end"] - moments["verifying"],
    "check": timed(check),
    "digest": timed(lambda: file_digest(target)),
}))
"""


@pytest.mark.parametrize("how", ["alone", "held"])
def test_a_backup_is_about_a_copy_and_a_check(
    how: str, built: Callable[..., Path], figure: Callable[[str], None], tmp_path: Path
) -> None:
    source = built(1_000_000, 5_000)
    with ExitStack() as stack:
        if how == "held":
            stack.enter_context(writer(source, "SELECT count(*) FROM sessions"))
        measure(source, figure, tmp_path)


def measure(source: Path, figure: Callable[[str], None], tmp_path: Path) -> None:
    found, peak = [], 0
    for _round in range(ROUNDS):
        done = run("-c", MEASURE, str(source), str(tmp_path))
        assert done.code == 0
        found.append(json.loads(done.out))
        peak = max(peak, done.peak_bytes)
    for path in tmp_path.iterdir():
        path.unlink()
    # What else the machine does only ever adds: the shortest of each comes nearest to what it takes.
    seconds = {name: min(one[name] for one in found) for name in found[0]}
    speed = seconds["cp"] / seconds["copy"]
    checks = seconds["verification"] / (seconds["check"] + seconds["digest"])
    figure(
        f"backup of {source.stat().st_size / 1e9:.1f} GB: copy {seconds['copy']:.1f} s, cp {seconds['cp']:.1f} s: "
        f"{speed:.2f} of its speed (at least {COPY_SPEED}); verification {seconds['verification']:.1f} s, quick_check "
        f"{seconds['check']:.1f} s, digest {seconds['digest']:.1f} s: ratio {checks:.2f} (at most {VERIFICATION}); "
        f"peak memory {peak / 1e6:.0f} MB"
    )
    assert speed >= COPY_SPEED
    assert checks <= VERIFICATION
    assert peak < PEAK_BYTES
