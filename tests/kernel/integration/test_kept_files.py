"""A source on HDFS whose metastore keeps files (Hive's change manager): what calque still shows of states that came and
went while it did not run, in a database of Hive's own replication, in another one, and of an external table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import hdfs_native
import pytest

from calque.adapters.files import FileStorage, FileSystemSet
from calque.app import APP
from calque.core.events import decode
from calque.core.formats.layout import join, place
from calque.core.states.kept_files import NamedFile
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.dumps.core.layout import DumpDirectory
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import NUMBERS, Deployment, RealFiles
from support.services.hdfs import Hdfs
from support.sources.writers import INPUT, OUTPUT, SERDE
from support.worlds.worlds import State

TEXT = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))


class HdfsFiles(RealFiles):
    def content(self, location: str) -> State:
        listed = self.storage.list([location])[location].files
        return tuple((file.path, self.storage.read(join(location, file.path))) for file in listed)


class OnKeepingHdfs(Deployment):
    """Source and target are one metastore, whose warehouse is on HDFS. What Hive does is done by the metastore, but for
    INSERTs: they write files, tell of them with the file system's checksums, and have those kept that they replace."""

    hdfs: Hdfs
    cmroot: str

    def __init__(self, root: Path, number: int, source: Metastore, targets: Mapping[str, Metastore], seed: int) -> None:
        super().__init__(root, number, source, targets, seed)
        self.storage = FileStorage(FileSystemSet(self.hdfs.options, kinds=APP.file_systems()))
        self.client = self.source.client
        for target in self.targets:
            target.content = HdfsFiles().content

    def policy(self, name: str, index: int) -> Policy:
        policy = super().policy(name, index)
        rename = {database: f"{database}_dr" for database in self.databases}
        return replace(policy, rename=rename, warehouse=f"{self.hdfs.uri}/dr/{self.number}")

    def text(self, source: Metastore) -> str:
        [(name, address)] = self.hdfs.options.items()
        return super().text(source).replace('poll = "50ms"', f'storage = {{ "{name}" = "{address}" }}')

    def create_table(self, name: TableName, outside: str = "") -> TableName:
        """With three partitions, which have a file each."""
        parameters, kind = ({"EXTERNAL": "TRUE"}, "EXTERNAL_TABLE") if outside else ({}, "MANAGED_TABLE")
        storage = replace(TEXT, location=outside or None)
        keys = (Column("day", "string"),)
        self.client.create_table(
            Table(
                name.table, name.database, "me", storage=storage, partition_keys=keys, parameters=parameters, type=kind
            )
        )
        location = location_of(self.source.the_table(name).table)
        partitions = []
        for day in ("1", "2", "3"):
            self.storage.write(f"{location}/day={day}/000000_0", f"{name}: first rows".encode())
            storage = replace(TEXT, location=f"{location}/day={day}")
            partitions.append(Partition((day,), *name, storage=storage, parameters={}))
        self.client.add_partitions(name, partitions)
        return name

    def path(self, name: TableName, day: str) -> str:
        return f"{location_of(self.source.the_table(name).partitions[day,])}/000000_0"

    def checksum(self, path: str) -> str:
        return self.storage.system_checksums([path])[path]

    def overwrite(self, name: TableName, content: str, *, kept: bool) -> None:
        """Partition 1. Hive names its first file like that each time; equal files of all tables are kept as one."""
        path = self.path(name, "1")
        if kept:
            client = hdfs_native.Client(self.hdfs.uri)
            kept_path = NamedFile(path, self.checksum(path), self.cmroot).kept_path
            client.rename(place(path).path, place(kept_path).path, overwrite=True)
        self.storage.write(path, f"{name}: {content}".encode())
        self.client.insert(name, [path], checksums=[self.checksum(path)], values=["1"], replace=True)

    def bridged(self) -> set[str]:
        """The tables that went over a bridge, by all epochs."""
        epochs = APP.wiring(APP.load(self.config)).ledger("dr").epochs()
        return {str(bridge.table) for epoch in epochs for bridge in epoch.bridges}


@pytest.fixture(scope="module")
def server(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    OnKeepingHdfs.hdfs, OnKeepingHdfs.cmroot = hdfs, f"{hdfs.uri}/cmroot"
    on_hdfs = {
        "fs.defaultFS": hdfs.uri,
        "metastore.warehouse.dir": f"{hdfs.uri}/warehouse",
        "metastore.repl.cmrootdir": OnKeepingHdfs.cmroot,
        "metastore.repl.cm.retain": "10d",
    }
    with Metastore.start(MetastoreSettings(extra=on_hdfs), tmp_path_factory.mktemp("metastore")) as started:
        yield started


@pytest.fixture
def deployment(server: Metastore, tmp_path: Path) -> Iterator[OnKeepingHdfs]:
    made = OnKeepingHdfs(tmp_path, next(NUMBERS), server, {"dr": server}, seed=1)
    yield made
    made.close()


def test_states_that_came_and_went_while_nobody_looked_are_shown_where_hive_kept_their_files(
    deployment: OnKeepingHdfs, hdfs: Hdfs
) -> None:
    replicated, other = deployment.databases
    deployment.client.create_database(Database(replicated, parameters={"repl.source.for": "policy"}))
    deployment.client.create_database(Database(other))
    kept = deployment.create_table(TableName(replicated, "kept"))
    truncated = deployment.create_table(TableName(replicated, "truncated"))
    external = deployment.create_table(TableName(replicated, "external"), f"{hdfs.uri}/outside/{deployment.number}")
    lost = deployment.create_table(TableName(other, "lost"))
    [*_, added] = [event for event in deployment.client.events(0) if event.event_type == "ADD_PARTITION"]
    logged = [file for files in decode.partition_files(added).values() for file in files]
    assert [file.checksum for file in logged] == [deployment.checksum(file.uri) for file in logged] != []
    assert {file.change_root for file in logged} == {deployment.cmroot}
    assert deployment.calque("run", "--until", "head").returncode == 0

    for name in (kept, external, lost):
        deployment.overwrite(name, "first", kept=name == kept)
        deployment.client.drop_partitions(name, ["day=2"])
        deployment.overwrite(name, "second", kept=name == kept)
        deployment.client.drop_partitions(name, ["day=3"])
    deployment.overwrite(truncated, "first", kept=True)
    deployment.client.drop_partitions(truncated, ["day=2"])
    deployment.client.truncate_table(truncated, ["day=1"])
    deployment.overwrite(truncated, "second", kept=False)
    deployment.client.drop_partitions(truncated, ["day=3"])
    ran = deployment.calque("run", "--until", "head")
    assert ran.returncode == 0, ran.stderr
    assert deployment.bridged() == {str(external), str(lost)}
    deployment.check_equal()

    checked = deployment.calque("check", "--json")
    said = [each["what"] for each in json.loads(checked.stdout)["findings"] if each["what"].startswith("Hive keeps")]
    assert said == [
        f"Hive keeps files of managed tables that it removes or replaces in {replicated} for 10d",
        f"Hive keeps no files that it removes or replaces in {other}",
    ]


def test_dumps_name_files_by_checksums_and_have_what_hive_kept(deployment: OnKeepingHdfs, hdfs: Hdfs) -> None:
    database = deployment.databases[0]
    deployment.client.create_database(Database(database, parameters={"repl.source.for": "policy"}))
    kept = deployment.create_table(TableName(database, "kept"))
    with deployment.config.open("a") as config:
        config.write(f'\n[repl]\nroot = "{hdfs.uri}/dumps"\n')

    def dumped(statement: str) -> tuple[DumpDirectory, int]:
        said = deployment.calque("sql", statement, "--json")
        assert (said.returncode, said.stderr) == (0, "")
        [[directory, last]] = json.loads(said.stdout)[0]["rows"]
        return DumpDirectory(directory), last

    def content(path: str) -> str:
        read = deployment.storage.read(path)
        assert read is not None
        return read.decode()

    directory, last = dumped(f"REPL DUMP {database}")
    path = deployment.path(kept, "1")
    line = f"{path}#{deployment.checksum(path)}#{deployment.cmroot}#\n"
    assert content(join(directory.objects.table_data(kept, "day=1"), "_files")) == line
    for text in ("first", "second"):
        deployment.overwrite(kept, text, kept=True)
    directory, _ = dumped(
        f"REPL DUMP {database} FROM {last} WITH ('hive.repl.run.data.copy.tasks.on.target' = 'false')"
    )
    first, second = (join(directory.event(last + number).data("day=1"), "000000_0") for number in (1, 2))
    assert (content(first), content(second)) == (f"{kept}: first", f"{kept}: second")
