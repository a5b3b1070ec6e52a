"""Delta's jars for Spark: where they come from, which sessions have them, and what is said without them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import calque
from calque.adapters.spark.delta_jars import delta_folder, delta_jars
from calque.adapters.spark.session import DELTA, of_delta
from calque.errors import Unavailable
from calque.resources import cache_folder
from calque.sandbox import install, manifest, unpacked
from calque.streams import spark_session


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that has the artifacts, and nothing made of them."""
    (tmp_path / "artifacts").symlink_to(cache_folder() / "artifacts")
    monkeypatch.setenv("CALQUE_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sequence[Path]]]:
    """The jars of each session that is asked for. The threads that ask end with the test, before its environment."""
    asked: list[Sequence[Path]] = []

    def session(_name: str, jars: Sequence[Path], _folder: Path, archive: Path) -> None:
        assert archive.parent == cache_folder()
        asked.append(jars)

    monkeypatch.setattr(spark_session, "session", session)
    yield asked
    for thread in threading.enumerate():
        if thread.name == "spark":
            thread.join(60)


def test_jars_are_there_whole_once_they_are_installed(cache: Path) -> None:
    with pytest.raises(Unavailable, match=r"Delta's jars are not installed.*calque\.sandbox\.install delta"):
        calque.delta_jars()
    unpacked.unpack_delta(cache)
    assert sorted(jar.name for jar in calque.delta_jars()) == sorted(
        one.path(cache).name for one in manifest.DELTA_JARS
    )
    (delta_folder(cache) / "delta-of-another-version.jar").touch()
    unpacked.unpack_delta(cache)
    assert len(delta_jars(cache)) == len(manifest.DELTA_JARS)


def test_they_are_installed_without_what_the_sandbox_needs_and_only_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(install, "version", not_installed)
    reports: list[str] = []
    alone = replace(install.DELTA, prepare=lambda _cache, report: report("prepared"))
    for _ in range(2):
        install.install(alone, cache, reports.append)
    assert reports[1:] == ["prepared"]
    assert len(delta_jars(cache)) == len(manifest.DELTA_JARS)


def test_the_session_of_run_has_delta_where_its_jars_are_installed_and_one_line_says_where_they_are_not(
    cache: Path, sessions: list[Sequence[Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    spark_session.begin(tmp_path)
    spark_session.own_session(tmp_path)
    assert not any(sessions)
    [line] = caplog.messages
    assert line.startswith("The Spark session reads no Delta tables")
    assert "`python -m calque.sandbox.install delta`" in line
    unpacked.unpack_delta(cache)
    caplog.clear()
    spark_session.begin(tmp_path)
    spark_session.own_session(tmp_path)
    assert sessions[-1] == delta_jars(cache)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("jar", "settings"),
    [
        ("delta-spark_4.2_2.13-4.4.0.jar", DELTA),
        ("io.delta_delta-spark_4.2_2.13-4.4.0.jar", DELTA),
        ("delta-storage-4.4.0.jar", {}),
    ],
)
def test_a_session_speaks_delta_by_the_jar_of_it_that_it_is_given(jar: str, settings: Mapping[str, str]) -> None:
    assert of_delta([Path(), Path("/jars", jar)]) == settings
