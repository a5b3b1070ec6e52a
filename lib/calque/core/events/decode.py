"""Notification messages as objects of the model.

A message is JSON, plain or gzipped in Base64; the metastore's objects stand in it as strings of Thrift's TJSON:
`{"1": {"str": "t"}, "8": {"lst": ["rec", 1, {…}]}}`, with field numbers for names. What can't be decoded raises
`Undecodable`, and no message raises anything else. Strings of a decoded message are always valid Unicode.

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
ACCURATE = "COLUMN_STATS_ACCURATE"
"""Before the format of a message that is longer than `[source] max_message`, so that nobody unpacks it."""


class Undecodable(Exception):
    """A message, or the part of it that is asked for, can't be decoded. `reason` is one short line of ASCII."""

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.encode("ascii", "backslashreplace").decode().split())[:200]
        super().__init__(self.reason)


class FieldMissing(Undecodable):
    """The message has no such part. 2.3 leaves several out; elsewhere it is broken."""


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file as an event names it. Without checksums (every storage but HDFS) the checksum and the change
    manager's root are None. `directory` is the ACID directory below the table or partition, or empty."""

    uri: str
    checksum: str | None = None
    change_root: str | None = None
    directory: str = ""


class Insert(NamedTuple):
    """What an INSERT says: its partition (None for a plain table), whether it replaced what was there, its files."""

    partition: Partition | None
    replaces: bool
    files: tuple[LoggedFile, ...]


# Messages


def text_of(message_format: str | None, message: str) -> str | bytes:
    """The JSON text of a message: as it is, or unpacked to UTF-8."""
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
    """The bytes that a gzipped message says that it unpacks to, in its last four; 0 where it says nothing. One that
    says something else can't be decoded."""
    try:
        return int.from_bytes(binascii.a2b_base64(message[-16:].rstrip()[-8:])[-4:], "little")
    except ValueError:
        return 0


def weight_of(event: Event) -> int:
    """The bytes that the event's message comes to when it is decoded: packed ones grow twenty times and more."""
    return weight_of_message(event.message_format, event.message)


def weight_of_message(message_format: str | None, message: str) -> int:
    if message_format in GZIP_FORMATS:
        return max(len(message), min(unpacked_size(message), LONGEST_MESSAGE))
    return len(message)


def bounded(event: Event, most: int) -> Event:
    """The event; one with a longer message says so in its format, and what it did is not known. The message stays as it
    is: by it an event is told from another of its id."""
    if weight_of(event) <= most:
        return event
    return replace(event, message_format=f"{TOO_LONG}{event.message_format or ''}")


def is_too_long(event: Event) -> bool:
    """Whether the message is longer than was permitted when it was captured."""
    return (event.message_format or "").startswith(TOO_LONG)


def fields(event: Event) -> Fields:
    """The message's fields; objects of the metastore are still TJSON text."""
    return parsed(text_of(event.message_format, event.message), "the message")


def embedded(message: Fields, name: str) -> Fields:
    """The TJSON object in field `name`, by field number."""
    return parsed(string_at(message, name), name)


def embedded_list(message: Fields, name: str) -> Iterator[Fields]:
    """The TJSON objects in the list `name`, parsed one at a time; an absent list is empty."""
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
    """A truth value, which Hive writes as a string; absent is false (2.3 leaves them out)."""
    value = message.get(name)
    if value is None or type(value) is bool:
        return bool(value)
    if type(value) is not str:
        raise Undecodable(f"{name} is no truth value")
    return value.lower() == "true"


def parsed(text: str | bytes, what: str) -> Fields:
    """The JSON object in `text`; `what` names it in the reason when it is none."""
    try:
        value = orjson.loads(text)
    except ValueError:
        value = parsed_leniently(text, what)
    if type(value) is not dict:
        raise Undecodable(f"{what} is no JSON object")
    return value


def parsed_leniently(text: str | bytes, what: str) -> Any:
    """JSON with what Hive's own reader allows beyond the standard: control characters inside strings, and the lists
    that Thrift writes as keys of an object (where list-bucketed values are stored)."""
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        value = json.loads(LIST_KEY.sub(quoted_list_key, decoded), strict=False)
        # Lone surrogates pass `json.loads`, and would fail in Arrow and in Thrift.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"{what} is not JSON: {error}") from None
    return value


LIST_KEY = re.compile(r'"(?:[^"\\]|\\.)*+"?|(\[(?:"(?:[^"\\]|\\.)*+"|[^\[\]"])*+\])(?=\s*:)', re.DOTALL)
"""A string, or (group 1) a list before a colon. Strings are matched so that nothing inside one is taken for a list;
also unfinished ones, which keeps the search linear."""


def quoted_list_key(match: re.Match[str]) -> str:
    return json.dumps(match[1]) if match[1] else match[0]


# Objects in messages


def table_after(event: Event) -> Table:
    """The table as the event left it; of partition events and inserts, the table they belong to."""
    message = fields(event)
    if event.event_type == "DROP_TABLE":
        raise Undecodable("there is no table after DROP_TABLE")
    table = as_kept(thrift_object(Table, embedded(message, present(message, "tableObjAfterJson", "tableObjJson"))))
    before = message.get("tableObjBeforeJson")
    if isinstance(before, str) and before.count("COLUMN_STATS") > before.count(ACCURATE):
        return with_accurate_columns(table_before(event), table)
    return table


def with_accurate_columns(before: Table, after: Table) -> Table:
    """A renamed table of which the message calls no column's statistics accurate, as it was: 3.1 writes the message
    before it keeps them under the new name (measured on 3.1.3; messages of 4.x have them)."""
    said, kept = (accurate_columns(table) for table in (after, before))
    columns_before, columns_after = (table.storage.columns if table.storage else () for table in (before, after))
    is_renamed = (before.database, before.name) != (after.database, after.name)
    if said or not kept or not is_renamed or columns_before != columns_after:
        return after
    value = json.dumps({"COLUMN_STATS": kept}, separators=(",", ":"))
    return replace(after, parameters={**(after.parameters or {}), ACCURATE: value})


def accurate_columns(table: Table) -> dict[str, Any]:
    """Columns whose statistics the table's parameters call accurate, each with what they say of it."""
    try:
        said = parse_json((table.parameters or {}).get(ACCURATE, "{}"))
    except ValueError:
        return {}
    found = said.get("COLUMN_STATS") if isinstance(said, dict) else None
    return found if isinstance(found, dict) else {}


def table_before(event: Event) -> Table:
    """The table before ALTER_TABLE or DROP_TABLE (2.3 gives none with the latter)."""
    name = "tableObjJson" if event.event_type == "DROP_TABLE" else "tableObjBeforeJson"
    return as_kept(thrift_object(Table, embedded(fields(event), name)))


def as_kept(table: Table) -> Table:
    """A message has the table as it was asked for. Servers keep its type by its parameter alone
    (`ObjectStore.convertToMTable`)."""
    kept = type_of(table.parameters) if table.type in BY_PARAMETER else table.type
    return table if kept == table.type else replace(table, type=kept)


def partitions_after(event: Event) -> tuple[Partition, ...]:
    """Added, changed or inserted-into partitions in the message's order; none for an insert into a plain table."""
    message = fields(event)
    if "partitionListJson" in message:
        return tuple(thrift_object(Partition, part) for part in embedded_list(message, "partitionListJson"))
    if event.event_type == "INSERT" and message.get("ptnObjJson") is None:
        return ()
    return (thrift_object(Partition, embedded(message, present(message, "partitionObjAfterJson", "ptnObjJson"))),)


def partition_before(event: Event) -> Partition:
    """The partition before ALTER_PARTITION (ALTER_PARTITIONS carries none)."""
    return thrift_object(Partition, embedded(fields(event), "partitionObjBeforeJson"))


def database_after(event: Event) -> Database:
    """The database as CREATE_DATABASE or ALTER_DATABASE left it (2.3 gives none)."""
    message = fields(event)
    if event.event_type == "DROP_DATABASE":
        raise Undecodable("there is no database after DROP_DATABASE")
    return thrift_object(Database, embedded(message, present(message, "dbObjAfterJson", "dbJson")))


def database_before(event: Event) -> Database:
    """The database before ALTER_DATABASE or DROP_DATABASE (before 4 there is none with the latter)."""
    name = "dbJson" if event.event_type == "DROP_DATABASE" else "dbObjBeforeJson"
    return thrift_object(Database, embedded(fields(event), name))


def function_of(event: Event) -> Function:
    """The function of CREATE_FUNCTION; of DROP_FUNCTION only its names."""
    message = fields(event)
    if "functionName" in message:
        return Function(name=string_at(message, "functionName"), database=string_at(message, "db"))
    return thrift_object(Function, embedded(message, "functionObjJson"))


def insert_of(event: Event) -> Insert:
    """What an INSERT says (2.3: never that it replaces, and no partition object)."""
    message = fields(event)
    partition = None
    if message.get("ptnObjJson") is not None:
        partition = thrift_object(Partition, embedded(message, "ptnObjJson"))
    elif message.get("partKeyVals"):
        raise Undecodable("the message has no ptnObjJson")
    return Insert(partition, flag_at(message, "replace"), logged_files(message))


def table_files(event: Event) -> tuple[LoggedFile, ...]:
    """The files that CREATE_TABLE lists. An empty list says nothing: it is not *no files* (docs/files.md)."""
    return logged_files(fields(event))


def partition_files(event: Event) -> Mapping[str, tuple[LoggedFile, ...]]:
    """The files that ADD_PARTITION lists, by partition name; again, an empty list says nothing."""
    listed = fields(event).get("partitionFiles") or []
    if type(listed) is not list or not all(type(item) is dict for item in listed):
        raise Undecodable("partitionFiles is no list of objects")
    return {string_at(item, "partitionName"): logged_files(item) for item in listed}


def present(message: Fields, name: str, otherwise: str) -> str:
    return name if name in message else otherwise


def logged_files(message: Fields) -> tuple[LoggedFile, ...]:
    return tuple(logged_file(text) for text in strings_at(message, "files"))


def logged_file(text: str) -> LoggedFile:
    """One entry of a file list: `uri#checksum#cmroot#subdir` since 3.1, `uri#checksum` or `uri` in 2.3. The first form
    always has its three separators, so a `#` in the file's own name does no harm there."""
    if text.count("#") >= 3:
        uri, checksum, root, directory = text.rsplit("#", 3)
        return LoggedFile(uri, checksum or None, root or None, directory)
    uri, _, checksum = text.rpartition("#") if "#" in text else (text, "", "")
    return LoggedFile(uri, checksum or None)


# Thrift objects

Read = Callable[[Any], Any]


def thrift_object(cls: type[T], source: str | bytes | Fields) -> T:
    """The `cls` of `model.hive` in a TJSON text, or in one that is parsed already. Unknown field numbers are skipped;
    a field of another type than `FIELDS` says is `Undecodable`, as are numbers that don't fit. Names are those that
    servers keep (`core.events.kept_names`), however the message has them."""
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
    """TJSON's tag for `kind`, and the function that reads what stands under it."""
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
    """Base64, which Thrift writes without padding."""
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
    """`[tag, count, item, item, …]`."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) < 2 or value[1] != len(value) - 2:
            raise Undecodable(f"a list of {tag} is none")
        if value[0] != tag and len(value) > 2:
            raise Undecodable(f"a list of {tag} has another tag")
        return tuple([read_item(item) for item in value[2:]])

    return read


def map_reader(key_tag: str, read_key: Read, value_tag: str, read_value: Read) -> Read:
    """`[key tag, value tag, count, {key: value, …}]`. Keys that are lists come from `quoted_list_key`."""
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
