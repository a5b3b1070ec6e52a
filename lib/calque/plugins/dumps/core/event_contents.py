"""The dump of one event: the kind, the message, the definitions that the message has, and the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from calque.core.events import decode
from calque.core.events.decode import Fields, LoggedFile, Undecodable, thrift_object
from calque.core.events.kinds import PROJECTED, obstacle
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import join
from calque.core.formats.symlinks import IN_NO_DUMP, is_symlinks
from calque.model.files import Listing
from calque.model.hive import VIEW_TYPES, Database, Partition, Table, is_delta, location_of, projects_partitions
from calque.model.journal import Event, Keys
from calque.model.names import EventId
from calque.plugins.dumps.core.event_types import contents_of
from calque.plugins.dumps.core.layout import DumpLayout
from calque.plugins.dumps.core.metadata import (
    LOADING,
    PARTITION_FIELDS,
    TABLE_FIELDS,
    ReplicationSpec,
    completed,
    database_metadata,
    dumped_database,
    dumped_partition,
    dumped_table,
    function_metadata,
    table_metadata,
)
from calque.plugins.dumps.core.options import DumpOptions

OF_PARTITIONS = frozenset({"EVENT_ADD_PARTITION", "EVENT_ALTER_PARTITION", "EVENT_DROP_PARTITION", "EVENT_INSERT"}) | {
    "EVENT_RENAME_PARTITION",
    "EVENT_TRUNCATE_PARTITION",
}
"""Kinds of events that a dump of metadata alone leaves out, as Hive's own dump does."""
Listed = Callable[[EventId, str], Listing | None]
"""A function from an event id and a location to the files that calque listed there for the event, None where it has no
such listing."""


@dataclass(frozen=True, slots=True)
class DumpedEvent:
    """The contents of one event's directory in a dump. `metadata` is the text of its `_metadata` in pieces, None where
    there is none. `files` has the files by partition name, an unpartitioned table's under an empty name; it is None
    where the event brings no files."""

    event_id: EventId
    kind: str
    payload: str | None
    metadata: Iterator[str] | None
    files: Mapping[str, tuple[LoggedFile, ...]] | None


def dumped_event(event: Event, keys: Keys, kind: str, options: DumpOptions, listed: Listed) -> DumpedEvent | None:
    """Return the contents of the dump of `event`, which has the name `kind` there. Return None where the options leave
    the event out. Raises `Undecodable`."""
    text = decode.text_of(event.message_format, event.message)
    message = decode.parsed(text, "the message")
    table = table_in(message)
    is_external = table is not None and type_of(table) == "EXTERNAL_TABLE"
    if is_external and (not options.external or kind == "EVENT_INSERT"):
        return None
    if table is not None and reason_against(thrift_object(Table, table)):
        return None
    if not options.data and kind in OF_PARTITIONS:
        return None
    contents = contents_of(kind)
    payload = single_line(text if isinstance(text, str) else text.decode()) if contents.payload else None
    is_view = table is not None and type_of(table) in VIEW_TYPES
    files = None
    if contents.files and options.data and not is_external and not is_view:
        files = files_of(event, message, keys, listed)
    scope = "metadata" if is_view or not options.data else contents.scope
    metadata = metadata_of(event, message, kind, scope, options) if contents.scope else None
    return DumpedEvent(event.event_id, kind, payload, metadata, files)


def table_in(message: Fields) -> Fields | None:
    for name in ("tableObjAfterJson", "tableObjJson"):
        if message.get(name) is not None:
            return decode.embedded(message, name)
    return None


def type_of(table: Fields) -> str:
    typed = table.get("12")
    return str(typed.get("str", "")) if isinstance(typed, dict) else ""


def reason_against(table: Table) -> str:
    """Return the reason why no dump has the table; an empty text where a dump may have it."""
    if is_iceberg(table) or is_delta(table):
        return "Hive's dumps have no Delta and no Iceberg tables"
    if projects_partitions(table):
        return f"{PROJECTED}, and Hive's dumps have files by partition"
    if is_symlinks(table):
        return IN_NO_DUMP
    return obstacle(table)


def single_line(text: str) -> str:
    """Return the message with its tabs and line ends escaped. A message may have these characters in its strings, where
    they would end the line, or a field of it."""
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


# Definitions


def metadata_of(event: Event, message: Fields, kind: str, scope: str, options: DumpOptions) -> Iterator[str]:
    state = str(event.event_id)
    lazy = not options.copies if options.layout is DumpLayout.HIVE_3 else None
    replaces = decode.flag_at(message, "replace") if kind == "EVENT_INSERT" else True
    spec = ReplicationSpec(scope, state, state, noop=False, lazy=lazy, replaces=replaces)
    match kind:
        case "EVENT_CREATE_FUNCTION":
            text = decode.string_at(message, "functionObjJson")
            return iter([function_metadata(ReplicationSpec("all", last_id=state), text)])
        case "EVENT_CREATE_DATABASE":
            database = thrift_object(Database, decode.string_at(message, "dbJson"))
            return iter([database_metadata(dumped_database(database, event.event_id))])
        case _:
            name = "tableObjAfterJson" if "tableObjAfterJson" in message else "tableObjJson"
            partitions = map(clean_partition, partition_texts(message))
            return table_metadata(spec, clean_table(decode.string_at(message, name)), partitions)


def partition_texts(message: Fields) -> list[str]:
    if "partitionListJson" in message:
        return decode.strings_at(message, "partitionListJson")
    texts = (message.get(name) for name in ("partitionObjAfterJson", "ptnObjJson"))
    return [text for text in texts if isinstance(text, str)][:1]


def clean_table(text: str) -> str:
    """Return the definition's text without the parameters that a load by Hive sets. A text without them keeps fields
    that calque does not know, because nothing but missing empty lists is added to it."""
    if any(key in text for key in LOADING):
        return dumped_table(thrift_object(Table, text))
    return completed(text, TABLE_FIELDS)


def clean_partition(text: str) -> str:
    if any(key in text for key in LOADING):
        return dumped_partition(thrift_object(Partition, text))
    return completed(text, PARTITION_FIELDS)


# Files


def files_of(event: Event, message: Fields, keys: Keys, listed: Listed) -> Mapping[str, tuple[LoggedFile, ...]]:
    """Return the files that the event brings, by partition name. They are those that the message names. For a new table
    or partition they are those that calque listed for the event, where such a listing is known, because the message of
    a metastore has no files of sub-directories. Raises `Undecodable`."""
    match event.event_type:
        case "INSERT":
            return {keys.partitions[0] if keys.partitions else "": with_directories(decode.logged_files(message), keys)}
        case "CREATE_TABLE":
            table = thrift_object(Table, decode.string_at(message, "tableObjJson"))
            return {"": known_files(event, location_of(table) or "", decode.logged_files(message), listed)}
        case "ADD_PARTITION":
            named = decode.partition_files(event)
            places = dict(zip(keys.partitions, keys.locations, strict=False))
            return {
                partition: known_files(event, places.get(partition, ""), named.get(partition, ()), listed)
                for partition in keys.partitions
            }
        case other:
            raise Undecodable(f"{other} has no files")


def known_files(event: Event, location: str, named: tuple[LoggedFile, ...], listed: Listed) -> tuple[LoggedFile, ...]:
    listing = listed(event.event_id, location) if location else None
    if listing is None:
        return named
    by_uri = {file.uri: file for file in named}
    found = []
    for file in listing.files:
        uri, directory = join(location, file.path), file.path.rpartition("/")[0]
        found.append(replace(by_uri.get(uri, LoggedFile(uri)), directory=directory))
    return tuple(found)


def with_directories(files: tuple[LoggedFile, ...], keys: Keys) -> tuple[LoggedFile, ...]:
    """Return the files, each with the sub-directory of the table's or partition's location in which the file lies. A
    sub-directory that the message says stays as it is."""
    location = f"{keys.locations[0].rstrip('/')}/" if keys.locations else ""
    return tuple(
        replace(file, directory=file.uri.removeprefix(location).rpartition("/")[0])
        if location and not file.directory and file.uri.startswith(location)
        else file
        for file in files
    )
