"""Source and target on HDFS: a random writer, readers, a NameNode that dies, and a verified end."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import hdfs_native
import pytest

from calque.core.formats.layout import join, place
from calque.model.hive import Database, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import NUMBERS, Deployment, RealFiles
from support.services.hdfs import Hdfs
from support.sources.dumped import PLAIN
from support.storages import any_storage
from support.worlds.worlds import State


class HdfsFiles(RealFiles):
    """Of HDFS: complete before they have their name."""

    def write(self, location: str, content: bytes) -> None:
        self.storage.write(location, content)

    def content(self, location: str) -> State:
        found = self.storage.list([location])[location].files
        return tuple((file.path, self.storage.read(join(location, file.path))) for file in found)


class OnHdfs(Deployment):
    """Deployments whose source's and target's files are on HDFS."""

    hdfs: Hdfs

    def __init__(self, root: Path, number: int, source: Metastore, targets: Mapping[str, Metastore], seed: int) -> None:
        super().__init__(root, number, source, targets, seed)
        self.files = self.writer.storage = HdfsFiles()
        self.writer.outside = f"{self.hdfs.uri}/outside/{number}"
        for target in self.targets:
            target.content = self.files.content

    def policy(self, name: str, index: int) -> Policy:
        policy = super().policy(name, index)
        warehouse = f"{self.hdfs.uri}/dr/{self.number}"
        return Policy(name, "hq", include=policy.include, rename=policy.rename, warehouse=warehouse)

    def text(self, source: Metastore) -> str:
        return f'{super().text(source)}\ngrace = "1s"'


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with Hdfs.start(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture(scope="module")
def servers(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    """Metastores whose own warehouses are on HDFS."""
    root = tmp_path_factory.mktemp("servers")
    started: dict[str, Metastore] = {}
    try:
        for name in ("source", "target"):
            on_hdfs = {
                "fs.defaultFS": hdfs.uri,
                "metastore.warehouse.dir": f"{hdfs.uri}/{name}/warehouse",
                "metastore.repl.cmrootdir": f"{hdfs.uri}/{name}/change_manager",
            }
            started[name] = Metastore.start(MetastoreSettings(extra=on_hdfs), root / name)
        yield started
    finally:
        for server in started.values():
            server.stop()


@pytest.fixture
def deployment(hdfs: Hdfs, servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[OnHdfs]:
    OnHdfs.hdfs = hdfs
    made = OnHdfs(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
    yield made
    made.close()


def change(deployment: OnHdfs, least: int) -> None:
    """Write until that much has changed."""
    before = len(deployment.writer.done)
    while len(deployment.writer.done) < before + least:
        deployment.write(1, pause=0.05)


def files(deployment: OnHdfs) -> Sequence[object]:
    """Every data file of the target, with its time."""
    warehouse = deployment.targets[0].policy.warehouse
    return any_storage().list([warehouse])[warehouse].files


def test_a_warehouse_on_hdfs_is_replicated_through_the_death_of_its_name_node_and_ends_equal(
    deployment: OnHdfs, hdfs: Hdfs
) -> None:
    change(deployment, 8)
    checked = deployment.calque("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    readers = deployment.watch()
    deployment.start()
    change(deployment, 8)
    deployment.settle()
    assert deployment.calque("pause", "--target", "dr").returncode == 0
    change(deployment, 6)
    deployment.watching.set()
    for reader in readers:
        reader.join(60)
    hdfs.kill()
    assert deployment.calque("resume", "--target", "dr").returncode == 0
    deployment.wait_for(lambda status: status["last_error"] is not None)
    hdfs.restart()
    deployment.watching.clear()
    deployment.watch()
    deployment.settle()
    deployment.check_equal()
    deployment.wait_for_readers()
    [target] = deployment.targets
    assert target.proof.observations
    assert not (problems := deployment.problems()), "\n".join([problems[0], *deployment.writer.done])
    assert deployment.end(signal.SIGTERM) == 0
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    before = files(deployment)
    assert before
    assert deployment.calque("run", "--until", "head").returncode == 0
    assert files(deployment) == before
    assert deployment.calque("sweep").returncode == 0
    deployment.check_equal()


def test_a_dump_says_what_it_is_not_permitted_to_read_or_to_write(
    deployment: OnHdfs, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"{hdfs.uri}/repl{deployment.number}"
    deployment.config.write_text(f'{deployment.config.read_text()}\n[repl]\nroot = "{root}"\n')
    user, database = getpass.getuser(), deployment.databases[0]
    client = deployment.source.client
    client.create_database(Database(database, parameters={}))
    client.create_table(Table("t", database, user, storage=PLAIN, parameters={}, type="MANAGED_TABLE"))
    location = location_of(deployment.source.the_table(TableName(database, "t")).table) or ""
    any_storage().write(f"{location}/000000_0", b"1")

    def dump(user: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("HADOOP_USER_NAME", user)
        return deployment.calque("sql", f"REPL DUMP {database}", "--json")

    not_written = dump("stranger")
    assert not_written.returncode == os.EX_DATAERR, not_written.stderr
    assert f"Not permitted to write {root}" in not_written.stderr
    assert "Permission denied: user=stranger" in not_written.stderr
    monkeypatch.setenv("HADOOP_USER_NAME", user)
    files = hdfs_native.Client(hdfs.uri)
    files.mkdirs(place(root).path)
    files.set_permission(place(root).path, 0o777)
    files.set_permission(place(location).path, 0o700)
    not_read = dump("stranger")
    assert not_read.returncode == os.EX_DATAERR, not_read.stderr
    assert f"Not permitted to look at {location}" in not_read.stderr
    assert dump(user).returncode == 0
