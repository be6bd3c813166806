"""What README says of CI and of many hosts, run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hermes_dbtools import baseline, demo
from hermes_dbtools.cli.scan import FORMATS
from hermes_dbtools.damage import REGISTRY
from tests.running import CHECKOUT, environment, tool
from tests.shapes.make import execute
from tests.test_cli import healthy
from tests.test_many_hosts import PLAYBOOK, program

README = (CHECKOUT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(title: str, language: str) -> Iterator[str]:
    return iter(re.findall(rf"^```{language}\n(.*?)^```", section(title), re.MULTILINE | re.DOTALL))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with fixture databases, and this tool on the PATH."""
    fixtures = tmp_path / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin")
    healthy(tmp_path / "made").rename(fixtures / "new.db")
    (tmp_path / "old").mkdir()
    shutil.move(demo.make_home(tmp_path / "old").database, fixtures / "old.db")
    return tmp_path


def run(script: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """As the runner of GitHub runs a step in bash."""
    env = environment(
        PATH=f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}",
        GITHUB_STEP_SUMMARY=str(checkout / "summary.md"),
        HERMES_HOME=str(checkout / "home"),
    )
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)


def test_the_formats_in_readme_are_those_there_are() -> None:
    named = re.findall(r"^\| `(\w+)` \|", section("Formats"), re.MULTILINE)
    assert ("table", "json", *named) == FORMATS


def test_the_gate_of_readme_and_its_workflow_step(checkout: Path) -> None:
    (commands,) = blocks("In CI", "sh")
    (step,) = yaml.safe_load(next(blocks("In CI", "yaml")))
    assert run(commands, checkout).returncode == 0
    done = run(step["run"], checkout)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 2, "no annotation where all is accepted"
    summary = checkout / "summary.md"
    assert "| accepted | HDB201 | orphaned-messages |" in summary.read_text("utf-8")

    summary.unlink()
    execute(
        checkout / "tests" / "fixtures" / "new.db", "DELETE FROM sessions WHERE title = 'Plain session 1'"
    )
    done = run(step["run"], checkout)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=tests/fixtures/new.db,title=HDB201 orphaned-messages::")
    assert "| error | HDB201 | orphaned-messages | 1 missing session" in summary.read_text("utf-8")


def test_the_baseline_of_readme_is_one(tmp_path: Path) -> None:
    (text,) = blocks("In CI", "toml")
    file = tmp_path / "known.toml"
    file.write_text(f'format = "hermes-dbtools/baseline"\nformat_version = 1\n{text}', "utf-8")
    known = baseline.load(str(file), frozenset(damage.code for damage in REGISTRY))
    assert len(known.entries) == len(tomllib.loads(text)["accepted"]) == 1


def test_the_hook_of_readme_is_the_one_of_this_repository() -> None:
    configuration = yaml.safe_load(list(blocks("In CI", "yaml"))[1])
    (repository,) = configuration["repos"]
    (hook,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [one["id"] for one in repository["hooks"]] == [hook["id"]]


def test_the_commands_for_many_hosts(checkout: Path) -> None:
    healthy(checkout / "home")
    (commands,) = blocks("Many hosts", "sh")
    lines = commands.splitlines()
    (playing,) = [line for line in lines if line.startswith("ansible-playbook")]
    assert playing.split()[1:] == ["-i", "hosts.ini", "scan.yml"], "as test_many_hosts runs it"
    (checkout / "reports").mkdir()
    report = checkout / "reports" / "web1.json"
    assert tool("scan", checkout / "home", "--format", "json", "--output", report).code == 0
    done = run("\n".join(line for line in lines if line != playing), checkout)
    assert done.returncode == 0, done
    assert (checkout / "scan.yml").read_bytes() == PLAYBOOK.read_bytes()
    assert "1 host · 1 database · nothing found" in done.stdout
