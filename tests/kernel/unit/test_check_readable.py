"""The look of `calque check` at directories of the source's tables, beside writers that drop and move tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.engine.check.check_source import check_readable
from calque.engine.check.findings import Findings
from calque.model.hive import Database, Storage, Table
from calque.model.names import TableName
from support.memory.metastore import HIVE_3, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage

NAME, PLACE = TableName("sales", "orders"), "file:/data/orders"


class Reader(MemoryReader):
    """A reader before whose look at a table a writer changes it."""

    def __init__(self, store: MemoryMetastore, change: Callable[[MemoryMetastore], None]) -> None:
        super().__init__(store)
        self.change, self.changed = change, store

    def table(self, name: TableName) -> Table | None:
        self.change(self.changed)
        return super().table(name)


def definition(location: str) -> Table:
    return Table("orders", "sales", storage=Storage(location=location), type="EXTERNAL_TABLE")


def warnings(
    change: Callable[[MemoryMetastore], None] = lambda _: None, storage: MemoryStorage | None = None
) -> list[str]:
    """What is found of a table at `PLACE` that a writer changes between two looks."""
    store, findings = MemoryMetastore(HIVE_3, "file:/warehouse"), Findings()
    store.create_database(Database("sales"))
    store.create_table(definition(PLACE))
    check_readable(Reader(store, change), storage or MemoryStorage(), {NAME: definition(PLACE)}, findings)
    return [one.what for one in findings.entries]


def test_a_directory_that_stays_away_is_a_warning() -> None:
    assert warnings() == ["The directories of sales.orders are not there"]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.drop_table(NAME),
        lambda store: store.alter_table(NAME, definition("file:/data/moved")),
    ],
    ids=["dropped", "moved"],
)
def test_a_table_that_is_dropped_or_moved_between_two_looks_is_not(change: Callable[[MemoryMetastore], None]) -> None:
    assert warnings(change) == []


def test_a_directory_that_comes_between_two_looks_is_not() -> None:
    storage = MemoryStorage()
    assert warnings(lambda _: storage.make(PLACE), storage) == []
