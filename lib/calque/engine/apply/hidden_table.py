"""The tables under a hidden name, in the hidden database, until one call renames them in."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from calque.core.formats.pointers import relocated
from calque.engine.apply.context import HopContext
from calque.engine.sides.calque_database import ensure_own_database
from calque.model.hive import Table
from calque.model.names import OURS, TableName
from calque.ports import Conflict

LONGEST = 127
"""Characters that a name may have on every metastore."""


def begin(context: HopContext, table: TableName, hidden: TableName, definition: Table) -> None:
    """Make the table under the hidden name, without partitions; in the empty directory where its files stay at the
    source. Only where that fails it is asked whether the hidden database is there, and whether a crash left a table of
    the name."""
    empty = replace(definition, database=hidden.database, name=hidden.table)
    if context.lies_at_source(table, definition):
        empty = relocated(empty, context.empty_directory)
    try:
        context.call(context.side.catalog.create_table, empty)
    except Conflict:
        context.applied.calls -= 1
        ensure_own_database(context.side.catalog, context.side.policy.warehouse)
        clear(context, hidden)
        context.call(context.side.catalog.create_table, empty)


def clear(context: HopContext, hidden: TableName) -> None:
    """Drop what a crash left under the hidden name."""
    if context.side.catalog.table(hidden) is not None:
        context.call(context.side.catalog.drop_table, hidden)


def hidden_name(target_name: TableName, token: str) -> TableName:
    """Return the name under which a table is built, in the hidden database: one that no other table has. `token` tells
    builds of one table apart."""
    name = f"{OURS}_{target_name.database}_{target_name.table}_{token}"
    if len(name) > LONGEST:
        name = f"{OURS}_{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}"
    return TableName(OURS, name)
