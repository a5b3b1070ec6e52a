"""`plugins.dumps.core`: the files of Hive's dumps, against those that Hive itself wrote."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import replace

import pytest

from calque.core.events.decode import LoggedFile, Undecodable, thrift_object
from calque.core.events.keys import keys_of
from calque.model.facets import (
    AnalyzedColumns,
    AnalyzedObject,
    ColumnStatistics,
    ForeignKey,
    Longs,
    NotNull,
    PrimaryKey,
    StatisticsCounts,
    UniqueKey,
)
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Skew, Storage, Table
from calque.model.journal import Event, Keys
from calque.model.names import TableName
from calque.plugins.dumps.core.constraints import constraints_text, foreign_keys_text, read_constraints
from calque.plugins.dumps.core.dump_metadata import DumpMetadata, PolicyLine, read_dump_metadata
from calque.plugins.dumps.core.event_types import contents_of, dumped_kind
from calque.plugins.dumps.core.file_lists import (
    ExternalDirectory,
    external_lines,
    file_lines,
    read_external,
    read_files,
)
from calque.plugins.dumps.core.layout import DumpDirectory, DumpLayout, event_of, policy_directory
from calque.plugins.dumps.core.log_events import DumpedObjects, logged_event
from calque.plugins.dumps.core.markers import (
    EventsDump,
    events_dump_text,
    read_events_dump,
    read_tables,
    tables_text,
)
from calque.plugins.dumps.core.metadata import (
    ReplicationSpec,
    database_metadata,
    dumped_database,
    dumped_function,
    dumped_partition,
    dumped_table,
    function_metadata,
    read_object,
    read_table,
    table_metadata,
)
from support.sources.recorded_dumps import BOOTSTRAP, INCREMENT, recorded_files

FOUR, THREE = DumpLayout.HIVE_4, DumpLayout.HIVE_3
FILES = {**recorded_files("bootstrap"), **recorded_files("incremental")}
FILES_OF_LOAD = {"_finished_load", "_load_metadata"}
DUMP = DumpDirectory(BOOTSTRAP)
INCREMENTAL = DumpDirectory(INCREMENT)


def named(name: str) -> list[str]:
    return sorted(path for path in FILES if posixpath.basename(path) == name)


def in_pieces(content: bytes, size: int = 7) -> Iterator[bytes]:
    return (content[place : place + size] for place in range(0, len(content), size))


# As Hive wrote them


@pytest.mark.parametrize("path", named("_metadata"), ids=lambda path: path.split("/hive/")[1])
def test_what_hive_wrote_of_an_object_is_written_alike(path: str) -> None:
    content = FILES[path]
    kind = {"db", "function", "table"} & json.loads(content).keys()
    if kind == {"table"}:
        read = read_table(in_pieces(content))
        written = "".join(table_metadata(read.spec, read.table, read.partitions))
    elif kind == {"function"}:
        written = function_metadata(*read_object(content, "function"))
    else:
        written = database_metadata(read_object(content, "db")[1])
    assert written.encode() == content


@pytest.mark.parametrize("path", named("_dumpmetadata"), ids=lambda path: path.split("/hive/")[1])
def test_what_hive_wrote_of_a_dump_or_an_event_is_written_alike(path: str) -> None:
    content = FILES[path].decode()
    assert read_dump_metadata(content).text(FOUR) == content


@pytest.mark.parametrize("path", named("_files"), ids=lambda path: path.split("/hive/")[1])
def test_what_hive_wrote_of_files_is_written_alike(path: str) -> None:
    assert file_lines(read_files(FILES[path].decode())) == FILES[path].decode()


def test_what_hive_wrote_of_constraints_is_written_alike() -> None:
    table, child = TableName("src", "par_ent"), TableName("src", "chi_ld")
    own, foreign = FILES[DUMP.objects.constraints(table)], FILES[DUMP.objects.foreign_keys(child)]
    assert constraints_text(list(read_constraints(own)), 1795254366).encode() == own
    assert foreign_keys_text(list(read_constraints(foreign)), 1795254366).encode() == foreign
    assert [type(one) for one in read_constraints(own)] == [PrimaryKey, UniqueKey, NotNull]
    assert [(one.name, one.parent.table) for one in read_constraints(foreign) if isinstance(one, ForeignKey)] == [
        ("fk_child", "par_ent")
    ]


def test_how_far_hive_got_is_written_alike() -> None:
    content = FILES[INCREMENTAL.events_dump]
    assert read_events_dump(content) == EventsDump(90, 36)
    assert events_dump_text(EventsDump(90, 36)) == content.decode().rstrip("\n") + "\n"


def test_every_file_of_a_dump_by_hive_lies_where_the_layout_says() -> None:
    objects = DUMP.objects
    tables = ["chi_ld", "par_ent", "part", "plain", "pq", "todrop", "torename", "v_plain"]
    partitions = {
        "part": ["ds=2024-01-01/hr=0", "ds=2024-01-01/hr=1", "ds=2024-01-02/hr=0", "ds=a b%2Fc%3Dd%23e%25/hr=7"],
        "pq": ["d=2024-02-01"],
        "torename": ["p=x"],
    }
    expected = {DUMP.dump_metadata, DUMP.finished_dump, DUMP.finished_load, DUMP.load_metadata}
    expected |= {objects.database_metadata("src"), objects.function_metadata(TableName("src", "f_boot"))}
    expected |= {objects.table_metadata(TableName("src", table)) for table in tables}
    expected |= {objects.constraints(TableName("src", "par_ent")), objects.foreign_keys(TableName("src", "chi_ld"))}
    for table in tables:
        for partition in partitions.get(table, [""] if table != "v_plain" else []):
            expected.add(posixpath.join(objects.table_data(TableName("src", table), partition), "_files"))
    assert expected == {path for path in FILES if path.startswith(BOOTSTRAP)}


def test_every_event_in_a_dump_by_hive_lies_where_the_layout_says() -> None:
    expected = {INCREMENTAL.dump_metadata, INCREMENTAL.events_dump, INCREMENTAL.finished_dump}
    partitions = {56: ["p=1", "p=2"], 57: ["p=1"], 59: ["p=3"], 60: ["p=1"], 74: ["p=x"]}
    for event_id in range(55, 91):
        event = INCREMENTAL.event(event_id)
        expected.add(event.dump_metadata)
        contents = contents_of(read_dump_metadata(FILES[event.dump_metadata].decode()).kind)
        if contents.scope:
            expected.add(event.metadata)
        if contents.files:
            expected |= {posixpath.join(event.data(name), "_files") for name in partitions.get(event_id, [""])}
    assert expected == {path for path in FILES if path.startswith(INCREMENT)}


@pytest.mark.parametrize("path", [path for path in named("_dumpmetadata") if "/events_batch_1/" in path])
def test_an_event_is_called_in_a_dump_as_hive_calls_it(path: str) -> None:
    dumped = read_dump_metadata(FILES[path].decode())
    assert contents_of(dumped.kind).payload == (dumped.payload is not None)
    if dumped.payload is None:
        return
    message = dumped.kind.removeprefix("EVENT_")
    for said, logged in (("RENAME", "ALTER"), ("TRUNCATE", "ALTER")):
        message = message.replace(said, logged)
    names = json.loads(dumped.payload)
    event = Event(
        dumped.to_event,
        0,
        message,
        "hive",
        names.get("db") or names.get("dbName") or "src",
        names.get("table") or names.get("tableName") or "",
        "json-0.2",
        dumped.payload,
    )
    assert dumped_kind(event, keys_of(event)) == dumped.kind


def test_definitions_in_a_dump_by_hive_can_be_decoded() -> None:
    read = read_table([FILES[DUMP.objects.table_metadata(TableName("src", "part"))]])
    table = thrift_object(Table, read.table)
    partitions = [thrift_object(Partition, text) for text in read.partitions]
    assert (table.name, [key.name for key in table.partition_keys or ()]) == ("part", ["ds", "hr"])
    assert [partition.values for partition in partitions] == [
        ("2024-01-01", "0"),
        ("2024-01-01", "1"),
        ("2024-01-02", "0"),
        ("a b/c=d#e%", "7"),
    ]
    assert read.spec == ReplicationSpec("all", "replv2", "22", noop=False, replaces=True)


# As calque writes them


def test_parameters_that_a_load_sets_while_it_works_are_in_no_dump() -> None:
    parameters = {"hive.repl.ckpt.key": "x", "hive.repl.first.inc.pending": "true", "k": "v"}
    table, partition = Table("t", "d", parameters=parameters), Partition(("1",), "d", "t", parameters=parameters)
    assert thrift_object(Table, dumped_table(table, 7)).parameters == {"k": "v", "repl.last.id": "7"}
    assert thrift_object(Partition, dumped_partition(partition)).parameters == {"k": "v"}


def test_what_makes_a_database_a_source_is_in_no_dump() -> None:
    parameters = {"repl.source.for": "1", "bootstrap.dump.state.4f": "ACTIVE", "repl.failover.endpoint": "S", "k": "v"}
    text = dumped_database(Database("d", parameters=parameters), 7, own_location=True)
    assert thrift_object(Database, text).parameters == {
        "k": "v",
        "hive.repl.is.custom.db.loc": "true",
        "hive.repl.is.custom.db.managedloc": "false",
        "repl.last.id": "7",
    }


def test_column_statistics_stand_in_the_object_that_they_are_of() -> None:
    counted = ColumnStatistics("a", "int", StatisticsCounts(longs=Longs(1, 9, 0, 5)))
    statistics = AnalyzedColumns(AnalyzedObject(True, "d", "t"), (counted,), "hive")
    text = dumped_table(Table("t", "d"), 7, statistics)
    assert thrift_object(Table, text) == Table("t", "d", partition_keys=(), parameters={"repl.last.id": "7"})
    assert thrift_object(AnalyzedColumns, json.loads(text)["21"]["rec"]) == statistics
    in_partition = json.loads(dumped_partition(Partition(("1",), "d", "t"), 7, statistics))
    assert thrift_object(AnalyzedColumns, in_partition["12"]["rec"]) == statistics


def test_lists_that_a_client_left_out_are_empty_in_a_dump() -> None:
    sparse = Table("t", "d", storage=Storage(columns=(Column("x", "int"),), serde=SerDe(class_name="s")))
    assert thrift_object(Table, dumped_table(sparse)) == Table(
        "t",
        "d",
        storage=Storage(
            (Column("x", "int"),),
            compressed=False,
            buckets=-1,
            serde=SerDe(class_name="s", parameters={}),
            bucket_columns=(),
            sort_columns=(),
            parameters={},
            skew=Skew((), (), {}),
            sub_directories=False,
        ),
        partition_keys=(),
        parameters={},
    )
    partition = thrift_object(Partition, dumped_partition(Partition(("1",), "d", "t", storage=Storage())))
    assert (partition.storage or Storage()).bucket_columns == ()


def test_a_function_comes_with_its_resources() -> None:
    function = Function("f", "d", "x.Y", resources=(Resource(1, "hdfs:/j.jar"),))
    spec = ReplicationSpec("all", last_id="7")
    content = function_metadata(spec, dumped_function(function)).encode()
    read, text = read_object(content, "function")
    assert (read, thrift_object(Function, text)) == (spec, function)


def test_a_table_with_many_partitions_is_read_one_by_one() -> None:
    table, texts = dumped_table(Table("t", "d", partition_keys=(Column("p", "int"),))), []

    def partitions() -> Iterator[str]:
        for number in range(3000):
            texts.append(dumped_partition(Partition((str(number),), "d", "t")))
            yield texts[-1]

    pieces = (piece.encode() for piece in table_metadata(ReplicationSpec("all"), table, partitions()))
    read = read_table(pieces)
    assert len(texts) < 1000
    assert list(read.partitions) == texts
    assert len(texts) == 3000


def test_hive_31_writes_fewer_fields() -> None:
    event = DumpMetadata("EVENT_DROP_TABLE", 7, 7, "hdfs://ns/cm", payload="{}")
    assert event.text(THREE) == "EVENT_DROP_TABLE\t7\t7\thdfs://ns/cm\t{}\n"
    assert read_dump_metadata(event.text(THREE)) == event
    whole = DumpMetadata("BOOTSTRAP", 3, 9)
    assert read_dump_metadata(whole.text(THREE)) == whole


def test_a_policy_stands_behind_a_dump() -> None:
    whole = DumpMetadata("INCREMENTAL", 3, 9, scope_changed=True, policy=PolicyLine("sales", None, "t[0-9]+"))
    assert whole.text(FOUR) == "INCREMENTAL\t3\t9\tNULL\t0\tNULL\ttrue\nsales\t\\N\tt[0-9]+\n"
    assert read_dump_metadata(whole.text(FOUR)) == whole


def test_a_file_without_a_checksum_keeps_its_separators() -> None:
    files = [LoggedFile("s3a://b/t/a#1"), LoggedFile("hdfs:/t/b", "ab", "hdfs:/cm", "delta_1_1")]
    assert file_lines(files) == "s3a://b/t/a#1###\nhdfs:/t/b#ab#hdfs:/cm#delta_1_1\n"
    assert list(read_files(file_lines(files) + file_lines(files[1:]))) == files


def test_external_directories_are_listed_in_both_layouts() -> None:
    listed = ExternalDirectory("t", "hdfs://ns/e/t", "hdfs://dr/base/e/t")
    assert external_lines([listed], FOUR) == "hdfs://ns/e/t#hdfs://dr/base/e/t#t#FALLBACK_COPY#null\n"
    assert external_lines([listed], THREE) == "t,aGRmczovL25zL2UvdA==\n"
    assert list(read_external(external_lines([listed], FOUR), FOUR)) == [listed]
    assert list(read_external(external_lines([listed], THREE), THREE)) == [replace(listed, target="")]
    assert list(read_external("hdfs:/a#hdfs:/b\n", FOUR)) == [ExternalDirectory("", "hdfs:/a", "hdfs:/b")]


def test_tables_in_scope_are_named_in_order() -> None:
    assert tables_text(["b", "a"]) == "a\nb\n"
    assert read_tables("a\nB\n\n") == {"a", "b"}


def test_hive_31_keeps_each_object_in_one_directory() -> None:
    dump, name = DumpDirectory("/r/1", THREE), TableName("d", "t")
    assert dump.dump_metadata == "/r/1/_dumpmetadata"
    assert dump.objects.table_metadata(name) == "/r/1/d/t/_metadata"
    assert dump.objects.table_data(name) == "/r/1/d/t/data"
    assert dump.objects.table_data(name, "p=1") == "/r/1/d/t/p=1"
    assert dump.event(7, batch=3).data("p=1") == "/r/1/7/p=1"
    assert dump.event(7).data() == "/r/1/7/data"
    assert dump.external_directories == "/r/1/_external_tables_info"
    assert dump.bootstrapped.function_metadata(TableName("d", "f")) == "/r/1/_bootstrap/d/_functions/f/_metadata"


def test_dumps_of_a_database_lie_below_its_name_in_base64() -> None:
    assert policy_directory("/r/", "SRC") == "/r/c3Jj"
    assert [event_of(name) for name in ("12", "_x", "٣", "")] == [12, None, None, None]


# What is broken


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"version":"0.2"}',
        b'{"version":"1.2","table":"{}","partitions":[]}',
        b'{"version":"0.2","partitions":[],"table":"{}"}',
        b'{"version":"0.2","table":"{}","partitions":["{}"',
        b'{"version":"0.2","table":"{}","partitions":[{}]}',
        b'{"version":"0.2","table":"{}","partitions":["{}"]',
        b"\xff",
    ],
)
def test_a_broken_definition_is_undecodable(content: bytes) -> None:
    with pytest.raises(Undecodable):
        list(read_table([content]).partitions)


@pytest.mark.parametrize("text", ["", "BOOTSTRAP", "BOOTSTRAP\tx\t2\t/cm", "\t1\t2\t/cm"])
def test_broken_metadata_of_a_dump_is_undecodable(text: str) -> None:
    with pytest.raises(Undecodable):
        read_dump_metadata(text)


def test_broken_lists_are_undecodable() -> None:
    for text, layout in (("t,%%\n", THREE), ("t\n", THREE), ("hdfs:/a\n", FOUR)):
        with pytest.raises(Undecodable):
            list(read_external(text, layout))
    for content in (b"", b"{}", b'{"lastReplId":"1"}'):
        with pytest.raises(Undecodable):
            read_events_dump(content)


def test_a_change_of_several_partitions_that_hive_did_not_know_is_known_by_its_message() -> None:
    message = {"db": "d", "table": "t", "tableObjJson": "{}", "partitionListJson": [], "isTruncateOp": "true"}
    unknown = DumpMetadata("EVENT_UNKNOWN", 7, 7, payload=json.dumps(message))
    event = logged_event(unknown, DumpedObjects(), 1)
    assert event is not None
    assert (event.event_type, event.database, event.table) == ("ALTER_PARTITIONS", "d", "t")
    others = [None, "no message", "[]", json.dumps({"db": "d", "table": "t"})]
    assert [logged_event(replace(unknown, payload=payload), DumpedObjects(), 1) for payload in others] == [None] * 4


def test_an_event_of_another_kind_is_unknown_to_hive() -> None:
    event = Event(1, 0, "CREATE_CATALOG", "", "", "", "json-0.2", "{}")
    assert dumped_kind(event, keys_of(event)) == "EVENT_UNKNOWN"
    assert isinstance(keys_of(event), Keys)
