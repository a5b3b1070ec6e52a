"""The database `shop` of a demo that stays. Its writer makes gentle changes only, so that its tables and partitions
are there when a user tries a statement with them."""

from __future__ import annotations

from calque.demo.source import Source
from calque.demo.warehouse import COLUMNS, DAY, REGION
from calque.demo.writer import Writer
from calque.model.names import TableName

ORDERS = TableName("shop", "orders")
DAYS, REGIONS = ("2024-01-01", "2024-01-02", "2024-01-03"), ("north", "south")
GENTLE = ("insert", "overwrite", "add_partitions", "alter_partitions")
"""The changes that leave each table and each partition where it is."""


def create_shop(source: Source) -> Writer:
    """Create the database in a source that has no other one, and return the writer that changes it."""
    source.create_database(ORDERS.database, "To try things with")
    source.create_table(ORDERS, COLUMNS, (DAY, REGION))
    source.add_partitions(ORDERS, [(day, region) for day in DAYS for region in REGIONS])
    return Writer(source, changes=GENTLE)
