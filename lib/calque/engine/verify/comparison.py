"""What plugins compare of an object that is at both sides."""

from __future__ import annotations

from typing import Protocol

from calque.core.images.compare import Difference
from calque.model.names import TableName


class Comparison(Protocol):
    """Safe from several threads."""

    def differences(self, name: TableName, target_name: TableName, of: str) -> list[Difference]:
        """Of a database (names without a table) or a table, as `of` says. Raises `Unavailable` and `Refused`."""
