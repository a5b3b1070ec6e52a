"""What links ask of catalogs that keep no log: the same of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.glue.client import ENDPOINT, REGION, GlueCatalog, GlueClient
from calque.adapters.memory.remote_catalog import MemoryCatalog
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.secrets import VariableSecret
from calque.ports.remotes import RemoteAccess, RemoteCatalog
from support.services.glues import REGION as MOTO_REGION
from support.services.glues import MotoServer

NAME = TableName("shop", "orders")
PLACE = "s3://bucket/orders"


@dataclass(frozen=True)
class Far:
    """A catalog, and hands that write to what is behind it: `put` makes or alters a table."""

    catalog: RemoteCatalog
    database: Callable[[str], None]
    put: Callable[..., None]
    add: Callable[..., None]
    drop: Callable[[str, str], Any]


def in_memory() -> Far:
    catalog = MemoryCatalog()

    def storage(location: str, columns: tuple[str, ...]) -> Storage:
        return Storage(tuple(Column(name, "int") for name in columns), location, serde=SerDe(parameters={}))

    def put(database: str, name: str, location: str, *, keyed: bool = False, columns: tuple[str, ...] = ("x",)) -> None:
        keys = (Column("p", "string"),) if keyed else ()
        table = Table(name, database, storage=storage(location, columns), partition_keys=keys, type="EXTERNAL_TABLE")
        known = catalog.table(TableName(database, name))
        (catalog.create_table if known is None else catalog.alter_table)(replace(table, parameters={"colour": "red"}))

    def add(database: str, name: str, location: str, *values: str) -> None:
        parts = [
            Partition((value,), database, name, storage=storage(f"{location}/p={value}", ("x",)), parameters={})
            for value in values
        ]
        catalog.put_partitions(TableName(database, name), parts)

    return Far(
        catalog,
        lambda name: catalog.put_database(Database(name, parameters={})),
        put,
        add,
        lambda database, name: catalog.drop_table(TableName(database, name)),
    )


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    with MotoServer(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> RemoteAccess:
    monkeypatch.setenv("FAR_SECRET", "test")
    return RemoteAccess(user="test", password=VariableSecret("FAR_SECRET"))


@pytest.fixture(params=["memory", "glue"])
def far(request: pytest.FixtureRequest) -> Iterator[Far]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield in_memory()
            return
        moto, keys = request.getfixturevalue("moto"), request.getfixturevalue("keys")
        catalog = GlueClient().connect({ENDPOINT: moto.url, REGION: MOTO_REGION}, keys)
        stack.callback(catalog.close)
        for known in catalog.databases():
            moto.glue.delete_database(Name=known)
        yield Far(
            catalog,
            moto.database,
            moto.put,
            moto.add,
            lambda database, name: moto.glue.delete_table(DatabaseName=database, Name=name),
        )


def test_what_is_missing_is_none_or_nothing(far: Far) -> None:
    assert far.catalog.databases() == []
    assert far.catalog.database("shop") is None
    assert far.catalog.versions("shop") == {}
    assert far.catalog.table(NAME) is None
    far.database("shop")
    assert far.catalog.databases() == ["shop"]
    assert far.catalog.table(NAME) is None
    assert far.catalog.versions("shop") == {}
    database = far.catalog.database("shop")
    assert database is not None
    assert database.name == "shop"


def test_a_table_comes_as_an_engine_reads_it(far: Far) -> None:
    far.database("shop")
    far.put("shop", "orders", PLACE, keyed=True, columns=("x", "y"))
    table = far.catalog.table(NAME)
    assert table is not None
    assert (table.database, table.name, table.type) == ("shop", "orders", "EXTERNAL_TABLE")
    assert [column.name for column in table.partition_keys or ()] == ["p"]
    assert table.storage is not None
    assert [(column.name, column.type) for column in table.storage.columns or ()] == [("x", "int"), ("y", "int")]
    assert table.storage.location == PLACE
    assert (table.parameters or {})["colour"] == "red"
    assert far.catalog.partitions(table) == {}
    far.add("shop", "orders", PLACE, "1", "a b")
    partitions = far.catalog.partitions(table)
    assert sorted(partitions) == ["p=1", "p=a b"]
    stored = partitions["p=1"].storage
    assert stored is not None
    assert stored.location == f"{PLACE}/p=1"


def test_a_version_is_another_one_with_each_change_and_only_then(far: Far) -> None:
    far.database("shop")
    far.put("shop", "orders", PLACE)
    far.put("shop", "staff", f"{PLACE}2")
    before = far.catalog.versions("shop")
    assert far.catalog.versions("shop") == before
    assert before.keys() == {"orders", "staff"}
    far.put("shop", "orders", PLACE, columns=("x", "z"))
    after = far.catalog.versions("shop")
    assert after["orders"] != before["orders"]
    assert after["staff"] == before["staff"]
    far.drop("shop", "orders")
    assert far.catalog.versions("shop").keys() == {"staff"}
    assert far.catalog.table(NAME) is None


def test_many_pages_are_one_answer(far: Far) -> None:
    far.database("shop")
    for number in range(130):
        far.put("shop", f"t{number}", PLACE)
    far.put("shop", "orders", PLACE, keyed=True)
    far.add("shop", "orders", PLACE, *(str(number) for number in range(130)))
    assert len(far.catalog.versions("shop")) == 131
    table = far.catalog.table(NAME)
    assert table is not None
    assert len(far.catalog.partitions(table)) == 130


def test_what_is_wrong_with_glue_is_told(
    moto: MotoServer, keys: RemoteAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(Refused, match="No region is known"):
        GlueCatalog({ENDPOINT: moto.url}, keys).databases()
    with pytest.raises(AccessRefused, match="no credentials"):
        GlueCatalog({ENDPOINT: moto.url, REGION: MOTO_REGION}, RemoteAccess()).databases()
    with pytest.raises(Unavailable, match="does not answer"):
        GlueCatalog({ENDPOINT: "http://127.0.0.1:9", REGION: MOTO_REGION}, keys).databases()
    with pytest.raises(AccessRefused, match="near calque itself"):
        GlueCatalog({ENDPOINT: moto.url, REGION: MOTO_REGION}, replace(keys, far_only=True)).databases()
    with pytest.raises(Refused, match="is no address"):
        GlueClient().require({ENDPOINT: "ftp://x"})
