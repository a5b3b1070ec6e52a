"""`start = EVENT_ID`: a target filled by hand is followed from an event on, as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.images.image import EVENT, INCARNATION, SOURCE
from calque.engine.replica.dry_run import explain_next_window
from calque.errors import Refused
from calque.model.hive import Function, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.plan import AlterPartitions, Publish
from kernel.whole.test_adopt import PARTED, PLAIN_TABLE, HandWorld, at
from support.memory.journal import MemoryJournal
from support.worlds.handmade import REPL, copy_by_hand, make_database
from support.worlds.histories import differences


class StartWorld(HandWorld):
    """The target was copied by hand at event `start`; the journal begins there."""

    def __init__(self, *names: TableName, parameters: dict[str, str] | None = None) -> None:
        super().__init__()
        self.policy = replace(self.policy, start=self.source.current())
        self.side = type(self.side).of(self.policy, self.side.catalog, self.ledger, self.storage)
        self.replica = self.new_replica()
        make_database(self, "d1")
        for name in names:
            copy_by_hand(self, name, root=at(name), parameters=parameters)
        self.looked("copying by hand")
        self.looks.clear()

    def insert(self, content: bytes) -> None:
        path = f"file:/source/plain/{self.source.current()}"
        self.storage.write(path, content)
        self.clock.now += 10_000_000
        self.writer.source.insert(PLAIN_TABLE, [path])
        self.clock.now += 60 * 10**9


def test_what_is_there_is_live_at_once_without_a_look_at_any_file() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED, parameters=REPL)
    looked: list[str] = []
    world.storage.before = lambda call, _about: looked.append(call)
    world.open()
    world.settle()
    assert looked == []
    assert world.copied() == 0
    start = str(world.policy.start)
    for thing in (world.at_target(), world.at_target(PARTED), *world.parts().values()):
        assert {EVENT: start, INCARNATION: f"r{start}"}.items() <= (thing.parameters or {}).items()
    assert (world.at_target().parameters or {})[SOURCE] == f"hq:{PLAIN_TABLE}"
    assert world.replica.epochs.position() == world.policy.start
    assert differences(world) == []


def test_events_since_are_taken_and_cost_what_they_touch() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED)
    world.insert(b"more")
    world.writer.source.drop_partitions(PARTED, ["p=2"])
    renamed = TableName("d1", "renamed")
    world.writer.source.alter_table(PARTED, replace(world.source.the_table(PARTED).table, name="renamed"))
    world.open()
    world.settle()
    assert world.target_states()[renamed] == world.source_states()[renamed]
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]
    assert world.reread == set()
    assert world.problems == []
    assert world.copied() == len(b"more")
    assert location_of(world.at_target()) == at(PLAIN_TABLE)


def test_a_table_that_is_missing_and_that_no_event_made_is_read() -> None:
    world = StartWorld(PLAIN_TABLE)
    world.open()
    assert world.replica.tables.is_(PARTED, {TableState.UNKNOWN})
    world.settle()
    assert world.target_states()[PARTED] == world.source_states()[PARTED]
    assert differences(world) == []


def test_a_table_that_the_source_never_had_is_left_alone() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED)
    theirs = replace(world.target_store.the_table(PLAIN_TABLE).table, name="theirs", parameters={})
    world.target_store.create_table(theirs)
    world.open()
    world.settle()
    assert SOURCE not in (world.target_store.the_table(TableName("d1", "theirs")).table.parameters or {})


def test_the_replica_of_another_source_is_set_aside() -> None:
    world = StartWorld(PARTED)
    copy_by_hand(world, PLAIN_TABLE, "of another source", root=at(PLAIN_TABLE))
    world.open()
    world.settle()
    assert "is not ours" in world.quarantined()[PLAIN_TABLE]


def test_databases_and_functions_are_not_shown_as_events_make_them_that_are_still_to_come() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED)
    function = Function("f", "d1", "org.example.F")
    world.target_store.create_function(function)
    world.source.create_function(replace(function, class_name="org.example.Other"))
    world.source.purge(world.source.current())
    start = world.begin = world.capture.after = world.source.current()
    world.policy = replace(world.policy, start=start)
    world.side = type(world.side).of(world.policy, world.side.catalog, world.ledger, world.storage)
    world.replica = world.new_replica()
    world.source.alter_database(
        "d1", replace(world.source.the_database("d1"), description="later", parameters={"k": "v"})
    )
    world.open()
    assert world.target_store.the_database("d1").description == "by hand"
    assert not world.replica.functions.is_owned(TableName("d1", "f"))
    world.settle()
    assert world.target_store.the_database("d1").description == "later"


def test_a_wrong_claim_is_mended_where_an_event_meets_it() -> None:
    world = StartWorld(PLAIN_TABLE)
    copy_by_hand(world, PARTED, "a partition less", root=at(PARTED))
    gone = {"1", "2", "3"} - world.parts().keys()
    world.writer.source.drop_partitions(PARTED, [f"p={day}" for day in gone])
    world.insert(b"more")
    world.open()
    world.settle()
    assert world.target_states()[PARTED] == world.source_states()[PARTED]
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]


def test_whoever_dies_at_the_start_starts_again() -> None:
    for seed in range(12):
        world = StartWorld(PLAIN_TABLE, PARTED)
        world.rng.seed(seed)
        world.deadliness, world.mortal = 0.2, True
        world.insert(b"more")
        world.open()
        world.deadliness = 0.0
        world.settle()
        assert world.problems == []
        assert world.target_states() == world.source_states()


def test_a_start_that_log_or_journal_do_not_reach_is_refused_with_what_to_do() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED)
    world.begin += 1
    with pytest.raises(Refused, match=r"The journal begins with event .*bootstrap"):
        world.open()
    world = StartWorld(PLAIN_TABLE, PARTED)
    world.insert(b"more")
    world.insert(b"more")
    world.source.purge(world.source.current() - 1)
    with pytest.raises(Refused, match="log was cleaned and goes on with event"):
        world.open()
    world = StartWorld(PLAIN_TABLE, PARTED)
    world.policy = replace(world.policy, start=world.source.current() + 1)
    world.side = type(world.side).of(world.policy, world.side.catalog, world.ledger, world.storage)
    world.replica = world.new_replica()
    with pytest.raises(Refused, match="newest event"):
        world.open()
    assert isinstance(world.journal, MemoryJournal)
    assert not world.ledger.tables()


def test_the_plan_of_a_start_changes_nothing() -> None:
    world = StartWorld(PLAIN_TABLE, PARTED)
    world.insert(b"more")
    part = world.source.the_table(PARTED).partitions["2",]
    world.writer.source.alter_partitions(PARTED, [replace(part, parameters={"k": "v"})])
    world.capture_all()
    before = world.target_store.current(), world.storage.changes
    found = explain_next_window(world.source_side, world.side, lambda: world.begin, None)
    assert {item.operation for item in found.other_calls} >= {"alter_table", "alter_partitions"}
    assert (found.reads, found.quarantined) == ((), ())
    assert [type(hop.operation) for group in found.groups for hop in group.plan.hops] == [Publish, AlterPartitions]
    assert (world.target_store.current(), world.storage.changes) == before
    assert not world.ledger.tables()
