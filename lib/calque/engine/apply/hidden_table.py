"""Tables under a hidden name, in the hidden database, until one call renames them in."""

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
    """The table alone under the hidden name; where its files stay at the source, in the empty directory. Whether the
    database is there, and nothing that a crash left, is only asked where that fails."""
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
    """Nothing that a crash left stands there."""
    if context.side.catalog.table(hidden) is not None:
        context.call(context.side.catalog.drop_table, hidden)


def hidden_name(target_name: TableName, token: str) -> TableName:
    """The name under which a table is built, in the hidden database: one that no other table has."""
    name = f"{OURS}_{target_name.database}_{target_name.table}_{token}"
    if len(name) > LONGEST:
        name = f"{OURS}_{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}"
    return TableName(OURS, name)
