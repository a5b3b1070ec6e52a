"""The checkpoint of a replica's Delta log: all that a version says, in one Parquet file. Source: the Delta transaction
log protocol, "Checkpoints"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calque.plugins.delta_replicas.core.log import PARTITION_DOMAIN, TABLE_DOMAIN, LoggedTable, domain_action
from calque.plugins.delta_replicas.core.row_log import ROWS_DOMAIN

STRINGS = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", STRINGS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", STRINGS),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("extendedFileMetadata", pa.bool_()),
                    ("partitionValues", STRINGS),
                    ("size", pa.int64()),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", STRINGS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)
MAPS = {"add": ("partitionValues", "tags"), "remove": ("partitionValues",), "metaData": ("configuration",)}


def checkpoint_of(logged: LoggedTable) -> tuple[bytes, int]:
    """Return the content of the checkpoint's file, and the number of its actions."""
    rows = [*rows_in(logged)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink, compression="snappy")
    return sink.getvalue().to_pybytes(), len(rows)


def rows_in(logged: LoggedTable) -> Iterator[dict[str, Any]]:
    yield {"protocol": logged.protocol}
    yield {"metaData": logged.metadata}
    yield from ({"txn": row} for row in logged.transactions.values())
    yield domain_action(TABLE_DOMAIN, logged.definition)
    for name, text in logged.partitions.items():
        yield domain_action(f"{PARTITION_DOMAIN}{name}", text)
    for name, text in logged.rows.items():
        yield domain_action(f"{ROWS_DOMAIN}{name}", text)
    yield from ({"domainMetadata": row} for row in logged.others.values())
    yield from ({"remove": {**row, "dataChange": False}} for row in logged.removed.values())
    for files in logged.files.values():
        yield from ({"add": {**file.record, "dataChange": False}} for file in files.values())


def rows_of_checkpoint(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the actions in the file of a checkpoint, no matter which writer made it."""
    file = pq.ParquetFile(pa.BufferReader(content))
    names = [name for name in SCHEMA.names if name in file.schema_arrow.names]
    for batch in file.iter_batches(columns=names):
        for row in batch.to_pylist():
            for name, action in row.items():
                if action is not None:
                    yield {name: plain(name, action)}


def plain(name: str, action: dict[str, Any]) -> dict[str, Any]:
    """Return the action as a commit's JSON has it: maps as objects, and without keys that have no value."""
    maps = {key: dict(action[key]) for key in MAPS.get(name, ()) if action.get(key) is not None}
    if name == "metaData":
        options = (action.get("format") or {}).get("options") or ()
        maps["format"] = {"provider": action["format"]["provider"], "options": dict(options)}
    return {key: value for key, value in {**action, **maps}.items() if value is not None}
