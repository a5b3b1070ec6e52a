"""Symlink tables on real metastores: Spark reads source and target by Hive's own input format, which follows the
manifests. Of partitions it reads none by that format, at no side; here manifests are followed as they stand."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from calque.core.formats.layout import place
from calque.model.hive import location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.sparksql import SparkSql

SYMLINKS = (
    "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe' "
    "STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat' "
    "OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'"
)


class Rig:
    def __init__(self, servers: Mapping[str, Metastore], root: Path) -> None:
        self.deployment = Deployment(root, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
        self.database, self.root = self.deployment.databases[0], root
        self.source = SparkSql(servers["source"].uri, root / "spark-source")
        self.target = SparkSql(servers["target"].uri, root / "spark-target")
        self.source.sql(f"CREATE DATABASE {self.database} LOCATION 'file:{root}/source'")

    def follow(self) -> None:
        """Until the target shows the source's newest event, by a process that then waits for more."""
        if self.deployment.process is None:
            self.deployment.start()
        self.deployment.settle()

    def raw(self, name: str, rows: str) -> str:
        """A file with rows, and the line of a manifest that names it."""
        path = self.root / "raw" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(rows)
        return f"file:{path}\n"

    def manifest(self, directory: str, text: str, name: str = "manifest") -> str:
        path = self.root / "manifests" / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_text(text)
        draft.rename(path)
        return f"file:{path}"

    def rows(self, table: str) -> list[str]:
        """Of both sides, which have the same."""
        query = f"SELECT * FROM {self.database}.{table}"
        for side in (self.source, self.target):
            side.sql(f"REFRESH TABLE {self.database}.{table}")
        first, second = (sorted(map(json.dumps, side.sql(query))) for side in (self.source, self.target))
        assert first == second
        return first

    def followed(self, table: str, partition: str) -> list[str]:
        """The rows that the partition's manifests lead to, at both sides, which have the same."""
        first, second = (
            sorted(path.read_text() for path in self.named(table, partition, at_target=at_target))
            for at_target in (False, True)
        )
        assert first == second
        return first

    def named(self, table: str, partition: str = "", *, at_target: bool = True) -> list[Path]:
        """The files that the manifests at a side name."""
        catalog = self.deployment.targets[0].catalog if at_target else self.deployment.source.client.catalog
        name = TableName(self.database, table)
        thing = catalog.partitions(name, [partition])[partition] if partition else catalog.table(name)
        assert thing is not None
        directory = Path(place(location_of(thing) or "").path)
        manifests = [path for path in directory.iterdir() if not path.name.startswith(("_", "."))]
        lines = [line for path in manifests for line in path.read_text().splitlines()]
        return sorted(Path(place(line).path) for line in lines)

    def verify(self, data: str = "checksum") -> int:
        return self.deployment.calque("verify", "--data", data).returncode

    def close(self) -> None:
        self.deployment.close()
        self.source.close()
        self.target.close()


@pytest.fixture(scope="module")
def rig(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = Rig(servers, tmp_path_factory.mktemp("symlinks"))
    yield rig
    rig.close()


@pytest.mark.timeout(900)
def test_readers_follow_manifests_to_the_target_s_own_copies(rig: Rig) -> None:
    plain, parts = f"{rig.database}.plain", f"{rig.database}.parts"
    rig.manifest("plain", rig.raw("a", "1\n2\n") + rig.raw("b", "3\n"))
    first = rig.manifest("parts/p=1", rig.raw("c", "4\n"))
    rig.source.sql(f"CREATE EXTERNAL TABLE {plain} (id INT) {SYMLINKS} LOCATION 'file:{rig.root}/manifests/plain'")
    rig.source.sql(
        f"CREATE EXTERNAL TABLE {parts} (id INT) PARTITIONED BY (p INT) {SYMLINKS} "
        f"LOCATION 'file:{rig.root}/manifests/parts'"
    )
    rig.source.sql(f"ALTER TABLE {parts} ADD PARTITION (p = 1) LOCATION '{first.rpartition('/')[0]}'")
    rig.follow()
    assert rig.rows("plain") == ["[1]", "[2]", "[3]"]
    assert rig.followed("parts", "p=1") == ["4\n"]
    below_target = rig.named("plain") + rig.named("parts", "p=1")
    assert [path.name for path in below_target] == ["a", "b", "c"]
    assert not any((rig.root / "raw") in path.parents for path in below_target)
    assert rig.verify() == 0
    # Manifests are replaced and added, as engines do it after each commit.
    client = rig.deployment.source.client
    client.insert(TableName(rig.database, "plain"), [rig.manifest("plain", rig.raw("d", "5\n"))])
    more = rig.manifest("parts/p=1", rig.raw("e", "6\n"), "more")
    client.insert(TableName(rig.database, "parts"), [more], values=("1",))
    rig.follow()
    assert rig.rows("plain") == ["[5]"]
    assert rig.followed("parts", "p=1") == ["4\n", "6\n"]
    assert rig.verify() == 0
    # A byte behind a manifest is found, and repaired.
    [copy] = rig.named("plain")
    times = copy.stat()
    copy.write_text("7\n")
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (rig.verify("size"), rig.verify()) == (0, 1)
    assert rig.deployment.calque("repair", "--tables", plain, "--data", "checksum").returncode == 0
    deadline = time.monotonic() + 60
    while rig.verify() != 0:
        assert time.monotonic() < deadline, rig.deployment.tail()
        time.sleep(0.2)
    assert rig.rows("plain") == ["[5]"]
    assert rig.deployment.end(signal.SIGTERM) == 0, rig.deployment.tail()
