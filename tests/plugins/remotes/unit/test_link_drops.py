"""A linked database goes with its tables, and a statement that could not drop them says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from calque.app import APP
from calque.core.images.image import SOURCE
from calque.core.images.own_parameters import CONNECTED_TO
from calque.errors import Unavailable
from calque.model.hive import Database, Storage, Table
from calque.model.names import TableName
from calque.plugins.remotes.run.reconcile_links import drop_link
from calque.plugins.remotes.wiring.remotes import RemotesWiring, remotes_at
from calque.ports import Conflict
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryMetastore

SHOP = TableName("shop")
OF_FAR = "remote.thrift.far.0"


def remotes_over(folder: Path, before: Callable[[str], None]) -> RemotesWiring:
    """A local catalog with a linked database and two tables that a projection made; `before` hears each call."""
    config = folder / "calque.toml"
    config.write_text('[remotes]\nmetastore = "thrift://here.invalid:9083"\n')
    remotes: RemotesWiring = remotes_at(APP.wiring(APP.load(config)))
    metastore = MemoryMetastore(HIVE_3, "file:/warehouse")
    metastore.create_database(Database("shop", parameters={CONNECTED_TO: "far", SOURCE: f"{OF_FAR}:far"}))
    for name in ("t", "u"):
        marks = {"EXTERNAL": "TRUE", SOURCE: f"{OF_FAR}:far.{name}"}
        table = Table(name, "shop", storage=Storage((), f"file:/far/{name}"), parameters=marks, type="EXTERNAL_TABLE")
        metastore.create_table(table)
    remotes._catalog = MemoryCatalog(metastore, before=before)
    return remotes


def refusing(times: float) -> Callable[[str], None]:
    """The server refuses to drop a table as often."""
    left = times

    def before(call: str, *_: object) -> None:
        nonlocal left
        if call == "drop_table" and left > 0:
            left -= 1
            raise Conflict("somebody changed it")

    return before


def test_a_refused_drop_is_done_again_until_all_is_gone(tmp_path: Path) -> None:
    remotes = remotes_over(tmp_path, refusing(3))
    drop_link(remotes, SHOP)
    assert remotes.catalog().databases() == ("default",)
    assert remotes.registry().leaving == {}


def test_one_that_stays_refused_is_said(tmp_path: Path) -> None:
    remotes = remotes_over(tmp_path, refusing(float("inf")))
    with pytest.raises(Unavailable, match="its tables are still there"):
        drop_link(remotes, SHOP, seconds=0.2)
    assert sorted(remotes.catalog().tables("shop")) == ["t", "u"]
    assert remotes.registry().leaving == {SHOP: "drop"}


def test_a_table_of_the_local_catalog_s_own_keeps_the_database(tmp_path: Path) -> None:
    remotes = remotes_over(tmp_path, refusing(0))
    remotes.catalog().create_table(Table("own", "shop", storage=Storage((), "file:/own"), parameters={}))
    drop_link(remotes, SHOP)
    assert list(remotes.catalog().tables("shop")) == ["own"]
    left = remotes.catalog().database("shop")
    assert left is not None
    assert not {CONNECTED_TO, SOURCE} & (left.parameters or {}).keys()
