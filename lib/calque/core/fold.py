"""Events of one group of tables → its chain of states.

Nothing is observed here: what stood before the window is `BASE`, and whether an object existed is said by the first
event that touches it (a CREATE or ADD: it did not; anything else: it did). States are kept as changes of *cells*, so
that a chain costs what its events touch, and no message is decoded.

A cell is one independent thing that a reader can see: a name's table, a table's head, one partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.model.journal import Entry, Kind, Shape
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, BASE_DATA, Data, Head, Part, Version

LineageId = int
HeadCell = LineageId
PartCell = tuple[LineageId, str]


@dataclass(frozen=True, slots=True)
class Step:
    """The cells that one step changed, with their values after it. `events` are the ids that made the step."""

    events: tuple[EventId, ...]
    names: Mapping[TableName, LineageId | None] = field(default_factory=dict)
    heads: Mapping[LineageId, Head] = field(default_factory=dict)
    parts: Mapping[PartCell, Part | None] = field(default_factory=dict)
    cascades: frozenset[LineageId] = frozenset()

    @property
    def event_id(self) -> EventId:
        return self.events[-1]


@dataclass(slots=True)
class Chain:
    """A group's states. `names`, `heads`, `parts` are the cells before the first step, of everything that a step
    touches. `complete` lineages were created inside the window: all their partitions are in it. `facets` are
    statistics-only changes: the newest version of each object, by (lineage, partition or `""`)."""

    tables: tuple[TableName, ...]
    names: dict[TableName, LineageId | None] = field(default_factory=dict)
    heads: dict[LineageId, Head] = field(default_factory=dict)
    parts: dict[PartCell, Part | None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    complete: set[LineageId] = field(default_factory=set)
    shapes: dict[LineageId, Shape] = field(default_factory=dict)
    facets: dict[PartCell, Version] = field(default_factory=dict)
    events: int = 0


class Unfoldable(Exception):
    """The chain can't be known from these events: `table` must be read exactly."""

    def __init__(self, table: TableName, event_id: EventId, reason: str) -> None:
        self.table, self.event_id, self.reason = table, event_id, reason
        super().__init__(f"{table} at event {event_id}: {reason}")


def groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries of tables, split into groups: tables that a rename links share one. Order inside a group is the log's;
    groups come in the order of their first event."""
    parent: dict[TableName, TableName] = {}

    def root(name: TableName) -> TableName:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for entry in entries:
        if entry.keys.table is not None:
            first = root(entry.keys.table)
            if entry.keys.other is not None:
                parent[root(entry.keys.other)] = first
    found: dict[TableName, list[Entry]] = {}
    for entry in entries:
        if entry.keys.table is not None:
            found.setdefault(root(entry.keys.table), []).append(entry)
    return list(found.values())


RUNS = frozenset({"ALTER_PARTITION", "DROP_PARTITION"})
"""Types of which a contiguous run on one table may be one call of the source (design §1: 3.1 writes bulk calls so)."""


def same_run(one: Entry, next_: Entry) -> bool:
    """Whether two successive events of the log may belong to one call."""
    return (
        next_.event_id == one.event_id + 1
        and next_.event_type == one.event_type
        and next_.event_type in RUNS
        and next_.keys.kind == one.keys.kind
        and next_.keys.kind is not Kind.RENAME_PARTITION
        and next_.keys.table == one.keys.table
    )


def fold(entries: Sequence[Entry], cascaded: frozenset[EventId] = frozenset()) -> Chain:
    """The chain of one group. `cascaded` are the column changes known to have changed all partitions.

    Raises `Unfoldable` where an event's effect can't be told from its keys.
    """
    names = {entry.keys.table for entry in entries} | {entry.keys.other for entry in entries}
    folding = _Folding(Chain(tuple(sorted(name for name in names if name is not None)), events=len(entries)), cascaded)
    run: list[Entry] = []
    for entry in entries:
        if run and not same_run(run[-1], entry):
            folding.step(run)
            run = []
        run.append(entry)
    if run:
        folding.step(run)
    return folding.chain


class _Folding:
    """The state while folding: current cells, and the step being written."""

    def __init__(self, chain: Chain, cascaded: frozenset[EventId]) -> None:
        self.chain = chain
        self.cascaded = cascaded
        self.names: dict[TableName, LineageId | None] = {}
        self.heads: dict[LineageId, Head] = {}
        self.parts: dict[PartCell, Part | None] = {}
        self.changed_names: dict[TableName, LineageId | None] = {}
        self.changed_heads: dict[LineageId, Head] = {}
        self.changed_parts: dict[PartCell, Part | None] = {}
        self.cascades: set[LineageId] = set()

    def step(self, run: Sequence[Entry]) -> None:
        self.changed_names, self.changed_heads, self.changed_parts, self.cascades = {}, {}, {}, set()
        for entry in run:
            self.apply(entry)
        if self.changed_names or self.changed_heads or self.changed_parts:
            self.chain.steps.append(
                Step(
                    tuple(entry.event_id for entry in run),
                    self.changed_names,
                    self.changed_heads,
                    self.changed_parts,
                    frozenset(self.cascades),
                )
            )

    def apply(self, entry: Entry) -> None:
        keys, event_id = entry.keys, entry.event_id
        table = keys.table
        assert table is not None
        match keys.kind:
            case Kind.CREATE_TABLE:
                self.create(table, entry)
            case Kind.DROP_TABLE:
                self.present(table)
                self.name(table, None)
            case Kind.ALTER_TABLE:
                self.alter(table, table, entry)
            case Kind.RENAME_TABLE:
                assert keys.other is not None
                self.alter(keys.other, table, entry)
            case Kind.ADD_PARTITIONS:
                self.add_partitions(table, entry)
            case Kind.ALTER_PARTITIONS:
                self.alter_partitions(table, entry)
            case Kind.RENAME_PARTITION:
                self.rename_partition(table, entry)
            case Kind.DROP_PARTITIONS:
                lineage = self.present(table)
                for partition in keys.partitions:
                    self.part(lineage, partition)
                    self.set_part(lineage, partition, None)
            case Kind.INSERT | Kind.SCAN:
                self.insert(table, entry)
            case Kind.UNKNOWN:
                raise Unfoldable(table, event_id, keys.defect or f"events of type {entry.event_type} are not known")
            case _:
                pass

    def create(self, table: TableName, entry: Entry) -> None:
        if self.names.get(table) is not None:
            raise Unfoldable(table, entry.event_id, "it was created while it existed")
        if table not in self.names:
            self.chain.names[table] = None
        lineage = self.new_lineage()
        self.chain.complete.add(lineage)
        self.chain.shapes[lineage] = entry.keys.shape
        self.name(table, lineage)
        version = Version(entry.event_id)
        self.set_head(Head(lineage, version, str(entry.event_id), data_of(entry), entry.event_id))

    def alter(self, was: TableName, table: TableName, entry: Entry) -> None:
        lineage = self.present(was)
        keys = entry.keys
        if keys.shape is not Shape.NOT_SAID:
            before = self.chain.shapes.get(lineage, Shape.NOT_SAID)
            if before not in (Shape.NOT_SAID, keys.shape):
                raise Unfoldable(table, entry.event_id, f"it changed from {before.value} to {keys.shape.value}")
            self.chain.shapes[lineage] = keys.shape
        if was != table:
            if self.names.get(table) is not None:
                raise Unfoldable(table, entry.event_id, "a table was renamed onto it while it existed")
            if table not in self.names:
                self.names[table] = None
                self.chain.names[table] = None
            self.name(was, None)
            self.name(table, lineage)
        head = self.heads[lineage]
        if keys.facets_only and was == table:
            self.chain.facets[lineage, ""] = Version(entry.event_id)
        else:
            self.chain.facets.pop((lineage, ""), None)
            head = replace(head, version=Version(entry.event_id), since=entry.event_id)
        if (data := data_of(entry)) is not None:
            head = replace(head, data=data, since=entry.event_id)
        if entry.event_id in self.cascaded:
            self.cascades.add(lineage)
        if head != self.heads[lineage]:
            self.set_head(head)

    def add_partitions(self, table: TableName, entry: Entry) -> None:
        lineage = self.present(table)
        for index, (partition, data) in enumerate(zip(entry.keys.partitions, datas_of(entry), strict=True)):
            if self.parts.get((lineage, partition)) is not None:
                raise Unfoldable(table, entry.event_id, f"partition {partition} was added while it existed")
            self.chain.parts.setdefault((lineage, partition), None)
            added = Part(
                f"{partition}@{entry.event_id}",
                Version(entry.event_id, index),
                data,
                str(entry.event_id),
                entry.event_id,
            )
            self.set_part(lineage, partition, added)

    def alter_partitions(self, table: TableName, entry: Entry) -> None:
        lineage = self.present(table)
        for index, (partition, data) in enumerate(zip(entry.keys.partitions, datas_of(entry), strict=True)):
            part = self.present_part(table, lineage, partition, entry)
            if entry.keys.facets_only:
                self.chain.facets[lineage, partition] = Version(entry.event_id, index)
                altered = replace(part, data=data, since=entry.event_id)
            else:
                self.chain.facets.pop((lineage, partition), None)
                altered = replace(part, version=Version(entry.event_id, index), data=data, since=entry.event_id)
            self.set_part(lineage, partition, altered)

    def rename_partition(self, table: TableName, entry: Entry) -> None:
        lineage = self.present(table)
        (was,), (name,), (data,) = entry.keys.others, entry.keys.partitions, datas_of(entry)
        part = self.present_part(table, lineage, was, entry)
        if self.parts.get((lineage, name)) is not None:
            raise Unfoldable(table, entry.event_id, f"partition {was} was renamed onto {name} while that existed")
        self.chain.parts.setdefault((lineage, name), None)
        self.set_part(lineage, was, None)
        moved = replace(part, version=Version(entry.event_id), data=data, since=entry.event_id)
        self.set_part(lineage, name, moved)

    def insert(self, table: TableName, entry: Entry) -> None:
        lineage = self.present(table)
        if entry.keys.partitions:
            for partition, data in zip(entry.keys.partitions, datas_of(entry), strict=True):
                part = self.present_part(table, lineage, partition, entry)
                self.set_part(lineage, partition, replace(part, data=data, since=entry.event_id))
        elif (data_ := data_of(entry)) is not None:
            self.set_head(replace(self.heads[lineage], data=data_, since=entry.event_id))

    def present(self, table: TableName) -> LineageId:
        """The lineage that has the name now; the first touch of a name says that it was there before the window."""
        if table not in self.names:
            lineage = self.new_lineage()
            self.names[table] = lineage
            self.heads[lineage] = Head(lineage, BASE, data=BASE_DATA)
            self.chain.names[table] = lineage
            self.chain.heads[lineage] = self.heads[lineage]
        found = self.names[table]
        if found is None:
            raise Unfoldable(table, 0, "it was changed while it did not exist")
        return found

    def part(self, lineage: LineageId, partition: str) -> Part | None:
        cell = (lineage, partition)
        if cell not in self.parts:
            before = None if lineage in self.chain.complete else Part(partition, BASE, BASE_DATA)
            self.parts[cell] = before
            self.chain.parts[cell] = before
        return self.parts[cell]

    def present_part(self, table: TableName, lineage: LineageId, partition: str, entry: Entry) -> Part:
        part = self.part(lineage, partition)
        if part is None:
            raise Unfoldable(table, entry.event_id, f"partition {partition} was changed while it did not exist")
        return part

    def new_lineage(self) -> LineageId:
        return len(self.heads) + 1

    def name(self, table: TableName, lineage: LineageId | None) -> None:
        self.names[table] = lineage
        self.changed_names[table] = lineage

    def set_head(self, head: Head) -> None:
        self.heads[head.lineage] = head
        self.changed_heads[head.lineage] = head

    def set_part(self, lineage: LineageId, partition: str, part: Part | None) -> None:
        if part is None:
            self.chain.facets.pop((lineage, partition), None)
        self.parts[lineage, partition] = part
        self.changed_parts[lineage, partition] = part


def data_of(entry: Entry) -> Data | None:
    """The content of a plain table that the event names, if any."""
    if entry.keys.partitions or not entry.keys.locations:
        return None
    return Data(entry.event_id, entry.keys.locations[0])


def datas_of(entry: Entry) -> tuple[Data, ...]:
    """The content of each partition that the event names; partitions of views have none."""
    locations = entry.keys.locations or ("",) * len(entry.keys.partitions)
    return tuple(Data(entry.event_id, location) for location in locations)
