"""Remote tables: their statements parse, and a link in a catalog in memory is filled and emptied."""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from plugins.remotes.unit.test_linked_catalog import T, World, replica


def test_it_works_at_all(tmp_path: Path) -> None:
    at = "WITH TBLPROPERTIES ('hive.metastore.uris' = 'thrift://far:9083')"
    APP.language().parse(f"CREATE REMOTE TABLE here.t CONNECTED TO shop.t VIA 'thrift' {at}")
    APP.language().parse("SHOW REMOTE TABLES")
    world = World(tmp_path)
    assert world.linked.table(T) is None
    world.linked.create_table(replica(T))
    assert world.linked.table(T) is not None
    world.linked.drop_table(T)
    assert world.linked.table(T) is None
