"""What copies report of how far they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from calque.commands.status import copying as shown
from calque.control.status_records import copying_of
from calque.engine.sides.copy_progress import CopyProgress, Progress
from calque.ports import CopiedFile, CopyTask

SECOND = 1_000_000_000
MB = 1_000_000


class Time:
    def __init__(self) -> None:
        self.now = 100 * SECOND

    def __call__(self) -> int:
        return self.now


def tasks(count: int, size: int = 100 * MB) -> list[CopyTask]:
    return [CopyTask(f"/s/{number}", f"/t/{number}", size, 1) for number in range(count)]


def moved(task: CopyTask) -> CopiedFile:
    return CopiedFile(task, "sum", bytes_moved=task.size)


def test_nothing_is_shown_while_nothing_is_copied() -> None:
    copying = CopyProgress(Time())
    assert copying.look() is None
    with copying.of(tasks(1)):
        assert copying.look() == Progress(100 * SECOND, 100 * SECOND, files=1, bytes=100 * MB)
    assert copying.look() is None


def test_the_end_is_as_far_as_what_is_left_takes_at_the_same_speed() -> None:
    time = Time()
    copying, wanted = CopyProgress(time), tasks(4)
    with copying.of(wanted) as report:
        report(moved(wanted[0]))
        time.now += 10 * SECOND
        found = copying.look()
    assert found == Progress(100 * SECOND, 110 * SECOND, 4, 400 * MB, 1, 100 * MB)
    assert found.ends_ns == 140 * SECOND


def test_what_was_there_already_promises_no_speed() -> None:
    time = Time()
    copying, wanted = CopyProgress(time), tasks(4)
    with copying.of(wanted) as report:
        report(CopiedFile(wanted[0]))
        time.now += SECOND
        before = copying.look()
        report(moved(wanted[1]))
        time.now += SECOND
        after = copying.look()
    assert before is not None
    assert after is not None
    assert (before.files_kept, before.bytes_kept, before.ends_ns) == (1, 100 * MB, None)
    assert after.ends_ns == 106 * SECOND


def test_copies_that_overlap_are_one_that_grows_and_the_next_begins_anew() -> None:
    time = Time()
    copying = CopyProgress(time)
    with copying.of(tasks(2)) as first:
        time.now += SECOND
        with copying.of(tasks(3)) as second:
            first(moved(tasks(1)[0]))
            second(moved(tasks(1)[0]))
            found = copying.look()
            assert found is not None
            assert (found.began_ns, found.files, found.files_done) == (100 * SECOND, 5, 2)
    time.now += SECOND
    with copying.of(tasks(1)):
        assert copying.look() == Progress(102 * SECOND, 102 * SECOND, 1, 100 * MB)


def test_what_was_given_up_is_not_waited_for() -> None:
    copying = CopyProgress(Time())
    with copying.of(tasks(1)):
        with suppress(OSError), copying.of(tasks(5)) as report:
            report(moved(tasks(1)[0]))
            raise OSError("full")
        found = copying.look()
    assert found is not None
    assert (found.files, found.bytes, found.files_done) == (2, 200 * MB, 1)


def test_threads_lose_no_report() -> None:
    copying, wanted = CopyProgress(Time()), tasks(4000, 1)
    with copying.of(wanted) as report:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda task: report(moved(task)), wanted))
        found = copying.look()
    assert found is not None
    assert (found.files_done, found.bytes_done, found.ends_ns) == (4000, 4000, 100 * SECOND)


def test_the_status_tells_how_far_copies_are() -> None:
    record = copying_of(Progress(100 * SECOND, 101 * SECOND, 10, 1000 * MB, 4, 250 * MB))
    assert record == {
        "files": 10,
        "bytes": 1000 * MB,
        "files_done": 4,
        "bytes_done": 250 * MB,
        "ends_at": pytest.approx(104, abs=0.1),
    }
    assert copying_of(None) is None
    assert shown(record).startswith("copying: 4 of 10 files, 250.0 MB of 1.0 GB, done about ")
