"""When the source of a query waits for events, which it reads, and which offset it says."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pytest

from calque.adapters.spark.contiguous import EventRepeated, HoleInLog
from calque.adapters.spark.event_source import EventReader, EventStream
from calque.adapters.spark.journal_stream import SCHEMA, JournalEvents
from calque.adapters.spark.log_stream import LogEvents
from calque.core.events import rows
from calque.core.events.keys import entry_of
from calque.errors import Unavailable
from calque.model.journal import Event
from calque.model.names import EventId
from support.memory.journal import MemoryJournal


def event(event_id: EventId, size: int = 0) -> Event:
    return Event(event_id, 1_700_000_000, "OPEN_TXN", "hive", "", "", "json-2.0", "x" * size)


@dataclass
class Log:
    """An `EventLog` of these events that counts how often it is asked for its newest one."""

    events: list[Event] = field(default_factory=list)
    asked: int = 0
    silent: int = 0
    """So many questions are not answered."""

    def current(self) -> EventId:
        self.asked += 1
        if self.silent:
            self.silent -= 1
            raise Unavailable("The log does not answer", "It is down", "Wait")
        return self.events[-1].event_id if self.events else 0

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        return [event for event in self.events if event.event_id > after][:limit]


def reader(log: Log, starting: EventId = 0, **bounds: int) -> EventReader:
    events = LogEvents(log, page=10)
    return EventReader(EventStream(lambda: events, rows.SCHEMA, starting, poll=0.005, wait=0.05, **bounds))


def ids(batches: Iterator[pa.RecordBatch]) -> list[EventId]:
    return [event_id for batch in batches for event_id in batch["event_id"].to_pylist()]


def read(source: EventReader, after: EventId) -> tuple[list[EventId], EventId]:
    batches, end = source.read({"event_id": after})
    return ids(batches), end["event_id"]


def test_the_rows_of_a_batch_are_the_events_between_its_offsets() -> None:
    source = reader(Log([event(number) for number in range(1, 26)]))
    assert source.initialOffset() == {"event_id": 0}
    assert read(source, 0) == (list(range(1, 26)), 25)
    assert read(source, 20) == (list(range(21, 26)), 25)


def test_without_news_a_read_has_no_rows_and_its_end_is_its_start() -> None:
    log = Log([event(1)])
    source = reader(log)
    assert (read(source, 1), log.asked) == (([], 1), 1)
    began = time.monotonic()
    assert read(source, 1) == ([], 1)
    assert time.monotonic() - began >= 0.05
    assert log.asked > 2


def test_a_batch_has_a_bounded_number_of_events_and_of_bytes() -> None:
    log = Log([event(number, 100) for number in range(1, 101)])
    assert read(reader(log, max_events=40), 0) == (list(range(1, 41)), 40)
    assert read(reader(log, max_bytes=2_500), 0)[1] == 30


def test_rows_can_be_had_again_from_their_offsets_alone() -> None:
    log = Log([event(number, 100) for number in range(1, 101)])
    first, end = reader(log, max_bytes=2_500).read({"event_id": 5})
    again = reader(log, max_bytes=10).readBetweenOffsets({"event_id": 5}, end)
    assert pa.Table.from_batches(list(again)).equals(pa.Table.from_batches(list(first)))


def test_the_rows_that_spark_holds_can_be_read_more_than_once() -> None:
    """Spark copies the iterator whenever it plans the batch."""
    batches, _ = reader(Log([event(number) for number in range(1, 26)])).read({"event_id": 0})
    assert ids(copy.copy(batches)) == ids(copy.copy(batches)) == list(range(1, 26))


def test_a_log_that_does_not_answer_is_asked_again() -> None:
    log = Log([event(1)], silent=4)
    source = reader(log)
    assert read(source, 0) == ([], 0)
    assert read(source, 0) == ([1], 1)
    assert log.asked == 5


@pytest.mark.parametrize(
    ("there", "kind", "text"),
    [
        ([1, 2, 3, 7], HoleInLog, "The log has a gap: events 4 to 6 are missing"),
        ([5, 6], HoleInLog, "The log has a gap: events 1 to 4 are missing"),
        ([1, 2, 2, 3], EventRepeated, "The log gave event 2 after event 2"),
    ],
    ids=["a gap", "a purged log", "a duplicate"],
)
def test_a_log_that_does_not_go_on_one_by_one_is_not_read(
    there: list[EventId], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        reader(Log([event(number) for number in there])).read({"event_id": 0})


def test_a_log_that_went_back_is_not_read() -> None:
    with pytest.raises(HoleInLog, match="The log went back: it ends at event 1, but event 50 was read already"):
        reader(Log([event(1)])).read({"event_id": 50})


def test_a_duplicate_at_the_end_of_a_page_is_found() -> None:
    with pytest.raises(EventRepeated):
        reader(Log([event(number) for number in [*range(1, 11), 10, 11]])).read({"event_id": 0})


def log_of(number: int) -> LogEvents:
    return LogEvents(Log([event(number)]))


def test_a_reader_travels_as_its_description() -> None:
    source = EventReader(EventStream(partial(log_of, 1), rows.SCHEMA, 0))
    source.read({"event_id": 0})
    assert read(pickle.loads(pickle.dumps(source)), 0) == ([1], 1)


def journal(upto: EventId) -> MemoryJournal:
    filled = MemoryJournal()
    filled.append(rows.rows_of_events([event(number, 50) for number in range(1, upto + 1)]))
    return filled


def test_rows_of_the_journal_are_its_entries() -> None:
    source = EventReader(EventStream(lambda: JournalEvents(journal(30)), SCHEMA, 10, poll=0.005, wait=0.05))
    batches, end = source.read(source.initialOffset())
    assert end == {"event_id": 30}
    found = rows.entries_of(pa.Table.from_batches(list(batches)))
    assert list(found) == [entry_of(event(number, 50)) for number in range(11, 31)]


def test_a_journal_that_lost_its_end_is_waited_for() -> None:
    source = EventReader(EventStream(lambda: JournalEvents(journal(3)), SCHEMA, 10, poll=0.005, wait=0.05))
    assert read(source, 10) == ([], 10)
