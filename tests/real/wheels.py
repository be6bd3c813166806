"""Give the wheel of a released store, downloaded once and kept outside the checkout; never installs one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RELEASES = ("0.13.0", "0.16.0", "0.18.2", "0.19.0", "0.20.4.1")
"""The released stores every test about real files runs on, oldest first."""

ASYNC_RELEASES = ("0.20.4.1",)
"""Releases of async-hermes-agent; every other release is one of hermes-agent."""

SYNC_RELEASES = tuple(release for release in RELEASES if release not in ASYNC_RELEASES)


def wheel(release: str) -> Path:
    """Return the wheel file of `release`; fetch it with pip when the cache lacks it.

    Raises RuntimeError with pip's own words when the wheel cannot be had.
    """
    folder = cache_folder()
    target = folder / _file_name(release)
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with _one_process(folder):
        if not target.exists():
            _download(release, target)
    return target


def modules(release: str) -> Path:
    """Return the folder with the modules of `release`, unpacked from its wheel once, so that a start need not compile them.

    Where the cache cannot be written it is the wheel, of which Python imports too.
    """
    packed = wheel(release)
    folder = packed.with_suffix(".modules")
    if not folder.exists():
        try:
            with _one_process(folder.parent):
                _unpack(packed, folder)
        except OSError:
            return packed
    return folder


def cache_folder() -> Path:
    """Return where the wheels are kept: $HERMES_DBTOOLS_WHEELS, else a folder of the user's cache."""
    chosen = os.environ.get("HERMES_DBTOOLS_WHEELS")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "hermes-dbtools-wheels"


def _distribution(release: str) -> str:
    return "async-hermes-agent" if release in ASYNC_RELEASES else "hermes-agent"


def _file_name(release: str) -> str:
    return f"{_distribution(release).replace('-', '_')}-{release}-py3-none-any.whl"


def _download(release: str, target: Path) -> None:
    """Put the wheel at `target` in one rename, so that no reader ever sees half a file."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--dest", scratch]
        command.append(f"{_distribution(release)}=={release}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = Path(scratch) / target.name
        if done.returncode != 0 or not fetched.exists():
            raise RuntimeError(f"no wheel of {_distribution(release)} {release}: {done.stderr.strip()}")
        fetched.replace(target)


def _unpack(packed: Path, folder: Path) -> None:
    """Put the modules of a wheel in a folder in one rename."""
    if folder.exists():
        return
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, zipfile.ZipFile(packed) as archive:
        unpacked = Path(scratch) / "modules"
        archive.extractall(unpacked, [name for name in archive.namelist() if name.endswith(".py")])
        unpacked.rename(folder)


@contextmanager
def _one_process(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
