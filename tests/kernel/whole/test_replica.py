"""What a replica does with errors of its background reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.errors import Broken
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from support.worlds.worlds import World


def test_an_invariant_that_falls_in_a_background_read_stops_the_stream() -> None:
    world = World(3)
    while not world.source_states():
        world.write()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()

    def fall(method: str) -> None:
        if method == "table":
            raise Broken("An invariant fell")

    world.between = fall
    world.background.run()
    with pytest.raises(Broken, match="An invariant fell"):
        world.window()


def test_a_shorter_window_after_a_death_does_not_bring_back_what_the_longer_one_dropped() -> None:
    world = World(0)
    source, name = world.writer.source, TableName("d1", "t")
    table = Table("t", "d1", storage=Storage((Column("x", "int"),), serde=SerDe(parameters={})), parameters={})
    source.create_database(Database("d1"))
    source.create_table(table)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    source.alter_table(name, replace(world.source.the_table(name).table, owner="me"))
    shorter = world.source.current()
    source.drop_table(name)
    world.capture_all()
    ledger = world.ledger.copy()
    world.window()
    assert world.target_states()[name] is None
    world.restart_replica(ledger)
    world.window(shorter)
    assert world.target_states()[name] is None
    assert not world.problems
