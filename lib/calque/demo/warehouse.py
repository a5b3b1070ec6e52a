"""The sample warehouse: a few databases with every kind of table, view and function that the demo replicates."""

from __future__ import annotations

from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import DEFAULT_PARTITION, TableName

DATABASES = {"sales": "What was sold", "hr": "People, Größe: 3", "web": None}
ID, NAME, AMOUNT = Column("id", "bigint", "a key"), Column("name", "string"), Column("amount", "double")
COLUMNS = (ID, NAME, AMOUNT)
"""The first columns of every table, so that views can be made over any table."""
DAY, REGION, HOUR = Column("ds", "string"), Column("region", "string", "Gebiet"), Column("hour", "int")

AWKWARD = (
    "two words",
    "100%25",
    "50%",
    "a=b",
    "10:30",
    "c#",
    "a/b",
    "x\\y",
    "{curly}",
    "it's",
    "Zürich",
    "東京",
    DEFAULT_PARTITION,
)
"""Partition values that are written differently in paths, or look as if they were."""


def create_sample(source: Source) -> None:
    """Fill an empty source: 3 databases, 9 tables, 3 views, 2 functions."""
    for name, comment in DATABASES.items():
        source.create_database(name, comment)
    _sales(source)
    _people(source)
    _web(source)


def _sales(source: Source) -> None:
    orders, customers, returns = (TableName("sales", name) for name in ("orders", "customers", "returns"))
    source.create_table(orders, COLUMNS, (DAY, REGION))
    source.add_partitions(orders, [(f"2024-01-0{day}", region) for day in (1, 2, 3) for region in ("north", "Zürich")])
    source.create_table(customers, COLUMNS, form="text")
    source.insert(customers)
    source.insert(customers)
    source.create_table(returns, COLUMNS, (REGION,), form="text", external=True)
    source.add_partitions(returns, [(value,) for value in AWKWARD], rows=3)
    source.create_view(TableName("sales", "big_orders"), orders, (ID, AMOUNT))
    source.create_function(TableName("sales", "discount"), "org.example.Discount")


def _people(source: Source) -> None:
    staff, rooms = TableName("hr", "staff"), TableName("hr", "rooms")
    source.create_table(staff, COLUMNS, external=True, rows=20)
    source.create_table(rooms, COLUMNS, rows=5)
    source.create_view(TableName("hr", "names"), staff, (ID, NAME))
    source.alter_database("hr", {"confidential": "yes"})


def _web(source: Source) -> None:
    clicks, pages = TableName("web", "clicks"), TableName("web", "pages")
    source.create_table(clicks, COLUMNS, (DAY, HOUR), external=True)
    source.add_partitions(clicks, [("2024-01-01", str(hour)) for hour in range(8)], rows=4)
    source.create_table(pages, COLUMNS, (REGION,))
    source.add_partitions(pages, [(value,) for value in AWKWARD[:4]])
    source.create_table(TableName("web", "empty"), COLUMNS, form="text")
    source.create_table(TableName("web", "never_filled"), COLUMNS, (DAY,), external=True)
    source.create_view(TableName("web", "sold"), TableName("sales", "customers"), (ID, NAME, AMOUNT))
    source.create_function(TableName("web", "url_host"), "org.example.UrlHost")
