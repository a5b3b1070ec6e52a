"""The bounds of a window and its groups, in a form in which they can be prepared here or, where there are many, by
other processes.

`GroupSpreader` takes a large window apart: each share of its groups is prepared by `prepare_share` from the rows of
that share alone. Each group comes back as its gist, which decides whether it goes through the window, with what is left
to do for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import pyarrow as pa

from calque.core.defects import work_on
from calque.core.events.effects import OF_NO_TABLE
from calque.core.events.rows import entries_of
from calque.core.policy.admit import Admission
from calque.core.states.fold import groups, names_in, names_of
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.cascade_detection import cascaded
from calque.engine.window.failures import FAILURES
from calque.engine.window.prepare import Positions, ReadyPlan, TargetIsAhead, prepare, ready_of
from calque.errors import Broken
from calque.model.journal import Entry, EventKind, TableShape
from calque.model.names import EventId, Span, TableName


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """The bounds of a window to event `upto` that begins where the target is. Tables show event `cursor`, but for those
    in `apart`, each with the event that it shows. Tables `aside` go through no window. The journal has the events after
    `begin`."""

    begin: EventId
    cursor: EventId
    upto: EventId
    apart: Mapping[TableName, EventId]
    aside: frozenset[TableName] = frozenset()

    @property
    def span(self) -> Span:
        """The events that the window itself, or one of the tables that are behind, has not shown yet."""
        return Span(min(self.upto, max(min([self.cursor, *self.apart.values()]), self.begin)), self.upto)

    def shown(self, name: TableName) -> EventId:
        return self.apart.get(name, self.cursor)

    def positions(self, group: Sequence[Entry]) -> Positions:
        """Return the events that the group's tables show, and which of its tables are aside."""
        names = names_in(group)
        apart = {name: self.apart[name] for name in names if name in self.apart}
        return Positions(self.cursor, apart, self.aside & names)

    def groups(self, admission: Admission, entries: Iterable[Entry]) -> list[list[Entry]]:
        """Return the groups of admitted tables, and of tables that renames link to them, with the entries that their
        tables have not shown yet."""
        takes = cache(admission.takes)
        table_entries = (
            entry for entry in entries if entry.keys.table is not None and entry.keys.kind not in OF_NO_TABLE
        )
        due_entries = map(self.due, table_entries)
        linked_groups = groups([entry for entry in due_entries if entry is not None])
        return [group for group in linked_groups if any(map(takes, names_in(group)))]

    def due(self, entry: Entry) -> Entry | None:
        """Return the entry as far as its tables have not shown it yet, None when they have. Where only one name of a
        rename has not shown it, that half is returned: table `a` shows event 90, `b` shows 80, and event 85 renames `a`
        to `b`: the entry that is left is that `b` arrives. With the events the other way round it is a drop of `a`."""
        keys = entry.keys
        assert keys.table is not None
        if entry.scans:
            return entry
        after = entry.event_id > self.shown(keys.table)
        if keys.other is None:
            return entry if after else None
        before = entry.event_id > self.shown(keys.other)
        if after and before:
            return entry
        if before:
            return replace(
                entry, keys=replace(keys, kind=EventKind.DROP_TABLE, table=keys.other, other=None, locations=())
            )
        return replace(entry, keys=replace(keys, other=None)) if after else None


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a window. `entries` are all of the group's entries, or its gist when the group was prepared by
    another process. A gist without `ready` stands for a group that could not be prepared there: the process that
    prepares it again meets the error itself."""

    entries: Sequence[Entry]
    ready: ReadyPlan | None = None

    @property
    def first(self) -> EventId:
        """The event id of the group's first entry, which no other prepared group has."""
        return self.entries[0].event_id


def size_of(group: Group) -> int:
    """Return roughly how much there is to do for the group: the number of objects to write, or, where it has no plan
    yet, of events to go through."""
    if group.ready is None:
        return len(group.entries)
    return sum(hop.objects for hop in group.ready.plan.hops)


class GroupSpreader(Protocol):
    """A function that prepares the groups of large windows in other processes. Raises what opening and reading there
    raise."""

    def __call__(self, cut: WindowBounds) -> tuple[Sequence[Entry], Sequence[Group]]:
        """Return the window's entries of databases and functions, and all its groups in order, each as its gist."""


def prepare_share(
    source: SourceSide, side: TargetSide, cut: WindowBounds, tables: Iterable[pa.Table], pool: Executor
) -> list[Group]:
    """Prepare the groups of a share as far as that goes, on the threads of `pool`, and return them. Each of `tables`
    has all rows that the window has of some tables, and of those that renames link to them. The rows become entries
    when it is their turn, and are let go of then."""

    def prepared(group: Sequence[Entry]) -> Group:
        if names_in(group) & cut.aside:
            return Group(gist(group))
        positions = cut.positions(group)
        try:
            with work_on(f"a group of {len(group)} events", *FAILURES, TargetIsAhead):
                prepared_group = prepare(source, side, group, positions, cut.upto, cascaded(source, side, group))
        except (*FAILURES, TargetIsAhead, Broken):
            # The process that applies the window prepares the group again, and says what is wrong.
            return Group(gist(group))
        return Group(gist(group), ready_of(prepared_group, positions.by_all(names_in(group))))

    def of_tables(rows: pa.Table) -> list[Group]:
        return [prepared(group) for group in cut.groups(side.admission, entries_of(rows))]

    return [group for table_groups in pool.map(of_tables, tables) for group in table_groups]


def gist(group: Sequence[Entry]) -> list[Entry]:
    """Return the first and the last entry of the group, and each one on which it depends whether and when the group
    goes through a window."""
    return list(telling(group))


def telling(group: Sequence[Entry]) -> Iterator[Entry]:
    newest = max((entry.event_id for entry in group if entry.keys.locations), default=0)
    ends = {group[0].event_id, group[-1].event_id, newest}
    seen_names: set[TableName] = set()
    for entry in group:
        keys = entry.keys
        tells = (
            keys.transactional
            or keys.kind in (EventKind.UNKNOWN, EventKind.DROP_TABLE)
            or keys.shape is TableShape.VIEW
        )
        if tells or entry.event_id in ends or not seen_names.issuperset(names_of(entry)):
            yield entry
        seen_names.update(names_of(entry))
