"""Notification messages decoded as objects of the model.

A message is JSON, plain or gzipped in Base64. The metastore's objects stand in it as strings of Thrift's TJSON: `{"1":
{"str": "t"}, "8": {"lst": ["rec", 1, {…}]}}`, with field numbers for names. A message that can't be decoded raises
`Undecodable`, and no message raises any other exception. Strings of a decoded message are always valid Unicode.

`core.events.keys` reads the same messages without building objects.
"""

from __future__ import annotations

import binascii
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

import orjson

from calque.core.events.kept_names import is_lowered
from calque.core.formats.bounded import GZIP, TooMuch, inflate, parse_json
from calque.model import facets, hive
from calque.model.bounds import LONGEST_MESSAGE
from calque.model.hive import BY_PARAMETER, Column, Database, Function, Kind, ListOf, MapOf, Partition, Table, type_of
from calque.model.journal import Event

FIELDS = {**hive.FIELDS, **facets.FIELDS}
T = TypeVar("T")
Fields = dict[str, Any]
"""A message's JSON by key, or one TJSON object by field number."""

PLAIN_FORMATS = frozenset({"", "json-0.2"})
GZIP_FORMATS = frozenset({"gzip(json-2.0)", "gzip"})
TOO_LONG = "too long: "
"""The mark before the format of a message that is longer than `[source] max_message`, so that no reader unpacks it."""
ACCURATE = "COLUMN_STATS_ACCURATE"
"""The parameter in which a table lists the columns whose statistics are accurate."""


class Undecodable(Exception):
    """The error for a message, or a requested part of one, that can't be decoded. `reason` is one short line of
    ASCII."""

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.encode("ascii", "backslashreplace").decode().split())[:200]
        super().__init__(self.reason)


class FieldMissing(Undecodable):
    """The error for a message that lacks a part. Messages of 2.3 leave several parts out; a message of a later version
    that lacks one is broken."""


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file as an event names it. `checksum` and the change manager's root are None on every storage but HDFS,
    which alone has checksums. `directory` is the ACID directory below the table or partition, or empty."""

    uri: str
    checksum: str | None = None
    change_root: str | None = None
    directory: str = ""


class Insert(NamedTuple):
    """The content of an INSERT's message: its partition (None for a plain table), whether it replaced the files that
    were there, and the files that it names."""

    partition: Partition | None
    replaces: bool
    files: tuple[LoggedFile, ...]


# Messages


def text_of(message_format: str | None, message: str) -> str | bytes:
    """Return the JSON text of a message: `message` itself, or unpacked to UTF-8 where it is packed. Raises
    `Undecodable`."""
    if not message_format or message_format in PLAIN_FORMATS:
        return message
    if message_format.startswith(TOO_LONG):
        raise Undecodable("the message is longer than [source] max_message")
    if message_format not in GZIP_FORMATS:
        raise Undecodable(f"message format {message_format!r} is not known")
    size = min(unpacked_size(message), LONGEST_MESSAGE)
    try:
        text, rest = inflate(binascii.a2b_base64(message), GZIP, size)
    except TooMuch:
        raise Undecodable("the message unpacks to more than it says") from None
    except ValueError as error:
        raise Undecodable(f"the message is not gzip in Base64: {error}") from None
    if rest:
        raise Undecodable("the message is more than one gzip file")
    return text


def unpacked_size(message: str) -> int:
    """Return the bytes that a gzipped message claims to unpack to, in its last four bytes; 0 where it is no Base64. A
    message that claims a wrong size can't be decoded."""
    try:
        return int.from_bytes(binascii.a2b_base64(message[-16:].rstrip()[-8:])[-4:], "little")
    except ValueError:
        return 0


def weight_of(event: Event) -> int:
    """Return the bytes of the event's message once it is unpacked: packed messages grow twenty times and more."""
    return weight_of_message(event.message_format, event.message)


def weight_of_message(message_format: str | None, message: str) -> int:
    """Return the bytes of a message once it is unpacked, by the size that it claims, at most `LONGEST_MESSAGE` where
    that is more than its own length."""
    if message_format in GZIP_FORMATS:
        return max(len(message), min(unpacked_size(message), LONGEST_MESSAGE))
    return len(message)


def bounded(event: Event, most: int) -> Event:
    """Return the event, marked in its format when its message weighs more than `most` bytes: its effect is then
    unknown. The message itself stays as it is, because two events of one id are told apart by their messages."""
    if weight_of(event) <= most:
        return event
    return replace(event, message_format=f"{TOO_LONG}{event.message_format or ''}")


def is_too_long(event: Event) -> bool:
    """Tell whether the message was longer than permitted when it was captured."""
    return (event.message_format or "").startswith(TOO_LONG)


def fields(event: Event) -> Fields:
    """Return the message's fields by name; objects of the metastore in it are still TJSON text. Raises
    `Undecodable`."""
    return parsed(text_of(event.message_format, event.message), "the message")


def embedded(message: Fields, name: str) -> Fields:
    """Return the TJSON object in field `name`, by field number. Raises `Undecodable`."""
    return parsed(string_at(message, name), name)


def embedded_list(message: Fields, name: str) -> Iterator[Fields]:
    """Yield the TJSON objects in the list `name`, each parsed when it is asked for; an absent list is empty."""
    return (parsed(text, name) for text in strings_at(message, name))


def string_at(message: Fields, name: str) -> str:
    value = message.get(name)
    if value is None:
        raise FieldMissing(f"the message has no {name}")
    if type(value) is not str:
        raise Undecodable(f"{name} is no string")
    return value


def strings_at(message: Fields, name: str) -> list[str]:
    value = message.get(name)
    if value is None:
        return []
    if type(value) is not list or not all(type(item) is str for item in value):
        raise Undecodable(f"{name} is no list of strings")
    return value


def flag_at(message: Fields, name: str) -> bool:
    """Return the truth value in field `name`, which Hive writes as a string. An absent one is false, because 2.3 leaves
    them out."""
    value = message.get(name)
    if value is None or type(value) is bool:
        return bool(value)
    if type(value) is not str:
        raise Undecodable(f"{name} is no truth value")
    return value.lower() == "true"


def parsed(text: str | bytes, what: str) -> Fields:
    """Parse the JSON object in `text`. Raises `Undecodable` where it is none; the reason calls it `what`."""
    try:
        value = orjson.loads(text)
    except ValueError:
        value = parsed_leniently(text, what)
    if type(value) is not dict:
        raise Undecodable(f"{what} is no JSON object")
    return value


def parsed_leniently(text: str | bytes, what: str) -> Any:
    """Parse JSON with the two liberties beyond the standard that Hive's own reader allows: control characters inside
    strings, and the lists that Thrift writes as keys of an object (where list-bucketed values are stored). Raises
    `Undecodable`."""
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        value = json.loads(LIST_KEY.sub(quoted_list_key, decoded), strict=False)
        # Lone surrogates pass `json.loads`, and would fail in Arrow and in Thrift.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"{what} is not JSON: {error}") from None
    return value


LIST_KEY = re.compile(r'"(?:[^"\\]|\\.)*+"?|(\[(?:"(?:[^"\\]|\\.)*+"|[^\[\]"])*+\])(?=\s*:)', re.DOTALL)
"""A string, or (group 1) a list before a colon. Strings are matched because the text inside one must not be taken for a
list; unfinished strings are matched too, which keeps the search linear."""


def quoted_list_key(match: re.Match[str]) -> str:
    return json.dumps(match[1]) if match[1] else match[0]


# Objects in messages


def table_after(event: Event) -> Table:
    """Return the table as the event left it; for partition events and inserts, the table that they belong to. Raises
    `Undecodable` for DROP_TABLE."""
    message = fields(event)
    if event.event_type == "DROP_TABLE":
        raise Undecodable("there is no table after DROP_TABLE")
    table = as_kept(thrift_object(Table, embedded(message, present(message, "tableObjAfterJson", "tableObjJson"))))
    before = message.get("tableObjBeforeJson")
    if isinstance(before, str) and before.count("COLUMN_STATS") > before.count(ACCURATE):
        return with_accurate_columns(table_before(event), table)
    return table


def with_accurate_columns(before: Table, after: Table) -> Table:
    """Return `after` with the columns whose statistics `before` calls accurate, where a rename left the columns alone
    and the message calls none accurate. Hive 3.1 writes the message before it keeps the statistics under the new name
    (measured on 3.1.3; messages of 4.x have them)."""
    said, kept = (accurate_columns(table) for table in (after, before))
    columns_before, columns_after = (table.storage.columns if table.storage else () for table in (before, after))
    is_renamed = (before.database, before.name) != (after.database, after.name)
    if said or not kept or not is_renamed or columns_before != columns_after:
        return after
    value = json.dumps({"COLUMN_STATS": kept}, separators=(",", ":"))
    return replace(after, parameters={**(after.parameters or {}), ACCURATE: value})


def accurate_columns(table: Table) -> dict[str, Any]:
    """Return the columns whose statistics the table's parameters call accurate, each with the value that stands there
    for it."""
    try:
        said = parse_json((table.parameters or {}).get(ACCURATE, "{}"))
    except ValueError:
        return {}
    found = said.get("COLUMN_STATS") if isinstance(said, dict) else None
    return found if isinstance(found, dict) else {}


def table_before(event: Event) -> Table:
    """Return the table before ALTER_TABLE or DROP_TABLE. Raises `FieldMissing` for DROP_TABLE of 2.3, which gives
    none."""
    name = "tableObjJson" if event.event_type == "DROP_TABLE" else "tableObjBeforeJson"
    return as_kept(thrift_object(Table, embedded(fields(event), name)))


def as_kept(table: Table) -> Table:
    """Return the table with the type that servers keep. A message has the type that a client asked for, and servers
    decide by the parameter EXTERNAL alone (`ObjectStore.convertToMTable`)."""
    kept = type_of(table.parameters) if table.type in BY_PARAMETER else table.type
    return table if kept == table.type else replace(table, type=kept)


def partitions_after(event: Event) -> tuple[Partition, ...]:
    """Return the partitions that the event added, changed or inserted into, in the message's order; none for an insert
    into a plain table."""
    message = fields(event)
    if "partitionListJson" in message:
        return tuple(thrift_object(Partition, part) for part in embedded_list(message, "partitionListJson"))
    if event.event_type == "INSERT" and message.get("ptnObjJson") is None:
        return ()
    return (thrift_object(Partition, embedded(message, present(message, "partitionObjAfterJson", "ptnObjJson"))),)


def partition_before(event: Event) -> Partition:
    """Return the partition before ALTER_PARTITION; ALTER_PARTITIONS carries none."""
    return thrift_object(Partition, embedded(fields(event), "partitionObjBeforeJson"))


def database_after(event: Event) -> Database:
    """Return the database as CREATE_DATABASE or ALTER_DATABASE left it. Raises `FieldMissing` for messages of 2.3,
    which give none."""
    message = fields(event)
    if event.event_type == "DROP_DATABASE":
        raise Undecodable("there is no database after DROP_DATABASE")
    return thrift_object(Database, embedded(message, present(message, "dbObjAfterJson", "dbJson")))


def database_before(event: Event) -> Database:
    """Return the database before ALTER_DATABASE or DROP_DATABASE. Before 4, DROP_DATABASE gives none:
    `FieldMissing`."""
    name = "dbJson" if event.event_type == "DROP_DATABASE" else "dbObjBeforeJson"
    return thrift_object(Database, embedded(fields(event), name))


def function_of(event: Event) -> Function:
    """Return the function of CREATE_FUNCTION; for DROP_FUNCTION a function with its names alone."""
    message = fields(event)
    if "functionName" in message:
        return Function(name=string_at(message, "functionName"), database=string_at(message, "db"))
    return thrift_object(Function, embedded(message, "functionObjJson"))


def insert_of(event: Event) -> Insert:
    """Return the content of an INSERT's message. Messages of 2.3 never say that the insert replaces, and have no
    partition. Raises `Undecodable` for a partition that is named and not given."""
    message = fields(event)
    partition = None
    if message.get("ptnObjJson") is not None:
        partition = thrift_object(Partition, embedded(message, "ptnObjJson"))
    elif message.get("partKeyVals"):
        raise Undecodable("the message has no ptnObjJson")
    return Insert(partition, flag_at(message, "replace"), logged_files(message))


def table_files(event: Event) -> tuple[LoggedFile, ...]:
    """Return the files that CREATE_TABLE lists. An empty list does not mean that there are no files (docs/files.md)."""
    return logged_files(fields(event))


def partition_files(event: Event) -> Mapping[str, tuple[LoggedFile, ...]]:
    """Return the files that ADD_PARTITION lists, by partition name. An empty list does not mean that there are no
    files."""
    listed = fields(event).get("partitionFiles") or []
    if type(listed) is not list or not all(type(item) is dict for item in listed):
        raise Undecodable("partitionFiles is no list of objects")
    return {string_at(item, "partitionName"): logged_files(item) for item in listed}


def present(message: Fields, name: str, otherwise: str) -> str:
    return name if name in message else otherwise


def logged_files(message: Fields) -> tuple[LoggedFile, ...]:
    return tuple(logged_file(text) for text in strings_at(message, "files"))


def logged_file(text: str) -> LoggedFile:
    """Parse one entry of a file list: `uri#checksum#cmroot#subdir` since 3.1, `uri#checksum` or `uri` in 2.3. The first
    form always has its three separators, so a `#` in the file's own name does no harm there."""
    if text.count("#") >= 3:
        uri, checksum, root, directory = text.rsplit("#", 3)
        return LoggedFile(uri, checksum or None, root or None, directory)
    uri, _, checksum = text.rpartition("#") if "#" in text else (text, "", "")
    return LoggedFile(uri, checksum or None)


# Thrift objects

Read = Callable[[Any], Any]


def thrift_object(cls: type[T], source: str | bytes | Fields) -> T:
    """Return the `cls` of `model.hive` that a TJSON text, or a parsed one, describes. Unknown field numbers are
    skipped. Names are in the form that servers keep (`core.events.kept_names`), in any form the message has them.

    Raises `Undecodable` for a field of another type than `FIELDS` says, and for a number that does not fit.
    """
    struct = parsed(source, cls.__name__) if isinstance(source, (str, bytes)) else source
    struct_type: type = cls
    read: Callable[[Fields], T] = struct_reader(struct_type)
    return read(struct)


@cache
def struct_reader(cls: type) -> Read:
    declared = {field.name: (place, field.default) for place, field in enumerate(dataclasses.fields(cls))}
    known_fields = {
        str(number): (declared[name][0], *(("str", read_name) if is_lowered(cls, name) else reader_of(kind)))
        for number, name, kind in FIELDS[cls]
    }
    defaults = [default for _, default in declared.values()]
    # Columns repeat in every partition of a table: equal ones are one object.
    make: Callable[..., Any] = lru_cache(maxsize=65536)(Column) if cls is Column else cls

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Undecodable(f"{cls.__name__} is no object")
        arguments = defaults.copy()
        for number, typed in value.items():
            field = known_fields.get(number)
            if field is None:
                continue
            place, tag, read_field = field
            if type(typed) is not dict or tag not in typed:
                raise Undecodable(f"field {number} of {cls.__name__} is no {tag}")
            arguments[place] = read_field(typed[tag])
        return make(*arguments)

    return read


def reader_of(kind: Kind) -> tuple[str, Read]:
    """Return TJSON's tag for `kind`, and the function that reads the value under it."""
    match kind:
        case "string":
            return "str", read_string
        case "bool":
            return "tf", read_bool
        case "binary":
            return "str", read_binary
        case "i16":
            return "i16", integer_reader(15)
        case "i32":
            return "i32", integer_reader(31)
        case "i64":
            return "i64", integer_reader(63)
        case "dbl":
            return "dbl", read_double
        case ListOf(item):
            return "lst", list_reader(*reader_of(item))
        case MapOf(key, value):
            return "map", map_reader(*reader_of(key), *reader_of(value))
        case type():
            return "rec", struct_reader(kind)
        case _:
            raise TypeError(f"{kind!r} is no kind of field")


def read_name(value: Any) -> str:
    return read_string(value).lower()


def read_string(value: Any) -> str:
    if type(value) is not str:
        raise Undecodable("a string is none")
    return value


def read_binary(value: Any) -> bytes:
    """Decode Base64, which Thrift writes without padding."""
    text = read_string(value)
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4))
    except ValueError:
        raise Undecodable("a binary is no Base64") from None


def read_bool(value: Any) -> bool:
    if value not in (0, 1):
        raise Undecodable("a truth value is neither 0 nor 1")
    return bool(value)


def integer_reader(bits: int) -> Read:
    """Return a reader of signed integers with `bits` bits beside the sign: it returns the parsed value, and raises
    `Undecodable` for a value that is no integer or has more bits."""

    def read(value: Any) -> int:
        if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
            raise Undecodable(f"a number is no i{bits + 1}")
        return value

    return read


def read_double(value: Any) -> float:
    if type(value) is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if type(value) not in (int, float):
        raise Undecodable("a number is no double")
    return float(value)


def list_reader(tag: str, read_item: Read) -> Read:
    """Return a reader of lists `[tag, count, item, item, …]`."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) < 2 or value[1] != len(value) - 2:
            raise Undecodable(f"a list of {tag} is none")
        if value[0] != tag and len(value) > 2:
            raise Undecodable(f"a list of {tag} has another tag")
        return tuple([read_item(item) for item in value[2:]])

    return read


def map_reader(key_tag: str, read_key: Read, value_tag: str, read_value: Read) -> Read:
    """Return a reader of maps `[key tag, value tag, count, {key: value, …}]`. Keys that are lists come from
    `quoted_list_key`."""
    of_lists = key_tag == "lst"

    def read(value: Any) -> Mapping[Any, Any]:
        if type(value) is not list or len(value) != 4 or type(value[3]) is not dict or value[2] != len(value[3]):
            raise Undecodable(f"a map of {key_tag} to {value_tag} is none")
        if value[3] and (value[0] != key_tag or value[1] != value_tag):
            raise Undecodable(f"a map of {key_tag} to {value_tag} has other tags")
        return {read_key(list_in(key) if of_lists else key): read_value(item) for key, item in value[3].items()}

    return read


def list_in(key: str) -> Any:
    try:
        return json.loads(key)
    except (ValueError, RecursionError):
        raise Undecodable("a key is no list") from None
