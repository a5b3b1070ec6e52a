"""The interface of comparisons that plugins make of an object that is at both sides."""

from __future__ import annotations

from typing import Protocol

from calque.core.images.compare import Difference
from calque.model.names import TableName


class Comparison(Protocol):
    """A comparison of databases and tables by a plugin. Safe from several threads."""

    def differences(self, name: TableName, target_name: TableName, of: str) -> list[Difference]:
        """Return the differences of the database (names without a table) or table, as `of` says. Raises `Unavailable`
        and `Refused` as the ports do."""
