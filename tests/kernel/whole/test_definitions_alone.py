"""`data = "none"`: a table of which the target has the definition alone stays there, with partitions, whatever is not
known of what its column changes did to these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from calque.model.hive import Column, Database, Partition, Storage, Table
from calque.model.names import TableName
from calque.model.plan import PrepareFlipSweep
from support.memory.metastore import HIVE_4
from support.worlds.histories import PLAIN, differences
from support.worlds.worlds import World

DAYS = TableName("d1", "days")
KEYS = (Column("day", "string"),)
Drops = tuple[tuple[str, ...], ...]


def columns(count: int) -> tuple[Column, ...]:
    return tuple(Column(f"c{number}", "int") for number in range(count))


@dataclass
class Definitions:
    """A live table with three partitions, and a reader that looks before each call."""

    world: World = field(default_factory=lambda: World(1, HIVE_4, replace(PLAIN, data="none")))
    seen: list[int | None] = field(default_factory=list)
    """How many partitions the table had; None where there was no table."""

    def __post_init__(self) -> None:
        self.world.open()
        self.world.source.create_database(Database("d1"))
        storage = Storage(columns(1))
        table = Table("days", "d1", storage=storage, partition_keys=KEYS, type="MANAGED_TABLE", parameters={})
        self.world.source.create_table(table)
        self.add("1", "2", "3")
        self.world.settle()
        self.world.between = lambda _: self.look()

    def look(self) -> None:
        try:
            self.seen.append(len(self.world.target_store.the_table(DAYS).partitions))
        except LookupError:
            self.seen.append(None)

    @property
    def table(self) -> Table:
        return self.world.source.the_table(DAYS).table

    def add(self, *days: str) -> None:
        storage = Storage(self.table.storage.columns if self.table.storage else ())
        self.world.source.add_partitions(DAYS, [Partition((day,), *DAYS, storage=storage) for day in days])
        self.world.note()

    def drop(self, *days: str) -> None:
        self.world.source.drop_partitions(DAYS, [f"day={day}" for day in days])
        self.world.note()

    def change_columns(self, count: int, *, cascade: bool) -> None:
        storage = replace(self.table.storage or Storage(), columns=columns(count))
        self.world.source.alter_table(DAYS, replace(self.table, storage=storage), cascade=cascade)
        self.world.note()

    def change_parameter(self) -> None:
        self.world.source.alter_table(DAYS, replace(self.table, parameters={"k": "v"}))
        self.world.note()


def play(second_cascades: bool, drops: Drops) -> Definitions:
    """One window: columns with CASCADE, additions, columns again, an addition, drops, a parameter."""
    definitions = Definitions()
    definitions.change_columns(2, cascade=True)
    definitions.add("4a", "4b")
    definitions.change_columns(3, cascade=second_cascades)
    definitions.add("5")
    for days in drops:
        definitions.drop(*days)
    definitions.change_parameter()
    definitions.world.settle()
    return definitions


@pytest.mark.parametrize("second_cascades", [False, True])
@pytest.mark.parametrize(
    "drops",
    [
        (("1",), ("2",)),
        (("1", "2"), ("3",)),
        (("1", "2", "3"), ("4a",)),
        (("1", "2", "3"), ("4a", "4b")),
    ],
)
def test_a_window_of_column_changes_and_partitions_never_takes_the_table_or_its_partitions_away(
    second_cascades: bool, drops: Drops
) -> None:
    definitions = play(second_cascades, drops)
    world = definitions.world
    assert differences(world) == []
    assert world.problems == []
    assert None not in definitions.seen
    assert 0 not in definitions.seen


def test_a_bridge_is_announced_only_where_no_partition_is_left_that_tells_of_a_cascade() -> None:
    """Where one is left that stood before both changes and has the columns of the first, all states are known."""

    def bridges(definitions: Definitions) -> list[type]:
        plans = (plan for window in definitions.world.windows for plan in window.plans)
        return [type(hop.operation) for plan in plans for hop in plan.hops if hop.bridge]

    assert bridges(play(False, (("1",), ("2",)))) == []
    assert bridges(play(False, (("1", "2"), ("3",)))) == [PrepareFlipSweep]
