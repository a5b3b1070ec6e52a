"""The file `_metadata`: one JSON object with the definition of a table and its partitions, a database or a function.

Each definition stands in it as a string of Thrift's TJSON (`core.events.decode.thrift_object`,
`core.events.encode.tjson`). All partitions of a table are in one file, which is written and read as a stream: the
functions here hold at most one partition in memory. Sources: `EximUtil`, `ReplicationSpecSerializer`, `MetadataJson`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ijson
import orjson

from calque.core.events.decode import Fields, Undecodable
from calque.core.events.encode import tjson
from calque.model.facets import AnalyzedColumns
from calque.model.hive import HIVE_POSITION, Database, Function, Partition, Table
from calque.model.names import EventId

VERSION = "0.2"
STATE_OF_BOOTSTRAP = "replv2"
"""The text in place of an event id in the specification of an object that was dumped whole."""
LAST_EVENT = HIVE_POSITION
LOADING = ("hive.repl.ckpt.key", "hive.repl.first.inc.pending")
"""Parameters that Hive's own load sets while it works; they say nothing of another load."""
SOURCE_ONLY = ("repl.source.for", "repl.failover.endpoint")
DUMP_STATE = "bootstrap.dump.state."
STATISTICS_FIELD = {Table: 21, Partition: 12}
"""Hive 4's Thrift fields for column statistics inside the object that they belong to."""

quoted = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class ReplicationSpec:
    """The fields of a `_metadata` that tell Hive how to load the object. `scope` is "all", "metadata", or for an export
    "none"; calque's exports leave it out. A field that is None is left out of the file. Hive 4 leaves out `lazy`, and
    all objects but transactional tables lack the lists of write ids."""

    scope: str | None = None
    event_id: str | None = None
    last_id: str | None = None
    noop: bool | None = None
    lazy: bool | None = None
    replaces: bool | None = None
    write_ids: str | None = None
    transactions: str | None = None

    @property
    def fields(self) -> Mapping[str, str]:
        values = {key: getattr(self, name) for key, name in SPEC_KEYS.items()}
        return {key: spelled(value) for key, value in values.items() if value is not None}


SPEC_KEYS: Mapping[str, str] = {
    "repl.scope": "scope",
    "repl.event.id": "event_id",
    LAST_EVENT: "last_id",
    "repl.noop": "noop",
    "repl.lazy": "lazy",
    "repl.is.replace": "replaces",
    "repl.valid.writeid.list": "write_ids",
    "repl.valid.txnid.list": "transactions",
}
FLAGS = frozenset({"noop", "lazy", "replaces"})


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A table as TJSON text, and the TJSON texts of its partitions as an iterator that runs once."""

    spec: ReplicationSpec
    table: str
    partitions: Iterator[str]


# Reading


def read_table(chunks: Iterable[bytes]) -> TableMetadata:
    """Return the table as soon as the chunks have it; the partitions are parsed only as the caller iterates over them.
    Raises `Undecodable`, also during this iteration."""
    events = parsing(chunks)
    fields: dict[str, str | None] = {}
    for key, value in top_level(events):
        if key == "partitions" and value is LIST:
            if fields.get("table") is None:
                raise Undecodable("partitions stand before their table")
            return TableMetadata(spec_of(fields), fields["table"] or "", strings_of_list(events))
        if isinstance(value, str):
            fields[key] = value
    check_version(fields)
    if fields.get("table") is None:
        raise Undecodable("the metadata has no table")
    return TableMetadata(spec_of(fields), fields["table"] or "", iter(()))


def read_object(content: bytes, kind: str) -> tuple[ReplicationSpec, str]:
    """Return the specification and the TJSON text of the object `kind`, "db" or "function", in a file without
    partitions. Raises `Undecodable`."""
    fields = dict(string_fields(content))
    if kind not in fields:
        raise Undecodable(f"the metadata has no {kind}")
    return spec_of(fields), fields[kind]


def string_fields(content: bytes) -> Iterator[tuple[str, str]]:
    """Return those fields of a small file whose values are strings. Raises `Undecodable`, also where the file has
    another major version."""
    fields = {key: value for key, value in top_level(parsing([content])) if isinstance(value, str)}
    check_version(fields)
    return iter(fields.items())


# Writing


def table_metadata(spec: ReplicationSpec, table: str, partitions: Iterable[str]) -> Iterator[str]:
    """Return the text of the file in pieces: one with the table, one with each partition, and the end."""
    yield begun({**spec.fields, "table": table}) + ',"partitions":['
    separator = ""
    for partition in partitions:
        yield separator + quoted(partition)
        separator = ","
    yield "]}"


def database_metadata(database: str) -> str:
    return begun({"db": database}) + "}"


def function_metadata(spec: ReplicationSpec, function: str) -> str:
    return begun({**spec.fields, "function": function}) + "}"


def metadata_object(fields: Mapping[str, str]) -> str:
    """Return the text of a file with the version and these fields."""
    return begun(fields) + "}"


# Definitions as dumps hold them


def dumped_table(table: Table, last_id: EventId | None = None, statistics: AnalyzedColumns | None = None) -> str:
    """Return the table's definition as dumps hold it: with the column statistics, and with `last_id`, the event that it
    was dumped at, which Hive 3.1 compares for each table."""
    clean = replace(table, parameters=dumped_parameters(table.parameters, last_id))
    return with_statistics(completed(tjson(clean), TABLE_FIELDS), Table, statistics)


def dumped_partition(
    partition: Partition, last_id: EventId | None = None, statistics: AnalyzedColumns | None = None
) -> str:
    clean = replace(partition, parameters=dumped_parameters(partition.parameters, last_id))
    return with_statistics(completed(tjson(clean), PARTITION_FIELDS), Partition, statistics)


def dumped_database(
    database: Database, last_id: EventId, *, own_location: bool = False, own_managed_location: bool = False
) -> str:
    """Return the database's definition as dumps hold it. A flag says that the location, or the location of managed
    tables, is not where a warehouse would put it: Hive 4 keeps such a location at the target."""
    kept = {
        key: value
        for key, value in (database.parameters or {}).items()
        if key not in SOURCE_ONLY and not key.startswith(DUMP_STATE)
    }
    added = {
        "hive.repl.is.custom.db.loc": spelled(own_location),
        "hive.repl.is.custom.db.managedloc": spelled(own_managed_location),
    }
    return tjson(replace(database, parameters=dumped_parameters(kept | added, last_id)))


def dumped_function(function: Function) -> str:
    return tjson(function)


def dumped_parameters(parameters: Mapping[str, str] | None, last_id: EventId | None) -> Mapping[str, str]:
    kept = {key: value for key, value in (parameters or {}).items() if key not in LOADING}
    return kept if last_id is None else kept | {LAST_EVENT: str(last_id)}


def completed(text: str, fields: Fields) -> str:
    """Return the definition with empty lists and maps in place of fields that it leaves out. Hive's load relies on
    these fields, and not every client of a metastore writes them. A text that is no plain JSON (it has lists as keys)
    comes from Hive itself, and is returned as it is."""
    try:
        definition = orjson.loads(text)
    except ValueError:
        return text
    return orjson.dumps(definition).decode() if complete(definition, fields) else text


def complete(definition: Fields, fields: Fields) -> bool:
    """Add the missing `fields` to `definition`, in place, and tell whether one was missing."""
    changed = False
    for number, default in fields.items():
        present = definition.get(number)
        if present is None:
            if "rec" not in default or number == SKEW:
                definition[number], changed = default, True
        elif "rec" in default and isinstance(present.get("rec"), dict):
            changed |= complete(present["rec"], default["rec"])
    return changed


SKEW = "11"
EMPTY_MAP: Fields = {"map": ["str", "str", 0, {}]}
EMPTY_SKEW: Fields = {"1": {"lst": ["str", 0]}, "2": {"lst": ["lst", 0]}, "3": {"map": ["lst", "str", 0, {}]}}
STORAGE_FIELDS: Fields = {
    "1": {"lst": ["rec", 0]},
    "5": {"tf": 0},
    "6": {"i32": -1},
    "7": {"rec": {"3": EMPTY_MAP}},
    "8": {"lst": ["str", 0]},
    "9": {"lst": ["rec", 0]},
    "10": EMPTY_MAP,
    SKEW: {"rec": EMPTY_SKEW},
    "12": {"tf": 0},
}
"""The fields of a `StorageDescriptor` by their Thrift numbers, each with its empty value; the next two are of the same
form."""
TABLE_FIELDS: Fields = {"7": {"rec": STORAGE_FIELDS}, "8": {"lst": ["rec", 0]}, "9": EMPTY_MAP}
PARTITION_FIELDS: Fields = {"6": {"rec": STORAGE_FIELDS}, "7": EMPTY_MAP}


# Below: how it is done


LIST = object()
"""The mark for a value that is a list."""


def parsing(chunks: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """Return the tokens of the JSON text. Raises `Undecodable` where the text is no JSON."""
    try:
        yield from ijson.basic_parse(ijson.from_iter(iter(chunks)))
    except ijson.JSONError as error:
        raise Undecodable(f"the metadata is not JSON: {error}") from None


def top_level(tokens: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, object]]:
    """Return the fields of the JSON object: a value is a string, None, or `LIST` for a list. The caller may take the
    items of a list from `tokens` before it asks for the next field. Items that the caller leaves are passed over, and
    so is every other value. Raises `Undecodable` where the text is no object."""
    if next(tokens, ("", None))[0] != "start_map":
        raise Undecodable("the metadata is no JSON object")
    key, depth = "", 0
    for token, value in tokens:
        match token:
            case "map_key" if depth == 0:
                key = value
            case "string" | "null" if depth == 0:
                yield key, value
            case "start_array" if depth == 0:
                yield key, LIST
                depth += 1
            case "start_array" | "start_map":
                depth += 1
            case "end_array" | "end_map":
                depth -= 1
            case _:
                pass


def strings_of_list(tokens: Iterator[tuple[str, Any]]) -> Iterator[str]:
    for token, value in tokens:
        if token == "end_array":
            break
        if token != "string":
            raise Undecodable("a partition is no string")
        yield value
    for _ in tokens:
        """Reading to the end raises `Undecodable` where the rest is no JSON, or is cut short."""


def spec_of(fields: Mapping[str, str | None]) -> ReplicationSpec:
    check_version(fields)
    values = {name: fields[key] for key, name in SPEC_KEYS.items() if fields.get(key) is not None}
    return ReplicationSpec(**{name: value == "true" if name in FLAGS else value for name, value in values.items()})  # type: ignore[arg-type]


def check_version(fields: Mapping[str, str | None]) -> None:
    """Raise `Undecodable` for another major version than that of `VERSION`. Hive compares only this number, too."""
    version = fields.get("version") or ""
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise Undecodable(f"the metadata has version {version!r}, not {VERSION}")


def begun(fields: Mapping[str, str]) -> str:
    pairs = {"version": VERSION, **fields}.items()
    return "{" + ",".join(f"{quoted(key)}:{quoted(value)}" for key, value in pairs)


def with_statistics(text: str, kind: type, statistics: AnalyzedColumns | None) -> str:
    if statistics is None or not statistics.columns:
        return text
    return f'{text[:-1]},"{STATISTICS_FIELD[kind]}":{{"rec":{tjson(statistics)}}}}}'


def spelled(value: str | bool) -> str:
    return value if isinstance(value, str) else "true" if value else "false"
