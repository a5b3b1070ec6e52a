"""Every store of marks behaves like this, in memory and as a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.model.names import TableName
from calque.plugins.marks.adapters.delta_marks import DeltaMarks
from calque.plugins.marks.model import Mark, Trail
from calque.plugins.marks.ports import MarkStore
from support.memory.marks import MemoryMarks

Open = Callable[[], MarkStore]
T = TableName("sales", "ü")
SECOND = 10**9
MARKED = 1_700_000_000 * SECOND + 123_456_000


@pytest.fixture(params=["memory", "delta", "delta in an object store"])
def open_marks(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call gives another holder of one store."""
    match request.param:
        case "memory":
            marks = MemoryMarks()
            return lambda: marks
        case "delta":
            return lambda: DeltaMarks(str(tmp_path / "marks"))
    folder, options = request.getfixturevalue("tables")
    return lambda: DeltaMarks(f"{folder}/marks", options)


@pytest.fixture
def marks(open_marks: Open) -> MarkStore:
    return open_marks()


def mark(number: int, event_id: int = 7, partition: Mapping[str, str] | None = None) -> Mark:
    return Mark(number, T, f"r{event_id}", partition or {"ds": "2024-01-01"}, event_id, MARKED, MARKED + SECOND)


def numbers(store: MarkStore, after: int = 0) -> list[int]:
    return [one.number for one in store.after(after)]


def test_an_empty_store_has_nothing(marks: MarkStore) -> None:
    assert (marks.last(), list(marks.after(0)), marks.forget([1]), marks.forget([])) == (0, [], 0, 0)
    marks.follow({1: Trail(((7, T),), 9)}, 1, 9)
    assert marks.last() == 0


def test_marks_come_back_as_they_were_in_order_of_number(open_marks: Open) -> None:
    first, second = open_marks(), open_marks()
    strange = mark(2, 9, {"ds": "a/b=c ü", "region": "__HIVE_DEFAULT_PARTITION__"})
    assert first.add(mark(1))
    assert second.add(strange)
    assert first.last() == 2
    assert list(open_marks().after(0)) == [mark(1), strange]
    assert list(first.after(1)) == [strange]
    assert list(first.after(2)) == []


def test_of_two_marks_of_one_number_the_first_counts(open_marks: Open) -> None:
    first, second = open_marks(), open_marks()
    assert first.add(mark(1, 5))
    assert not second.add(mark(1, 6))
    assert not second.add(mark(3, 6))
    assert list(second.after(0)) == [mark(1, 5)]


def test_what_is_forgotten_is_gone_and_numbers_go_on(open_marks: Open) -> None:
    marks = open_marks()
    assert all(marks.add(mark(number)) for number in (1, 2, 3))
    assert marks.forget([1, 3, 9]) == 2
    assert numbers(open_marks()) == [2]
    assert (marks.forget([1, 2]), marks.last(), numbers(marks)) == (1, 3, [])
    assert not marks.add(mark(3))
    assert marks.add(mark(4))
    assert numbers(open_marks()) == [4]


def test_what_became_of_a_table_is_recorded_and_never_goes_back(open_marks: Open) -> None:
    marks, renamed = open_marks(), TableName("sales", "t2")
    assert all(marks.add(mark(number)) for number in (1, 2))
    moved = Trail(((7, T), (12, renamed)), 20)
    ended = Trail(((7, T),), 30, ended_by=29)
    marks.follow({1: moved, 9: moved}, 2, 20)
    assert [one.trail for one in open_marks().after(0)] == [moved, Trail(((7, T),), 20)]
    open_marks().follow({2: ended}, 2, 30)
    marks.follow({2: Trail(((7, T),), 25)}, 2, 25)
    assert marks.add(mark(3, 31))
    assert [one.trail for one in open_marks().after(0)] == [replace(moved, upto=30), ended, Trail(((31, T),), 31)]
    assert [replace(one, followed=None) for one in marks.after(0)] == [mark(1), mark(2), mark(3, 31)]


def test_writers_in_several_threads_get_numbers_of_their_own(open_marks: Open) -> None:
    def write(marks: MarkStore) -> None:
        for _ in range(15):
            while not marks.add(mark(marks.last() + 1)):
                pass

    threads = [threading.Thread(target=write, args=(open_marks(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert numbers(open_marks()) == list(range(1, 31))


def test_marks_are_forgotten_while_others_are_made(open_marks: Open) -> None:
    assert open_marks().add(mark(1))

    def write() -> None:
        marks = open_marks()
        for number in range(2, 25):
            assert marks.add(mark(number))

    writer = threading.Thread(target=write)
    writer.start()
    marks = open_marks()
    while writer.is_alive():
        marks.forget(numbers(marks)[:1])
    writer.join()
    left = numbers(open_marks())
    assert left == list(range(left[0], 25)) if left else marks.last() == 24
