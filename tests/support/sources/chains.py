"""A source in a few dictionaries that writes journal entries, a target that interprets hops, and all states between.

Nothing here knows fold, chain or planner: the states are the source's own, after each of its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from calque.core.states.locate import ObservedPart, ObservedTable
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    Head,
    HiddenBuild,
    Hop,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)

Files = frozenset[int]
NAMES = tuple(TableName("d", table) for table in ("a", "b", "tmp", "out"))
PARTITIONS = ("p=1", "p=2", "p=3")


@dataclass(frozen=True)
class PartShown:
    """A partition as a reader sees it: which definition (the event that gave it), which columns, which files."""

    version: tuple[EventId, int]
    columns: EventId
    files: Files
    mark: EventId = field(default=0, compare=False)
    incarnation: str = field(default="", compare=False)


@dataclass(frozen=True)
class TableShown:
    version: EventId
    columns: EventId
    files: Files | None
    parts: Mapping[str, PartShown] = field(default_factory=dict)
    mark: EventId = field(default=0, compare=False)
    incarnation: str = field(default="", compare=False)


State = dict[TableName, TableShown]


class Source:
    """Tables that calls change. `entries` is the log, `states` what readers saw, by the event id it began at."""

    def __init__(self) -> None:
        self.tables: State = {}
        self.entries: list[Entry] = []
        self.states: list[tuple[EventId, State]] = [(0, {})]
        self.contents: dict[Data, Files] = {}
        self.sizes: dict[int, int] = {}
        self.definitions: dict[tuple[EventId, int], EventId] = {}
        """The columns of each definition in an event: a table's at index -1."""
        self.event = 0

    # Calls

    def create(self, name: TableName, partitioned: bool) -> None:
        event = self.next()
        files = None if partitioned else self.new_files(0)
        self.tables[name] = TableShown(event, event, files, {}, event, str(event))
        self.note_table(event, event)
        shape = TableShape.PARTITIONED if partitioned else TableShape.PLAIN
        self.log(Keys(EventKind.CREATE_TABLE, name, shape=shape, locations=self.location(name, files, event)))
        self.seen()

    def drop(self, name: TableName) -> None:
        self.next()
        del self.tables[name]
        self.log(Keys(EventKind.DROP_TABLE, name))
        self.seen()

    def alter(self, name: TableName, to: TableName, columns: bool, cascade: bool) -> bool:
        """Whether it was a change of columns that changed the partitions too."""
        event = self.next()
        table = self.tables.pop(name)
        parts = table.parts
        if columns and cascade:
            parts = {key: replace(part, columns=event) for key, part in parts.items()}
        self.tables[to] = replace(
            table, version=event, columns=event if columns else table.columns, parts=parts, mark=event
        )
        self.note_table(event, self.tables[to].columns)
        other = name if name != to else None
        self.log(
            Keys(
                EventKind.ALTER_TABLE if other is None else EventKind.RENAME_TABLE,
                to,
                other,
                shape=TableShape.PLAIN if table.files is not None else TableShape.PARTITIONED,
                locations=self.location(to, table.files, event),
                columns_changed=columns and table.files is None,
            )
        )
        self.seen()
        return columns and cascade and table.files is None

    def insert(self, name: TableName, partition: str, overwrite: bool) -> None:
        event, table = self.next(), self.tables[name]
        if partition:
            part = table.parts[partition]
            files = self.new_files(1) | (frozenset() if overwrite else part.files)
            parts = {**table.parts, partition: replace(part, files=files, mark=event)}
            self.tables[name] = replace(table, parts=parts)
            keys = Keys(
                EventKind.INSERT, name, partitions=(partition,), locations=self.location(partition, files, event)
            )
        else:
            assert table.files is not None
            files = self.new_files(1) | (frozenset() if overwrite else table.files)
            self.tables[name] = replace(table, files=files, mark=event)
            keys = Keys(EventKind.INSERT, name, locations=self.location(name, files, event))
        self.log(keys)
        self.seen()

    def add(self, name: TableName, partitions: Sequence[str]) -> None:
        event, table = self.next(), self.tables[name]
        parts = dict(table.parts)
        locations: tuple[str, ...] = ()
        for index, partition in enumerate(partitions):
            files = self.new_files(index)
            parts[partition] = PartShown((event, index), table.columns, files, event, str(event))
            self.definitions[event, index] = table.columns
            locations += self.location(partition, files, event)
        self.tables[name] = replace(table, parts=parts)
        self.log(Keys(EventKind.ADD_PARTITIONS, name, partitions=tuple(partitions), locations=locations))
        self.seen()

    def alter_partitions(self, name: TableName, partitions: Sequence[str]) -> None:
        """One call that is an event for each partition."""
        for partition in partitions:
            event, table = self.next(), self.tables[name]
            part = replace(table.parts[partition], version=(event, 0), mark=event)
            self.definitions[event, 0] = part.columns
            self.tables[name] = replace(table, parts={**table.parts, partition: part})
            locations = self.location(partition, part.files, event)
            self.log(
                Keys(EventKind.ALTER_PARTITIONS, name, partitions=(partition,), locations=locations), "ALTER_PARTITION"
            )
        self.seen()

    def rename_partition(self, name: TableName, was: str, to: str) -> None:
        event, table = self.next(), self.tables[name]
        parts = dict(table.parts)
        part = replace(parts.pop(was), version=(event, 0), mark=event)
        parts[to] = part
        self.definitions[event, 0] = part.columns
        self.tables[name] = replace(table, parts=parts)
        locations = self.location(to, part.files, event)
        self.log(Keys(EventKind.RENAME_PARTITION, name, partitions=(to,), others=(was,), locations=locations))
        self.seen()

    def drop_partitions(self, name: TableName, partitions: Sequence[str]) -> None:
        self.next()
        table = self.tables[name]
        parts = {key: part for key, part in table.parts.items() if key not in partitions}
        self.tables[name] = replace(table, parts=parts)
        self.log(Keys(EventKind.DROP_PARTITIONS, name, partitions=tuple(partitions)))
        self.seen()

    # Records

    def next(self) -> EventId:
        self.event += 1
        return self.event

    def skip(self) -> None:
        """An event that concerns nothing here."""
        self.event += 1

    def new_files(self, number: int) -> Files:
        found = frozenset(range(len(self.sizes), len(self.sizes) + number))
        self.sizes |= {file: 2 ** (file % 30) for file in found}
        return found

    def location(self, of: object, files: Files | None, event: EventId) -> tuple[str, ...]:
        if files is None:
            return ()
        self.contents[Data(event, f"/{of}")] = files
        return (f"/{of}",)

    def note_table(self, event: EventId, columns: EventId) -> None:
        self.definitions[event, -1] = columns

    def log(self, keys: Keys, event_type: str = "") -> None:
        self.entries.append(Entry(self.event, 0, event_type or keys.kind.value, keys))

    def seen(self) -> None:
        self.states.append((self.event, dict(self.tables)))

    def state_at(self, event: EventId) -> State:
        return next(state for at, state in reversed(self.states) if at <= event)

    def size(self, files: Files) -> int:
        return sum(self.sizes[file] for file in files)


def play(source: Source, draws: Sequence[tuple[int, int, int]]) -> set[EventId]:
    """Make the calls that the numbers choose; the column changes that cascaded."""
    cascaded = set()
    for operation, one, other in draws:
        names = sorted(source.tables)
        free = [name for name in NAMES if name not in source.tables]
        name = names[one % len(names)] if names else None
        table = source.tables[name] if name else None
        if operation == 0 or name is None or table is None:
            if free:
                source.create(free[one % len(free)], other % 3 > 0)
            continue
        there, missing = sorted(table.parts), [key for key in PARTITIONS if key not in table.parts]
        partition = there[other % len(there)] if there else ""
        match operation:
            case 1:
                source.drop(name)
            case 2 if free:
                source.alter(name, free[other % len(free)], columns=False, cascade=False)
            case 3:
                if source.alter(name, name, columns=other % 3 > 0, cascade=other % 3 > 1):
                    cascaded.add(source.event)
            case 4 | 5 if table.files is not None or partition:
                source.insert(name, partition, overwrite=operation == 5)
            case 6 | 7 if table.files is None and missing:
                source.add(name, missing[: 1 + other % len(missing)])
            case 8 if partition:
                source.alter_partitions(name, there[other % len(there) :])
            case 9 if partition and missing:
                source.rename_partition(name, partition, missing[0])
            case 10 if partition:
                source.drop_partitions(name, there[other % len(there) :])
            case 11:
                source.skip()
            case 12 if {NAMES[0], NAMES[1]} <= source.tables.keys() and NAMES[2] in free:
                for was, to in ((NAMES[0], NAMES[2]), (NAMES[1], NAMES[0]), (NAMES[2], NAMES[1])):
                    source.alter(was, to, columns=False, cascade=False)
            case _:
                pass
    return cascaded


OPERATIONS = 13


class Target:
    """A catalog that hops change. `look` sees every state that a reader could."""

    def __init__(self, source: Source, state: State, look: Callable[[State], None]) -> None:
        self.source, self.look = source, look
        self.tables = dict(state)

    def run(self, hop: Hop) -> None:
        operation = hop.operation
        match operation:
            case CreateTable(table, head):
                self.tables[table] = self.table(head, None, {})
            case HiddenBuild(table, head, partitions):
                self.tables[table] = self.table(head, None, partitions_of(self, partitions))
            case AlterTable(table, was, head, switch, cascade):
                self.tables[table] = self.altered(self.tables.pop(was), head, switch, cascade)
            case DropTable(table):
                del self.tables[table]
            case AddPartitions(table, partitions):
                assert not self.tables[table].parts.keys() & dict(partitions).keys()
                self.put(table, partitions_of(self, partitions))
            case AlterPartitions(table, partitions, switched):
                self.put(table, self.changed(table, partitions, switched))
            case RenamePartition(table, was, name, part):
                parts = dict(self.tables[table].parts)
                old = parts.pop(was)
                assert name not in parts
                parts[name] = replace(self.part(part, old), files=old.files)
                self.tables[table] = replace(self.tables[table], parts=parts)
            case DropPartitions(table, names):
                self.take(table, names)
            case Publish(table, partition, data):
                self.publish(table, partition, self.source.contents[data])
            case PrepareFlipSweep(table, added, changed, doomed, header):
                if header is not None:
                    old = self.tables.pop(header.was)
                    self.tables[table] = self.altered(old, header.head, header.switch, header.cascade)
                    self.look(self.tables)
                self.put(table, self.changed(table, changed, frozenset(dict(changed))) | partitions_of(self, added))
                self.take(table, doomed)
            case CommitTable(table, None, head, partitions):
                self.tables[table] = self.table(head, None, partitions_of(self, existing(partitions)))
            case CommitTable(table, was, head, partitions, switched, cascade):
                assert was is not None
                self.tables[table] = self.altered(self.tables.pop(was), head, "" in switched, bool(cascade))
                self.put(table, self.changed(table, existing(partitions), switched - {""}))
                self.take(table, [name for name, part in partitions if part is None])
            case Rebuild(table, was, head, partitions, whole, cascade):
                assert was is not None
                old = self.tables.pop(was)
                self.look(self.tables)
                if whole:
                    old = self.table(head, None, {})
                other_files = head.data is not None and head.data.event_id != 0
                self.tables[table] = self.altered(old, head, other_files, bool(cascade))
                self.put(table, self.changed(table, existing(partitions), frozenset(dict(partitions))))
                self.take(table, [name for name, part in partitions if part is None])
            case _:
                assert_never(operation)
        self.look(self.tables)

    def table(self, head: Head, old: TableShown | None, parts: Mapping[str, PartShown]) -> TableShown:
        version, columns = head.version.event_id, self.columns(head.version.event_id, -1)
        if version == 0:
            assert old is not None
            version, columns = old.version, old.columns
        files = self.source.contents[head.data] if head.data is not None and head.data.event_id else None
        incarnation = head.incarnation or (old.incarnation if old else "")
        return TableShown(version, columns, files, parts, head.since or (old.mark if old else 0), incarnation)

    def columns(self, event: EventId, index: int) -> EventId:
        return self.source.definitions[event, index] if event else 0

    def altered(self, old: TableShown, head: Head, switch: bool, cascade: bool) -> TableShown:
        table = self.table(head, old, old.parts)
        if not switch:
            table = replace(table, files=old.files)
        if cascade:
            parts = {name: replace(part, columns=table.columns) for name, part in old.parts.items()}
            table = replace(table, parts=parts)
        return table

    def part(self, part: Part, old: PartShown | None) -> PartShown:
        event, index = part.version.event_id, part.version.index
        files = self.source.contents[part.data] if part.data.event_id else frozenset()
        incarnation = part.incarnation or (old.incarnation if old else "")
        if not event:
            assert old is not None
            columns = self.columns(part.columns, -1) if part.columns else old.columns
            return PartShown(old.version, columns, files, part.since or old.mark, incarnation)
        columns = self.columns(part.columns or event, -1 if part.columns else index)
        return PartShown((event, index), columns, files, part.since, incarnation)

    def changed(
        self, table: TableName, partitions: Sequence[tuple[str, Part]], switched: frozenset[str]
    ) -> dict[str, PartShown]:
        """New values of partitions; those that are not switched keep their files."""
        found, there = {}, self.tables[table].parts
        for name, part in partitions:
            old = there.get(name)
            new = self.part(part, old)
            if old is not None and name not in switched:
                new = replace(new, files=old.files)
            found[name] = new
        return found

    def put(self, table: TableName, parts: Mapping[str, PartShown]) -> None:
        self.tables[table] = replace(self.tables[table], parts={**self.tables[table].parts, **parts})

    def take(self, table: TableName, names: Sequence[str]) -> None:
        there = self.tables[table].parts
        assert set(names) <= there.keys()
        kept = {name: part for name, part in there.items() if name not in names}
        self.tables[table] = replace(self.tables[table], parts=kept)

    def publish(self, table: TableName, partition: str, files: Files) -> None:
        old = self.tables[table]
        if partition:
            part = old.parts[partition]
            assert part.files <= files
            self.put(table, {partition: replace(part, files=files)})
        else:
            assert old.files is not None
            assert old.files <= files
            self.tables[table] = replace(old, files=files)

    def observed(
        self, names: Sequence[TableName], fingerprint: Callable[[Files], str]
    ) -> Mapping[TableName, ObservedTable | None]:
        """What `names` show, in the locator's terms."""
        return {
            name: self.observed_table(self.tables[name], fingerprint) if name in self.tables else None for name in names
        }

    def observed_table(self, table: TableShown, fingerprint: Callable[[Files], str]) -> ObservedTable:
        def content(files: Files | None) -> tuple[str, int]:
            return ("", 0) if files is None else (fingerprint(files), self.source.size(files))

        return ObservedTable(
            table.mark,
            table.incarnation,
            *content(table.files),
            {
                name: ObservedPart(part.mark, part.incarnation, *content(part.files))
                for name, part in table.parts.items()
            },
        )


def begun(hop: Hop, count: int) -> Hop:
    """What is done of a hop in parts when calque dies after `count` partitions of its list; of a flip, all of it."""
    operation = hop.operation
    match operation:
        case AddPartitions(_, partitions):
            return replace(hop, operation=replace(operation, partitions=partitions[:count]))
        case AlterPartitions(_, partitions):
            return replace(hop, operation=replace(operation, partitions=partitions[:count]))
        case DropPartitions(_, names):
            return replace(hop, operation=replace(operation, names=names[:count]))
        case _:
            return hop


def existing(partitions: Sequence[tuple[str, Part | None]]) -> list[tuple[str, Part]]:
    return [(name, part) for name, part in partitions if part is not None]


def partitions_of(target: Target, partitions: Sequence[tuple[str, Part]]) -> dict[str, PartShown]:
    return {name: target.part(part, None) for name, part in partitions}
