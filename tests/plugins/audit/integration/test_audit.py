"""What the audit tells of a deployment on real metastores: beside a running calque, and after a sweep forgot."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment

pytestmark = pytest.mark.timeout(600)
ID = (Column("id", "bigint"),)


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, 1)
    deployment.config.write_text(deployment.config.read_text() + '\ngrace = "1ms"\n[state]\nhistory = "90d"\n')
    yield deployment
    deployment.close()


def asked(deployment: Deployment, text: str, code: int = 0) -> Any:
    """The rows of a statement; for another code what is told."""
    ended = deployment.calque("sql", text, "--json")
    assert ended.returncode == code, ended.stderr
    return json.loads(ended.stdout)[-1]["rows"] if code == 0 else ended.stderr


def test_what_was_shown_is_told_beside_a_running_calque_and_after_a_sweep(deployment: Deployment) -> None:
    source = Source(deployment.source.client, deployment.root / "made")
    table = TableName(deployment.databases[0], "orders")
    source.create_database(table.database)
    source.create_table(table, ID, rows=3)
    deployment.start()
    shown = f"SELECT event_id, files FROM calque.hops WHERE table_name = '{table.table}' ORDER BY event_id"
    for number in range(3):
        source.insert(table)
        deployment.settle()
        assert number + 1 <= len(asked(deployment, shown))
    assert deployment.end(signal.SIGTERM) == 0
    before = {
        text: asked(deployment, text)
        for text in (
            shown,
            "SELECT epoch, event_id, files, bytes FROM calque.epochs ORDER BY epoch",
            "SELECT event_id, event_type, fate, shown_by_event, epoch FROM calque.events ORDER BY event_id",
        )
    }
    kept = len(json.loads(deployment.calque("epochs", "list", "--target", "dr", "--json").stdout))
    assert deployment.calque("sweep").returncode == 0
    assert len(json.loads(deployment.calque("epochs", "list", "--target", "dr", "--json").stdout)) < kept
    assert {text: asked(deployment, text) for text in before} == before
    assert "mixes" in asked(deployment, f"SELECT * FROM calque.hops JOIN {table} ON true", code=65)
    assert "nearest" in asked(deployment, "SELECT * FROM calque.hop", code=65)
