"""What a run of the tests tries and in which order: seeds, what was changed, durations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.places import ROOT
from support.runs.changes import changed_files
from support.runs.durations import remembered, seconds_of_files
from support.runs.seeds import history_seeds, seed
from support.runs.selection import PARTS, QUICK, SERVERS, arguments, chosen, left_out, owner, plugins


class Repository:
    """A repository with a file on its default branch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.commit("old")

    def git(self, *words: str) -> None:
        identity = ("-c", "user.name=calque", "-c", "user.email=calque@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(self.root), *identity, *words], check=True, capture_output=True)

    def write(self, name: str, text: str = "") -> None:
        (self.root / name).write_text(text)

    def commit(self, name: str) -> None:
        self.write(name)
        self.git("add", name)
        self.git("commit", "-q", "-m", name)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_branch_has_changed_what_it_committed_what_it_did_not_and_what_is_new(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "branch")
    repository.commit("committed")
    repository.git("checkout", "-q", "main")
    repository.commit("elsewhere")
    repository.git("checkout", "-q", "branch")
    repository.write("old", "changed")
    repository.write("new")
    assert changed_files(repository.root) == {"committed", "old", "new"}


def test_the_default_branch_has_changed_what_its_newest_commit_brought(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "branch")
    repository.commit("first")
    repository.commit("second")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "branch")
    assert changed_files(repository.root) == {"first", "second"}


def test_what_has_nothing_to_compare_with_is_not_known(repository: Repository, tmp_path: Path) -> None:
    assert changed_files(repository.root) is None
    repository.commit("next")
    repository.git("checkout", "-q", "-b", "branch")
    repository.commit("committed")
    shallow = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(shallow))
    assert changed_files(shallow) is None
    assert changed_files(tmp_path.parent) is None


def test_seeds_that_follow_each_other_play_no_history_twice() -> None:
    seven, eight = {"CALQUE_SEED": "7"}, {"CALQUE_SEED": "8", "CALQUE_HISTORIES": "500"}
    assert (seed(seven), history_seeds(40, environment=seven)) == (7, range(7000, 7040))
    assert history_seeds(40, environment=eight) == range(8000, 8500)
    assert history_seeds(40, times=10, environment=eight) == range(8000, 13000)
    assert history_seeds(40, most=300, environment=eight) == range(8000, 8300)


def test_a_function_that_was_tried_again_is_remembered_as_it_was_this_time() -> None:
    before = {"a.py::one[1]": 1.0, "a.py::one[2]": 2.0, "a.py::two": 3.0}
    assert list(remembered(before, {"a.py::one[3]": 9.0}).items()) == [("a.py::one[3]", 9.0), ("a.py::two", 3.0)]


def test_a_file_takes_what_its_tests_took_or_what_is_said_of_it_where_nobody_has_run_it() -> None:
    known = {"a.py::one[1]": 1.0, "a.py::one[2]": 3.0, "a.py::other": 50.0}
    tests = ["a.py::one[7]", "a.py::one[8]", "a.py::one[9]", "a.py::new", "b.py::one", "b.py::two", "c.py::one"]
    assert dict(seconds_of_files(tests, known, {"a.py": 99.0, "b.py": 30.0})) == {
        "a.py": 6.0,
        "b.py": 30.0,
        "c.py": 0.0,
    }


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"docs/limits.md"}, set()),
        ({"lib/calque/plugins/dumps/core/scope.py"}, {"dumps"}),
        ({"tests/plugins/s3/unit/test_s3_small.py"}, {"s3"}),
        ({"lib/calque/plugins/marks/model.py"}, {"marks", "notices"}),
        ({"lib/calque/demo/run.py"}, {"demo"}),
        ({"tests/kernel/integration/test_kerberos.py"}, {"kerberos"}),
    ],
)
def test_a_plugin_is_tested_in_full_where_it_or_a_seam_of_it_changed(changed: set[str], names: set[str]) -> None:
    found = chosen(ROOT, changed)
    assert found >= names
    assert found - names <= {"notices", "clusters"}


@pytest.mark.parametrize("changed", [None, {"pyproject.toml"}, {"tests/support/places.py"}])
def test_everything_is_tested_where_nobody_knows_what_changed_or_all_stand_on_it(changed: set[str] | None) -> None:
    assert chosen(ROOT, changed) == {*plugins(ROOT), *PARTS}


def test_what_is_left_out_is_said_and_not_among_the_arguments() -> None:
    names = {*plugins(ROOT), *PARTS} - {"kafka", "kerberos"}
    given = arguments(ROOT, SERVERS, names)
    assert "tests/plugins/kafka/integration" not in given
    assert "--ignore=tests/kernel/integration/test_kerberos.py" in given
    assert "left out, as nothing of theirs changed: kafka, kerberos." in left_out(ROOT, names).lower()
    assert left_out(ROOT, {*plugins(ROOT), *PARTS}) == ""


KERNEL_SECONDS, OTHER_SECONDS = 2350, 320
"""What the tests of the kernel, and those of one plugin or part, may take of one processor (`tests/durations.json`)."""


def test_nobodys_tests_take_longer_than_their_budget() -> None:
    taken = Counter[str]()
    for test, seconds in json.loads((ROOT / "tests/durations.json").read_text()).items():
        taken[owner(test)] += seconds
    too_long = {name: took for name, took in taken.items() if took > OTHER_SECONDS and name != "kernel"}
    assert too_long == {}, "run by `make test PLUGIN=name`: make them cheaper, or leave variants to `make prove`"
    assert taken["kernel"] <= KERNEL_SECONDS


def test_every_test_of_a_part_is_there() -> None:
    files = [test for tests, _ in PARTS.values() for test in tests]
    assert [file for file in files if not (ROOT / "tests/kernel" / file).is_file()] == []


def test_every_folder_of_tests_is_run_by_some_kind() -> None:
    folders = {file.parent.relative_to(ROOT / "tests").parts for file in (ROOT / "tests").rglob("test_*.py")}
    kinds = {parts[-1] for parts in folders if parts[0] in ("kernel", "plugins") and parts[-1] not in plugins(ROOT)}
    assert kinds == {*QUICK, *SERVERS}


MARKED = """
import pytest
from support.runs.proofs import one_a_day, one_a_day_or_all


@pytest.mark.prove
def test_whole():
    pass


@pytest.mark.parametrize("case", [1, pytest.param(2, marks=pytest.mark.prove)])
def test_of_cases(case):
    pass


@pytest.mark.parametrize("case", one_a_day("abc", 7))
def test_one_of_them(case):
    pass


@pytest.mark.parametrize("row", one_a_day_or_all("abc", 8))
def test_a_row(row):
    assert row in [("c",), ("a", "b", "c")]
"""
PROFILES = """
from hypothesis import settings
from support.runs import proofs

settings.register_profile("prove")


def pytest_configure(config):
    config.addinivalue_line("markers", "prove")
    config.pluginmanager.register(proofs)
"""
TODAY = ["test_a_row[c]", "test_of_cases[1]", "test_one_of_them[b]"]
MARKED_ONES = ["test_a_row[all]", "test_of_cases[2]", *(f"test_one_of_them[{case}]" for case in "abc"), "test_whole"]


def test_a_run_says_how_many_marked_tests_it_left_to_make_prove_which_tries_all(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(PROFILES)
    (tmp_path / "test_marked.py").write_text(MARKED)
    for processes in ("0", "1"):
        assert tried(tmp_path, "-n", processes) == (TODAY, ["5 tests"])
    assert tried(tmp_path, "--hypothesis-profile=prove", "-m", "prove") == (MARKED_ONES, [])


def tried(root: Path, *options: str) -> tuple[list[str], list[str]]:
    """Tests that passed, and what the run says that it left."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--import-mode=importlib", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*command, str(root)], capture_output=True, text=True, cwd=root, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    passed = sorted(line.rpartition("::")[2] for line in lines if line.startswith("PASSED "))
    return passed, [line.partition(": ")[2] for line in lines if line.startswith("Left to `make prove`: ")]
