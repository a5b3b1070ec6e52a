"""Every store of scans behaves like this, in memory and as a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.delta.scans import DeltaScans
from calque.model.files import File, Listing
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.model.scan import Memory, Scan, ScannedDirectory
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from calque.ports import Scans

Open = Callable[[], Scans]
T, U = TableName("sales", "t"), TableName("sales", "ü")


@pytest.fixture(params=["memory", "delta"])
def open_scans(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call gives another holder of one store."""
    if request.param == "memory":
        scans = MemoryScans()
        return lambda: scans
    return lambda: DeltaScans(str(tmp_path / "scans"))


@pytest.fixture
def scans(open_scans: Open) -> Scans:
    return open_scans()


def listing(location: str, *paths: str) -> Listing:
    return Listing(location, tuple(File(path, 10, 1_700_000_000_123_456_789) for path in paths))


def plain(event_id: int, name: TableName, *paths: str) -> Scan:
    return Scan(event_id, 1_700_000_000, name, TableShape.PLAIN, {"": listing(f"file:///{name.table}", *paths)})


def test_an_empty_store_has_nothing(scans: Scans) -> None:
    assert (scans.last(), scans.entries(0), scans.listings([1]), scans.forget(5)) == (0, [], {}, 0)
    assert scans.remembered() == Memory()
    assert scans.append([]) == 0


def test_scans_are_numbered_and_come_back_as_entries_with_their_listings(open_scans: Open) -> None:
    first, second = open_scans(), open_scans()
    gone = Listing("file:///p/b", (), missing=True)
    parted = Scan(7, 1_700_000_001, U, TableShape.PARTITIONED, {"p=b": gone, "p=a": listing("file:///p/a", "x")})
    assert first.append([plain(5, T, "f"), parted]) == 2
    assert second.append([plain(7, T)]) == 3
    assert first.last() == 3
    keys = Keys(
        EventKind.SCAN,
        U,
        shape=TableShape.PARTITIONED,
        partitions=("p=a", "p=b"),
        locations=("file:///p/a", "file:///p/b"),
    )
    assert first.entries(1) == [
        Entry(7, 1_700_000_001, "SCAN", keys, (2, 2)),
        Entry(
            7, 1_700_000_000, "SCAN", Keys(EventKind.SCAN, T, shape=TableShape.PLAIN, locations=("file:///t",)), (3,)
        ),
    ]
    assert [entry.order for entry in first.entries(0)] == [(5, 1), (7, 2), (7, 3)]
    assert second.listings([1, 2, 9]) == {
        (1, "file:///t"): replace(listing("file:///t", "f"), scan=1),
        (2, "file:///p/a"): replace(listing("file:///p/a", "x"), scan=2),
        (2, "file:///p/b"): replace(gone, scan=2),
    }


def test_what_is_forgotten_is_gone_and_numbers_go_on(open_scans: Open) -> None:
    scans = open_scans()
    scans.append([plain(5, T), plain(5, U), plain(6, T)])
    assert scans.forget(2) == 2
    assert [entry.scans for entry in open_scans().entries(0)] == [(3,)]
    assert scans.listings([1, 2]) == {}
    assert (scans.forget(3), scans.last(), scans.append([plain(9, T)])) == (1, 3, 4)


def test_writers_in_several_threads_get_numbers_of_their_own(open_scans: Open) -> None:
    def write(scans: Scans) -> None:
        for number in range(20):
            scans.append([plain(number, T), plain(number, U)])

    threads = [threading.Thread(target=write, args=(open_scans(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [entry.scans[0] for entry in open_scans().entries(0)] == list(range(1, 81))


def test_many_small_appends_are_all_read(open_scans: Open) -> None:
    writer, reader = open_scans(), open_scans()
    for number in range(1, 121):
        writer.append([plain(number, T, f"f{number}")])
    assert [entry.event_id for entry in reader.entries(60)] == list(range(61, 121))
    assert reader.listings([77])[77, "file:///t"].files[0].path == "f77"


def test_what_is_remembered_comes_back_in_place_of_what_was_before(open_scans: Open) -> None:
    scans = open_scans()
    scans.remember(Memory(3, {(T, ""): ScannedDirectory("file:///old", "0")}))
    memory = Memory(
        9,
        {
            (T, ""): ScannedDirectory("file:///t", "ab", ("", "d/e", "_delta_log"), (1, 0, -1)),
            (U, "p=a%2Fb"): ScannedDirectory("x", ""),
        },
        7,
    )
    scans.remember(memory)
    assert open_scans().remembered() == memory


def test_a_memory_that_is_damaged_is_an_empty_one(tmp_path: Path) -> None:
    scans = DeltaScans(str(tmp_path))
    scans.remember(Memory(3, {(T, ""): ScannedDirectory("file:///t", "0")}))
    (tmp_path / "memory.parquet").write_bytes(b"no parquet")
    assert scans.remembered() == Memory()
