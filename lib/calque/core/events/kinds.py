"""Kinds of tables that are not replicated, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.formats.iceberg import calls_iceberg, is_iceberg
from calque.core.formats.pointers import PointerKind, refusals
from calque.model.hive import PROVIDER, Database, Partition, Table, is_delta, is_insert_only, is_transactional, is_view

ACID = "ACID tables (transactional=true)"
MATERIALIZED = "materialised views"
HANDLER = "tables of a storage handler"
INDEX = "index tables"
REMOTE = "databases of a data connector"
REMOTE_TYPE = 2
"""`DatabaseType.REMOTE` of Hive 4's Thrift."""
ICEBERG_VIEW = "Iceberg views"
HUDI = "Hudi tables"
LATER = "they come with a later version"
REASONS = {
    ACID: 'acid = "native" replicates them at a Hive 4, "delta" as Delta tables, "external" insert-only ones',
    MATERIALIZED: "they are built by the query engine from tables, not written",
    HANDLER: "their data lie outside the warehouse",
    HUDI: "which of their files belong to a state is told by a timeline of their own, which calque does not read",
    ICEBERG_VIEW: "their text lies in a file of its own, in the dialects of several engines",
    INDEX: "Hive 2 builds them from tables, and Hive 3 has none",
    REMOTE: "their tables are those of another system, which the metastore asks for them",
}
POINTING = {
    PointerKind.PROJECTION: "tables with partition projection",
    PointerKind.FLINK: "Flink's generic tables",
    PointerKind.SOURCE: "tables of Spark's data sources without a place",
    PointerKind.UNLISTED: "Spark's tables whose partitions are directories alone",
    PointerKind.VALUE: "tables with places in parameters that can't follow",
}
"""Kinds of tables that name a place which is refused, by the kind of the first such place."""
PROJECTED = "Its partitions are made up by query engines (projection.enabled)"
"""The reason for which readers that need the metastore's partitions refuse such a table; its files are replicated."""
HUDI_TIMELINE = ".hoodie"
"""The directory of a Hudi table's timeline, below the table's own."""
HUDI_CLASSES = ("org.apache.hudi.", "com.uber.hoodie.")
HUDI_KEYS = ("hoodie.", "last_commit_time_sync")
"""Beginnings of parameters that Hudi's writers and its synchronisation with metastores set."""


def kind_of(table: Table) -> str:
    """Return the kind that keeps a table from being replicated; empty for a table that is replicated under
    every policy."""
    return ACID if is_transactional(table) else kind_beside_acid(table)


def kind_beside_acid(table: Table) -> str:
    """Return what `kind_of` would for the same table if it were not transactional."""
    parameters = {key.lower(): value for key, value in (table.parameters or {}).items()}
    if table.type == "MATERIALIZED_VIEW":
        return MATERIALIZED
    if table.type == "INDEX_TABLE":
        return INDEX
    if parameters.get("table_type", "").upper() == "ICEBERG-VIEW":
        return ICEBERG_VIEW
    if not (calls_iceberg(parameters) or is_delta(table)):
        if is_hudi(table, parameters):
            return HUDI
        if parameters.get("storage_handler"):
            return HANDLER
    refused = next(refusals(table), None)
    return POINTING[refused.kind] if refused is not None else ""


def is_hudi(table: Table, parameters: Mapping[str, str]) -> bool:
    """Tell whether Spark, Flink or Hive would read the table with Hudi. `parameters` are the table's, with lower-case
    keys."""
    storage = table.storage
    serde = (storage.serde.parameters if storage and storage.serde else None) or {}
    return (
        ((storage.input_format if storage else None) or "").startswith(HUDI_CLASSES)
        or parameters.get(PROVIDER, "").lower().startswith(("hudi", *HUDI_CLASSES))
        or parameters.get("connector", "").lower() == "hudi"
        or any(key.lower().startswith(HUDI_KEYS) for key in (*parameters, *serde))
    )


def is_plain(table: Table) -> bool:
    """Tell whether all files below the table's locations are its content, as the metastore's definition says."""
    return not (is_view(table) or is_iceberg(table) or is_delta(table) or kind_of(table))


def obstacle(table: Table, acid: str = "skip") -> str:
    """Say, for people, why the table is set aside; empty when it is replicated. `acid` is the policy's word for the
    table (`Policy.acid`)."""
    is_external = acid in ("auto", "external") and is_insert_only(table)
    is_taken = is_transactional(table) and (acid in ("native", "delta") or is_external)
    kind = kind_beside_acid(table) if is_taken else kind_of(table)
    return f"{kind} are not replicated: {reason_of(table, kind)}" if kind else ""


def reason_of(table: Table, kind: str) -> str:
    """Say why this table, which is of `kind`, is not replicated."""
    if kind in REASONS:
        return REASONS[kind]
    refused = next(refusals(table), None)
    return f"{refused.refusal} ({refused.key} = {refused.value})" if refused is not None else LATER


def partition_obstacle(partition: Partition) -> str:
    """Say why the partition has its table set aside; empty when it does not."""
    refused = next(refusals(partition), None)
    if refused is None:
        return ""
    return f"Partition {list(partition.values)} is not replicated: {refused.refusal} ({refused.key} = {refused.value})"


def database_obstacle(database: Database) -> str:
    """Say why the database is set aside; empty when it is replicated."""
    if database.database_type != REMOTE_TYPE:
        return ""
    return f"{REMOTE} are not replicated: {REASONS[REMOTE]} ({database.connector})"
