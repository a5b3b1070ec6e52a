"""What links ask of catalogs that keep no log: the same of each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.secrets import VariableSecret
from calque.plugins.remotes.adapters.catalogs import ICEBERG
from calque.plugins.remotes.adapters.catalogs.glue import ENDPOINT, REGION, GlueCatalog, GlueClient
from calque.plugins.remotes.adapters.catalogs.iceberg import CATALOG, KIND, PATH, URI, WAREHOUSE, IcebergCatalog
from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog
from support.memory.remote_catalog import MemoryCatalog
from support.services.glues import REGION as MOTO_REGION
from support.services.glues import MotoServer
from support.services.iceberg_rest import IcebergRest

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


def in_sql(folder: Path) -> Far:
    uri = f"sqlite:///{folder}/catalog.db"
    lake = SqlCatalog("lake", uri=uri, warehouse=f"file://{folder}/lake")
    lake.create_namespace("to_have_tables_made")
    lake.drop_namespace("to_have_tables_made")
    return in_iceberg(lake, {URI: uri, WAREHOUSE: f"file://{folder}/lake", CATALOG: "lake"})


def over_rest(server: IcebergRest) -> Far:
    """Whatever it had before is gone, with the files, which the server leaves where they were."""
    lake = RestCatalog("lake", uri=server.uri)
    for namespace in lake.list_namespaces():
        for name in lake.list_tables(namespace):
            lake.drop_table(name)
        lake.drop_namespace(namespace)
    shutil.rmtree(server.warehouse, ignore_errors=True)
    return in_iceberg(lake, {URI: server.uri})


def in_iceberg(lake: Catalog, settings: dict[str, str]) -> Far:
    """Iceberg tables have no partitions that a metastore knows."""

    def put(database: str, name: str, location: str, *, columns: tuple[str, ...] = ("x",), **_: Any) -> None:  # noqa: ARG001
        try:
            lake.create_table(
                (database, name), Schema(NestedField(1, "x", IntegerType())), properties={"colour": "red"}
            )
        except TableAlreadyExistsError:
            with lake.load_table((database, name)).update_schema() as update:
                update.add_column(columns[-1], IntegerType())

    return Far(
        ICEBERG.connect(settings, RemoteAccess()),
        lake.create_namespace,
        put,
        lambda *_: None,
        lambda database, name: lake.drop_table((database, name)),
    )


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRest]:
    with IcebergRest(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture(params=["sql", "rest"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Far]:
    """One of Iceberg's catalogs."""
    far = in_sql(tmp_path) if request.param == "sql" else over_rest(request.getfixturevalue("rest"))
    yield far
    far.catalog.close()


@pytest.fixture(params=["memory", "glue", "iceberg sql", "iceberg rest"])
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Far]:
    with ExitStack() as stack:
        if request.param != "glue":
            match request.param:
                case "memory":
                    found = in_memory()
                case "iceberg sql":
                    found = in_sql(tmp_path)
                case _:
                    found = over_rest(request.getfixturevalue("rest"))
            stack.callback(found.catalog.close)
            yield found
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
    if isinstance(far.catalog, IcebergCatalog):
        pytest.skip("its tables are described by their metadata files, in a test of its own")
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
    if isinstance(far.catalog, IcebergCatalog):
        pytest.skip("a database of SQL has no pages")
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


def test_an_iceberg_table_comes_as_iceberg_registers_it_and_by_its_path_alone(lake: Far) -> None:
    far = lake
    far.database("shop")
    far.put("shop", "orders", PLACE)
    table = far.catalog.table(NAME)
    assert table is not None
    parameters = table.parameters or {}
    assert parameters["table_type"] == "ICEBERG"
    assert parameters["metadata_location"] == far.catalog.versions("shop")["orders"]
    assert table.storage is not None
    assert [(column.name, column.type) for column in table.storage.columns or ()] == [("x", "int")]
    place = str(table.storage.location)
    alone = ICEBERG.connect({PATH: place}, RemoteAccess())
    by_path = alone.table(TableName("default", "orders"))
    assert by_path == replace(table, database="default")
    far.put("shop", "orders", PLACE, columns=("x", "z"))
    assert (
        alone.versions("default")["orders"] == far.catalog.versions("shop")["orders"] != parameters["metadata_location"]
    )
    assert alone.versions("shop") == {}
    assert alone.table(TableName("default", "other")) is None
    missing = ICEBERG.connect({PATH: f"{place}/nowhere"}, RemoteAccess())
    assert missing.table(TableName("default", "nowhere")) is None


def test_names_of_iceberg_in_upper_case_are_found_where_one_alone_is_meant(lake: Far) -> None:
    for database in ("Shop", "one", "ONE", "Two", "TWO"):
        lake.database(database)
    for name in ("Orders", "staff", "STAFF", "Lost", "LOST"):
        lake.put("Shop", name, PLACE)
    assert lake.catalog.databases() == ["one", "shop"]
    assert lake.catalog.database("shop") is not None
    assert lake.catalog.database("two") is None
    assert lake.catalog.versions("shop").keys() == {"orders", "staff"}
    for name in ("orders", "staff"):
        table = lake.catalog.table(TableName("shop", name))
        assert table is not None
        assert (table.database, table.name) == ("shop", name)
        assert (table.parameters or {})["metadata_location"] == lake.catalog.versions("shop")[name]
    assert lake.catalog.table(TableName("shop", "lost")) is None
    assert lake.catalog.table(TableName("two", "orders")) is None


def test_a_table_of_iceberg_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    unknown = ICEBERG.connect({PATH: "an-atomic-store://tables/tbl_name"}, RemoteAccess())
    with pytest.raises(Refused, match="an-atomic-store"):
        unknown.table(TableName("default", "tbl_name"))
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text('{"format-version": 2}')
    torn = ICEBERG.connect({PATH: f"{tmp_path}/t"}, RemoteAccess())
    with pytest.raises(Unavailable, match="can't be read"):
        torn.table(TableName("default", "t"))
    away = ICEBERG.connect({URI: f"sqlite:///{tmp_path}/no/folder/catalog.db"}, RemoteAccess())
    with pytest.raises(Unavailable, match="can't be read"):
        away.databases()
    with pytest.raises(Unavailable, match="can't be read"):
        ICEBERG.connect({URI: "http://127.0.0.1:9"}, RemoteAccess()).databases()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {PATH: "s3://a/t", URI: "https://x"},
        {URI: "https://x", KIND: "sql"},
        {URI: "nothing"},
        {URI: "https://x", KIND: "hive"},
    ],
)
def test_settings_of_iceberg_that_cannot_be_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(Refused):
        ICEBERG.require(settings)
