"""What the log of a metastore is asked for follows from what its messages weigh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import FIRST, ROW_BYTES, HiveLog
from calque.engine.sides.log_reads import events_after
from calque.errors import CallFailed
from calque.model.journal import Event
from calque.model.names import EventId
from support.services.logserver import LogServer, log_server
from support.sources.heavy import HeavyLog

PAGE_BYTES = 1 << 20
SMALL, LARGE, HUGE = 100, PAGE_BYTES // 4, 5 * PAGE_BYTES


def rows(*weights: int) -> list[Event]:
    return [row(number, weight) for number, weight in enumerate(weights, 1)]


def row(event_id: EventId, weight: int) -> Event:
    return Event(event_id, 1, "OPEN_TXN", "hive", "", "", "json-0.2", "x" * weight)


def ids(events: Iterable[Event]) -> list[EventId]:
    return [event.event_id for event in events]


@contextmanager
def served(events: list[Event], most: int = 1 << 30) -> Iterator[tuple[LogServer, HiveLog]]:
    with log_server(HeavyLog(events), most) as server:
        client = Client(server.uri, call_timeout=20)
        yield server, HiveLog(client, PAGE_BYTES)
        client.close()


def test_answers_grow_to_what_fits_and_shrink_again() -> None:
    events = rows(*[SMALL] * 2000, *[LARGE] * 30, *[SMALL] * 2000)
    with served(events) as (server, log):
        assert ids(events_after(log, 0, len(events))) == ids(events)
        small, large = PAGE_BYTES // (SMALL + ROW_BYTES), PAGE_BYTES // (LARGE + ROW_BYTES)
        assert server.asked[:2] == [FIRST, 8 * FIRST]
        assert max(server.asked) == 1000 < small
        assert large in server.asked
        assert len(server.asked) < 60
        assert server.given < 1.1 * len(events)


def test_a_short_answer_is_not_the_end_of_the_log() -> None:
    with served(rows(*[LARGE] * 20)) as (_, log):
        first = log.read(0, 1000)
        assert 0 < len(first) < 20
        assert ids(log.read(first[-1].event_id, 1000))[0] == len(first) + 1
        assert list(log.read(20, 1000)) == []


def test_what_the_last_events_weighed_is_remembered() -> None:
    with served(rows(*[LARGE] * 40)) as (server, log):
        assert len(list(events_after(log, 0, 20))) == 20
        server.asked.clear()
        log.read(20, 1000)
        assert server.asked == [PAGE_BYTES // (LARGE + ROW_BYTES)]


def test_an_answer_that_grows_too_heavy_is_given_up_and_asked_for_in_smaller_ones() -> None:
    with served(rows(*[SMALL] * 200, *[LARGE] * 100)) as (server, log):
        after = log.read(0, 100)[-1].event_id
        after = log.read(after, 185 - after)[-1].event_id
        server.asked.clear()
        found = ids(log.read(after, 100))
        assert found == list(range(after + 1, after + 1 + len(found)))
        assert len(server.asked) == 2
        assert server.asked[0] == 100
        assert len(found) in (server.asked[1], server.asked[1] - 1)


def test_an_event_that_is_heavier_than_any_answer_should_be_comes_alone_and_whole() -> None:
    events = rows(SMALL, HUGE, HUGE, HUGE, SMALL)
    with served(events) as (server, log):
        assert list(events_after(log, 0, 5)) == events
        assert server.asked[-3:].count(1) >= 2


def test_a_server_that_fails_is_asked_for_less() -> None:
    events = rows(*[SMALL] * 100)
    with served(events, most=10) as (server, log):
        assert ids(log.read(0, 1000)) == [1]
        assert server.asked == [FIRST, FIRST // 8]
        assert ids(events_after(log, 0, 100)) == ids(events)


def test_a_server_that_gives_nothing_fails() -> None:
    with served(rows(*[SMALL] * 100), most=0) as (server, log):
        with pytest.raises(CallFailed):
            log.read(0, 1000)
        assert server.asked == [FIRST, FIRST // 8, 1]
        server.most = 1000
        assert ids(events_after(log, 0, 100)) == list(range(1, 101))


def test_a_log_that_is_followed_is_asked_once_for_each_span() -> None:
    with served(rows(*[SMALL] * 50)) as (server, log):
        for upto in range(10, 51, 10):
            assert len(list(events_after(log, upto - 10, upto))) == 10
        assert server.asked == [11] * 5


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([SMALL, LARGE, PAGE_BYTES])), min_size=1, max_size=40),
    st.integers(1, 50),
)
@example([(0, SMALL)] * 3 + [(1, PAGE_BYTES)] * 5, 7)
def test_no_answer_that_is_short_ends_between_events_that_share_an_id(steps: list[tuple[int, int]], page: int) -> None:
    """As long as such events fit into one answer."""
    events = list[Event]()
    for step, weight in steps:
        events.append(row((events[-1].event_id if events else 1) + step, weight // 2 if step else SMALL))
    with served(events) as (_, log):
        assert list(events_after(log, 0, events[-1].event_id, page)) == events
