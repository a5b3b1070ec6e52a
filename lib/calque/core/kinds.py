"""Kinds of tables that are not replicated, and why."""

from __future__ import annotations

from calque.core.iceberg import calls_iceberg
from calque.model.hive import Table, is_delta

ACID = "ACID tables (transactional=true)"
MATERIALIZED = "materialised views"
HANDLER = "tables of a storage handler"
INDEX = "index tables"
ICEBERG_VIEW = "Iceberg views"
LATER = "they come with a later version"
REASONS = {
    ACID: "the log does not tell which of their files belong to a state",
    MATERIALIZED: "they are built by the query engine from tables, not written",
    HANDLER: "their data lie outside the warehouse",
    ICEBERG_VIEW: "their text lies in a file of its own, in the dialects of several engines",
    INDEX: "Hive 2 builds them from tables, and Hive 3 has none",
}


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
    return HANDLER if parameters.get("storage_handler") else ""


def obstacle(table: Table) -> str:
    """Why the table is set aside, for people; empty when it is replicated."""
    kind = kind_of(table)
    return f"{kind} are not replicated: {REASONS.get(kind, LATER)}" if kind else ""
