"""Kinds of tables that are not replicated, and why."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.iceberg import calls_iceberg, is_iceberg
from calque.model.hive import PROVIDER, Table, is_delta, is_view

ACID = "ACID tables (transactional=true)"
MATERIALIZED = "materialised views"
HANDLER = "tables of a storage handler"
INDEX = "index tables"
ICEBERG_VIEW = "Iceberg views"
HUDI = "Hudi tables"
LATER = "they come with a later version"
REASONS = {
    ACID: "the log does not tell which of their files belong to a state",
    MATERIALIZED: "they are built by the query engine from tables, not written",
    HANDLER: "their data lie outside the warehouse",
    HUDI: "which of their files belong to a state is told by a timeline of their own, which calque does not read",
    ICEBERG_VIEW: "their text lies in a file of its own, in the dialects of several engines",
    INDEX: "Hive 2 builds them from tables, and Hive 3 has none",
}
HUDI_TIMELINE = ".hoodie"
"""The directory below a Hudi table's own that has its timeline."""
HUDI_CLASSES = ("org.apache.hudi.", "com.uber.hoodie.")
HUDI_KEYS = ("hoodie.", "last_commit_time_sync")
"""How parameters begin that Hudi's writers and its synchronisation with metastores set."""


def kind_of(table: Table) -> str:
    """The kind that keeps a table from being replicated; empty for most."""
    parameters = {key.lower(): value for key, value in (table.parameters or {}).items()}
    if parameters.get("transactional", "").lower() == "true":
        return ACID
    if table.type == "MATERIALIZED_VIEW":
        return MATERIALIZED
    if table.type == "INDEX_TABLE":
        return INDEX
    if parameters.get("table_type", "").upper() == "ICEBERG-VIEW":
        return ICEBERG_VIEW
    if calls_iceberg(parameters) or is_delta(table):
        return ""
    if is_hudi(table, parameters):
        return HUDI
    return HANDLER if parameters.get("storage_handler") else ""


def is_hudi(table: Table, parameters: Mapping[str, str]) -> bool:
    """Whether Spark, Flink or Hive would read the table with Hudi; `parameters` with their keys in lower case."""
    storage = table.storage
    serde = (storage.serde.parameters if storage and storage.serde else None) or {}
    return (
        ((storage.input_format if storage else None) or "").startswith(HUDI_CLASSES)
        or parameters.get(PROVIDER, "").lower().startswith(("hudi", *HUDI_CLASSES))
        or parameters.get("connector", "").lower() == "hudi"
        or any(key.lower().startswith(HUDI_KEYS) for key in (*parameters, *serde))
    )


def is_plain(table: Table) -> bool:
    """Whether the metastore says that all files below the table's locations are its content."""
    return not (is_view(table) or is_iceberg(table) or is_delta(table) or kind_of(table))


def obstacle(table: Table) -> str:
    """Why the table is set aside, for people; empty when it is replicated."""
    kind = kind_of(table)
    return f"{kind} are not replicated: {REASONS.get(kind, LATER)}" if kind else ""
