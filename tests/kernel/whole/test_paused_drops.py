"""What held back tables lost at the source without an event that says so is counted before it is dropped, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.engine.exact_reads.coordinator import SETTLED
from calque.engine.replica.replica import Replica
from calque.model.hive import Function
from calque.model.names import TableName
from calque.model.records import DropReview, ReadMode
from support.worlds.gapped import POLICY, add, at_target, create, drop, drops_of, filled, held
from support.worlds.histories import differences
from support.worlds.worlds import World

PAUSED = ("t0", "t1", "t2")
ALL = ["plain", "t0", "t1", "t2", "t3", "t4", "t5"]


class Pausing(World):
    """`takes` are held back, also after a new start."""

    takes: Callable[[TableName], bool] = staticmethod(lambda _: False)

    def new_replica(self) -> Replica:
        replica = super().new_replica()
        replica.pause_rules.takes = self.takes
        return replica

    def go(self) -> None:
        for _ in range(8):
            self.capture_all()
            self.work()
            self.clock.now += 10**9

    def pause(self, *names: str) -> None:
        self.takes = lambda name: name.table in names
        self.replica.hold_back(self.takes)


@pytest.fixture
def world() -> Pausing:
    found = filled(Pausing(1, policy=POLICY))
    found.pause(*PAUSED)
    found.go()
    return found


def test_a_gap_while_tables_are_paused_is_counted_before_they_go_on(world: Pausing) -> None:
    drop(world, *PAUSED)
    world.lose()
    world.go()
    world.pause()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), ALL)


def test_a_death_before_all_is_counted_forgets_nothing_of_paused_tables(world: Pausing) -> None:
    drop(world, *PAUSED)
    world.lose()
    world.capture_all()
    world.window_alone()
    world.restart()
    world.go()
    world.pause()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), ALL)


def test_nor_of_those_that_went_on_before_it(world: Pausing) -> None:
    drop(world, *PAUSED)
    world.lose()
    world.capture_all()
    world.window_alone()
    world.pause()
    world.window_alone()
    world.restart()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), ALL)


def test_what_the_journal_let_go_of_is_counted(world: Pausing) -> None:
    drop(world, *PAUSED)
    world.go()
    world.forget()
    world.pause()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), ALL)
    assert world.replica.reads.release_drops(lambda _: True) == [TableName("d1", name) for name in PAUSED]
    world.settle()
    world.settle()
    assert differences(world) == []
    assert world.problems == []


def test_few_drops_that_the_journal_let_go_of_do_not_wait(world: Pausing) -> None:
    drop(world, "t0", "t1")
    add(world, "t2", "more")
    world.go()
    world.forget()
    world.pause()
    world.settle()
    assert (held(world), differences(world), world.problems) == ([], [], [])


def test_what_goes_on_beside_a_comparison_is_counted_after_it(world: Pausing) -> None:
    """Of these `t2` went on before, and the process dies in between."""
    drop(world, *PAUSED)
    world.go()
    world.forget()
    create(world, "late")
    world.capture_all()
    world.replica.reads.read_all_again("asked for by bootstrap")
    world.pause("t2")
    world.window_alone()
    world.pause()
    world.window_alone()
    world.restart()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), sorted([*ALL, "late"]))


def test_what_was_asked_for_while_they_were_paused_does_not_let_drops_go(world: Pausing) -> None:
    read = world.replica.reads.reread(lambda name: name.table == "t0", "asked for by repair", SETTLED, ReadMode.LOOK)
    assert len(read) == 1
    drop(world, *PAUSED)
    world.lose()
    world.pause()
    world.go()
    world.restart()
    world.go()
    assert (held(world), at_target(world)) == (list(PAUSED), ALL)
    world.replica.reads.release_drops(lambda _: True)
    world.settle()
    assert (differences(world), world.side.read_requests.reasons()) == ([], {})


def test_while_drops_wait_a_second_count_does_not_end_it(world: Pausing) -> None:
    world.writer.source.create_function(Function("f", "d1", "org.F", "me", 1, type=1))
    world.pause()
    world.settle()
    drop(world, *PAUSED)
    world.writer.source.drop_function(TableName("d1", "f"))
    world.lose()
    world.go()
    world.replica.reads.read_all_again("asked for by bootstrap")
    world.go()
    assert (held(world), world.target_store.functions("d1")) == (list(PAUSED), ["f"])
    assert drops_of(world) is DropReview.HELD
    world.replica.reads.release_drops(lambda _: True)
    world.settle()
    world.settle()
    assert (differences(world), world.target_store.functions("d1")) == ([], [])
