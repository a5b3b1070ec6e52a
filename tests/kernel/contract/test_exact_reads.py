"""Exact reads of a table that is dropped and made again between the calls that read it, from every kind of source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.engine.sides.sides import SourceSide
from calque.engine.source.exact_read import read_exact
from calque.model.hive import Column, Partition, Storage, Table
from support.memory.journal import MemoryJournal
from support.memory.storage import MemoryStorage
from support.worlds.worlds import WorldClock

if TYPE_CHECKING:
    from support.worlds.metastore_worlds import World

OTHER = (Column("y", "bigint"), Column("z", "string"))
BuildPartition = Callable[..., Partition]


class Disturbed:
    """The source's log and catalog; before call number `number` of `method` something happens, once."""

    def __init__(self, behind: Any, method: str, number: int, happen: Callable[[], None]) -> None:
        self.behind, self.method, self.left, self.happen = behind, method, number, happen

    def __getattr__(self, method: str) -> Any:
        if method == self.method:
            self.left -= 1
            if self.left == 0:
                self.happen()
        return getattr(self.behind, method)


@pytest.mark.parametrize("method", ["table 1", "few_partitions 1", "partition_names 1", "partitions 1", "current 2"])
def test_a_table_never_has_the_columns_of_one_incarnation_and_partitions_of_another(
    world: World, build_partition: BuildPartition, method: str
) -> None:
    """Hive's own bootstrap left such a table."""
    world.create_database()
    old = world.table("again", ["p"])
    name = world.created(old)
    world.catalog.add_partitions(name, rows(world, build_partition, old, "1", "2"))
    new = replace(old, storage=replace(old.storage or Storage(), columns=OTHER))

    def made_again() -> None:
        world.catalog.drop_table(name)
        world.catalog.create_table(new)
        world.catalog.add_partitions(name, rows(world, build_partition, new, "2", "3"))

    call, number = method.split()
    source = source_of(world, call, int(number), made_again)
    exact = read_exact(source, name, with_files=False, most=2 if call == "few_partitions" else None)
    assert exact.table is not None
    assert columns_of(exact.table) == ["y", "z"]
    assert {partition: columns_of(there) for partition, there in exact.partitions.items()} == {
        "p=2": ["y", "z"],
        "p=3": ["y", "z"],
    }


def rows(world: World, build: BuildPartition, table: Table, *values: str) -> list[Partition]:
    return [build(table, [value], world.place("data", "again", value)) for value in values]


def columns_of(thing: Table | Partition) -> list[str]:
    return [column.name for column in (thing.storage or Storage()).columns or ()]


def source_of(world: World, method: str, number: int, happen: Callable[[], None]) -> SourceSide:
    """A source that the journal follows while somebody waits for it."""
    journal, clock = MemoryJournal(), WorldClock()
    begin = world.log.current()

    def capture() -> None:
        after = journal.last() or begin
        events = world.logged(after)
        journal.append(rows_of_events(events))

    clock.asleep = capture
    log: Any = Disturbed(world.log, method, number, happen)
    catalog: Any = Disturbed(world.catalog, method, number, happen)
    return SourceSide("hq", log, catalog, journal, MemoryEvidence(), MemoryStorage(clock.now_ns), clock)
