"""Capture of messages of 10 MB: whatever a span weighs, it becomes durable piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.adapters.spark.contiguous import HoleInLog
from calque.adapters.spark.log_stream import LogEvents
from calque.core.events.rows import rows_of_events
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import Unavailable
from calque.model.journal import Event
from calque.model.names import Span
from support.memory.gaps import MemoryGaps
from support.memory.metastore import MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.heavy import MEGABYTE, CountingJournal, HeavyLog, heavy_events


class Site:
    def __init__(self, log: HeavyLog) -> None:
        self.log, self.journal = log, CountingJournal()
        source = SourceSide(
            "hq",
            log,
            MemoryCatalog(MemoryMetastore()),
            self.journal,
            MemoryEvidence(),
            MemoryStorage(),
            gaps=MemoryGaps(),
        )
        self.capture = Capture(source, 0, EvidenceGatherer(source, lambda _: True), Continuity(source, 0))


def rows(events: Sequence[Event]) -> pa.Table:
    return rows_of_events(events)


def test_a_span_is_appended_in_pieces_of_bounded_weight() -> None:
    site = Site(HeavyLog(heavy_events(20, 10 * MEGABYTE), 32 * MEGABYTE))
    site.capture.take(20)
    assert site.journal.appended == [(number, min(number + 2, 20)) for number in range(1, 21, 3)]


def test_small_messages_are_appended_at_once() -> None:
    site = Site(HeavyLog(heavy_events(1000, 100), 32 * MEGABYTE))
    site.capture.take(1000)
    assert site.journal.appended == [(1, 1000)]


def test_a_message_larger_than_a_piece_is_one() -> None:
    events = heavy_events(3, 80 * MEGABYTE)
    site = Site(HeavyLog(events, 32 * MEGABYTE))
    site.capture.take(3)
    assert site.journal.appended == [(1, 1), (2, 2), (3, 3)]


def test_what_was_read_before_the_log_failed_stays_and_is_not_read_again() -> None:
    reads = count(1)

    def fail() -> None:
        if next(reads) == 9:
            raise Unavailable("No")

    site = Site(HeavyLog(heavy_events(20, 10 * MEGABYTE), 20 * MEGABYTE, fail))
    with pytest.raises(Unavailable):
        site.capture.take(20)
    there = site.journal.last()
    assert there == 12
    assert site.capture.take(20) == 8
    assert [entry.event_id for entry in site.journal.entries(Span(0, 20))] == list(range(1, 21))
    assert site.journal.appended[-3:] == [(13, 15), (16, 18), (19, 20)]


def test_a_hole_in_the_log_stops_capture_behind_a_prefix() -> None:
    events = heavy_events(20, 10 * MEGABYTE)
    site = Site(HeavyLog([*events[:15], *events[16:]], 32 * MEGABYTE))
    with pytest.raises(Interrupted, match="After event 15 the log goes on with event 17"):
        site.capture.read_on(20)
    assert site.journal.last() == 12


def test_a_batch_ends_once_its_rows_weigh_enough() -> None:
    site = Site(HeavyLog(heavy_events(40, MEGABYTE), 2 * MEGABYTE))
    brought = pa.Table.from_batches(list(LogEvents(site.log).pages(Span(0, 40), 10 * MEGABYTE)))
    assert brought["event_id"].to_pylist() == list(range(1, 11))
    site.log.answers.clear()
    assert site.capture.append(brought) == 10
    assert (site.log.answers, site.journal.appended) == ([], [(1, 10)])


def test_what_the_journal_lacks_before_a_batch_is_read_from_the_log() -> None:
    site = Site(HeavyLog(heavy_events(40, 100), 2 * MEGABYTE))
    brought = pa.Table.from_batches(list(LogEvents(site.log).pages(Span(20, 40), 10 * MEGABYTE)))
    assert site.capture.append(brought) == 20
    assert site.journal.appended == [(1, 20), (21, 40)]


def test_rows_that_come_again_are_compared_with_the_journal_and_passed_over() -> None:
    events = heavy_events(10, 100)
    site = Site(HeavyLog(events, MEGABYTE))
    site.capture.take(6)
    assert site.capture.append(rows(events)) == 4
    assert site.journal.appended == [(1, 6), (7, 10)]
    others = [replace(event, event_time=event.event_time + 1) if event.event_id == 5 else event for event in events]
    with pytest.raises(Interrupted, match="Event 5 is not the one that was read before"):
        site.capture.append(rows(others))


def test_rows_that_come_again_and_that_retention_has_taken_are_passed_over() -> None:
    events = heavy_events(10, 100)
    site = Site(HeavyLog(events, MEGABYTE))
    site.capture.take(10)
    site.journal.forget(4)
    assert site.capture.append(rows(events)) == 0


def test_a_reader_finds_a_hole_behind_a_short_answer() -> None:
    events = heavy_events(20, MEGABYTE)
    log = HeavyLog([*events[:7], *events[8:]], 2 * MEGABYTE)
    with pytest.raises(HoleInLog, match="event 9"):
        list(LogEvents(log).pages(Span(0, 20), 100 * MEGABYTE))


def test_rows_that_do_not_ascend_are_not_taken() -> None:
    events = heavy_events(3, 10)
    site = Site(HeavyLog(events, MEGABYTE))
    with pytest.raises(Interrupted, match="After event 2 it goes on with event 2"):
        site.capture.append(rows([*events[:2], *events[1:]]))
