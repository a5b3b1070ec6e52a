"""The commands of "Your first replica", in their order, between two real metastores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.places import ROOT

PAGE = ROOT / "docs" / "first-replica.md"
DATABASE = "first_replica"
ORDERS = TableName(DATABASE, "orders")
END = "-- the block has ended"


def blocks() -> list[tuple[str, str]]:
    """The kind and the text of each block that a reader of the page carries out."""
    tokens = MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8"))
    return [
        (token.info, token.content) for token in tokens if token.type == "fence" and token.info in {"sh", "text hive"}
    ]


@contextmanager
def shell(folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A shell that ends at the first command that fails. What it has started ends with it."""
    started = subprocess.Popen(
        ["bash", "-eu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    with started:
        try:
            yield started
        finally:
            os.killpg(started.pid, signal.SIGKILL)


def carried_out(started: subprocess.Popen[str], text: str) -> str:
    """What the block prints. Fails where a command of it fails."""
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(f"{text}\necho '{END}'\n")
    started.stdin.flush()
    lines: list[str] = []
    for line in started.stdout:
        if line.strip() == END:
            return "".join(lines)
        lines.append(line)
    pytest.fail(f"{text}\nended the shell:\n{''.join(lines)}")


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
    (_, installation), *others = blocks()
    assert "pip install" in installation, "test_wheel installs"
    replacements = {
        "thrift://metastore.hq:9083": servers["source"].uri,
        "thrift://metastore.dr:9083": servers["target"].uri,
        "/data/dr": str(tmp_path / "dr"),
        "sales": DATABASE,
    }
    printed: list[str] = []
    with shell(tmp_path, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}) as started:
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
