"""The pytest plug-in as other projects get it: from an installed wheel, outside the checkout, in a pytest of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.running import CHECKOUT

pytest_plugins = ["pytester"]

HEALTHY = """
    from hermes_dbtools.pytest_plugin import HermesStore, assert_healthy_store

    def test_it(hermes_store: HermesStore) -> None:
        assert_healthy_store(hermes_store("31", sessions=2))
        assert_healthy_store(hermes_store(home=True).parent)
"""

DAMAGED = """
    from hermes_dbtools.pytest_plugin import assert_healthy_store

    def test_it(hermes_store):
        path = hermes_store("22", {"orphaned-messages": 2, "session-counter-drift": 1, "cut-lineages": 1})
        assert_healthy_store(path)
"""

ACCEPTED = """
    import pytest
    from hermes_dbtools import model
    from hermes_dbtools.pytest_plugin import assert_healthy_store

    def test_it(hermes_store):
        path = hermes_store("22", ["orphaned-messages=2", "session-counter-drift"])
        assert_healthy_store(path, ignore=["HDB201", "counters"])
        assert_healthy_store(path, ignore=["orphaned-messages"], fail_on="error")
        assert_healthy_store(str(hermes_store(damage=["cut-lineages"], name="notes.db")))
        with pytest.raises(AssertionError, match="cut-lineages"):
            assert_healthy_store(path.with_name("notes.db"), fail_on="note")
        with pytest.raises(AssertionError, match="no such file"):
            assert_healthy_store(path.with_name("missing.db"))
        with pytest.raises(AssertionError, match="could not look"):
            assert_healthy_store(hermes_store(damage=["split-wal"], name="split.db"), ignore=["split-wal"])
        with pytest.raises(model.UsageError):
            assert_healthy_store(path, ignore=["nonsense"])
        with pytest.raises(model.UsageError, match="not 'loud'"):
            assert_healthy_store(path, fail_on="loud")
        further = [hermes_store() for _ in range(2)] + [hermes_store(home=True).parent for _ in range(2)]
        assert [one.name for one in further] == ["state-2.db", "state-3.db", "home", "home-2"]
        with pytest.raises(model.Refused):
            hermes_store(name="state-2.db")
        with pytest.raises(model.UsageError, match="shape 11"):
            hermes_store("11", ["orphaned-usage"], name="old.db")
        assert path.parent == path.with_name("notes.db").parent
        assert hermes_store(seed=1, name="one.db").read_bytes() != hermes_store(name="two.db").read_bytes()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this checkout in it, unpacked as pip does."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def project(pytester: pytest.Pytester, installed: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Another project's tests: they know the installed package and not this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(installed))
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PYTEST_"))]:
        monkeypatch.delenv(name)
    return pytester


def test_a_healthy_store_passes(project: pytest.Pytester) -> None:
    project.makepyfile(HEALTHY)
    project.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)


def test_the_failure_reads_as_the_report_of_a_scan(project: pytest.Pytester) -> None:
    project.makepyfile(DAMAGED)
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*the store is not healthy*",
            "*state.db * schema 22, inline search*",
            "*error*HDB201*orphaned-messages*2 missing sessions * 8 messages*",
            "*warning*HDB501*session-counter-drift*1 session*",
            "*1 error, 1 warning, 1 note*",
            "*hermes-dbtools repair *state.db*",
        ]
    )
    assert "scan_text" not in result.stdout.str(), "the traceback ends in the test"


def test_what_is_accepted_and_what_could_not_be_looked_at(project: pytest.Pytester) -> None:
    project.makepyfile(ACCEPTED)
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_run_that_does_not_use_it_loads_nothing_of_it(project: pytest.Pytester, installed: Path) -> None:
    project.makepyfile(
        """
        import json, sys
        from pathlib import Path

        def test_it(request):
            plugin = request.config.pluginmanager.get_plugin("hermes-dbtools")
            held = sorted(name for name in sys.modules if name.partition(".")[0] in ("apsw", "msgspec", "hermes_dbtools"))
            hooks = [name for name in vars(plugin) if name.startswith("pytest_")]
            Path("found.json").write_text(json.dumps([plugin.__file__, held, hooks]))
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)
    place, modules, hooks = json.loads((project.path / "found.json").read_text("utf-8"))
    assert Path(place).parent.parent == installed
    assert modules == ["hermes_dbtools", "hermes_dbtools.pytest_plugin"]
    assert hooks == []


def test_its_fixture_is_listed_and_says_what_it_is(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("--fixtures")
    result.stdout.fnmatch_lines(["hermes_store*", "*makes a fixture store of a known shape*"])
