"""`engine.source.cascade_detection`: which of a window's column changes changed the partitions too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.core.states.fold import ColumnChanges, fold
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.cascade_detection import cascaded
from calque.model.hive import Column, Database, Partition, Table
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.policy import Policy
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage
from support.sources.logs import part, partitioned, widened

A = widened(partitioned())
AB, ABC = widened(A, "b"), widened(A, "b", "c")
OUT = "out"


class Places:
    """A source and a target that shows it as it was when `window` began."""

    def __init__(self) -> None:
        self.source = MemoryMetastore(HIVE_4, "file:/source")
        self.target = MemoryMetastore(HIVE_4, "file:/target")
        self.journal, self.storage = MemoryJournal(), MemoryStorage()
        for store in (self.source, self.target):
            for database in ("d1", OUT):
                store.create_database(Database(database))
        self.after_read: Callable[[], None] = lambda: None
        self.begin: EventId = 0
        self.captures = True

    def have(self, table: Table, *partitions: Partition) -> Places:
        """A table that both sides show, whether the policy takes it or not."""
        for store in (self.source, self.target):
            store.create_table(table)
            if partitions:
                store.add_partitions(table_name(table.database, table.name), partitions)
        self.begin = self.source.current()
        return self

    def change(self, before: Table, after: Table, *, cascade: bool = False) -> EventId:
        self.source.alter_table(table_name(before.database, before.name), after, cascade=cascade)
        return self.source.current()

    def capture(self) -> None:
        last = self.journal.last() or 0
        found = self.source.events(last)
        self.journal.append(rows_of_events(found))

    def found(self) -> frozenset[EventId]:
        """The changes of the window from `begin` to now that `cascaded` says did; none is untold."""
        changes = self.changes()
        assert changes.untold == {}
        return changes.cascaded

    def changes(self) -> ColumnChanges:
        """What `cascaded` says of the window from `begin` to now."""
        self.capture()
        upto = self.source.current()
        clock = Clock(lambda: self.capture() if self.captures else None)
        reader = MemoryReader(self.source, after=lambda method: self.after_read() if method == "partitions" else None)
        source = SourceSide("hq", MemoryLog(self.source), reader, self.journal, MemoryEvidence(), self.storage, clock)
        policy = Policy("dr", "hq", exclude=(f"{OUT}.*",), warehouse="file:/target")
        side = TargetSide.of(policy, MemoryCatalog(self.target), MemoryLedger(), self.storage)
        return cascaded(source, side, self.journal.entries(Span(self.begin, upto)))

    def doubtful(self, found: frozenset[EventId]) -> list[EventId]:
        """Events of the states whose partitions' columns are not known from there on."""
        entries = self.journal.entries(Span(self.begin, self.journal.last() or 0))
        chain = fold(entries, ColumnChanges(found))
        return [step.event_id for step in chain.steps if step.doubtful]


class Clock:
    """Sleeping lets capture work."""

    def __init__(self, asleep: Callable[[], None]) -> None:
        self.now, self.asleep = 0, asleep

    def now_ns(self) -> int:
        return self.now

    def elapsed_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)
        self.asleep()


def places(table: Table = A, values: Sequence[str] = ("1", "2")) -> Places:
    return Places().have(table, *(part(table, value) for value in values))


@pytest.mark.parametrize("cascade", [True, False])
def test_one_change_is_told_by_an_older_partition(cascade: bool) -> None:
    world = places()
    change = world.change(A, AB, cascade=cascade)
    assert world.found() == ({change} if cascade else set())
    assert world.doubtful(world.found()) == []


@pytest.mark.parametrize(
    ("first", "second", "newest", "doubtful"),
    [(False, False, None, None), (True, False, 0, None), (False, True, 1, 0), (True, True, 1, 0)],
)
def test_two_changes_are_told_by_the_same_read(
    first: bool, second: bool, newest: int | None, doubtful: int | None
) -> None:
    world = places()
    changes = [world.change(A, AB, cascade=first), world.change(AB, ABC, cascade=second)]
    found = world.found()
    assert found == (set() if newest is None else {changes[newest]})
    assert world.doubtful(found) == ([] if doubtful is None else [changes[doubtful]])


def test_partitions_may_have_other_columns_than_their_table() -> None:
    world = Places().have(ABC, part(A, "1"))
    world.change(ABC, AB)
    change = world.change(AB, ABC, cascade=True)
    assert world.found() == {change}


def test_a_partition_that_had_the_columns_already_tells_nothing_while_another_does() -> None:
    world = Places().have(ABC, part(A, "1"), part(ABC, "2"))
    world.change(ABC, A)
    assert world.found() == set()


def test_columns_that_fit_several_outcomes_tell_nothing() -> None:
    world = Places().have(ABC, part(A, "1"))
    change = world.change(ABC, A)
    assert world.changes() == ColumnChanges(untold={change: frozenset({"p=1"})})


def test_changes_there_and_back_again_tell_nothing() -> None:
    world = places()
    there = world.change(A, AB, cascade=True)
    back = world.change(AB, A, cascade=True)
    standing = frozenset({"p=1", "p=2"})
    assert world.changes() == ColumnChanges(untold={there: standing, back: standing})


def test_a_partition_that_the_window_added_before_the_change_tells_too() -> None:
    world = places(values=())
    world.source.add_partitions(TableName("d1", "t"), [part(A, "1")])
    change = world.change(A, AB, cascade=True)
    assert world.found() == {change}


@pytest.mark.parametrize("cascade", [True, False])
def test_a_partition_that_was_altered_since_tells_by_what_it_was_before(cascade: bool) -> None:
    world = places(values=("1",))
    change = world.change(A, AB, cascade=cascade)
    world.source.alter_partition(TableName("d1", "t"), replace(part(ABC, "1"), parameters={"k": "v"}))
    assert world.found() == ({change} if cascade else set())


def test_states_are_doubtful_until_all_partitions_that_were_there_are_altered_or_gone() -> None:
    world = places()
    change = world.change(A, AB, cascade=True)
    for value in "12":
        world.source.drop_partitions(TableName("d1", "t"), [f"p={value}"])
        world.source.add_partitions(TableName("d1", "t"), [part(AB, value)])
    changes = world.changes()
    assert changes == ColumnChanges(untold={change: frozenset({"p=1", "p=2"})})
    steps = fold(world.journal.entries(Span(world.begin, world.source.current())), changes).steps
    assert [(bool(step.doubtful), bool(step.settled)) for step in steps] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
        (False, False),
    ]


def test_a_table_without_partitions_has_nothing_to_cascade_to() -> None:
    world = places(values=())
    world.change(A, AB, cascade=True)
    world.source.add_partitions(TableName("d1", "t"), [part(AB, "1")])
    assert world.found() == set()


def test_a_new_table_whose_partitions_kept_their_columns_did_not_cascade() -> None:
    world = Places()
    world.source.create_table(A)
    world.source.add_partitions(TableName("d1", "t"), [part(A, "1")])
    world.change(A, AB)
    world.begin = 2
    assert world.found() == set()


def test_a_new_table_may_cascade() -> None:
    world = Places()
    world.source.create_table(A)
    world.source.add_partitions(TableName("d1", "t"), [part(A, "1")])
    change = world.change(A, AB, cascade=True)
    world.begin = 2
    assert world.found() == {change}


def test_a_renamed_table_is_looked_up_under_its_names() -> None:
    world = places()
    change = world.change(A, AB, cascade=True)
    world.change(AB, replace(AB, name="u"))
    assert world.found() == {change}


def test_tables_of_one_group_are_decided_each_by_its_own_partitions() -> None:
    a, b = partitioned("a"), partitioned("b")
    world = Places().have(a, part(a, "1")).have(b, part(b, "1"))
    cascading = world.change(a, widened(a, "x"), cascade=True)
    world.change(b, widened(b, "y"))
    for was, now in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
        table = world.source.the_table(TableName("d1", was)).table
        world.change(table, replace(table, name=now))
    assert world.found() == {cascading}


def test_a_table_that_the_window_drops_is_not_read_and_its_changes_are_doubtful() -> None:
    world = places()
    change = world.change(A, AB, cascade=True)
    world.source.drop_table(TableName("d1", "t"))
    found = world.found()
    assert (found, world.doubtful(found)) == (set(), [change])


def test_a_table_that_comes_from_outside_the_policy_is_not_taken_for_one_of_its_name_at_the_target() -> None:
    outside = partitioned("t", OUT)
    world = Places().have(outside, part(outside, "1"))
    world.change(outside, widened(outside, "b"), cascade=True)
    world.change(widened(outside, "b"), replace(AB, storage=widened(outside, "b").storage))
    assert world.found() == set()


def drop_the_partition(world: Places) -> None:
    world.source.drop_partitions(TableName("d1", "t"), ["p=1"])


def alter_the_partition(world: Places) -> None:
    world.source.alter_partition(TableName("d1", "t"), part(ABC, "1"))


def change_columns_again(world: Places) -> None:
    world.change(AB, ABC)


def put_another_table_in_its_place(world: Places) -> None:
    world.change(AB, replace(AB, name="u"))
    world.source.create_table(AB)
    world.source.add_partitions(TableName("d1", "t"), [part(ABC, "2")])


@pytest.mark.parametrize("later", [drop_the_partition, change_columns_again, put_another_table_in_its_place])
def test_what_may_have_changed_while_it_was_read_tells_nothing(later: Callable[[Places], None]) -> None:
    world = places(values=("1",))
    change = world.change(A, AB, cascade=True)
    world.after_read = lambda: later(world)
    assert world.changes() == ColumnChanges(untold={change: frozenset({"p=1"})})


def test_an_alteration_while_it_was_read_tells_what_it_was_before() -> None:
    world = places(values=("1",))
    change = world.change(A, AB, cascade=True)
    world.after_read = lambda: alter_the_partition(world)
    assert world.found() == {change}


def test_what_happened_elsewhere_while_it_was_read_does_not_matter() -> None:
    world = places()
    change = world.change(A, AB, cascade=True)

    def meanwhile() -> None:
        world.source.create_table(partitioned("elsewhere"))
        world.source.add_partitions(TableName("d1", "t"), [part(AB, "9")])
        world.source.insert(TableName("d1", "t"), [], values=("1",))

    world.after_read = meanwhile
    assert world.found() == {change}


def test_a_capture_that_is_far_behind_keeps_nobody_waiting() -> None:
    world = places()
    change = world.change(A, AB, cascade=True)
    world.captures = False
    world.after_read = lambda: world.source.create_table(partitioned("elsewhere"))
    assert world.changes() == ColumnChanges(untold={change: frozenset({"p=1", "p=2"})})


def test_changes_of_other_things_read_nothing() -> None:
    world = places()
    world.change(A, replace(A, parameters={"k": "v"}))
    world.after_read = lambda: pytest.fail("a partition was read")
    assert world.found() == frozenset()


def test_a_change_of_a_columns_type_is_a_change_of_columns() -> None:
    assert A.storage is not None
    bigger = replace(A, storage=replace(A.storage, columns=(Column("a", "bigint"),)))
    world = places()
    change = world.change(A, bigger, cascade=True)
    assert world.found() == {change}
