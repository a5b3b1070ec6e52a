"""Copies that the operating system itself lets fail: a full disk, a limit, missing rights, impossible names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from calque.adapters.files import FileStorage
from calque.ports import CopyTask
from support.services.mounts import can_mount, with_disk

NOBODY = 65534
COPY = """
import json, sys
from calque.adapters.files import FileStorage, CopyTerms
from calque.errors import CalqueError
from calque.ports import CopyTask
results = []
for one in json.loads(sys.argv[1]):
    try:
        [copied] = FileStorage(terms=CopyTerms(attempts=2, pause=0.001)).copy([CopyTask(*one)])
        results.append(copied.problem)
    except CalqueError as error:
        results.append(f"{type(error).__name__}: {error}")
"""
SAY = "print(json.dumps(results))"


def task(source: Path, target: Path) -> CopyTask:
    found = source.stat()
    return CopyTask(str(source), str(target), found.st_size, found.st_mtime_ns)


def words(*tasks: CopyTask) -> str:
    return json.dumps([(each.source, each.target, each.size, each.modified_ns) for each in tasks])


def written(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("size", [200_000, 3_000_000], ids=["in one piece", "in chunks"])
def test_a_full_disk_is_unavailable_and_keeps_nothing_of_what_did_not_fit(tmp_path: Path, size: int) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here, so none can be full")
    disk = tmp_path / "disk"
    disk.mkdir()
    fits, too_much = written(tmp_path / "s" / "fits", 90_000), written(tmp_path / "s" / "too much", size)
    tasks = words(task(fits, disk / "t" / "a"), task(too_much, disk / "t" / "b"), task(fits, disk / "t" / "c"))
    program = (
        COPY
        + """
import os
try:
    FileStorage().write(f"{sys.argv[2]}/written", bytes(300_000))
except CalqueError as error:
    results.append(str(error))
print(json.dumps([results, sorted(os.listdir(sys.argv[2]))]))
"""
    )
    done = subprocess.run(
        [*with_disk(str(disk), "256k"), sys.executable, "-c", program, tasks, f"{disk}/t"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    results, there = json.loads(done.stdout)
    assert (results[0], results[2], there) == ("", "", ["a", "c"])
    assert results[1].startswith(f"Unavailable: No room to write {disk / 't' / 'b'}.")
    assert results[3].startswith(f"No room to write {disk / 't' / 'written'}.")


def test_a_limit_on_the_size_of_files_is_a_lack_of_room(tmp_path: Path) -> None:
    large, small = written(tmp_path / "s" / "large", 900_000), written(tmp_path / "s" / "small", 1000)
    tasks = words(task(large, tmp_path / "t" / "large"), task(small, tmp_path / "t" / "small"))
    program = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n{COPY}\n{SAY}"
    done = subprocess.run(
        [sys.executable, "-c", program, tasks], capture_output=True, text=True, check=True, timeout=60
    )
    first, second = json.loads(done.stdout)
    assert first.startswith("Unavailable: No room to write")
    assert (second, names(tmp_path / "t")) == ("", ["small"])


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that every user reaches."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


UNPRIVILEGED = """
import json, os, sys
from calque.adapters.files import FileStorage
from calque.ports import CopyTask
FileStorage().copy([CopyTask(*json.loads(sys.argv[2]))])  # Modules that are loaded late may not be readable later.
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
"""


def copied_unprivileged(tasks: Sequence[CopyTask], first: CopyTask) -> list[str]:
    """Problems, or errors, of each as a user without rights meets them, in a process that copied `first` before."""
    program = [sys.executable, "-c", f"{UNPRIVILEGED}\n{COPY}\n{SAY}"]
    arguments = [words(*tasks), json.dumps(json.loads(words(first))[0]), str(NOBODY)]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=True, timeout=60)
    answers: list[str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_missing_rights_at_the_source_are_a_file_s_problem_and_at_the_target_refused(
    open_path: Path, size: int
) -> None:
    secret, public = written(open_path / "s" / "secret", size), written(open_path / "s" / "public", size)
    secret.chmod(0)
    mine, theirs = open_path / "mine", open_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    mine.chmod(0o777)
    theirs.chmod(0o555)
    tasks = [
        task(secret, mine / "secret"),
        task(public, mine / "public"),
        task(public, theirs / "public"),
        task(public, theirs / "below" / "public"),
    ]
    first, second, third, fourth = copied_unprivileged(tasks, task(public, open_path / "first"))
    assert first.startswith(f"{secret} can't be read: PermissionError")
    assert second == ""
    assert third.startswith(f"Refused: Not permitted to write {theirs / 'public'}.")
    assert fourth.startswith(f"Refused: Not permitted to write {theirs / 'below' / 'public'}.")
    assert (names(mine), names(theirs)) == (["public"], [])


def test_what_can_not_be_a_file_is_that_file_s_problem_and_the_rest_is_copied(tmp_path: Path) -> None:
    source = written(tmp_path / "s" / "f", 1000)
    (tmp_path / "t" / "directory").mkdir(parents=True)
    (tmp_path / "t" / "file").write_bytes(b"")
    at = [tmp_path / "t" / name for name in ("n" * 256, "directory", "file/below", "good")]
    problems = [copied.problem for copied in FileStorage().copy([task(source, target) for target in at])]
    assert [bool(problem) for problem in problems] == [True, True, True, False]
    assert "File name too long" in problems[0]
    assert names(tmp_path / "t") == ["directory", "file", "good"]
    assert names(tmp_path / "t" / "directory") == []


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_a_pipe_in_the_place_of_a_file_is_a_problem(tmp_path: Path, size: int) -> None:
    was = task(written(tmp_path / "s", size), tmp_path / "t" / "f")
    (tmp_path / "s").unlink()
    os.mkfifo(tmp_path / "s")
    assert was.source in FileStorage().copy([was])[0].problem


def test_a_copy_goes_on_where_a_killed_one_was(tmp_path: Path) -> None:
    sources = [written(tmp_path / "s" / str(number), 300_000) for number in range(40)]
    tasks = [task(source, tmp_path / "t" / source.name) for source in sources]
    program = """
import json, os, sys
from calque.adapters.files import FileStorage
from calque.ports import CopyTask
def die(copied, seen=[]):
    seen.append(copied)
    if len(seen) == 10:
        os.kill(os.getpid(), 9)
FileStorage().copy([CopyTask(*one) for one in json.loads(sys.argv[1])], die)
"""
    died = subprocess.run([sys.executable, "-c", program, words(*tasks)], check=False, timeout=60)
    assert died.returncode == -9
    assert len([name for name in names(tmp_path / "t") if not name.startswith(".")]) >= 10
    results = FileStorage().copy([CopyTask(one.source, one.target, one.size, one.modified_ns, True) for one in tasks])
    assert [result.problem for result in results] == [""] * 40
    assert sum(result.bytes_moved == 0 for result in results) >= 10
    assert [(tmp_path / "t" / path.name).read_bytes() for path in sources] == [path.read_bytes() for path in sources]
