"""The search for tables that this target built in the hidden database and left behind."""

from __future__ import annotations

from calque.core.images.image import SOURCE, is_ours
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.candidates import KeptPlace
from calque.engine.sweep.troubles import own_trouble
from calque.model.hive import Table
from calque.model.names import OURS, TableName, table_name


def hidden_tables(side: TargetSide, troubles: list[KeptPlace]) -> list[TableName]:
    """Return the tables in the hidden database that this target built. The caller asks only while the target has
    nothing to do, because then no process still builds one of them. What can't be read is added to `troubles`."""
    hidden: list[TableName] = []
    for name in (table_name(OURS, table) for table in side.catalog.tables(OURS)):
        with own_trouble(troubles, str(name)):
            table = side.catalog.table(name)
            if table is not None and is_built_for(side, name, table):
                hidden.append(name)
    return hidden


def is_built_for(side: TargetSide, name: TableName, table: Table) -> bool:
    """Tell whether the hidden table `name` is a replica of a table that this target takes, and was built for that
    table's name at the target."""
    if not is_ours(table.parameters, side.policy.source):
        return False
    source_name = (table.parameters or {})[SOURCE].partition(":")[2]
    target_name = side.admission.name_at_target(table_name(*source_name.partition(".")[::2]))
    return name.table.startswith(f"{OURS}_{target_name.database}_{target_name.table}_")
