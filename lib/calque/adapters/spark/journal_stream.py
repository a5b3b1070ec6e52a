"""The journal as a stream, for processes that replicate what another process captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from calque.adapters.spark.contiguous import checked, missing
from calque.adapters.spark.event_source import EventStream
from calque.core.events import rows
from calque.errors import Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.ports import EvidenceStore, Journal

SCHEMA = pa.schema([rows.SCHEMA.field(name) for name in rows.ENTRY_COLUMNS])


def journal_stream(
    opening: Callable[[], tuple[Journal, EvidenceStore]], starting: EventId, poll: float = 0.25
) -> EventStream:
    """Return a stream of the journal's rows after `starting`, with the columns of `SCHEMA`: keys without messages. The
    metastore's own names (`catalog`, `database`, `table`) are empty in them."""
    return EventStream(partial(opened, opening), SCHEMA, starting, poll)


def opened(opening: Callable[[], tuple[Journal, EvidenceStore]]) -> JournalEvents:
    return JournalEvents(opening()[0])


@dataclass(frozen=True, slots=True)
class JournalEvents:
    """The `event_source.Events` of a journal. Raises `HoleInLog`."""

    journal: Journal

    def newest(self, after: EventId) -> EventId:
        """Return the newest event id. Raises `Unavailable` where the journal ends before `after`, that is, has lost its
        end: capture appends the lost events again as soon as it looks, or finds a gap."""
        newest = self.journal.last() or 0
        if newest < after:
            raise Unavailable(
                f"The journal ends at event {newest}, but event {after} of it was read already",
                "It lost its end, or was replaced by an older one; capture goes on where it ends",
                "It is tried again; where capture does not run, let it",
            )
        return newest

    def pages(self, span: Span, most_bytes: float) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - rows without messages
        entries = self.journal.entries(span)
        last = checked((entry.event_id for entry in entries), span.after)
        if last < span.upto:
            raise missing(Span(last, span.upto), "the journal ends there")
        yield from table_of(entries).combine_chunks().to_batches()


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """Return the entries as one Arrow table of `SCHEMA`."""
    return rows.table_of((bare(entry), entry.keys) for entry in entries).select(list(rows.ENTRY_COLUMNS))


def bare(entry: Entry) -> Event:
    return Event(entry.event_id, entry.event_time, entry.event_type, "", "", "", "", "")
