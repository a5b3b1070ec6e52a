"""Tables at a target whose files are the source's, and which let the target's metastore move or delete these.

Calque makes none such; users of the target can. A DROP of a managed table deletes its directory, that of a purged one
too in Hive 4, and renaming a partition moves its directory, also when calque does it.
"""

from __future__ import annotations

from dataclasses import replace

from calque.core.images.image import PARKED
from calque.model.hive import Table, is_view


def arming_keys(table: Table) -> list[str]:
    """Its parameters that have the metastore act on the files by itself."""
    values = table.parameters or {}
    return sorted(key for key, value in values.items() if key.lower() in PARKED and value.lower() != "false")


def is_armed(table: Table) -> bool:
    return not is_view(table) and (table.type != "EXTERNAL_TABLE" or bool(arming_keys(table)))


def disarmed(table: Table) -> Table:
    """The table as an external one without those parameters."""
    keys = arming_keys(table)
    parameters = {key: value for key, value in (table.parameters or {}).items() if key not in keys}
    return replace(table, type="EXTERNAL_TABLE", parameters=parameters | {"EXTERNAL": "TRUE"})
