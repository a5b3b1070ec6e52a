"""Tables at a target over the source's files that let the target's metastore move or delete these files.

Calque makes no such table; users of the target can. A DROP of a managed table deletes its directory, and in Hive 4 so
does a DROP of a table with a purge parameter. Renaming a partition of such a table moves the partition's directory,
also when calque does it.
"""

from __future__ import annotations

from dataclasses import replace

from calque.core.images.image import PARKED
from calque.model.hive import Table, is_view


def arming_keys(table: Table) -> list[str]:
    """Return the table's parameters that make the metastore act on the files by itself."""
    values = table.parameters or {}
    return sorted(key for key, value in values.items() if key.lower() in PARKED and value.lower() != "false")


def is_armed(table: Table) -> bool:
    return not is_view(table) and (table.type != "EXTERNAL_TABLE" or bool(arming_keys(table)))


def disarmed(table: Table) -> Table:
    """Return the table as an external one, without the parameters that make the metastore act on its files."""
    keys = arming_keys(table)
    parameters = {key: value for key, value in (table.parameters or {}).items() if key not in keys}
    return replace(table, type="EXTERNAL_TABLE", parameters=parameters | {"EXTERNAL": "TRUE"})
