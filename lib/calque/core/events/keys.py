"""Extraction of an event's keys, the objects that it touches, from its message: once for each event, at capture.

Functions work on parsed TJSON without building objects. Field numbers are those of `model.hive.FIELDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.decode import (
    FieldMissing,
    Fields,
    Undecodable,
    embedded,
    embedded_list,
    fields,
    flag_at,
    is_too_long,
    string_at,
    strings_at,
)
from calque.core.events.effects import PART_OF_LOOK, RELOADED, TYPES_NAMED_IN_ROWS, TYPES_WITHOUT_EFFECT
from calque.core.formats.iceberg import calls_iceberg
from calque.model.hive import (
    BASIC_STATISTICS,
    FIELDS,
    VIEW_TYPES,
    Partition,
    Table,
    root_of,
    says_delta,
    says_projection,
    says_provider,
)
from calque.model.journal import LOOKED, Entry, Event, EventKind, Keys, TableShape
from calque.model.names import TableName, named_values, partition_name, table_name

NOTHING = Keys(EventKind.NOTHING)
OUR_CATALOGS = frozenset({"", "hive"})


def entry_of(event: Event) -> Entry:
    """Return all that the journal holds of `event` but its message. Never raises."""
    return Entry(event.event_id, event.event_time, event.event_type, keys_of(event))


def keys_of(event: Event) -> Keys:
    """Return the objects that `event` touches. Never raises: an event that can't be folded is `EventKind.UNKNOWN`, with
    the names in the event's row.

    `Keys.defect` says what is wrong with a message. It is empty for types that are not known, and for messages of 2.3
    (which name no catalogs) that leave the object out, because there is nothing to mend: the object is to be read. The
    row names a renamed table by its new name and neither its old name nor a function, so an undecodable ALTER_TABLE may
    hide a rename. A message that is too long has no defect where the row names all objects that have to be read again.
    """
    if event.event_type in TYPES_WITHOUT_EFFECT or event.catalog.lower() not in OUR_CATALOGS:
        return NOTHING
    if event.event_type == RELOADED:
        return Keys(EventKind.NOTHING, named_in_row(event))
    try:
        with work_on("its message", Undecodable):
            return read_keys(event)
    except FieldMissing as error:
        return Keys(EventKind.UNKNOWN, named_in_row(event), defect=error.reason if event.catalog else "")
    except (Undecodable, ObjectDefect) as error:
        row_says_all = is_too_long(event) and event.event_type in TYPES_NAMED_IN_ROWS
        defect = "" if row_says_all else Undecodable(str(error)).reason
        return Keys(EventKind.UNKNOWN, named_in_row(event), defect=defect)


def read_keys(event: Event) -> Keys:
    """Return the objects that `event` touches, from its type and message. Raises `Undecodable`."""
    if event.event_type in FACETS:
        return Keys(EventKind.FACET, facet_owner(event), partitions=analyzed_partition(event))
    read = FOLDABLE.get(event.event_type.removeprefix(PART_OF_LOOK))
    return read(fields(event)) if read is not None else Keys(EventKind.UNKNOWN, named_in_row(event))


def why_unknown(event: Event) -> str:
    """Say why an event is `EventKind.UNKNOWN` though its message has no defect."""
    read = FOLDABLE.get(event.event_type)
    if event.event_type in TYPES_WITHOUT_EFFECT:
        return "it committed a transaction whose files are not known"
    if is_too_long(event):
        return "its message is longer than [source] max_message"
    if event.event_type == LOOKED:
        return "the catalog has no log, and was looked at there for the first time"
    if read is None:
        return "calque does not know events of this type"
    try:
        read(fields(event))
    except Undecodable as error:
        return f"{error.reason}, as in all messages of old metastores"
    return "the table became an Iceberg table, or was one"


def named_in_row(event: Event) -> TableName | None:
    """Return the name in the event's own columns; None for events without one, which carry blanks or the word null
    (3.1)."""
    database, table = event.database.strip(), event.table.strip()
    if not database or (database == "null" and not table) or not encodable(database + table):
        return None
    return table_name(database, table)


def encodable(text: str) -> bool:
    """Tell whether `text` is free of lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Databases and functions


def created_database(message: Fields) -> Keys:
    return Keys(EventKind.CREATE_DATABASE, database_name(embedded(message, "dbJson")))


def altered_database(message: Fields) -> Keys:
    return Keys(EventKind.ALTER_DATABASE, database_name(embedded(message, "dbObjAfterJson")))


def dropped_database(message: Fields) -> Keys:
    return Keys(EventKind.DROP_DATABASE, table_name(string_at(message, "db")))


def created_function(message: Fields) -> Keys:
    return Keys(EventKind.CREATE_FUNCTION, name_in(embedded(message, "functionObjJson"), database="2", name="1"))


def dropped_function(message: Fields) -> Keys:
    return Keys(EventKind.DROP_FUNCTION, table_name(string_at(message, "db"), string_at(message, "functionName")))


# Tables


def created_table(message: Fields) -> Keys:
    table = embedded(message, "tableObjJson")
    shape = shape_of(table)
    return Keys(
        EventKind.CREATE_TABLE,
        name_in(table),
        shape=shape,
        locations=table_locations(table, shape),
        transactional=transactional(table),
    )


def altered_table(message: Fields) -> Keys:
    before, after = embedded(message, "tableObjBeforeJson"), embedded(message, "tableObjAfterJson")
    old, new = name_in(before), name_in(after)
    if iceberg(before) != iceberg(after) or projected(before) != projected(after):
        return Keys(EventKind.UNKNOWN, new, other=None if old == new else old)
    shape = shape_of(after)
    return Keys(
        EventKind.ALTER_TABLE if old == new else EventKind.RENAME_TABLE,
        new,
        other=None if old == new else old,
        shape=shape,
        locations=table_locations(after, shape),
        replaces=flag_at(message, "isTruncateOp"),
        columns_changed=shape is TableShape.PARTITIONED and columns(before) != columns(after),
        facets_only=differ_in_statistics_only(Table, before, after),
        transactional=transactional(after),
    )


def dropped_table(message: Fields) -> Keys:
    if message.get("tableObjJson") is None:
        return Keys(EventKind.DROP_TABLE, table_name(string_at(message, "db"), string_at(message, "table")))
    table = embedded(message, "tableObjJson")
    return Keys(EventKind.DROP_TABLE, name_in(table), shape=shape_of(table), transactional=transactional(table))


# Partitions


def added_partitions(message: Fields) -> Keys:
    return listed_partitions(EventKind.ADD_PARTITIONS, message)


def altered_partitions(message: Fields) -> Keys:
    return listed_partitions(EventKind.ALTER_PARTITIONS, message)


def listed_partitions(kind: EventKind, message: Fields) -> Keys:
    return partition_event(kind, message, embedded_list(message, "partitionListJson"))


def altered_partition(message: Fields) -> Keys:
    before, after = embedded(message, "partitionObjBeforeJson"), embedded(message, "partitionObjAfterJson")
    if named_values(strings(before, "1")) == named_values(strings(after, "1")):
        facets_only = differ_in_statistics_only(Partition, before, after)
        return partition_event(EventKind.ALTER_PARTITIONS, message, [after], facets_only=facets_only)
    return partition_event(EventKind.RENAME_PARTITION, message, [after], [before])


def inserted(message: Fields) -> Keys:
    if message.get("ptnObjJson") is not None:
        return partition_event(EventKind.INSERT, message, [embedded(message, "ptnObjJson")])
    table = embedded(message, "tableObjJson")
    shape = shape_of(table)
    if shape is TableShape.PARTITIONED:
        raise Undecodable("the insert does not say into which partition")
    return Keys(
        EventKind.INSERT,
        name_in(table),
        shape=shape,
        locations=table_locations(table, shape),
        replaces=flag_at(message, "replace"),
        transactional=transactional(table),
    )


def dropped_partitions(message: Fields) -> Keys:
    table = embedded(message, "tableObjJson")
    keys = partition_keys(table)
    if projected(table):
        return listed_beside_projection(table)
    return Keys(
        EventKind.DROP_PARTITIONS,
        name_in(table),
        shape=shape_of(table),
        partitions=tuple(name_of_pairs(keys, pairs) for pairs in dropped(message)),
        transactional=transactional(table),
    )


def listed_beside_projection(table: Fields) -> Keys:
    """Return unknown keys for a table whose partitions query engines make up, when the metastore gets or loses
    partitions of it: the table has to be read, and that read says why it is set aside."""
    return Keys(EventKind.UNKNOWN, name_in(table))


def partition_event(
    kind: EventKind,
    message: Fields,
    after: Iterable[Fields],
    before: Iterable[Fields] = (),
    *,
    facets_only: bool = False,
) -> Keys:
    table = embedded(message, "tableObjJson")
    keys = partition_keys(table)
    shape = shape_of(table)
    if projected(table):
        return listed_beside_projection(table)
    names, locations = [], []
    for part in after:
        names.append(name_of_partition(keys, part))
        if shape is not TableShape.VIEW:
            locations.append(partition_location(part))
    return Keys(
        kind,
        name_in(table),
        shape=shape,
        partitions=tuple(names),
        others=tuple([name_of_partition(keys, part) for part in before]),
        locations=tuple(locations),
        replaces=flag_at(message, "replace" if kind is EventKind.INSERT else "isTruncateOp"),
        facets_only=facets_only,
        transactional=transactional(table),
    )


def dropped(message: Fields) -> list[Any]:
    listed = message.get("partitions")
    if type(listed) is not list:
        raise Undecodable("the message has no list of partitions")
    return listed


def name_of_pairs(keys: list[str], pairs: Any) -> str:
    if type(pairs) is not dict or len(pairs) != len(keys):
        raise Undecodable("a dropped partition does not have the table's keys")
    pairs = {key.lower(): value for key, value in pairs.items()}
    values = [value for key in keys if type(value := pairs.get(key.lower())) is str]
    if len(values) != len(keys):
        raise Undecodable("a dropped partition lacks a key's value")
    return partition_name(keys, values)


def name_of_partition(keys: list[str], partition: Fields) -> str:
    values = strings(partition, "1")
    if len(values) != len(keys):
        raise Undecodable(f"a partition has {len(values)} values for {len(keys)} keys")
    return partition_name(keys, values)


def partition_location(partition: Fields) -> str:
    location = string(struct(partition, "6"), "2")
    if not location:
        raise Undecodable("a partition has no location")
    return location


# Facets

FACETS: Mapping[str, tuple[str, str, str]] = {
    "ADD_PRIMARYKEY": ("primaryKeyListJson", "1", "2"),
    "ADD_FOREIGNKEY": ("foreignKeyListJson", "4", "5"),
    "ADD_UNIQUECONSTRAINT": ("uniqueConstraintListJson", "2", "3"),
    "ADD_NOTNULLCONSTRAINT": ("notNullConstraintListJson", "2", "3"),
    "ADD_DEFAULTCONSTRAINT": ("defaultConstraintListJson", "2", "3"),
    "ADD_CHECKCONSTRAINT": ("checkConstraintListJson", "2", "3"),
    "DROP_CONSTRAINT": ("", "", ""),
    "UPDATE_TBL_COL_STAT_EVENT": ("tableObjJson", "2", "1"),
    "UPDATE_PART_COL_STAT_EVENT": ("tableObjJson", "2", "1"),
    "UPDATE_PART_COL_STAT_EVENT_BATCH": ("tableObjJson", "2", "1"),
    "DELETE_TBL_COL_STAT_EVENT": ("", "", ""),
    "DELETE_PART_COL_STAT_EVENT": ("", "", ""),
}
"""Event type → the field whose (first) object names the table, and that object's fields for database and table."""


def facet_owner(event: Event) -> TableName:
    """Return the table that a constraint or statistics belong to. The row names it, so that no message is parsed,
    except for a foreign key: there the row names the table that the key points to."""
    row = named_in_row(event)
    if row and row.table and event.event_type != "ADD_FOREIGNKEY":
        return row
    message = fields(event)
    holder, database, name = FACETS[event.event_type]
    if not holder:
        return table_name(string_at(message, "dbName"), string_at(message, "tableName"))
    if not holder.endswith("ListJson"):
        return name_in(embedded(message, holder), database, name)
    for constraint in embedded_list(message, holder):
        return name_in(constraint, database, name)
    raise Undecodable(f"the message has no {holder}")


PARTITION_FACETS = frozenset(name for name in FACETS if "_PART_" in name)


def analyzed_partition(event: Event) -> tuple[str, ...]:
    """Return the name of the partition whose column statistics an event changed; empty where the event names none."""
    if event.event_type not in PARTITION_FACETS:
        return ()
    message = fields(event)
    if message.get("partName") is not None:
        keys = [part.split("=", 1)[0] for part in string_at(message, "partName").split("/")]
        values = strings_at(message, "partValues")
    else:
        values = strings_at(message, "partVals")
        keys = partition_keys(embedded(message, "tableObjJson")) if values else []
    return (partition_name(keys, values),) if values and len(values) == len(keys) else ()


# Parsed TJSON. Absent fields are empty.


def name_in(thing: Fields, database: str = "2", name: str = "1") -> TableName:
    qualified_name = table_name(string(thing, database), string(thing, name))
    if not qualified_name.database or not qualified_name.table:
        raise Undecodable("an object has no name")
    return qualified_name


def database_name(database: Fields) -> TableName:
    name = string(database, "1")
    if not name:
        raise Undecodable("a database has no name")
    return table_name(name)


def shape_of(table: Fields) -> TableShape:
    if string(table, "12") in VIEW_TYPES:
        return TableShape.VIEW
    return TableShape.PARTITIONED if items(table, "8") and not (delta(table) or projected(table)) else TableShape.PLAIN


def partition_keys(table: Fields) -> list[str]:
    return [string(column, "1") if type(column) is dict else "" for column in items(table, "8")]


def table_locations(table: Fields, shape: TableShape) -> tuple[str, ...]:
    """Return the directory of a plain table. Empty for an Iceberg table, whose definition alone says what its content
    is, and for a table without a directory, as one of a storage handler may be."""
    if shape is not TableShape.PLAIN or iceberg(table):
        return ()
    storage = struct(table, "7")
    location = string(storage, "2")
    parameters = mapping(table, "9")
    if says_provider(parameters):
        serde_parameters = mapping(struct(storage, "7"), "3")
        location = root_of(string(table, "12"), location, serde_parameters, parameters, string(table, "1"))
    return (location,) if location else ()


def columns(table: Fields) -> list[Any]:
    """Return the table's columns as TJSON, with names in lower case as servers keep them; an alteration has them as
    written."""
    listed = items(struct(table, "7"), "1")
    return [{**one, "1": {"str": string(one, "1").lower()}} if type(one) is dict else one for one in listed]


def differ_in_statistics_only(cls: type, before: Fields, after: Fields) -> bool:
    """Tell whether two definitions, names included, are equal but for their basic statistics."""
    others, parameters = DEFINITIONS[cls]
    if any(before.get(number) != after.get(number) for number in others):
        return False
    old, new = mapping(before, parameters), mapping(after, parameters)
    return all(old.get(name) == new.get(name) for name in (old.keys() | new.keys()) - BASIC_STATISTICS)


def iceberg(table: Fields) -> bool:
    return calls_iceberg(mapping(table, "9"))


def transactional(table: Fields) -> bool:
    """Tell whether the table is an ACID table. Hive itself looks for the parameter in lower, then in upper case."""
    parameters = mapping(table, "9")
    value = parameters.get("transactional") or parameters.get("TRANSACTIONAL")
    return type(value) is str and value.lower() == "true"


def projected(table: Fields) -> bool:
    """Tell whether query engines make up the table's partitions: `hive.projects_partitions`, on parsed TJSON."""
    return bool(items(table, "8")) and says_projection(mapping(table, "9")) and not delta(table)


def delta(table: Fields) -> bool:
    """Tell whether the table is a Delta table: `hive.is_delta`, on parsed TJSON."""
    return says_delta(mapping(table, "9"))


def string(thing: Fields, number: str) -> str:
    value = content(thing, number, "str", "")
    if type(value) is not str:
        raise Undecodable(f"field {number} is no string")
    return value


def strings(thing: Fields, number: str) -> list[str]:
    values = items(thing, number)
    if not all(type(value) is str for value in values):
        raise Undecodable(f"field {number} is no list of strings")
    return values


def struct(thing: Fields, number: str) -> Fields:
    value = content(thing, number, "rec", EMPTY)
    if type(value) is not dict:
        raise Undecodable(f"field {number} is no object")
    return value


def items(thing: Fields, number: str) -> list[Any]:
    """Return the items of a list, `[tag, count, item, item, …]`; empty where the field is absent."""
    value = content(thing, number, "lst", EMPTY_LIST)
    if type(value) is not list or len(value) < 2 or value[1] != len(value) - 2:
        raise Undecodable(f"field {number} is no list")
    return value[2:]


def mapping(thing: Fields, number: str) -> Mapping[str, Any]:
    """Return the entries of a map, `[key tag, value tag, count, {…}]`; empty where the field is absent."""
    value = content(thing, number, "map", EMPTY_MAP)
    if type(value) is not list or len(value) != 4 or type(value[3]) is not dict:
        raise Undecodable(f"field {number} is no map")
    return value[3]


def content(thing: Fields, number: str, tag: str, absent: Any) -> Any:
    """Return the value under `tag` in field `number`, or `absent` where there is no such field. Raises `Undecodable`
    where the field has another tag."""
    typed = thing.get(number)
    if typed is None:
        return absent
    if type(typed) is not dict or tag not in typed:
        raise Undecodable(f"field {number} is no {tag}")
    return typed[tag]


DEFINITIONS: Mapping[type, tuple[tuple[str, ...], str]] = {
    cls: (
        tuple(str(number) for number, name, _ in FIELDS[cls] if name != "parameters"),
        next(str(number) for number, name, _ in FIELDS[cls] if name == "parameters"),
    )
    for cls in (Table, Partition)
}
"""The field numbers of a definition: those of all fields but the parameters, and that of the parameters."""

EMPTY: Fields = {}
EMPTY_LIST: list[Any] = ["", 0]
EMPTY_MAP: list[Any] = ["", "", 0, {}]

# Event types

FOLDABLE: Mapping[str, Callable[[Fields], Keys]] = {
    "CREATE_DATABASE": created_database,
    "ALTER_DATABASE": altered_database,
    "DROP_DATABASE": dropped_database,
    "CREATE_TABLE": created_table,
    "ALTER_TABLE": altered_table,
    "DROP_TABLE": dropped_table,
    "ADD_PARTITION": added_partitions,
    "ALTER_PARTITION": altered_partition,
    "ALTER_PARTITIONS": altered_partitions,
    "DROP_PARTITION": dropped_partitions,
    "INSERT": inserted,
    "CREATE_FUNCTION": created_function,
    "DROP_FUNCTION": dropped_function,
}
