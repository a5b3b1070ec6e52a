"""Copy the log into the journal, and find out which files belong to its events. Never waits for a target.

`Capture` takes batches in pieces of bounded weight: contiguity is checked on the unfiltered log, then the rows are
durable. `EvidenceGatherer` runs beside it: it lists the directories that events touched, and what a listing proves
becomes evidence (docs/files.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from calque.core.events.rows import entries_of
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.model.journal import Entry
from calque.model.names import EventId

LOG = logging.getLogger(__name__)
PIECE_BYTES = 64 << 20
"""Of messages that tasks brought and that are appended at once."""
LOOK_SECONDS = 1.0
"""So long a log that was looked at is trusted: no metastore is restored, started and written to in less."""


class Capture:
    """Appends batches of the log. `after` is where the journal begins when it is empty; `seam` reads the log and
    watches over where it meets the journal. `hear` is told what was appended."""

    def __init__(
        self,
        source: SourceSide,
        after: EventId,
        gatherer: EvidenceGatherer,
        seam: Continuity | None = None,
        hear: Callable[[Sequence[Entry]], None] = lambda _: None,
    ) -> None:
        self.source, self.after, self.gatherer, self.seam, self.hear = source, after, gatherer, seam, hear
        self.looked_ns = 0

    def last(self) -> EventId:
        """The newest event id in the journal, or where it begins."""
        last = self.source.journal.last()
        return self.after if last is None else last

    def reached(self) -> EventId:
        """As `last`. Where an append succeeded and its answer was lost, the gatherer takes up these events now."""
        last = self.last()
        self.gatherer.catch_up(self.after, last)
        return last

    def take(self, upto: EventId) -> int:
        """Read and append the log's events up to `upto`. How many there were. Raises `Interrupted`, `Unavailable`."""
        self.look()
        return self.read_on(upto)

    def read_on(self, upto: EventId) -> int:
        assert self.seam is not None
        return sum(map(self.add, self.seam.read(upto))) if upto > self.reached() else 0

    def look(self) -> None:
        """Whether the log still goes on where the journal ends: after a silence another one may answer. Raises
        `Interrupted`, `Unavailable`."""
        assert self.seam is not None
        if self.source.clock.elapsed_ns() - self.looked_ns > LOOK_SECONDS * 1e9:
            self.seam.require()
            self.looked_ns = self.source.clock.elapsed_ns()

    def append(self, rows: pa.Table) -> int:
        """Append rows of the log; those that are there already are passed over, and those that lack before or among
        them (the journal lost its end, or they were too many to be brought) are read from the log. How many of `rows`
        were new.

        Raises `Interrupted` for a gap or a duplicate among them.
        """
        count = 0
        for piece in pieces(rows):
            if self.seam is not None:
                self.read_on(piece["event_id"][0].as_py() - 1)
            count += self.add(piece)
        return count

    def add(self, rows: pa.Table) -> int:
        """Append rows that follow one another, at once."""
        last = self.reached()
        ids = rows.column("event_id").to_pylist()
        known_count = sum(event_id <= last for event_id in ids)
        rows, ids = rows.slice(known_count), ids[known_count:]
        if not ids:
            return 0
        check_contiguous(last, ids)
        read_ns = self.source.clock.now_ns()
        self.source.journal.append(rows)
        entries = list(entries_of(rows))
        self.gatherer.add(entries, read_ns)
        self.hear(entries)
        return len(ids)


def pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows cut where ids lack, and so that the messages of a piece weigh at most `PIECE_BYTES`, or it is one row.
    Raises `Interrupted` where ids do not ascend."""
    ids, weights = rows["event_id"].to_pylist(), pc.binary_length(rows["message"]).to_pylist()
    start = weight = 0
    for index, event_id in enumerate(ids):
        if index and event_id <= ids[index - 1]:
            raise Interrupted(f"After event {ids[index - 1]} it goes on with event {event_id}")
        weight += weights[index]
        if index > start and (event_id > ids[index - 1] + 1 or weight > PIECE_BYTES):
            yield rows.slice(start, index - start)
            start, weight = index, weights[index]
    if ids:
        yield rows.slice(start)


def check_contiguous(last: EventId, ids: Sequence[EventId]) -> None:
    """Raise `Interrupted` unless `ids` go on from `last` one by one."""
    for expected, event_id in enumerate(ids, last + 1):
        if event_id != expected:
            raise Interrupted(f"After event {expected - 1} it goes on with event {event_id}")
