"""Notices at a target: the differences between what an epoch shows and what the epoch before showed, from the rows of
the epoch's objects.

Rows say what was done, in the order of their steps. An object that was made and removed again within one epoch gives no
notice, because it is not there when the epoch is published. Some rows restate what the target has (`RESTATING`): after
an exact read, or after a death that kept the record of a change from being written. For the tables of such rows the
caller gives what they had before (`Before`), because the rows alone do not say what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from calque.core.formats.bounded import number_of
from calque.core.records.contents import FOUND, UNSURE, Content
from calque.core.records.continuity import carries_files
from calque.model.ledger import Epoch, ObjectRow
from calque.model.names import EventId, TableName
from calque.plugins.notices.core.notice import (
    HistoryGap,
    Notice,
    Occasion,
    PartitionsAdded,
    PartitionsAltered,
    PartitionsDropped,
    RowsInserted,
    TableAltered,
    TableCreated,
    TableDropped,
    shares,
)
from calque.plugins.notices.core.table_keys import TableKeys

READS = frozenset({"read", "adopt"})
RESTATING = READS | {FOUND}
NEW = frozenset({"create_table", "replace"})
Files = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Known:
    """An object as a ledger tells it: paths and sizes of its files, None where the ledger does not tell them, and its
    definition."""

    files: Files | None = None
    definition: str = ""


Before = Mapping[TableName, Mapping[str, Known]]
"""The partitions that each table had at the epoch before, by table and partition name. The table itself stands under
the empty name."""


def restated(rows: Iterable[ObjectRow]) -> frozenset[TableName]:
    """Return the tables of these rows for which `Before` is needed."""
    return frozenset(
        TableName(row.database, row.table)
        for row in rows
        if row.change in RESTATING or (row.change.startswith("drop_") and not row.incarnation)
    )


def known(content: Content, rows: Sequence[ObjectRow]) -> dict[str, Known]:
    """Return each object of a table, by partition name, as the ledger tells it; the table itself stands under the empty
    name. `rows` are the rows of which `content` was made."""
    known_objects: dict[str, Known] = {}
    for name, part in (("", content.table), *content.partitions.items()):
        files = files_of(rows[part.files.index]) if part.files is not None else None
        definition = rows[part.definition.index].definition if part.definition is not None else ""
        known_objects[name] = Known(files, definition)
    return known_objects


@dataclass(slots=True)
class PartitionChange:
    """The changes of one partition in an epoch. `was` says that it was there before the epoch, `is_there` that it is
    there at the epoch's end."""

    was: bool
    is_there: bool
    event_id: EventId
    found: bool = False
    dropped_at: EventId | None = None
    inserted_at: EventId | None = None
    altered_at: EventId | None = None


@dataclass(slots=True)
class TableChange:
    """The changes of one table in an epoch. `was` is its name before the epoch, None for a table that was not there.
    `name` is its name at the epoch's end, None where it is gone."""

    was: TableName | None
    name: TableName | None
    incarnation: str
    event_id: EventId = 0
    found: bool = False
    replaces: bool = False
    """True where another table was shown under its name before the epoch."""
    dropped_at: EventId = 0
    renamed_at: EventId | None = None
    altered_at: EventId | None = None
    inserted_at: EventId | None = None
    read_at: EventId | None = None
    mentioned: set[str] = field(default_factory=set)
    partitions: dict[str, PartitionChange] = field(default_factory=dict)


class ShownTables:
    """The tables that a target shows, with their incarnations by name. `changes` brings them up to date with each
    epoch."""

    def __init__(self, incarnations: Mapping[TableName, str]) -> None:
        self.incarnations = dict(incarnations)

    def changes(self, rows: Sequence[ObjectRow], before: Before) -> list[TableChange]:
        """Return the changes of each table in one epoch, and take them into `incarnations`. `rows` are the epoch's rows
        in order of step; `before` has what the ledger knew of their objects at the epoch before."""
        epoch = EpochChanges(self.incarnations, before)
        for row in rows:
            epoch.take(row)
        changes = epoch.ended()
        for change in changes:
            if change.was is not None:
                self.incarnations.pop(change.was, None)
        self.incarnations |= {change.name: change.incarnation for change in changes if change.name is not None}
        return changes


class EpochChanges:
    """A fold of the rows of one epoch into one `TableChange` for each table: `take` every row, then ask `ended`."""

    def __init__(self, incarnations: Mapping[TableName, str], before: Before) -> None:
        self.incarnations, self.before = incarnations, before
        self.all: list[TableChange] = []
        self.current: dict[TableName, TableChange | None] = {}
        self.away: dict[tuple[str, EventId], TableChange] = {}

    def take(self, row: ObjectRow) -> None:
        if row.change == UNSURE:
            return
        name = TableName(row.database, row.table)
        if row.partition:
            self.of_partition(name, row)
        else:
            self.of_table(name, row)

    def ended(self) -> list[TableChange]:
        for table in self.away.values():
            table.name, table.dropped_at = None, table.dropped_at or table.renamed_at or 0
        for table in self.all:
            if table.read_at is not None and table.was is not None:
                for partition in self.before.get(table.was, {}).keys() - table.mentioned - {""}:
                    table.partitions.setdefault(
                        partition, PartitionChange(True, False, table.read_at, True, table.read_at)
                    )
        return names_left_first([table for table in self.all if table.was is not None or table.name is not None])

    # Tables

    def of_table(self, name: TableName, row: ObjectRow) -> None:
        event_id = event_of(row)
        if row.change == "drop_table":
            self.drop(name, event_id)
            return
        if row.change == "rename_away":
            table = self.at(name, row.incarnation)
            table.renamed_at = event_id
            self.current[name] = None
            self.away[row.incarnation, row.event_id] = table
            return
        renamed = self.away.pop((row.incarnation, row.event_id), None)
        if renamed is not None:
            renamed.name, renamed.renamed_at = name, event_id
            self.current[name] = renamed
            if row.change == "commit_table" and row.definition:
                renamed.altered_at = event_id
            return
        table = self.table_of(name, row)
        if row.change in READS:
            table.read_at, table.mentioned = row.event_id, set()
        if table.was is None:
            return
        if row.change in RESTATING:
            self.restate(table, row)
        elif row.change == "append" or carries_files(row):
            table.inserted_at = event_id
        else:
            table.altered_at = event_id

    def table_of(self, name: TableName, row: ObjectRow) -> TableChange:
        """Return the table that the row speaks of. It is a new table, and one of that name is dropped, where the row
        creates or replaces it or has another incarnation."""
        table = self.look(name)
        is_other = (
            table is not None
            and row.change in RESTATING | NEW
            and bool(row.incarnation and table.incarnation)
            and table.incarnation != row.incarnation
        )
        if table is not None and (is_other or row.change == "replace" or (row.change in NEW and table.was is not None)):
            self.drop(name, event_of(row))
            table = None
        if table is None:
            table = TableChange(None, name, row.incarnation, event_of(row), row.change in RESTATING)
            table.found |= row.incarnation.startswith("r")
            table.replaces = name in self.incarnations
            self.current[name] = table
            self.all.append(table)
        if table.was is None and not table.incarnation:
            table.found = row.change in RESTATING or row.incarnation.startswith("r")
        table.incarnation = row.incarnation or table.incarnation
        return table

    def unrecorded(self, name: TableName, event_id: EventId) -> TableChange:
        """Begin a new table for a row of its partition, where no row of the table itself came before. This happens
        after a process made the table and died before it recorded that."""
        table = TableChange(None, name, "", event_id)
        self.current[name] = table
        self.all.append(table)
        return table

    def restate(self, table: TableChange, row: ObjectRow) -> None:
        was = self.before.get(table.was or TableName(""), {}).get("", Known())
        if was.definition and row.definition and was.definition != row.definition:
            table.altered_at = table.altered_at or event_of(row)
        if is_changed(was.files, row):
            table.inserted_at = table.inserted_at or event_of(row)

    def drop(self, name: TableName, event_id: EventId) -> None:
        table = self.look(name)
        self.current[name] = None
        if table is not None:
            table.name, table.dropped_at = None, event_id

    def at(self, name: TableName, incarnation: str) -> TableChange:
        """Return the table of that name. A table that is not known to be shown is taken for one that was, because a row
        speaks of it."""
        table = self.look(name)
        if table is None:
            table = TableChange(name, name, incarnation)
            self.current[name] = table
            self.all.append(table)
        return table

    def look(self, name: TableName) -> TableChange | None:
        if name not in self.current:
            table = TableChange(name, name, self.incarnations[name]) if name in self.incarnations else None
            self.current[name] = table
            if table is not None:
                self.all.append(table)
        return self.current[name]

    # Partitions

    def of_partition(self, name: TableName, row: ObjectRow) -> None:
        event_id = event_of(row)
        table = self.look(name) or self.unrecorded(name, event_id)
        partition = table.partitions.get(row.partition)
        table.mentioned.add(row.partition)
        had = self.before.get(table.was, {}).get(row.partition) if table.was is not None else None
        # A partition that was made before a death may lack its row. Where the ledger was not asked (`before`), a table
        # that was shown is believed to have had the partition.
        was = had is not None if table.was in self.before else table.was is not None
        if row.change in ("drop_partition", "rename_away"):
            was = was and (had is not None or bool(row.incarnation))
            partition = partition or PartitionChange(was, was, event_id)
            if partition.is_there:
                partition.dropped_at = event_id
            partition.is_there = False
        elif row.change in ("add_partition", "rename_partition", FOUND):
            is_new = partition is None and had is None
            partition = partition or PartitionChange(had is not None, had is not None, event_id)
            if is_new or not partition.is_there:
                partition.event_id, partition.is_there = event_id, True
                partition.found = row.incarnation.startswith("r") and row.change != "rename_partition"
            elif had is not None and is_changed(had.files, row):
                partition.inserted_at = partition.inserted_at or event_id
        else:
            partition = partition or PartitionChange(was, True, event_id)
            if row.change == "append" or carries_files(row):
                partition.inserted_at = event_id
            else:
                partition.altered_at = event_id
        table.partitions[row.partition] = partition


def names_left_first(changes: Sequence[TableChange]) -> list[TableChange]:
    """Return the changes in their order, except that a table that leaves a name comes before the table that takes
    it."""
    leaving = {change.was: change for change in changes if change.was is not None and change.name != change.was}
    ordered: list[TableChange] = []
    visited: set[int] = set()
    for change in changes:
        path: list[TableChange] = []
        following: TableChange | None = change
        while following is not None and id(following) not in visited:
            visited.add(id(following))
            path.append(following)
            takes = following.name is not None and following.name != following.was
            following = leaving.get(following.name) if takes and following.name is not None else None
        ordered += reversed(path)
    return ordered


def event_of(row: ObjectRow) -> EventId:
    """Return the event of the row's change. A row that restates an object carries the event up to which the ledger knew
    the object; where its incarnation is younger, that event counts."""
    if row.change in (FOUND, "create_table"):
        return max(row.event_id, number_of(row.incarnation))
    return row.event_id


def files_of(row: ObjectRow) -> Files:
    return tuple(sorted((file.path, file.size) for file in row.files))


def is_changed(files: Files | None, row: ObjectRow) -> bool:
    return files is not None and carries_files(row) and bool(row.files or files) and files != files_of(row)


class LedgerNotices:
    """A maker of the notices of a target's epochs. `stream` begins the ids and names source and target. `keys` has to
    know the journal up to the event of each epoch."""

    def __init__(self, source: str, target: str, shown: ShownTables, keys: TableKeys) -> None:
        self.stream, self.shown, self.keys = f"{source}@{target}", shown, keys

    def of_epoch(self, epoch: Epoch, rows: Iterable[ObjectRow], before: Before, finds: bool) -> list[Notice]:
        """Return the notices of one epoch, and take its rows into `shown`. With `finds`, tables that a first read found
        are told of, too. Ids do not depend on `finds`."""
        changes = self.shown.changes(sorted(rows, key=lambda row: row.step), before)
        drafts = [draft for change in changes for draft in self.of_table(epoch, change, finds)]
        texts: list[Notice] = [] if epoch.gap is None else [self.of_gap(epoch, *epoch.gap)]
        for number, (is_sent, draft) in enumerate(drafts):
            if is_sent:
                texts.append(draft.notice(self.stream, epoch, number))
        return texts

    def of_gap(self, epoch: Epoch, first: EventId, last: EventId) -> HistoryGap:
        occasion = Occasion(
            f"{self.stream}:{epoch.epoch}:gap", TableName(""), "", epoch.event_id, epoch.event_id, epoch.published_at
        )
        return HistoryGap(occasion, first, last, "gap")

    def of_table(self, epoch: Epoch, table: TableChange, finds: bool) -> Iterator[tuple[bool, Draft]]:
        if table.name is None:
            assert table.was is not None
            key = self.keys.key_before(table.was, max(table.dropped_at, 1))
            yield True, Draft(TableDropped, table.was, key, table.dropped_at)
            return
        name = table.name
        is_first = table.was is None and table.found
        newest = max([table.event_id, table.renamed_at or 0, *(one.event_id for one in table.partitions.values())])
        key = self.keys.key(name, newest or epoch.event_id)
        is_sent = finds or not is_first or table.replaces or (epoch.kind != "bootstrap" and key.isdecimal())
        if table.was is None:
            yield is_sent, Draft(TableCreated, name, key, table.event_id, found=table.found)
        elif table.was != name:
            yield True, Draft(TableAltered, name, key, table.renamed_at or 0, was=table.was)
        if table.altered_at is not None:
            yield True, Draft(TableAltered, name, key, table.altered_at, found=table.read_at is not None)
        if table.inserted_at is not None:
            yield True, Draft(RowsInserted, name, key, table.inserted_at, found=table.read_at is not None)
        for draft in of_partitions(table, name, key):
            yield is_sent, draft


Kind = (
    type[TableCreated]
    | type[TableAltered]
    | type[TableDropped]
    | type[PartitionsAdded]
    | type[PartitionsAltered]
    | type[PartitionsDropped]
    | type[RowsInserted]
)
ORDER: tuple[Kind, ...] = (PartitionsDropped, PartitionsAdded, PartitionsAltered, RowsInserted)


@dataclass(frozen=True, slots=True)
class Draft:
    """A notice that has no number within its epoch yet."""

    kind: Kind
    table: TableName
    key: str
    event_id: EventId
    partitions: tuple[str, ...] = ()
    was: TableName | None = None
    found: bool = False

    def notice(self, stream: str, epoch: Epoch, number: int) -> Notice:
        identity = f"{stream}:{epoch.epoch}:{epoch.event_id}.{number}"
        occasion = Occasion(
            identity, self.table, self.key, self.event_id, epoch.event_id, epoch.published_at, self.found
        )
        if self.kind is TableAltered:
            return TableAltered(occasion, self.was)
        if self.kind is TableCreated:
            return TableCreated(occasion)
        if self.kind is TableDropped:
            return TableDropped(occasion)
        if self.kind is PartitionsAdded:
            return PartitionsAdded(occasion, self.partitions)
        if self.kind is PartitionsAltered:
            return PartitionsAltered(occasion, self.partitions)
        if self.kind is PartitionsDropped:
            return PartitionsDropped(occasion, self.partitions)
        return RowsInserted(occasion, self.partitions)


def of_partitions(table: TableChange, name: TableName, key: str) -> Iterator[Draft]:
    """Yield the drafts of a table's partitions in the order of their events; at one event dropped partitions come
    first. Partitions with the same change at the same event share a draft."""
    groups: dict[tuple[EventId, int, bool], list[str]] = {}
    for partition, change in table.partitions.items():
        for event_id, kind in kinds_of(change):
            found = change.found or table.found or table.read_at == event_id
            groups.setdefault((event_id, ORDER.index(kind), found), []).append(partition)
    for event_id, place, found in sorted(groups):
        for share in shares(tuple(sorted(groups[event_id, place, found]))):
            yield Draft(ORDER[place], name, key, event_id, share, found=found)


def kinds_of(change: PartitionChange) -> Iterator[tuple[EventId, Kind]]:
    if change.was and change.dropped_at is not None:
        yield change.dropped_at, PartitionsDropped
    if change.is_there and (not change.was or change.dropped_at is not None):
        yield change.event_id, PartitionsAdded
    elif change.is_there:
        if change.altered_at is not None:
            yield change.altered_at, PartitionsAltered
        if change.inserted_at is not None:
            yield change.inserted_at, RowsInserted
