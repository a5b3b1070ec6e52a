"""What is installed when: the demo needs no more than `make install` brings, tests bring the rest themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from calque.errors import Refused, Unavailable
from calque.resources import cache_folder
from calque.sandbox import manifest as sandbox
from calque.sandbox.artifacts import CHECKSUMS, Artifact, checksums, fetch, installed, require_known
from calque.sandbox.install import install_as_asked
from support.places import ROOT
from support.services import manifest as services
from support.services.install import CHECKSUMS as OF_SERVICES
from support.services.install import PARTS

REST = "support.services.install tests"
LISTS = {
    CHECKSUMS: (*sandbox.DELTA_JARS, *sandbox.OF_THE_DEMO, *sandbox.OF_TESTS),
    OF_SERVICES: (*services.OF_SERVICES, *services.OF_INTEROP),
}
"""Artifacts by the file that has their checksums."""


def planned(target: str) -> str:
    """The commands that `make` would run."""
    done = subprocess.run(["make", "--dry-run", target], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


@pytest.mark.parametrize("target", ["install", "demo"])
def test_the_demo_fetches_nothing_that_only_tests_need(target: str) -> None:
    assert REST not in planned(target)


@pytest.mark.parametrize("target", ["test", "prove", "bench"])
def test_tests_fetch_what_only_they_need_before_they_begin(target: str) -> None:
    assert 0 < planned(target).find(REST) < planned(target).find("pytest")


def test_an_artifact_of_the_demo_is_not_fetched_a_second_time_for_tests() -> None:
    only_tests = {*sandbox.OF_TESTS, *services.OF_SERVICES} - set(sandbox.OF_THE_DEMO)
    assert services.REGISTRY_DISTRIBUTION in only_tests
    assert only_tests.isdisjoint({sandbox.HIVE_3_DISTRIBUTION, *sandbox.HIVE_3_JARS, *sandbox.DELTA_JARS})


def test_a_missing_artifact_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"{services.REGISTRY_DISTRIBUTION.name}.*make install-tests") as caught:
        installed([services.REGISTRY_DISTRIBUTION], tmp_path)
    assert "make install`" in caught.value.todo


@pytest.mark.parametrize("file", LISTS, ids=["sandbox", "services"])
def test_each_artifact_has_a_checksum_of_ours(file: Path) -> None:
    assert sorted(checksums(file)) == sorted(set(map(str, LISTS[file])))
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in checksums(file).values())


@pytest.mark.parametrize("file", LISTS, ids=["sandbox", "services"])
def test_what_the_cache_has_is_what_the_checksums_say(file: Path) -> None:
    artifacts = [one for one in LISTS[file] if one.path(cache_folder()).exists()]
    for one in artifacts[:: max(1, len(artifacts) // 10)]:
        require_known(file, one, one.path(cache_folder()))


def test_a_file_that_is_another_one_is_refused_in_one_line_and_not_run(tmp_path: Path) -> None:
    jar = sandbox.DELTA_JARS[0]
    jar.path(tmp_path).parent.mkdir(parents=True)
    jar.path(tmp_path).write_bytes(b"PK, of somebody else")
    with pytest.raises(Refused) as caught:
        fetch([jar], tmp_path, print, CHECKSUMS)
    assert str(caught.value).startswith(f"{jar} is not what calque was tried with. Its SHA-256 is ")
    assert "\n" not in str(caught.value)
    unknown = Artifact.parse("org.example:evil:1")
    with pytest.raises(Refused, match=r"checksums\.txt has no line for it"):
        require_known(CHECKSUMS, unknown, jar.path(tmp_path))


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert install_as_asked(["everything"], {"": [], **PARTS}) == 65
    assert (
        capsys.readouterr().err
        == "calque: everything can't be installed. Only tests and interop can. Name one of them.\n"
    )
