"""`calque replay`: what was touched after an event is looked at again, files included; nothing goes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.replica.replay import require_journal
from calque.errors import Refused
from calque.model.hive import location_of
from calque.model.names import TableName
from calque.model.records import ReadMode, ReadRequest, all_of
from kernel.whole.test_adopt import PARTED, PLAIN_TABLE, HandWorld
from kernel.whole.test_staging import LARGE, SIZE, SlowWorld
from support.memory.journal import MemoryJournal
from support.worlds.histories import differences


class Replayed(HandWorld):
    """Everything is live; then the plain table got a file."""

    def __init__(self) -> None:
        super().__init__()
        self.open()
        self.settle()
        self.after = self.source.current()
        self.storage.write("file:/source/plain/z", b"more")
        self.clock.now += 10_000_000
        self.writer.source.insert(PLAIN_TABLE, ["file:/source/plain/z"])
        self.clock.now += 60 * 10**9
        self.settle()

    def damage(self, name: TableName, partition: str = "") -> None:
        """Other bytes, the same size and time."""
        there: Any = self.parts()[partition] if partition else self.at_target(name)
        path = join(location_of(there) or "", "x")
        listed = self.storage.files([path])[path]
        self.storage.write(path, b"?" * listed.size)
        self.storage.date({path: listed.modified_ns})

    def replay(self, *names: TableName) -> list[TableName]:
        return self.replica.requests.replay.tables(
            self.after, lambda name: not names or name in names, "asked for by replay"
        )


def test_what_was_touched_since_is_looked_at_and_mended_and_nothing_else() -> None:
    world = Replayed()
    world.damage(PLAIN_TABLE)
    world.damage(PARTED, "2")
    assert world.replay() == [PLAIN_TABLE]
    world.settle()
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]
    assert world.target_states()[PARTED] != world.source_states()[PARTED]
    assert world.replica.reads.reread(lambda name: name == PARTED, "repair", {State.LIVE}, ReadMode.LOOK) == [PARTED]
    world.settle()
    assert differences(world) == []


def test_doing_it_again_changes_nothing() -> None:
    world = Replayed()
    before, changes = world.copied(), world.target_store.current()
    for _ in range(2):
        assert world.replay() == [PLAIN_TABLE]
        world.settle()
    assert (world.copied(), world.target_store.current()) == (before, changes)
    assert world.problems == []
    assert not world.replica.side.read_requests.requests


def test_a_table_counts_under_every_name_that_it_had() -> None:
    world = Replayed()
    renamed = TableName("d1", "renamed")
    world.writer.source.alter_table(PLAIN_TABLE, replace(world.source.the_table(PLAIN_TABLE).table, name="renamed"))
    world.settle()
    assert world.replay(PLAIN_TABLE) == [PLAIN_TABLE, renamed]
    world.settle()
    assert world.target_states()[PLAIN_TABLE] is None
    assert differences(world) == []
    assert world.problems == []


def test_databases_and_functions_are_made_anew_as_their_newest_event_has_them() -> None:
    world = Replayed()
    there = world.source.the_database("d1")
    world.writer.source.alter_database("d1", replace(there, description="newest", parameters={"k": "v"}))
    world.settle()
    world.target_store.alter_database("d1", replace(world.target_store.the_database("d1"), description="changed"))
    world.replay()
    assert world.target_store.the_database("d1").description == "newest"


def test_databases_and_functions_do_not_run_ahead_of_what_is_shown() -> None:
    world = Replayed()
    there = world.source.the_database("d1")
    for number in "123":
        world.writer.source.alter_database("d1", replace(there, description=number, parameters={"k": number}))
    world.capture_all()
    world.window(world.source.current() - 1)
    world.replay()
    assert world.target_store.the_database("d1").description == "2"


def test_nothing_is_replayed_from_a_journal_without_events() -> None:
    world = Replayed()
    world.source_side = replace(world.source_side, journal=MemoryJournal())
    with pytest.raises(Refused, match="The journal has no events yet"):
        require_journal(world.source_side, 0)


def test_what_is_beyond_the_journal_s_reach_is_refused() -> None:
    world = Replayed()
    for after in (world.begin - 1, world.source.current() + 1):
        world.after = after
        with pytest.raises(Refused, match="can't be replayed"):
            world.replay()
    world.after = world.source.current()
    assert world.replay() == []


def test_a_table_that_is_being_copied_is_read_when_it_is_back_whoever_dies_meanwhile() -> None:
    world = SlowWorld()
    after = world.source.current()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    assert world.replica.requests.replay.tables(after, lambda _: True, "asked for") == [LARGE]
    assert not world.replica.tables.is_(LARGE, {State.UNKNOWN})
    world.restart_replica(world.ledger)
    assert world.replica.tables.is_(LARGE, {State.UNKNOWN})
    world.settle()
    assert world.shows(LARGE) == SIZE
    assert not all_of(world.ledger.records(), ReadRequest)


def test_what_is_asked_for_while_a_table_is_read_is_done_by_another_read() -> None:
    world = Replayed()
    world.replica.reads.reread(lambda name: name == PLAIN_TABLE, "bootstrap", {State.LIVE})
    world.read()
    world.damage(PLAIN_TABLE)
    assert world.replay() == [PLAIN_TABLE]
    world.settle()
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]
