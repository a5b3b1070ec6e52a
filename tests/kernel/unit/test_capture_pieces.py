"""Capture of messages of 10 MB: whatever a span weighs, it becomes durable piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa
import pytest

from calque.adapters.spark.contiguous import HoleInLog
from calque.adapters.spark.log_source import pages
from calque.core.events.rows import rows_of_events
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import Unavailable
from calque.model.journal import Event
from calque.model.names import EventId, Span
from calque.plugins.dumps.adapters.held_evidence import MemoryEvidence
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


def ids(batches: Iterator[pa.RecordBatch]) -> list[EventId]:
    return [event_id for batch in batches for event_id in batch.column(0).to_pylist()]


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


def test_a_task_ends_when_it_brought_its_share_and_the_rest_is_read_on_the_driver() -> None:
    events = heavy_events(40, MEGABYTE)
    site = Site(HeavyLog(events, 2 * MEGABYTE))
    first, second = (pages(site.log, span, 1000, 10 * MEGABYTE) for span in (Span(0, 20), Span(20, 40)))
    brought = pa.Table.from_batches([*first, *second])
    assert brought["event_id"].to_pylist() == [*range(1, 11), *range(21, 31)]
    site.capture.append(brought)
    assert site.journal.appended == [(1, 10), (11, 20), (21, 30)]
    assert site.capture.take(40) == 10
    assert [entry.event_id for entry in site.journal.entries(Span(0, 40))] == list(range(1, 41))


def test_tasks_that_bring_all_leave_nothing_to_read() -> None:
    site = Site(HeavyLog(heavy_events(2000, 100), 2 * MEGABYTE))
    brought = pa.Table.from_batches(list(pages(site.log, Span(0, 2000), 1000, 10 * MEGABYTE)))
    site.log.answers.clear()
    assert site.capture.append(brought) == 2000
    assert (site.log.answers, site.journal.appended) == ([], [(1, 2000)])


def test_a_task_finds_a_hole_behind_a_short_answer() -> None:
    events = heavy_events(20, MEGABYTE)
    log = HeavyLog([*events[:7], *events[8:]], 2 * MEGABYTE)
    with pytest.raises(HoleInLog, match="event 9"):
        ids(pages(log, Span(0, 20), 1000, 100 * MEGABYTE))


def test_rows_that_do_not_ascend_are_not_taken() -> None:
    events = heavy_events(3, 10)
    site = Site(HeavyLog(events, MEGABYTE))
    with pytest.raises(Interrupted, match="After event 2 it goes on with event 2"):
        site.capture.append(rows([*events[:2], *events[1:]]))
