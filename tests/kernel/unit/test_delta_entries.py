"""Delta tables as the metastore has them: recognised, and where they lie. Entries are those that Spark 4.2 with Delta
4.4 writes, unless a test says otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.events.kinds import kind_of
from calque.core.formats.pointers import moved
from calque.core.states.fold import Unfoldable
from calque.core.states.moves import move_of
from calque.model.hive import Column, SerDe, Storage, Table, is_delta, is_partitioned, location_of
from calque.model.journal import TableShape
from support.sources.logs import Log

SEQUENCE = "org.apache.hadoop.mapred.SequenceFileInputFormat"
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
PROVIDER = {"spark.sql.sources.provider": "delta", "spark.sql.partitionProvider": "catalog"}
PATH = "file:/lake/t"


def entry(location: str, path: str | None = PATH, kind: str = "MANAGED_TABLE", **parameters: str) -> Table:
    serde = SerDe(class_name=LAZY, parameters={} if path is None else {"path": path})
    storage = Storage((Column("col", "array<string>"),), location, SEQUENCE, serde=serde)
    return Table("t", "d1", storage=storage, parameters={**PROVIDER, **parameters}, type=kind)


@pytest.mark.parametrize(
    ("table", "location"),
    [
        (entry("file:/w/d1.db/t", "file:/w/d1.db/t"), "file:/w/d1.db/t"),
        (entry("file:/w/d1.db/t-__PLACEHOLDER__", kind="EXTERNAL_TABLE"), PATH),
        (entry("file:/w/d1.db/t", kind="EXTERNAL_TABLE"), PATH),
        (entry(PATH, None, "EXTERNAL_TABLE"), PATH),
        (entry("file:/w/d1.db/renamed", "file:/w/d1.db/t"), "file:/w/d1.db/renamed"),
        (entry("file:/w/d1.db/t-__PLACEHOLDER__"), PATH),
    ],
    ids=["managed", "external", "external of an old Spark", "of Trino", "renamed by Hive", "a managed placeholder"],
)
def test_a_delta_table_lies_where_its_readers_look(table: Table, location: str) -> None:
    assert location_of(table) == location
    [created, altered] = Log().create(table).alter(table, replace(table, owner="me")).entries()
    assert created.keys.locations == altered.keys.locations == (location,)


@pytest.mark.parametrize(
    ("table", "location"),
    [
        (entry("file:/w/d1.db/t-__PLACEHOLDER__", kind="EXTERNAL_TABLE"), PATH),
        (entry("file:/w/d1.db/t", kind="EXTERNAL_TABLE"), PATH),
        (entry("file:/w/d1.db/t", None, "EXTERNAL_TABLE"), "file:/w/d1.db/t"),
        (entry("file:/w/d1.db/t"), "file:/w/d1.db/t"),
        (entry("file:/elsewhere"), PATH),
        (entry("file:/w/d1.db/t", kind="EXTERNAL_TABLE", translated_to_external="TRUE"), "file:/w/d1.db/t"),
    ],
    ids=["placeholder", "SET LOCATION of Hive's", "no path", "renamed by Hive", "managed, moved", "made external"],
)
@pytest.mark.parametrize("provider", ["json", "CSV", "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"])
def test_tables_of_sparks_own_data_sources_lie_where_spark_looks(table: Table, location: str, provider: str) -> None:
    table = replace(table, parameters={**(table.parameters or {}), "spark.sql.sources.provider": provider})
    assert location_of(table) == location
    [created, altered] = Log().create(table).alter(table, replace(table, owner="me")).entries()
    assert created.keys.locations == altered.keys.locations == (location,)


def test_spark_s_path_counts_in_any_case_and_moves_along() -> None:
    table = replace(entry("file:/w/t", kind="EXTERNAL_TABLE"), parameters={"spark.sql.sources.provider": "csv"})
    assert table.storage is not None
    table = replace(table, storage=replace(table.storage, serde=SerDe(parameters={"Path": PATH})))
    assert location_of(table) == PATH
    storage = moved(table.storage, "file:/there")
    assert storage is not None
    assert storage.serde is not None
    assert (storage.location, storage.serde.parameters) == ("file:/there", {"Path": "file:/there"})


@pytest.mark.parametrize("parameters", [{}, {"spark.sql.sources.provider": "hive"}])
def test_other_tables_lie_at_their_location_whatever_their_path_says(parameters: dict[str, str]) -> None:
    table = replace(entry("file:/w/d1.db/t", kind="EXTERNAL_TABLE"), parameters=parameters)
    assert location_of(table) == "file:/w/d1.db/t"
    assert Log().create(table).entries()[0].keys.locations == ("file:/w/d1.db/t",)


@pytest.mark.parametrize(
    ("parameters", "delta"),
    [
        ({"spark.sql.sources.provider": "delta"}, True),
        ({"spark.sql.sources.provider": "DELTA"}, True),
        ({"SPARK.SQL.SOURCES.PROVIDER": "Delta"}, True),
        ({"storage_handler": "io.delta.hive.DeltaStorageHandler"}, True),
        ({"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}, False),
        ({"spark.sql.sources.provider": "parquet"}, False),
        ({"comment": "delta"}, False),
        ({}, False),
    ],
)
def test_delta_tables_are_recognised_by_what_says_so(parameters: dict[str, str], delta: bool) -> None:
    table = replace(entry(PATH), parameters=parameters)
    assert is_delta(table) is delta
    assert not is_delta(replace(table, parameters=None))
    if delta:
        assert kind_of(table) == ""


def test_a_table_over_a_symlink_manifest_is_no_delta_table() -> None:
    storage = Storage(
        (Column("a", "int"),),
        f"{PATH}/_symlink_format_manifest",
        "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat",
        serde=SerDe(class_name="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", parameters={}),
    )
    assert not is_delta(Table("t", "d1", storage=storage, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE"))


def test_partitions_that_a_conversion_left_in_the_metastore_are_not_the_table_s_content() -> None:
    before = replace(entry(PATH, PATH), parameters={}, partition_keys=(Column("p", "int"),))
    converted = replace(before, parameters=PROVIDER)
    assert is_partitioned(before)
    assert not is_partitioned(converted)
    log = Log().create(before).alter(before, converted)
    assert [found.keys.shape for found in log.entries()] == [TableShape.PARTITIONED, TableShape.PLAIN]
    with pytest.raises(Unfoldable):
        log.chain()


def test_a_rename_says_nothing_of_the_version_that_a_table_has_then() -> None:
    table = entry("file:/w/d1.db/t", "file:/w/d1.db/t")
    assert table.storage is not None
    moved = replace(table, name="u", storage=replace(table.storage, location="file:/w/d1.db/u"))
    assert move_of(Log().alter(table, moved).events[0]) is None
