"""Capture of a source's log: the log's rows are copied into the journal, and listings find out which files belong to
the events. It never waits for a target.

`Capture` takes batches of bounded weight: it checks on the unfiltered log that ids follow one another, then makes the
rows durable. `EvidenceGatherer` runs beside it: it lists the directories that events touched, and what a listing proves
becomes evidence (docs/files.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from calque.core.events.rows import entries_of, events_of
from calque.engine.capture.continuity import Continuity, Interrupted, sign_of
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import EventsForgotten
from calque.model.journal import Entry
from calque.model.names import EventId

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
"""Seconds for which a log that was looked at is trusted, because no metastore is restored, started and written to in
less."""


class Capture:
    """The appender of the log's batches to the journal. `after` is the event after which an empty journal begins.
    `continuity` reads the log and checks where it meets the journal. `note_entries` is called with what was
    appended."""

    def __init__(
        self,
        source: SourceSide,
        after: EventId,
        gatherer: EvidenceGatherer,
        continuity: Continuity | None = None,
        note_entries: Callable[[Sequence[Entry]], None] = lambda _: None,
    ) -> None:
        self.source, self.after, self.gatherer, self.continuity, self.note_entries = (
            source,
            after,
            gatherer,
            continuity,
            note_entries,
        )
        self.looked_ns = 0

    def last(self) -> EventId:
        """Return the newest event id in the journal; if it is empty, the event after which it begins."""
        last = self.source.journal.last()
        return self.after if last is None else last

    def reached(self) -> EventId:
        """Return what `last` does, after handing the gatherer the events that it lacks: an append may have succeeded
        although its answer was lost."""
        last = self.last()
        self.gatherer.catch_up(self.after, last)
        return last

    def take(self, upto: EventId) -> int:
        """Read and append the log's events up to `upto`, and return how many there were. Raises `Interrupted`,
        `Unavailable`."""
        self.look()
        return self.read_on(upto)

    def read_on(self, upto: EventId) -> int:
        assert self.continuity is not None
        return sum(map(self.add, self.continuity.read(upto))) if upto > self.reached() else 0

    def look(self) -> None:
        """Raise `Interrupted` unless the log goes on where the journal ends: after a silence of `LOOK_SECONDS` another
        log may answer. Raises `Unavailable`."""
        assert self.continuity is not None
        if self.source.clock.elapsed_ns() - self.looked_ns > LOOK_SECONDS * 1e9:
            self.continuity.require()
            self.looked_ns = self.source.clock.elapsed_ns()

    def append(self, rows: pa.Table) -> int:
        """Append rows of the log that follow one another, and return how many of them were new. Rows that the journal
        lacks before them are read from the log first.

        Raises `Interrupted` for a gap or a duplicate, and where the journal has other rows under the same ids.
        """
        if rows.num_rows and self.continuity is not None:
            self.read_on(rows["event_id"][0].as_py() - 1)
        return self.add(rows)

    def add(self, rows: pa.Table) -> int:
        """Append rows that follow one another without reading the log, and return how many were new. Raises as `append`
        does."""
        last = self.reached()
        ids = rows.column("event_id").to_pylist()
        known_count = sum(event_id <= last for event_id in ids)
        if known_count:
            self.compare(rows.slice(0, known_count))
        rows, ids = rows.slice(known_count), ids[known_count:]
        if not ids:
            return 0
        check_contiguous(last, ids)
        read_ns = self.source.clock.now_ns()
        self.source.journal.append(rows)
        entries = list(entries_of(rows))
        self.gatherer.add(entries, read_ns)
        self.note_entries(entries)
        return len(ids)

    def compare(self, rows: pa.Table) -> None:
        """Raise `Interrupted` where the journal has other events under the ids of these rows. Rows that the journal has
        forgotten are not compared."""
        oldest = self.source.journal.oldest()
        log_signs = {event.event_id: sign_of(event) for event in events_of(rows)}
        ids = [event_id for event_id in log_signs if oldest is not None and event_id >= oldest]
        try:
            for event in messages(self.source.journal, ids):
                if sign_of(event) != log_signs[event.event_id]:
                    raise Interrupted(f"Event {event.event_id} is not the one that was read before")
        except EventsForgotten:
            LOG.debug("retention has taken events that come again from the log")


def check_contiguous(last: EventId, ids: Sequence[EventId]) -> None:
    """Raise `Interrupted` unless `ids` go on from `last` one by one."""
    for expected, event_id in enumerate(ids, last + 1):
        if event_id != expected:
            raise Interrupted(f"After event {expected - 1} it goes on with event {event_id}")
