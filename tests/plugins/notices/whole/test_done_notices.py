"""A notice that a set is done at a target comes when the set is done there, and behind what it is done by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from calque.model.ledger import Epoch, TableState
from calque.model.names import TableName
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.target_view import target_view
from calque.plugins.notices.engine.target_feed import TargetFeed
from calque.ports import Ledger
from kernel.whole.test_quarantine import REFUSED, Dislike, let_go, settled
from plugins.marks.whole.test_marks import Marked, T, U
from support.faults.picky import picky
from support.worlds.subscribers import Site, drain


class Told(Marked):
    """A world with marks and a channel at its target, which is looked at after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site(self.world)
        self.start()
        self.feed = self.new_feed()

    def new_feed(self) -> TargetFeed:
        world = self.world
        judge = MarkJudge(self.side, self.marks, lambda: target_view(world.ledger, world.gaps, world.side.admission))
        return self.site.target_feed(marks=self.marks, target_marks=judge)

    def hold(self, *names: TableName) -> None:
        self.world.replica.hold_back(names.__contains__)

    def go(self) -> None:
        for _ in range(6):
            self.world.capture_all()
            self.world.work()
            self.world.clock.now += 10**9
        drain(self.feed)

    def heard(self) -> list[tuple[str, str]]:
        """Type and what it says, of all notices so far."""
        return [(one["type"], one.get("condition") or one["table"]) for one in self.site.broker.notices()]

    def done(self) -> list[str]:
        return [what for kind, what in self.heard() if kind == "done"]


@pytest.fixture
def told() -> Iterator[Told]:
    found = Told()
    yield found
    assert found.world.problems == []


def test_of_a_table_that_is_held_back_it_comes_when_the_table_goes_on(told: Told) -> None:
    told.create(U)
    told.go()
    told.hold(T)
    told.go()
    told.add(T, "1", "1")
    told.mark()
    told.add(U, "2", "1")
    told.mark(U, ds="2")
    told.go()
    assert told.world.ledger.tables()["table", *T].state is TableState.WAITING
    assert told.done() == ["ds=2"]
    assert told.feed.position.pending == (1,)
    told.feed = told.new_feed()
    told.hold()
    told.world.settle()
    drain(told.feed)
    assert told.heard()[-2:] == [("add_partition", "t"), ("done", "ds=1")]


def test_of_a_table_that_is_quarantined_it_comes_when_it_is_released(told: Told) -> None:
    dislike = Dislike(REFUSED, lambda method, arguments: method == "create_table" and arguments[0].name == "u")
    picky(told.world, dislike)
    told.create(U)
    told.mark(U)
    settled(told.world)
    drain(told.feed)
    assert told.world.ledger.tables()["table", *U].state is TableState.QUARANTINED
    assert told.done() == []
    dislike.on = False
    let_go(told.world, str(U))
    settled(told.world)
    drain(told.feed)
    assert told.done() == ["ds=1"]


def test_of_a_table_that_is_renamed_it_comes_behind_the_rename(told: Told) -> None:
    told.add(T, "1", "1")
    told.mark()
    told.rename(T, U)
    told.go()
    assert told.heard() == [("alter_table", "u"), ("add_partition", "u"), ("done", "ds=1")]
    assert told.site.broker.notices()[-1]["table"] == "t"


def test_of_a_table_that_was_dropped_it_never_comes(told: Told) -> None:
    told.mark()
    told.source.drop_table(T)
    told.world.note()
    told.go()
    assert (told.done(), told.feed.position.pending) == ([], ())


class Late:
    """A ledger of which the first look does not see the newest epoch yet."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.looks = ledger, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    def last_epoch(self) -> Epoch | None:
        self.looks += 1
        last = self.ledger.last_epoch()
        return replace(last, epoch=last.epoch - 1) if last is not None and self.looks == 1 else last


def test_an_epoch_that_comes_while_marks_are_looked_at_goes_first(told: Told) -> None:
    told.add(T, "1", "1")
    told.mark()
    told.world.settle()
    told.feed.ledger = Late(told.world.ledger)  # type: ignore[assignment]
    drain(told.feed)
    assert told.heard() == [("add_partition", "t"), ("done", "ds=1")]
