"""What a catalog of Iceberg's says is data: it names no class, no other server, and no place near calque."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection

from calque.errors import AccessRefused, Refused
from calque.model.names import TableName
from calque.model.secrets import VariableSecret
from calque.plugins.remotes.adapters.catalogs.glue import ENDPOINT, REGION, GlueCatalog
from calque.plugins.remotes.adapters.catalogs.iceberg import (
    CATALOG,
    PATH,
    URI,
    WAREHOUSE,
    IcebergCatalog,
    TableAtPath,
)
from calque.plugins.remotes.adapters.catalogs.near import far_pools
from calque.plugins.remotes.ports import RemoteAccess
from support.services.hostile_rest import HostileRest

ORDERS = TableName("shop", "orders")
CLASSES = {
    "py-io-impl": "probe.Probe",
    "py-catalog-impl": "probe.Probe",
    "auth": {"type": "custom", "impl": "probe.Probe", "custom": {}},
    "rest.sigv4-enabled": "true",
    "s3.signer": "S3V4RestSigner",
    "ssl": {"cabundle": "/nowhere"},
}
PROBE = "import pathlib\n\n\nclass Probe:\n    def __init__(self, *a, **k):\n        pathlib.Path({marker!r}).touch()\n"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once a class was made that only a server named."""
    marker, package = tmp_path / "imported", tmp_path / "package"
    package.mkdir()
    (package / "probe.py").write_text(PROBE.format(marker=str(marker)))
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "probe", raising=False)
    return marker


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> RemoteAccess:
    monkeypatch.setenv("FAR_TOKEN", "t0ken")
    return RemoteAccess(token=VariableSecret("FAR_TOKEN"))


def strings(properties: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if isinstance(value, str)}


@pytest.mark.parametrize("where", ["defaults", "overrides", "properties", "config"])
def test_a_catalog_over_rest_has_no_class_made(where: str, marker: Path) -> None:
    given = CLASSES if where in ("defaults", "overrides") else strings(CLASSES)
    with HostileRest(**{where: given}) as rest:
        catalog = IcebergCatalog({URI: rest.uri}, RemoteAccess())
        assert catalog.databases() == ["shop"]
        table = catalog.table(ORDERS)
        catalog.close()
    assert table is not None
    assert table.parameters is not None
    assert table.parameters["metadata_location"] == "file:///lake/orders/metadata/00000-a.metadata.json"
    assert not marker.exists()


def test_what_a_catalog_says_of_its_own_paths_is_heeded() -> None:
    with HostileRest(overrides={"prefix": "lake"}) as rest:
        assert IcebergCatalog({URI: rest.uri}, RemoteAccess()).databases() == ["shop"]
        assert rest.paths() == ["/v1/config", "/v1/lake/namespaces"]


def lake_of(folder: Path, properties: Mapping[str, str]) -> dict[str, str]:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake"
    lake = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    lake.create_namespace("shop")
    lake.create_table(tuple(ORDERS), Schema(NestedField(1, "x", IntegerType())))
    lake.close()
    [file] = (folder / "lake").rglob("*.metadata.json")
    # As another client writes them: this library would heed them while it makes the table.
    written = json.loads(file.read_text())
    file.write_text(json.dumps({**written, "properties": dict(properties)}))
    return {URI: uri, WAREHOUSE: warehouse, CATALOG: "lake"}


def test_a_table_in_a_sql_catalog_has_no_class_made(tmp_path: Path, marker: Path) -> None:
    catalog = IcebergCatalog(lake_of(tmp_path, strings(CLASSES)), RemoteAccess())
    assert catalog.table(ORDERS) is not None
    catalog.close()
    assert not marker.exists()


def test_a_table_at_a_path_has_no_class_made(tmp_path: Path, marker: Path) -> None:
    lake_of(tmp_path, strings(CLASSES))
    [metadata] = (tmp_path / "lake").rglob("metadata")
    shutil.move(metadata.parent, tmp_path / "orders")
    catalog = TableAtPath(f"file://{tmp_path}/orders")
    assert catalog.table(TableName("default", "orders")) is not None
    assert not marker.exists()


def test_the_librarys_own_configuration_lends_no_login_to_a_link(monkeypatch: pytest.MonkeyPatch, marker: Path) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__FINANCE__TOKEN", "f1nance")
    monkeypatch.setenv("PYICEBERG_CATALOG__FINANCE__PY_IO_IMPL", "probe.Probe")
    with HostileRest() as rest:
        IcebergCatalog({URI: rest.uri, CATALOG: "finance"}, RemoteAccess()).table(ORDERS)
        assert "f1nance" not in str(rest.asked)
    assert not marker.exists()


@pytest.mark.parametrize("way", ["redirect", "override"])
def test_a_catalog_leads_to_no_other_server_and_no_token_goes_along(way: str, token: RemoteAccess) -> None:
    with HostileRest() as other:
        elsewhere = f"http://localhost:{other.port}"
        moved = {"/v1/namespaces": f"{elsewhere}/v1/namespaces"} if way == "redirect" else {}
        with HostileRest(moved=moved, overrides={"uri": elsewhere} if way == "override" else {}) as rest:
            with pytest.raises(AccessRefused, match="leads to another server"):
                IcebergCatalog({URI: rest.uri}, token).databases()
            assert "Bearer t0ken" in str(rest.asked)
        assert other.asked == []


def test_a_secret_is_not_posted_to_where_a_redirect_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_PASSWORD", "s3cret")
    access = RemoteAccess(user="ann", password=VariableSecret("FAR_PASSWORD"))
    with (
        HostileRest() as other,
        HostileRest(moved={"/v1/oauth/tokens": f"http://localhost:{other.port}/v1/oauth/tokens"}) as rest,
    ):
        with pytest.raises(AccessRefused, match="leads to another server"):
            IcebergCatalog({URI: rest.uri}, access).databases()
        assert rest.paths() == ["/v1/oauth/tokens"]
        assert other.asked == []


def test_a_redirect_within_the_server_is_followed(token: RemoteAccess) -> None:
    with HostileRest(moved={"/v1/namespaces": "/v1/lake/namespaces"}) as rest:
        assert IcebergCatalog({URI: rest.uri}, token).databases() == ["shop"]


def test_a_name_that_leads_near_gets_no_request(token: RemoteAccess) -> None:
    access = replace(token, far_only=True)
    with HostileRest() as rest:
        uri = f"http://127.1:{rest.port}"
        with pytest.raises(AccessRefused, match=r"leads to 127\.0\.0\.1"):
            IcebergCatalog({URI: uri}, access).databases()
        with pytest.raises(AccessRefused, match=r"leads to 127\.0\.0\.1"):
            GlueCatalog(
                {ENDPOINT: uri, REGION: "eu-west-1"}, replace(access, user="id", password=access.token)
            ).databases()
        assert rest.asked == []


class Rebound(HTTPConnection):
    """As when a name has another address once it is connected to."""

    def _new_conn(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))


class RebindingPool(HTTPConnectionPool):
    ConnectionCls = Rebound


@pytest.mark.parametrize("host", ["203.0.113.7", "127.1"])
def test_the_address_that_a_socket_has_counts_whatever_its_name_led_to_before(host: str) -> None:
    with HostileRest() as rest:
        pool = far_pools(RebindingPool, RebindingPool)["http"](host, rest.port)
        with pytest.raises(AccessRefused, match=r"leads to 127\.0\.0\.1"):
            pool.urlopen("GET", "/v1/config")
        pool.close()
        assert rest.asked == []


@pytest.mark.parametrize("settings", [{PATH: "file:///x"}, {URI: "sqlite:///x.db"}])
def test_only_a_statement_names_a_database_or_a_path(settings: Mapping[str, str]) -> None:
    from calque.plugins.remotes.adapters.catalogs.iceberg import FORM
    from calque.plugins.remotes.core.permission import refusal
    from calque.plugins.remotes.model import Endpoint

    endpoint = Endpoint("iceberg", tuple(settings.items()))
    assert isinstance(refusal(endpoint, FORM, [], ["sqlite://*/*", "file://*/*"], {}, []), Refused)


def test_an_answer_that_unpacks_without_an_end_is_not_read_to_it() -> None:
    pages = gzip.compress(bytes(1 << 20), 1)
    too_much = pytest.raises(Refused, match="answers more than 268435456 bytes")
    with HostileRest(body=pages * 300, encoding="gzip") as rest, too_much:
        IcebergCatalog({URI: rest.uri}, RemoteAccess()).databases()
    keys = RemoteAccess(user="AKIA", password=VariableSecret("PATH"))
    with HostileRest(body=bytes(257 << 20)) as rest, too_much:
        GlueCatalog({ENDPOINT: rest.uri, REGION: "eu-central-1"}, keys).databases()
    with HostileRest(body=b"\xff") as rest, pytest.raises(Refused, match="can't be read"):
        GlueCatalog({ENDPOINT: rest.uri, REGION: "eu-central-1"}, keys).databases()
