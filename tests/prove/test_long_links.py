"""Links under readers, over metastores, for longer than other tests may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from calque.model.names import TableName
from support.services.linked import Linked
from support.services.servers import Shared, shared_servers

PATIENCE = 400.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.fixture
def linked(shared: Shared, tmp_path: Path) -> Iterator[Linked]:
    servers = shared("source-3", "target-4")
    linked = Linked(tmp_path, servers["target-4"].uri, servers["source-3"].uri)
    yield linked
    linked.close()


def test_a_link_keeps_its_partitions_through_a_window_of_column_changes_that_nothing_tells_of(linked: Linked) -> None:
    """Columns with CASCADE, partitions, columns with CASCADE again: nothing says what the first did to those that stood
    before. A reader of the link sees it at every moment, with partitions."""
    here, there = linked.here, linked.there
    there.database("rm9_shop")
    there.table("rm9_shop.orders", "1", "2", "3")
    here.database("rm9_local")
    linked.link("rm9_local.orders", "rm9_shop.orders")
    with linked.running():
        linked.wait_live("rm9_local.orders", seconds=PATIENCE)
        linked.wait_until(lambda: len(here.parts("rm9_local.orders")) == 3, PATIENCE)
    name = TableName("rm9_shop", "orders")

    def change_columns(*columns: str, cascade: bool) -> None:
        table = there.shown(str(name))
        assert table is not None
        changed = replace(table, storage=replace(there.storage(there.place(name), *columns)))
        there.client.alter_table(name, changed, cascade=cascade)

    change_columns("x", "y", cascade=True)
    there.partitions(str(name), "4a", "4b")
    change_columns("x", "y", "z", cascade=True)
    there.partitions(str(name), "5")
    there.client.drop_partitions(name, ["p=1", "p=2"])
    there.alter(str(name), colour="red")

    def look() -> int | None:
        time.sleep(0.02)  # a reader that never rests leaves the process no processor
        before = here.client.current()
        count = len(here.parts("rm9_local.orders")) if here.shown("rm9_local.orders") is not None else None
        return count if here.client.current() == before else -1

    with linked.reader(look) as seen, linked.running():
        linked.wait_until(lambda: here.parameters("rm9_local.orders").get("colour") == "red", PATIENCE)
        linked.wait_until(lambda: here.parts("rm9_local.orders") == ["p=3", "p=4a", "p=4b", "p=5"], PATIENCE)
        linked.wait_live("rm9_local.orders", seconds=PATIENCE)
    assert seen.isdisjoint({None, 0}), seen
    shown = here.shown("rm9_local.orders")
    assert shown is not None
    assert shown.storage is not None
    assert [column.name for column in shown.storage.columns or ()] == ["x", "y", "z"]
