"""External tables of a dump: their files are copied as they are at the source when the dump is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calque.core.formats.layout import join
from calque.model.hive import Column, Database, Partition, Table, location_of
from calque.model.names import TableName
from calque.plugins.dumps.core.partition_places import PartitionPlaces
from calque.plugins.dumps.engine.request import FinishedDump
from calque.plugins.dumps.run.load import DumpLoad, LoadBounds
from calque.plugins.dumps.run.load_external import external_scans, places_at_source
from calque.plugins.dumps.run.load_target import WithoutScanProgress
from calque.plugins.dumps.wiring.dump_source import DumpSource, opened_dump
from support.worlds.dumpworlds import DumpWorld
from support.worlds.gapped import create
from support.worlds.worlds import InlineExecutor

DAYS, LOGS, MANAGED = TableName("d1", "days"), TableName("d1", "logs"), TableName("d1", "managed")
BASE = "file:/base"


class ExternalWorld(DumpWorld):
    """Two external tables, one of them partitioned, and a managed one."""

    def __init__(self, folder: Path) -> None:
        self.places: PartitionPlaces = {}
        super().__init__(1, folder, ())
        self.side = type(self.side).of(
            replace(self.side.policy, external_base=BASE), self.side.catalog, self.ledger, self.side.storage
        )
        self.source.create_database(Database("d1"))
        create(self, "managed")
        for name, keys in ((LOGS, ()), (DAYS, (Column("day", "string"),))):
            storage = self.source.the_table(MANAGED).table.storage
            assert storage is not None
            location = f"file:/outside/{name.table}"
            parameters = {"EXTERNAL": "TRUE"}
            table = Table(
                name.table, "d1", "me", storage=replace(storage, location=location), partition_keys=keys,
                parameters=parameters, type="EXTERNAL_TABLE",
            )  # fmt: skip
            self.source.create_table(table)
        self.storage.write("file:/outside/logs/a", b"first")
        self.add_day("1")

    def add_day(self, day: str, location: str = "") -> None:
        storage = self.source.the_table(DAYS).table.storage
        assert storage is not None
        location = location or f"file:/outside/days/day={day}"
        self.storage.write(f"{location}/a", day.encode())
        partition = Partition((day,), *DAYS, storage=replace(storage, location=location), parameters={})
        self.source.add_partitions(DAYS, [partition])

    def load_whole(self, finished: FinishedDump, tasks: int = 10_000) -> None:
        source = DumpSource(opened_dump(self.storage, finished.directory.directory), "hq")
        side = replace(self.side, ledger=WithoutScanProgress(self.side.ledger))
        side.stopping.clear()
        scans = external_scans(source, side, self.places)
        loading = DumpLoad(source, side, LoadBounds(tasks), scans, pool=lambda _workers, _name: InlineExecutor())
        assert loading.run() == []
        self.places = places_at_source(source, self.places)

    def files(self, name: TableName, *values: str) -> dict[str, bytes | None]:
        stored = self.target_store.the_table(TableName("d1_dr", name.table))
        location = location_of(stored.partitions[values] if values else stored.table) or ""
        return {file.path: self.storage.read(join(location, file.path)) for file in self.files_of(location)}

    def files_of(self, location: str) -> tuple:  # type: ignore[type-arg]
        return self.storage.list([location])[location].files


def test_files_of_external_tables_come_with_each_load_though_no_event_tells_of_them(tmp_path: Path) -> None:
    world = ExternalWorld(tmp_path)
    first = world.dump()
    world.load_whole(first)
    assert location_of(world.target_store.the_table(TableName("d1_dr", "logs")).table) == f"{BASE}/outside/logs"
    assert (world.files(LOGS), world.files(DAYS, "1")) == ({"a": b"first"}, {"a": b"1"})
    world.storage.write("file:/outside/logs/b", b"second")
    world.storage.write("file:/outside/days/day=1/a", b"another")
    world.add_day("2")
    world.source.create_database(Database("d3"))
    world.load_whole(world.dump(first.last_event), tasks=2)
    assert world.files(LOGS) == {"a": b"first", "b": b"second"}
    assert (world.files(DAYS, "1"), world.files(DAYS, "2")) == ({"a": b"another"}, {"a": b"2"})


def test_partitions_outside_of_their_tables_directory_are_looked_for_where_they_lie(tmp_path: Path) -> None:
    """One is in the bootstrap, one comes with an event; another lies below the table under another name."""
    world = ExternalWorld(tmp_path)
    far, late, odd = "file:/far/one", "file:/far/two", "file:/outside/days/odd"
    world.add_day("far", far)
    world.add_day("odd", odd)
    first = world.dump()
    world.load_whole(first)
    world.storage.write(f"{far}/b", b"new")
    world.storage.write(f"{odd}/a", b"changed")
    world.add_day("late", late)
    second = world.dump(first.last_event)
    world.load_whole(second)
    assert world.files(DAYS, "far") == {"a": b"far", "b": b"new"}
    assert world.files(DAYS, "odd") == {"a": b"changed"}
    world.storage.write(f"{late}/b", b"newer")
    world.storage.write(f"{far}/c", b"newest")
    world.source.alter_database("d1", Database("d1", parameters={"n": "1"}))
    world.load_whole(world.dump(second.last_event))
    assert world.files(DAYS, "late") == {"a": b"late", "b": b"newer"}
    assert world.files(DAYS, "far") == {"a": b"far", "b": b"new", "c": b"newest"}
    assert world.files(DAYS, "1") == {"a": b"1"}
