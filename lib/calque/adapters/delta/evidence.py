"""The evidence as a Delta table (port `EvidenceStore`).

The table has a row for each listing. Of two rows for one state the one with the greater `sequence` counts. The
application transaction `considered` carries the event id up to which the files of all events were looked at, `sequence`
the number of the last append.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from calque.adapters.delta.columns import FILES, file_record, files_of
from calque.adapters.delta.snapshot import Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.model.files import Evidence, Listing
from calque.model.names import EventId
from calque.model.secrets import Options

CONSIDERED = "considered"
SEQUENCE = "sequence"
HELD_BYTES = 16 << 20
"""The bytes of rows that are held in memory, because each group of a window reads of the same ones."""
SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64()),
        pa.field("location", pa.string()),
        pa.field("missing", pa.bool_()),
        pa.field("files", FILES),
    ]
)


class DeltaEvidence:
    """The evidence at `location`, a path or URI. `storage_options` are delta-rs's."""

    def __init__(self, location: str, storage_options: Options | None = None) -> None:
        self._table = RangedTable(location, SCHEMA, (CONSIDERED, SEQUENCE), storage_options, held_bytes=HELD_BYTES)

    def considered(self) -> EventId:
        return self._table.snapshot().marks.get(CONSIDERED, 0)

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            before, sequence = snapshot.marks.get(CONSIDERED, 0), snapshot.marks.get(SEQUENCE, 0) + 1
            if not evidence and considered <= before:
                return None
            files = self._table.write([table_of(evidence, sequence)])
            return SnapshotChange(add=files, marks={CONSIDERED: max(before, considered), SEQUENCE: sequence})

        self._table.commit(decide)
        self._table.compact()

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        rows = self._table.read(sorted(set(ids)))
        return {(row.event_id, row.listing.location): row.listing for row in evidence_of(rows)}

    def forget(self, upto: EventId) -> int:
        return self._table.forget(upto)

    def restart(self, event_id: EventId) -> None:
        self._table.commit(lambda snapshot: SnapshotChange(remove=snapshot.files, marks={CONSIDERED: event_id}))


def table_of(evidence: Iterable[Evidence], sequence: int) -> pa.Table:
    rows = [
        {
            "event_id": item.event_id,
            "sequence": sequence,
            "location": item.listing.location,
            "missing": item.listing.missing,
            "files": [file_record(file) for file in item.listing.files],
        }
        for item in evidence
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def evidence_of(rows: pa.Table) -> Iterator[Evidence]:
    """Give the evidence in these rows, in the order of writing."""
    for row in rows.sort_by("sequence").to_pylist():
        yield Evidence(row["event_id"], Listing(row["location"], files_of(row["files"]), row["missing"]))
