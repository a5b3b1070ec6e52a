"""`calque check` on real metastores: healthy, without a listener, with one that writes afterwards, and closed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.server import MetastoreServer
from calque.cli import main
from calque.engine.check.check_log import require_strong_log
from calque.engine.check.check_target import TEXT
from calque.errors import Refused
from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.judges.documents import read_document

KINDS = {
    "healthy": MetastoreSettings(),
    "none": MetastoreSettings(listener="none"),
    "plain": MetastoreSettings(listener="plain"),
    "closed": MetastoreSettings(version="4.2.0", proxy_users=()),
}
NOTHING = {"include": ["nothing.*"], "rename": {"nothing": "dr_nothing"}}
Check = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def metastores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Metastore]]:
    root = tmp_path_factory.mktemp("metastores")
    with ThreadPoolExecutor(2) as pool:
        started = dict(zip(KINDS, pool.map(lambda kind: Metastore.start(KINDS[kind], root / kind), KINDS), strict=True))
    yield started
    for metastore in started.values():
        metastore.stop()


@pytest.fixture
def check(metastores: dict[str, Metastore], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check with the healthy metastore as the target (in other databases), whatever the source."""

    def run(source: str = "healthy", more: str = "", **target: object) -> tuple[int, dict[str, Any]]:
        uri = metastores[source].uri if source in metastores else source
        server = metastores[str(target.pop("server", "healthy"))]
        keys = {
            "metastore": server.uri,
            "warehouse": str(tmp_path / "dr"),
            "include": ["sales.*"],
            "rename": {"sales": "dr_sales"},
        } | target
        lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
        file = tmp_path / "calque.toml"
        serve = ["[serve]", 'address = ""']
        source = ["[source]", 'name = "hq"', f'metastore = "{uri}"', more]
        file.write_text("\n".join([*serve, *source, "[targets.dr]", *lines]))
        code = main(["check", "--json", "-c", str(file)])
        said = capsys.readouterr()
        assert said.out, said.err
        found = read_document("check", said.out)
        assert found["ok"] == (code == 0)
        return code, found

    return run


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {json.dumps(item)}' for key, item in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture(scope="module")
def sales(metastores: dict[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of every awkward kind at the healthy metastore."""
    root = tmp_path_factory.mktemp("sales")
    writer = HiveClient(metastores["healthy"].uri)
    for database in ("sales", "dr_sales"):
        writer.create_database(Database(database, location=f"file:{root}/{database}.db"))

    def create(name: str, at: str, database: str = "sales", **parameters: str) -> None:
        (root / at).mkdir(parents=True, exist_ok=True)
        storage = replace(TEXT, location=f"file:{root}/{at}")
        keys = {"EXTERNAL": "TRUE"} | {key.replace("__", "."): value for key, value in parameters.items()}
        writer.create_table(Table(name, database, storage=storage, parameters=keys, type="EXTERNAL_TABLE"))

    create("plain", "plain")
    create("same", "plain")
    create("inner", "plain/inner")
    create("beside", "plain-beside")
    create("hbase", "hbase", storage_handler="org.apache.hadoop.hive.hbase.HBaseStorageHandler")
    create("trips", "trips", spark__sql__sources__provider="hudi")
    create("rides", "rides")
    (root / "rides/.hoodie").mkdir()
    create("lake", "lake", spark__sql__sources__provider="delta")
    create("ice", "ice", table_type="ICEBERG")
    create("plain", "theirs", "dr_sales")
    writer.close()
    return root


def of(document: dict[str, Any], severity: str) -> list[tuple[str, str]]:
    return [(finding["where"], finding["what"]) for finding in document["findings"] if finding["severity"] == severity]


def test_a_healthy_world_passes_and_is_left_as_it_was(
    metastores: dict[str, Metastore], check: Check, tmp_path: Path
) -> None:
    code, document = check(**NOTHING)
    assert (code, of(document, "error")) == (0, [])
    said = of(document, "info")
    assert ("source", "The metastore answers; it is Hive 3, and does not say which") in said
    assert ("source", "The log is written with each change (a transactional listener)") in said
    assert ("target dr", "The metastore has no compare-and-swap for tables") in said
    writer = HiveClient(metastores["healthy"].uri)
    assert writer.catalog.tables("_calque") == ()
    writer.close()
    assert [path.name for path in (tmp_path / "dr").rglob("*")] == ["_calque"]


@pytest.mark.usefixtures("sales")
def test_awkward_tables_are_named_with_what_to_do(check: Check) -> None:
    code, document = check()
    assert (code, of(document, "error")) == (0, [])
    warnings = [what for _, what in of(document, "warning")]
    assert "Tables of a storage handler can't be replicated: sales.hbase" in warnings
    assert "Hudi tables can't be replicated: sales.trips" in warnings
    assert "The directories of sales.rides are those of Hudi tables, and the metastore does not say so" in warnings
    assert any(what.startswith("sales.plain, sales.same share file:/") for what in warnings)
    assert any("sales.inner at" in what and "lies inside sales.plain, sales.same at" in what for what in warnings)
    assert not any("beside" in what for what in warnings)
    assert "Objects stand in the way: dr_sales.plain" in warnings
    infos = [what for _, what in of(document, "info")]
    assert not any("Delta" in what or "ice" in what for what in [*infos, *warnings])


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("none", "No listener writes the log"),
        ("plain", "The log is weak: events are written after their changes, not with them"),
    ],
)
def test_a_weak_log_is_an_error_unless_it_is_accepted(
    metastores: dict[str, Metastore], check: Check, source: str, what: str
) -> None:
    code, document = check(source)
    assert (code, of(document, "error")) == (65, [("source", what)])
    code, document = check(source, "allow_weak_log = true")
    assert (code, of(document, "error")) == (0, [])
    assert ("source", what) in of(document, "warning")
    with pytest.raises(Refused, match=re.escape(f"{what}. ")) as refused:
        require_strong_log(MetastoreServer(Client(metastores[source].uri)))
    assert "metastore.transactional.event.listeners" in str(refused.value)


def test_a_transactional_log_is_not_weak(metastores: dict[str, Metastore]) -> None:
    require_strong_log(MetastoreServer(Client(metastores["healthy"].uri)))


def test_a_log_that_may_not_be_read_is_an_error_with_the_privilege_to_grant(check: Check) -> None:
    code, document = check("closed", 'user = "stranger"', **NOTHING)
    assert code == 65
    [finding] = [finding for finding in document["findings"] if finding["severity"] == "error"]
    uri = metastore_in(finding["what"])
    assert finding == {
        "where": "source",
        "severity": "error",
        "what": f"The metastore at {uri} does not let stranger read its notification log",
        "why": "hive.metastore.event.db.notification.api.auth is true there, and the user has no proxy privilege",
        "todo": (
            "Set hadoop.proxyuser.stranger.hosts to * or the addresses of this host, and "
            "hadoop.proxyuser.stranger.groups to *, in its core-site.xml, or that property to false in its "
            "hive-site.xml, and start it again"
        ),
    }
    assert any(finding["what"].endswith("tables and views are admitted") for finding in document["findings"])


def metastore_in(text: str) -> str:
    found = re.search(r"thrift://[\d.:]+", text)
    assert found is not None
    return found[0]


def test_hive_4_refuses_a_replica_inside_its_managed_warehouse(
    check: Check, metastores: dict[str, Metastore], tmp_path: Path
) -> None:
    managed = metastores["closed"].warehouse
    code, document = check(server="closed", warehouse=str(managed / "dr"), **NOTHING)
    assert code == 65
    what = f"The warehouse file://{managed}/dr lies inside the metastore's managed warehouse file://{managed}"
    assert of(document, "error") == [("target dr", what)]
    code, document = check(server="closed", warehouse=str(tmp_path / "dr"), **NOTHING)
    assert (code, of(document, "error")) == (0, [])
    assert ("target dr", "The metastore answers; it is Hive 4.2.0") in of(document, "info")
    assert ("target dr", "The metastore has compare-and-swap for tables") in of(document, "info")


def test_what_does_not_answer_is_75_and_the_rest_is_checked_all_the_same(check: Check) -> None:
    code, document = check("thrift://127.0.0.1:1")
    assert code == 75
    assert of(document, "error") == [("source", "No metastore answers at thrift://127.0.0.1:1")]
    assert any(where == "target dr" for where, _ in of(document, "info"))


def test_a_warehouse_that_can_not_be_written_is_an_error_that_names_it(check: Check, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    code, document = check(warehouse=str(tmp_path / "file" / "dr"), **NOTHING)
    assert code == 65
    [(where, what)] = of(document, "error")
    assert (where, str(tmp_path / "file" / "dr") in what) == ("target dr", True)


@pytest.mark.usefixtures("sales")
def test_two_tables_of_one_name_at_the_target_are_an_error(check: Check) -> None:
    code, document = check(include=["sales.*"], rename={"sales": "dr_sales", "sales.same": "dr_sales.plain"})
    assert (code, of(document, "error")) == (
        65,
        [("target dr", "sales.plain and sales.same would both be dr_sales.plain")],
    )


def test_a_replica_that_can_take_the_source_s_files_along_is_named(
    check: Check, metastores: dict[str, Metastore], sales: Path
) -> None:
    writer = HiveClient(metastores["healthy"].uri)
    own = {"EXTERNAL": "TRUE", "calque.source": "hq:sales.beside"}
    storage = replace(TEXT, location=f"file:{sales}/plain-beside")
    replica = Table(
        "beside", "dr_sales", None, storage=storage, parameters=own, type="EXTERNAL_TABLE", partition_keys=()
    )
    writer.create_table(replica)
    policy = {"data": "none", "include": ["sales.beside"]}
    assert ("target dr", "Its tables lie where the source has them") in of(check(**policy)[1], "info")
    assert of(check(**policy)[1], "warning") == []
    writer.alter_table(
        TableName("dr_sales", "beside"), replace(replica, parameters=own | {"external.table.purge": "true"})
    )
    assert of(check(**policy)[1], "warning") == [
        ("target dr", "Tables can take the source's files along: dr_sales.beside")
    ]
    writer.drop_table(TableName("dr_sales", "beside"), delete_data=False)
    writer.close()


def test_a_warehouse_that_is_the_source_s_own_is_an_error_where_its_files_stay(check: Check, sales: Path) -> None:
    code, document = check(data="none", include=["sales.beside"], warehouse=f"file:{sales}")
    assert code == 65
    assert of(document, "error") == [
        ("target dr", f"Tables of the source lie in the warehouse file://{sales}: sales.beside")
    ]


def test_settings_that_exclude_each_other_are_errors_that_name_them(check: Check) -> None:
    code, document = check("healthy", **NOTHING, consistency="database", drops="keep")
    assert code == 65
    assert of(document, "error") == [
        ("configuration", 'targets.dr: consistency = "database" and drops = "keep" exclude each other'),
    ]


def test_people_get_lines_grouped_by_place_and_one_line_on_stderr(
    metastores: dict[str, Metastore], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(
        f'[source]\nname = "hq"\nmetastore = "{metastores["none"].uri}"\n'
        f'[targets.dr]\nmetastore = "{metastores["healthy"].uri}"\nwarehouse = "dr"\n[serve]\naddress = ""\n'
    )
    assert main(["check", "-c", str(file)]) == 65
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == ["source:", "target dr:", "Not all is well."]
    assert any(line.startswith("  error: No listener writes the log. ") for line in lines)
    assert err == "calque: Something must be changed. See the findings that are errors. Mend them, and check again.\n"


def test_a_warehouse_that_only_the_metastore_can_not_reach_is_an_error(check: Check) -> None:
    code, document = check(server="none", warehouse="memory://bucket/dr", **NOTHING)
    assert code == 65
    assert of(document, "error") == [("target dr", "The metastore can't make a table below memory://bucket/dr/_calque")]
