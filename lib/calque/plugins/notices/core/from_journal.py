"""Notices at the source: the history in order, from entries of the journal and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import assert_never

from calque.model.gaps import Gap
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark
from calque.plugins.notices.core.notice import (
    PARTITIONS_AT_ONCE,
    HistoryGap,
    Notice,
    Occasion,
    PartitionsAdded,
    PartitionsAltered,
    PartitionsDropped,
    RowsInserted,
    SetDone,
    TableAltered,
    TableCreated,
    TableDropped,
    shares,
)
from calque.plugins.notices.core.table_keys import TableKeys


class JournalNotices:
    """A maker of notices from entries of the journal, taken in order, and from marks. `stream` begins the ids of the
    notices and names the source's history; behind a gap of the log it is another one, because event ids may come again
    there. `keys` are the keys of tables before the next entry; `of_entry` brings them up to date."""

    def __init__(self, source: str, gap: int, keys: TableKeys) -> None:
        self.stream, self.keys = stream_of(source, gap), keys

    def of_entry(self, entry: Entry) -> list[Notice]:
        keys, table = entry.keys, entry.keys.table
        kind, event_id = keys.kind, entry.event_id
        self.keys.take(entry)
        if table is None or not table.table:
            return []
        key_of = self.keys.key_before if kind is EventKind.DROP_TABLE else self.keys.key
        head = (f"{self.stream}:{event_id}", table, key_of(table, event_id), event_id, iso_seconds(entry.event_time))
        match kind:
            case EventKind.ADD_PARTITIONS:
                return listed(PartitionsAdded, head, keys.partitions)
            case EventKind.INSERT | EventKind.COMMIT:
                return listed(RowsInserted, head, keys.partitions)
            case EventKind.DROP_PARTITIONS:
                return listed(PartitionsDropped, head, keys.partitions)
            case EventKind.ALTER_PARTITIONS:
                return [] if keys.facets_only else listed(PartitionsAltered, head, keys.partitions)
            case EventKind.RENAME_PARTITION:
                dropped = listed(PartitionsDropped, head, keys.others)
                return dropped + listed(PartitionsAdded, head, keys.partitions, len(dropped))
            case EventKind.CREATE_TABLE:
                return [TableCreated(occasion_of(head, 0))]
            case EventKind.DROP_TABLE:
                return [TableDropped(occasion_of(head, 0))]
            case EventKind.ALTER_TABLE:
                return [] if keys.facets_only else [TableAltered(occasion_of(head, 0))]
            case EventKind.RENAME_TABLE:
                return [TableAltered(occasion_of(head, 0), keys.other)]
            case EventKind.UNKNOWN:
                return [TableAltered(occasion_of(head, 0), keys.other)]
            case (
                EventKind.CREATE_DATABASE
                | EventKind.ALTER_DATABASE
                | EventKind.DROP_DATABASE
                | EventKind.CREATE_FUNCTION
                | EventKind.DROP_FUNCTION
                | EventKind.FACET
                | EventKind.NOTHING
                | EventKind.SCAN
            ):
                return []
            case other:
                assert_never(other)

    def of_mark(self, mark: Mark) -> SetDone:
        """Return the notice of a mark. Call this after `of_entry` took the entry of the mark's event, because the key
        of the table follows from that."""
        key = self.keys.key(mark.table, mark.event_id)
        return SetDone(
            Occasion(
                f"{self.stream}:mark:{mark.number}",
                mark.table,
                key,
                mark.event_id,
                mark.event_id,
                iso_ns(mark.marked_at_ns),
            ),
            mark,
        )


Head = tuple[str, TableName, str, EventId, str]


def occasion_of(head: Head, number: int) -> Occasion:
    name, table, key, event_id, published_at = head
    return Occasion(f"{name}.{number}", table, key, event_id, event_id, published_at)


def listed(
    kind: type[PartitionsAdded] | type[PartitionsAltered] | type[PartitionsDropped] | type[RowsInserted],
    head: Head,
    partitions: tuple[str, ...],
    first: int = 0,
) -> list[Notice]:
    if len(partitions) <= PARTITIONS_AT_ONCE:
        return [kind(occasion_of(head, first), partitions)]
    return [kind(occasion_of(head, first + number), share) for number, share in enumerate(shares(partitions))]


def in_order(entries: Iterable[Entry], marks: Sequence[Mark]) -> Iterator[Entry | Mark]:
    """Merge entries and marks: each mark comes right behind the entry of its event, marks in the order of their
    numbers. No mark may be of an event after the last entry's. A mark of an event before the first entry comes
    first."""
    waiting = list(reversed(marks))
    for entry in entries:
        while waiting and waiting[-1].event_id < entry.event_id:
            yield waiting.pop()
        yield entry
    yield from reversed(waiting)


def gap_notice(stream: str, gap: Gap) -> HistoryGap:
    occasion = Occasion(f"{stream}:gap:{gap.number}", TableName(""), "", gap.at, gap.at, gap.found_at)
    return HistoryGap(occasion, *gap.span, gap.cause.value)


def stream_of(source: str, gap: int) -> str:
    return f"{source}~{gap}" if gap else source


@lru_cache(64)
def iso_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def iso_ns(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")
