"""The hops that rows of a ledger's `objects` record: one row for each epoch, table and event that a hop ended at."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds

if TYPE_CHECKING:
    import duckdb

HOPS = pa.schema(
    [
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("event_id", pa.int64()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("incarnation", pa.string()),
        pa.field("changes", pa.string()),
        pa.field("objects", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
HOPS_OF = """
    SELECT epoch, event_id, database, "table", any_value(incarnation) AS incarnation,
           string_agg(DISTINCT change, ', ' ORDER BY change) AS changes, count(*) AS objects,
           CAST(coalesce(sum(len(files)), 0) AS BIGINT) AS files,
           CAST(coalesce(sum(list_sum(list_transform(files, lambda file: file.size))), 0) AS BIGINT) AS bytes
    FROM {objects} WHERE epoch BETWEEN {first} AND {last}
    GROUP BY epoch, event_id, database, "table"
"""
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "1GB",
    "preserve_insertion_order": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def connection() -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB engine. It opens no file and no address, and knows only the data that is registered with it.
    Data beyond its memory goes to a temporary folder, which it removes when it is closed."""
    import duckdb

    spill = str(Path(gettempdir()) / f"calque-audit-{uuid4().hex}")
    engine = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": spill})
    engine.execute("CREATE SCHEMA calque; SET search_path = 'main,calque'")
    # How many rows an Arrow data set has is not known beforehand; taken for few, they would be compared pair by pair.
    engine.execute("SET asof_loop_join_threshold = 0")
    engine.execute("SET TimeZone = 'UTC'; SET enable_external_access = false; SET lock_configuration = true")
    return engine


def hop_rows(engine: duckdb.DuckDBPyConnection, objects: ds.Dataset, epochs: range) -> pa.RecordBatchReader:
    """Return the hops of these epochs, ordered by table, epoch and event, because rows in this order compress best."""
    engine.register("objects", objects)
    hops = HOPS_OF.format(objects="objects", first=epochs.start, last=epochs.stop - 1)
    query = f'SELECT * FROM ({hops}) ORDER BY database, "table", epoch, event_id'
    return engine.execute(query).to_arrow_reader()
