"""A source that makes the partitions of one table as they are asked for, and a target that keeps none of them, or makes
their images: so that what calque itself holds can be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from calque.core.images.image import ImageBuilder, Marks
from calque.engine.apply.databases import Databases
from calque.engine.exact_reads.pool import ExactReadPool, ReadOutcome
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.target.fault_isolation import FaultIsolation
from calque.model.facets import Statistics
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore, MemoryReader
from support.worlds.worlds import INPUT, OUTPUT, SERDE, InlineExecutor, World

ORDERS = TableName("d1", "orders")
KEYS = (Column("p", "string"),)


def storage(place: str | None = None) -> Storage:
    """Nothing of it is shared with another, as in what a server sends."""
    columns = tuple(Column(f"column_{number}", "decimal(10,2)") for number in range(8))
    return Storage(
        columns, place, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={"serialization.format": "1"})
    )


class Source(MemoryReader):
    count = 0

    def partition_names(self, _name: TableName) -> Sequence[str]:
        return [f"p={number:06}" for number in range(self.count)]

    def few_partitions(self, _table: Table, most: int) -> Mapping[str, Partition] | None:
        return self.partitions(ORDERS, self.partition_names(ORDERS)) if self.count <= most else None

    def partitions(self, _name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return {one: self.partition(one) for one in names}

    def partition(self, name: str) -> Partition:
        parameters = {"numRows": name[2:], "totalSize": "100", "transient_lastDdlTime": "1700000000"}
        place = f"file:/warehouse/d1.db/orders/{name}"
        return Partition((name[2:],), *ORDERS, create_time=1, storage=storage(place), parameters=parameters)

    def partition_statistics(
        self, _name: TableName, _columns: Sequence[str], _partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return {}


class Target(MemoryCatalog):
    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """They are forgotten at once."""

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """They were forgotten."""


class Full(Target):
    """Has the images of all partitions of `source`."""

    source: Source
    imaging: ImageBuilder

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self.source.partition_names(name)

    def few_partitions(self, _table: Table, most: int) -> Mapping[str, Partition] | None:
        return self.partitions(ORDERS, self.partition_names(ORDERS)) if self.source.count <= most else None

    def partitions(self, _name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return {one: self.image(self.source.partition(one)) for one in names}

    def image(self, partition: Partition) -> Partition:
        return self.imaging.partition(partition, ORDERS, Marks(1, "r1"), location_of(partition))


def pool(_workers: int, _name: str) -> Executor:
    return InlineExecutor()


def read(partitions: int, batch: int) -> ReadOutcome:
    """Read and build the table, with so many partitions held at a time."""
    source, side = sides(partitions)
    return reading_of(source, side, batch).read_and_land(ORDERS)


def compare(partitions: int, batch: int) -> ReadOutcome:
    """Read the table again that the target has as it is."""
    source, side = sides(partitions)
    assert isinstance(source.catalog, Source)
    full = Full(MemoryMetastore(HIVE_4))
    full.source, full.imaging = source.catalog, side.imaging
    full.metastore.create_database(Database("d1"))
    table = source.catalog.table(ORDERS)
    assert table is not None
    full.metastore.create_table(side.imaging.table(table, Marks(1, "r1"), "file:/target/d1.db/orders"))
    return reading_of(source, replace(side, catalog=full), batch).read_and_land(ORDERS)


def sides(partitions: int) -> tuple[SourceSide, TargetSide]:
    policy = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", data="none")
    world = World(1, HIVE_4, policy)
    world.source.create_database(Database("d1"))
    world.source.create_table(
        Table(*reversed(ORDERS), "me", storage=storage(), partition_keys=KEYS, parameters={}, type="MANAGED_TABLE")
    )
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    catalog = Source(world.source)
    catalog.count = partitions
    side = TargetSide.of(policy, Target(world.target_store), world.ledger, world.storage)
    return replace(world.source_side, catalog=catalog), side


def reading_of(source: SourceSide, side: TargetSide, batch: int) -> ExactReadPool:
    faults = FaultIsolation(source, side)
    databases = Databases(source, side, faults)
    return ExactReadPool(source, side, databases, TableStates(), faults, lambda: None, pool, batch=batch)
