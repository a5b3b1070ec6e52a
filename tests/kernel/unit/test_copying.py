"""What surrounds copies (a bandwidth, further attempts, a time limit), and what can go wrong with one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files import CopyTerms, FileStorage, FileSystemSet
from calque.adapters.files.bucket import BURST_SECONDS, Bucket
from calque.adapters.files.copy import WHOLE
from calque.adapters.files.local import ANYBODY, LocalSystem
from calque.adapters.files.many import FILES_APART, Pace
from calque.adapters.files.processes import CopyProcess, started
from calque.adapters.files.shares import BandwidthShares
from calque.adapters.files.slots import CopySlots
from calque.adapters.files.system import FileFacts, System
from calque.core.formats.layout import COPYING, place
from calque.errors import Refused, Unavailable
from calque.model.files import CopyProof
from calque.ports import CopiedFile, CopyTask

QUICK = CopyTerms(pause=0.001, longest_pause=0.002)
SMALL, BIG = b"content of it", b"content of it" * 100_000


class Local(LocalSystem):
    """A local file system without clones, with something that happens around a call."""

    def __init__(self) -> None:
        super().__init__()
        self.before_reading: Callable[[str], None] = lambda _: None
        self.after_reading: Callable[[str], None] = lambda _: None
        self.written: Callable[[bytes], bytes] = lambda content: content
        self.reads: list[str] = []

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        self.reads.append(path)
        self.before_reading(path)
        yield from super().chunks(path, size)
        self.after_reading(path)

    def read_whole(self, path: str, size: int) -> tuple[FileFacts, bytes, bool]:
        self.reads.append(path)
        self.before_reading(path)
        found = super().read_whole(path, size)
        self.after_reading(path)
        return found

    def clone(self, path: str, source: LocalSystem, source_path: str, mode: int) -> bool:  # noqa: ARG002
        return False

    def create(self, path: str, chunks: Iterable[memoryview], mode: int = ANYBODY) -> None:
        super().create(path, [memoryview(self.written(b"".join(bytes(chunk) for chunk in chunks)))], mode)

    def write_whole(
        self, path: str, content: bytes, modified_ns: int, mode: int = ANYBODY, *, back: bool = True
    ) -> bool:
        written = self.written(content)
        is_stored = super().write_whole(path, written, modified_ns, mode, back=back)
        return is_stored and (written == content or not back)


class Only(FileSystemSet):
    def __init__(self, system: System) -> None:
        super().__init__()
        self.system = system

    def at(self, location: str) -> tuple[System, str]:
        return self.system, place(location).path


def storage(system: System, terms: CopyTerms = QUICK) -> FileStorage:
    return FileStorage(Only(system), terms=terms)


def described(source: Path, target: Path, content: bytes | None = None) -> CopyTask:
    if content is not None:
        source.write_bytes(content)
    found = source.stat()
    return CopyTask(str(source), str(target), found.st_size, found.st_mtime_ns)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


both = pytest.mark.parametrize("content", [SMALL, BIG], ids=["small", "big"])


def test_the_two_sizes_take_the_two_ways() -> None:
    assert len(SMALL) <= WHOLE < len(BIG)


# Bandwidth


class Time:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("piece", [1, 1_000, 64_000, 5_000_000])
def test_a_bucket_lets_through_what_its_rate_allows_and_no_more(piece: int) -> None:
    clock = Time()
    bucket = Bucket(1e6, clock)
    clock.now += 3600
    begin, pieces = clock.now, 200
    for _ in range(pieces):
        clock.now += bucket.take(piece)
    assert clock.now - begin == pytest.approx(max(0, pieces * piece / 1e6 - BURST_SECONDS))


def test_who_takes_little_waits_for_no_more_than_what_was_asked_for_before() -> None:
    clock = Time()
    bucket = Bucket(100.0, clock)
    waits = [bucket.take(100), bucket.take(1), bucket.take(100)]
    assert waits == pytest.approx([1.0, 1.01, 2.01])


def test_a_copy_keeps_to_its_bandwidth(tmp_path: Path) -> None:
    source = tmp_path / "s"
    tasks = [described(source, tmp_path / "t" / str(number), bytes(100_000)) for number in range(1)]
    tasks += [replace(tasks[0], target=str(tmp_path / "t" / str(number))) for number in range(1, 6)]
    files = FileStorage(terms=CopyTerms(bandwidth=1e6))
    begin = time.monotonic()
    files.copy(tasks)
    assert time.monotonic() - begin >= 0.6 - BURST_SECONDS
    assert len(names(tmp_path / "t")) == 6


def test_waiting_for_bandwidth_is_no_hanging(tmp_path: Path) -> None:
    task = described(tmp_path / "s", tmp_path / "t", bytes(100_000))
    files = FileStorage(terms=CopyTerms(bandwidth=2e5, patience=0.1, slowest=1e9, attempts=1))
    assert files.copy([task])[0].bytes_moved == 100_000


def test_bins_of_a_copy_share_the_bandwidth_with_what_is_copied_here() -> None:
    bucket = Bucket(1000.0)
    shares = BandwidthShares(1000.0, bucket)
    with shares.one(12, 4) as first, shares.one(12, 4) as second, shares.one(12, 4), shares.one(12, 4):
        assert first == second == pytest.approx(225)
        assert bucket.rate == pytest.approx(100)
    assert bucket.rate == 1000
    with shares.one(1, 4) as alone:
        assert alone == pytest.approx(900)
        with shares.one(3, 4) as late:
            assert late == pytest.approx(30)


# Parallel copies


class Counting:
    """Counts the reads that are under way, each of which lasts until `wanted` were, and a moment longer. `most` were
    under way at a time."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.running, self.most = wanted, 0, 0
        self.changed = threading.Condition()

    def begin(self, _: str) -> None:
        with self.changed:
            self.running += 1
            self.most = max(self.most, self.running)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= self.wanted, timeout=10)
            self.changed.wait_for(lambda: self.most > self.wanted, timeout=0.02)

    def end(self, _: str) -> None:
        with self.changed:
            self.running -= 1


@pytest.mark.parametrize(("parallel", "most"), [(0, 8), (1, 1), (3, 3), (20, 8)])
def test_so_many_files_are_copied_at_a_time_whoever_asks_for_them(tmp_path: Path, parallel: int, most: int) -> None:
    counting, system = Counting(most), Local()
    system.before_reading, system.after_reading = counting.begin, counting.end
    files = FileStorage(Only(system), Pace(threads=4, files=1), replace(QUICK, parallel=parallel))
    lists = [
        [described(tmp_path / f"{half}{number}", tmp_path / "t" / f"{half}{number}", SMALL) for number in range(6)]
        for half in "ab"
    ]
    with ThreadPoolExecutor(2) as pool:
        copied = [one for done in pool.map(files.copy, lists) for one in done]
    assert [one.problem for one in copied] == [""] * 12
    assert counting.most == most


def test_slots_are_given_in_turn_and_all_there_are_at_most() -> None:
    slots, order = CopySlots(2), []
    asked = threading.Event()

    def take(count: int) -> None:
        with slots.taken(count, lambda: bool(asked.set())) as free:
            order.append((count, free))

    with slots.taken(1, lambda: False) as free:
        assert free
        waiting = threading.Thread(target=take, args=(5,))
        waiting.start()
        assert asked.wait(10)
        late = threading.Thread(target=take, args=(1,))
        late.start()
        assert order == []
    waiting.join(10)
    late.join(10)
    assert order == [(5, True), (1, True)]


def test_who_has_no_use_for_a_slot_any_more_gets_none() -> None:
    slots = CopySlots(1)
    with slots.taken(1, lambda: False), slots.taken(1, lambda: True) as free:
        assert not free
    with slots.taken(1, lambda: True) as free:
        assert free


# Further attempts


class Failing:
    """Raises an error so many times."""

    def __init__(self, times: int, error: OSError, hidden: bool = False) -> None:
        self.left, self.error, self.hidden = times, error, hidden

    def __call__(self, path: str) -> None:
        if (COPYING in path) == self.hidden and self.left:
            self.left -= 1
            raise self.error


@both
def test_what_is_unavailable_for_a_moment_is_tried_again(tmp_path: Path, content: bytes) -> None:
    system = Local()
    system.before_reading = Failing(3, ConnectionResetError(errno.ECONNRESET, "reset"))
    task = described(tmp_path / "s", tmp_path / "t" / "f", content)
    assert storage(system).copy([task])[0].bytes_moved == len(content)
    assert names(tmp_path / "t") == ["f"]


def test_what_stays_unavailable_ends_the_copy_and_keeps_what_was_copied(tmp_path: Path) -> None:
    system = Local()
    tasks = [described(tmp_path / name, tmp_path / "t" / name, BIG) for name in "abc"]

    def unreachable(path: str) -> None:
        if path == tasks[1].source:
            raise ConnectionResetError(errno.ECONNRESET, "reset")

    system.before_reading = unreachable
    with pytest.raises(Unavailable, match=tasks[1].source):
        FileStorage(Only(system), terms=QUICK).copy(tasks)
    assert system.reads.count(tasks[1].source) == QUICK.attempts
    assert set(names(tmp_path / "t")) <= {"a", "c"}
    assert "a" in names(tmp_path / "t")


def test_a_target_that_is_not_read_back_is_tried_again(tmp_path: Path) -> None:
    system = Local()
    system.before_reading = Failing(1, OSError(errno.EIO, "bad sector"), hidden=True)
    task = described(tmp_path / "s", tmp_path / "t" / "f", BIG)
    assert storage(system).copy([task])[0].problem == ""
    assert names(tmp_path / "t") == ["f"]


def test_a_target_that_is_never_read_back_ends_the_copy_and_leaves_nothing(tmp_path: Path) -> None:
    system = Local()
    system.before_reading = Failing(99, OSError(errno.EIO, "bad sector"), hidden=True)
    task = described(tmp_path / "s", tmp_path / "t" / "f", BIG)
    with pytest.raises(Unavailable, match="bad sector"):
        storage(system).copy([task])
    assert names(tmp_path / "t") == []


# A time limit


def test_a_larger_file_may_take_longer() -> None:
    terms = CopyTerms(patience=10, slowest=1000)
    assert [terms.limit(size) for size in (0, 5000)] == [10, 15]


def test_a_copy_that_hangs_is_named_and_never_comes_to_its_end(tmp_path: Path) -> None:
    system, hanging, go_on = Local(), threading.Event(), threading.Event()

    def hang(path: str) -> None:
        if COPYING not in path:
            hanging.set()
            go_on.wait(60)

    system.after_reading = hang
    task = described(tmp_path / "s", tmp_path / "t" / "f", BIG)
    others = {thread.ident for thread in threading.enumerate()}
    with pytest.raises(Unavailable, match=f"{task.source} can't be copied .* take longer"):
        storage(system, CopyTerms(patience=0.1, slowest=1e9)).copy([task])
    assert hanging.is_set()
    [left] = [thread for thread in threading.enumerate() if thread.ident not in others]
    go_on.set()
    left.join(30)
    assert not left.is_alive()
    assert names(tmp_path / "t") == []


# Never twice


@both
def test_what_calque_copied_there_is_known_by_its_time_and_not_read_again(tmp_path: Path, content: bytes) -> None:
    system = Local()
    task = replace(described(tmp_path / "s", tmp_path / "t" / "f", content), ours=True)
    assert storage(system).copy([task])[0].checksum
    system.reads.clear()
    (tmp_path / "s").unlink()
    assert storage(system).copy([task]) == [CopiedFile(task)]
    assert system.reads == []


@both
def test_a_file_of_another_time_is_compared(tmp_path: Path, content: bytes) -> None:
    task = replace(described(tmp_path / "s", tmp_path / "t", content), ours=True)
    (tmp_path / "t").write_bytes(content)
    first = FileStorage().copy([task])[0]
    assert (first.problem, first.bytes_moved) == ("", 0)
    assert first.checksum
    assert FileStorage().copy([task]) == [CopiedFile(task)]
    (tmp_path / "t").write_bytes(content.replace(b"c", b"C"))
    assert "other content" in FileStorage().copy([task])[0].problem


# Faults


@both
@pytest.mark.parametrize(
    "written",
    [lambda content: content[:-1], lambda content: bytes([content[0] ^ 1]) + content[1:], lambda _: b""],
    ids=["truncated", "one bit", "empty"],
)
def test_a_faulty_copy_is_a_problem_and_gets_no_name(
    tmp_path: Path, content: bytes, written: Callable[[bytes], bytes]
) -> None:
    system = Local()
    system.written = written
    task = described(tmp_path / "s", tmp_path / "t" / "f", content)
    [copied] = storage(system).copy([task])
    assert "isn't read back as it was written" in copied.problem
    assert names(tmp_path / "t") == []


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def rewritten(path: Path) -> None:
    """Another file of the same size and time."""
    found = path.stat()
    other = path.with_name("other")
    other.write_bytes(bytes(found.st_size))
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.rename(path)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@both
@pytest.mark.parametrize("moment", ["before_reading", "after_reading"])
@pytest.mark.parametrize("change", [appended, Path.unlink, a_directory, rewritten, lambda path: os.truncate(path, 5)])
def test_a_source_that_changes_around_its_reading_is_a_problem(
    tmp_path: Path, content: bytes, moment: str, change: Callable[[Path], None]
) -> None:
    system, source = Local(), tmp_path / "s"
    waiting = [source]

    def once(path: str) -> None:
        if COPYING not in path and waiting:
            change(waiting.pop())

    setattr(system, moment, once)
    tasks = [described(source, tmp_path / "t" / "f", content), described(tmp_path / "s2", tmp_path / "t" / "g", SMALL)]
    copied = storage(system).copy(tasks)
    if change is rewritten and moment == "before_reading" and content is SMALL:
        # It was opened once, and as listed: this is the file of that size and time.
        assert (copied[0].problem, (tmp_path / "t" / "f").read_bytes()) == ("", bytes(len(content)))
        return
    assert str(source) in copied[0].problem
    assert copied[1].problem == ""
    assert names(tmp_path / "t") == ["g"]


# Proofs


@both
@pytest.mark.parametrize("proof", ["auto", "read", "storage"])
def test_a_copy_is_read_back_unless_the_storage_is_trusted(tmp_path: Path, content: bytes, proof: CopyProof) -> None:
    system = Local()
    system.written = lambda content: b"X" + content[1:]
    task = described(tmp_path / "s", tmp_path / "t" / "f", content)
    [copied] = storage(system, replace(QUICK, proof=proof)).copy([task])
    assert bool(copied.problem) == (proof != "storage")
    assert names(tmp_path / "t") == ["f"] * (proof == "storage")


def test_a_storage_that_is_trusted_has_to_say_the_right_size(tmp_path: Path) -> None:
    system = Local()
    system.written = lambda content: content[1:]
    task = described(tmp_path / "s", tmp_path / "t" / "f", BIG)
    [copied] = storage(system, replace(QUICK, proof="storage")).copy([task])
    assert "has not the size" in copied.problem
    assert names(tmp_path / "t") == []


def test_a_clone_is_a_file_of_its_own_or_none(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_bytes(BIG)
    assert not LocalSystem().clone(str(target), LocalSystem(), str(tmp_path / "gone"), ANYBODY)
    if LocalSystem().clone(str(target), LocalSystem(), str(source), ANYBODY):
        assert target.read_bytes() == BIG
        assert target.stat().st_nlink == 1
        source.write_bytes(b"")
        assert target.read_bytes() == BIG
    else:
        assert names(tmp_path) == ["s"]


# Processes


@pytest.fixture
def process() -> Iterator[tuple[CopyProcess, subprocess.Popen[bytes]]]:
    running = started()
    process = CopyProcess(running)
    process.begin(FileSystemSet(), QUICK)
    while not process.has_begun(10):
        pass
    yield process, running
    process.end()


def many(folder: Path, count: int) -> list[CopyTask]:
    (folder / "s").mkdir()
    return [
        described(folder / "s" / f"{number:04}", folder / "t" / f"{number:04}", str(number).encode())
        for number in range(count)
    ]


def test_a_process_copies_as_threads_do(tmp_path: Path, process: tuple[CopyProcess, subprocess.Popen[bytes]]) -> None:
    tasks = [*many(tmp_path, 3), CopyTask(str(tmp_path / "gone"), str(tmp_path / "t" / "gone"), 1, 1)]
    copies = list(process[0].copied(tasks))
    assert [copied.task for copied in copies] == tasks
    assert [copied.checksum for copied in copies[:3]] == [copied.checksum for copied in FileStorage().copy(tasks[:3])]
    assert "is not there any more" in copies[3].problem
    with pytest.raises(Refused, match="nosuch"):
        list(process[0].copied([replace(tasks[0], source="nosuch://a/b")]))
    assert len(list(process[0].copied(tasks))) == 4


def test_a_process_that_is_lost_copies_nothing_more(
    tmp_path: Path, process: tuple[CopyProcess, subprocess.Popen[bytes]]
) -> None:
    process[1].kill()
    assert list(process[0].copied(many(tmp_path, 3))) == []
    assert process[0].lost


def test_a_process_ends_with_the_one_that_started_it(process: tuple[CopyProcess, subprocess.Popen[bytes]]) -> None:
    assert process[1].stdin is not None
    process[1].stdin.close()
    assert process[1].wait(10) == 0


@pytest.mark.parametrize("python", [sys.executable, "/bin/false", "/nosuch"])
def test_many_files_are_copied_with_processes_and_without(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    tasks = many(tmp_path, 3 * FILES_APART)
    copies = FileStorage(local=Pace(threads=2, files=32, apart=1)).copy(tasks)
    assert [copied.task for copied in copies] == tasks
    assert all(copied.checksum for copied in copies)
    assert names(tmp_path / "t") == [f"{number:04}" for number in range(len(tasks))]
