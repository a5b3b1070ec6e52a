"""Parts of `calque demo` that need no service: its folder, its headway, and the lines that it invites to."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.app import APP
from calque.demo import configuration
from calque.demo.ending import work_folder
from calque.demo.headway import Headway
from calque.demo.invitation import literal, quoted, suggestions
from calque.demo.progress import EpochTotals, View
from calque.errors import CalqueError, Refused, Unavailable

SOURCE, MIRROR, DR = (f"thrift://127.0.0.1:{port}" for port in (10001, 10002, 10003))


def view(position: int | None, *, live: int = 0, copied: int | None = None, work: EpochTotals = EpochTotals()) -> View:  # noqa: B008
    copying = None if copied is None else {"files": 9, "files_done": 0, "bytes": 900, "bytes_done": copied}
    target = {"position": position, "tables": {"live": live}, "reading": None, "copying": copying, "state": "failing"}
    return View({"processes": [{"pid": 1}], "targets": {"mirror": target}}, {"mirror": work})


def ended_by(error: BaseException, places: list[Path], *, is_empty: bool = False) -> None:
    """A demo that an error ends. Its folder is added to `places`."""
    with work_folder(None) as folder:
        places.append(folder.path)
        if not is_empty:
            (folder.path / "run.log").touch()
        raise error


@pytest.fixture
def places() -> Iterator[list[Path]]:
    """The folders of the demos of a test."""
    folders: list[Path] = []
    yield folders
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_folder_goes_with_a_demo_that_ends_well() -> None:
    with work_folder(None) as folder:
        (folder.path / "run.log").touch()
    assert not folder.path.exists()


def test_a_folder_goes_with_a_demo_that_is_interrupted(places: list[Path]) -> None:
    with pytest.raises(KeyboardInterrupt):
        ended_by(KeyboardInterrupt(), places)
    assert not places[0].exists()


@pytest.mark.parametrize("error", [Unavailable("It ended", "Nobody knows", "See run.log"), Refused("It ended")])
def test_a_demo_that_fails_keeps_its_folder_and_names_it(error: CalqueError, places: list[Path]) -> None:
    with pytest.raises(type(error)) as caught:
        ended_by(error, places)
    assert (places[0] / "run.log").exists()
    assert (caught.value.what, caught.value.why) == (error.what, error.why)
    assert str(caught.value).endswith(f"The demo's files and logs are kept in {places[0]}.")


def test_a_defect_keeps_the_folder_too(places: list[Path]) -> None:
    with pytest.raises(KeyError) as caught:
        ended_by(KeyError("x"), places)
    assert (places[0] / "run.log").exists()
    assert str(places[0]) in caught.value.__notes__[0]


def test_a_demo_that_fails_before_it_wrote_anything_keeps_nothing(places: list[Path]) -> None:
    with pytest.raises(Unavailable) as caught:
        ended_by(Unavailable("Nothing can be fetched"), places, is_empty=True)
    assert str(caught.value) == "Nothing can be fetched."
    assert not places[0].exists()


def test_a_folder_that_the_user_named_stays(tmp_path: Path) -> None:
    with work_folder(tmp_path / "mine") as folder:
        (folder.path / "run.log").touch()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["run.log"]


def test_headway_counts_whatever_the_clock_says() -> None:
    headway = Headway(0.0)
    assert headway.still_seconds(View(), 100.0) == 0.0
    assert headway.still_seconds(view(None), 1e4) == 0.0
    assert headway.still_seconds(view(None, copied=1), 2e4) == 0.0
    assert headway.still_seconds(view(None, copied=2), 3e4) == 0.0
    assert headway.still_seconds(view(None, live=1), 4e4) == 0.0
    assert headway.still_seconds(view(7, live=1), 5e4) == 0.0
    assert headway.still_seconds(view(7, live=1, work=EpochTotals(bytes=1)), 6e4) == 0.0


def test_without_headway_the_seconds_are_counted() -> None:
    headway = Headway(0.0)
    headway.still_seconds(view(7, live=1), 10.0)
    assert headway.still_seconds(view(7, live=1), 60.0) == 50.0


def test_a_copy_that_fails_and_begins_again_makes_no_headway() -> None:
    headway = Headway(0.0)
    headway.still_seconds(view(7, copied=300), 10.0)
    assert headway.still_seconds(view(7), 20.0) == 10.0
    assert headway.still_seconds(view(7, copied=100), 30.0) == 20.0
    assert headway.still_seconds(view(7, copied=300), 40.0) == 30.0
    assert headway.still_seconds(view(7, copied=301), 50.0) == 0.0


@pytest.mark.parametrize("word", ["plain", "two words", "it's", 'it\'s $HOME `x` "y" \\ !', "", "Zürich; rm"])
def test_a_shell_reads_a_word_as_it_was_meant(word: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"printf %s {quoted(word)}"], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == word


@pytest.mark.parametrize("targets", [1, 2, 4])
@pytest.mark.parametrize("folder", ["plain", "it's a folder"])
def test_every_line_that_a_demo_invites_to_is_a_command_with_whole_paths(
    targets: int, folder: str, tmp_path: Path
) -> None:
    file = tmp_path / folder / "calque.toml"
    names = configuration.names(targets)
    lines = [suggestion.line for suggestion in suggestions(file, SOURCE, names)]
    assert len(set(lines)) == len(lines)
    for line in lines:
        words = shlex.split(line)
        assert "\n" not in line
        assert Path(words[0]).is_absolute()
        assert Path(words[-1]).parent == file.parent
        if "sql" in words:
            APP.language().parse(words[-3])


def test_the_configurations_of_a_stay_are_valid(tmp_path: Path) -> None:
    (tmp_path / configuration.TOKEN_FILE).write_text("secret")
    more = configuration.of_a_stay(DR, "127.0.0.1:9092")
    configuration.write(tmp_path / "calque.toml", SOURCE, {"mirror": MIRROR, "dr": DR}, more=more)
    (tmp_path / configuration.LOADS_FILE).write_text(configuration.of_loads(SOURCE, DR))
    assert list(APP.load(tmp_path / "calque.toml").targets) == ["mirror", "dr"]
    assert list(APP.load(tmp_path / configuration.LOADS_FILE).targets) == ["loaded"]


def test_a_literal_holds_any_text() -> None:
    assert literal("/tmp/it's") == "'/tmp/it''s'"
