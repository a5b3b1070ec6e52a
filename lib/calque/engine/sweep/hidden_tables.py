"""Which tables in the hidden database did this target build and leave behind?"""

from __future__ import annotations

from calque.core.images.image import SOURCE, is_ours
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.candidates import KeptPlace
from calque.engine.sweep.troubles import own_trouble
from calque.model.hive import Table
from calque.model.names import OURS, TableName, table_name


def hidden_tables(side: TargetSide, troubles: list[KeptPlace]) -> list[TableName]:
    """Tables in the hidden database that this target built: when nothing is to be done nobody builds them."""
    hidden: list[TableName] = []
    for name in (table_name(OURS, table) for table in side.catalog.tables(OURS)):
        with own_trouble(troubles, str(name)):
            table = side.catalog.table(name)
            if table is not None and is_built_for(side, name, table):
                hidden.append(name)
    return hidden


def is_built_for(side: TargetSide, name: TableName, table: Table) -> bool:
    """Whether the target takes the table that the hidden one says it is of, under the name that it was built for."""
    if not is_ours(table.parameters, side.policy.source):
        return False
    source_name = (table.parameters or {})[SOURCE].partition(":")[2]
    target_name = side.admission.name_at_target(table_name(*source_name.partition(".")[::2]))
    return name.table.startswith(f"{OURS}_{target_name.database}_{target_name.table}_")
