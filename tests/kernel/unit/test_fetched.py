"""Messages that many groups need are read together, and no more of them than fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from calque.engine.window.message_prefetch import PrefetchedMessages
from calque.errors import Unavailable
from calque.model.journal import Event
from calque.model.names import EventId
from calque.ports import Journal


@dataclass
class Counting:
    """A journal of messages as long as `sizes` says, which counts what it is asked for."""

    sizes: Sequence[int]
    asked: list[list[EventId]] = field(default_factory=list)
    down: bool = False

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        if self.down:
            raise Unavailable("The journal does not answer", "It is down", "Wait")
        self.asked.append([])
        for at in sorted(ids):
            if most is None or sum(self.sizes[at] for at in self.asked[-1]) < most:
                self.asked[-1].append(at)
        return {at: Event(at, 0, "INSERT", "", "", "", "", "x" * self.sizes[at]) for at in self.asked[-1]}

    def last(self) -> EventId:
        return len(self.sizes) - 1


def fetched(
    journal: Counting, wanted: Mapping[EventId, Sequence[EventId]], budget: int = 1 << 20
) -> PrefetchedMessages:
    return PrefetchedMessages(cast(Journal, journal), wanted, budget)


def test_messages_of_many_groups_are_read_together_and_each_one_once() -> None:
    journal = Counting([10] * 91)
    found = fetched(journal, {at: [at, 91 - at] for at in range(1, 41)})
    for at in range(1, 41):
        at_hand = found.take(at)
        assert sorted(at_hand.events([at, 91 - at])) == [at, 91 - at]
    assert len(journal.asked) == 1
    assert len(journal.asked[0]) == 80
    assert found.held == {}


def test_no_more_is_held_than_fits_once_sizes_are_known() -> None:
    journal = Counting([50_000] * 201)
    found, most = fetched(journal, {at: [at] for at in range(1, 201)}), 0
    for at in range(1, 201):
        assert found.take(at).events([at])[at].event_id == at
        most = max(most, sum(len(event.message) for held in found.held.values() for event in held.values()))
    assert 0 < most <= 1 << 20
    assert len(journal.asked) < 30


def test_messages_that_grow_suddenly_are_left_for_later() -> None:
    journal = Counting([1000] * 100 + [600_000] * 10)
    found = fetched(journal, {at: [at] for at in range(109, 0, -1)})
    held = 0
    for at in range(109, 0, -1):
        assert found.take(at).events([at])[at].event_id == at
        held = max(held, sum(len(event.message) for each in found.held.values() for event in each.values()))
    assert held <= 1 << 20


def test_a_group_that_wants_more_than_fits_reads_by_itself() -> None:
    journal = Counting([10_000] * 400)
    found = fetched(journal, {1: range(1, 300), 300: [300]})
    at_hand = found.take(1)
    assert journal.asked == []
    assert len(at_hand.events(range(1, 300))) == 299
    assert found.take(300).events([300])[300].event_id == 300


def test_a_journal_that_does_not_answer_is_asked_again_by_the_next_one() -> None:
    journal = Counting([10] * 3, down=True)
    found = fetched(journal, {1: [1], 2: [2]})
    with pytest.raises(Unavailable):
        found.take(1)
    journal.down = False
    assert list(found.take(2).events([2])) == [2]


def test_whatever_else_is_asked_is_the_journals_to_answer() -> None:
    found = fetched(Counting([10] * 9), {1: [1]})
    at_hand = found.take(1)
    assert at_hand.last() == 8
    assert sorted(at_hand.events([1, 5])) == [1, 5]
