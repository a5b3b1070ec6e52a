"""An alteration that a target refuses is made by an exact read, once, before its table is set aside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from support.worlds.histories import differences
from support.worlds.worlds import World

NAME = TableName("shop", "orders")
WIDE = Storage((Column("a", "bigint"), Column("b", "string")), serde=SerDe(parameters={}))
NARROWED = replace(WIDE, columns=(Column("a", "int"), Column("b", "string")))
FIRST_GONE = replace(WIDE, columns=(Column("b", "string"),))


@pytest.mark.parametrize("storage", [NARROWED, FIRST_GONE], ids=["narrowed", "first column gone"])
@pytest.mark.parametrize("cascade", [False, True], ids=["alone", "cascade"])
@pytest.mark.parametrize("key", ["", "p"], ids=["plain", "partitioned"])
def test_a_column_change_that_the_target_refuses_is_read(storage: Storage, cascade: bool, key: str) -> None:
    world = World(1, policy=Policy("dr", "hq", include=("shop.*",), warehouse="file:/target"))
    world.target_store.habits = replace(world.target_store.habits, fixed_columns=True)
    world.open()
    world.source.create_database(Database(NAME.database))
    world.note()
    keys = (Column(key, "string"),) if key else ()
    world.source.create_table(Table(NAME.table, NAME.database, storage=WIDE, partition_keys=keys, parameters={}))
    world.note()
    if key:
        world.source.add_partitions(NAME, [Partition(("1",), *NAME, storage=WIDE)])
        world.note()
    world.settle()
    table = world.source.the_table(NAME).table
    assert table.storage
    changed = replace(table.storage, columns=storage.columns)
    world.source.alter_table(NAME, replace(table, storage=changed), cascade=cascade)
    world.note()
    world.settle()
    assert not world.replica.tables.in_state(State.QUARANTINED), world.replica.tables.rows[NAME].reason
    assert differences(world) == []
    table = world.source.the_table(NAME).table
    world.source.alter_table(NAME, replace(table, parameters={"k": "1"}))
    world.note()
    world.settle()
    assert differences(world) == []
