"""`permissions = "keep"` and `grants = "follow"` by `calque`, on real metastores and a local disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from calque.core.formats.layout import join
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.permissions import Permissions
from calque.plugins.grants.adapters import HivePrivileges
from calque.plugins.grants.model import ROLE, USER, Grant
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.storages import any_storage

TEXT = Storage(
    columns=(Column("a", "string"),),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe("s", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
)
STORAGE = any_storage()
IS_ROOT = os.geteuid() == 0
OWN = STORAGE.permissions([str(Path.home())])[str(Path.home())]
OWNERS = ("daemon", "bin") if IS_ROOT else (OWN.owner, OWN.group)
"""Only root gives files away."""
OPEN, SECRET = Permissions(*OWNERS, 0o711), Permissions(*OWNERS, 0o751, ("group::r-x", "user:nobody:r-x"))
FILE = Permissions(*OWNERS, 0o640)
ALICE = Grant("alice", USER, "SELECT", True, "hive", USER, "SQL")
ALL = (ALICE, replace(ALICE, partition=("1",)), replace(ALICE, column="a"))
READERS = Grant(f"readers_{uuid4().hex}", ROLE, "SELECT", False, "hive", USER, "SQL")


class Keeping(Deployment):
    def text(self, source: Metastore) -> str:
        base = f'external_base = "file:{self.root}/external"'
        return f'{super().text(source)}\n{base}\npermissions = "keep"\ngrants = "follow"\n'


class Rig:
    def __init__(self, servers: Mapping[str, Metastore], root: Path) -> None:
        self.deployment = Keeping(root, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
        self.writer, self.root = self.deployment.source.client, f"file:{root}/source"
        self.name = TableName(self.deployment.databases[0], "t")
        self.writer.create_database(Database(self.name.database, location=self.root))
        give(self.root, OPEN)
        self.table = Table(
            *reversed(self.name),
            storage=replace(TEXT, location=join(self.root, "t")),
            partition_keys=(Column("p", "string"),),
            parameters={"EXTERNAL": "TRUE"},
            type="EXTERNAL_TABLE",
        )
        self.writer.create_table(self.table)
        give(join(self.root, "t"), SECRET)

    def add(self, value: str) -> None:
        location = join(self.root, f"t/p={value}")
        STORAGE.write(join(location, "f"), value.encode())
        give(join(location, "f"), FILE)
        give(location, SECRET)
        partition = Partition((value,), *self.name, storage=replace(TEXT, location=location), parameters={})
        self.writer.add_partitions(self.name, [partition])

    def places(self) -> dict[str, str]:
        """Where the target has the table and its partitions."""
        catalog = self.deployment.targets[0].catalog
        table = catalog.table(self.name)
        partitions = catalog.partitions(self.name, catalog.partition_names(self.name))
        things = {"": table} | partitions
        return {name: location_of(thing) or "" for name, thing in things.items() if thing is not None}

    def granted(self) -> bool:
        at_target = HivePrivileges(self.deployment.targets[0].catalog.client)
        database = TableName(self.name.database, "")
        return dict(at_target.grants([self.name, database])) == {self.name: {*ALL, READERS}, database: {ALICE}}

    def verify(self) -> list[tuple[str, str, str, str]]:
        document: Any = json.loads(self.deployment.calque("verify", "--json").stdout)
        return [(one["partition"] or "", one["what"], one["source"], one["target"]) for one in document["differences"]]


def give(location: str, permissions: Permissions) -> None:
    assert STORAGE.set_permissions({location: permissions}) == {}


def of(location: str) -> Permissions:
    return STORAGE.permissions([location])[location]


@pytest.fixture(scope="module")
def rig(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = Rig(servers, tmp_path_factory.mktemp("permissions"))
    yield rig
    rig.deployment.close()


@pytest.mark.timeout(300)
def test_directories_and_files_are_whose_they_are_at_the_source(rig: Rig) -> None:
    """Of external tables too, read first or followed; a chmod is found, and mended without a copy. Grants follow
    beside that."""
    rig.add("1")
    grants = HivePrivileges(rig.writer.client)
    grants.create_role(READERS.principal)
    grants.grant(rig.name, [*ALL, READERS])
    grants.grant(TableName(rig.name.database, ""), [ALICE])
    rig.deployment.start()
    rig.deployment.settle()
    rig.add("2")
    rig.deployment.settle()
    places = rig.places()
    assert places[""].startswith(f"file:{rig.deployment.root}/external/")
    assert {name: of(place) for name, place in places.items()} == dict.fromkeys(("", "p=1", "p=2"), SECRET)
    assert [of(join(places[name], "f")) for name in ("p=1", "p=2")] == [FILE, FILE]
    assert of(f"file:{rig.deployment.root}/wh_dr/{rig.name.database}.db") == OPEN
    rig.deployment.wait_for(lambda _: rig.granted())
    assert rig.verify() == []
    findings: Any = json.loads(rig.deployment.calque("check", "--json").stdout)["findings"]
    assert not [one for one in findings if "permissions" in one["what"]]

    other = replace(FILE, mode=0o600)
    give(join(rig.root, "t/p=1/f"), other)
    give(join(rig.root, "t"), OPEN)
    file = Path(join(places["p=1"], "f").removeprefix("file:"))
    before = file.stat()
    assert rig.verify() == [
        ("", f"permissions: {places['']}", str(OPEN), str(SECRET)),
        ("p=1", f"permissions: {places['p=1']}/f", str(other), str(FILE)),
    ]
    rig.deployment.calque("repair")
    rig.deployment.wait_for(lambda _: (of(places[""]), of(join(places["p=1"], "f"))) == (OPEN, other))
    rig.deployment.settle()
    assert rig.verify() == []
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
