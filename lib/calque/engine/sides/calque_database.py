"""The database at a target that belongs to calque: it holds hidden builds and the lease."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from calque.core.formats.layout import join
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import OURS, TableName
from calque.ports import Catalog, Conflict

TEXT = "SELECT 1"
SHAPE = Storage(
    columns=(Column("x", "int"),),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe(parameters={}),
)


def ensure_own_database(catalog: Catalog, warehouse: str) -> Database:
    """Return calque's own database, which is created below `warehouse` if it does not exist."""
    own = catalog.database(OURS)
    if own is None:
        own = Database(OURS, "calque's own: hidden builds and the lease", join(warehouse, OURS), {})
        with suppress(Conflict):
            catalog.create_database(own)
        # A metastore that alters a database asks for its owner, whom it has chosen itself.
        own = catalog.database(OURS) or own
    return own


def ensure_managed_place(catalog: Catalog, warehouse: str, name: str) -> None:
    """Have the database `name`, and calque's own, take managed tables below `warehouse`."""
    for database in (ensure_own_database(catalog, warehouse), catalog.database(name)):
        if database is not None and database.managed_location != warehouse:
            catalog.alter_database(database.name, replace(database, managed_location=warehouse))


def own_view(name: TableName, parameters: Mapping[str, str]) -> Table:
    """Return a view by which calque keeps `parameters` in the metastore; a view has no directory."""
    return Table(
        name.table,
        name.database,
        storage=SHAPE,
        partition_keys=(),
        parameters=dict(parameters),
        view_original_text=TEXT,
        view_expanded_text=TEXT,
        type="VIRTUAL_VIEW",
    )
