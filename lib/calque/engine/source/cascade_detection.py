"""The decision whether a change of a table's columns changed its partitions' columns too (CASCADE). The log does not
say; one older partition does.

A partition has its own columns until an event on it, or a change with CASCADE, gives it others. So the columns that one
partition has after the changes, compared with those it had before them, name the last change that cascaded:

    Event 10 adds column `b` to a table with column `a`, event 12 adds `c`. A partition that had `a` before event 10
    and has `a, b` after event 12 says that event 10 cascaded and event 12 did not. One that has `a` says that none did.

The columns after the changes are in the before-image of the first alteration of the partition that follows, or in an
insert that follows; while no event follows, the source's catalog has them.
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
"""Older partitions that are looked at, until one is found that tells all outcomes apart."""
PATIENCE_SECONDS = 5.0
"""Seconds that capture may take to bring the events after the window to the journal; the other groups wait
meanwhile."""


def cascaded(
    source: SourceSide, side: TargetSide, entries: Sequence[Entry], aside: Collection[TableName] = ()
) -> ColumnChanges:
    """Return what the column changes among `entries`, the events of one group, did to partitions. Tables that stood
    under a name that is set aside (`aside`) are left out."""
    if not any(entry.keys.columns_changed for entry in entries):
        return ColumnChanges()
    changed = [
        span
        for span in incarnation_spans(entries)
        if span.changes and span.now is not None and span.before not in aside
    ]
    cascades: set[EventId] = set()
    untold: dict[EventId, frozenset[str]] = {}
    for span in changed:
        target_partitions = partitions_at_target(side, span)
        try:
            cascade = last_cascade(source, side, span, target_partitions, entries[-1].event_id)
        except CascadeUnknown:
            untold |= {
                change.event_id: existing_partitions(span, target_partitions, change.event_id)
                for change in span.changes
            }
        else:
            cascades |= {cascade} if cascade is not None else set()
    return ColumnChanges(frozenset(cascades), untold)


class CascadeUnknown(Exception):
    """Raised where no partition says what a table's column changes did: no partition that stood before the changes
    shows its columns after them, or its columns fit several outcomes."""


@dataclass(slots=True)
class IncarnationSpan:
    """One table through the group's events. `before` and `now` are its names before and after them; None for a table
    that was created or dropped. `touched` has the events that name each partition, in order. `had_partitions`: an event
    named a partition before a column change."""

    before: TableName | None
    now: TableName | None
    changes: list[Entry] = field(default_factory=list)
    touched: dict[str, list[Entry]] = field(default_factory=dict)
    had_partitions: bool = False


def incarnation_spans(entries: Sequence[Entry]) -> list[IncarnationSpan]:
    spans: list[IncarnationSpan] = []
    by_name: dict[TableName, IncarnationSpan] = {}
    for entry in entries:
        keys = entry.keys
        assert keys.table is not None
        if keys.kind is EventKind.RENAME_TABLE and keys.other is None:
            by_name[keys.table] = IncarnationSpan(None, keys.table)
            continue
        was = keys.other or keys.table
        if keys.kind is EventKind.CREATE_TABLE or was not in by_name:
            by_name[was] = IncarnationSpan(None if keys.kind is EventKind.CREATE_TABLE else was, was)
            spans.append(by_name[was])
        span = by_name.pop(was)
        for partition in (*keys.partitions, *keys.others):
            span.touched.setdefault(partition, []).append(entry)
        if keys.columns_changed:
            span.changes.append(entry)
            span.had_partitions |= bool(span.touched)
        span.now = None if keys.kind is EventKind.DROP_TABLE else keys.table
        if span.now is not None:
            by_name[span.now] = span
    return spans


def partitions_at_target(side: TargetSide, span: IncarnationSpan) -> Sequence[str]:
    """Return the names of the partitions that the target has of the table as it was before the group; none for a table
    that the target never had, because its partitions are read with it."""
    if span.before is None or not side.admission.takes(span.before):
        return ()
    return side.catalog.partition_names(side.admission.name_at_target(span.before))


def existing_partitions(span: IncarnationSpan, target_partitions: Sequence[str], event_id: EventId) -> frozenset[str]:
    """Return the partitions that existed at the event `event_id`."""
    partitions = {*target_partitions}
    for partition, events in span.touched.items():
        before = [entry for entry in events if entry.event_id < event_id]
        if before and (before[-1].keys.kind is EventKind.DROP_PARTITIONS or partition in before[-1].keys.others):
            partitions.discard(partition)
        elif before:
            partitions.add(partition)
    return frozenset(partitions)


def last_cascade(
    source: SourceSide, side: TargetSide, span: IncarnationSpan, target_partitions: Sequence[str], upto: EventId
) -> EventId | None:
    """Return the last of the table's column changes that changed all partitions; None if none did. Changes before that
    one may have cascaded or not. Where the log came without its source, a change of which no partition tells is assumed
    not to have cascaded, as Hive's own load assumes. Raises `CascadeUnknown`."""
    name = span.now
    assert name is not None
    if span.before is not None and not side.admission.takes(span.before):
        return None
    if not target_partitions and not span.had_partitions:
        return None
    events = messages(source.journal, [change.event_id for change in span.changes])
    after = {event.event_id: columns_of(decode.table_after(event)) for event in events}
    probe = most_telling(probe_partitions(source, side, span, target_partitions), after.values())
    if probe is None:
        if source.event_files is not None:
            return None
        raise CascadeUnknown
    if probe.has is None and source.event_files is not None:
        return None
    current_columns = columns_at(source, name, probe.partition, upto) if probe.has is None else probe.has
    outcomes: list[EventId | None] = [
        change.event_id for change in span.changes if after[change.event_id] == current_columns
    ]
    if current_columns == probe.had:
        outcomes.append(None)
    if len(outcomes) != 1:
        raise CascadeUnknown
    return outcomes[0]


@dataclass(frozen=True, slots=True)
class ProbePartition:
    """A partition that stood before the first column change and that no event names until after the last one. `had` are
    its columns before the changes; `has` those after them, where a later event says them, else None."""

    partition: str
    had: object
    has: object = None


def probe_partitions(
    source: SourceSide, side: TargetSide, span: IncarnationSpan, target_partitions: Sequence[str]
) -> Iterator[ProbePartition]:
    """Yield first the partitions that no event of the group names, as the target shows them, then those whose columns
    events say."""
    first, last = span.changes[0].event_id, span.changes[-1].event_id

    def at_target(partitions: Sequence[str]) -> Mapping[str, Partition]:
        if span.before is None or not partitions:
            return {}
        return side.catalog.partitions(side.admission.name_at_target(span.before), partitions)

    older = [partition for partition in target_partitions if partition not in span.touched][:LOOKED_AT]
    for partition, definition in at_target(older).items():
        yield ProbePartition(partition, columns_of(definition))
    existing = {*target_partitions}
    for partition, events in span.touched.items():
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
            target_definition = at_target([partition]).get(partition) if partition in existing else None
            had = columns_of(target_definition) if target_definition is not None else None
        if had is not None:
            yield ProbePartition(partition, had, has)


def columns_before(source: SourceSide, entry: Entry, partition: str) -> object:
    """Return the columns that the partition had before the event; None where the event does not say them. An alteration
    of this partition alone says them, and so does an insert, which changes no columns."""
    keys = entry.keys
    if keys.kind is EventKind.INSERT:
        return columns_shown(source, entry, partition)
    if entry.event_type != "ALTER_PARTITION" or partition not in (keys.others or keys.partitions):
        return None
    return columns_of(decode.partition_before(source.journal.events([entry.event_id])[entry.event_id]))


def columns_shown(source: SourceSide, entry: Entry, partition: str) -> object:
    """Return the columns that the event gave the partition; None where it does not say."""
    if entry.keys.kind not in CARRIES_PARTITIONS or partition not in entry.keys.partitions:
        return None
    event = source.journal.events([entry.event_id])[entry.event_id]
    return columns_of(decode.partitions_after(event)[entry.keys.partitions.index(partition)])


def most_telling(candidates: Iterable[ProbePartition], after: Collection[object]) -> ProbePartition | None:
    """Return the first candidate whose columns before the changes (`had`) are none that a change gave the table
    (`after`), because it tells all outcomes apart; else the first one, None without candidates."""
    spare = None
    for probe in candidates:
        if probe.had not in after:
            return probe
        spare = spare or probe
    return spare


def columns_at(source: SourceSide, name: TableName, partition: str, upto: EventId) -> object:
    """Return the partition's columns after the event `upto`: those that the source has now, or those in the
    before-image of the first event that may have changed them since. Raises `CascadeUnknown`."""
    definition = source.catalog.partitions(name, [partition]).get(partition)
    current = source.log.current()
    try:
        wait_for_journal(source, current, PATIENCE_SECONDS)
    except Unavailable:
        raise CascadeUnknown from None
    later = source.journal.entries(Span(upto, current)) if current > upto else ()
    change = next((entry for entry in later if may_change(entry, name, partition)), None)
    if change is not None and (columns := columns_before(source, change, partition)) is not None:
        return columns
    if definition is None or change is not None:
        raise CascadeUnknown
    return columns_of(definition)


def may_change(entry: Entry, name: TableName, partition: str) -> bool:
    """Tell whether the event may have given the partition other columns, or the table's name to another table."""
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
