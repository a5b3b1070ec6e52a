"""Formats of tables at a target besides Hive's own layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from calque.model.hive import Partition, Table


class TableFormat(Protocol):
    """One of them, by the word that `format` of a target has for it."""

    @property
    def name(self) -> str: ...

    @property
    def log(self) -> str:
        """The directory below a table's root that has its commits."""

    def misfit(self, table: Table, partitions: Iterable[Partition]) -> str:
        """Why the table with these partitions is kept plain, as the end of a sentence; empty where it fits, if its
        files fit, too."""
