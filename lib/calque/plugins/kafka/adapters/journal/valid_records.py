"""The records of a topic that count: those that continue what counts before them. The log's order decides it, for all
readers alike.

A writer that lost a race, wrote twice, or wrote late leaves records that every reader passes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.model.names import EventId
from calque.plugins.kafka.adapters.journal.codec import self_contained
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo, Record, unpacked

Rule = Callable[[EventId | None, EventId], EventId | None]
"""A rule of what counts: from the newest mark that counts so far and a record's mark it gives the newest mark after the
record, or None where the record does not count."""
DEAD = 1_000
"""The records after which the parts of an unfinished value are taken for those of a writer that died."""


def in_sequence(newest: EventId | None, mark: EventId) -> EventId | None:
    """Return the newest event id after a record of an event with the id `mark`, where the record counts, else None:
    each id counts once and without holes. `newest` is the newest id before, None before the first record, which may
    have any."""
    return mark if newest is None or mark == newest + 1 else None


def never_back(newest: EventId | None, mark: EventId) -> EventId | None:
    """Return the newest mark after a record of evidence with the mark `mark`: the greater one of it and `newest` (None
    before the first record). Every record of evidence counts."""
    return mark if newest is None else max(newest, mark)


@dataclass(frozen=True, slots=True)
class CountedValue:
    """A whole value that counts. Its first part is at offset `start`; it became whole at `offset`."""

    start: int
    offset: int
    mark: EventId
    events: tuple[EventId, EventId] | None
    stored: bytes
    packed: bool
    schema: bytes = b""

    def value(self) -> bytes:
        """Return the value, unpacked and with its schema named by the fingerprint."""
        value = unpacked(self.stored, self.packed)
        return self_contained(value, self.schema) if self.schema else value


@dataclass(slots=True)
class Group:
    """The parts of a value that were met so far. The first is at offset `start`, the last that was met at `offset`."""

    parts: list[bytes]
    mark: EventId
    start: int
    offset: int = 0


class Count:
    """A count of what counts in a topic, taken record by record from the place `counted_up_to` on."""

    def __init__(self, counted_up_to: CountedUpTo, rule: Rule) -> None:
        self.counted_up_to, self._rule = counted_up_to, rule
        self.clean = counted_up_to
        """The newest place at which no value was half read. Another reader may begin there."""
        self._groups: dict[bytes, Group] = {}

    def take(self, record: Record) -> CountedValue | None:
        """Take the next record into account, and return the value that is whole with it and counts; None where no value
        is whole with it, or its value does not count."""
        begin, mark, counted = self.counted_up_to.begin, self.counted_up_to.mark, None
        if record.counted_up_to.begin != begin:
            pass
        elif record.restart:
            begin, mark = record.offset + 1, record.mark
            self._groups.clear()
        else:
            group = Group([record.value], record.mark, record.offset) if record.part is None else self._joined(record)
            newest = self._rule(mark, record.mark) if group is not None else None
            if group is not None and newest is not None:
                mark, stored = newest, b"".join(group.parts)
                counted = CountedValue(
                    group.start, record.offset, record.mark, record.events, stored, record.packed, record.schema
                )
        self.counted_up_to = CountedUpTo(begin, record.offset + 1, mark)
        self._bury()
        return counted

    def _joined(self, record: Record) -> Group | None:
        """Return all parts of the record's value when this is the last of them; else None."""
        part = record.part
        assert part is not None
        group = self._groups.setdefault(part.group, Group([], record.mark, record.offset))
        group.offset = record.offset
        if part.number != len(group.parts) + 1:
            return None
        group.parts.append(record.value)
        if part.number < part.of:
            return None
        return self._groups.pop(part.group)

    def _bury(self) -> None:
        """Forget parts that can't become a value that counts any more."""
        if self._groups:
            self._groups = {
                name: group
                for name, group in self._groups.items()
                if group.offset + DEAD > self.counted_up_to.offset
                and self._rule(self.counted_up_to.mark, group.mark) is not None
            }
        if not self._groups:
            self.clean = self.counted_up_to
