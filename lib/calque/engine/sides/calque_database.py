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


def ensure_own_database(catalog: Catalog, warehouse: str) -> None:
    """Create calque's own database below `warehouse` if it does not exist."""
    if catalog.database(OURS) is not None:
        return
    with suppress(Conflict):
        catalog.create_database(Database(OURS, "calque's own: hidden builds and the lease", join(warehouse, OURS), {}))


def ensure_managed_place(catalog: Catalog, warehouse: str, name: str) -> None:
    """Have the database `name`, and calque's own, take managed tables below `warehouse`."""
    ensure_own_database(catalog, warehouse)
    for each in (OURS, name):
        database = catalog.database(each)
        if database is not None and database.managed_location != warehouse:
            catalog.alter_database(each, replace(database, managed_location=warehouse))


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
