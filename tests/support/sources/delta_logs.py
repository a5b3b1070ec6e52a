"""A Delta log written by hand over Parquet files that lie there already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from calque.model.hive import Table
from calque.plugins.delta_replicas.core.parquet_statistics import file_statistics
from calque.plugins.delta_replicas.core.schema import data_columns, partition_columns, partition_values, schema_of


def write_log(root: Path, table: Table, files: Mapping[Path, Sequence[str]]) -> None:
    """One version, with the files and the values of their partitions as a metastore has them."""
    metadata = {
        "id": "00000000-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_of(table),
        "partitionColumns": partition_columns(table),
        "configuration": {},
        "createdTime": 0,
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    for file, values in files.items():
        content = file.read_bytes()
        action = {
            "path": quote(str(file.relative_to(root))),
            "partitionValues": partition_values(table, values),
            "size": len(content),
            "modificationTime": 0,
            "dataChange": True,
            "stats": file_statistics(content, data_columns(table)),
        }
        actions.append({"add": action})
    log = root / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
