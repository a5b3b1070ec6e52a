"""The headers of each record, in which calque notes what a reader has to know without decoding the value.

| header | is |
|---|---|
| `mark` | the event id; of evidence: the event up to which all were looked at; of a restart: the event before it |
| `known` | what its writer had read before: `begin offset mark`, see `CountedUpTo` |
| `events` | of evidence: the lowest and the highest event id that it has listings of; `-` for none |
| `restart` | present where the topic begins anew; older records are dead |
| `part` | of a value that was cut: whose part it is, its number from 1, and of how many |
| `packed` | `zlib` where the value is compressed |
| `schema` | the schema's fingerprint, where the value itself names it by an id of a registry |
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from calque.errors import Broken
from calque.model.names import EventId

MARK, KNOWN, EVENTS, RESTART, PART, PACKED = "mark", "known", "events", "restart", "part", "packed"
SCHEMA = "schema"
Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class CountedUpTo:
    """The knowledge of which records count before `offset`: the topic begins, or began anew, at offset `begin`, and
    `mark` is the newest mark that counts between the two; None before the first."""

    begin: int
    offset: int
    mark: EventId | None

    def text(self) -> bytes:
        return f"{self.begin} {self.offset} {'-' if self.mark is None else self.mark}".encode()


def known_of(text: bytes) -> CountedUpTo:
    begin, offset, mark = text.split()
    return CountedUpTo(int(begin), int(offset), None if mark == b"-" else int(mark))


@dataclass(frozen=True, slots=True)
class RecordPart:
    group: bytes
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic. `events` are the lowest and highest event id that it is about; None for none. `schema` is
    empty where the value names its schema by the fingerprint."""

    offset: int
    mark: EventId
    counted_up_to: CountedUpTo
    value: bytes
    events: tuple[EventId, EventId] | None = None
    restart: bool = False
    part: RecordPart | None = None
    packed: bool = False
    schema: bytes = b""

    def headers(self) -> list[tuple[str, bytes]]:
        headers = [(MARK, b"%d" % self.mark), (KNOWN, self.counted_up_to.text())]
        if self.events != (self.mark, self.mark):
            headers.append((EVENTS, b"%d %d" % self.events if self.events else b"-"))
        if self.restart:
            headers.append((RESTART, b""))
        if self.part is not None:
            headers.append((PART, b"%b %d %d" % (self.part.group, self.part.number, self.part.of)))
        if self.packed:
            headers.append((PACKED, b"zlib"))
        if self.schema:
            headers.append((SCHEMA, self.schema))
        return headers

    def truth(self) -> CountedUpTo:
        """Return what is known of the records before this one: what its writer had read, or, where the writer proves
        more, all up to this record.

            The writer had read up to offset 100, with event 500 as the newest that counts. Its record of event 503 is
            at offset 102. Exactly two records lie between, and the writer wrote events 501 and 502 before: these are
            the two, they count, and 502 is the newest event before offset 102. With another writer's record between
            them, event 503 would be at offset 103, and only what the writer had read is known.
        """
        mark, counted_up_to = self.counted_up_to.mark, self.counted_up_to
        if mark is None or self.restart or self.part or self.events != (self.mark, self.mark):
            return counted_up_to
        if self.offset - counted_up_to.offset == self.mark - mark - 1:
            return CountedUpTo(counted_up_to.begin, self.offset, self.mark - 1)
        return counted_up_to


def record_of(offset: int, value: bytes | None, headers: Headers | None, topic: str) -> Record:
    """Return the record at `offset` by its value and headers. Raises `Broken` for a record that calque did not
    write."""
    header_values = dict(headers or ())
    try:
        mark = int(header_values[MARK])
        events = header_values.get(EVENTS)
        part = header_values[PART].split() if PART in header_values else None
        return Record(
            offset,
            mark,
            known_of(header_values[KNOWN]),
            value or b"",
            (mark, mark) if events is None else span_of(events),
            RESTART in header_values,
            RecordPart(part[0], int(part[1]), int(part[2])) if part else None,
            PACKED in header_values,
            header_values.get(SCHEMA, b""),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise Broken(
            f"The record at offset {offset} of topic {topic} is not calque's",
            "It does not have its headers, so something else writes into the topic",
            "Give calque a topic of its own, and let nobody else write into it",
        ) from error


def span_of(text: bytes) -> tuple[EventId, EventId] | None:
    if text == b"-":
        return None
    low, high = text.split()
    return int(low), int(high)


def cut(record: Record, limit: int, group: bytes) -> Iterator[Record]:
    """Yield the record in pieces of at most `limit` bytes each: whole where it fits, else compressed, else compressed
    and in parts."""
    if len(record.value) <= limit:
        yield record
        return
    value = zlib.compress(record.value)
    pieces = [value[start : start + limit] for start in range(0, len(value), limit)]
    for number, piece in enumerate(pieces, 1):
        part = RecordPart(group, number, len(pieces)) if len(pieces) > 1 else None
        yield replace(record, value=piece, part=part, packed=True)


def unpacked(value: bytes, packed: bool) -> bytes:
    return zlib.decompress(value) if packed else value
