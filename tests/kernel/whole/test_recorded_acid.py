"""The recorded history of ACID tables through the engine: after each statement of the real Hive the finder of commits
has the metastore's valid write ids, and a native target the rows and row ids that Hive read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pytest

from calque.core.events.decode import database_after, partition_before, partitions_after, table_after, table_before
from calque.core.events.keys import keys_of
from calque.engine.capture.capture import Capture
from calque.model.journal import Event
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from support.judges.acid_tables import TableReader
from support.judges.recorded_acid import RecordedState, events, place_of, states, unpack_warehouse
from support.memory.metastore import HIVE_4, MemoryLog, MemoryMetastore, MemoryReader, MemoryTransactionReader
from support.worlds.disks import Disk
from support.worlds.worlds import World

RECORDED = "file:/lab/warehouse"


class RecordedMetastore(MemoryMetastore):
    """A metastore that comes from one recorded event to the next. Its log is the recorded one."""

    def __init__(self, warehouse: Path) -> None:
        super().__init__(HIVE_4, f"file:{warehouse}")
        self.upto: EventId = 0
        self.recorded: Sequence[Event] = [
            replace(one, message=one.message.replace(RECORDED, f"file:{warehouse}")) for one in events("hive-4.2-acid")
        ]

    def current(self) -> EventId:
        return self.upto

    def events(self, after: EventId = 0) -> list[Event]:
        return [one for one in self.recorded if after < one.event_id <= self.upto]

    def go_on(self, upto: EventId) -> None:
        before, self.upto = self.upto, upto
        for event in self.events(before):
            self.take(event)

    def take(self, event: Event) -> None:
        keys = keys_of(event)
        if event.event_type == "CREATE_DATABASE":
            self.create_database(database_after(event))
        if (name := keys.table) is None:
            return
        match event.event_type:
            case "CREATE_TABLE":
                self.create_table(table_after(event))
            case "ALTER_TABLE":
                before = table_before(event)
                self.alter_table(TableName(before.database, before.name), table_after(event))
            case "DROP_TABLE":
                self.drop_table(name)
            case "ADD_PARTITION":
                self.add_partitions(name, partitions_after(event))
            case "ALTER_PARTITION":
                old, (after,) = partition_before(event), partitions_after(event)
                if old.values == after.values:
                    self.alter_partition(name, after)
                else:
                    self.rename_partition(name, old.values, after)
            case "DROP_PARTITION":
                self.drop_partitions(name, keys.partitions)


class UnwatchedWorld(World):
    """What readers see between calls, other tests judge: its files are not of a kind that its own readers know."""

    def looked(self, method: str) -> None:
        del method


@pytest.fixture
def world(tmp_path: Path) -> World:
    policy = Policy("dr", "hq", include=("w.*",), warehouse=f"file:{tmp_path}/target", acid="native")
    made = UnwatchedWorld(1, HIVE_4, policy, storage=Disk(), root=f"file:{tmp_path}")
    source = RecordedMetastore(tmp_path / "source")
    made.source = source
    made.source_side = replace(made.source_side, log=MemoryLog(source), catalog=MemoryReader(source))
    made.capture = Capture(made.source_side, 0, made.gatherer)
    made.restart()
    return made


def kept(path: Path) -> Path:
    """The place at which a file was left at the end of the history, where it was left."""
    return Path(str(path).replace("/w.db/f/", "/w.db/g/").replace("/p/d=m/", "/p/d=n/"))


def lay_out(state: RecordedState, left: Path, warehouse: Path) -> None:
    """Have the table's directory contain the files that it had then. Those that nobody kept have other content."""
    place = place_of(state, warehouse)
    place.mkdir(parents=True, exist_ok=True)
    for path in [path for path in place.rglob("*") if path.is_file()]:
        if str(path.relative_to(place)) not in state.files:
            path.unlink()
    for folder in sorted((path for path in place.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    for name in state.files:
        if not (place / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            content = kept(place_of(state, left) / name)
            (place / name).write_bytes(content.read_bytes() if content.exists() else b"not kept")


def is_kept(state: RecordedState, left: Path) -> bool:
    return bool(state.files) and all(kept(place_of(state, left) / name).exists() for name in state.files)


def test_a_native_target_has_in_each_recorded_state_the_rows_and_row_ids_that_hive_read(
    world: World, tmp_path: Path
) -> None:
    left, source = unpack_warehouse(tmp_path / "left"), world.source
    assert isinstance(source, RecordedMetastore)
    transactions = MemoryTransactionReader(world.target_store)
    reader = TableReader("w", MemoryReader(world.target_store), transactions, world.storage)
    compared = 0
    for after, group in groupby(states(), key=attrgetter("after")):
        recorded = list(group)
        for state in recorded:
            lay_out(state, left, tmp_path / "source")
        source.go_on(after)
        world.settle()
        assert world.finder is not None
        assert {state.table: world.finder.fold.valid(state.table) for state in recorded if state.valid} == {
            state.table: state.valid for state in recorded if state.valid
        }
        for state in recorded:
            if state.rows is not None and state.valid is not None and is_kept(state, left):
                found = {state.table.table: reader.tables()[state.table.table]}
                rows = reader.rows(found)[state.table.table]
                assert rows == tuple(sorted(state.rows)), f"{state.table} after {after}"
                compared += 1
    assert compared == 22
    # The files of the plain table are younger here than its events.
    assert {one.table for epoch in world.ledger.epochs() for one in epoch.rereads} == {"w.plain"}
