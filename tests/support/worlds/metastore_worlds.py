"""Metastores for the contract suites: those in memory, and real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.engine.sides.log_reads import events_after
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName
from calque.model.policy import TargetCapabilities
from calque.ports import Catalog, EventLog
from calque.sandbox.writer import HiveClient
from support.memory.metastore import (
    DELTA_LIKE,
    GLUE_LIKE,
    HIVE_3,
    HIVE_4,
    MemoryMetastore,
    ServerHabits,
)

PROVED = {"hive-4.2.0-stock": pytest.mark.prove}
"""What differs from another of `REAL` in a few tests only; `test_flow.py` replicates from one."""


class RealServer(NamedTuple):
    """A real metastore: its name among the shared servers, and how it should behave."""

    server: str
    habits: ServerHabits


MEMORY: dict[str, tuple[ServerHabits, TargetCapabilities | None]] = {
    "memory-3": (HIVE_3, None),
    "memory-4": (HIVE_4, None),
    "memory-glue": (HIVE_3, GLUE_LIKE),
    "memory-delta": (HIVE_4, DELTA_LIKE),
}
REAL = {
    "hive-3.1.3": RealServer("target-3", HIVE_3),
    "hive-4.2.0": RealServer("target-4", HIVE_4),
    "hive-4.2.0-stock": RealServer("stock-4", HIVE_4),
}
NUMBERS = count(1)
TEXT = Storage(
    columns=(Column("a", "int", "Größe ☃ 'q' \"d\" \\"), Column("b", "array<string>")),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    buckets=-1,
    serde=SerDe("text", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"field.delim": "\x01", "a b": '="x"'}),
)

Writer = HiveClient | MemoryMetastore


@dataclass(slots=True)
class RecordedDirectories:
    """What a metastore in memory would have done to data."""

    made: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def make(self, location: str) -> None:
        self.made.append(location)

    def move(self, source: str, target: str) -> None:
        self.moved.append((source, target))

    def remove(self, location: str) -> None:
        self.removed.append(location)

    def files(self, location: str) -> Sequence[str]:  # noqa: ARG002 - data are nobody's here
        return ()


@dataclass(frozen=True, slots=True)
class World:
    """One metastore: its ports, its writer's calls, and how it should behave. `root` is a directory for data that is
    no other test's; names end in a number, since a server is shared by all tests."""

    name: str
    habits: ServerHabits
    catalog: Catalog
    log: EventLog
    writer: Writer
    root: Path
    number: int
    directories: RecordedDirectories | None

    @property
    def real(self) -> bool:
        return self.directories is None

    def database(self, name: str = "sales") -> str:
        return f"{name}_{self.number}"

    def create_database(self, name: str = "sales") -> str:
        self.catalog.create_database(Database(self.database(name), "Käufe", self.place(name)))
        return self.database(name)

    def place(self, *parts: str) -> str:
        return "/".join((f"file:{self.root}", *parts))

    def table(self, name: str, keys: Sequence[str] = (), database: str = "sales", **parameters: str) -> Table:
        """An external table with a directory of its own."""
        return Table(
            name,
            self.database(database),
            "owner",
            storage=replace(TEXT, location=self.place("data", name)),
            partition_keys=tuple(Column(key, "string", "Schlüssel") for key in keys),
            parameters={"EXTERNAL": "TRUE", **parameters},
            type="EXTERNAL_TABLE",
        )

    def managed_table(self, name: str, keys: Sequence[str] = ()) -> Table:
        return replace(self.table(name, keys), storage=TEXT, parameters={}, type="MANAGED_TABLE")

    def view(self, name: str, text: str) -> Table:
        return replace(
            self.table(name),
            storage=TEXT,
            parameters={"comment": "Ansicht"},
            type="VIRTUAL_VIEW",
            view_original_text=text,
            view_expanded_text=text,
        )

    def logged(self, after: EventId) -> list[Event]:
        """All events behind that one."""
        return list(events_after(self.log, after, self.log.current()))

    def created(self, table: Table) -> TableName:
        self.catalog.create_table(table)
        return TableName(table.database, table.name)


def hive_world(uri: str, root: Path) -> Iterator[World]:
    """Of a 3.1.3 server."""
    writer = HiveClient(uri)
    yield World(
        "narrow",
        HIVE_3,
        HiveCatalog(writer.client, TargetCapabilities()),
        writer.log,
        writer,
        root,
        next(NUMBERS),
        None,
    )
    writer.close()


def partition(table: Table, values: Sequence[str], location: str, **parameters: str) -> Partition:
    storage = replace(table.storage or TEXT, location=location)
    return Partition(tuple(values), table.database, table.name, storage=storage, parameters=parameters)
