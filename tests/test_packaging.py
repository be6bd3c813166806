"""What is installed is what is here: from a wheel, an editable install and a plain checkout, and run from anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hermes_dbtools
from tests.running import CHECKOUT, environment, tool

SHIPPED = ("sql", "runbooks")
CALLS = (("--version",), ("checks",), ("checks", "HDB201"), ("runbook", "orphaned-messages"), ("demo",))


def built(kind: str, folder: Path) -> Path:
    """Build a wheel of this checkout; `standard` or `editable`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", f"wheel:{kind}", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("standard", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The Python of an environment that holds the wheel and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    install(python, str(wheel))
    return python


def install(python: Path, *what: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", *what], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_its_sql_and_its_runbooks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    expected = {f"hermes_dbtools/{name}": data for name, data in files(CHECKOUT / "hermes_dbtools").items()}
    for folder in SHIPPED:
        found = files(CHECKOUT / folder)
        assert found
        expected |= {f"hermes_dbtools/{folder}/{name}": data for name, data in found.items()}
    assert set(held) == set(expected)
    assert held == expected


def test_the_version_is_said_once(wheel: Path) -> None:
    assert wheel.name.startswith(f"hermes_dbtools-{hermes_dbtools.__version__}-py3-none-any")
    assert tool("--version").out.startswith(f"hermes-dbtools {hermes_dbtools.__version__} (apsw ")


def run_from_the_root(*command: str) -> str:
    done = subprocess.run(
        command, cwd="/", env=environment(PYTHONPATH=None), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), command
    return done.stdout


def place(python: Path) -> Path:
    return Path(
        run_from_the_root(str(python), "-c", "import hermes_dbtools; print(hermes_dbtools.__file__)").strip()
    )


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_the_installed_wheel_runs_from_anywhere(clean: Path, words: tuple[str, ...]) -> None:
    assert clean.parent.parent in place(clean).parents
    said = run_from_the_root(str(clean.with_name("hermes-dbtools")), *words)
    assert said
    if words != ("demo",):
        assert said == run_from_the_root(str(clean), "-m", "hermes_dbtools", *words)
        assert said.partition(" (")[0] == tool(*words).out.partition(" (")[0]


def test_an_editable_install_reads_the_checkout(
    tmp_path: Path, clean: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("editable") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
    python = other / "bin" / "python"
    install(python, "--no-deps", str(built("editable", tmp_path)))
    (libraries,) = clean.parent.parent.glob("lib/python*/site-packages")
    (own,) = other.glob("lib/python*/site-packages")
    for entry in libraries.iterdir():
        if not entry.name.startswith("hermes_dbtools") and not (own / entry.name).exists():
            (own / entry.name).symlink_to(entry)
    assert place(python).parent == CHECKOUT / "hermes_dbtools"
    for words in CALLS:
        assert run_from_the_root(str(python.with_name("hermes-dbtools")), *words)


def test_a_plain_checkout_runs_from_anywhere(tmp_path: Path) -> None:
    for words in CALLS:
        ran = tool(*words, cwd=Path("/"))
        assert (ran.code, ran.err) == (0, "")
        assert ran.out
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names only


def test_the_continuous_integration_reads_the_readme() -> None:
    script = (CHECKOUT / ".ci" / "run").read_text("utf-8")
    assert "<!-- test-command -->" in script
    assert (CHECKOUT / "README.md").read_text("utf-8").count("<!-- test-command -->") == 1
    assert "pytest" not in script, "the README alone says how the tests are run"
