"""Did a column change change the partitions too? The log does not say: one older partition does.

A partition has its own columns until an event on it, or a change with CASCADE, gives it others. So the columns that one
partition has now, beside those it had before the window, name the last change that cascaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from calque.core import decode
from calque.core.fold import Unfoldable
from calque.core.image import canonical
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
) -> frozenset[EventId]:
    """The ids among the group's column changes that changed all partitions: the last one of each table that did. Of
    tables that stood under names that are `aside` nothing is asked.

    Changes before that one may have cascaded or not, and so may those of a table that the group drops (`core.fold`
    marks both). Raises `Unfoldable` when it can't be told: no partition stood before the changes and was left alone
    since, or the one that did fits several outcomes.
    """
    if not any(entry.keys.columns_changed for entry in entries):
        return frozenset()
    changed = [life for life in lives(entries) if life.changes and life.now is not None and life.before not in aside]
    cascades = (last_cascade(source, side, life, entries[-1].event_id) for life in changed)
    return frozenset(event_id for event_id in cascades if event_id is not None)


@dataclass(slots=True)
class TableLife:
    """One table through the group's events. `before` and `now` are its names before and after them: None for a table
    that was created, or dropped. `touched` has the newest event that names each partition; `had_partitions` says that
    one was named before a column change."""

    before: TableName | None
    now: TableName | None
    changes: list[Entry] = field(default_factory=list)
    touched: dict[str, Entry] = field(default_factory=dict)
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
        life.touched |= dict.fromkeys((*keys.partitions, *keys.others), entry)
        if keys.columns_changed:
            life.changes.append(entry)
            life.had_partitions |= bool(life.touched)
        life.now = None if keys.kind is EventKind.DROP_TABLE else keys.table
        if life.now is not None:
            by_name[life.now] = life
    return table_lives


def last_cascade(source: SourceSide, side: TargetSide, life: TableLife, upto: EventId) -> EventId | None:
    """The last of the table's column changes that changed all partitions; None when none did."""
    name, newest = life.now, life.changes[-1]
    assert name is not None
    if life.before is not None and not side.admission.takes(life.before):
        return None  # The target never had it: its partitions are read with it.
    target_partitions = side.catalog.partition_names(side.admission.name_at_target(life.before)) if life.before else ()
    if not target_partitions and not life.had_partitions:
        return None
    events = messages(source.journal, [change.event_id for change in life.changes])
    after = {event.event_id: columns_of(decode.table_after(event)) for event in events}
    witness = most_telling(witnesses(source, side, life, target_partitions), after.values())
    if witness is None:
        raise Unfoldable(name, newest.event_id, "its columns changed, and all its partitions after that")
    current_columns = columns_of(read_bracketed(source, name, witness.partition, upto))
    outcomes: list[EventId | None] = [
        change.event_id for change in life.changes if after[change.event_id] == current_columns
    ]
    if current_columns == witness.had:
        outcomes.append(None)
    if len(outcomes) != 1:
        raise Unfoldable(name, newest.event_id, "its columns changed, and which partitions with them is not known")
    return outcomes[0]


@dataclass(frozen=True, slots=True)
class WitnessPartition:
    """A partition that stood before the first column change and that no event names since, with its columns then."""

    partition: str
    had: object


def witnesses(
    source: SourceSide, side: TargetSide, life: TableLife, target_partitions: Sequence[str]
) -> Iterator[WitnessPartition]:
    """Those that no event of the group names, as the target shows them; then those that an earlier event shows."""
    older = [partition for partition in target_partitions if partition not in life.touched][:LOOKED_AT]
    if older:
        assert life.before is not None
        for partition, definition in side.catalog.partitions(side.admission.name_at_target(life.before), older).items():
            yield WitnessPartition(partition, columns_of(definition))
    for partition, entry in life.touched.items():
        keys = entry.keys
        if entry.event_id < life.changes[0].event_id and keys.kind in SHOWING and partition in keys.partitions:
            event = source.journal.events([entry.event_id])[entry.event_id]
            yield WitnessPartition(
                partition, columns_of(decode.partitions_after(event)[keys.partitions.index(partition)])
            )


def most_telling(candidates: Iterable[WitnessPartition], after: Collection[object]) -> WitnessPartition | None:
    """The first that had columns which no change gave it; else any."""
    spare = None
    for witness in candidates:
        if witness.had not in after:
            return witness
        spare = spare or witness
    return spare


SHOWING = frozenset(
    {EventKind.ADD_PARTITIONS, EventKind.ALTER_PARTITIONS, EventKind.RENAME_PARTITION, EventKind.INSERT}
)
"""Kinds of events that carry the partitions they name."""


def read_bracketed(source: SourceSide, name: TableName, partition: str, upto: EventId) -> Partition:
    """The partition at the source, while no event after `upto` can have changed its columns. Raises `Unfoldable`."""
    definition = source.catalog.partitions(name, [partition]).get(partition)
    current = source.log.current()
    try:
        wait_for_journal(source, current, PATIENCE_SECONDS)
    except Unavailable:
        raise Unfoldable(
            name, upto, "its columns changed, and capture is too far behind to say what came after"
        ) from None
    later = source.journal.entries(Span(upto, current)) if current > upto else ()
    if definition is None or any(may_change(entry, name, partition) for entry in later):
        raise Unfoldable(name, upto, "its columns changed, and it went on changing")
    return definition


def may_change(entry: Entry, name: TableName, partition: str) -> bool:
    """Whether the event may have given the partition other columns, or the name to another table."""
    keys = entry.keys
    if name not in (keys.table, keys.other):
        return False
    match keys.kind:
        case EventKind.ALTER_TABLE:
            return keys.columns_changed
        case (
            EventKind.ADD_PARTITIONS
            | EventKind.ALTER_PARTITIONS
            | EventKind.DROP_PARTITIONS
            | EventKind.RENAME_PARTITION
        ):
            return partition in keys.partitions or partition in keys.others
        case EventKind.INSERT | EventKind.SCAN | EventKind.FACET | EventKind.NOTHING:
            return False
        case _:
            return True


def columns_of(thing: Table | Partition) -> object:
    return canonical(thing.storage.columns if thing.storage else ())
