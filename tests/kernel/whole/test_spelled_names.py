"""Names with capitals over Thrift: found, shown, compared and dropped under the names that the server keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.model.hive import Column, Database, Function, Partition, SerDe, SortColumn, Storage, Table
from calque.model.names import DEFAULT_PARTITION, TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.histories import differences
from support.worlds.worlds import World

WRITTEN, KEPT = TableName("Shop", "Orders"), TableName("shop", "orders")
STORAGE = Storage(
    (Column("Amount", "int"), Column("Parts", "struct<Aa:int>")),
    bucket_columns=("Amount",),
    sort_columns=(SortColumn("Amount"),),
    serde=SerDe(parameters={}),
)


@pytest.fixture(params=[HIVE_3, HIVE_4], ids=["3.1", "4.x"])
def world(request: pytest.FixtureRequest) -> World:
    habits: ServerHabits = request.param
    policy = Policy("dr", "hq", include=("shop.*",), warehouse="file:/target")
    world = World(1, policy=policy, habits=habits)
    world.open()
    world.settle()
    world.source.create_database(Database("Shop"))
    world.note()
    world.source.create_table(
        Table("Orders", "Shop", storage=STORAGE, partition_keys=(Column("Dt", "string"),), parameters={})
    )
    world.note()
    return world


def add(world: World, value: str) -> None:
    world.source.add_partitions(WRITTEN, [Partition((value,), *WRITTEN, storage=replace(STORAGE, location=None))])
    world.note()


def agree(world: World) -> None:
    world.settle()
    assert not world.replica.tables.in_state(State.QUARANTINED)
    assert differences(world) == []


def test_a_key_with_capitals_and_a_partition_of_it_come_in_one_window(world: World) -> None:
    add(world, "1")
    agree(world)
    table = world.target_store.the_table(KEPT)
    assert [key.name for key in table.table.partition_keys or ()] == ["dt"]
    assert list(table.partitions) == [("1",)]


def test_a_table_that_is_altered_renamed_and_dropped_under_other_spellings_stays_one_table(world: World) -> None:
    add(world, "1")
    agree(world)
    table = world.source.the_table(KEPT).table
    spelled = replace(table, name="ORDERS", database="SHOP", parameters={"k": "1"})
    world.source.alter_table(WRITTEN, spelled)
    world.note()
    agree(world)
    assert (world.target_store.the_table(KEPT).table.parameters or {})["k"] == "1"
    world.source.alter_table(WRITTEN, replace(table, name="Bills"))
    world.note()
    agree(world)
    assert world.target_store.tables("shop") == ["bills"]
    world.source.drop_table(TableName("SHOP", "BILLS"))
    world.note()
    agree(world)
    assert world.target_store.tables("shop") == []


def test_partitions_whose_value_is_empty_or_the_default_are_one_by_name(world: World) -> None:
    add(world, "")
    agree(world)
    name = f"dt={DEFAULT_PARTITION}"
    assert list(world.source_side.catalog.partitions(KEPT, [name])) == [name]
    assert [part.values for part in world.target_store.the_table(KEPT).partitions.values()] == [("",)]
    world.source.drop_partitions(KEPT, [name])
    world.note()
    add(world, DEFAULT_PARTITION)
    agree(world)
    assert [part.values for part in world.target_store.the_table(KEPT).partitions.values()] == [(DEFAULT_PARTITION,)]
    world.source.drop_partitions(KEPT, [name])
    world.note()
    agree(world)
    assert not world.target_store.the_table(KEPT).partitions


def test_a_function_with_capitals_is_shown_and_dropped(world: World) -> None:
    world.source.create_function(Function("Rate", "Shop", "org.example.Rate", type=1))
    world.note()
    agree(world)
    assert world.target_store.functions("shop") == ["rate"]
    world.source.drop_function(TableName("SHOP", "RATE"))
    world.note()
    agree(world)
    assert world.target_store.functions("shop") == []
