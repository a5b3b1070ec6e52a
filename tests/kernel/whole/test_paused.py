"""Tables that are held back stay as they are while everything else goes on, and catch up afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.control.pause_rules import PauseAction, Rules, chosen_by, with_rules
from calque.core.records.lifecycle import State
from calque.core.records.reached_state import ReachedState, reached_state
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR
from calque.model.ledger import TableState
from calque.model.names import TableName
from kernel.whole.test_staging import LARGE, SMALL, SlowWorld
from support.worlds.histories import differences

NEW, RENAMED = TableName("d1", "new"), TableName("d1", "renamed")


class Held(SlowWorld):
    """`large` is held back."""

    takes: Callable[[TableName], bool] = staticmethod(LARGE.__eq__)

    def __init__(self, consistency: str = "table") -> None:
        super().__init__(consistency)
        self.replica.hold_back(self.takes)

    def new_replica(self):  # type: ignore[no-untyped-def]
        replica = super().new_replica()
        replica.copies.bytes_per_second = 1e9
        if hasattr(self, "replica"):
            replica.pause_rules.takes = self.takes
        return replica

    def go(self) -> None:
        """Windows and reads, until nothing new comes of them."""
        for _ in range(6):
            self.capture_all()
            self.work()
            self.clock.now += 10**9

    def state(self, name: TableName) -> TableState | None:
        row = self.ledger.tables().get(("table", *name))
        return row.state if row is not None else None

    def resume(self) -> None:
        self.takes = lambda _: False
        self.replica.hold_back(self.takes)
        self.settle()
        assert differences(self) == []
        assert self.problems == []
        assert not self.replica.tables.in_state(State.WAITING)


def rename(world: SlowWorld, name: TableName, to: TableName) -> None:
    table = world.source.the_table(name).table
    world.writer.source.alter_table(name, replace(table, database=to.database, name=to.table))


def test_a_held_table_stays_as_it_is_and_the_position_goes_on() -> None:
    world = Held()
    at = world.replica.epochs.position()
    world.insert(LARGE, b"x")
    world.insert(SMALL, b"xy")
    world.go()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 2)
    assert world.replica.epochs.position() == world.source.current()
    row = world.ledger.tables()["table", *LARGE]
    assert (row.state, row.shows, row.reason) == (TableState.WAITING, at, PAUSED_BY_OPERATOR)
    world.resume()
    assert world.shows(LARGE) == 1
    assert world.state(LARGE) == TableState.LIVE


def test_a_held_table_that_nothing_happened_to_is_set_aside_and_comes_back() -> None:
    world = Held()
    world.go()
    assert world.state(LARGE) == TableState.WAITING
    world.insert(SMALL, b"x")
    world.go()
    world.resume()
    assert world.state(LARGE) == TableState.LIVE


def test_it_stays_held_across_a_restart_and_catches_up_after_another() -> None:
    world = Held()
    world.insert(LARGE, b"x")
    world.go()
    world.restart()
    world.insert(LARGE, b"xy")
    world.go()
    assert (world.shows(LARGE), world.state(LARGE)) == (0, TableState.WAITING)
    world.takes = lambda _: False
    world.restart()
    world.settle()
    assert (differences(world), world.problems) == ([], [])


def test_a_window_that_fails_while_it_catches_up_loses_nothing() -> None:
    world = Held()
    world.insert(LARGE, b"x")
    world.go()
    world.insert(SMALL, b"x")
    world.go()
    world.takes = lambda _: False
    world.replica.hold_back(world.takes)
    world.replica.tables.record(world.replica.epochs.record_states)
    world.restart()
    world.settle()
    assert (differences(world), world.problems) == ([], [])


def test_what_a_rename_links_to_a_held_table_waits_with_it() -> None:
    world = Held()
    world.insert(LARGE, b"x")
    world.go()
    rename(world, LARGE, RENAMED)
    world.insert(RENAMED, b"xy")
    world.go()
    assert world.target_states()[RENAMED] is None
    assert {world.state(LARGE), world.state(RENAMED)} == {TableState.WAITING}
    for _ in range(2):
        world.restart()
        world.insert(SMALL, b"x")
        world.go()
        assert {world.state(LARGE), world.state(RENAMED)} == {TableState.WAITING}
    assert world.shows(LARGE) == 0
    world.resume()
    assert world.shows(RENAMED) == 3
    assert world.state(LARGE) is None


def test_a_table_that_is_dropped_while_it_is_held_goes_afterwards() -> None:
    world = Held()
    world.writer.source.drop_table(LARGE)
    world.go()
    assert world.target_states()[LARGE] is not None
    world.resume()
    assert world.target_states()[LARGE] is None


def test_a_table_that_is_made_while_its_name_is_held_comes_afterwards() -> None:
    world = Held()
    world.replica.hold_back(lambda name: name == NEW)
    world.create(NEW)
    world.insert(NEW, b"x")
    world.go()
    assert world.target_states()[NEW] is None
    assert world.state(NEW) == TableState.WAITING
    world.resume()
    assert world.shows(NEW) == 1


def test_a_held_table_that_must_be_read_is_read_afterwards_and_keeps_nobody_from_the_first_epoch() -> None:
    world = Held()
    world.ledger = type(world.ledger)()
    world.restart_replica(world.ledger)
    world.go()
    assert world.replica.epochs.position() == world.source.current()
    assert (world.state(LARGE), world.state(SMALL)) == (TableState.UNKNOWN, TableState.LIVE)
    assert reached_state(world.replica.epochs.position(), world.ledger.tables().values(), 1).missing == (str(LARGE),)
    world.restart()
    world.go()
    assert world.state(LARGE) == TableState.UNKNOWN
    world.resume()
    assert world.state(LARGE) == TableState.LIVE


def test_a_read_that_is_asked_for_of_a_held_table_waits() -> None:
    world = Held()
    asked = {State.LIVE, State.PAUSED}
    assert world.replica.reads.reread(lambda name: name == LARGE, "asked for by repair", asked) == [LARGE]
    world.go()
    assert world.state(LARGE) == TableState.WAITING
    world.resume()
    assert world.side.read_requests.reasons() == {}


def test_a_table_that_the_journal_does_not_reach_back_to_is_read() -> None:
    world = Held()
    world.insert(LARGE, b"x")
    for _ in range(3):
        world.insert(SMALL, b"x")
    world.go()
    world.journal.forget(world.source.current())
    world.resume()
    assert world.shows(LARGE) == 1


def test_what_is_copied_beside_the_windows_ends_first() -> None:
    world = Held()
    world.replica.hold_back(lambda _: False)
    world.settle()
    world.replica.copies.bytes_per_second = 1e-3
    world.insert(LARGE, b"x")
    world.capture_all()
    world.window()
    world.replica.hold_back(world.takes)
    world.insert(LARGE, b"xy")
    world.go()
    assert world.shows(LARGE) == 1
    assert world.ledger.tables()["table", *LARGE].reason == PAUSED_BY_OPERATOR
    world.replica.copies.bytes_per_second = 1e9
    world.resume()


def test_with_one_chain_for_a_database_all_of_it_waits() -> None:
    world = Held("database")
    world.insert(SMALL, b"x")
    world.go()
    assert world.shows(SMALL) == 0
    assert str(LARGE) in world.ledger.tables()["table", *SMALL].reason
    world.resume()
    assert world.shows(SMALL) == 1


def test_who_waits_for_an_event_is_told_of_held_tables_alone() -> None:
    world = Held()
    world.insert(LARGE, b"x")
    world.go()
    found = reached_state(world.replica.epochs.position(), world.ledger.tables().values(), world.source.current())
    assert (found.state, found.missing) == (ReachedState.WITHOUT, (str(LARGE),))


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ((), ""),
        ((("pause", "d1.*"),), "abc"),
        ((("pause", "d1.*"), ("resume", "d1.a")), "bc"),
        ((("pause", "d1.*"), ("resume", "d1.a"), ("pause", "d1.a")), "abc"),
        ((("pause", "d1.a"), ("pause", "d1.b"), ("resume", "d1.a")), "b"),
        ((("pause", "d1.a"), ("resume", "*.*")), ""),
        ((("resume", "d1.a"), ("pause", "/d1[.][ab]/")), "ab"),
    ],
)
def test_the_last_pattern_that_matches_decides(given: tuple[tuple[str, str], ...], held: str) -> None:
    rules: Rules = ()
    for rule, pattern in given:
        rules = with_rules(rules, PauseAction(rule), [pattern])
    assert "".join(name for name in "abc" if chosen_by(rules)(TableName("d1", name))) == held
    assert bool(rules) == bool(held)


def test_while_the_target_is_held_back_no_read_begins() -> None:
    world = Held()
    world.takes = lambda _: False
    world.replica.hold_back(world.takes)
    world.settle()
    at = world.target_store.current()
    world.replica.pause_rules.is_target_paused = lambda: True
    world.replica.reads.reread(lambda name: name == SMALL, "asked for by repair", {State.LIVE})
    world.go()
    assert (world.state(SMALL), world.target_store.current()) == (TableState.UNKNOWN, at)
    world.replica.pause_rules.is_target_paused = lambda: False
    world.resume()
