"""A target in an object store: a random writer at a local source, readers of the target's metastore and of the real S3.

The state's tables are in the store too. The target's metastore has no file system for it: what it makes and looks for
under the scheme is mapped to a local folder, where nobody looks.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.app import APP
from calque.core.formats.layout import join
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import NUMBERS, Deployment
from support.services.objects import ObjectStore
from support.services.servers import Shared
from support.worlds.worlds import INPUT, OUTPUT, SERDE, State

VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


class InObjects(Deployment):
    """Deployments whose targets and whose tables of the state are in the store."""

    store: ObjectStore

    def policy(self, name: str, index: int) -> Policy:
        policy = super().policy(name, index)
        return Policy(
            name,
            "hq",
            include=policy.include,
            rename=policy.rename,
            warehouse=f"s3a://{self.store.bucket}/{self.folder}/dr",
        )

    @property
    def folder(self) -> str:
        return f"d{self.number}"

    def text(self, source: Metastore) -> str:
        options = {
            "endpoint_url": self.store.endpoint,
            "key": self.store.key,
            "secret_env": "S3_SECRET",
            "region": "us-east-1",
        }
        storage = f"storage = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in options.items())} }}"
        state = ["[state]", f'tables = "s3://{self.store.bucket}/{self.folder}/state"', storage]
        return "\n".join([super().text(source), storage, 'grace = "1s"', *state])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore.start(tmp_path_factory.mktemp("objects")) as store:
        yield store


@pytest.fixture(scope="module")
def servers(
    store: ObjectStore, shared: Shared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Metastore]]:
    root = tmp_path_factory.mktemp("servers")
    (root / "nobody").mkdir()
    mapped = {
        "fs.s3a.impl": VIEW,
        "fs.viewfs.overload.scheme.target.s3a.impl": VIEW,
        f"fs.viewfs.mounttable.{store.bucket}.linkFallback": (root / "nobody").as_uri(),
    }
    with Metastore.start(MetastoreSettings(extra=mapped), root / "target") as target:
        yield {"source": shared("source-3")["source-3"], "target": target}


@pytest.fixture
def deployment(
    store: ObjectStore, servers: Mapping[str, Metastore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InObjects]:
    monkeypatch.setenv("S3_SECRET", store.secret)
    InObjects.store = store
    made = InObjects(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
    [target] = made.targets
    storage = FileStorage(
        FileSystemSet(own=OwnLocations((target.policy.warehouse,), store.options), kinds=APP.file_systems())
    )

    def content(location: str) -> State:
        found = storage.list([location])[location].files
        return tuple((file.path, storage.read(join(location, file.path))) for file in found)

    target.content = content
    yield made
    made.close()


def change(deployment: InObjects, least: int) -> None:
    """Write until that much has changed."""
    before = len(deployment.writer.done)
    while len(deployment.writer.done) < before + least:
        deployment.write(1, pause=0.05)


def test_a_target_in_an_object_store_shows_only_states_of_the_source_and_ends_equal(deployment: InObjects) -> None:
    checked = deployment.calque("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    change(deployment, 8)
    deployment.watch()
    deployment.start()
    change(deployment, 4)
    deployment.wait_for(lambda status: status["position"])
    change(deployment, 4)
    assert deployment.end(signal.SIGKILL) == -signal.SIGKILL
    deployment.start()
    change(deployment, 6)
    deployment.settle()
    deployment.check_equal()
    deployment.wait_for_readers()
    [target] = deployment.targets
    assert target.proof.observations
    assert not (problems := deployment.problems()), "\n".join([problems[0], *deployment.writer.done])
    assert deployment.end(signal.SIGTERM) == 0
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    before = objects(deployment)
    assert before
    assert deployment.calque("run", "--until", "head").returncode == 0
    assert objects(deployment) == before
    secret = deployment.store.secret
    assert secret not in deployment.log.read_text() + checked.stdout + verified.stdout
    assert not any(secret.encode() in path.read_bytes() for path in files_below(deployment.root))


def test_inserts_overwrites_appends_and_drops_reach_an_object_store_and_are_swept(deployment: InObjects) -> None:
    database = deployment.databases[0]
    source, root = deployment.source.client, f"file:{deployment.root}/source"
    source.create_database(Database(database, location=root))
    form = Storage(
        input_format=INPUT, output_format=OUTPUT, serde=SerDe(class_name=SERDE), columns=(Column("x", "int"),)
    )
    plain = Table("plain", database, "me", storage=replace(form, location=f"{root}/plain"), type="EXTERNAL_TABLE")
    parts = replace(plain, name="parts", partition_keys=(Column("p", "string"),))
    parts = replace(parts, storage=replace(form, location=f"{root}/parts"))

    def part(value: str, at: str) -> Partition:
        return Partition((value,), database, "parts", storage=replace(form, location=f"{root}/{at}"))

    def equal() -> set[str]:
        deployment.settle()
        deployment.check_equal()
        return {path for path, _ in objects(deployment)}

    def wrote(*names: str) -> list[str]:
        for name in names:
            deployment.files.write(f"{root}/{name}", name.encode())
        return [f"{root}/{name}" for name in names]

    wrote("plain/f1", "parts/p=1/f", "parts/p=2/f")
    (deployment.root / "source/parts/p=3").mkdir()
    for table in (plain, parts):
        source.create_table(replace(table, parameters={"EXTERNAL": "TRUE"}, partition_keys=table.partition_keys or ()))
    source.add_partitions(TableName(database, "parts"), [part(value, f"parts/p={value}") for value in "123"])
    deployment.start()
    first = equal()
    assert {path.removeprefix(f"{database}.db/") for path in first} == {"plain/f1", "parts/p=1/f", "parts/p=2/f"}
    source.insert(TableName(database, "plain"), wrote("plain/f2"))
    wrote("new/f")
    source.alter_partition(TableName(database, "parts"), part("1", "new"))
    source.drop_partitions(TableName(database, "parts"), ["p=2"], delete_data=False)
    second = equal()
    assert f"{database}.db/plain/f2" in second
    deployment.files.remove([f"{root}/plain"])
    source.insert(TableName(database, "plain"), wrote("plain/g"), replace=True)
    source.drop_table(TableName(database, "parts"), delete_data=False)
    third = equal()
    assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    # The first sweep may only take notes, and replaced directories stay for a second.
    assert any("replaced" in swept(deployment) for _ in range(5))
    assert {path for path, _ in objects(deployment)} < third
    deployment.check_equal()


def objects(deployment: InObjects) -> list[tuple[str, int]]:
    """Every data file of the target, with the store's own time."""
    [target] = deployment.targets
    storage = FileStorage(FileSystemSet(deployment.store.options, kinds=APP.file_systems()))
    warehouse = target.policy.warehouse
    return [(file.path, file.modified_ns) for file in storage.list([warehouse])[warehouse].files]


def swept(deployment: InObjects) -> set[str]:
    done = deployment.calque("sweep", "--json")
    assert done.returncode == 0, done.stderr
    return {item["reason"] for item in json.loads(done.stdout)["removed"]}


def files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (path for name in names if (path := Path(folder) / name).is_file())
