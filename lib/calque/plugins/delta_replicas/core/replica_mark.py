"""How a target's table says that it is kept as a Delta table."""

from __future__ import annotations

from calque.core.images.table_layout import committed_format
from calque.model.hive import Table

DELTA = "delta"
"""`ports.formats.TableFormat.name` of this plugin."""


def is_delta_replica(table: Table) -> bool:
    return committed_format(table) == DELTA
