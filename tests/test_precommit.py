"""The pre-commit hook of this repository, installed and run by pre-commit itself in a repository that uses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hermes_dbtools.cli import COMMANDS
from tests.running import CHECKOUT, Ran, tool
from tests.shapes.make import execute
from tests.test_cli import healthy

PUBLISHED = ("hermes_dbtools", "sql", "runbooks", "README.md", "pyproject.toml", ".pre-commit-hooks.yaml")
HOOK = "hermes-dbtools-scan"


def configuration(repository: Path, revision: str, *arguments: str) -> str:
    hook = {"id": HOOK, "args": list(arguments)}
    return str(yaml.safe_dump({"repos": [{"repo": str(repository), "rev": revision, "hooks": [hook]}]}))


def git(folder: Path, *words: str) -> str:
    names = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=folder, env=names, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """This checkout as a repository that others name, and its revision."""
    folder = tmp_path_factory.mktemp("published")
    for name in PUBLISHED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "published")
    return folder, git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment of the hook: made once."""
    return tmp_path_factory.mktemp("cache")


def run(folder: Path, cache: Path) -> Ran:
    git(folder, "add", "--all")
    names = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "GIT_"))}
    names |= {"PRE_COMMIT_HOME": str(cache), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never", "--verbose"]
    done = subprocess.run(command, cwd=folder, env=names, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_hook_runs_where_it_is_configured(
    published: tuple[Path, str], cache: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(configuration(*published), "utf-8")
    path = healthy(tmp_path / "fixtures" / "one")
    (tmp_path / "notes.db").write_bytes(b"no database, and no file of ours")
    ran = run(tmp_path, cache)
    assert ran.code == 0, ran
    assert re.search(r"^scan Hermes databases\.+Passed$", ran.out, re.MULTILINE)

    damaged = healthy(tmp_path / "fixtures" / "two")
    execute(damaged, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    ran = run(tmp_path, cache)
    assert ran.code == 1, ran
    assert re.search(r"^scan Hermes databases\.+Failed$", ran.out, re.MULTILINE)
    assert "exit code: 1" in ran.out
    assert "orphaned-messages" in ran.out
    assert "files were modified by this hook" not in ran.out

    update = ("--baseline", "known.toml", "--update-baseline")
    assert tool("scan", path, damaged, *update, cwd=tmp_path).code == 0
    config.write_text(configuration(*published, "--baseline=known.toml"), "utf-8")
    ran = run(tmp_path, cache)
    assert ran.code == 0, ran


def test_the_hook_is_a_command_of_this_release() -> None:
    (hook,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["id"] == HOOK
    program, command, *options = hook["entry"].split()
    assert (program, options) == ("hermes-dbtools", ["--quiet"])
    assert command in COMMANDS
