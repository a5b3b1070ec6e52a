"""Hive 4.0.1 and calque load what the other dumps, and calque goes on with what Hive loaded: `make interop`. Source and
targets are databases of one metastore, which both are clients of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calque.cli import main
from calque.sandbox import Metastore, MetastoreSettings
from support.services.hive_driver import HIVE_4_0, hive
from support.sources.hive_history import BEFORE, DROPPED_CONSTRAINT, INCREMENTS, LATER, HiveSource

CONFIGURATION = """
[source]
name = "hq"
metastore = "{metastore}"
[state]
path = "{root}/state"
checkpoints = "{root}/checkpoints"
[targets.dr]
metastore = "{metastore}"
warehouse = "file:{root}/dr"
include = ["src.*"]
rename = {{ "src" = "{replica}" }}
[repl]
root = "file:{root}/dumps"
[serve]
address = ""
"""


@dataclass
class Exchange:
    """Hive, and calque with a target for `replica`."""

    source: HiveSource
    root: Path

    def configured(self, replica: str) -> Path:
        config = self.root / "calque.toml"
        metastore = self.source.metastore.uri
        config.write_text(CONFIGURATION.format(metastore=metastore, root=self.root, replica=replica))
        return config

    def calque(self, capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> Any:
        code = main([*arguments, "-c", str(config)])
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    def run(self, config: Path) -> None:
        """A `calque run` that ends where the source is."""
        command = [sys.executable, "-m", "calque.cli", "run", "-c", str(config), "--until", "head"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr

    def sql(self, capsys: pytest.CaptureFixture[str], config: Path, statement: str) -> Any:
        return json.loads(self.calque(capsys, config, "sql", "--json", statement))[-1]["rows"]


@pytest.fixture
def settings() -> MetastoreSettings:
    return HIVE_4_0


@pytest.fixture
def exchange(settings: MetastoreSettings, tmp_path: Path) -> Iterator[Exchange]:
    with (
        Metastore.start(settings, tmp_path / "metastore") as metastore,
        hive(tmp_path, metastore) as program,
    ):
        yield Exchange(HiveSource(program, metastore, tmp_path), tmp_path)


@pytest.mark.parametrize("settings", [HIVE_4_0, MetastoreSettings(version="4.2.0")], ids=["4.0", "4.2"])
def test_calque_loads_what_hive_dumps(exchange: Exchange, capsys: pytest.CaptureFixture[str]) -> None:
    source, config = exchange.source, exchange.configured("calque_dr")
    for statements in (BEFORE, *INCREMENTS, DROPPED_CONSTRAINT):
        source.play(statements)
        [dumped] = source.hive.run("REPL DUMP src")
        directory, last = dumped.split("\t")
        exchange.sql(capsys, config, f"REPL LOAD calque_dr FROM '{directory}'")
        assert exchange.sql(capsys, config, "REPL STATUS calque_dr") == [[int(last)]]
        assert source.state("calque_dr") == source.state("src")


def test_hive_loads_what_calque_dumps_and_calque_takes_it_over(
    exchange: Exchange, capsys: pytest.CaptureFixture[str]
) -> None:
    source, config = exchange.source, exchange.configured("hive_dr")
    following = ""
    for statements in (BEFORE, *INCREMENTS):
        source.play(statements)
        [[_, last]] = exchange.sql(capsys, config, f"REPL DUMP src{following}")
        source.hive.run("REPL LOAD src INTO hive_dr")
        assert source.hive.run("REPL STATUS hive_dr") == [str(last)]
        assert source.state("hive_dr", view="src") == source.state("src")
        following = f" FROM {last}"
    exchange.calque(capsys, config, "adopt", "--target", "dr", "--tables", "src.*")
    exchange.run(config)
    assert source.state("hive_dr") == source.state("src")
    source.play(LATER)
    exchange.run(config)
    assert source.state("hive_dr") == source.state("src")
