"""Where the files of a home are, and which home a path means."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from hermes_dbtools.home import Home, default_home, other_profiles, profiles, resolve
from hermes_dbtools.model import CouldNotLook, UsageError

from .live_writers import unprivileged


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    for home in (folder, folder / "profiles" / "work", folder / "profiles" / "art"):
        home.mkdir(parents=True)
        (home / "state.db").touch()
    return folder


def test_a_home_and_its_database_mean_the_same(root: Path) -> None:
    home = Home(root, root / "state.db", "default")
    assert resolve(root) == home
    assert resolve(str(root / "state.db")) == home
    assert resolve(os.fsencode(root)) == home


def test_a_profile_is_named_by_its_folder(root: Path) -> None:
    folder = root / "profiles" / "work"
    assert resolve(folder) == Home(folder, folder / "state.db", "work")


@pytest.mark.parametrize("target", [".", "state.db", "profiles/../state.db", "profiles/work/../.."])
def test_relative_paths_are_made_absolute(root: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert resolve(target) == Home(root, root / "state.db", "default")


def test_the_environment_names_the_default_home(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", f" {root} ")
    assert default_home() == root
    assert resolve(None).root == root


def test_without_it_the_home_of_the_user_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_DATA_DIR_SUFFIX", raising=False)
    assert default_home() == tmp_path / ".hermes"
    monkeypatch.setenv("HERMES_DATA_DIR_SUFFIX", "-dev")
    assert default_home() == tmp_path / ".hermes-dev"
    with pytest.raises(CouldNotLook, match="set HERMES_HOME"):
        resolve(None)


@pytest.mark.parametrize("target", ["", b"", "a\0b"])
def test_what_no_path_can_be_is_a_usage_error(target: str | bytes) -> None:
    with pytest.raises(UsageError, match="or hold a NUL"):
        resolve(target)


def test_nothing_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLook, match="no such file or folder"):
        resolve(tmp_path / "nothing.db")
    with pytest.raises(CouldNotLook, match=r"a folder without state\.db"):
        resolve(tmp_path)


def test_a_home_with_profiles_only_names_the_way_to_them(root: Path) -> None:
    (root / "state.db").unlink()
    with pytest.raises(CouldNotLook, match="--all-profiles"):
        resolve(root)


def test_a_name_with_line_breaks_stays_one_line(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLook) as caught:
        resolve(os.fsencode(tmp_path) + b"/new\nline-\xff.db")
    assert str(caught.value).startswith(f"{tmp_path}/new\\nline-\\xff.db: ")


def test_what_stands_there_is_not_judged(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state.db")
    (tmp_path / "dangling.db").symlink_to("nowhere")
    assert resolve(tmp_path / "state.db").root == tmp_path
    assert resolve(tmp_path / "dangling.db").database == tmp_path / "dangling.db"


def test_the_home_of_a_linked_database_is_where_the_link_lies(tmp_path: Path, root: Path) -> None:
    (tmp_path / "state.db").symlink_to(root / "state.db")
    assert resolve(tmp_path).root == tmp_path


def test_profiles_come_in_name_order_after_the_root(root: Path) -> None:
    (root / "profiles" / "Not a profile").mkdir()
    (root / "profiles" / "Not a profile" / "state.db").touch()
    (root / "profiles" / "empty").mkdir()
    assert [home.profile for home in profiles(root)] == ["default", "art", "work"]
    (root / "state.db").unlink()
    assert [home.profile for home in profiles(root)] == ["art", "work"]


def test_the_others_are_all_but_this_one(root: Path, tmp_path: Path) -> None:
    assert [home.profile for home in other_profiles(resolve(root))] == ["art", "work"]
    assert [home.profile for home in other_profiles(resolve(root / "profiles" / "art"))] == [
        "default",
        "work",
    ]
    (tmp_path / "alone.db").touch()
    assert other_profiles(resolve(tmp_path / "alone.db")) == ()


def test_profiles_that_cannot_be_listed_are_not_left_out() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name) / "profiles"
        folder.mkdir()
        Path(name).chmod(0o755)
        folder.chmod(0o000)
        said = unprivileged(
            Path(name),
            "try: answer = len(home.profiles(target))\nexcept ToolError as error: answer = str(error)",
        )
        folder.chmod(0o755)
    assert "permission denied" in said


def test_a_legacy_folder_counts_while_it_has_content(root: Path) -> None:
    home = resolve(root)
    assert home.native_inputs_dir == root / "cache" / "documents" / "native-inputs"
    (root / "document_cache").mkdir()
    assert home.documents_dir == root / "cache" / "documents"
    (root / "document_cache" / "native-inputs").mkdir()
    assert home.native_inputs_dir == root / "document_cache" / "native-inputs"


def test_the_other_files_have_fixed_places(root: Path) -> None:
    home = resolve(root)
    assert home.sessions_dir == root / "sessions"
    assert home.dbtools_dir == root / "dbtools"
    assert home.active_sessions_file == root / "runtime" / "active_sessions.json"
    assert home.transcript_media_dir == root / "cache" / "transcript_media"
    assert home.composer_pastes_dir == root / "composer-pastes"


def test_images_of_the_desktop_are_looked_for_where_its_environment_may_say(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    for name in ("HERMES_DESKTOP_USER_DATA_DIR", "HERMES_DATA_DIR_SUFFIX"):
        monkeypatch.delenv(name, raising=False)
    home = resolve(root)
    assert home.composer_images_dirs == (Path("/config/Hermes/composer-images"),)
    monkeypatch.setenv("HERMES_DESKTOP_USER_DATA_DIR", "/data")
    monkeypatch.setenv("HERMES_DATA_DIR_SUFFIX", "-dev")
    assert home.composer_images_dirs == tuple(
        Path(folder) / "composer-images" for folder in ("/data", "/config/Hermes-dev", "/config/Hermes")
    )
