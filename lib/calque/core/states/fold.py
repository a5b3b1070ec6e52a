"""The fold: events of one group of tables become its chain of states.

The fold observes neither source nor target. The state before the window is `BASE`, and the first event that touches an
object says whether it existed (a CREATE or ADD: it did not; any other: it did). States are kept as changes of *cells*,
so that a chain costs as much as its events touch, and no message is decoded.

A cell is one independent thing that a reader can see: a name's table, a table's head, one partition. A *lineage* is one
table under all names that it has in the window; a partition has one too, through renames of the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import assert_never

from calque.core.events.effects import BRINGS_TABLE, OF_FILES, PART_OF_LOOK, TYPES_IN_RUNS
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, BASE_DATA, Data, Head, Part, Version

LineageId = int
PartCell = tuple[LineageId, str]


@dataclass(frozen=True, slots=True)
class Step:
    """The cells that one step changed, with their values after it. `events` are the ids of the events that made the
    step.

    `cascades` are lineages all of whose partitions got the table's columns; `columns` are lineages whose own columns
    changed without those of their partitions. `doubtful` are lineages whose partitions' columns are not known from this
    step until the next one that cascades or settles them; `settled` are lineages whose partitions' columns are known
    again.
    """

    events: tuple[EventId, ...]
    names: Mapping[TableName, LineageId | None] = field(default_factory=dict)
    heads: Mapping[LineageId, Head] = field(default_factory=dict)
    parts: Mapping[PartCell, Part | None] = field(default_factory=dict)
    cascades: frozenset[LineageId] = frozenset()
    columns: frozenset[LineageId] = frozenset()
    doubtful: frozenset[LineageId] = frozenset()
    settled: frozenset[LineageId] = frozenset()

    @property
    def event_id(self) -> EventId:
        return self.events[-1]


@dataclass(slots=True)
class Chain:
    """The states of a group in a window, in order.

    `names`, `heads` and `parts` are the cells before the first step, of every object that a step touches. `complete`
    lineages were created inside the window: all their partitions are in it. `transactional` ones of these were created
    as ACID tables.

    `facets` has the newest change of statistics alone, by (lineage, partition or `""`), and the newest version of each
    renamed partition, whose files a target's server may count anew (`ports.Partitions.rename_partition`).
    `facet_events` are the changes of column statistics or constraints, in order: the event, the lineage, and the
    partition (or `""`) by its name then.

    `renamed` are contents from before the window under the names that renames gave them, with the lineage and the
    partition's. `arrivals` says, in order, from which event on a name shows a table of which the target has nothing
    (True), or shows such a table no longer (False). In the states such a name shows none.
    """

    tables: tuple[TableName, ...]
    names: dict[TableName, LineageId | None] = field(default_factory=dict)
    heads: dict[LineageId, Head] = field(default_factory=dict)
    parts: dict[PartCell, Part | None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    complete: set[LineageId] = field(default_factory=set)
    shapes: dict[LineageId, TableShape] = field(default_factory=dict)
    transactional: set[LineageId] = field(default_factory=set)
    facets: dict[PartCell, Version] = field(default_factory=dict)
    facet_events: list[tuple[EventId, LineageId, str]] = field(default_factory=list)
    renamed: dict[Data, PartCell] = field(default_factory=dict)
    arrivals: list[tuple[EventId, TableName, bool]] = field(default_factory=list)
    events: int = 0

    def arrived(self, upto: EventId) -> set[TableName]:
        """Return the names that, after event `upto`, show a table of which the target has nothing."""
        last = {name: is_there for event_id, name, is_there in self.arrivals if event_id <= upto}
        return {name for name, is_there in last.items() if is_there}

    def lacked(self, upto: EventId) -> set[TableName]:
        """Return the names that, after event `upto` or an earlier one of the chain, show a table of which the target
        has nothing."""
        return {name for event_id, name, is_there in self.arrivals if is_there and event_id <= upto}


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The effects that column changes of tables had on partitions. `cascaded` are the events of the last changes that
    gave all partitions the table's columns. `untold` are the events of which that is not known, each with the
    partitions that were there then: their columns are known again when all of these were altered or dropped."""

    cascaded: frozenset[EventId] = frozenset()
    untold: Mapping[EventId, frozenset[str]] = field(default_factory=dict)


class Unfoldable(Exception):
    """The error for a group whose chain does not follow from its events: `table` must be read exactly."""

    def __init__(self, table: TableName, event_id: EventId, reason: str) -> None:
        self.table, self.event_id, self.reason = table, event_id, reason
        super().__init__(f"{table} at event {event_id}: {reason}")


def alone(_entry: Entry) -> bool:
    return False


def groups(entries: Sequence[Entry], is_bound: Callable[[Entry], bool] = alone) -> list[list[Entry]]:
    """Split entries of tables into groups: tables that a rename links share one, and so do the tables of entries of one
    event that are bound to each other. The order inside a group is the log's; groups come in the order of their first
    event."""
    return linked(entries, lambda name: name, is_bound)


def groups_of_databases(entries: Sequence[Entry], is_bound: Callable[[Entry], bool] = alone) -> list[list[Entry]]:
    """Split entries of tables into groups of whole databases: all tables of a database share a group, and so do
    databases that a rename of a table, or entries that are bound to each other, link. The order is that of
    `groups`."""
    return linked(entries, lambda name: TableName(name.database), is_bound)


def linked(
    entries: Sequence[Entry], place: Callable[[TableName], TableName], is_bound: Callable[[Entry], bool]
) -> list[list[Entry]]:
    """Split entries of tables by the `place` of their names; places that a rename, or one event, links are one."""
    parent: dict[TableName, TableName] = {}
    """For each place that was linked to another one, the next place; all others stand for themselves."""
    first_of: dict[EventId, TableName] = {}

    def root(name: TableName) -> TableName:
        node = place(name)
        while (above := parent.get(node)) is not None:
            parent[node] = parent.get(above, above)
            node = above
        return node

    def link(one: TableName, other: TableName) -> None:
        was, now = root(one), root(other)
        if was != now:
            parent[was] = now

    for entry in entries:
        keys = entry.keys
        if keys.table is None:
            continue
        if keys.other is not None:
            link(keys.other, keys.table)
        if is_bound(entry):
            link(first_of.setdefault(entry.event_id, keys.table), keys.table)
    roots = cache(root)
    groups: dict[TableName, list[Entry]] = {}
    for entry in entries:
        if entry.keys.table is not None:
            groups.setdefault(roots(entry.keys.table), []).append(entry)
    return list(groups.values())


def same_run(one: Entry, next_: Entry) -> bool:
    """Tell whether two successive events of the log may belong to one call, or are of one look, so that they are one
    step.

    A call of 3.1 that drops partitions `ds=1` and `ds=2` writes events 80 and 81: the source never showed a state
    between them. A call renames only one partition, and names a partition again only to truncate it (3.1: a truncate
    and an alteration of each). The entries of one commit, one for each table that it changed, have one event.
    """
    before, after = one.keys, next_.keys
    if next_.event_id == one.event_id and after.kind is before.kind is EventKind.COMMIT:
        return True
    if next_.event_id != one.event_id + 1:
        return False
    if one.event_type.startswith(PART_OF_LOOK) and next_.event_type.startswith(PART_OF_LOOK):
        return before.table == after.table and one.event_time == next_.event_time
    if next_.event_type != one.event_type or next_.event_type not in TYPES_IN_RUNS:
        return False
    return (
        after.kind is before.kind
        and after.kind is not EventKind.RENAME_PARTITION
        and after.table == before.table
        and (after.replaces != before.replaces or set(before.partitions).isdisjoint(after.partitions))
    )


def fold(
    entries: Sequence[Entry],
    column_changes: ColumnChanges | None = None,
    carrying: frozenset[EventId] = frozenset(),
    follows: Callable[[TableName], bool] = lambda _: True,
    stays: Callable[[TableName], bool] = lambda _: False,
    subset: Callable[[TableName], Hashable] = lambda _: None,
) -> Chain:
    """Return the chain of one group, from its entries in the log's order. Raises `Unfoldable` where an event's effect
    can't be told from its keys.

    A column change that is not in `column_changes` did not cascade for certain only if neither a change that did nor a
    drop of the table follows it; else its step is doubtful. `carrying` are the renames that leave contents as they
    were.

    The other parameters say of which tables nothing is known, so that their names show none in the states
    (`Chain.arrivals`):

    - `follows` tells which names the target shows as they were before. Of the table of any other name nothing is known
      but where renames take it. A rename without a name before brings such a table, too.
    - `stays` tells under which names files stay at the source. A rename from such a name to another one, or the other
      way, brings such a table.
    - `subset` gives the part of a table that a name shows. A rename to a name with another part brings such a table.
    """
    folding = _FoldState(column_changes or ColumnChanges(), carrying, follows, stays, subset)
    previous: Entry | None = None
    for entry in entries:
        if previous is not None and not same_run(previous, entry):
            folding.end_step()
        folding.apply(entry)
        previous = entry
    folding.end_step()
    folding.mark_doubtful()
    chain = folding.chain
    chain.tables = tuple(sorted(names_in(entries)))
    chain.events = len(entries)
    return chain


def defining(entries: Sequence[Entry], stays: Callable[[TableName], bool] = lambda _: True) -> list[Entry]:
    """Return the entries of a group that matter where the tables that `stays` chooses have one and the same content in
    all states; the last entry where none does.

    Changes of such a table's files are left out, and alterations that only count rows lose their locations, because
    they say nothing of a content either.
    """
    bare: dict[Keys, Keys] = {}
    defining_entries = []
    for entry in entries:
        keys = entry.keys
        if keys.table is not None and not stays(keys.table):
            defining_entries.append(entry)
            continue
        if keys.kind in OF_FILES:
            continue
        if keys.facets_only and keys.locations:
            if keys not in bare:
                bare[keys] = replace(keys, locations=())
            entry = Entry(entry.event_id, entry.event_time, entry.event_type, bare[keys], entry.scans)
        defining_entries.append(entry)
    return defining_entries or list(entries[-1:])


NO_NAMES: Mapping[TableName, LineageId | None] = {}
NO_HEADS: Mapping[LineageId, Head] = {}
NO_PARTS: Mapping[PartCell, Part | None] = {}
NONE: frozenset[LineageId] = frozenset()
"""The empty collections of steps that change no cell of a kind; never written to."""


class _FoldState:
    """The state of a fold: the present cells, and the step that is being written."""

    def __init__(
        self,
        column_changes: ColumnChanges,
        carrying: frozenset[EventId],
        follows: Callable[[TableName], bool],
        stays: Callable[[TableName], bool],
        subset: Callable[[TableName], Hashable],
    ) -> None:
        self.chain = Chain(())
        self.column_changes, self.carrying, self.follows, self.stays = column_changes, carrying, follows, stays
        self.subset = subset
        self.foreign: set[TableName] = set()
        """Names that show a table of which nothing is known."""
        self.left: dict[LineageId, TableName] = {}
        """Tables that went to names that the target does not show, with the names that they left. A table that comes
        from there to another name can't be made of the target's: all that it showed went with the old name."""
        self.names: dict[TableName, LineageId | None] = {}
        self.heads: dict[LineageId, Head] = {}
        self.parts: dict[PartCell, Part | None] = {}
        self.events: list[EventId] = []
        self.changed_names: dict[TableName, LineageId | None] = {}
        self.changed_heads: dict[LineageId, Head] = {}
        self.changed_parts: dict[PartCell, Part | None] = {}
        self.cascades: set[LineageId] = set()
        self.counted_anew: set[PartCell] = set()
        self.columns: set[LineageId] = set()
        self.undecided: dict[LineageId, list[int]] = {}
        """Steps that changed columns and are not known to have cascaded, as long as no later event decides that."""
        self.doubtful: dict[int, set[LineageId]] = {}
        self.doubted: dict[LineageId, set[str]] = {}
        """Partitions whose columns an untold change may have changed."""
        self.settled: set[LineageId] = set()

    def end_step(self) -> None:
        names, heads, parts = NO_NAMES, NO_HEADS, NO_PARTS
        if self.changed_names:
            names, self.changed_names = self.changed_names, {}
        if self.changed_heads:
            heads, self.changed_heads = self.changed_heads, {}
        if self.changed_parts:
            parts, self.changed_parts = self.changed_parts, {}
        if names or heads or parts:
            cascades, columns = NONE, NONE
            if self.cascades or self.columns:
                cascades, columns = frozenset(self.cascades), frozenset(self.columns)
                self.cascades.clear()
                self.columns.clear()
            settled = NONE
            if self.settled:
                settled = frozenset(self.settled)
                self.settled.clear()
            step = Step(tuple(self.events), names, heads, parts, cascades, columns, settled=settled)
            self.chain.steps.append(step)
        self.events.clear()

    def mark_doubtful(self) -> None:
        steps = self.chain.steps
        for index, lineages in self.doubtful.items():
            steps[index] = replace(steps[index], doubtful=frozenset(lineages))

    def apply(self, entry: Entry) -> None:
        table, event_id = entry.keys.table, entry.event_id
        assert table is not None
        kind, was = entry.keys.kind, entry.keys.other
        if kind is EventKind.RENAME_TABLE and (was is None or self.is_foreign(was)):
            self.arrive(table, was, event_id)
            return
        if kind in BRINGS_TABLE:
            if table in self.foreign:
                self.leave(table, event_id)
        elif self.is_foreign(table):
            if kind is EventKind.DROP_TABLE:
                self.leave(table, event_id)
            return
        self.events.append(event_id)
        match kind:
            case EventKind.INSERT | EventKind.SCAN | EventKind.COMMIT:
                self.insert(table, entry)
            case EventKind.ALTER_TABLE:
                self.alter(self.present(table, entry), entry)
            case EventKind.ALTER_PARTITIONS:
                self.alter_partitions(table, entry)
            case EventKind.ADD_PARTITIONS:
                self.add_partitions(table, entry)
            case EventKind.DROP_PARTITIONS:
                self.drop_partitions(table, entry)
            case EventKind.RENAME_PARTITION:
                self.rename_partition(table, entry)
            case EventKind.CREATE_TABLE:
                self.create(table, entry)
            case EventKind.DROP_TABLE:
                self.doubt(self.present(table, entry))
                self.name(table, None)
            case EventKind.RENAME_TABLE:
                self.rename(table, entry)
            case EventKind.UNKNOWN:
                raise Unfoldable(table, event_id, entry.keys.defect or f"{entry.event_type} does not say what it did")
            case EventKind.FACET:
                self.facet(table, entry)
            case (
                EventKind.NOTHING
                | EventKind.CREATE_DATABASE
                | EventKind.ALTER_DATABASE
                | EventKind.DROP_DATABASE
                | EventKind.CREATE_FUNCTION
                | EventKind.DROP_FUNCTION
            ):
                """Nothing of a table that makes a state."""
            case _:
                assert_never(kind)

    def is_foreign(self, name: TableName) -> bool:
        """Tell whether the name shows a table of which nothing is known."""
        return name in self.foreign or (name not in self.names and not self.follows(name))

    def arrive(self, table: TableName, was: TableName | None, event_id: EventId) -> None:
        """Note that a table of which nothing is known gets the name `table`, from the name `was` if that is given."""
        if was is not None:
            self.leave(was, event_id)
        if self.names.get(table) is not None:
            raise Unfoldable(table, event_id, "a table was renamed onto it while it existed")
        self.chain.names.setdefault(table, None)
        self.names[table] = None
        self.foreign.add(table)
        self.chain.arrivals.append((event_id, table, True))

    def leave(self, table: TableName, event_id: EventId) -> None:
        """Note that a table of which nothing is known has the name no more."""
        self.chain.names.setdefault(table, None)
        self.names[table] = None
        self.foreign.discard(table)
        self.chain.arrivals.append((event_id, table, False))

    def create(self, table: TableName, entry: Entry) -> None:
        if self.names.get(table) is not None:
            raise Unfoldable(table, entry.event_id, "it was created while it existed")
        self.chain.names.setdefault(table, None)
        lineage = self.new_lineage()
        self.chain.complete.add(lineage)
        self.chain.shapes[lineage] = entry.keys.shape
        if entry.keys.transactional:
            self.chain.transactional.add(lineage)
        self.name(table, lineage)
        self.set_head(Head(lineage, Version(entry.event_id), str(entry.event_id), self.data_of(entry), entry.event_id))

    def rename(self, table: TableName, entry: Entry) -> None:
        was = entry.keys.other
        assert was is not None
        lineage = self.present(was, entry)
        if self.stays(was) is not self.stays(table) or self.subset(was) != self.subset(table):
            self.name(was, None)
            self.arrive(table, None, entry.event_id)
            return
        if self.follows(was):
            if not self.follows(table) and lineage not in self.chain.complete:
                self.left[lineage] = was
        elif self.follows(table) and self.left.get(lineage, table) != table:
            self.name(was, None)
            self.arrive(table, None, entry.event_id)
            return
        if self.names.get(table) is not None:
            raise Unfoldable(table, entry.event_id, "a table was renamed onto it while it existed")
        self.chain.names.setdefault(table, None)
        self.name(was, None)
        self.name(table, lineage)
        self.alter(lineage, entry)

    def alter(self, lineage: LineageId, entry: Entry) -> None:
        keys, event_id, shapes = entry.keys, entry.event_id, self.chain.shapes
        if keys.shape is not shapes.get(lineage):
            self.reshape(lineage, entry)
        if keys.columns_changed:
            self.change_columns(lineage, event_id)
        head, data = self.heads[lineage], self.data_of(entry)
        if event_id in self.carrying and data is not None:
            data = self.renamed(head.data, data, (lineage, ""))
        if not keys.facets_only:
            self.chain.facets.pop((lineage, ""), None)
            version = Version(event_id)
            self.set_head(Head(lineage, version, head.incarnation, head.data if data is None else data, event_id))
            return
        self.chain.facets[lineage, ""] = Version(event_id)
        if data is not None:
            self.set_head(Head(lineage, head.version, head.incarnation, data, event_id))

    def reshape(self, lineage: LineageId, entry: Entry) -> None:
        shape, before = entry.keys.shape, self.chain.shapes.get(lineage, TableShape.NOT_SAID)
        if shape is TableShape.NOT_SAID:
            return
        if before is not TableShape.NOT_SAID:
            assert entry.keys.table is not None
            raise Unfoldable(entry.keys.table, entry.event_id, f"it changed from {before.value} to {shape.value}")
        self.chain.shapes[lineage] = shape

    def change_columns(self, lineage: LineageId, event_id: EventId) -> None:
        if event_id in self.column_changes.cascaded:
            self.doubt(lineage)
            self.doubted.pop(lineage, None)
            self.cascades.add(lineage)
            return
        self.columns.add(lineage)
        if partitions := self.column_changes.untold.get(event_id):
            self.doubted.setdefault(lineage, set()).update(partitions)
            self.doubtful.setdefault(len(self.chain.steps), set()).add(lineage)
            return
        if lineage not in self.chain.complete or any(part for cell, part in self.parts.items() if cell[0] == lineage):
            self.undecided.setdefault(lineage, []).append(len(self.chain.steps))

    def doubt(self, lineage: LineageId) -> None:
        """Mark the lineage's undecided column changes as doubtful, because no later event will say what they did to
        partitions."""
        for index in self.undecided.pop(lineage, ()):
            self.doubtful.setdefault(index, set()).add(lineage)

    def settle(self, lineage: LineageId, partition: str) -> None:
        """Note that an event says all of a partition, or that it is gone, so that its columns are known again."""
        doubted_parts = self.doubted.get(lineage)
        if doubted_parts is not None:
            doubted_parts.discard(partition)
            if not doubted_parts:
                del self.doubted[lineage]
                self.settled.add(lineage)

    def add_partitions(self, table: TableName, entry: Entry) -> None:
        lineage, event_id = self.present(table, entry), entry.event_id
        for index, partition, data in zip(places_of(entry), entry.keys.partitions, self.datas_of(entry), strict=True):
            if self.parts.get((lineage, partition)) is not None:
                raise Unfoldable(table, event_id, f"partition {partition} was added while it existed")
            self.chain.parts.setdefault((lineage, partition), None)
            added = Part(f"{partition}@{event_id}", Version(event_id, index), data, str(event_id), event_id)
            self.set_part(lineage, partition, added)

    def alter_partitions(self, table: TableName, entry: Entry) -> None:
        lineage, event_id = self.present(table, entry), entry.event_id
        facets, facets_only = self.chain.facets, entry.keys.facets_only
        for index, partition, data in zip(places_of(entry), entry.keys.partitions, self.datas_of(entry), strict=True):
            part, version = self.present_part(lineage, partition, entry), Version(event_id, index)
            if facets_only:
                facets[lineage, partition] = version
                if not data.location:
                    continue
                version = part.version
            else:
                if (lineage, partition) in self.counted_anew:
                    facets[lineage, partition] = version
                else:
                    facets.pop((lineage, partition), None)
                self.settle(lineage, partition)
            self.set_part(lineage, partition, Part(part.lineage, version, data, part.incarnation, event_id))

    def drop_partitions(self, table: TableName, entry: Entry) -> None:
        lineage = self.present(table, entry)
        for partition in entry.keys.partitions:
            self.present_part(lineage, partition, entry)
            self.remove_part(lineage, partition)

    def rename_partition(self, table: TableName, entry: Entry) -> None:
        lineage, event_id = self.present(table, entry), entry.event_id
        (was,), (name,), (data,) = entry.keys.others, entry.keys.partitions, self.datas_of(entry)
        part = self.present_part(lineage, was, entry)
        content = self.renamed(part.data, data, (lineage, part.lineage)) if event_id in self.carrying else data
        if self.parts.get((lineage, name)) is not None:
            raise Unfoldable(table, event_id, f"partition {was} was renamed onto {name} while that existed")
        self.chain.parts.setdefault((lineage, name), None)
        self.remove_part(lineage, was)
        self.counted_anew.add((lineage, name))
        self.chain.facets[lineage, name] = Version(event_id)
        self.set_part(lineage, name, Part(part.lineage, Version(event_id), content, part.incarnation, event_id))

    def renamed(self, before: Data | None, data: Data, cell: PartCell) -> Data:
        """Return the content that a rename left as it was: `before`, or `data` where the content is from before the
        window."""
        if before is not None and before.event_id:
            return before
        self.chain.renamed[data] = cell
        return data

    def insert(self, table: TableName, entry: Entry) -> None:
        lineage, event_id = self.present(table, entry), entry.event_id
        if entry.keys.partitions:
            for partition, data in zip(entry.keys.partitions, self.datas_of(entry), strict=True):
                part = self.present_part(lineage, partition, entry)
                self.set_part(lineage, partition, Part(part.lineage, part.version, data, part.incarnation, event_id))
        elif (content := self.data_of(entry)) is not None:
            head = self.heads[lineage]
            self.set_head(Head(lineage, head.version, head.incarnation, content, event_id))

    def facet(self, table: TableName, entry: Entry) -> None:
        """Note a change of column statistics or constraints. It makes no state, and does not count for objects that are
        gone by then."""
        if table in self.names and self.names[table] is None:
            return
        lineage = self.present(table, entry)
        for partition in entry.keys.partitions or ("",):
            if self.parts.get((lineage, partition), BASE) is not None:
                self.chain.facet_events.append((entry.event_id, lineage, partition))

    def present(self, table: TableName, entry: Entry) -> LineageId:
        """Return the lineage that has the name now. The first touch of a name means that its table was there before the
        window. Raises `Unfoldable` for a name without a table."""
        lineage = self.names.get(table)
        if lineage is None:
            if table in self.names:
                raise Unfoldable(table, entry.event_id, "it was changed while it did not exist")
            lineage = self.names[table] = self.chain.names[table] = self.new_lineage()
            self.heads[lineage] = self.chain.heads[lineage] = Head(lineage, BASE, data=BASE_DATA)
        return lineage

    def present_part(self, lineage: LineageId, partition: str, entry: Entry) -> Part:
        """Return the partition as it is now. The first touch means that it was there before the window, unless the
        window has the table whole. Raises `Unfoldable` for a partition that is not there."""
        cell = (lineage, partition)
        part = self.parts.get(cell)
        if part is None:
            if cell in self.parts or lineage in self.chain.complete:
                assert entry.keys.table is not None
                reason = f"partition {partition} was changed while it did not exist"
                raise Unfoldable(entry.keys.table, entry.event_id, reason)
            part = self.parts[cell] = self.chain.parts[cell] = Part(partition, BASE, BASE_DATA)
        return part

    def data_of(self, entry: Entry) -> Data | None:
        """Return the content of a plain table that the event names; None where it names none."""
        if entry.keys.partitions or not entry.keys.locations:
            return None
        return self.datas_of(entry)[0]

    def datas_of(self, entry: Entry) -> list[Data]:
        """Return the content of each partition that the event names; partitions of views have none."""
        keys, event_id = entry.keys, entry.event_id
        stays = keys.table is not None and self.stays(keys.table)
        if not keys.locations:
            return [Data(event_id, "", stays=stays)] * len(keys.partitions)
        if not entry.scans:
            return [Data(event_id, location, 0, stays) for location in keys.locations]
        scanned_locations = zip(keys.locations, entry.scans, strict=True)
        return [Data(event_id, location, scan, stays) for location, scan in scanned_locations]

    def new_lineage(self) -> LineageId:
        return len(self.heads) + 1

    def name(self, table: TableName, lineage: LineageId | None) -> None:
        self.names[table] = lineage
        self.changed_names[table] = lineage

    def set_head(self, head: Head) -> None:
        self.heads[head.lineage] = head
        self.changed_heads[head.lineage] = head

    def set_part(self, lineage: LineageId, partition: str, part: Part) -> None:
        self.parts[lineage, partition] = part
        self.changed_parts[lineage, partition] = part

    def remove_part(self, lineage: LineageId, partition: str) -> None:
        self.settle(lineage, partition)
        self.chain.facets.pop((lineage, partition), None)
        self.counted_anew.discard((lineage, partition))
        self.parts[lineage, partition] = None
        self.changed_parts[lineage, partition] = None


def places_of(entry: Entry) -> Sequence[int]:
    """Return the places of the event's partitions in its message."""
    return entry.keys.numbers or range(len(entry.keys.partitions))


def names_in(group: Collection[Entry]) -> set[TableName]:
    names = {entry.keys.table for entry in group} | {entry.keys.other for entry in group}
    return {name for name in names if name is not None}


def names_of(entry: Entry) -> list[TableName]:
    return [name for name in (entry.keys.table, entry.keys.other) if name is not None]


def links_of(renames: Iterable[Entry]) -> dict[TableName, TableName]:
    """Return, for each name that a rename links to others, one name that stands for all of them."""
    return {
        name: linked_group[0].keys.table or name
        for linked_group in groups(list(renames))
        for name in names_in(linked_group)
    }
