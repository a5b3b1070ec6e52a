"""Marks in a whole world in memory: how they are made, followed beyond the journal, and lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import Refused, Unavailable
from calque.model.gaps import GapCause
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.plugins.marks.core import Done, NotDone, Verdict
from calque.plugins.marks.engine.follow_tables import remember
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.make import make_mark
from calque.plugins.marks.engine.target_view import target_view
from calque.plugins.marks.model import Mark
from support.memory.marks import MemoryMarks
from support.memory.metastore import MemoryLog, MemoryReader
from support.worlds.worlds import INPUT, OUTPUT, SERDE, Backup, World

T, U = TableName("d1", "t"), TableName("d1", "u")
DAY = 86_400.0


class Marked:
    """A world with one partitioned table, which is marked and looked at without anything coming between."""

    def __init__(self) -> None:
        self.world = World(1)
        self.source, self.marks = self.world.source, MemoryMarks()
        self.between: Callable[[str], None] = lambda _: None
        log, catalog = MemoryLog(self.source, self.called), MemoryReader(self.source, self.called)
        self.side: SourceSide = replace(self.world.source_side, log=log, catalog=catalog)
        self.source.create_database(Database("d1"))
        self.create(T)

    def called(self, method: str) -> None:
        self.between(method)

    def create(self, name: TableName) -> None:
        keys = (Column("ds", "string"), Column("n", "int"))
        storage = Storage((Column("x", "string"),), f"file:/source/{name.table}", INPUT, OUTPUT, serde=SerDe(SERDE))
        self.source.create_table(Table(name.table, name.database, partition_keys=keys, storage=storage))
        self.world.note()

    def add(self, name: TableName, *values: str) -> None:
        storage = self.source.the_table(name).table.storage
        self.source.add_partitions(name, [Partition(values, *name, storage=storage)])
        self.world.note()

    def rename(self, name: TableName, new: TableName) -> None:
        self.source.alter_table(name, replace(self.source.the_table(name).table, name=new.table))
        self.world.note()

    def start(self) -> None:
        """calque begins at the source's newest event."""
        self.world.begin = self.world.capture.after = self.source.current()
        self.world.gatherer.resume(self.world.begin, self.world.begin)
        self.world.open()
        self.world.settle()

    def mark(self, name: TableName = T, lifetime: float = DAY, **values: str) -> Mark:
        return make_mark(self.side, self.marks, name, values or {"ds": "1"}, lambda _: lifetime)

    def at_source(self, name: TableName = T, **values: str) -> Verdict:
        return MarkJudge(self.side, self.marks).verdict(name, values or {"ds": "1"})

    def at_target(self, name: TableName = T, **values: str) -> Verdict:
        world = self.world
        judge = MarkJudge(self.side, self.marks, lambda: target_view(world.ledger, world.gaps, world.side.admission))
        return judge.verdict(name, values or {"ds": "1"})


def state(verdict: Verdict) -> str:
    return verdict.state if isinstance(verdict, NotDone) else type(verdict).__name__


@pytest.fixture
def marked() -> Marked:
    return Marked()


# How marks are made


def test_a_mark_stands_behind_the_newest_event_and_has_the_next_number(marked: Marked) -> None:
    first = marked.mark(ds="1", N="01")
    marked.add(T, "1", "1")
    second = marked.mark(lifetime=10.0)
    current = marked.source.current()
    assert (first.number, first.event_id, first.condition) == (1, current - 1, "ds=1/n=1")
    assert (second.number, second.event_id, second.incarnation) == (2, current, f"r{current}")
    assert second.expires_at_ns - second.marked_at_ns == 10**10
    assert marked.marks.after(0) == [first, second]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (TableName("d1", "tt"), "hq has no table d1.tt. The nearest is d1.t. Name a table of the source."),
        (TableName("dd1", "t"), "hq has no database dd1. The nearest is d1. Name a table as at the source."),
        (TableName("d1", "v"), "d1.v is a view. A mark speaks of partitions. Mark the table that it shows."),
        (TableName("d1", "lake"), "d1.lake is a Delta table."),
        (TableName("d1", "plain"), "d1.plain has no partition keys."),
    ],
)
def test_what_has_no_partitions_can_not_be_marked(marked: Marked, name: TableName, said: str) -> None:
    plain = Table("plain", "d1", partition_keys=())
    marked.source.create_table(plain)
    marked.source.create_table(replace(plain, name="v", type="VIRTUAL_VIEW"))
    marked.source.create_table(replace(plain, name="lake", parameters={"spark.sql.sources.provider": "delta"}))
    with pytest.raises(Refused) as refused:
        marked.mark(name)
    assert str(refused.value).startswith(said)


def test_a_table_that_is_renamed_while_it_is_marked_is_looked_at_again(marked: Marked) -> None:
    calls: list[str] = []

    def swap(method: str) -> None:
        calls.append(method)
        if calls.count("table") == 1 and method == "current":
            marked.between = lambda _: None
            marked.rename(T, U)
            marked.create(T)

    marked.between = swap
    mark = marked.mark()
    assert mark.event_id == marked.source.current()
    assert isinstance(marked.at_source(), Done)
    assert state(marked.at_source(U)) == "unmarked"


def test_of_two_who_mark_at_once_each_gets_a_number(marked: Marked) -> None:
    others: list[Mark] = []

    def mark_too(method: str) -> None:
        if method == "table":
            marked.between = lambda _: None
            others.append(marked.mark())

    marked.between = mark_too
    mark = marked.mark(ds="2")
    assert marked.marks.after(0) == [*others, mark]
    assert [one.partition for one in (*others, mark)] == [{"ds": "1"}, {"ds": "2"}]


def test_nothing_is_marked_in_a_log_that_went_back(marked: Marked) -> None:
    backup = Backup(marked.source)
    marked.start()
    marked.add(T, "1", "1")
    marked.world.settle()
    backup.restore(marked.source)
    with pytest.raises(Unavailable, match="The log of hq went back"):
        marked.mark()
    marked.world.find_gap(marked.world.capture.last(), marked.source.current(), GapCause.WENT_BACK)
    assert marked.mark().after_gap == 1


# Where they are done


def test_a_set_is_done_at_a_target_when_it_shows_the_mark_s_event(marked: Marked) -> None:
    assert state(marked.at_source()) == state(marked.at_target()) == "unmarked"
    marked.mark()
    assert state(marked.at_source()) == "Done"
    assert state(marked.at_target()) == "starting"
    marked.start()
    assert state(marked.at_target()) == "Done"
    marked.add(T, "2", "1")
    marked.mark(ds="2")
    assert (state(marked.at_target(ds="2")), state(marked.at_target(ds="2", n="1"))) == ("behind", "behind")
    marked.world.settle()
    done = marked.at_target(ds="2", n="1")
    assert isinstance(done, Done)
    assert done.shows == marked.source.current()
    marked.add(T, "2", "2")
    marked.mark(ds="2")
    assert marked.at_target(ds="2") == done
    assert state(marked.at_target(n="1")) == "unmarked"


def test_of_a_table_that_a_target_has_a_part_of_nothing_is_done_there(marked: Marked) -> None:
    marked.start()
    marked.mark()
    world = marked.world
    policy = replace(world.policy, partitions={"d1.t": "ds > '1'"})
    world.side = TargetSide.of(policy, world.side.catalog, world.ledger, world.storage)
    world.replica = world.new_replica()
    assert state(marked.at_target()) == "policy"
    world.replica.open()
    world.settle()
    assert state(marked.at_target()) == "OutsidePolicy"


def test_a_mark_from_before_the_journal_is_followed_by_the_log(marked: Marked) -> None:
    marked.mark()
    marked.rename(T, U)
    marked.start()
    assert state(marked.at_target(U)) == "Done"
    assert state(marked.at_target(T)) == "renamed"
    assert state(marked.at_source(T)) == "renamed"


def test_a_mark_whose_events_nobody_has_is_lost(marked: Marked) -> None:
    marked.mark()
    marked.add(T, "1", "1")
    marked.source.purge(marked.source.current())
    marked.add(T, "1", "2")
    marked.start()
    assert state(marked.at_source()) == state(marked.at_target()) == "lost"
    marked.mark()
    assert state(marked.at_target()) == "Done"
    marked.add(T, "1", "3")
    marked.world.settle()
    remember(marked.side, marked.marks)
    assert [mark.number for mark in marked.marks.after(0)] == [2]


def test_a_gap_takes_the_marks_of_a_history_that_is_gone(marked: Marked) -> None:
    backup = Backup(marked.source)
    marked.start()
    marked.add(T, "1", "1")
    marked.mark()
    marked.world.settle()
    assert state(marked.at_target()) == "Done"
    marked.world.go_back(backup)
    assert state(marked.at_target()) == state(marked.at_source()) == "lost"
    marked.mark()
    assert state(marked.at_target()) == "repairing"
    remember(marked.side, marked.marks)
    assert [mark.number for mark in marked.marks.after(0)] == [2]


# How they are kept


def test_what_became_of_tables_outlives_the_journal(marked: Marked) -> None:
    marked.start()
    for name in (TableName("d1", "gone"), TableName("d1", "stays")):
        marked.create(name)
        marked.mark(name)
    marked.mark()
    marked.rename(T, U)
    marked.source.drop_table(TableName("d1", "gone"))
    marked.world.note()
    marked.world.settle()
    remember(marked.side, marked.marks)
    marked.world.forget()
    marked.source.purge(marked.source.current())
    remember(marked.side, marked.marks)
    assert state(marked.at_target(U)) == state(marked.at_source(U)) == "Done"
    assert state(marked.at_target(TableName("d1", "stays"))) == "Done"
    assert state(marked.at_target(TableName("d1", "gone"))) == "ended"
    assert [mark.trail.name.table for mark in marked.marks.after(0)] == ["gone", "stays", "u"]


def test_a_mark_that_has_expired_counts_no_more_and_is_forgotten(marked: Marked) -> None:
    marked.mark(lifetime=5.0)
    marked.mark(ds="2")
    assert state(marked.at_source()) == "Done"
    marked.world.clock.now += 6 * 10**9
    assert state(marked.at_source()) == "unmarked"
    remember(marked.side, marked.marks)
    assert ([mark.number for mark in marked.marks.after(0)], marked.marks.last()) == ([2], 2)
