"""The journal as a Delta table (port `Journal`).

The table has a row for each event, in files whose ranges of event ids tile the log. The application transaction
`journal` carries the last event id; it outlives rows that are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from calque.adapters.delta.snapshot import Keys, Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.core.events.rows import ENTRY_COLUMNS, EVENT_COLUMNS, SCHEMA, entries_of, events_of
from calque.core.records.continuity import check_continues, check_there, first_and_last
from calque.core.records.weight import first_ones
from calque.errors import Broken
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.model.secrets import Options

if TYPE_CHECKING:
    import pyarrow.dataset as ds


LAST = "journal"
HELD_BYTES = 64 << 20
"""The bytes of rows that are held in memory, because each group of a window reads of the same ones."""


class DeltaJournal:
    """The journal at `location`, a path or URI. `storage_options` are delta-rs's (keys, endpoint and the like)."""

    def __init__(self, location: str, storage_options: Options | None = None) -> None:
        self._location = location
        self._table = RangedTable(location, SCHEMA, (LAST,), storage_options, held_bytes=HELD_BYTES)

    def last(self) -> EventId | None:
        return self._table.snapshot().marks.get(LAST)

    def oldest(self) -> EventId | None:
        files = self._table.snapshot().files
        return files[0].low if files else None

    def append(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        first, last = first_and_last(rows)
        files = self._table.write([rows])

        def decide(snapshot: Snapshot) -> SnapshotChange:
            check_continues(snapshot.marks.get(LAST), first, self._location)
            return SnapshotChange(add=files, marks={LAST: last})

        try:
            self._table.commit(decide)
        except Broken:
            self._table.discard(files)
            raise
        self._table.compact()

    def dataset(self) -> ds.Dataset:
        """Return all rows that are there now as a dataset, for a query engine to read."""
        return self._table.dataset(self._table.snapshot())

    def rows(self, span: Span) -> pa.Table:
        """Return the rows of the span without their messages. Raises `Refused` when the span is not all there,
        `EventsForgotten` when its first rows were removed."""
        return self._rows(range(span.after + 1, span.upto + 1), ENTRY_COLUMNS)

    def entries(self, span: Span) -> Sequence[Entry]:
        return tuple(entries_of(self.rows(span)))

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        return {event.event_id: event for event in events_of(self._rows(sorted(set(ids)), EVENT_COLUMNS, most))}

    def forget(self, upto: EventId) -> int:
        return self._table.forget(upto)

    def restart(self, event_id: EventId) -> None:
        self._table.commit(lambda snapshot: SnapshotChange(remove=snapshot.files, marks={LAST: event_id}))

    def _rows(self, ids: Keys, columns: Sequence[str], most: int | None = None) -> pa.Table:
        """Return the rows with these ids. With `most` only the first ones are returned, up to the end of the row group
        with which they come to weigh `most` bytes."""

        def read(snapshot: Snapshot) -> pa.Table:
            if ids:
                check_there(ids[0], ids[-1], *ends(snapshot))
            files = snapshot.holding(ids)
            if most is None:
                return self._table.files.read(files, ids, columns)
            pieces = (piece for file in files for piece in self._table.files.pieces(file, ids, columns))
            none = SCHEMA.empty_table().select(list(columns))
            return pa.concat_tables([none, *first_ones(pieces, lambda piece: int(piece.nbytes), most)])

        return self._table.consistently(read)


def ends(snapshot: Snapshot) -> tuple[EventId, EventId]:
    """Return the oldest event id that is there (the next one when none is), and the last one."""
    last = snapshot.marks.get(LAST, 0)
    return (snapshot.files[0].low if snapshot.files else last + 1), last
