"""The registration of an Iceberg table in a metastore, in the form that Iceberg's own Hive catalog writes. Engines find
all else in the table's metadata file."""

from __future__ import annotations

from typing import Any

from calque.core.formats.iceberg import METADATA
from calque.model.hive import Column, SerDe, Storage, Table
from calque.model.names import TableName

HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
INPUT = "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"
OUTPUT = "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat"
SERDE = "org.apache.iceberg.mr.hive.HiveIcebergSerDe"


def table_of(name: TableName, metadata: Any, location: str) -> Table:
    """Return the Hive table for pyiceberg's table metadata `metadata`, whose file lies at `location`."""
    parameters = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "storage_handler": HANDLER,
        METADATA: location,
        "uuid": str(metadata.table_uuid),
    }
    serde = SerDe(class_name=SERDE, parameters={})
    storage = Storage(columns_of(metadata), metadata.location, INPUT, OUTPUT, serde=serde, parameters={})
    return Table(
        name.table,
        name.database,
        storage=storage,
        partition_keys=(),
        parameters=parameters,
        type="EXTERNAL_TABLE",
    )


def columns_of(metadata: Any) -> tuple[Column, ...]:
    from pyiceberg.catalog.hive import SchemaToHiveConverter
    from pyiceberg.schema import visit

    converter = SchemaToHiveConverter(hive2_compatible=False)
    return tuple(
        Column(one.name.lower(), visit(one.field_type, converter), one.doc) for one in metadata.schema().fields
    )
