"""Remote tables and databases, on a local and a remote metastore: links follow what they stand for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

import support
from calque.model.facets import ColumnStatistics, Longs, StatisticsCounts
from calque.model.hive import Function
from calque.model.names import TableName
from calque.plugins.remotes.wiring.clients import remote_clients
from calque.sandbox import Metastore, MetastoreSettings
from support.services.glues import VARIABLES, MotoServer
from support.services.iceberg_rest import IcebergRest
from support.services.linked import Catalog, Linked
from support.services.servers import Shared
from support.services.sparksql import SparkSql
from support.sources.shelf import Shelf

pytestmark = pytest.mark.timeout(900)


LENGTH = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFLength"
"""A function that Hive has, and Spark with it."""
FILLED = {
    "calque.remote.connected_to": "far.chained",
    "calque.remote.via": "thrift",
    "hive.metastore.uris": "thrift://elsewhere:9083",
    "calque.source": "remote.thrift.elsewhere.12345678:far.chained",
    "calque.event": "7",
}
"""Parameters of a link in another catalog."""


@pytest.fixture
def linked(shared: Shared, tmp_path: Path) -> Iterator[Linked]:
    servers = shared("source-3", "target-4")
    linked = Linked(tmp_path, servers["target-4"].uri, servers["source-3"].uri)
    yield linked
    linked.close()


def test_links_follow_what_they_stand_for(linked: Linked) -> None:
    """One process for all of it: each start costs seconds."""
    here, there = linked.here, linked.there
    there.database("rm1_shop")
    there.table("rm1_shop.orders", "1", "2", colour="red")
    there.table("rm1_shop.staff")
    there.transactional("rm1_shop.bank")
    # A link of the remote catalog, as that one's calque has filled it
    there.table("rm1_shop.chained", "1", colour="blue", **FILLED)
    here.database("rm1_local")
    linked.link("rm1_local.orders", "rm1_shop.orders")
    assert here.parts("rm1_local.orders") == []
    created = linked.calque("sql", f"CREATE REMOTE DATABASE rm1_all CONNECTED TO rm1_shop {linked.properties('DB')}")
    waits = "rm1_all is linked, and empty. No `calque run` follows links. Start one: it fills the link."
    assert created == (0, "", f"calque: {waits}\n")
    assert {linked.state(name) for name in ("rm1_local.orders", "rm1_all")} == {"waiting"}
    here.table("rm1_all.taken", own="yes")
    linked.config.write_text(linked.config.read_text().replace('address = ""', 'address = "127.0.0.1:0"'))
    with linked.running():
        linked.wait_live("rm1_local.orders", "rm1_all", "rm1_all.orders", "rm1_all.staff")
        assert here.parts("rm1_local.orders") == here.parts("rm1_all.orders") == ["p=1", "p=2"]
        shown = here.shown("rm1_local.orders")
        assert shown is not None
        assert shown.storage is not None
        assert shown.storage.location == there.place_of("rm1_shop.orders")
        assert here.parameters("rm1_local.orders")["colour"] == "red"
        assert here.parameters("rm1_local.orders")["calque.remote.connected_to"] == "rm1_shop.orders"
        # A link to what a link shows; rows that only their own catalog can tell are of no use here
        linked.wait_live("rm1_all.chained")
        chained = here.parameters("rm1_all.chained")
        assert (chained["colour"], here.location("rm1_all.chained")) == ("blue", there.location("rm1_shop.chained"))
        assert "calque.remote.connected_to" not in chained
        assert chained["calque.source"].endswith(":rm1_shop.chained")
        linked.wait_until(lambda: linked.state("rm1_all.bank") == "set_aside")
        assert "transactional" in linked.reason("rm1_all.bank")
        assert "bank" not in here.tables("rm1_all")
        # Its files are copied, and not any more, under a reader
        with linked.reader(lambda: here.look("rm1_local.orders")) as seen:
            linked.sql("ALTER REMOTE TABLE rm1_local.orders SET DATA COPY")
            linked.wait_until(lambda: all("/warehouse/" in place for place in here.locations("rm1_local.orders")))
            linked.wait_live("rm1_local.orders")
            there.partitions("rm1_shop.orders", "2b")
            linked.wait_until(lambda: here.parts("rm1_local.orders") == ["p=1", "p=2", "p=2b"])
            assert "/warehouse/" in here.locations("rm1_local.orders")[-1]
            assert linked.sql("DESCRIBE REMOTE TABLE rm1_local.orders")[-3]["col_name"] == "calque.remote.data"
            linked.sql("ALTER REMOTE TABLE rm1_local.orders SET DATA NONE")
            linked.wait_until(lambda: all("/there/" in place for place in here.locations("rm1_local.orders")))
            there.client.drop_partitions(TableName("rm1_shop", "orders"), ["p=2b"])
            linked.wait_until(lambda: here.parts("rm1_local.orders") == ["p=1", "p=2"])
        assert seen == {(2, True), (3, True)}
        assert not any("/warehouse/" in place for place in here.locations("rm1_all.orders"))
        # What happens at the remote catalog
        there.partitions("rm1_shop.orders", "3")
        there.table("rm1_shop.late")
        there.table("rm1_shop.taken")
        linked.wait_until(lambda: here.parts("rm1_local.orders") == ["p=1", "p=2", "p=3"])
        linked.wait_live("rm1_all.late")
        linked.wait_until(lambda: linked.state("rm1_all.taken") == "set_aside")
        assert here.parameters("rm1_all.taken")["own"] == "yes"
        # The page tells of them
        linked.wait_until(lambda: linked.page("links?q=rm1_*&state=set_aside")["total"] == 2)
        aside = linked.page("links?q=rm1_*&state=set_aside")["links"]
        assert {row["name"] for row in aside} == {"rm1_all.bank", "rm1_all.taken"}
        linked.wait_until(lambda: linked.page("overview")["links"]["states"]["set_aside"] >= 2)
        problems = [one["reason"] for one in linked.page("overview")["problems"]]
        assert [problems.count(row["reason"]) for row in aside] == [1, 1]
        found = linked.page("links?q=rm1_all.*&state=live&limit=2")
        assert (found["total"], [row["name"] for row in found["links"]]) == (5, ["rm1_all", "rm1_all.chained"])
        here.rename("rm1_all.taken", "rm1_local.taken")
        linked.wait_live("rm1_all.taken")
        # A new link, while the others go on
        linked.link("rm1_local.staff", "rm1_shop.staff")
        linked.wait_live("rm1_local.staff")
        # Gone, back, renamed
        there.drop("rm1_shop.staff")
        linked.wait_until(lambda: linked.state("rm1_local.staff") == "gone")
        linked.wait_until(lambda: "staff" not in here.tables("rm1_all"))
        assert "_calque_links" in here.location("rm1_local.staff")
        there.table("rm1_shop.staff", "a", columns=("y", "z"))
        linked.wait_live("rm1_local.staff", "rm1_all.staff")
        linked.wait_until(lambda: here.parts("rm1_local.staff") == ["p=a"])
        there.rename("rm1_shop.orders", "rm1_shop.sold")
        linked.wait_until(lambda: linked.state("rm1_local.orders") == "gone")
        assert here.parts("rm1_local.orders") == []
        linked.wait_live("rm1_all.sold")
        there.rename("rm1_shop.sold", "rm1_shop.orders")
        linked.wait_live("rm1_local.orders")
        linked.wait_until(lambda: here.parts("rm1_local.orders") == ["p=1", "p=2", "p=3"])
        # What happens to links here
        here.set("rm1_local.orders", {"external.table.purge": "true"})
        linked.wait_until(lambda: "external.table.purge" not in here.parameters("rm1_local.orders"))
        here.set("rm1_local.staff", {"calque.remote.connected_to": ""})
        linked.wait_until(lambda: "rm1_local.staff" not in linked.rows())
        linked.wait_until(lambda: "calque.source" not in here.parameters("rm1_local.staff"))
        assert here.parts("rm1_local.staff") == ["p=a"]
        here.drop("rm1_local.orders")
        linked.wait_until(lambda: "rm1_local.orders" not in linked.rows())
        here.table("rm1_all.own")
        linked.sql("DROP REMOTE DATABASE rm1_all")
        assert here.tables("rm1_all") == ["own"]
        assert not [name for name in linked.rows() if name.startswith("rm1_")]
    assert there.parts("rm1_shop.orders") == ["p=1", "p=2", "p=3"]
    assert here.shown("rm1_local.orders") is None
    for value in ("1", "2", "3"):
        assert there.has_file("rm1_shop.orders", value)


@pytest.mark.prove
def test_a_process_that_dies_where_a_link_is_missing_for_a_moment_loses_none(linked: Linked) -> None:
    here, there = linked.here, linked.there
    there.database("rm5_shop")
    there.table("rm5_shop.orders", "1", "2")
    here.database("rm5_local")
    linked.link("rm5_local.orders", "rm5_shop.orders")
    linked.start(CALQUE_FAILPOINT="catalog.drop_table.after")
    assert linked.process is not None
    assert linked.process.wait(120) == -signal.SIGKILL, linked.tail()
    assert here.shown("rm5_local.orders") is None
    with linked.running():
        linked.wait_live("rm5_local.orders")
        assert here.parts("rm5_local.orders") == ["p=1", "p=2"]


def test_links_of_engines_need_leave_and_hostile_ones_are_not_connected_to(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = shared("source-3", "target-4")
    local, remote = servers["target-4"].uri, servers["source-3"].uri
    curious = socket.create_server(("127.0.0.1", 0))
    curious.setblocking(False)
    allowed = f"thrift://127.0.0.1:{curious.getsockname()[1]}"
    linked = Linked(tmp_path, local, remote, allow=f'"{remote}", "{allowed}", "thrift://*:*"')
    monkeypatch.setenv("FINANCE", "s3cret")
    login = 'user = "ann"\nauth = "plain"\npassword_env = "FINANCE"\n'
    linked.config.write_text(
        f"{linked.config.read_text()}[remotes.credentials.finance]\n{login}"
        f'[remotes.credentials.everywhere]\nendpoints = ["{allowed}"]\n{login}'
        f'[remotes.credentials.lent]\nendpoints = ["{remote}"]\n'
    )
    here, there = linked.here, linked.there
    there.database("rm2_shop")
    there.table("rm2_shop.orders", "1", colour="red")
    there.transactional("rm2_shop.bank")
    there.bare("rm2_shop.back", {"calque.remote.connected_to": "rm2_local.new", "hive.metastore.uris": local})
    here.database("rm2_local")
    to = {"calque.remote.connected_to": "rm2_shop.orders", "hive.metastore.uris": remote}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        for number, uri in enumerate(
            (f"thrift://127.0.0.1:{port}", f"thrift://localhost:{port}", f"thrift://[::1]:{port}")
        ):
            here.bare(f"rm2_local.hostile{number}", {**to, "hive.metastore.uris": uri})
        here.bare("rm2_local.itself", {**to, "hive.metastore.uris": local})
        here.bare("rm2_local.login", {**to, "calque.remote.credentials": "far"})
        here.bare("rm2_local.secret", {**to, "ssh.password": "x"})
        here.bare("rm2_local.stranger", to, owner="eve")
        here.bare("rm2_local.nobody", to, owner="")
        for name in ("finance", "everywhere"):
            uris = {"hive.metastore.uris": allowed, "calque.remote.credentials": name}
            here.bare(f"rm2_local.{name}", {**to, **uris})
        here.bare("rm2_local.lent", {**to, "calque.remote.credentials": "lent"})
        here.table("rm2_local.full", **to)
        here.table("rm2_local.parted", "1", **to)
        here.bare("rm2_local.fine", to)
        bad = [name for name in here.tables("rm2_local") if name not in ("fine", "lent")]
        try:
            linked.start()
            linked.wait_live("rm2_local.fine", "rm2_local.lent")
            assert here.parts("rm2_local.fine") == ["p=1"]
            rows = linked.rows()
            assert {name: rows[f"rm2_local.{name}"]["state"] for name in bad} == dict.fromkeys(bad, "set_aside")
            assert "Nothing allows links to" in rows["rm2_local.hostile0"]["reason"]
            assert "the local metastore itself" in rows["rm2_local.itself"]["reason"]
            assert "no credentials 'far'" in rows["rm2_local.login"]["reason"]
            assert "secret" in rows["rm2_local.secret"]["reason"]
            assert "eve does not own" in rows["rm2_local.stranger"]["reason"]
            assert "rm2_local.nobody has no owner" in rows["rm2_local.nobody"]["reason"]
            assert f"'finance' are not for {allowed}" in rows["rm2_local.finance"]["reason"]
            assert f"goes to {allowed} without TLS" in rows["rm2_local.everywhere"]["reason"]
            with pytest.raises(BlockingIOError):
                curious.accept()
            assert "files of its own" in rows["rm2_local.full"]["reason"]
            assert "partitions of its own" in rows["rm2_local.parted"]["reason"]
            began = time.monotonic()
            here.bare("rm2_local.later", to)
            linked.wait_live("rm2_local.later")
            print(f"a link of an engine was live after {time.monotonic() - began:.1f} s")
            link = linked.properties()
            for text, said in (
                (f"CREATE REMOTE TABLE rm2_local.fine CONNECTED TO rm2_shop.orders {link}", "exists already"),
                (f"CREATE REMOTE TABLE rm2_local.new CONNECTED TO rm2_shop.ordrs {link}", "There is no table"),
                (f"CREATE REMOTE TABLE rm2_local.new CONNECTED TO rm2_shop.bank {link}", "can't be linked"),
                (f"CREATE REMOTE TABLE rm2_none.new CONNECTED TO rm2_shop.orders {link}", "There is no local database"),
                (f"CREATE REMOTE DATABASE rm2_local CONNECTED TO rm2_shop {linked.properties('DB')}", "exists already"),
                (f"CREATE REMOTE TABLE rm2_local.new {linked.properties(uri=local)}", "the local metastore itself"),
                (f"CREATE REMOTE TABLE rm2_local.new CONNECTED TO rm2_shop.back {link}", "go round in a ring"),
                ("DROP REMOTE TABLE rm2_local.none", "There is no remote table"),
                ("DROP REMOTE DATABASE rm2_local", "is no remote database"),
            ):
                assert_refused(linked, text, said)
            linked.sql(f"CREATE REMOTE TABLE IF NOT EXISTS rm2_local.fine CONNECTED TO rm2_shop.orders {link}")
            linked.sql("DROP REMOTE TABLE IF EXISTS rm2_local.none")
            described = linked.sql("DESCRIBE EXTENDED REMOTE TABLE rm2_local.fine")
            assert [row["col_name"] for row in described[:2]] == ["x", "p"]
            assert described[-1] == {"col_name": "hive.metastore.uris", "data_type": remote, "comment": ""}
            # Parameters that are others than when somebody looked
            assert linked.end() == 0
            here.set("rm2_local.fine", {"hive.metastore.uris": f"thrift://127.0.0.1:{port}"})
            for text in (
                "DESCRIBE REMOTE TABLE rm2_local.fine",
                "ALTER REMOTE TABLE rm2_local.fine SET TBLPROPERTIES ('calque.remote.credentials' = 'finance')",
            ):
                assert_refused(linked, text, "Nothing allows links to")
            with pytest.raises(BlockingIOError):
                listener.accept()
        finally:
            linked.close()
            curious.close()


@pytest.mark.prove
def test_engines_read_links_while_the_remote_catalog_is_down(shared: Shared, tmp_path: Path) -> None:
    """`run` begins without any link; the last one that goes ends what was for its catalog."""
    servers = shared("target-3", "source-4")
    local, third = servers["target-3"], Catalog(servers["source-4"].uri, tmp_path / "third")
    third.database("rm3_shop")
    third.table("rm3_shop.orders", "1", "2", "3")
    with Metastore.start(MetastoreSettings(version="3.1.3"), tmp_path / "remote") as remote:
        linked, engine = Linked(tmp_path, local.uri, remote.uri, f'"{remote.uri}"'), None
        here, there = linked.here, linked.there
        there.database("rm3_shop")
        there.table("rm3_shop.orders", "1", "2")
        counted = {"": {"x": ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(1, 9, 2, 3)))}}
        there.table("rm3_shop.staff")
        there.catalog.put_statistics(TableName("rm3_shop", "staff"), counted)
        there.client.create_function(Function("size", "rm3_shop", LENGTH, "me", 1, type=1))
        there.view("rm3_shop.seen", "SELECT `orders`.`x` FROM `rm3_shop`.`orders`")
        there.view("rm3_shop.blind", "SELECT `own`.`x` FROM `rm3_private`.`own`")
        here.database("rm3_local")
        here.table("rm3_local.own")
        try:
            linked.start()
            engine = SparkSql(local.uri, tmp_path / "spark")
            assert linked.calque("status")[0] == 0
            engine.sql(
                "CREATE EXTERNAL TABLE rm3_local.orders (x INT) PARTITIONED BY (p STRING) STORED AS TEXTFILE "
                f"LOCATION 'file:{tmp_path}/nothing' TBLPROPERTIES ('calque.remote.connected_to' = "
                f"'rm3_shop.orders', 'hive.metastore.uris' = '{remote.uri}')"
            )
            linked.link_database("rm3_shop", "rm3_shop")
            linked.wait_live("rm3_local.orders", "rm3_shop.seen")
            linked.wait_until(lambda: linked.state("rm3_shop.blind") == "set_aside")
            assert "rm3_private.own is not linked" in linked.reason("rm3_shop.blind")
            linked.sql(
                "CREATE REMOTE TABLE rm3_local.others CONNECTED TO rm3_shop.orders "
                f"WITH TBLPROPERTIES ('hive.metastore.uris' = '{third.uri}')"
            )
            linked.wait_live("rm3_local.others", "rm3_shop.staff")
            staff = TableName("rm3_shop", "staff")
            linked.wait_until(lambda: here.client.catalog.table_statistics(staff, ["x"]) == counted[""])
            remote.kill()
            linked.wait_until(lambda: linked.state("rm3_local.orders") == "unreachable")
            joined = "SELECT count(*) FROM rm3_local.orders a JOIN rm3_local.own b ON a.x = b.x WHERE a.p = '2'"
            assert engine.sql(joined) == [[1]]
            assert engine.sql("SELECT count(*) FROM rm3_shop.seen") == [[2]]
            assert engine.sql("SELECT rm3_shop.size('four')") == [[4]]
            [[plan]] = engine.sql("EXPLAIN SELECT x FROM rm3_local.orders WHERE p = '2'")
            assert "Pruned Partitions: [(p=2)]" in plan
            joined = (
                "SELECT a.p, b.p FROM rm3_local.orders a FULL OUTER JOIN rm3_local.others b ON a.p = b.p ORDER BY 2"
            )
            assert engine.sql(joined) == [["1", "1"], ["2", "2"], [None, "3"]]
            assert linked.refused("DESCRIBE REMOTE TABLE rm3_local.orders")[0] == 75
            remote.restart()
            there.partitions("rm3_shop.orders", "3")
            linked.wait_until(lambda: here.parts("rm3_local.orders") == ["p=1", "p=2", "p=3"])
            linked.wait_live("rm3_local.orders")
            # The same server by another name is another endpoint.
            other = remote.uri.replace("127.0.0.1", "localhost")
            linked.sql(f"ALTER REMOTE TABLE rm3_local.orders SET TBLPROPERTIES ('hive.metastore.uris' = '{other}')")
            linked.wait_until(lambda: "localhost" in here.parameters("rm3_local.orders").get("calque.source", ""))
            linked.wait_until(lambda: here.parts("rm3_local.orders") == ["p=1", "p=2", "p=3"])
            engine.sql("DROP TABLE rm3_local.orders")
            engine.sql("DROP TABLE rm3_local.others")
            linked.sql("DROP REMOTE DATABASE rm3_shop")
            linked.wait_until(lambda: "remote.thrift" not in linked.calque("status")[1])
            assert here.tables("rm3_local") == ["own"]
            assert "rm3_shop" not in here.client.catalog.databases()
            assert there.has_file("rm3_shop.orders", "1")
            assert third.has_file("rm3_shop.orders", "3")
            assert linked.end() == 0
        finally:
            linked.close()
            if engine is not None:
                engine.close()


def assert_refused(linked: Linked, text: str, said: str) -> None:
    code, told = linked.refused(text)
    assert (code, said in told) == (65, True), (text, told)


@pytest.fixture
def iceberg_rest(tmp_path: Path) -> Iterator[IcebergRest]:
    with IcebergRest(tmp_path / "rest") as server:
        yield server


@pytest.fixture
def moto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MotoServer]:
    """Whoever asks AWS has credentials."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with MotoServer(tmp_path) as server:
        yield server


SHELF = Path(support.__file__).parent / "packages" / "shelf"
"""A package of a third party: installed where its folder is on the path."""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """A catalog for which this process, and those that it starts, have a client."""
    monkeypatch.syspath_prepend(str(SHELF))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(SHELF), os.environ.get("PYTHONPATH")])))
    remote_clients.cache_clear()
    yield Shelf(tmp_path / "shelf.json", tmp_path / "there")
    remote_clients.cache_clear()


def test_links_into_catalogs_without_a_log_follow_what_looks_find(
    shared: Shared, tmp_path: Path, shelf: Shelf, moto: MotoServer, iceberg_rest: IcebergRest
) -> None:
    """Glue and Iceberg's catalogs are among them: one process for all."""
    local = shared("target-4")["target-4"].uri
    linked = Linked(tmp_path, local, local)
    linked.config.write_text(linked.config.read_text().replace("[window]", 'interval = "1s"\n[window]'))
    here = linked.here
    here.database("rm4_local")

    def link(name: str, to: str, path: object, via: str = "shelf", kind: str = "TABLE") -> str:
        properties = f"WITH {'TBL' if kind == 'TABLE' else 'DB'}PROPERTIES ('shelf.file' = '{path}')"
        return f"CREATE REMOTE {kind} {name} CONNECTED TO {to} VIA '{via}' {properties}"

    shelf.put("orders", "1", "2")
    shelf.put("staff")
    code, told = linked.refused(link("rm4_local.orders", "shop.orders", "x.txt"))
    assert (code, "is no shelf" in told) == (65, True)
    code, told = linked.refused(link("rm4_local.orders", "shop.orders", shelf.path, via="shelff"))
    assert (code, "shelf" in told) == (65, True)
    assert linked.refused(link("rm4_local.orders", "shop.orders", tmp_path / "none.json"))[0] == 75
    assert linked.refused(link("rm4_local.orders", "shop.nothing", shelf.path))[0] == 65
    linked.sql(link("rm4_local.orders", "shop.orders", shelf.path, via="org.shelf.ShelfClientFactory"))
    linked.sql(link("rm4_all", "shop", shelf.path, kind="DATABASE"))
    moto.database("rm4_far")
    moto.put("rm4_far", "glued", shelf.place("glued"), keyed=True)
    moto.add("rm4_far", "glued", shelf.place("glued"), "1", "2")
    linked.sql(
        "CREATE REMOTE TABLE rm4_local.glued CONNECTED TO rm4_far.glued "
        "VIA 'com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory' WITH TBLPROPERTIES (\n"
        f"-- Glue endpoint configuration\n'aws.glue.endpoint' = '{moto.url}')"
    )
    lake = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/lake")
    lake.create_namespace("shop")
    cold = lake.create_table(("shop", "cold"), Schema(NestedField(1, "x", IntegerType())))
    linked.sql(
        "USE rm4_local; CREATE REMOTE TABLE cold VIA 'xxx.yyy.iceberg.hive.zzz.IcebergTableHiveClientFactory' "
        f"WITH TBLPROPERTIES ('iceberg.table.path' = '{cold.location()}')"
    )
    linked.sql(
        "CREATE REMOTE TABLE rm4_local.cool CONNECTED TO shop.cold VIA 'iceberg' "
        f"WITH TBLPROPERTIES ('iceberg.catalog.uri' = 'sqlite:///{tmp_path}/lake.db')"
    )
    rested = RestCatalog("default", uri=iceberg_rest.uri)
    rested.create_namespace("Far")
    warm = rested.create_table(("Far", "Warm"), cold.schema())
    linked.sql(
        "CREATE REMOTE TABLE rm4_local.warm CONNECTED TO far.warm VIA 'iceberg' "
        f"WITH TBLPROPERTIES ('iceberg.catalog.uri' = '{iceberg_rest.uri}')"
    )
    linked.sql(
        "CREATE REMOTE DATABASE rm4_lake CONNECTED TO far VIA 'iceberg' "
        f"WITH DBPROPERTIES ('iceberg.catalog.uri' = '{iceberg_rest.uri}')"
    )
    try:
        with linked.running():
            linked.wait_live("rm4_local.glued", "rm4_local.cold", "rm4_local.cool", "rm4_local.warm")
            assert here.parts("rm4_local.glued") == ["p=1", "p=2"]
            assert here.location("rm4_local.glued") == shelf.place("glued")
            moto.add("rm4_far", "glued", shelf.place("glued"), "3")
            linked.wait_until(lambda: here.parts("rm4_local.glued") == ["p=1", "p=2", "p=3"])
            with cold.update_schema() as update:
                update.add_column("y", IntegerType())
            for name in ("rm4_local.cold", "rm4_local.cool"):
                linked.wait_until(lambda name=name: columns_of(here, name) == ["x", "y"])  # type: ignore[misc]
                assert here.parameters(name)["metadata_location"] == cold.metadata_location
            with warm.update_schema() as update:
                update.add_column("z", IntegerType())
            linked.wait_until(lambda: columns_of(here, "rm4_local.warm") == ["x", "z"])
            assert here.parameters("rm4_local.warm")["metadata_location"] == warm.metadata_location
            linked.wait_live("rm4_lake.warm")
            code, said, told = linked.calque("check")
            assert (code, "read the source's files, not write them" in said) == (0, True), (said, told)
            linked.wait_live("rm4_local.orders", "rm4_all.orders", "rm4_all.staff")
            assert here.parts("rm4_local.orders") == here.parts("rm4_all.orders") == ["p=1", "p=2"]
            assert here.location("rm4_local.orders") == shelf.place("orders")
            # One that the catalog itself can't tell of
            shelf.put("odd", place="nowhere")
            linked.wait_until(lambda: linked.state("rm4_all.odd") == "set_aside")
            assert "'nowhere' is no place" in linked.reason("rm4_all.odd")
            shelf.put("odd")
            linked.wait_live("rm4_all.odd")
            # Each change of a table is one step: a reader finds the rows of all of it
            with linked.reader(lambda: here.rows("rm4_local.orders")) as seen:
                shelf.put("orders", "1", "2", "3", "4", "5")
                linked.wait_until(lambda: len(here.parts("rm4_local.orders")) == 5)
                shelf.put("orders", "5")
                linked.wait_until(lambda: here.parts("rm4_all.orders") == here.parts("rm4_local.orders") == ["p=5"])
            assert seen == {2, 5, 1}
            shelf.put("orders", "5", "6", columns=("x", "y"))
            linked.wait_until(lambda: columns_of(here, "rm4_local.orders") == ["x", "y"])
            linked.wait_until(lambda: here.parts("rm4_local.orders") == ["p=5", "p=6"])
            # A link that is new, while others go on
            linked.sql(link("rm4_local.staff", "shop.staff", shelf.path))
            linked.wait_live("rm4_local.staff")
            shelf.put("staff", columns=("a", "b"))
            linked.wait_until(lambda: columns_of(here, "rm4_local.staff") == ["a", "b"])
            # Away, and back
            shelf.hide()
            linked.wait_until(lambda: linked.state("rm4_local.staff") == "unreachable")
            assert here.parts("rm4_local.orders") == ["p=5", "p=6"]
            shelf.show()
            linked.wait_live("rm4_local.staff")
            # Gone, and back with other keys
            shelf.drop("staff")
            linked.wait_until(lambda: linked.state("rm4_local.staff") == "gone")
            linked.wait_until(lambda: "staff" not in here.tables("rm4_all"))
            shelf.put("staff", "a")
            linked.wait_live("rm4_local.staff", "rm4_all.staff")
            linked.wait_until(lambda: here.parts("rm4_local.staff") == ["p=a"])
        # What changes while nothing runs
        shelf.put("orders", "7")
        shelf.drop("staff")
        with linked.running():
            linked.wait_until(lambda: here.parts("rm4_local.orders") == ["p=7"])
            linked.wait_until(lambda: linked.state("rm4_local.staff") == "gone")
        # Nobody waits for a catalog that is away
        shelf.hide()
        command = [sys.executable, "-m", "calque.cli", "run", "--until", "head", "-c", str(linked.config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert ended.returncode == 0, ended.stderr
        assert here.parts("rm4_local.orders") == ["p=7"]
    finally:
        linked.close()


def columns_of(catalog: Catalog, name: str) -> list[str]:
    """None of a table that is not there at this moment."""
    table = catalog.shown(name)
    columns = table.storage.columns if table is not None and table.storage is not None else ()
    return [column.name for column in columns or ()]
