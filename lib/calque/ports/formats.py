"""The formats of tables at a target besides Hive's own layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from calque.model.hive import Partition, Table


class TableFormat(Protocol):
    """A format of tables at a target. `name` is the word for it in `format` of a target's configuration."""

    @property
    def name(self) -> str: ...

    @property
    def log(self) -> str:
        """The directory below a table's root that holds the commits of a table of this format."""

    def misfit(self, table: Table, partitions: Iterable[Partition]) -> str:
        """Return why the table with these partitions is kept plain, as the end of a sentence; empty where it fits the
        format, provided that its files fit, too."""
