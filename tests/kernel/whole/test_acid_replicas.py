"""ACID tables that are ACID tables at the target, too."""

from __future__ import annotations

import random

import pytest

from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3, MemoryTransactionReader
from support.worlds.acid import AcidWriters
from support.worlds.histories import differences
from support.worlds.worlds import World

NATIVE = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", acid="native")


def settled(seed: int) -> tuple[World, AcidWriters, TableName]:
    """A table with some rows, which the target has."""
    world = World(seed, policy=NATIVE)
    writers = AcidWriters.of(world, seed)
    world.open()
    writers.create()
    writers.inserted()
    world.settle()
    (name,) = writers.tables()
    return world, writers, name


def writers_at_target(world: World) -> AcidWriters:
    target = world.target_store
    reader = MemoryTransactionReader(target)
    return AcidWriters(target, world.storage, target.transactions, reader, lambda: None, random.Random(1))


def quarantined(world: World) -> dict[str, str]:
    """Why, by table."""
    rows = world.ledger.tables().values()
    return {str(row.name): row.reason for row in rows if row.state == TableState.QUARANTINED}


def test_rows_that_somebody_writes_at_the_target_set_the_table_aside_until_they_are_gone() -> None:
    world, writers, name = settled(1)
    foreign = writers_at_target(world)
    foreign.inserted()
    rows = {place: list(world.storage.children(place)) for place in foreign.places(name)}
    writers.inserted()
    world.settle()
    assert "has rows that calque did not write" in quarantined(world)[str(name)]
    assert {place: list(world.storage.children(place)) for place in foreign.places(name)} == rows
    world.target_store.drop_table(name)
    world.storage.remove(list(rows))
    world.replica.requests.release.tables({name}.__contains__, {str(name)}.__contains__, "the test wants it")
    world.settle()
    assert differences(world) == []


def test_a_write_id_that_was_given_at_the_target_for_no_rows_is_given_again() -> None:
    """Whether its transaction is open, aborted or committed."""
    for seed, end in enumerate(("", "abort", "commit")):
        world, writers, name = settled(seed + 2)
        plain = world.target_store.transactions
        (transaction,) = plain.open()
        plain.allocate(name, [transaction])
        if end:
            getattr(plain, end)(transaction)
        writers.inserted()
        world.settle()
        assert quarantined(world) == {}
        assert differences(world) == [], end


@pytest.mark.parametrize("rows", [1, 3])
def test_a_metastore_of_hive_3_gets_no_rows_of_acid_tables(rows: int) -> None:
    world = World(5, policy=NATIVE)
    target = world.target_store
    target.habits = target.transactions._habits = HIVE_3
    writers = AcidWriters.of(world, 5)
    world.open()
    writers.create()
    for _ in range(rows):
        writers.inserted()
    world.settle()
    (name,) = writers.tables()
    assert "can't have" in quarantined(world)[str(name)]
    assert target.tables(name.database) == []
