"""A table of the source kept as a Delta table at the target: what the target's metastore says of it.

The table's log says what it shows (`core.delta_replica_log`). The metastore has it as a Delta table, so that Spark and
other readers find it there: without partitions, its partition keys among its columns, at its root.
"""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.images.image import FORMAT, STATISTICS
from calque.model.hive import PROVIDER, SerDe, Storage, Table
from calque.model.names import OURS, EventId

DELTA = "delta"
CONTENTS = f"{OURS}/"
"""Below a Delta table's root, where no file of another version lies visible: contents that need a directory of their
own."""
OF_SPARK = "spark.sql."
INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
"""What Spark itself says of Delta tables: nothing that Hive could read."""


def plain_because(why: str) -> str:
    """What a table says of its format that was to be a Delta table."""
    return f"plain: {why}"


def is_delta_replica(table: Table) -> bool:
    """Whether a table at a target is kept as a Delta table."""
    return (table.parameters or {}).get(FORMAT) == DELTA


def with_format(table: Table, text: str) -> Table:
    """The definition, with what became of the wish for a Delta table; nothing where there is none."""
    others = {key: value for key, value in (table.parameters or {}).items() if key != FORMAT}
    return replace(table, parameters={**others, FORMAT: text} if text else others)


def like(table: Table, before: Table) -> Table:
    """The definition in the format that the table had before."""
    return with_format(table, (before.parameters or {}).get(FORMAT, ""))


def content_location(root: str, partition: str, event_id: EventId) -> str:
    """A directory below the table's root for what a partition (`""`: the table) has from the event on."""
    return join(root, f"{CONTENTS}{partition or 'data'}/{event_id}")


def root_of_content(location: str) -> str:
    """The root of a table without partitions whose content lies there."""
    root, found, _ = location.rpartition(f"/{CONTENTS}data/")
    return root if found else location


def registered(table: Table, root: str) -> Table:
    """The table as the target's metastore has it. Statistics are left out, and what Spark wrote of the columns of the
    source's table: readers take both from the log."""
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
    """A definition as a log has it, with what the metastore was told since under `registered`."""
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
    """Whether the metastore is told of such a parameter as the source has it."""
    return not parameter.startswith(OF_SPARK) and parameter not in STATISTICS
