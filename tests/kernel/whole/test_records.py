"""When calque writes what it remembers for itself, and what becomes of a death between that and states of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.records import Record, RecordKey
from kernel.whole.test_adopt import PLAIN_TABLE
from kernel.whole.test_start import StartWorld
from support.faults.fragile import FragileLedger
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4
from support.worlds.gapped import POLICY, add, create, filled
from support.worlds.histories import differences
from support.worlds.worlds import World

T, U = TableName("d1", "t"), TableName("d1", "u")


class Counting(MemoryLedger):
    """Counts commits of records."""

    commits = 0

    def put_records(self, records: Sequence[Record]) -> None:
        super().put_records(records)
        self.commits += 1

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        super().remove_records(keys)
        self.commits += 1


@pytest.fixture
def world() -> World:
    world = World(1, HIVE_4)
    world.ledger = Counting()
    world.restart_replica(world.ledger)
    world.writer.source.create_database(Database("d1"))
    world.writer.source.create_table(table(T))
    world.capture_all()
    world.settle()
    return world


def table(name: TableName, **parameters: str) -> Table:
    storage = Storage((Column("x", "int"),), f"file:/source/{name}", serde=SerDe(parameters={}))
    return Table(name.table, name.database, storage=storage, parameters=dict(parameters))


def test_windows_of_everyday_changes_and_tables_that_come_and_go_write_no_record(world: World) -> None:
    assert isinstance(world.ledger, Counting)
    before, epochs = world.ledger.commits, len(world.ledger.epochs())
    source = world.writer.source
    for change in (
        lambda: source.alter_table(T, table(T, k="v")),
        lambda: source.create_table(table(U)),
        lambda: source.drop_table(U, delete_data=False),
        lambda: source.create_database(Database("d2")),
    ):
        change()
        world.capture_all()
        world.settle()
    assert differences(world) == []
    assert len(world.ledger.epochs()) > epochs
    assert world.ledger.commits == before


# Starts, which write states and then records


def fragile(world: World) -> FragileLedger:
    world.ledger = ledger = FragileLedger()
    world.side = replace(world.side, ledger=ledger)
    world.replica = world.new_replica()
    return ledger


def with_tables(*, opened: bool) -> World:
    """Somebody drops a table while calque is dead, and creates another one."""
    world = World(1, policy=POLICY)
    ledger = fragile(world)
    filled(world, opened=opened)

    def meanwhile() -> None:
        world.writer.source.drop_table(TableName("d1", "t2"), delete_data=False)
        create(world, "meanwhile")

    ledger.meanwhile = meanwhile
    return world


def before_a_bootstrap() -> World:
    return with_tables(opened=False)


def behind_a_gap() -> World:
    world = with_tables(opened=True)
    add(world, "t0", "new")
    create(world, "late")
    world.writer.source.drop_table(TableName("d1", "t1"), delete_data=False)
    world.lose()
    return world


def behind_the_journal() -> World:
    world = with_tables(opened=True)
    add(world, "t0", "new")
    create(world, "late")
    world.capture_all()
    world.forget()
    return world


def before_a_start_at_an_event() -> World:
    world = StartWorld(PLAIN_TABLE)
    fragile(world).meanwhile = lambda: world.insert(b"more")
    return world


@pytest.mark.parametrize(
    ("start", "writes"),
    [(before_a_bootstrap, 3), (behind_a_gap, 2), (behind_the_journal, 2), (before_a_start_at_an_event, 3)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_start_that_dies_before_any_of_its_writes_is_made_good_by_the_next_one(
    start: Callable[[], World], writes: int
) -> None:
    """It makes at least so many."""
    for number in range(30):
        world = start()
        assert isinstance(world.ledger, FragileLedger)
        world.ledger.writes_left = number
        world.restart()
        lives = world.ledger.writes_left is not None
        world.ledger.writes_left = None
        world.settle()
        assert (differences(world), world.problems) == ([], [])
        if lives:
            assert number >= writes
            return
    raise AssertionError("it never came to an end")
