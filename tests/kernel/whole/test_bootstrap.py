"""A bootstrap whose source changes at the worst moment: single cases, each of them a bug that somebody could make.

`test_bootstraps` plays random ones; `mutants.toml` has the bugs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.source.exact_read import read_exact
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.records import record_key
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.bootstraps import Bootstrap
from support.worlds.histories import PLAIN, differences
from support.worlds.worlds import INPUT, OUTPUT, SERDE, Died, World

A, B, X = TableName("d1", "a"), TableName("d1", "b"), TableName("d2", "x")


class Case:
    """Two databases of a source that nobody has read yet; `at` says what happens before a call of calque's."""

    def __init__(self, policy: Policy = PLAIN, habits: ServerHabits = HIVE_4) -> None:
        self.world = Bootstrap(0, habits, policy)
        self.source = self.world.writer.source
        self.due: list[tuple[str, int, Callable[[], None]]] = []
        self.calls: dict[str, int] = {}
        self.world.between = self.called
        for database in ("d1", "d2"):
            self.source.create_database(Database(database, parameters={}))

    def at(self, method: str, number: int, act: Callable[[], None]) -> None:
        """Before that call of the method, counted from now."""
        self.due.append((method, self.calls.get(method, 0) + number, act))

    def called(self, method: str) -> None:
        self.calls[method] = self.calls.get(method, 0) + 1
        due = [one for one in self.due if one[:2] == (method, self.calls[method])]
        self.due = [one for one in self.due if one not in due]
        for _, _, act in due:
            act()

    def open(self) -> None:
        world = self.world
        world.begin = world.capture.after = world.source.current()
        world.gatherer.resume(world.begin, world.begin)
        world.open()

    def create(self, name: TableName, *keys: str, columns: tuple[str, ...] = ("x",)) -> None:
        self.world.clock.now += 1_000_000_000
        storage = Storage(
            tuple(Column(column, "int") for column in columns),
            None,
            INPUT,
            OUTPUT,
            serde=SerDe(class_name=SERDE, parameters={}),
        )
        parted = tuple(Column(key, "string") for key in keys)
        table = Table(name.table, name.database, "me", storage=storage, partition_keys=parted, parameters={})
        self.source.create_table(replace(table, type="MANAGED_TABLE"))

    def table(self, name: TableName) -> Table:
        return self.world.source.the_table(name).table

    def add(self, name: TableName, *values: str) -> None:
        table = self.table(name)
        rows = []
        for value in values:
            at = join(location_of(table) or "", f"p={value}")
            self.world.writer.put_file(at)
            storage = replace(table.storage or Storage(), location=at)
            rows.append(Partition((value,), *name, storage=storage, parameters={}))
        self.source.add_partitions(name, rows)

    def rename(self, name: TableName, to: TableName) -> None:
        self.source.alter_table(name, replace(self.table(name), database=to.database, name=to.table))

    def create_again(self, name: TableName, *values: str, columns: tuple[str, ...]) -> None:
        self.source.drop_table(name)
        self.create(name, "p", columns=columns)
        self.add(name, *values)

    def settle(self) -> None:
        """To the end, where nothing may be wrong."""
        self.world.settle()
        assert self.due == []
        assert self.world.problems == []
        assert self.world.false_claims == []
        assert differences(self.world) == []

    def states(self) -> dict[TableName, TableState]:
        return {name: row.state for name, row in self.world.replica.tables.rows.items()}


# While the source is listed


def test_a_table_that_moves_from_a_database_not_listed_yet_into_one_that_was_is_not_missed() -> None:
    case = Case()
    case.create(X)
    case.at("tables", 2, lambda: case.rename(X, A))
    case.open()
    case.settle()
    assert list(case.states()) == [A]


def test_a_table_that_is_dropped_before_it_is_listed_was_there_before_the_first_epoch() -> None:
    case = Case()
    case.create(A)
    case.at("tables", 1, lambda: case.source.drop_table(A))
    case.open()
    case.world.window()
    assert case.world.ledger.epochs() == ()
    case.settle()
    assert case.world.ledger.epochs()[0].event_id >= case.world.source.current()


def test_that_is_remembered_by_whoever_takes_up_the_bootstrap() -> None:
    case = Case()
    case.create(A)
    case.at("tables", 1, lambda: case.source.drop_table(A))
    case.open()
    case.world.restart_replica(case.world.ledger)
    case.world.window()
    assert case.world.ledger.epochs() == ()
    case.settle()


@pytest.mark.parametrize("method", ["tables", "database", "create_database"])
@pytest.mark.parametrize("number", [1, 2])
def test_databases_that_are_dropped_while_they_are_listed_are_gone_at_the_end(method: str, number: int) -> None:
    case = Case()
    case.create(A, "p")
    case.create(X)
    case.at(method, number, lambda: case.source.drop_database("d1", cascade=True))
    case.open()
    case.settle()
    assert list(case.states()) == [X]


def test_a_database_that_an_attempt_made_is_dropped_by_the_next_one() -> None:
    case = Case()
    case.open()
    case.source.drop_database("d2")
    case.world.append_log()
    case.world.ledger.remove_tables(list(case.world.ledger.tables()))
    case.world.ledger.remove_records(list(map(record_key, case.world.ledger.records())))
    case.world.restart_replica(case.world.ledger)
    case.settle()
    assert case.world.target_store.databases() == ["d1", "default"]


# While tables are read


@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4], ids=["3", "4"])
@pytest.mark.parametrize("method", ["table 1", "few_partitions 1", "partition_names 1", "partitions 1", "current 2"])
def test_a_table_never_has_the_columns_of_one_incarnation_and_partitions_of_another(
    method: str, habits: ServerHabits
) -> None:
    """Hive's own bootstrap left such a table."""
    case = Case(habits=habits)
    case.create(A, "p", columns=("x",))
    case.add(A, "1", "2")
    case.open()
    call, number = method.split()
    case.at(call, int(number), lambda: case.create_again(A, "2", "3", columns=("y", "z")))
    exact = read_exact(case.world.source_side, A, with_files=False, most=2 if call == "few_partitions" else None)
    assert exact.table is not None
    assert [column.name for column in (exact.table.storage or Storage()).columns or ()] == ["y", "z"]
    for partition in exact.partitions.values():
        assert [column.name for column in (partition.storage or Storage()).columns or ()] == ["y", "z"]
    assert sorted(exact.partitions) == ["p=2", "p=3"]
    assert exact.exact_at == case.world.source.current()
    case.settle()


def test_a_partition_that_is_dropped_while_its_table_is_read_is_not_shown() -> None:
    case = Case()
    case.create(A, "p")
    case.add(A, "1", "2")
    case.at("partitions", 1, lambda: case.source.drop_partitions(A, ["p=1"]))
    case.open()
    case.at("few_partitions", 1, lambda: case.add(A, "3"))
    case.settle()


def test_what_happens_between_two_rounds_of_a_read_is_in_the_second() -> None:
    """The event id that ends a round begins the next one, so that what comes before its first call is not missed."""
    case = Case()
    case.create(A, "p")
    case.add(A, "1")
    case.open()
    case.at("few_partitions", 1, lambda: case.add(A, "2"))
    case.at("current", 3, lambda: case.add(A, "3"))
    case.at("current", 4, lambda: case.add(A, "4"))
    case.world.read()
    case.settle()


def test_an_event_that_a_read_has_already_is_not_done_again() -> None:
    case = Case()
    case.create(A, "p")
    case.create(B, "p")
    case.open()
    case.add(A, "1")
    case.source.drop_partitions(A, ["p=1"])
    case.add(A, "1", "2")
    case.world.capture_all()
    case.world.read()
    reads = case.world.reads()
    case.settle()
    assert case.world.reads() == reads == 2


def test_a_table_is_not_covered_by_an_epoch_below_the_event_that_it_shows() -> None:
    case = Case()
    case.create(A)
    case.create(B)
    case.open()
    case.settle()
    case.world.replica.reads.reread(lambda name: name == A, "the test wants it", {State.LIVE})
    before = case.world.source.current()
    for name in (B, A):
        case.source.alter_table(name, replace(case.table(name), parameters={"v": "1"}))
    case.world.capture_all()
    case.world.read()
    case.world.window(before + 1)
    assert case.states()[A] != State.LIVE
    case.world.window(before + 2)
    assert case.states()[A] == State.LIVE
    case.settle()


# Renames of what was not read


def test_a_table_that_was_not_read_and_is_renamed_is_read_under_its_new_name() -> None:
    case = Case()
    case.create(A)
    case.open()
    case.rename(A, B)
    case.create(A, "p")
    case.world.capture_all()
    case.world.window()
    assert set(case.states().values()) == {State.UNKNOWN}
    case.settle()
    assert sorted(case.states()) == [A, B]


def test_a_rename_that_a_read_has_seen_already_costs_a_read_of_its_other_name_alone() -> None:
    case = Case()
    case.create(A)
    case.open()
    case.rename(A, B)
    case.create(A, "p")
    case.world.capture_all()
    case.world.read()
    case.settle()
    assert case.world.reads_of() == {A: 1, B: 1}


def test_two_tables_that_swap_names_of_which_only_one_was_read_are_both_read() -> None:
    case = Case()
    case.create(A, "p", columns=("x",))
    case.create(B, "p", columns=("y",))
    case.open()
    case.world.read(limit=1)
    for old, new in ((A, TableName("d1", "tmp")), (B, A), (TableName("d1", "tmp"), B)):
        case.rename(old, new)
    case.settle()
    assert sorted(case.states()) == [A, B]


def test_a_table_that_was_renamed_onto_a_dropped_ones_name_while_that_was_read_is_no_mixture() -> None:
    case = Case()
    case.create(A, "p", columns=("x",))
    case.add(A, "1", "2")
    case.create(B, "p", columns=("y",))
    case.add(B, "2", "3")

    def replaced() -> None:
        case.source.drop_table(A)
        case.rename(B, A)

    case.open()
    case.at("few_partitions", 1, replaced)
    case.settle()
    assert list(case.states()) == [A]


# While processes die


def test_what_a_dead_process_called_live_ahead_of_its_epoch_is_not_live_in_others_epochs() -> None:
    case = Case()
    for name in (A, B):
        case.create(name, "p")
        case.add(name, "1", "2")
    case.open()
    case.settle()
    world = case.world
    world.replica.reads.reread(lambda name: name == A, "the test wants it", {State.LIVE})
    case.add(B, "3")
    world.capture_all()
    world.background.run()

    def die(failpoint: str) -> None:
        if failpoint == "ledger.tables":
            raise Died

    before, world.ledger._failpoint = world.ledger._failpoint, die
    with pytest.raises(Died):
        world.window()
    world.ledger._failpoint = before
    world.restart()
    case.source.drop_partitions(A, ["p=1"])
    world.capture_all()
    world.window()
    assert world.replica.epochs.position() == world.source.current()
    row = world.ledger.tables()["table", *A]
    assert (row.state, row.shows) == (TableState.STAGING, world.source.current() - 1)
    case.settle()


@pytest.mark.parametrize("keys", [(), (Column("p", "string"),)])
def test_a_table_that_was_made_anew_within_its_second_and_is_read_puts_no_file_where_the_old_one_is_shown(
    keys: tuple[Column, ...],
) -> None:
    world = World(0, HIVE_4, PLAIN)
    name, source = TableName("d1", "t"), world.writer.source
    source.create_database(Database("d1"))

    def make(kind: str, files: int) -> None:
        storage = Storage((Column("x", kind),), serde=SerDe(parameters={}))
        source.create_table(Table("t", "d1", storage=storage, partition_keys=keys, parameters={}))
        at = location_of(world.source.the_table(name).table) or ""
        if keys:
            at = f"{at}/p=1"
            source.add_partitions(name, [Partition(("1",), "d1", "t", storage=replace(storage, location=at))])
        for number in range(files):
            world.storage.write(f"{at}/{number}", b"1")
        world.note()

    make("int", 0)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    source.drop_table(name)
    make("string", 1)
    world.capture_all()
    world.replica.reads.need(name, "it is read again", world.replica.cursor)
    world.settle()
    assert world.target_states()[name] == world.source_states()[name]
    assert not world.problems
