"""Where engines read a table from: what the source's readers read, the target's read, of the target's own copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.check.check_source import EXCLUDE, check_kinds, check_roots
from calque.engine.check.findings import Findings
from calque.engine.check.sides import Source
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3, HIVE_4
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

T = TableName("d1", "t")
PLACEHOLDER = "file:/source/d1.db/t-__PLACEHOLDER__"
PATH = "file:/data/t"


def world_of(*, habits: Any = HIVE_3, opened: bool = True, **policy: Any) -> World:
    world = World(1, habits, Policy("dr", "hq", warehouse="file:/target", **{"include": ("d1.*",), **policy}))
    world.source.create_database(Database("d1", location="file:/source/d1.db"))
    if opened:
        world.open()
    return world


def of_spark(path: str = PATH, location: str = PLACEHOLDER, **more: Any) -> Table:
    """An external table as Spark makes it of a format that Hive can't read."""
    columns = (Column("col", "array<string>"),)
    storage = Storage(columns, location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={"path": path}))
    parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "json"}
    return Table("t", "d1", storage=storage, parameters=parameters, type="EXTERNAL_TABLE", **more)


def shown(world: World, name: TableName = T) -> Table:
    found: Table = world.target_store.the_table(name).table
    return found


def path_of(table: Table) -> str:
    """Where Spark reads the table."""
    assert table.storage is not None
    assert table.storage.serde is not None
    return (table.storage.serde.parameters or {})["path"]


def rows(world: World, table: Table) -> dict[str, bytes | None]:
    """What Spark reads of it."""
    place = path_of(table)
    return {file.path: world.storage.read(join(place, file.path)) for file in world.storage.list([place])[place].files}


def differences(world: World) -> list[tuple[str, str]]:
    found = verify(world.source_side, world.side, data="checksum").differences
    return [(difference.kind.value, difference.what) for difference in found]


def create(world: World, table: Table) -> None:
    world.source.create_table(table)
    world.note()


def alter(world: World, at: TableName = T, **changes: Any) -> None:
    world.source.alter_table(at, replace(world.source.the_table(at).table, **changes))
    world.note()


def write(world: World, name: str, content: bytes, path: str = PATH) -> None:
    world.storage.write(f"{path}/{name}", content)


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4])
def test_rows_of_a_table_of_spark_s_come_along_from_its_path(at_boot: bool, habits: Any) -> None:
    world = world_of(habits=habits, opened=not at_boot)
    write(world, "a.json", b"1")
    create(world, of_spark())
    if at_boot:
        world.open()
    world.settle()
    assert rows(world, shown(world)) == {"a.json": b"1"}
    assert location_of(shown(world)) == path_of(shown(world)) == "file:/target/d1.db/t"
    assert shown(world).storage.location == path_of(shown(world))  # type: ignore[union-attr]
    write(world, "b.json", b"2")
    world.source.insert(T, [f"{PATH}/b.json"])
    world.note()
    world.settle()
    assert rows(world, shown(world)) == {"a.json": b"1", "b.json": b"2"}
    assert (differences(world), world.problems) == ([], [])


def test_it_keeps_its_rows_under_another_name_and_has_those_of_another_place() -> None:
    world = world_of()
    write(world, "a.json", b"1")
    create(world, of_spark())
    world.settle()
    alter(world, name="u")
    world.settle()
    other = TableName("d1", "u")
    assert rows(world, shown(world, other)) == {"a.json": b"1"}
    write(world, "c.json", b"3", "file:/other")
    alter(world, other, storage=of_spark("file:/other", "file:/other").storage)
    world.settle()
    assert rows(world, shown(world, other)) == {"c.json": b"3"}
    assert (differences(world), world.problems) == ([], [])


def test_where_hive_moved_the_location_alone_spark_s_rows_count() -> None:
    world = world_of()
    write(world, "a.json", b"1")
    write(world, "wrong", b"2", "file:/other")
    create(world, of_spark(location=PATH))
    alter(world, storage=of_spark(location="file:/other").storage)
    world.settle()
    assert rows(world, shown(world)) == {"a.json": b"1"}
    assert (differences(world), world.problems) == ([], [])


def test_where_files_stay_at_the_source_spark_s_path_stays_too() -> None:
    world = world_of(data="none")
    write(world, "a.json", b"1")
    create(world, of_spark())
    world.settle()
    alter(world, owner="other")
    world.settle()
    assert rows(world, shown(world)) == {"a.json": b"1"}
    alter(world, name="u")
    world.settle()
    assert path_of(shown(world, TableName("d1", "u"))) == PATH
    assert (differences(world), world.problems) == ([], [])


def test_a_byte_behind_the_path_is_a_difference() -> None:
    world = world_of()
    write(world, "a.json", b"1")
    create(world, of_spark())
    world.settle()
    world.storage.write(join(path_of(shown(world)), "a.json"), b"2")
    assert [kind for kind, _ in differences(world)] == ["content"]


@pytest.mark.parametrize("damaged", [b"2", None])
def test_another_byte_behind_a_schema_s_url_is_a_difference_and_goes_with_the_next_read(damaged: bytes | None) -> None:
    world = world_of()
    write(world, "a", b"1")
    write(world, "schema.avsc", b"1", "file:/schemas")
    create(world, plain(parameters={"avro.schema.url": "file:/schemas/schema.avsc"}))
    world.settle()
    url = (shown(world).parameters or {})["avro.schema.url"]
    assert (world.storage.read(url), differences(world)) == (b"1", [])
    world.storage.remove([url])
    if damaged is not None:
        world.storage.write(url, damaged)
    assert differences(world) == [("content", "parameters.avro.schema.url: other content")]
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert (world.storage.read(url), differences(world), world.problems) == (b"1", [], [])


def plain(**more: Any) -> Table:
    """An external table of Hive's at `PATH`."""
    storage = Storage((Column("a", "int"),), PATH, INPUT, OUTPUT, serde=SerDe(class_name=SERDE))
    parameters = {"EXTERNAL": "TRUE", **more.pop("parameters", {})}
    return replace(Table("t", "d1", storage=storage, parameters=parameters, type="EXTERNAL_TABLE"), **more)


REFUSED = {
    "projection": (
        plain(parameters={"projection.enabled": "true", "storage.location.template": "s3://hq/t/${day}"}),
        "not below the table's own",
    ),
    "a template beside the table": (
        plain(parameters={"projection.enabled": "true", "storage.location.template": f"{PATH}-${{day}}"}),
        "not below the table's own",
    ),
    "hidden projection": (
        plain(parameters={"projection.enabled": "true", "storage.location.template": f"{PATH}/_old/${{day}}"}),
        "hidden place",
    ),
    "flink": (plain(parameters={"is_generic": "true", "flink.path": "hdfs://hq/t"}), "Flink alone"),
    "jdbc": (plain(parameters={"spark.sql.sources.provider": "jdbc"}), "in another system"),
    "hidden": (plain(parameters={"index": f"{PATH}/_index"}), "hidden place"),
    "elsewhere": (
        replace(plain(parameters={"other": "file:/source/d1.db/other"}), storage=of_spark().storage),
        "not the object's own",
    ),
    "untracked": (
        replace(
            of_spark(partition_keys=(Column("p", "string"),)),
            parameters={
                "EXTERNAL": "TRUE", "spark.sql.sources.provider": "json", "spark.sql.partitionProvider": "filesystem"
            },
        ),
        "looking at directories",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", REFUSED)
@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("data", ["copy", "none"])
def test_a_table_with_a_place_that_can_t_follow_is_set_aside_with_the_reason(
    shape: str, at_boot: bool, data: str
) -> None:
    table, reason = REFUSED[shape]
    world = world_of(opened=not at_boot, data=data)
    create(world, table)
    create(world, replace(plain(), name="u"))
    if at_boot:
        world.open()
    world.settle()
    row = world.replica.tables.rows[T]
    assert (row.state, reason in row.reason) == (TableState.QUARANTINED, True)
    assert world.side.catalog.table(T) is None
    assert shown(world, TableName("d1", "u"))
    findings = Findings()
    check_kinds({T: table}, [], findings)
    [finding] = findings.entries
    assert ("d1.t" in finding.what, reason in str(finding)) == (True, True)


def test_tables_of_one_kind_are_told_of_with_each_of_their_reasons() -> None:
    findings, shapes = Findings(), ("hidden", "elsewhere")
    check_kinds({TableName("d1", shape): REFUSED[shape][0] for shape in shapes}, [], findings)
    said = {shape: str(finding) for finding in findings.entries for shape in shapes if f"d1.{shape}" in finding.what}
    assert {shape: REFUSED[shape][1] in text for shape, text in said.items()} == dict.fromkeys(shapes, True)


def test_an_archived_partition_has_its_table_set_aside() -> None:
    world = world_of()
    create(world, plain(partition_keys=(Column("p", "string"),)))
    parameters = {"is_archived": "true", "original_location": f"{PATH}/p=1"}
    storage = replace(plain().storage or Storage(), location=f"{PATH}/p=1")
    world.source.add_partitions(T, [Partition(("1",), *T, storage=storage, parameters=parameters)])
    world.note()
    world.settle()
    row = world.replica.tables.rows[T]
    assert (row.state, "archived" in row.reason or "naming the place" in row.reason) == (TableState.QUARANTINED, True)
    create(world, replace(plain(partition_keys=(Column("p", "string"),)), name="u"))
    source = world.source_side
    findings, store = Findings(), Source(None, source.log, source.catalog, source.storage)
    tables = {name: world.source.the_table(name).table for name in (T, TableName("d1", "u"))}
    assert list(check_roots(store, tables, findings)) == [TableName("d1", "u")]
    [finding] = findings.entries
    assert ("d1.t" in finding.what, "naming the place" in str(finding), finding.todo) == (True, True, EXCLUDE)


@pytest.mark.parametrize("at_boot", [True, False])
def test_a_place_of_the_table_s_own_in_a_parameter_goes_along(at_boot: bool) -> None:
    world = world_of(opened=not at_boot)
    write(world, "a", b"1")
    wiki = "https://wiki/t"
    create(world, plain(parameters={"marker": f"{PATH}/a", "root": "file:///data/t", "wiki": wiki}))
    if at_boot:
        world.open()
    world.settle()
    own = "file:/target/d1.db/t"
    assert named(world) == {"marker": f"{own}/a", "root": own, "wiki": wiki}
    alter(world, owner="other")
    world.settle()
    assert named(world) == {"marker": f"{own}/a", "root": own, "wiki": wiki}
    assert (differences(world), world.problems) == ([], [])
    write(world, "a", b"2")
    world.storage.remove([f"{PATH}/a"])
    write(world, "a", b"22")
    world.source.insert(T, [f"{PATH}/a"])
    world.note()
    world.settle()
    own = location_of(shown(world)) or ""
    assert named(world) == {"marker": f"{own}/a", "root": own, "wiki": wiki}
    assert (differences(world), world.problems) == ([], [])
    assert verify(world.source_side, world.side).notes == ((T, "parameters.wiki", wiki),)
    calls = len(world.ledger.tables())
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert (len(world.ledger.tables()), differences(world)) == (calls, [])


DAY = (Column("day", "string"),)
TEMPLATE = "storage.location.template"


def projected(template: str = f"{PATH}/${{day}}/", enabled: str = "true") -> Table:
    """A table of Athena's: its partitions are made up by the engine."""
    texts = {TEMPLATE: template} if template else {}
    return plain(parameters={"projection.enabled": enabled, **texts}, partition_keys=DAY)


def partition(day: str) -> Partition:
    storage = replace(plain().storage or Storage(), location=f"{PATH}/{day}")
    return Partition((day,), *T, storage=storage, parameters={})


def days(world: World, table: Table) -> dict[str, bytes | None]:
    """What an engine reads that makes up the partitions: the files below the template's directories, or the table's."""
    place = ((table.parameters or {}).get(TEMPLATE) or f"{location_of(table)}/day=").partition("$")[0]
    root, _, beginning = place.rpartition("/")
    listing = world.storage.list([root])[root]
    return {
        file.path: world.storage.read(join(root, file.path))
        for file in listing.files
        if file.path.startswith(beginning)
    }


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4])
@pytest.mark.parametrize("template", [f"{PATH}/${{day}}/", ""])
def test_a_table_whose_partitions_an_engine_makes_up_has_its_rows_and_template(
    template: str, at_boot: bool, habits: Any
) -> None:
    world = world_of(habits=habits, opened=not at_boot)
    form = "" if template else "day="
    write(world, f"{form}1/a", b"1")
    create(world, projected(template))
    if at_boot:
        world.open()
    world.settle()
    assert days(world, shown(world)) == {f"{form}1/a": b"1"}
    assert shown(world).partition_keys == DAY
    write(world, f"{form}2/b", b"2")
    world.source.insert(T, [f"{PATH}/{form}2/b"])
    world.note()
    world.settle()
    assert days(world, shown(world)) == {f"{form}1/a": b"1", f"{form}2/b": b"2"}
    alter(world, name="u")
    world.settle()
    other = TableName("d1", "u")
    assert days(world, shown(world, other)) == {f"{form}1/a": b"1", f"{form}2/b": b"2"}
    assert (differences(world), world.problems) == ([], [])
    world.storage.write(join(location_of(shown(world, other)) or "", f"{form}2/b"), b"3")
    assert [kind for kind, _ in differences(world)] == ["content"]


def test_it_goes_to_another_place_with_its_template() -> None:
    world = world_of()
    write(world, "1/a", b"1")
    create(world, projected())
    world.settle()
    write(world, "1/a", b"2", "file:/other")
    moved = projected("file:/other/${day}/")
    storage = replace(moved.storage or Storage(), location="file:/other")
    alter(world, storage=storage, parameters=moved.parameters)
    world.settle()
    assert days(world, shown(world)) == {"1/a": b"2"}
    assert (differences(world), world.problems) == ([], [])


def test_where_its_files_stay_at_the_source_its_template_stays_too() -> None:
    world = world_of(data="none")
    write(world, "1/a", b"1")
    create(world, projected())
    world.settle()
    assert (shown(world).parameters or {})[TEMPLATE] == f"{PATH}/${{day}}/"
    world.source.add_partitions(T, [partition("1")])
    world.note()
    world.settle()
    assert aside(world) == (TableState.QUARANTINED, True)


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("data", ["copy", "none"])
def test_one_of_which_the_metastore_has_partitions_is_set_aside_until_it_has_none(at_boot: bool, data: str) -> None:
    world = world_of(opened=not at_boot, data=data)
    write(world, "1/a", b"1")
    create(world, projected())
    if not at_boot:
        world.settle()
        assert shown(world)
    world.source.add_partitions(T, [partition("1")])
    world.note()
    if at_boot:
        world.open()
    world.settle()
    assert aside(world) == (TableState.QUARANTINED, True)
    world.source.drop_partitions(T, ["day=1"])
    world.note()
    write(world, "1/a", b"1")
    world.replica.reads.reread(lambda _: True, "repair", [State.QUARANTINED])
    world.settle()
    assert days(world, shown(world)) == {"1/a": b"1"}
    assert (differences(world), world.problems) == ([], [])


def aside(world: World) -> tuple[TableState, bool]:
    row = world.replica.tables.rows[T]
    return row.state, "has partitions of d1.t" in row.reason


@pytest.mark.parametrize("begins", [True, False])
def test_a_table_may_become_one_whose_partitions_are_made_up_and_end_being_one(begins: bool) -> None:
    world = world_of()
    write(world, "1/a", b"1")
    before, after = projected("", "false"), projected("", "true")
    create(world, before if begins else after)
    world.settle()
    alter(world, parameters=(after if begins else before).parameters)
    world.settle()
    assert days(world, replace(shown(world), parameters={TEMPLATE: f"{location_of(shown(world))}/$"})) == (
        {"1/a": b"1"} if begins else {}
    )
    world.source.add_partitions(T, [partition("1")])
    world.note()
    world.settle()
    if begins:
        assert aside(world) == (TableState.QUARANTINED, True)
        return
    assert list(world.target_store.the_table(T).partitions) == [("1",)]
    assert (differences(world), world.problems) == ([], [])


def named(world: World) -> dict[str, str]:
    return {key: value for key, value in (shown(world).parameters or {}).items() if key in ("marker", "root", "wiki")}


@pytest.mark.parametrize("at", ["parameters", "location"])
def test_a_target_that_leads_its_readers_to_the_source_is_a_difference(at: str) -> None:
    world = world_of()
    write(world, "a", b"1")
    create(world, plain())
    world.settle()
    table = shown(world)
    assert table.storage is not None
    if at == "location":
        table = replace(table, storage=replace(table.storage, location=PATH))
    else:
        table = replace(table, parameters={**(table.parameters or {}), "x": f"{PATH}/a"})
    world.target_store.alter_table(T, table)
    assert any("leads to the source" in what for _, what in differences(world))


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("has_namesake", [True, False])
def test_a_database_of_a_data_connector_is_set_aside_and_its_tables_too(at_boot: bool, has_namesake: bool) -> None:
    world = world_of(opened=not at_boot, include=("*.*",))
    if has_namesake:
        world.target_store.create_database(Database("far"))
    world.source.create_database(Database("far", database_type=2, connector="pg"))
    if at_boot:
        world.open()
    create(world, replace(plain(), database="far"))
    world.settle()
    assert (world.side.catalog.database("far") is not None) == has_namesake
    assert world.side.catalog.table(TableName("far", "t")) is None
    rows = world.ledger.tables()
    assert {key[:3] for key, row in rows.items() if row.state is TableState.QUARANTINED} == {
        ("database", "far", ""),
        ("table", "far", "t"),
    }
    assert all("data connector" in row.reason for row in rows.values() if row.state is TableState.QUARANTINED)
