"""`core.events.decode`: messages as objects of the model."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.core.events.decode import (
    Insert,
    LoggedFile,
    Undecodable,
    database_after,
    database_before,
    fields,
    function_of,
    insert_of,
    logged_file,
    partition_before,
    partition_files,
    partitions_after,
    table_after,
    table_before,
    table_files,
    text_of,
    thrift_object,
)
from calque.core.events.keys import keys_of
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Skew, SortColumn, Storage, Table
from calque.model.journal import Event, EventKind
from calque.model.names import partition_name
from support.places import GOLDEN
from support.sources.tjson import event, gzipped, recorded, tjson

EVENTS = GOLDEN / "events"
RECORDINGS = ("hive-3.1-json", "hive-4.1-json", "hive-4.1-gzip")


def events_of(recording: str) -> dict[int, Event]:
    lines = (EVENTS / f"{recording}.jsonl").read_text().splitlines()
    return {one.event_id: one for one in map(recorded, lines)}


# Formats


@pytest.mark.parametrize("message_format", ["json-0.2", "", None])
def test_a_plain_message_is_its_own_text(message_format: str | None) -> None:
    assert text_of(message_format, "{}") == "{}"


@pytest.mark.parametrize("message_format", ["gzip(json-2.0)", "gzip"])
def test_a_gzipped_message_is_unpacked(message_format: str) -> None:
    packed = base64.b64encode(gzip.compress('{"ü":1}'.encode())).decode()
    assert text_of(message_format, packed) == '{"ü":1}'.encode()


@pytest.mark.parametrize(
    ("message_format", "message", "reason"),
    [
        ("gzip", "x", "the message is not gzip in Base64: "),
        ("gzip", "ü", "the message is not gzip in Base64: "),
        ("gzip", base64.b64encode(b"plain").decode(), "the message is not gzip in Base64: "),
        ("gzip", base64.b64encode(gzip.compress(b"{}", mtime=0)[:-4]).decode(), "the message is not gzip in Base64: "),
        ("gzip", base64.b64encode(gzip.compress(b"\xff", mtime=0)).decode(), "the message is not JSON: "),
        ("json-9", "{}", "message format 'json-9' is not known"),
        ("json-0.2", "{", "the message is not JSON: "),
        ("json-0.2", "[" * 100_000, "the message is not JSON: "),
        ("json-0.2", '"text"', "the message is no JSON object"),
        ("json-0.2", '{"a": "\\ud800"}', "the message is not JSON: "),
        ("json-0.2", '{"a": "\ud800"}', "the message is not JSON: "),
    ],
)
def test_what_is_no_message_has_a_reason(message_format: str, message: str, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason.replace("[", r"\[")) as caught:
        fields(Event(1, 0, "CREATE_TABLE", "hive", "d1", "t", message_format, message))
    assert caught.value.reason.isascii()


def test_control_characters_may_stand_unescaped_in_strings() -> None:
    assert fields(Event(1, 0, "", "", "", "", "json-0.2", '{"a": "x\x01\ny"}')) == {"a": "x\x01\ny"}


def test_a_reason_is_one_short_line() -> None:
    assert Undecodable("a\n\n b\ud800" + "x" * 300).reason == r"a b\ud800" + "x" * 191


# Objects

COLUMNS = (Column("größe", "string", "コメント ☃ 😀"), *(Column(f"c{number}", "string", "") for number in range(1, 10)))
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


def test_a_recorded_table_is_read_whole() -> None:
    assert table_after(events_of("hive-3.1-json")[6]) == Table(
        name="uni",
        database="d1",
        owner="x",
        create_time=1795255786,
        last_access_time=0,
        retention=0,
        storage=Storage(
            columns=COLUMNS,
            location="file:/data/w-ev/wh/d1.db/uni",
            input_format="org.apache.hadoop.mapred.TextInputFormat",
            output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            compressed=False,
            buckets=-1,
            serde=SerDe("t", LAZY, {"serialization.format": "1"}),
            bucket_columns=(),
            sort_columns=(),
            parameters={},
        ),
        partition_keys=(Column("p", "string", ""),),
        parameters={
            "transient_lastDdlTime": "1795255786",
            "comment": '日本語 "q" \\ \n x',
            "EXTERNAL": "TRUE",
            "v": "0",
        },
        type="EXTERNAL_TABLE",
        catalog="hive",
        owner_type=1,
    )


@pytest.mark.parametrize(
    ("asked", "parameters", "kept"),
    [
        ("EXTERNAL_TABLE", {}, "MANAGED_TABLE"),
        ("MANAGED_TABLE", {"EXTERNAL": "true"}, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}, "EXTERNAL_TABLE"),
        ("VIRTUAL_VIEW", {"EXTERNAL": "TRUE"}, "VIRTUAL_VIEW"),
    ],
)
def test_a_table_is_of_the_type_that_servers_keep(asked: str, parameters: dict[str, str], kept: str) -> None:
    """Whoever creates a table may say another."""
    table = Table("t", "d", storage=Storage(), parameters=parameters, type=asked)
    created = event("CREATE_TABLE", {"tableObjJson": tjson(table), "files": []})
    assert table_after(created).type == kept


ID_NAME = (Column("id", "int"), Column("name", "string"))
COUNTED = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'


@pytest.mark.parametrize(
    ("name", "columns", "said", "kept"),
    [
        ("u", ID_NAME, "{}", '{"COLUMN_STATS":{"id":"true"}}'),
        ("u", ID_NAME, None, '{"COLUMN_STATS":{"id":"true"}}'),
        ("u", ID_NAME, '{"COLUMN_STATS":{"name":"true"}}', '{"COLUMN_STATS":{"name":"true"}}'),
        ("t", ID_NAME, "{}", "{}"),
        ("u", ID_NAME[:1], "{}", "{}"),
    ],
)
def test_a_rename_keeps_what_columns_had_statistics(
    name: str, columns: tuple[Column, ...], said: str | None, kept: str
) -> None:
    """Messages of 3.1 say that none has."""
    key = "COLUMN_STATS_ACCURATE"
    before = Table("t", "d", storage=Storage(ID_NAME), parameters={key: COUNTED}, type="MANAGED_TABLE")
    after = replace(before, name=name, storage=Storage(columns), parameters={key: said} if said is not None else {})
    altered = event("ALTER_TABLE", {"tableObjBeforeJson": tjson(before), "tableObjAfterJson": tjson(after)})
    assert (table_after(altered).parameters or {}).get(key) == kept


@pytest.mark.parametrize("wrong", ["[1]", "{", '{"COLUMN_STATS":["id"]}', '{"COLUMN_STATS":1}'])
def test_what_is_said_of_statistics_may_be_anything(wrong: str) -> None:
    before = Table("t", "d", storage=Storage(ID_NAME), parameters={"COLUMN_STATS_ACCURATE": wrong})
    after = replace(before, name="u", parameters={})
    altered = event("ALTER_TABLE", {"tableObjBeforeJson": tjson(before), "tableObjAfterJson": tjson(after)})
    assert table_after(altered).parameters in ({}, None)


def test_buckets_order_and_skew_are_read() -> None:
    storage = table_after(events_of("hive-4.1-gzip")[5]).storage
    assert storage is not None
    assert (storage.buckets, storage.bucket_columns, storage.sort_columns) == (4, ("c0",), (SortColumn("c1", 1),))
    assert storage.skew == Skew(("c0",), (("1",), ("x",)), {})
    assert storage.serde == SerDe("t", LAZY, {"a b": '="x"', "field.delim": "\x01"})


def test_a_table_of_4_has_an_id() -> None:
    assert [table_after(events_of(name)[10]).id for name in RECORDINGS] == [None, 1, 1]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_object_is_read(recording: str) -> None:
    for one in events_of(recording).values():
        keys = keys_of(replace(one, catalog="hive"))
        match keys.kind:
            case EventKind.CREATE_DATABASE | EventKind.ALTER_DATABASE:
                assert database_after(one).name == one.database
            case EventKind.CREATE_TABLE | EventKind.ALTER_TABLE | EventKind.RENAME_TABLE:
                assert (table_after(one).name, table_after(one).database) == (one.table, one.database)
            case EventKind.DROP_TABLE:
                assert table_before(one).name == one.table
            case EventKind.ADD_PARTITIONS | EventKind.ALTER_PARTITIONS | EventKind.RENAME_PARTITION | EventKind.INSERT:
                names = [column.name for column in table_after(one).partition_keys or ()]
                parts = partitions_after(one)
                assert tuple(partition_name(names, part.values) for part in parts) == keys.partitions
                assert tuple(part.storage.location for part in parts if part.storage) == keys.locations[: len(parts)]
            case EventKind.CREATE_FUNCTION | EventKind.DROP_FUNCTION:
                assert function_of(one).name == "fn"
            case _:
                assert keys.kind in (
                    EventKind.DROP_DATABASE,
                    EventKind.DROP_PARTITIONS,
                    EventKind.FACET,
                    EventKind.NOTHING,
                )


def test_a_database_is_read_before_and_after() -> None:
    altered = events_of("hive-3.1-json")[2]
    before = Database(
        "d1", "déscription ☃", "file:/data/w-ev/wh/d1.db", {"k": "v"}, owner="me", owner_type=1, catalog="hive"
    )
    assert database_before(altered) == before
    assert database_after(altered) == replace(before, parameters={"n": "ü", "k": "v2"})


def test_a_function_is_read_with_its_resources_and_by_name_when_dropped() -> None:
    recording = events_of("hive-4.1-json")
    assert function_of(recording[29]) == Function(
        "fn", "d1", "a.b.C", "x", 1, 1795254057, 1, (Resource(1, "file:/x.jar"),)
    )
    assert function_of(recording[30]) == Function("fn", "d1")


def test_a_partition_rename_has_both_values() -> None:
    renamed = events_of("hive-4.1-json")[15]
    assert (partition_before(renamed).values, partitions_after(renamed)[0].values) == (("1",), ("one",))


def test_equal_columns_of_many_partitions_are_one_object() -> None:
    one, *others = partitions_after(events_of("hive-4.1-json")[11])
    assert one.storage is not None
    assert one.storage.columns is not None
    for other in others:
        assert other.storage is not None
        assert other.storage.columns is not None
        assert all(a is b for a, b in zip(one.storage.columns, other.storage.columns, strict=True))


def test_lists_as_keys_of_a_map_are_read() -> None:
    text = '{"3":{"map":["lst","str",2,{["str",1,"1"]:"file:/a",["str",2,"x]:","\\"{["]:"file:/b"}]}}'
    assert thrift_object(Skew, text) == Skew(locations={("1",): "file:/a", ("x]:", '"{['): "file:/b"})


def test_an_object_may_be_parsed_already() -> None:
    assert thrift_object(Column, {"1": {"str": "a"}, "2": {"str": "int"}}) == Column("a", "int")


def test_unknown_fields_are_skipped() -> None:
    assert thrift_object(Column, '{"1":{"str":"a"},"2":{"str":"int"},"9":{"rec":{}},"x":[]}') == Column("a", "int")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Table is not JSON: "),
        ("[]", "Table is no JSON object"),
        ('{"1":{"i32":1}}', "field 1 of Table is no str"),
        ('{"1":"t"}', "field 1 of Table is no str"),
        ('{"1":{"str":null}}', "a string is none"),
        ('{"4":{"i32":2147483648}}', "a number is no i32"),
        ('{"4":{"i32":1.5}}', "a number is no i32"),
        ('{"4":{"i32":true}}', "a number is no i32"),
        ('{"25":{"i64":9223372036854775808}}', "a number is no i64"),
        ('{"14":{"tf":2}}', "a truth value is neither 0 nor 1"),
        ('{"8":{"lst":["rec",2,{}]}}', "a list of rec is none"),
        ('{"8":{"lst":["str",1,"x"]}}', "a list of rec has another tag"),
        ('{"9":{"map":["str","str",2,{"a":"b"}]}}', "a map of str to str is none"),
        ('{"9":{"map":["str","i32",1,{"a":1}]}}', "a map of str to str has other tags"),
        ('{"7":{"rec":[]}}', "Storage is no object"),
        ('{"7":{"rec":{"11":{"rec":{"3":{"map":["lst","str",1,{"x":"y"}]}}}}}}', "a key is no list"),
    ],
)
def test_what_is_no_table_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        thrift_object(Table, text)


# What messages of some types and versions do not have


@pytest.mark.parametrize(
    ("read", "event_type", "message"),
    [
        (table_after, "DROP_TABLE", {"tableObjJson": tjson(Table("t", "d1"))}),
        (table_before, "DROP_TABLE", {"db": "d1", "table": "t"}),
        (table_before, "CREATE_TABLE", {"tableObjJson": tjson(Table("t", "d1"))}),
        (table_after, "INSERT", {"db": "d1", "table": "t"}),
        (partitions_after, "ALTER_PARTITION", {}),
        (partition_before, "ALTER_PARTITIONS", {"partitionListJson": []}),
        (database_after, "CREATE_DATABASE", {"db": "d1"}),
        (database_after, "DROP_DATABASE", {"db": "d1", "dbJson": tjson(Database("d1"))}),
        (database_before, "DROP_DATABASE", {"db": "d1"}),
        (function_of, "CREATE_FUNCTION", {"db": "d1"}),
        (insert_of, "INSERT", {"db": "d1", "table": "t", "files": [], "partKeyVals": {"p": "1"}}),
    ],
)
def test_what_a_message_does_not_have_is_undecodable(
    read: Callable[[Event], object], event_type: str, message: dict[str, object]
) -> None:
    with pytest.raises(Undecodable):
        read(event(event_type, message))


def test_a_drop_table_has_the_table_before() -> None:
    dropped = event("DROP_TABLE", {"tableObjJson": tjson(Table("t", "d1"))})
    assert table_before(dropped) == Table("t", "d1")


# Inserts and files


def test_an_insert_into_a_plain_table_has_no_partition() -> None:
    inserted = events_of("hive-3.1-json")[20]
    logged = LoggedFile("file:/data/w-ev/u/part-0", "abc", "file:/data/w-ev/cm")
    assert insert_of(inserted) == Insert(None, False, (logged,))
    assert partitions_after(inserted) == ()


@pytest.mark.parametrize("recording", ["hive-4.1-json", "hive-4.1-gzip"])
def test_an_overwrite_of_a_partition_says_so(recording: str) -> None:
    partition, replaces, files = insert_of(events_of(recording)[20])
    assert partition is not None
    assert (partition.values, replaces, files) == (("a/b",), True, (LoggedFile("file:/data/u/part-0"),))


def test_2_3_inserts_without_objects() -> None:
    inserted = event(
        "INSERT", {"db": "d1", "table": "t", "files": ["file:/w/t/a", "file:/w/t/b#c0"], "partKeyVals": {}}
    )
    assert insert_of(inserted) == Insert(None, False, (LoggedFile("file:/w/t/a"), LoggedFile("file:/w/t/b", "c0")))


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("file:/w/a", LoggedFile("file:/w/a")),
        ("file:/w/a#c0", LoggedFile("file:/w/a", "c0")),
        ("file:/w/a###", LoggedFile("file:/w/a")),
        ("hdfs://n/w/a#c0#hdfs://n/cm#", LoggedFile("hdfs://n/w/a", "c0", "hdfs://n/cm")),
        ("file:/w/a###delta_1_1", LoggedFile("file:/w/a", directory="delta_1_1")),
        ("hdfs://n/w/a#1#c0#hdfs://n/cm#", LoggedFile("hdfs://n/w/a#1", "c0", "hdfs://n/cm")),
        ("", LoggedFile("")),
    ],
)
def test_a_logged_file_comes_apart(text: str, logged: LoggedFile) -> None:
    assert logged_file(text) == logged


def test_files_of_a_created_table_and_of_added_partitions() -> None:
    created = event("CREATE_TABLE", {"files": ["file:/w/t/a###"]})
    added = event(
        "ADD_PARTITION",
        {
            "partitionFiles": [
                {"partitionName": "p=1", "files": ["hdfs://n/w/t/p=1/a#c0#hdfs://n/cm#"]},
                {"partitionName": "p=a%2Fb", "files": []},
            ]
        },
    )
    assert table_files(created) == (LoggedFile("file:/w/t/a"),)
    assert partition_files(added) == {
        "p=1": (LoggedFile("hdfs://n/w/t/p=1/a", "c0", "hdfs://n/cm"),),
        "p=a%2Fb": (),
    }


def test_hive_names_partitions_as_the_keys_do() -> None:
    added = events_of("hive-3.1-json")[11]
    assert tuple(partition_files(added)) == keys_of(added).partitions


def test_a_gzipped_message_says_the_same() -> None:
    added = events_of("hive-3.1-json")[11]
    assert partitions_after(gzipped(added)) == partitions_after(added)


def test_the_test_encoder_writes_what_hive_writes() -> None:
    added = events_of("hive-3.1-json")[11]
    written = [tjson(part) for part in partitions_after(added)]
    assert written == fields(added)["partitionListJson"]


def test_a_partition_needs_no_storage() -> None:
    added = event("ADD_PARTITION", {"partitionListJson": [tjson(Partition(("1",), "d1", "v"))]})
    assert partitions_after(added) == (Partition(("1",), "d1", "v"),)
