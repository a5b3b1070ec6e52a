"""Did a column change change the partitions too? The log does not say: one older partition does.

A partition has its own columns until an event on it, or a change with CASCADE, gives it others. So the columns that one
partition has after the changes, beside those it had before them, name the last change that cascaded. What it has then
is in the before-image of the first alteration that follows, or in an insert; the source says it while none follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from calque.core.events import decode
from calque.core.events.effects import CARRIES_PARTITIONS, KEEPS_COLUMNS_AND_LOCATIONS, OF_PARTITIONS
from calque.core.images.image import canonical
from calque.core.states.fold import ColumnChanges
from calque.engine.sides.journal_reads import messages, wait_for_journal
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import Unavailable
from calque.model.hive import Partition, Table
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName

LOOKED_AT = 100
"""Older partitions among which one is looked for that tells all outcomes apart."""
PATIENCE_SECONDS = 5.0
"""How long capture may take to show what came after the window; the other groups wait meanwhile."""


def cascaded(
    source: SourceSide, side: TargetSide, entries: Sequence[Entry], aside: Collection[TableName] = ()
) -> ColumnChanges:
    """What the group's column changes did to partitions. Of tables that stood under names that are `aside` nothing is
    asked."""
    if not any(entry.keys.columns_changed for entry in entries):
        return ColumnChanges()
    changed = [life for life in lives(entries) if life.changes and life.now is not None and life.before not in aside]
    cascades: set[EventId] = set()
    untold: dict[EventId, frozenset[str]] = {}
    for life in changed:
        target_partitions = partitions_at_target(side, life)
        try:
            cascade = last_cascade(source, side, life, target_partitions, entries[-1].event_id)
        except CascadeUntold:
            untold |= {change.event_id: standing(life, target_partitions, change.event_id) for change in life.changes}
        else:
            cascades |= {cascade} if cascade is not None else set()
    return ColumnChanges(frozenset(cascades), untold)


class CascadeUntold(Exception):
    """Nothing says what a table's column changes did to its partitions: none stood before them and says its columns
    after them, or the one that does fits several outcomes."""


@dataclass(slots=True)
class TableLife:
    """One table through the group's events. `before` and `now` are its names before and after them: None for a table
    that was created, or dropped. `touched` has the events that name each partition, in order; `had_partitions` says
    that one was named before a column change."""

    before: TableName | None
    now: TableName | None
    changes: list[Entry] = field(default_factory=list)
    touched: dict[str, list[Entry]] = field(default_factory=dict)
    had_partitions: bool = False


def lives(entries: Sequence[Entry]) -> list[TableLife]:
    table_lives: list[TableLife] = []
    by_name: dict[TableName, TableLife] = {}
    for entry in entries:
        keys = entry.keys
        assert keys.table is not None
        if keys.kind is EventKind.RENAME_TABLE and keys.other is None:
            by_name[keys.table] = TableLife(None, keys.table)
            continue
        was = keys.other or keys.table
        if keys.kind is EventKind.CREATE_TABLE or was not in by_name:
            by_name[was] = TableLife(None if keys.kind is EventKind.CREATE_TABLE else was, was)
            table_lives.append(by_name[was])
        life = by_name.pop(was)
        for partition in (*keys.partitions, *keys.others):
            life.touched.setdefault(partition, []).append(entry)
        if keys.columns_changed:
            life.changes.append(entry)
            life.had_partitions |= bool(life.touched)
        life.now = None if keys.kind is EventKind.DROP_TABLE else keys.table
        if life.now is not None:
            by_name[life.now] = life
    return table_lives


def partitions_at_target(side: TargetSide, life: TableLife) -> Sequence[str]:
    """Of the table before the group; none of a table that the target never had, whose partitions are read with it."""
    if life.before is None or not side.admission.takes(life.before):
        return ()
    return side.catalog.partition_names(side.admission.name_at_target(life.before))


def standing(life: TableLife, target_partitions: Sequence[str], event_id: EventId) -> frozenset[str]:
    """The partitions that were there at the event."""
    partitions = {*target_partitions}
    for partition, events in life.touched.items():
        before = [entry for entry in events if entry.event_id < event_id]
        if before and (before[-1].keys.kind is EventKind.DROP_PARTITIONS or partition in before[-1].keys.others):
            partitions.discard(partition)
        elif before:
            partitions.add(partition)
    return frozenset(partitions)


def last_cascade(
    source: SourceSide, side: TargetSide, life: TableLife, target_partitions: Sequence[str], upto: EventId
) -> EventId | None:
    """The last of the table's column changes that changed all partitions; None when none did. Changes before that one
    may have cascaded or not. Where the log came without its source, one of which nothing tells is taken not to have
    cascaded, as Hive's own load takes it. Raises `CascadeUntold`."""
    name = life.now
    assert name is not None
    if life.before is not None and not side.admission.takes(life.before):
        return None
    if not target_partitions and not life.had_partitions:
        return None
    events = messages(source.journal, [change.event_id for change in life.changes])
    after = {event.event_id: columns_of(decode.table_after(event)) for event in events}
    witness = most_telling(witnesses(source, side, life, target_partitions), after.values())
    if witness is None:
        if source.event_files is not None:
            return None
        raise CascadeUntold
    if witness.has is None and source.event_files is not None:
        return None
    current_columns = columns_at(source, name, witness.partition, upto) if witness.has is None else witness.has
    outcomes: list[EventId | None] = [
        change.event_id for change in life.changes if after[change.event_id] == current_columns
    ]
    if current_columns == witness.had:
        outcomes.append(None)
    if len(outcomes) != 1:
        raise CascadeUntold
    return outcomes[0]


@dataclass(frozen=True, slots=True)
class WitnessPartition:
    """A partition that stood before the first column change and that no event names until after the last, with its
    columns before them, and those after them where the event that names it then says them."""

    partition: str
    had: object
    has: object = None


def witnesses(
    source: SourceSide, side: TargetSide, life: TableLife, target_partitions: Sequence[str]
) -> Iterator[WitnessPartition]:
    """Those that no event of the group names, as the target shows them; then those of which events say more."""
    first, last = life.changes[0].event_id, life.changes[-1].event_id

    def at_target(partitions: Sequence[str]) -> Mapping[str, Partition]:
        if life.before is None or not partitions:
            return {}
        return side.catalog.partitions(side.admission.name_at_target(life.before), partitions)

    older = [partition for partition in target_partitions if partition not in life.touched][:LOOKED_AT]
    for partition, definition in at_target(older).items():
        yield WitnessPartition(partition, columns_of(definition))
    standing = {*target_partitions}
    for partition, events in life.touched.items():
        earlier = [entry for entry in events if entry.event_id < first]
        later = [entry for entry in events if entry.event_id > last]
        if len(earlier) + len(later) < len(events):
            continue
        has = columns_before(source, later[0], partition) if later else None
        if later and has is None:
            continue
        if earlier:
            had = columns_shown(source, earlier[-1], partition)
        else:
            definition_there = at_target([partition]).get(partition) if partition in standing else None
            had = columns_of(definition_there) if definition_there is not None else None
        if had is not None:
            yield WitnessPartition(partition, had, has)


def columns_before(source: SourceSide, entry: Entry, partition: str) -> object:
    """The columns that a partition had before an event, where that says it: an alteration of it alone does, and an
    insert, which changes none."""
    keys = entry.keys
    if keys.kind is EventKind.INSERT:
        return columns_shown(source, entry, partition)
    if entry.event_type != "ALTER_PARTITION" or partition not in (keys.others or keys.partitions):
        return None
    return columns_of(decode.partition_before(source.journal.events([entry.event_id])[entry.event_id]))


def columns_shown(source: SourceSide, entry: Entry, partition: str) -> object:
    """The columns that an event gave a partition; None where it does not say."""
    if entry.keys.kind not in CARRIES_PARTITIONS or partition not in entry.keys.partitions:
        return None
    event = source.journal.events([entry.event_id])[entry.event_id]
    return columns_of(decode.partitions_after(event)[entry.keys.partitions.index(partition)])


def most_telling(candidates: Iterable[WitnessPartition], after: Collection[object]) -> WitnessPartition | None:
    """The first that had columns which no change gave it; else any."""
    spare = None
    for witness in candidates:
        if witness.had not in after:
            return witness
        spare = spare or witness
    return spare


def columns_at(source: SourceSide, name: TableName, partition: str, upto: EventId) -> object:
    """The partition's columns after event `upto`: the source's, or what the first event says that may have changed them
    since. Raises `CascadeUntold`."""
    definition = source.catalog.partitions(name, [partition]).get(partition)
    current = source.log.current()
    try:
        wait_for_journal(source, current, PATIENCE_SECONDS)
    except Unavailable:
        raise CascadeUntold from None
    later = source.journal.entries(Span(upto, current)) if current > upto else ()
    change = next((entry for entry in later if may_change(entry, name, partition)), None)
    if change is not None and (columns := columns_before(source, change, partition)) is not None:
        return columns
    if definition is None or change is not None:
        raise CascadeUntold
    return columns_of(definition)


def may_change(entry: Entry, name: TableName, partition: str) -> bool:
    """Whether the event may have given the partition other columns, or the name to another table."""
    keys = entry.keys
    if name not in (keys.table, keys.other):
        return False
    if keys.kind is EventKind.ALTER_TABLE:
        return keys.columns_changed
    if keys.kind in OF_PARTITIONS:
        return partition in keys.partitions or partition in keys.others
    return keys.kind not in KEEPS_COLUMNS_AND_LOCATIONS


def columns_of(thing: Table | Partition) -> object:
    return canonical(thing.storage.columns if thing.storage else ())
