"""The mark by which a target's table says that it is kept as a Delta table."""

from __future__ import annotations

from calque.core.images.table_layout import committed_format
from calque.model.hive import Table

DELTA = "delta"
"""The name of this plugin's format (`ports.formats.TableFormat.name`), and the value of the mark."""


def is_delta_replica(table: Table) -> bool:
    return committed_format(table) == DELTA
