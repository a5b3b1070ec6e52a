"""`strict_locations`: an external table goes where the configuration says, or nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.model.hive import Column, Database, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from support.memory.metastore import HIVE_4
from support.worlds.histories import PLAIN
from support.worlds.worlds import World

NAME = TableName("d1", "t")


@pytest.mark.parametrize("location", ["file:/lake/t", "file:/elsewhere/t"])
def test_an_external_table_without_a_place_is_quarantined_and_says_which(location: str) -> None:
    world = World(0, HIVE_4, replace(PLAIN, locations={"file:/lake": "file:/target/lake"}, strict_locations=True))
    source = world.writer.source
    source.create_database(Database("d1"))
    storage = Storage((Column("x", "int"),), location=location, serde=SerDe(parameters={}))
    source.create_table(Table("t", "d1", "EXTERNAL_TABLE", storage=storage, parameters={"EXTERNAL": "TRUE"}))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    if location.startswith("file:/lake"):
        assert location_of(world.target_store.the_table(NAME).table) == "file:/target/lake/t"
    else:
        row = world.replica.tables.rows[NAME]
        assert row.state == TableState.QUARANTINED
        assert location in row.reason
        assert "strict_locations" in row.reason
