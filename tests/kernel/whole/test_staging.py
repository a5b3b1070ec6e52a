"""Groups whose files take long to copy leave the window; nobody waits for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.engine.sides.sides import stoppable_source
from calque.errors import Unavailable
from calque.model.hive import Column, Database, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from support.memory.metastore import HIVE_4
from support.worlds.histories import PLAIN
from support.worlds.worlds import World

LARGE, SMALL = TableName("d1", "large"), TableName("d1", "small")
SIZE = 2000
"""Bytes that are many, at a byte each second."""


class SlowWorld(World):
    """Two live tables, of which `large` gets a file that takes long to copy."""

    def __init__(self, consistency: str = "table") -> None:
        super().__init__(0, HIVE_4, replace(PLAIN, consistency=consistency), patience=60.0)
        self.writer.source.create_database(Database("d1"))
        for name in (LARGE, SMALL):
            self.create(name)
        self.begin = self.capture.after = self.source.current()
        self.gatherer.resume(self.begin, self.begin)
        self.open()
        self.settle()

    def new_replica(self):  # type: ignore[no-untyped-def]
        replica = super().new_replica()
        replica.copies.bytes_per_second = 1.0
        return replica

    def create(self, name: TableName) -> None:
        location = f"file:/source/{name.table}"
        storage = Storage((Column("x", "int"),), location=location, serde=SerDe(parameters={}))
        self.writer.source.create_table(Table(name.table, name.database, storage=storage, parameters={}))

    def insert(self, name: TableName, content: bytes) -> None:
        path = f"{location_of(self.source.the_table(name).table)}/{self.source.current()}"
        self.storage.write(path, content)
        self.clock.now += 10_000_000
        self.writer.source.insert(name, [path])
        self.clock.now += 10_000_000

    def shows(self, name: TableName) -> int:
        """How many bytes the target shows."""
        state = self.target_states()[name]
        return sum(len(content) for _, content in state[1])

    def go_on(self) -> None:
        self.capture_all()
        self.window()


def test_a_large_copy_leaves_the_window_and_the_others_go_on() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.insert(SMALL, b"x")
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 1)
    assert world.replica.epochs.position() == world.source.current()
    row = world.ledger.tables()["table", *LARGE]
    assert row.state == TableState.WAITING
    assert "being copied" in row.reason
    world.insert(SMALL, b"xy")
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 3)
    world.read()
    assert world.shows(LARGE) == SIZE
    world.go_on()
    assert world.ledger.tables()["table", *LARGE].state == TableState.LIVE
    assert world.problems == []


def test_what_happens_meanwhile_is_shown_afterwards_in_order() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    world.insert(LARGE, b"x")
    world.go_on()
    renamed = TableName("d1", "renamed")
    world.writer.source.alter_table(LARGE, replace(world.source.the_table(LARGE).table, name="renamed"))
    world.go_on()
    assert world.shows(LARGE) == 0
    assert world.target_states()[renamed] is None
    world.settle()
    assert world.target_states()[LARGE] is None
    assert world.shows(renamed) == SIZE + 1
    assert world.problems == []
    assert world.reread == set()


def test_a_live_table_that_a_rename_links_to_it_waits_with_it() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    source, away = world.writer.source, TableName("d1", "away")
    source.alter_table(LARGE, replace(world.source.the_table(LARGE).table, name=away.table))
    source.alter_table(SMALL, replace(world.source.the_table(SMALL).table, name=LARGE.table))
    world.go_on()
    assert world.shows(LARGE) == 0
    assert world.target_states()[away] is None
    assert world.target_states()[SMALL] is not None
    world.read()
    world.go_on()
    assert world.shows(away) == SIZE
    assert world.target_states()[SMALL] is None
    world.settle()
    assert world.problems == []


def test_the_whole_database_waits_where_it_is_one_chain() -> None:
    world = SlowWorld("database")
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    world.insert(SMALL, b"x")
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 0)
    world.read()
    assert (world.shows(LARGE), world.shows(SMALL)) == (SIZE, 0)
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (SIZE, 1)
    assert [window.epoch.rebasing for window in world.windows if window.epoch is not None] == [()] * len(world.windows)


def test_a_new_start_goes_on_from_the_journal_without_reading_the_table_again() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    world.restart_replica(world.ledger)
    world.go_on()
    assert world.shows(LARGE) == 0
    world.read()
    world.settle()
    assert world.shows(LARGE) == SIZE
    assert world.reread == set()


def test_a_table_that_is_to_be_read_again_is_so_when_it_is_back() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    assert world.replica.reads.reread(lambda name: name == LARGE, "asked for", {State.WAITING}) == [LARGE]
    world.go_on()
    assert not world.replica.tables.is_(LARGE, {TableState.UNKNOWN})
    world.read()
    world.go_on()
    assert world.replica.tables.is_(LARGE, {TableState.UNKNOWN})
    world.settle()
    assert world.shows(LARGE) == SIZE


def test_files_that_vanish_meanwhile_are_passed_over() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.go_on()
    location = location_of(world.source.the_table(LARGE).table) or ""
    world.storage.remove([location])
    world.storage.make_directories([location])
    world.insert(LARGE, b"xyz")
    world.capture_all()
    world.read()
    world.settle()
    assert world.shows(LARGE) == 3
    assert world.problems == []


def test_a_long_copy_ends_when_calque_ends() -> None:
    world = SlowWorld()
    world.insert(LARGE, b"x" * SIZE)
    world.insert(LARGE, b"x" * (SIZE + 1))
    world.go_on()
    copied: list[str] = []

    def before(call: str, about: str) -> None:
        if call == "copy":
            copied.append(about)
            world.side.stopping.set()

    world.storage.before = before
    world.read()
    assert len(copied) == 1
    world.storage.before = lambda _call, _about: None
    world.restart_replica(world.ledger)
    world.go_on()
    world.read()
    world.settle()
    assert world.shows(LARGE) == 2 * SIZE + 1


def test_once_it_is_to_end_no_call_is_begun_and_nobody_waits() -> None:
    world = SlowWorld()
    side, source = world.side, stoppable_source(world.source_side, world.side.stopping)
    assert side.catalog.tables("d1")
    side.stopping.set()
    for call in (
        lambda: side.catalog.tables("d1"),
        lambda: source.catalog.tables("d1"),
        lambda: source.log.current(),
        lambda: source.storage.list([]),
        lambda: source.clock.sleep(1.0),
    ):
        with pytest.raises(Unavailable, match="calque ends"):
            call()
    world.open()
    assert side.catalog.tables("d1")
