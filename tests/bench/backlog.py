"""A long backlog, written straight into a journal: what a warehouse's tables went through while nobody replicated.

Partitioned tables share most events (Zipf), by which they grow; beside them stand plain tables, and staging tables that
come and go. Messages are those of a metastore 3.1, from templates: a few microseconds each.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from rig import partition, plain_table

from calque.adapters.delta.journal import DeltaJournal
from calque.core.events.encode import tjson
from calque.core.events.keys import keys_of
from calque.core.events.rows import SCHEMA, entries_of, events_of
from calque.model.hive import Column, Database, Partition, Table
from calque.model.journal import EventKind, Keys, TableShape
from calque.model.names import EventId, TableName

DATABASE = "sales"
BATCH = 20_000
AT_ONCE = 4
"""Partitions that one call adds."""
PLAIN, STAGING = 0.2, 0.01
"""Shares of the events that go to plain tables, and to staging tables."""
TABLE, VALUE, ROWS, NOTE = "TABLE-HERE", "VALUE-HERE", "1010101", "2020202"
"""What stands in the templates for names and numbers."""
COLUMNS = 12
TYPE, SECONDS = "EXTERNAL_TABLE", 1_700_000_000
INSERTED: Mapping[str, object] = {"replace": "false", "files": []}

Row = tuple[str, Keys, str]
"""An event's type, keys and message."""


@dataclass(slots=True)
class Parted:
    """A partitioned table so far: its newest parameter, and those of its partitions."""

    name: str
    share: float
    most: int
    note: int = 0
    made: int = 0
    there: deque[str] = field(default_factory=deque)
    rows: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Plain:
    name: str
    rows: int = 0
    note: int = 0
    times: int = 0
    """How often it was renamed."""


class Backlog:
    """`events` of `tables` partitioned tables and as many plain ones as make up for `objects` in the end, 95 % of them
    partitions. Directories are made below `root`, as they are at a source."""

    def __init__(self, events: int, objects: int, tables: int, root: Path, seed: int = 7) -> None:
        self.events, self.root, self.chance = events, root, random.Random(seed)
        shares = zipf(tables)
        self.parted = [
            Parted(f"p{number:04}", share, max(1, round(objects * 0.95 * share))) for number, share in enumerate(shares)
        ]
        self.plain: list[Plain] = [Plain(f"t{number:05}") for number in range(max(1, round(objects * 0.05) - tables))]
        self.staging: list[str] = []
        self.made: set[str] = set()
        self.waiting: deque[Row] = deque()
        self.weights = [list(accumulate(shares)), list(accumulate(zipf(len(self.plain))))]
        self.templates = Templates(root)

    def fill(self, journal: DeltaJournal) -> None:
        """Append all events in batches, as capture does."""
        rows = self.rows()
        for start in range(1, self.events + 1, BATCH):
            journal.append(self.batch(rows, range(start, min(start + BATCH, self.events + 1))))

    def batch(self, rows: Iterator[Row], ids: range) -> pa.Table:
        found = [next(rows) for _ in ids]
        keys = [row[1] for row in found]
        columns: dict[str, object] = {
            "event_id": ids,
            "event_time": [SECONDS + event_id // 100 for event_id in ids],
            "event_type": [row[0] for row in found],
            "kind": [each.kind.value for each in keys],
            "catalog": ["hive"] * len(keys),
            "key_database": [each.table.database if each.table else None for each in keys],
            "key_table": [each.table.table if each.table else None for each in keys],
            "other_database": [each.other.database if each.other else None for each in keys],
            "other_table": [each.other.table if each.other else None for each in keys],
            "shape": [each.shape.value for each in keys],
            "message_format": ["json-0.2"] * len(keys),
            "message": [row[2] for row in found],
        }
        names = ("partitions", "others", "locations", "replaces", "columns_changed", "facets_only", "transactional")
        columns |= {name: [getattr(each, name) for each in keys] for name in (*names, "defect")}
        columns |= {name: columns[f"key_{name}"] for name in ("database", "table")}
        table = pa.table([pa.array(columns[each.name], each.type) for each in SCHEMA], SCHEMA)
        if ids.start == 1:
            require_keys(table.slice(0, 2000))
        return table

    def rows(self) -> Iterator[Row]:
        yield self.templates.database()
        at = 1
        while True:
            at += 1
            if not self.waiting:
                self.waiting.extend(self.next(at))
            yield self.waiting.popleft()

    def next(self, at: EventId) -> Sequence[Row]:
        what = self.chance.random()
        if what < STAGING:
            return self.of_staging(at)
        if what < STAGING + PLAIN:
            (table,) = self.chance.choices(self.plain, cum_weights=self.weights[1])
            return self.of_plain(table, at)
        (parted,) = self.chance.choices(self.parted, cum_weights=self.weights[0])
        return self.of_parted(parted, at)

    def of_staging(self, at: EventId) -> Sequence[Row]:
        """Tables that are made, and dropped soon."""
        if len(self.staging) < 20:
            self.staging.append(f"staging_{at}")
            self.folder(self.staging[-1])
            return [self.templates.create(self.staging[-1], parted=False)]
        return [self.templates.drop(self.staging.pop(0))]

    def of_plain(self, table: Plain, at: EventId) -> Sequence[Row]:
        templates, what = self.templates, self.chance.random()
        if table.name not in self.made:
            self.made.add(table.name)
            self.folder(table.name)
            return [templates.create(table.name, parted=False)]
        if what < 0.002:
            was, table.times = table.name, table.times + 1
            table.name = f"{was.partition('_')[0]}_{table.times}"
            self.made.add(table.name)
            self.folder(table.name)
            return [templates.rename(was, table.name, table.rows, table.note)]
        if what < 0.01:
            table.rows = table.note = 0
            return [templates.drop(table.name), templates.create(table.name, parted=False)]
        if what < 0.45:
            return [templates.insert(table.name, table.rows, table.note)]
        if what < 0.9:
            table.rows = at
        else:
            table.note = at
        return [templates.alter(table.name, table.rows, table.note, facets=what < 0.9)]

    def of_parted(self, table: Parted, at: EventId) -> Sequence[Row]:
        templates, what = self.templates, self.chance.random()
        if table.name not in self.made:
            self.made.add(table.name)
            self.folder(table.name)
            return [templates.create(table.name, parted=True)]
        if len(table.there) < table.most * min(1.0, 1.1 * at / self.events) or not table.there:
            values = [f"{table.made + number:06}" for number in range(min(AT_ONCE, table.most - len(table.there)))]
            table.made += len(values)
            for value in values:
                table.there.append(value)
                table.rows[value] = table.notes[value] = 0
                self.folder(f"{table.name}/ds={value}")
            return [templates.add(table.name, values)]
        if what < 0.01:
            value = table.there.popleft()
            del table.rows[value], table.notes[value]
            return [templates.drop_partition(table.name, value)]
        if what < 0.02:
            table.note = at
            return [templates.alter(table.name, 0, at, facets=False, parted=True)]
        value = table.there[-1 - min(len(table.there) - 1, int(self.chance.expovariate(3 / len(table.there))))]
        if what < 0.45:
            return [templates.insert_into(table.name, value, table.rows[value], table.notes[value])]
        facets = what < 0.93
        (table.rows if facets else table.notes)[value] = at
        return [templates.alter_partition(table.name, value, table.rows[value], table.notes[value], facets=facets)]

    def folder(self, path: str) -> None:
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def objects(self) -> int:
        """How many there are in the end."""
        tables = sum(table.name in self.made for table in (*self.parted, *self.plain)) + len(self.staging)
        return tables + sum(len(table.there) for table in self.parted)


def zipf(count: int) -> list[float]:
    total = sum(1 / rank for rank in range(1, count + 1))
    return [1 / rank / total for rank in range(1, count + 1)]


def require_keys(rows: pa.Table) -> None:
    """The keys beside the messages are those that capture takes from them."""
    for event, entry in zip(events_of(rows), entries_of(rows), strict=True):
        assert keys_of(event) == entry.keys, (event.event_type, keys_of(event), entry.keys)


class Templates:
    """Messages with marks for names and numbers, and the events that they make."""

    def __init__(self, root: Path) -> None:
        self.root = root.as_uri()
        plain = with_numbers(wide(plain_table(DATABASE, TABLE, root / TABLE)))
        parted = with_numbers(wide(plain_table(DATABASE, TABLE, root / TABLE, partitioned=True)))
        parted = replace(parted, partition_keys=(Column("ds", "string"),))
        self.tables = {False: plain, True: parted}
        part = with_numbers(partition(parted, VALUE))
        assert part.storage is not None
        self.part = replace(part, storage=replace(part.storage, location=f"{self.root}/{TABLE}/ds={VALUE}"))
        self.made: dict[tuple[str, bool], str] = {}

    def message(self, kind: str, fields: Callable[[], Mapping[str, object]], *, parted: bool = False) -> str:
        """The template of that kind; made once."""
        found = self.made.get((kind, parted))
        if found is None:
            named = {"server": "", "servicePrincipal": "", "db": DATABASE, "table": TABLE, "tableType": TYPE}
            body = {**named, **fields(), "timestamp": SECONDS}
            found = self.made[kind, parted] = json.dumps(body, separators=(",", ":"))
        return found

    def database(self) -> Row:
        body = {"db": DATABASE, "dbJson": tjson(Database(DATABASE, location=self.root)), "timestamp": SECONDS}
        return "CREATE_DATABASE", Keys(EventKind.CREATE_DATABASE, TableName(DATABASE)), json.dumps(body)

    def create(self, name: str, *, parted: bool) -> Row:
        text = self.message("create", lambda: {"tableObjJson": tjson(self.tables[parted]), "files": []}, parted=parted)
        keys = Keys(EventKind.CREATE_TABLE, of(name), shape=shape(parted), locations=self.locations(name, parted))
        return "CREATE_TABLE", keys, numbered(text, name, 0, 0)

    def drop(self, name: str) -> Row:
        text = self.message("drop", lambda: {"tableObjJson": tjson(self.tables[False])})
        return "DROP_TABLE", Keys(EventKind.DROP_TABLE, of(name), shape=TableShape.PLAIN), numbered(text, name, 0, 0)

    def alter(self, name: str, rows: int, note: int, *, facets: bool, parted: bool = False) -> Row:
        """What differs from before is the statistics alone, or more."""

        def fields() -> Mapping[str, object]:
            before = with_numbers(self.tables[parted], "-1", NOTE if facets else "-1")
            return {"tableObjBeforeJson": tjson(before), "tableObjAfterJson": tjson(self.tables[parted])}

        text = self.message(f"alter {facets}", fields, parted=parted)
        places = self.locations(name, parted)
        keys = Keys(EventKind.ALTER_TABLE, of(name), shape=shape(parted), locations=places, facets_only=facets)
        return "ALTER_TABLE", keys, numbered(text, name, rows, note)

    def rename(self, was: str, name: str, rows: int, note: int) -> Row:
        """The directory is renamed too."""

        def fields() -> Mapping[str, object]:
            before = tjson(self.tables[False])
            return {"tableObjBeforeJson": before, "tableObjAfterJson": before.replace(TABLE, VALUE)}

        text = self.message("rename", fields).replace(VALUE, name)
        keys = Keys(EventKind.RENAME_TABLE, of(name), of(was), TableShape.PLAIN, locations=self.locations(name, False))
        return "ALTER_TABLE", keys, numbered(text, was, rows, note)

    def insert(self, name: str, rows: int, note: int) -> Row:
        text = self.message("insert", lambda: {"tableObjJson": tjson(self.tables[False]), **INSERTED})
        keys = Keys(EventKind.INSERT, of(name), shape=TableShape.PLAIN, locations=self.locations(name, False))
        return "INSERT", keys, numbered(text, name, rows, note)

    def insert_into(self, name: str, value: str, rows: int, note: int) -> Row:
        text = self.message("insert into", lambda: self.of_part(ptnObjJson=tjson(self.part), **INSERTED))
        return (
            "INSERT",
            self.keys(EventKind.INSERT, name, [value]),
            numbered(text.replace(VALUE, value), name, rows, note),
        )

    def add(self, name: str, values: Sequence[str]) -> Row:
        def fields() -> Mapping[str, object]:
            part = tjson(self.part)
            return self.of_part(partitionListJson=[part.replace(VALUE, f"{VALUE}{at}") for at in range(len(values))])

        text = self.message(f"add {len(values)}", fields)
        for at, value in enumerate(values):
            text = text.replace(f"{VALUE}{at}", value)
        return "ADD_PARTITION", self.keys(EventKind.ADD_PARTITIONS, name, values), numbered(text, name, 0, 0)

    def alter_partition(self, name: str, value: str, rows: int, note: int, *, facets: bool) -> Row:
        def fields() -> Mapping[str, object]:
            before = tjson(with_numbers(self.part, "-1", NOTE if facets else "-1"))
            return self.of_part(partitionObjBeforeJson=before, partitionObjAfterJson=tjson(self.part))

        text = self.message(f"alter partition {facets}", fields).replace(VALUE, value)
        keys = self.keys(EventKind.ALTER_PARTITIONS, name, [value], facets=facets)
        return "ALTER_PARTITION", keys, numbered(text, name, rows, note)

    def drop_partition(self, name: str, value: str) -> Row:
        text = self.message("drop partition", lambda: self.of_part(partitions=[{"ds": VALUE}])).replace(VALUE, value)
        keys = Keys(EventKind.DROP_PARTITIONS, of(name), shape=TableShape.PARTITIONED, partitions=(f"ds={value}",))
        return "DROP_PARTITION", keys, numbered(text, name, 0, 0)

    def of_part(self, **fields: object) -> Mapping[str, object]:
        return {"tableObjJson": tjson(self.tables[True]), **fields}

    def keys(self, kind: EventKind, name: str, values: Sequence[str], *, facets: bool = False) -> Keys:
        parts = tuple([f"ds={value}" for value in values])
        places = tuple([f"{self.root}/{name}/{part}" for part in parts])
        return Keys(
            kind, of(name), shape=TableShape.PARTITIONED, partitions=parts, locations=places, facets_only=facets
        )

    def locations(self, name: str, parted: bool) -> tuple[str, ...]:
        return () if parted else (f"{self.root}/{name}",)


Thing = TypeVar("Thing", Table, Partition)


def with_numbers(thing: Thing, rows: str = ROWS, note: str = NOTE) -> Thing:
    """As a metastore logs it, which has counted the files itself."""
    counted = {"numFiles": "1", "totalSize": "4096", "numRows": rows, "transient_lastDdlTime": str(SECONDS)}
    return replace(thing, parameters={**(thing.parameters or {}), **counted, "note": note})


def wide(table: Table) -> Table:
    assert table.storage is not None
    columns = tuple(Column(f"column_{number}", "string", "what it holds") for number in range(COLUMNS))
    return replace(table, storage=replace(table.storage, columns=columns))


def numbered(text: str, name: str, rows: int, note: int) -> str:
    return text.replace(TABLE, name).replace(ROWS, str(rows)).replace(NOTE, str(note))


def of(name: str) -> TableName:
    return TableName(DATABASE, name)


def shape(parted: bool) -> TableShape:
    return TableShape.PARTITIONED if parted else TableShape.PLAIN
