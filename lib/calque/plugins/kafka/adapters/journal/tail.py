"""The end of a topic: which records count there now, and new records behind them.

Nothing is believed from memory alone: each look asks the broker where the topic ends, and reads the records that came.
Each value that was read and counts is given to `on_value`. Where the values given before are void, because the topic
began anew, was truncated, was made anew or went far ahead, `on_clear` is called first, with the place where counting
goes on. Nothing here is safe from several threads at once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from calque.errors import Broken, Unavailable
from calque.model.names import EventId
from calque.plugins.kafka.adapters.client.create_topics import make_topics
from calque.plugins.kafka.adapters.client.errors import PATIENCE, RecordsLost
from calque.plugins.kafka.adapters.client.partition import Fetcher, Sender
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.codec import codec
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo, Record, cut
from calque.plugins.kafka.adapters.journal.known_positions import TopicFacts
from calque.plugins.kafka.adapters.journal.valid_records import Count, CountedValue, Rule

FAR = 10_000
"""The most records since the last look that are read. Above it they are passed over, and counting begins at the end."""
SLICE, SLICE_BYTES = 5_000, 16 << 20
"""The most records, and bytes of them, that are sent at once."""
NOTHING = CountedUpTo(0, 0, None)


@dataclass(frozen=True, slots=True)
class Value:
    """A value to append. `events` are the lowest and highest event id that it is about; None for none."""

    mark: EventId
    events: tuple[EventId, EventId] | None
    data: bytes
    schema: bytes = b""
    """The schema's fingerprint where `data` names the schema by an id of a registry; else empty."""


class TopicTail:
    """The end of topic `name`. `position` is the partition of the topic of positions in which it notes where the topic
    ends. `rule` says which records count."""

    def __init__(
        self,
        topic: Topic,
        name: str,
        position: int,
        rule: Rule,
        on_value: Callable[[CountedValue], None],
        on_clear: Callable[[CountedUpTo], None],
    ) -> None:
        self._topic, self._name, self._position, self._rule = topic, name, position, rule
        self._on_value, self._on_clear = on_value, on_clear
        self._fetcher, self._sender = Fetcher(topic, name), Sender(topic, name)
        self._count: Count | None = None
        self.low = 0
        """The first offset that the topic had at the last look."""
        self.truths = TopicFacts()

    def look(self) -> CountedUpTo:
        """Read the records that came since the last look, and return what counts up to the topic's end. Raises
        `Unavailable`, `Broken`."""
        for _ in range(3):
            ends = self._fetcher.ends()
            if ends is None:
                self._forget()
                self.low = 0
                return NOTHING
            try:
                return self._read_on(*ends).counted_up_to
            except RecordsLost:
                self._forget()
        raise Unavailable(
            f"The topic {self._name} changes faster than it is read",
            "Its beginning or its end was removed several times in a moment",
            "It is tried again",
        )

    def append(self, values: Iterable[Value]) -> bool:
        """Append the values durably behind the end that `look` returned. Return False where another writer came first,
        so that some of them do not count; every reader passes over those. Raises `Unavailable`."""
        self._there()
        for values_at_once in self._slices(values):
            count = self._current()
            group = secrets.token_hex(4).encode()
            records = [
                record
                for number, value in enumerate(values_at_once)
                for record in cut(
                    Record(0, value.mark, count.clean, value.data, value.events, schema=value.schema),
                    self._sender.limit(),
                    b"%b.%d" % (group, number),
                )
            ]
            if not self._send(records):
                return False
        self._note()
        return True

    def restart(self, event_id: EventId) -> None:
        """Let the topic begin anew behind event `event_id`; call `look` before. Older records are dead then. Raises
        `Unavailable` where another writer let it begin anew at the same time."""
        self._there()
        begin = self._current().counted_up_to.begin
        # A reader that goes by a registry takes every value for an event, so this one is empty: the headers say all.
        value = b"" if self._topic.registry else codec("restart").encode({"event_id": event_id})
        if not self._send([Record(0, event_id, self._current().clean, value, None, restart=True)]):
            raise Unavailable(
                f"The topic {self._name} did not begin anew behind event {event_id}",
                f"Another writer let it begin anew at the same time (it began at offset {begin} before)",
                "It is tried again",
            )
        self._note()

    def close(self) -> None:
        self._fetcher.close()
        self._sender.close()

    def _there(self) -> None:
        """Make the journal's topics where the last look found none, and look again."""
        if self._count is None:
            make_topics(self._topic)
        deadline = time.monotonic() + PATIENCE
        while self._count is None and time.monotonic() < deadline:
            self.look()

    def _current(self) -> Count:
        if self._count is None:
            raise Unavailable(
                f"The topic {self._name} is missing", "It was removed, or just made", "Make it; it is tried again"
            )
        return self._count

    def _send(self, records: Sequence[Record]) -> bool:
        """Send the records, take them and what came between into account, and return whether all of them count."""
        expected = self._current().counted_up_to.offset
        self._fetcher.rest()
        offsets = self._sender.send(records)
        if offsets[0] < expected:
            self._forget()
            raise Unavailable(
                f"The topic {self._name} lost its end",
                f"A record was written at offset {offsets[0]}, but offset {expected - 1} was read before",
                "It is looked at anew",
            )
        own_records = [replace(record, offset=offset) for record, offset in zip(records, offsets, strict=True)]
        is_only_writer = offsets[-1] - expected + 1 == len(records)
        counting = {
            record.offset for record in own_records if record.part is None or record.part.number == record.part.of
        }
        try:
            for record in own_records if is_only_writer else self._fetcher.records(expected, offsets[-1] + 1):
                begin = self._current().counted_up_to.begin
                if self._take(record) is not None or self._current().counted_up_to.begin != begin:
                    counting.discard(record.offset)
        except RecordsLost as error:
            self._forget()
            raise Unavailable(
                f"What was written into topic {self._name} can't be read back",
                "It was removed in the same moment",
                "It is looked at anew",
            ) from error
        return not counting

    def _slices(self, values: Iterable[Value]) -> Iterator[Sequence[Value]]:
        """Split the values into lists that are sent at once. The very first value of a topic goes alone, and so does
        each that is cut in parts, because they would keep `Record.truth` from proving anything about the values after
        them."""
        limit, size, part = self._sender.limit(), 0, list[Value]()
        for value in values:
            large = len(value.data) > limit
            if part and (large or len(part) == SLICE or size + len(value.data) > SLICE_BYTES):
                yield part
                size, part = 0, []
            part.append(value)
            size += len(value.data)
            if large or self._current().counted_up_to.mark is None:
                yield part
                size, part = 0, []
        if part:
            yield part

    def _read_on(self, low: int, high: int) -> Count:
        self.low = low
        count = self._count
        if count is None or not low <= count.counted_up_to.offset <= high < count.counted_up_to.offset + FAR:
            count = self._learn(low, high)
            self.truths.add(count.counted_up_to)
            self._on_clear(count.counted_up_to)
            self._count = count
        for record in self._fetcher.records(count.counted_up_to.offset, high):
            self._take(record)
        return count

    def _take(self, record: Record) -> CountedValue | None:
        count = self._current()
        begin = count.counted_up_to.begin
        value = count.take(record)
        self.truths.add(count.clean)
        if count.counted_up_to.begin != begin:
            self._on_clear(count.counted_up_to)
        if value is not None:
            self._on_value(value)
        return value

    def _learn(self, low: int, high: int) -> Count:
        """Begin to count near the topic's end: from the last record, which says what its writer knew; where that writer
        knew of more than the topic still has, from the first record; in an empty topic, from the note in the topic of
        positions."""
        if low < high:
            for record in self._fetcher.records(high - 1, high):
                if record.truth().offset >= low:
                    return Count(record.truth(), self._rule)
            for record in self._fetcher.records(low, high):
                if record.truth().offset >= low:
                    return Count(record.truth(), self._rule)
        return Count(self._noted(high), self._rule)

    def _note(self) -> None:
        counted_up_to = self._current().counted_up_to
        self._sender.note(
            self._topic.positions, self._position, Record(0, counted_up_to.mark or 0, counted_up_to, b"", None)
        )

    def _noted(self, high: int) -> CountedUpTo:
        if high == 0:
            return NOTHING
        fetcher = Fetcher(self._topic, self._topic.positions, self._position)
        try:
            offsets = fetcher.ends()
            for record in fetcher.records(offsets[1] - 1, offsets[1]) if offsets and offsets[0] < offsets[1] else ():
                if record.counted_up_to.offset == high:
                    return record.counted_up_to
        except RecordsLost:
            pass
        finally:
            fetcher.close()
        raise Broken(
            f"The topic {self._name} is empty, and nothing says where it ended",
            f"All its records were removed, and {self._topic.positions} does not know of the last of them",
            "Delete the journal's topics: they are made anew, and what is missing is found like a gap in the log",
        )

    def _forget(self) -> None:
        if self._count is not None:
            self._count = None
            self.truths.clear()
            self._on_clear(NOTHING)
        self._fetcher.rest()
