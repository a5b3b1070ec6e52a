"""The definition with which the target's metastore has a table that is kept as a Delta table.

The table's log says what it shows (`plugins.delta_replicas.core.log`). The metastore has it as a Delta table, so that
Spark and other readers find it there: without partitions, its partition keys among its columns, at its root.
"""

from __future__ import annotations

from dataclasses import replace

from calque.core.images.image import STATISTICS
from calque.model.hive import PROVIDER, SerDe, Storage, Table
from calque.plugins.delta_replicas.core.replica_mark import DELTA

OF_SPARK = "spark.sql."
INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
"""The formats that Spark itself registers for Delta tables. Hive can't read a table by them."""


def registered(table: Table, root: str) -> Table:
    """Return the table as the target's metastore has it. Statistics are left out, and what Spark wrote of the columns
    of the source's table, because readers take both from the log."""
    storage = table.storage or Storage()
    parameters = {key: value for key, value in (table.parameters or {}).items() if is_said(key)}
    return replace(
        table,
        partition_keys=(),
        parameters={**parameters, PROVIDER: DELTA},
        storage=replace(
            storage,
            columns=(*(storage.columns or ()), *(table.partition_keys or ())),
            location=root,
            input_format=INPUT,
            output_format=OUTPUT,
            serde=SerDe(class_name=SERDE, parameters={"path": root, "serialization.format": "1"}),
            bucket_columns=(),
            sort_columns=(),
            buckets=-1,
            skew=None,
        ),
    )


def with_registered(table: Table, at_metastore: Table) -> Table:
    """Return the definition `table` of a log, with what the metastore was told since then by `registered`."""
    parameters = {key: value for key, value in (table.parameters or {}).items() if not is_said(key)}
    said = {key: value for key, value in (at_metastore.parameters or {}).items() if is_said(key)}
    storage, columns = table.storage or Storage(), at_metastore.storage.columns if at_metastore.storage else None
    keys = len(table.partition_keys or ())
    return replace(
        table,
        owner=at_metastore.owner,
        owner_type=at_metastore.owner_type,
        type=at_metastore.type,
        parameters={**parameters, **said},
        storage=replace(storage, columns=(columns or ())[: len(columns or ()) - keys]),
    )


def is_said(parameter: str) -> bool:
    """Tell whether the metastore is told the parameter as the source has it."""
    return not parameter.startswith(OF_SPARK) and parameter not in STATISTICS
