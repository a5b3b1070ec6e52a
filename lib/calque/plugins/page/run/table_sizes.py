"""The sizes of a target's tables, by the files that its ledger records: `TableSizes`. No file is looked at."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from calque.core.records.contents import Content, LedgerLine, contents
from calque.errors import CalqueError
from calque.model.names import TableName

LOG = logging.getLogger(__name__)
AGAIN_SECONDS, SHARE = 30.0, 0.02
"""The least seconds between two counts, and the share of all time that counting may take."""
MOST_ROWS = 250_000
"""The number of rows of a ledger beyond which nothing is counted, because a count would take seconds of a processor."""
BATCH = 8_192
KEYS = ("database", "table", "partition", "incarnation", "event_id", "change")
COLUMNS = ["epoch", "step", *KEYS, "carries_files", "delta_version", "definition", "files"]


class TableSize(NamedTuple):
    """The number of a table's files and their bytes."""

    files: int
    bytes: int


class TableSizes:
    """The sizes of one target's tables. A thread of its own counts them while the page asks for them, so that no
    answer waits for a count. `view` returns the newest view of the target's ledger."""

    def __init__(self, view: Callable[[], Any]) -> None:
        self.view = view
        self.sizes: Mapping[TableName, TableSize] = {}
        self.thread: threading.Thread | None = None
        self.again = 0.0
        self.lock = threading.Lock()

    def look(self) -> Mapping[TableName, TableSize]:
        """Return the sizes as they were counted last, and begin to count them anew where that was a while ago. A table
        whose size the ledger does not tell is left out."""
        with self.lock:
            is_counting = self.thread is not None and self.thread.is_alive()
            if time.monotonic() >= self.again and not is_counting:
                self.thread = threading.Thread(target=self.count, name="page-sizes", daemon=True)
                self.thread.start()
        return self.sizes

    def count(self) -> None:
        """Count all sizes. Where the ledger can't be read, those of the last time stay."""
        began = time.monotonic()
        try:
            self.sizes = counted_sizes(self.view())
        except (CalqueError, OSError) as error:
            LOG.warning("sizes of tables stay as they were: %s", error)
        took = time.monotonic() - began
        self.again = time.monotonic() + max(AGAIN_SECONDS, took / SHARE)


def counted_sizes(view: Any) -> dict[TableName, TableSize]:
    """Return the sizes of the tables that exist after the rows of a ledger's view, of which those up to `view.last`
    count. Empty where the ledger has more than `MOST_ROWS` rows. A table of which the ledger does not tell all files is
    left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not 0 < view.objects.count_rows() <= MOST_ROWS:
        return {}
    batches = view.objects.to_batches(COLUMNS, batch_size=BATCH, filter=pc.field("epoch") <= view.last)
    found = [sized(batch) for batch in batches if len(batch)]
    if not found:
        return {}
    rows = pa.Table.from_batches(found).sort_by([("epoch", "ascending"), ("step", "ascending")])
    files, sizes, is_delta = (rows[name].to_pylist() for name in ("count", "bytes", "is_delta"))
    tables = {name: content for name, content in contents(lines_of(rows)).items() if content.is_complete}
    places = {name: list(places_of(content)) for name, content in tables.items()}
    return {
        name: TableSize(sum(files[place] for place in held), sum(sizes[place] for place in held))
        for name, held in places.items()
        # The files of a Delta table stand in its own log.
        if held and not any(is_delta[place] for place in held)
    }


def sized(batch: Any) -> Any:
    """Return the batch with the number and the bytes of each row's files in place of the files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    files = batch.column("files")
    sizes = pc.fill_null(pc.struct_field(pc.list_flatten(files), "size"), 0)
    sums = np.bincount(pc.list_parent_indices(files), weights=sizes, minlength=len(files)).astype(np.int64)
    columns = {
        **{name: batch.column(name) for name in ("epoch", "step", *KEYS, "carries_files")},
        "defines": pc.fill_null(pc.not_equal(batch.column("definition"), ""), False),
        "is_delta": pc.is_valid(batch.column("delta_version")),
        "count": pc.fill_null(pc.list_value_length(files), 0),
        "bytes": pa.array(sums),
    }
    return pa.RecordBatch.from_pydict(columns)


def lines_of(rows: Any) -> Iterator[LedgerLine]:
    columns = (rows[name].to_pylist() for name in (*KEYS, "carries_files", "defines"))
    for index, row in enumerate(zip(*columns, strict=True)):
        database, table, partition, incarnation, event_id, change, files, defines = row
        name = TableName(database, table)
        yield LedgerLine(index, name, partition, incarnation, event_id, change, bool(files), defines)


def places_of(content: Content) -> Iterator[int]:
    """Yield the rows that have the files of the table and of its partitions."""
    for part in (content.table, *content.partitions.values()):
        if part.files is not None:
            yield part.files.index
