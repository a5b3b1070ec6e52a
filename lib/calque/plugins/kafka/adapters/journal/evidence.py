"""The evidence as a Kafka topic (port `EvidenceStore`).

Each append is a record: the listings that it found, and the event up to which all events were looked at. A record comes
after its events in that count, so a reader who looks for an event need not read what came before it. Retention is the
topic's.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.errors import Broken, Unavailable
from calque.model.files import Evidence, File, Listing
from calque.model.names import EventId
from calque.plugins.kafka.adapters.client.errors import RecordsLost
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.codec import codec
from calque.plugins.kafka.adapters.journal.find_offsets import PastReader
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo
from calque.plugins.kafka.adapters.journal.tail import TopicTail, Value
from calque.plugins.kafka.adapters.journal.valid_records import CountedValue, never_back

NAME = "evidence"
KEPT = 16 << 20
"""The most bytes of the newest records that are kept in memory."""
MOST = 500_000
"""The most places of records that are kept in memory; older ones are looked up again."""
APART = 1_000
"""The most unwanted records between two wanted ones that are read over, so that both are read in one go."""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """The place of a value in the topic, from offset `start` to `offset`, and the lowest and highest event id that it
    has evidence of. When it was written, all events up to `mark` had been looked at, so it has no evidence of younger
    ones."""

    start: int
    offset: int
    mark: EventId
    low: EventId
    high: EventId


class KafkaEvidence:
    """The evidence beside the journal in `topic`. The first append makes the topics where they are missing. Safe from
    several threads."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._lock = threading.RLock()
        self._index = EvidenceIndex()
        self._tail = TopicTail(topic, topic.evidence, 1, never_back, self._index.keep, self._index.clear)
        self._past = PastReader(topic, topic.evidence, never_back, self._tail.truths)

    def __reduce__(self) -> tuple[type[KafkaEvidence], tuple[Topic]]:
        return KafkaEvidence, (self._topic,)

    def considered(self) -> EventId:
        with self._lock:
            return self._tail.look().mark or 0

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        """Append as the port says. Raises `Broken` for evidence of an event above `considered`."""
        ids = [item.event_id for item in evidence]
        with self._lock:
            before = self._tail.look().mark or 0
            if not evidence and considered <= before:
                return
            considered = max(considered, before)
            if ids and max(ids) > considered:
                raise Broken(
                    f"There is evidence of event {max(ids)}, but only events up to {considered} were looked at",
                    "Whoever looks for evidence would not find it",
                    "Report this as a defect: events are looked at before there is evidence of them",
                )
            data = codec(NAME).encode({"considered": considered, "listings": [record_of(item) for item in evidence]})
            self._tail.append([Value(considered, (min(ids), max(ids)) if ids else None, data)])

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        event_ids = sorted(set(ids))
        with self._lock:
            for _ in range(3):
                end = self._tail.look()
                if not event_ids or end.mark is None:
                    return {}
                try:
                    self._reach(event_ids[0], end)
                    records = self._at(self._index.about(event_ids), end)
                except RecordsLost:
                    continue
                event_id_set = frozenset(event_ids)
                items = (item for record in records for item in evidence_of(record.value()))
                return {
                    (item.event_id, item.listing.location): item.listing
                    for item in items
                    if item.event_id in event_id_set
                }
        raise Unavailable(
            f"The evidence in {self._topic.evidence} could not be read",
            "What was being read was removed several times in a moment",
            "It is tried again",
        )

    def forget(self, upto: EventId) -> int:  # noqa: ARG002
        """Forget nothing and return 0, because the topic's retention decides how long records stay."""
        return 0

    def restart(self, event_id: EventId) -> None:
        with self._lock:
            self._tail.look()
            self._tail.restart(event_id)

    def close(self) -> None:
        """Close the connections. A later call connects again."""
        with self._lock:
            self._tail.close()
            self._past.close()

    def _reach(self, first: EventId, end: CountedUpTo) -> None:
        """Extend the index backwards until it has all evidence of events from `first` on, as far as the topic still has
        it."""
        index, low = self._index, max(self._tail.low, end.begin)
        if index.places and index.places[0].start < low:
            index.places = [place for place in index.places if place.start >= low]
        if index.since.offset <= low or (index.since.mark or 0) < first:
            return
        start = self._past.before(first, CountedUpTo(end.begin, low, None), end)
        places: list[RecordRange] = []
        for record in self._past.walk(start, index.since.offset):
            if record.events is not None:
                note(places, place_of(record, record.events))
        for place in index.places:
            note(places, place)
        index.places, index.since = places, start

    def _at(self, places: Sequence[RecordRange], end: CountedUpTo) -> list[CountedValue]:
        """Return the records at these places, in order; neighbours are read in one go. Raises `RecordsLost` where one
        is gone."""
        recent = self._index.recent
        values = {place.offset: recent[place.offset] for place in places if place.offset in recent}
        missing = [place for place in places if place.offset not in values]
        for run in runs(missing):
            begin = CountedUpTo(end.begin, run[0].start, None)
            offsets = {place.offset for place in run}
            values |= {
                record.offset: record
                for record in self._past.walk(begin, run[-1].offset + 1)
                if record.offset in offsets
            }
        if len(values) != len(places):
            raise RecordsLost
        return [values[place.offset] for place in places]


class EvidenceIndex:
    """The places of all evidence from `since` to the topic's end, in order, and the newest records themselves, by
    offset."""

    def __init__(self) -> None:
        self.since = CountedUpTo(0, 0, None)
        self.places: list[RecordRange] = []
        self.recent: OrderedDict[int, CountedValue] = OrderedDict()
        self._bytes = 0

    def keep(self, record: CountedValue) -> None:
        if record.events is not None:
            note(self.places, place_of(record, record.events))
        if len(self.places) > MOST:
            # The mark of `since` may be too high, never too low: no evidence of an event above it lies further back.
            half = len(self.places) // 2
            self.since = CountedUpTo(self.since.begin, self.places[half].start, self.places[half].mark)
            self.places = self.places[half:]
        self.recent[record.offset] = record
        self._bytes += len(record.stored)
        while self._bytes > KEPT:
            _, oldest = self.recent.popitem(last=False)
            self._bytes -= len(oldest.stored)

    def about(self, event_ids: Sequence[EventId]) -> list[RecordRange]:
        """Return the places that may have evidence of one of the event ids, which must ascend."""
        first = bisect_left(self.places, event_ids[0], key=lambda place: place.mark)
        return [place for place in self.places[first:] if meets(event_ids, place)]

    def clear(self, counted_up_to: CountedUpTo) -> None:
        self.since, self.places, self._bytes = counted_up_to, [], 0
        self.recent.clear()


def place_of(record: CountedValue, events: tuple[EventId, EventId]) -> RecordRange:
    return RecordRange(record.start, record.offset, record.mark, *events)


def note(places: list[RecordRange], place: RecordRange) -> None:
    """Append a place. Its mark is raised to that of the place before, so that marks never fall and can be searched by
    bisection."""
    places.append(replace(place, mark=max(place.mark, places[-1].mark)) if places else place)


def meets(event_ids: Sequence[EventId], place: RecordRange) -> bool:
    """Tell whether the place may have evidence of one of the event ids, which must ascend."""
    index = bisect_left(event_ids, place.low)
    return index < len(event_ids) and event_ids[index] <= place.high


def runs(places: Sequence[RecordRange]) -> Iterator[Sequence[RecordRange]]:
    """Split the places into runs that are each read in one go, wherever more than `APART` unwanted records lie between
    two."""
    start = 0
    for index in range(1, len(places) + 1):
        if index == len(places) or places[index].start - places[index - 1].offset > APART:
            yield places[start:index]
            start = index


def record_of(evidence: Evidence) -> dict[str, Any]:
    listing = evidence.listing
    files = [
        {"path": file.path, "size": file.size, "modified_ns": file.modified_ns, "checksum": file.checksum}
        for file in listing.files
    ]
    return {"event_id": evidence.event_id, "location": listing.location, "missing": listing.missing, "files": files}


def evidence_of(value: bytes) -> Iterator[Evidence]:
    for row in codec(NAME).decode(value)["listings"]:
        files = (File(file["path"], file["size"], file["modified_ns"], file["checksum"]) for file in row["files"])
        yield Evidence(row["event_id"], Listing(row["location"], tuple(files), row["missing"]))
