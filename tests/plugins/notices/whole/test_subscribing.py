"""Whoever subscribes to marks gets each of them once, whenever it is made and whichever way it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from calque.model.names import TableName
from calque.notices import DoneNotices
from calque.plugins.marks.model import Mark
from calque.plugins.notices.core.channel import Channel
from calque.plugins.notices.core.notice import Occasion, SetDone
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.ports import Subscription
from support.memory.marks import MemoryMarks
from support.memory.notices import MemoryNoticeBroker

ORDERS, TOPIC = TableName("sales", "orders"), "hq.sales.orders"
POINTS = ("before", "subscribing", "subscribed", "reading", "read", "iterating")
"""Of a subscription, in their order."""
CHANNEL = Channel(
    "bus",
    "hq",
    "source",
    TopicTemplate("{source}.{database}.{table}", "hq"),
    Selection.of(("done",), ("*.*",), ()),
    "calque",
    "",
    lambda table: table,
)


class Moment:
    """A mark that is made at one point, and whose notice comes at once, or only at a later point."""

    def __init__(self, made: str, sent: str) -> None:
        self.made, self.sent = made, sent
        self.marks, self.broker = MemoryMarks(), MemoryNoticeBroker()

    def come(self, point: str) -> None:
        if point == self.made and not self.marks.last():
            mark = Mark(1, ORDERS, "r812", {"ds": "1"}, 812, 1, 2)
            assert self.marks.add(mark)
        if point == self.sent:
            for mark in self.marks.after(0):
                when = "2026-11-24T12:00:00.000+00:00"
                occasion = Occasion(f"hq:mark:{mark.number}", ORDERS, "700", mark.event_id, mark.event_id, when)
                self.broker.publish(list(CHANNEL.messages([SetDone(occasion, mark)], list)))

    # As a broker

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        self.come("subscribing")
        subscription = self.broker.subscribe(topics)
        self.come("subscribed")
        return subscription

    def publish(self, messages: object) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass

    # As what is known

    def known(self) -> Iterator[Mark]:
        self.come("reading")
        return iter(list(self.marks.after(0)))


def pairs() -> Iterator[tuple[str, str]]:
    """A notice comes no earlier than its mark."""
    for place, made in enumerate(POINTS):
        for sent in POINTS[place:]:
            yield made, sent


@pytest.mark.parametrize(("made", "sent"), list(pairs()))
def test_a_mark_that_is_made_at_any_point_of_a_subscription_comes_once(made: str, sent: str) -> None:
    moment = Moment(made, sent)
    moment.come("before")
    notices = DoneNotices(moment, TOPIC, ORDERS, {}, moment.known, moment.marks, timeout=0.2)
    moment.come("read")
    moment.come("iterating")
    assert [mark.number for mark in notices] == [1]
    assert list(notices) == []
    notices.close()


@pytest.mark.parametrize(
    ("condition", "numbers"), [({"ds": "1"}, [1]), ({"ds": "1", "region": "us"}, [1]), ({"ds": "2"}, []), ({}, [1])]
)
def test_only_marks_that_cover_the_condition_come(condition: dict[str, str], numbers: list[int]) -> None:
    for made in ("before", "read"):
        moment = Moment(made, made)
        moment.come("before")
        notices = DoneNotices(moment, TOPIC, ORDERS, condition, moment.known, moment.marks, timeout=0.1)
        moment.come("read")
        assert [mark.number for mark in notices] == numbers


def test_a_notice_that_comes_twice_is_one_mark() -> None:
    moment = Moment("before", "read")
    moment.come("before")
    notices = DoneNotices(moment, TOPIC, ORDERS, {}, lambda: (), moment.marks, timeout=0.2)
    moment.come("read")
    moment.come("read")
    assert [mark.number for mark in notices] == [1]
