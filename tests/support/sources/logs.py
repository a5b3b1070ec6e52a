"""A source's log as a test tells it: each method is one event, in the messages of Hive 4."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from calque.core.events.keys import entry_of
from calque.core.states.fold import Chain, ColumnChanges, Step, fold, groups
from calque.model.hive import Column, Partition, SerDe, Storage, Table
from calque.model.journal import Entry, Event
from calque.model.names import EventId, TableName, table_name
from calque.model.plan import BASE, BASE_DATA, Data, Version
from support.sources.tjson import event, tjson

INTEGER = Column("a", "int")
WITHOUT_EFFECT = (
    "OPEN_TXN",
    "COMMIT_TXN",
    "ABORT_TXN",
    "ALLOC_WRITE_ID_EVENT",
    "ACID_WRITE_EVENT",
    "BATCH_ACID_WRITE_EVENT",
    "COMMIT_COMPACTION_EVENT",
    "CREATE_ISCHEMA",
    "ALTER_ISCHEMA",
    "DROP_ISCHEMA",
    "ADD_SCHEMA_VERSION",
    "ALTER_SCHEMA_VERSION",
    "DROP_SCHEMA_VERSION",
    "CREATE_CATALOG",
    "ALTER_CATALOG",
    "DROP_CATALOG",
    "CREATE_DATACONNECTOR",
    "ALTER_DATACONNECTOR",
    "DROP_DATACONNECTOR",
    "CONFIG_CHANGE_EVENT",
    "CREATE_INDEX",
    "ALTER_INDEX",
    "DROP_INDEX",
)
"""Known types of events that are about nothing which calque replicates."""


def plain(name: str = "t", database: str = "d1", **said: Any) -> Table:
    """A managed table without partitions. `said` replaces fields."""
    storage = Storage((INTEGER,), f"file:/w/{database}/{name}", serde=SerDe(class_name="serde", parameters={}))
    return replace(Table(name, database, storage=storage, parameters={}, type="MANAGED_TABLE"), **said)


def partitioned(name: str = "t", database: str = "d1", **said: Any) -> Table:
    return replace(plain(name, database), partition_keys=(Column("p", "string"),), **said)


def view(name: str = "v", database: str = "d1", **said: Any) -> Table:
    table = Table(name, database, storage=Storage((INTEGER,)), parameters={}, type="VIRTUAL_VIEW")
    return replace(table, view_original_text="SELECT 1", view_expanded_text="SELECT 1", **said)


def widened(table: Table, *columns: str) -> Table:
    """The table with further columns."""
    assert table.storage is not None
    more = (*(table.storage.columns or ()), *(Column(column, "string") for column in columns))
    return replace(table, storage=replace(table.storage, columns=more))


def part(table: Table, value: str, **said: Any) -> Partition:
    """A partition with the table's columns, below its directory."""
    assert table.storage is not None
    location = f"{table.storage.location}/p={value}"
    storage = replace(table.storage, location=location)
    return replace(Partition((value,), table.database, table.name, storage=storage, parameters={}), **said)


class Log:
    """Events, numbered from 1 unless `at` says otherwise."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.next_id: EventId = 1

    def at(self, event_id: EventId) -> Self:
        self.next_id = event_id
        return self

    def write(self, event_type: str, message: Mapping[str, object], database: str, table: str = "") -> Self:
        self.events.append(event(event_type, message, database=database, table=table, event_id=self.next_id))
        self.next_id += 1
        return self

    def on(self, table: Table, event_type: str, message: Mapping[str, object]) -> Self:
        """An event whose message carries the table."""
        names = {"db": table.database, "table": table.name, "tableType": table.type}
        body = {**names, "tableObjJson": tjson(table), **message}
        return self.write(event_type, body, table.database, table.name)

    def create(self, table: Table) -> Self:
        return self.on(table, "CREATE_TABLE", {"files": []})

    def drop(self, table: Table) -> Self:
        return self.on(table, "DROP_TABLE", {})

    def alter(self, before: Table, after: Table, *, truncate: bool = False) -> Self:
        objects = {"tableObjBeforeJson": tjson(before), "tableObjAfterJson": tjson(after)}
        body = {"db": before.database, "table": before.name, "tableType": before.type, **objects}
        flags = {"isTruncateOp": str(truncate).lower(), "writeId": -1}
        return self.write("ALTER_TABLE", body | flags, after.database, after.name)

    def rename(self, before: Table, name: str, database: str = "") -> Self:
        """Metadata only: the directory stays."""
        return self.alter(before, replace(before, name=name, database=database or before.database))

    def add(self, table: Table, *partitions: Partition) -> Self:
        listed = [tjson(partition) for partition in partitions]
        return self.on(table, "ADD_PARTITION", {"partitions": values_of(partitions), "partitionListJson": listed})

    def alter_partition(self, table: Table, before: Partition, after: Partition, *, truncate: bool = False) -> Self:
        objects = {"partitionObjBeforeJson": tjson(before), "partitionObjAfterJson": tjson(after)}
        flags = {"isTruncateOp": str(truncate).lower(), "writeId": -1}
        [values] = values_of([before])
        return self.on(table, "ALTER_PARTITION", {"keyValues": values, **objects, **flags})

    def alter_partitions(self, table: Table, *partitions: Partition) -> Self:
        listed = [tjson(partition) for partition in partitions]
        body = {"isTruncateOp": "false", "partitions": values_of(partitions), "partitionListJson": listed}
        return self.on(table, "ALTER_PARTITIONS", body)

    def drop_partitions(self, table: Table, *partitions: Partition) -> Self:
        return self.on(table, "DROP_PARTITION", {"partitions": values_of(partitions)})

    def insert(self, table: Table, partition: Partition | None = None, *, overwrite: bool = False) -> Self:
        inserted = tjson(partition) if partition else None
        return self.on(table, "INSERT", {"ptnObjJson": inserted, "replace": str(overwrite).lower(), "files": []})

    def as_2_3(self) -> Self:
        """The same log as 2.3 writes it: without what its messages lack."""
        self.events = [in_2_3(one) for one in self.events]
        return self

    def entries(self) -> list[Entry]:
        return [entry_of(one) for one in self.events]

    def chain(self, *cascaded: EventId) -> Chain:
        """The chain of the log's only group."""
        [group] = groups(self.entries())
        return fold(group, ColumnChanges(frozenset(cascaded)))


def values_of(partitions: Sequence[Partition]) -> list[dict[str, str]]:
    return [{"p": partition.values[0]} for partition in partitions]


LACKING_IN_2_3 = {
    "CREATE_DATABASE": {"dbJson"},
    "DROP_DATABASE": {"dbJson"},
    "DROP_TABLE": {"tableObjJson"},
    "INSERT": {"tableObjJson", "ptnObjJson", "replace"},
}


def in_2_3(one: Event) -> Event:
    message = json.loads(one.message)
    lacking = LACKING_IN_2_3.get(one.event_type, set()) | {"tableType", "isTruncateOp", "writeId"}
    kept = {key: value for key, value in message.items() if key not in lacking}
    if one.event_type == "INSERT":
        kept["partKeyVals"] = {}
    return replace(one, catalog="", message=json.dumps(kept))


def name(text: str) -> TableName:
    return table_name(*text.split("."))


# What a chain says, in words


def told(chain: Chain) -> list[list[str]]:
    """Each step's changes."""
    return [told_of(step) for step in chain.steps]


def told_of(step: Step) -> list[str]:
    names = [f"{table} is {lineage or 'gone'}" for table, lineage in step.names.items()]
    heads = [
        f"{lineage}: {definition(head.version)}, {content(head.data)}" for lineage, head in sorted(step.heads.items())
    ]
    parts = [
        f"{lineage} {partition}: {definition(found.version)}, {content(found.data)}"
        if found
        else f"{lineage} {partition} is gone"
        for (lineage, partition), found in step.parts.items()
    ]
    cascades = [f"{lineage} cascades" for lineage in sorted(step.cascades)]
    columns = [f"{lineage} has other columns" for lineage in sorted(step.columns)]
    doubtful = [f"{lineage} is doubtful" for lineage in sorted(step.doubtful)]
    return [*names, *heads, *parts, *cascades, *columns, *doubtful]


def definition(version: Version) -> str:
    if version == BASE:
        return "as it was"
    return f"of {version.event_id}" + (f" number {version.index}" if version.index else "")


def content(data: Data | None) -> str:
    if data is None or (data.event_id and not data.location):
        return "no files"
    return "files as they were" if data == BASE_DATA else f"files of {data.event_id}"
