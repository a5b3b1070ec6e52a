"""`Storage.entries`: names with sizes and times. Entries of the journal from Arrow rows."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest

from calque.adapters.files import FileStorage
from calque.core.events.rows import ENTRY_COLUMNS, entries_of, table_of
from calque.model.journal import Entry, Event, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.ports import Storage, StorageEntry
from support.memory.storage import MemoryStorage

SECOND = 1_000_000_000


@pytest.fixture(params=["memory", "local", "objects"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    """A storage, and a directory in it with the files f, .g and d/e."""
    names = {"f": b"1", ".g": b"22", "d/e": b"333"}
    if request.param == "memory":
        memory = MemoryStorage()
        for name, content in names.items():
            memory.write(f"file:/w/{name}", content)
        return memory, "file:/w"
    if request.param == "local":
        (tmp_path / "d").mkdir()
        for name, content in names.items():
            (tmp_path / name).write_bytes(content)
        return FileStorage(), f"file:{tmp_path}"
    bucket = uuid4().hex
    for name, content in names.items():
        fsspec.filesystem("memory").pipe_file(f"/{bucket}/{name}", content)
    return FileStorage(), f"memory://{bucket}"


def test_entries_are_what_lies_directly_below_hidden_ones_too(world: tuple[Storage, str]) -> None:
    storage, root = world
    found = storage.entries(root)
    assert [(entry.name, entry.size, entry.directory) for entry in found] == [
        (".g", 2, False),
        ("d", 0, True),
        ("f", 1, False),
    ]
    assert all(entry.modified_ns > 1_600_000_000 * SECOND for entry in found if not entry.directory)
    assert list(storage.entries(f"{root}/none")) == []


def test_a_directory_is_as_young_as_the_last_change_in_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").touch()
    os.utime(tmp_path / "d", ns=(SECOND, SECOND))
    storage = FileStorage()
    assert storage.entries(str(tmp_path)) == [StorageEntry("d", 0, SECOND, directory=True)]
    storage.remove([f"{tmp_path}/d/f"])
    [changed] = storage.entries(str(tmp_path))
    assert changed.modified_ns > SECOND


def test_a_directory_in_memory_is_as_young_as_the_last_change_in_it() -> None:
    now = SECOND
    storage = MemoryStorage(lambda: now)
    storage.write("/w/d/f", b"")
    for change in (
        lambda: storage.make_directories(["/w/d/e"]),
        lambda: storage.write("/w/d/g", b""),
        lambda: storage.publish([("/w/d/g", "/w/d/h")]),
        lambda: storage.remove(["/w/d/h"]),
        lambda: storage.delete("/w/d/f"),
    ):
        now += SECOND
        change()
        assert storage.entries("/w") == [StorageEntry("d", 0, now, directory=True)]


EVERYTHING = Keys(
    EventKind.RENAME_PARTITION,
    TableName("d", "t"),
    TableName("d", "old"),
    TableShape.PARTITIONED,
    ("p=1", "p=2"),
    ("p=0",),
    ("file:/t/p=1", ""),
    replaces=True,
    columns_changed=True,
    facets_only=True,
    transactional=True,
    defect="torn",
)
"""Every field with a value of its own."""
BARE = Keys(EventKind.DROP_DATABASE, TableName("d"))


def rows(*keys: Keys) -> pa.Table:
    return table_of(
        (Event(number, 7 * number, f"TYPE_{number}", "", "", "", "", "x"), each) for number, each in enumerate(keys, 1)
    )


def test_every_key_column_comes_back_whichever_rows_stand_around_it() -> None:
    given = [BARE, EVERYTHING, Keys(EventKind.NOTHING), EVERYTHING, BARE]
    found = list(entries_of(rows(*given).select(list(ENTRY_COLUMNS))))
    assert found == [Entry(number, 7 * number, f"TYPE_{number}", each) for number, each in enumerate(given, 1)]


def test_equal_keys_are_one_object_so_that_a_hot_table_costs_little_memory() -> None:
    first, other, again = entries_of(rows(EVERYTHING, BARE, EVERYTHING))
    assert first.keys is again.keys
    assert other.keys == BARE


def test_entries_come_from_rows_in_pieces_as_from_rows_in_one() -> None:
    whole = rows(BARE, EVERYTHING, EVERYTHING, BARE, EVERYTHING)
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 3), whole.slice(4)])
    assert list(entries_of(pieces)) == list(entries_of(whole))


def test_no_rows_are_no_entries() -> None:
    assert list(entries_of(rows())) == []


def test_an_absent_list_is_an_empty_one() -> None:
    table = rows(EVERYTHING)
    place = table.schema.get_field_index("partitions")
    absent = table.set_column(place, table.schema.field(place), pa.array([None], pa.list_(pa.string())))
    [found] = entries_of(absent)
    assert found.keys.partitions == ()
