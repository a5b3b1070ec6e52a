"""The journal as a Kafka topic (port `Journal`).

Each event is a record in one partition. The log's order decides which records count (`valid_records`), so writers that
race, repeat themselves or die leave no record that a reader would take twice or miss. Retention is the topic's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa

from calque.core.events.decode import weight_of_message
from calque.core.events.rows import ENTRY_COLUMNS, SCHEMA, entries_of, events_of
from calque.core.records.continuity import check_continues, check_there, first_and_last
from calque.core.records.weight import first_ones
from calque.errors import Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.plugins.kafka.adapters.client.errors import RecordsLost
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.codec import codec
from calque.plugins.kafka.adapters.journal.find_offsets import PastReader
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo
from calque.plugins.kafka.adapters.journal.registry import NAME, registry_of
from calque.plugins.kafka.adapters.journal.tail import TopicTail, Value
from calque.plugins.kafka.adapters.journal.valid_records import CountedValue, in_sequence

KEPT = 16 << 20
"""The most bytes of the newest rows that are kept in memory."""
AT_ONCE = 1_000
"""The most rows that become Arrow, or come from it, in one go."""
APART = 1_000
"""The most unwanted events between two wanted ones that are read over, so that both are read in one go."""
ABSENT: Mapping[str, object] = {
    **dict.fromkeys(("event_type", "catalog", "database", "table", "shape", "defect", "message_format", "message"), ""),
    **dict.fromkeys(("partitions", "others", "locations"), ()),
    **dict.fromkeys(("replaces", "columns_changed", "facets_only", "transactional"), False),
    "event_time": 0,
}
"""The values that stand for a missing value in columns that must have one."""
T = TypeVar("T")


class KafkaJournal:
    """The journal in `topic`, which the first append makes where it is missing. It connects when it is first used. Safe
    from several threads.

    An append is not atomic: of an append that failed, or whose writer died, the first rows may be there.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._lock, self._past_lock = threading.RLock(), threading.Lock()
        self._recent = RecentRows()
        self._first: tuple[int, int, CountedUpTo, EventId] | None = None
        self._schema_id: int | None = None
        self._given_up: EventId = 0
        """The last event of the appends that were not answered. Some of their records may still come."""
        self._tail = TopicTail(topic, topic.name, 0, in_sequence, self._recent.keep, self._recent.clear)
        self._past = PastReader(topic, topic.name, in_sequence, self._tail.truths)

    def __reduce__(self) -> tuple[type[KafkaJournal], tuple[Topic]]:
        return KafkaJournal, (self._topic,)

    def last(self) -> EventId | None:
        return self._look()[1].mark

    def oldest(self) -> EventId | None:
        return self._steadily(lambda: self._oldest(*self._look()))

    def append(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        first, last = first_and_last(rows)
        with self._lock:
            check_continues(self._tail.look().mark, first, self._topic.name, self._given_up)
            encode, schema = self._encoding()
            values = (
                Value(row["event_id"], (row["event_id"],) * 2, encode(storable(row)), schema) for row in to_rows(rows)
            )
            try:
                is_all_counted = self._tail.append(values)
            except Unavailable:
                self._given_up = max(self._given_up, last)
                raise
            if not is_all_counted:
                check_continues(self._tail.look().mark, first, self._topic.name, self._given_up)
                raise Unavailable(
                    f"Another process appends to the journal {self._topic.name} at the same time",
                    f"Not all of events {first} to {last} that were written just now count",
                    "Let one calque only capture into this journal; it is tried again",
                )

    def rows(self, span: Span) -> pa.Table:
        """Return the rows of the span without their messages. Raises `Refused` where a part of the span is not
        there."""
        return self._rows(range(span.after + 1, span.upto + 1), ENTRY_COLUMNS)

    def entries(self, span: Span) -> Sequence[Entry]:
        return tuple(entries_of(self.rows(span)))

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        return {event.event_id: event for event in events_of(self._rows(sorted(set(ids)), SCHEMA.names, most))}

    def forget(self, upto: EventId) -> int:  # noqa: ARG002
        """Forget nothing and return 0, because the topic's retention decides how long rows stay, and others may read
        them."""
        return 0

    def restart(self, event_id: EventId) -> None:
        with self._lock:
            self._tail.look()
            self._tail.restart(event_id)

    def close(self) -> None:
        """Close the connections. A later call connects again."""
        with self._lock, self._past_lock:
            self._tail.close()
            self._past.close()

    def _encoding(self) -> tuple[Callable[[Mapping[str, Any]], bytes], bytes]:
        """Return the function that encodes a row, and the schema's fingerprint to put beside it, empty without a
        registry. The registry is asked once."""
        row_codec = codec(NAME)
        if not self._topic.registry:
            return row_codec.encode, b""
        if self._schema_id is None:
            self._schema_id = registry_of(self._topic).register()
        return partial(row_codec.encode_registered, schema_id=self._schema_id), row_codec.newest

    def _rows(self, ids: Sequence[EventId], columns: Sequence[str], most: int | None = None) -> pa.Table:
        def read() -> pa.Table:
            if not ids:
                return table_of((), columns)
            low, end = self._look()
            oldest = self._oldest(low, end)
            check_there(ids[0], ids[-1], (end.mark or 0) + 1 if oldest is None else oldest, end.mark or 0)
            with self._lock:
                recent = self._recent.rows(ids)
            if recent is not None:
                return table_of(recent, columns, most)
            with self._past_lock:
                return table_of(self._past_rows(ids, end), columns, most)

        return self._steadily(read)

    def _past_rows(self, ids: Sequence[EventId], end: CountedUpTo) -> Iterator[CountedValue]:
        """Yield the rows with these ids from the topic. Raises `RecordsLost` where one is not there any more."""
        assert self._first is not None
        missing, lowest = set(ids), self._first[2]
        for run in runs(ids):
            start = self._past.before(run[0], lowest, end)
            for row in self._past.walk(start, end.offset):
                if row.mark in missing:
                    missing.remove(row.mark)
                    yield row
                if row.mark >= run[-1]:
                    break
        if missing:
            raise RecordsLost

    def _look(self) -> tuple[int, CountedUpTo]:
        with self._lock:
            end = self._tail.look()
            return self._tail.low, end

    def _oldest(self, low: int, end: CountedUpTo) -> EventId | None:
        start = max(low, end.begin)
        if start >= end.offset:
            return None
        with self._past_lock:
            if self._first is None or self._first[:2] != (end.begin, start):
                first = self._past.first(low, end)
                if first is None:
                    return None
                self._first = (end.begin, start, first[0], first[1].mark)
            return self._first[3]

    def _steadily(self, read: Callable[[], T]) -> T:
        """Call `read` again where retention removed what was being read, at most three times. Raises `Unavailable`
        after that."""
        for _ in range(3):
            try:
                return read()
            except RecordsLost:
                continue
        raise Unavailable(
            f"The journal {self._topic.name} could not be read",
            "What was being read was removed several times in a moment",
            "It is tried again",
        )


class RecentRows:
    """The newest rows by event id, up to `KEPT` bytes."""

    def __init__(self) -> None:
        self._rows: OrderedDict[EventId, CountedValue] = OrderedDict()
        self._bytes = 0

    def keep(self, row: CountedValue) -> None:
        self._rows[row.mark] = row
        self._bytes += len(row.stored)
        while self._bytes > KEPT:
            _, oldest = self._rows.popitem(last=False)
            self._bytes -= len(oldest.stored)

    def clear(self, _: CountedUpTo) -> None:
        self._rows.clear()
        self._bytes = 0

    def rows(self, ids: Sequence[EventId]) -> list[CountedValue] | None:
        """Return the rows with these ids, in order; None where one of them is not kept."""
        rows = [self._rows.get(event_id) for event_id in ids]
        return [row for row in rows if row is not None] if None not in rows else None


def to_rows(rows: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in rows.to_batches(max_chunksize=AT_ONCE):
        yield from batch.to_pylist()


def table_of(rows: Iterable[CountedValue], columns: Sequence[str], most: int | None = None) -> pa.Table:
    """Return these columns of the rows. With `most`, return only the first rows, up to that weight of messages in
    bytes. Rows are decoded in batches, so that a long span is never in memory as a whole as it was stored."""
    schema, decode = pa.schema([SCHEMA.field(name) for name in columns]), codec(NAME).decode
    decoded_rows, parts = first_ones((decode(row.value()) for row in rows), weight_of, most), list[pa.Table]()
    while part := [{name: row[name] for name in columns} for row in islice(decoded_rows, AT_ONCE)]:
        parts.append(pa.Table.from_pylist(part, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def weight_of(row: Mapping[str, Any]) -> int:
    return weight_of_message(row["message_format"], row["message"])


def storable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: ABSENT.get(name) if value is None else value for name, value in row.items()}


def runs(ids: Sequence[EventId]) -> Iterator[Sequence[EventId]]:
    """Split the ascending ids into runs that are each read in one go, wherever more than `APART` events lie between
    two."""
    start = 0
    for index in range(1, len(ids) + 1):
        if index == len(ids) or ids[index] - ids[index - 1] > APART:
            yield ids[start:index]
            start = index
