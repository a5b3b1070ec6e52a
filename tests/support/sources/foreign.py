"""What may come from outside, made at random: definitions, parameters, statistics, files and messages that are not as
they should be.

Each is a value of two words, what it is and a seed, so that hypothesis shrinks what it finds to one of them.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import fastavro

from calque.core.events.encode import tjson
from calque.model.facets import (
    Binaries,
    ColumnStatistics,
    Doubles,
    Longs,
    StatisticsCounts,
    Strings,
)
from calque.model.hive import Column, Partition, Resource, SerDe, Skew, SortColumn, Storage, Table
from calque.model.journal import Event

VALUES = (
    "",
    " ",
    "0",
    "5",
    "-1",
    "1e999",
    "NaN",
    "9" * 400,
    "9" * 5_000,
    "²",
    "٣",
    "true",
    "FALSE",
    "null",
    "None",
    "[",
    "[" * 20_000,
    '{"a":' * 2_000,
    "[]",
    "{}",
    "5.5",
    '"x"',
    '{"COLUMN_STATS": 5}',
    '{"COLUMN_STATS": null}',
    '{"BASIC_STATS": "true", "COLUMN_STATS": {"x": "true"}}',
    '{"BASIC_STATS": 1, "COLUMN_STATS": ["x"]}',
    "\0",
    "é\u0308",
    "\u202e",
    "a" * 5_000,
    "a.b",
    "a/b",
    "../..",
    "%",
    "%zz",
    "%00",
    "#",
    "=",
    "x=1/y=2",
    ",",
    "'",
    '"',
    "file:///dev/zero",
    "file:/source/none",
    "s3a://[",
    "http://[::1",
    "hdfs://:x/",
    "hdfs://a:99999/b",
    "x:",
    ":",
    "delta",
    "DELTA",
    "iceberg",
    "ICEBERG",
    "parquet",
    "orc",
    "hive",
    "__HIVE_DEFAULT_PARTITION__",
    "2024-13-45",
    '{"type":"struct","fields":5}',
    '{"type":"struct","fields":[{"name":5,"type":[]}]}',
    '{"type":"array"}',
    '{"type":"struct","fields":[{"name":"x","type":"integer","nullable":true,"metadata":{}}]}',
    "struct",
    "hq:d1.x",
    "dr:d1.good",
    "812",
    "r812",
    "r",
    "18446744073709551616",
    "-9223372036854775809",
    "0x1",
    "1_000",
    "+1",
    "1.0",
)
KEYS = (
    "COLUMN_STATS_ACCURATE",
    "numRows",
    "numFiles",
    "totalSize",
    "rawDataSize",
    "numFilesErasureCoded",
    "transient_lastDdlTime",
    "DO_NOT_UPDATE_STATS",
    "STATS_GENERATED_VIA_STATS_TASK",
    "bucketing_version",
    "EXTERNAL",
    "last_modified_by",
    "last_modified_time",
    "comment",
    "transactional",
    "TRANSACTIONAL",
    "transactional_properties",
    "repl.last.id",
    "repl.target.last.id",
    "external.table.purge",
    "auto.purge",
    "skip.header.line.count",
    "spark.sql.sources.provider",
    "spark.sql.sources.schema",
    "spark.sql.sources.schema.numParts",
    "spark.sql.sources.schema.part.0",
    "spark.sql.sources.schema.numPartCols",
    "spark.sql.create.version",
    "spark.sql.sources.schema.partCol.0",
    "spark.sql.partitionProvider",
    "spark.sql.statistics.totalSize",
    "spark.sql.statistics.numRows",
    "spark.sql.statistics.colStats.x.version",
    "spark.sql.sources.schema.numBuckets",
    "table_type",
    "metadata_location",
    "previous_metadata_location",
    "storage_handler",
    "current-snapshot-id",
    "format-version",
    "write.format.default",
    "write.data.path",
    "engine.hive.enabled",
    "path",
    "serialization.format",
    "avro.schema.url",
    "avro.schema.literal",
    "field.delim",
    "delta.lastCommitTimestamp",
    "delta.minReaderVersion",
    "calque.source",
    "calque.event",
    "calque.state",
    "calque.incarnation",
    "calque.origin",
    "calque.digest",
    "calque.source.avro.schema.url",
    "calque.parked.transactional",
    "calque.done.lifetime",
    "",
    "x",
    "repl.source.for",
)
"""Parameters that Hive, Spark, Iceberg, Delta and calque know, and some that nobody does."""
TYPES = (
    "int",
    "INTEGER",
    "",
    " ",
    "decimal",
    "decimal(10,2)",
    "decimal(2,10)",
    "decimal(0)",
    "decimal(" + "9" * 5_000,
    "decimal(99999999999999999999,1)",
    "varchar(0)",
    "char(-1)",
    "varchar(99999999999)",
    "void",
    "interval day",
    "array<",
    "array<int",
    "array<int>>",
    "array<>",
    "map<int>",
    "map<int,int,int>",
    "struct<>",
    "struct<a>",
    "<>",
    "struct<a:int,a:int>",
    "struct<:int>",
    "struct<a:struct<b:array<map<string,int>>>>",
    "uniontype<int,string>",
    "array<" * 1_500 + "int" + ">" * 1_500,
    "struct<a:" * 1_500 + "int" + ">" * 1_500,
    "array<" * 300,
    ">" * 300,
    "timestamp with local time zone",
    "date",
    "double precision",
    "binary",
    "numeric(38,38)",
    "é",
    "int\n",
    "int,int",
)
KEY_TYPES = ("string", "string", "int", "date", "timestamp", "decimal(10,2)", "double", "boolean", "", "array<int>")
CLASSES = (
    "",
    "x",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    "org.apache.hadoop.hive.serde2.OpenCSVSerde",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
    "io.delta.hive.DeltaStorageHandler",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
QUERIES = (
    "SELECT * FROM d1.good",
    "SELECT * FROM `d1`.`good`",
    "SELECT",
    "(" * 3_000,
    "SELECT " + "(" * 300 + "1" + ")" * 300,
    "SELECT * FROM `",
    "WITH x AS (SELECT * FROM x) SELECT * FROM x",
    "SELECT 'a' '\\",
    "/*",
    "SELECT * FROM good",
    ";",
    "SELECT " + "CASE WHEN 1 THEN " * 200,
    "SELECT * FROM d1.good a JOIN d1.none b ON a.x = b.x",
    "SELECT 1 " * 500,
)
TABLE_TYPES = (None, "", "MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW", "INDEX_TABLE", "x")
NUMBERS = (None, 0, 1, -1, 2**31 - 1, -(2**31), 7, 127)
FILES = (
    "_delta_log/00000000000000000000.json",
    "_delta_log/00000000000000000001.json",
    "_delta_log/_last_checkpoint",
    "_delta_log/00000000000000000000.checkpoint.parquet",
    "metadata/v1.metadata.json",
    "metadata/v1.gz.metadata.json",
    "_calque_combined",
    "_calque_owner.c1/x",
    "_SUCCESS",
    ".hidden",
    "p=1/f",
    "a b",
    "%2e%2e",
    "é",
    "a=b/c=d/f",
    "#",
)
CONTENTS = (
    b"",
    b"\0",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'{"add": 5}',
    b'{"add": {"path": 5}}',
    b'{"add": {"path": "../x"}}',
    b'{"protocol": {"minReaderVersion": "x"}}',
    b'{"metaData": {"schemaString": 5}}',
    b"[" * 20_000,
    b"PAR1",
    b'{"format-version": 2, "location": 5}',
    b'{"format-version": 2, "location": "file:/x", "snapshots": [{}]}',
    b'{"format-version": 2, "location": "file:/source/d1.db/x", "current-snapshot-id": 1, "snapshots": [{}]}',
    b"\x1f\x8b",
    gzip.compress(b"{}"),
    gzip.compress(b"[" * 20_000),
    gzip.compress(bytes(1 << 20)),
)
Definition = Callable[[Table], Table]
Garble = Callable[[Event], Event]


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something foreign about one object. `what` is one of `KINDS`."""

    what: str
    seed: int

    def rng(self) -> random.Random:
        return random.Random(f"{self.what} {self.seed}")


# Definitions


def parameters(rng: random.Random, base: Mapping[str, str] | None = None) -> dict[str, str]:
    found = dict(base or {})
    for _ in range(rng.randint(1, 4)):
        found[rng.choice(KEYS)] = rng.choice(VALUES)
    return found


def of_iceberg(rng: random.Random, table: Table) -> Table:
    location = table.storage.location if table.storage else ""
    metadata = rng.choice([f"{location}/metadata/v1.metadata.json", f"{location}/metadata/v1.gz.metadata.json"])
    named = metadata if rng.random() < 0.9 else rng.choice(VALUES)
    return replace(table, parameters={"table_type": "ICEBERG", "metadata_location": named})


def of_delta(rng: random.Random, table: Table) -> Table:
    storage = table.storage or Storage()
    path = storage.location or "" if rng.random() < 0.8 else rng.choice(VALUES)
    serde = SerDe(class_name=rng.choice(CLASSES), parameters={"path": path})
    given = {"spark.sql.sources.provider": "delta", **(parameters(rng) if rng.random() < 0.3 else {})}
    return replace(table, parameters=given, storage=replace(storage, serde=serde))


def with_parameters(rng: random.Random, table: Table) -> Table:
    return replace(table, parameters=parameters(rng, table.parameters))


def with_columns(rng: random.Random, table: Table) -> Table:
    names = ("x", "X", "", " ", "a b", "é", "x.y", "`", "p", "a" * 300, "\0")
    columns = tuple(Column(rng.choice(names), rng.choice(TYPES)) for _ in range(rng.randint(0, 4)))
    keys = tuple(Column(rng.choice(names), rng.choice(TYPES)) for _ in range(rng.randint(0, 2)))
    storage = replace(table.storage or Storage(), columns=rng.choice([columns, None, columns]))
    return replace(table, storage=storage, partition_keys=keys if rng.random() < 0.3 else table.partition_keys)


def with_storage(rng: random.Random, table: Table) -> Table:
    storage = table.storage or Storage()
    serde = SerDe(rng.choice(VALUES), rng.choice([None, *CLASSES]), rng.choice([None, parameters(rng)]))
    skew = Skew(("x",), (("1",), ("2", "3")), {("1",): rng.choice(VALUES)})
    changed = rng.choice(
        [
            None,
            Storage(),
            replace(storage, location=rng.choice([None, *VALUES])),
            replace(storage, input_format=rng.choice([None, *CLASSES]), output_format=None),
            replace(storage, serde=rng.choice([None, serde])),
            replace(storage, buckets=rng.choice(NUMBERS), bucket_columns=("x", ""), compressed=True),
            replace(storage, sort_columns=(SortColumn("", -1), SortColumn("x", 5)), skew=skew),
            replace(storage, parameters=parameters(rng), sub_directories=True),
        ]
    )
    return replace(table, storage=changed)


def with_header(rng: random.Random, table: Table) -> Table:
    text = rng.choice(VALUES)
    return replace(
        table,
        type=rng.choice(TABLE_TYPES),
        owner=rng.choice([None, text]),
        owner_type=rng.choice(NUMBERS),
        create_time=rng.choice(NUMBERS),
        last_access_time=rng.choice(NUMBERS),
        retention=rng.choice(NUMBERS),
        view_original_text=rng.choice([None, text, *QUERIES]),
        view_expanded_text=rng.choice([None, text, *QUERIES]),
        temporary=rng.choice([None, True]),
        rewrite_enabled=rng.choice([None, True]),
        catalog=rng.choice([None, "hive", "x"]),
        parameters=rng.choice([None, {}, table.parameters]),
    )


DEFINITIONS: Mapping[str, Callable[[random.Random, Table], Table]] = {
    "parameters": with_parameters,
    "columns": with_columns,
    "storage": with_storage,
    "header": with_header,
    "iceberg": of_iceberg,
    "delta": of_delta,
}

# Statistics


def statistics(rng: random.Random) -> dict[str, ColumnStatistics]:
    huge, odd = rng.choice([0, -1, 2**63 - 1, -(2**63)]), rng.choice([0.0, float("nan"), float("inf"), -1e308])
    raw = rng.choice([None, b"", b"\0", bytes(1000)])
    counts = rng.choice(
        [
            StatisticsCounts(),
            StatisticsCounts(longs=Longs(huge, -huge if huge > -(2**63) else 0, huge, huge, raw, raw)),
            StatisticsCounts(doubles=Doubles(odd, odd, huge, huge, raw)),
            StatisticsCounts(strings=Strings(huge, odd, huge, huge, raw)),
            StatisticsCounts(binaries=Binaries(huge, odd, huge), longs=Longs()),
        ]
    )
    name = rng.choice(["x", "X", "", "none", "é"])
    return {rng.choice(["x", name]): ColumnStatistics(name, rng.choice(TYPES), counts)}


# Messages


def garbled(rng: random.Random, event: Event) -> Event:
    """The event with a message that is broken somewhere."""
    way = rng.choice(["text", "member", "member", "member", "format", "gzip"])
    text = event.message
    if way == "member":
        text = json.dumps(broken(rng, json.loads(text)))
    elif way == "text":
        cut = rng.randrange(len(text) + 1)
        text = rng.choice([text[:cut], text[:cut] + rng.choice(VALUES) + text[cut:], rng.choice(VALUES)])
    if way == "format":
        return replace(event, message_format=rng.choice([*VALUES[:20], "json-2.0", "gzip", "gzip(json-2.0)"]))
    if way == "gzip" or rng.random() < 0.2:
        packed = bytearray(gzip.compress(text.encode("utf-8", "replace")))
        for _ in range(rng.randint(0, 2)):
            packed[rng.randrange(len(packed))] = rng.randrange(256)
        packed = packed[: rng.choice([len(packed), rng.randrange(len(packed) + 1)])]
        return replace(event, message=base64.b64encode(packed).decode(), message_format="gzip(json-2.0)")
    return replace(event, message=text)


ODD = (None, 0, -1, 5, 1.5, True, "", "x", [], {}, [[]], {"str": 5}, {"rec": []}, {"lst": ["str", 9, "x"]}, 10**30)


def broken(rng: random.Random, value: Any) -> Any:
    """The JSON with one place in it broken; texts that are JSON are gone into."""
    if isinstance(value, str) and value.startswith("{") and rng.random() < 0.9:
        return json.dumps(broken(rng, json.loads(value)))
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: broken(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        return [*value[:place], broken(rng, value[place]), *value[place + 1 :]]
    return rng.choice([*ODD, rng.choice(VALUES)])


def with_definition(event: Event, change: Definition, after: Table) -> Event:
    """The event, as if the table were that one."""
    message = json.loads(event.message)
    for name in ("tableObjJson", "tableObjAfterJson", "tableObjBeforeJson"):
        if name in message:
            message[name] = tjson(change(after))
    return replace(event, message=json.dumps(message))


# Functions and files


def resources(rng: random.Random) -> tuple[Resource, ...]:
    return tuple(Resource(rng.choice(NUMBERS), rng.choice([None, *VALUES])) for _ in range(rng.randint(0, 3)))


def files(rng: random.Random) -> dict[str, bytes]:
    return {rng.choice(FILES): rng.choice(CONTENTS) for _ in range(rng.randint(1, 3))}


def lake(rng: random.Random, location: str) -> dict[str, bytes]:
    """Metadata, a list of manifests and a manifest of an Iceberg table, with something broken in one of them."""
    data = {"content": 0, "file_path": f"{location}/f", "file_format": "PARQUET", "record_count": 1}
    data |= {"file_size_in_bytes": 2, "partition": {}}
    entry = {"status": 1, "snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1, "data_file": data}
    manifest = {"manifest_path": f"{location}/metadata/m.avro", "manifest_length": 1, "partition_spec_id": 0}
    manifest |= {"content": 0, "sequence_number": 1, "min_sequence_number": 1, "added_snapshot_id": 1}
    snapshot = {"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": f"{location}/metadata/s.avro", "summary": {}}
    metadata: dict[str, Any] = {"format-version": 2, "table-uuid": "x", "location": location, "last-updated-ms": 1}
    metadata |= {
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
    }
    metadata |= {"snapshot-log": [{"snapshot-id": 1, "timestamp-ms": 1}], "properties": {"write.data.path": location}}
    metadata |= {"metadata-log": [{"metadata-file": f"{location}/metadata/v0.metadata.json", "timestamp-ms": 1}]}
    metadata |= {"statistics": [{"statistics-path": f"{location}/metadata/s.puffin", "snapshot-id": 1}]}
    where = rng.choice(["metadata", "metadata", "list", "manifest", "bytes", "gone", "nothing"])
    text = json.dumps(broken(rng, metadata) if where == "metadata" else metadata).encode()
    made = {
        "metadata/v1.metadata.json": text,
        "metadata/v1.gz.metadata.json": gzip.compress(text),
        "metadata/s.avro": avro(rng, broken(rng, manifest) if where == "list" else manifest),
        "metadata/m.avro": avro(rng, broken(rng, entry) if where == "manifest" else entry),
        "metadata/s.puffin": rng.choice([b"PFA1", b"", bytes(40), b"PFA1{}" + b"\xff" * 12]),
    }
    name = rng.choice(list(made))
    match where:
        case "bytes":
            content = bytearray(made[name] or b" ")
            content[rng.randrange(len(content))] = rng.randrange(256)
            made[name] = bytes(content[: rng.choice([len(content), rng.randrange(len(content) + 1)])])
        case "gone":
            made[name] = rng.choice(CONTENTS)
    return made


def avro(rng: random.Random, record: Any) -> bytes:
    """A file of that one record, each field with a type that fits."""
    if not isinstance(record, dict):
        return rng.choice(CONTENTS)
    buffer = io.BytesIO()
    codec = rng.choice(["null", "deflate"])
    try:
        fastavro.writer(buffer, schema_of(record, "r"), [record], codec=codec, metadata={"x": rng.choice(VALUES)})
    except Exception:  # noqa: BLE001 - what Avro can't hold no writer has written
        return rng.choice(CONTENTS)
    return buffer.getvalue()


def schema_of(value: Any, name: str) -> Any:
    match value:
        case dict():
            members = [
                {"name": key, "type": schema_of(item, f"{name}_{number}")}
                for number, (key, item) in enumerate(value.items())
            ]
            return {"type": "record", "name": name, "fields": members}
        case list():
            return {"type": "array", "items": schema_of(value[0], name) if value else "null"}
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
        case None:
            return "null"
    return "string"


def commits(rng: random.Random) -> dict[str, bytes]:
    """A Delta log of two versions, with something broken in it."""
    schema = json.dumps(
        {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
    )
    actions: list[Any] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}},
        {"add": {"path": "f", "partitionValues": {}, "size": 2, "modificationTime": 1, "dataChange": True}},
        {"commitInfo": {"timestamp": 1, "operation": "WRITE"}},
    ]
    place = rng.randrange(len(actions))
    actions[place] = broken(rng, actions[place])
    second = (
        [{"remove": {"path": "f", "dataChange": True}}, {"add": {**actions[2]["add"], "path": rng.choice(VALUES)}}]
        if isinstance(actions[2], dict) and isinstance(actions[2].get("add"), dict)
        else [rng.choice(ODD)]
    )
    made = {
        f"_delta_log/{number:020}.json": "\n".join(map(json.dumps, rows)).encode()
        for number, rows in enumerate([actions, second])
    }
    if rng.random() < 0.3:
        made["_delta_log/_last_checkpoint"] = rng.choice(CONTENTS)
        made["_delta_log/00000000000000000000.checkpoint.parquet"] = rng.choice(CONTENTS)
    return made


def partition(rng: random.Random, table: Table) -> Partition:
    """One of a table with the key `p`."""
    storage = rng.choice(
        [table.storage, Storage(), None, with_storage(rng, table).storage, with_columns(rng, table).storage]
    )
    if storage is not None and rng.random() < 0.8:
        storage = replace(storage, location=f"{table.storage.location}/p=1" if table.storage else None)
    given = rng.choice([None, {}, parameters(rng)])
    return Partition(
        (rng.choice(VALUES),), table.database, table.name, rng.choice(NUMBERS), storage=storage, parameters=given
    )


KINDS = (*DEFINITIONS, "statistics", "message", "function", "database", "files", "partition", "partition")
