"""Views of Spark in dumps: loaded under another name, what names their database names the loaded one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.plugins.dumps.core.load_policy import load_policy
from kernel.whole.test_engine_views import SPARK_2, SPARK_3
from support.worlds.dumpworlds import DumpWorld

STORAGE = Storage((Column("id", "int"),), serde=SerDe(parameters={}))
TEXT = "SELECT id FROM orders"


def of_d1(parameters: Mapping[str, str], name: str) -> dict[str, str]:
    """The parameters of a view whose current database is called so."""
    return {key: name if value == "shop" else value for key, value in parameters.items()}


def create_view(world: DumpWorld, name: str, current: Mapping[str, str]) -> None:
    view = Table(name, "d1", storage=STORAGE, parameters=of_d1(current, "d1"), type="VIRTUAL_VIEW")
    world.source.create_table(replace(view, view_original_text=TEXT, view_expanded_text=TEXT))


@pytest.mark.parametrize("layout", ["3", "4"])
@pytest.mark.parametrize("local", ["copy", "other"])
def test_a_view_of_spark_that_is_loaded_under_another_name_reads_that_database(
    tmp_path: Path, local: str, layout: str
) -> None:
    """One database called `d1` is at the target as well: the views must not read it. One view of each kind is in the
    bootstrap, one comes with an event, one is altered by an event."""
    world = DumpWorld(0, tmp_path, ())
    world.rng.choice = lambda _: layout  # type: ignore[method-assign,assignment]
    policy = load_policy(world.side.policy, "hq", "d1", local, "").policy
    world.side = type(world.side).of(policy, world.side.catalog, world.ledger, world.side.storage)
    world.target_store.create_database(Database("d1"))
    world.target_store.create_table(Table("orders", "d1", storage=STORAGE, parameters={}))
    world.source.create_database(Database("d1", parameters={}))
    storage = replace(STORAGE, location="file:/source/orders")
    world.source.create_table(Table("orders", "d1", storage=storage, type="MANAGED_TABLE", parameters={}))
    kinds = {"two": SPARK_2, "three": SPARK_3}
    for kind, current in kinds.items():
        create_view(world, f"{kind}_first", current)
        create_view(world, f"{kind}_altered", current)
    world.clock.now += 60 * 10**9
    first = world.dump()
    assert world.load(first) == []
    for kind, current in kinds.items():
        create_view(world, f"{kind}_late", current)
        altered = world.source.the_table(TableName("d1", f"{kind}_altered")).table
        parameters = {**(altered.parameters or {}), "comment": "new"}
        world.source.alter_table(TableName("d1", altered.name), replace(altered, parameters=parameters))
    assert world.load(world.dump(first.last_event)) == []
    for kind, current in kinds.items():
        for when in ("first", "altered", "late"):
            shown = world.target_store.the_table(TableName(local, f"{kind}_{when}")).table
            expected = of_d1(current, local)
            assert {key: (shown.parameters or {}).get(key) for key in current} == expected, shown.name
            assert shown.view_expanded_text == TEXT
