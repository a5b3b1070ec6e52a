"""The commands of "Your first replica", in their order, between two real metastores."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.places import ROOT
from support.reader import carried_out, page_blocks, shell

PAGE = ROOT / "docs" / "first-replica.md"
DATABASE = "first_replica"
ORDERS = TableName(DATABASE, "orders")


@pytest.fixture
def source(servers: Mapping[str, Metastore], tmp_path: Path) -> Source:
    """A table with a file in each of two partitions."""
    found = Source(HiveClient(servers["source"].uri), tmp_path / "data")
    found.create_database(DATABASE)
    found.create_table(ORDERS, (Column("amount", "bigint"),), (Column("ds", "string"),), external=True)
    found.add_partitions(ORDERS, [["2026-01-01"]])
    found.add_partitions(ORDERS, [["2026-01-02"]])
    return found


@pytest.mark.timeout(600)
def test_the_commands_of_the_page_lead_to_a_replica_that_follows_its_source(
    servers: Mapping[str, Metastore], source: Source, tmp_path: Path
) -> None:
    (_, installation), *others = page_blocks(PAGE, {"sh", "text hive"})
    assert "pip install" in installation, "`make first-replica` installs"
    replacements = {
        "thrift://metastore.hq:9083": servers["source"].uri,
        "thrift://metastore.dr:9083": servers["target"].uri,
        "/data/dr": str(tmp_path / "dr"),
        "sales": DATABASE,
    }
    printed: list[str] = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with shell(tmp_path, {**os.environ, "PATH": path}) as started:
        for kind, text in others:
            for written, real in replacements.items():
                assert written in PAGE.read_text(encoding="utf-8")
                text = text.replace(written, real)
            if kind == "text hive":
                source.insert(ORDERS, "ds=2026-01-02")
            else:
                printed.append(carried_out(started, text))
    configured, checked, _, compared, _, followed, stopped = printed
    assert configured.startswith("Wrote calque.toml. Run ")
    assert "All is well." in checked
    assert "dr equals the source at event" in compared
    assert f"{ORDERS}  -          live" in compared
    assert "dr equals the source at event" in followed
    assert f"{ORDERS} at dr is live, and shows event {source.client.current()}" in followed
    assert "capture is stopped" in stopped
