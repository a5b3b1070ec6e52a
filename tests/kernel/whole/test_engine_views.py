"""Views of engines under `rename`: what names a database names the target's, or the view is set aside."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from calque.core.policy.admit import Admission
from calque.core.records.lifecycle import State
from calque.engine.check.check_source import check_views_of_engines
from calque.engine.check.findings import Findings
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from support.worlds.worlds import World

STORAGE = Storage((Column("id", "int"),), serde=SerDe(parameters={}))
SPARK_3 = {
    "view.catalogAndNamespace.numParts": "2",
    "view.catalogAndNamespace.part.0": "spark_catalog",
    "view.catalogAndNamespace.part.1": "shop",
}
SPARK_2 = {"view.default.database": "shop"}
PRESTO = base64.b64encode(json.dumps({"originalSql": "SELECT id FROM orders", "schema": "shop"}).encode()).decode()


@pytest.fixture
def world() -> World:
    policy = Policy("dr", "hq", include=("shop.*", "desk.*"), rename={"shop": "shop_dr"}, warehouse="file:/target")
    world = World(1, policy=policy)
    world.open()
    for database in ("shop", "desk"):
        world.source.create_database(Database(database))
        world.note()
    world.source.create_table(Table("orders", "shop", storage=STORAGE, parameters={}))
    world.note()
    return world


def create(world: World, database: str, text: str, parameters: Mapping[str, str]) -> None:
    view = Table("v", database, storage=STORAGE, parameters=dict(parameters), type="VIRTUAL_VIEW")
    world.source.create_table(replace(view, view_original_text=text, view_expanded_text=text))


@pytest.mark.parametrize("database", ["shop", "desk"])
@pytest.mark.parametrize("current", [SPARK_3, SPARK_2], ids=["Spark 3", "Spark 2"])
def test_the_current_database_of_a_view_of_spark_is_that_of_the_target(
    world: World, database: str, current: Mapping[str, str]
) -> None:
    create(world, database, "SELECT id FROM orders", current)
    world.note()
    world.settle()
    shown = world.target_store.the_table(TableName("shop_dr" if database == "shop" else database, "v")).table
    expected = {key: "shop_dr" if value == "shop" else value for key, value in current.items()}
    assert {key: (shown.parameters or {}).get(key) for key in current} == expected
    assert shown.view_expanded_text == "SELECT id FROM orders"


def test_a_current_database_of_another_catalog_stays(world: World) -> None:
    current = {**SPARK_3, "view.catalogAndNamespace.part.0": "lake"}
    create(world, "desk", "SELECT id FROM lake.shop.orders", current)
    world.note()
    world.settle()
    parameters = world.target_store.the_table(TableName("desk", "v")).table.parameters or {}
    assert parameters["view.catalogAndNamespace.part.1"] == "shop"


def test_a_view_of_presto_is_set_aside_with_the_reason(world: World) -> None:
    create(world, "shop", f"/* Presto View: {PRESTO} */", {"presto_view": "true"})
    world.settle()
    name = TableName("shop", "v")
    assert world.replica.tables.in_state(State.QUARANTINED) == [name]
    assert "Presto and Trino keep its text encoded" in world.replica.tables.rows[name].reason


@pytest.mark.parametrize("rename", [{"shop": "shop_dr"}, {}])
def test_check_names_views_of_presto_where_run_sets_them_aside(world: World, rename: Mapping[str, str]) -> None:
    create(world, "shop", f"/* Presto View: {PRESTO} */", {"presto_view": "true"})
    view = world.source.the_table(TableName("shop", "v")).table
    other = replace(view, name="w", view_original_text="SELECT 1")
    findings = Findings()
    views = {TableName("shop", "v"): view, TableName("shop", "w"): other}
    check_views_of_engines(views, [Admission(Policy("dr", "hq", include=("shop.*",), rename=rename))], findings)
    expected = ["Views can't be shown under `rename`: shop.v"] if rename else []
    assert [entry.what for entry in findings.entries] == expected
    assert all("Presto and Trino keep its text encoded" in str(entry) for entry in findings.entries)
