"""Names of tables as people write them."""

from __future__ import annotations

from calque.errors import Refused
from calque.model.names import TableName, table_name


def named_table(text: str) -> TableName:
    """`database.table`, back-ticks permitted. One without a database is in `default`, as for Hive. Raises `Refused`."""
    database, dot, name = text.strip().replace("`", "").partition(".")
    if not (name if dot else database) or "." in name:
        raise Refused(f'"{text}" is no name of a table', "One is database.table", 'Write e.g. "sales.orders"')
    return table_name(database, name) if dot else table_name("default", database)
