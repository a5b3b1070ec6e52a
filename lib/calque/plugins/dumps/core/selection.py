"""The choice of the log's events that go into an increment, and of the tables that the increment has whole instead.

A table is dumped whole where it comes into scope: the policy takes it now and did not before, a rename brings it, or an
event on it can't be read or dumped. Its events are left out then. A rename that takes a table out of scope becomes a
drop. Tables that a changed policy does not take any more need no event: the load drops them. Source of the cases:
`AlterTableHandler` of Hive 4.

Events that one call of the source wrote stay together in one increment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from calque.core.events.effects import ENDS_TABLE_OR_FUNCTION, OF_FUNCTIONS
from calque.core.states.fold import same_run
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.event_types import RENAME_DROP_TABLE
from calque.plugins.dumps.core.scope import Scope

NEVER_DUMPED = frozenset({EventKind.NOTHING, EventKind.SCAN})
Step = list[Entry]


@dataclass(frozen=True, slots=True)
class SelectedEvent:
    """An event that goes into the increment. `kind` is its name in the dump, empty where the event's own name holds."""

    entry: Entry
    kind: str = ""


@dataclass(slots=True)
class EventSelection:
    """The events and tables of one increment under one policy; `replaced` is the policy of the dumps before (None: the
    same one). `last` is the last event that was considered. `bootstrapped` has the tables that the increment has whole,
    each with whether the target may have the table already. `transactional` has the tables whose events were left out.
    `unfit` are events that can't be dumped, as files of theirs are gone: their tables are dumped whole."""

    scope: Scope
    replaced: Scope | None
    last: EventId
    unfit: Collection[EventId] = ()
    selected: list[SelectedEvent] = field(default_factory=list)
    bootstrapped: dict[TableName, bool] = field(default_factory=dict)
    transactional: set[TableName] = field(default_factory=set)
    created: set[TableName] = field(default_factory=set)
    """Tables that only the new policy takes, whose creation is selected."""

    def extend(self, entries: Iterable[Entry], upto: EventId, limit: int | None = None) -> None:
        """Select from `entries`, the events after `last`. The selection ends with the last whole step at or below event
        `upto`, and with at most `limit` selected events in all. A step is all events that one call wrote. The first
        step is taken whole even where it is longer."""
        if upto <= self.last:
            return
        is_first = True
        for step in steps_of(entries):
            end = step[-1].event_id
            if end > upto and not is_first:
                return
            before = self.copied() if limit is not None else None
            for entry in step:
                self.take(entry)
            if limit is not None and before is not None and before.selected and len(self.selected) > limit:
                self.restore(before)
                return
            self.last = end
            is_first = False
            if end >= upto or (limit is not None and len(self.selected) >= limit):
                return
        self.last = max(self.last, upto)

    def copied(self) -> EventSelection:
        return replace(
            self,
            selected=list(self.selected),
            bootstrapped=dict(self.bootstrapped),
            transactional=set(self.transactional),
            created=set(self.created),
        )

    def restore(self, before: EventSelection) -> None:
        self.selected, self.bootstrapped, self.last = before.selected, before.bootstrapped, before.last
        self.transactional, self.created = before.transactional, before.created

    def take(self, entry: Entry) -> None:
        keys, name = entry.keys, entry.keys.table
        if keys.kind in NEVER_DUMPED or name is None:
            return
        if keys.kind is EventKind.RENAME_TABLE and keys.other is not None:
            self.take_rename(entry, keys.other, name)
        elif name.database != self.scope.database:
            return
        elif keys.kind is EventKind.UNKNOWN and name.table:
            if self.scope.takes(name):
                self.bootstrapped.setdefault(name, True)
        elif not name.table or keys.kind in OF_FUNCTIONS:
            self.select(entry)
        else:
            self.take_table_event(entry, name)

    def take_table_event(self, entry: Entry, name: TableName) -> None:
        is_drop = entry.keys.kind is EventKind.DROP_TABLE
        if name in self.bootstrapped:
            if is_drop and self.bootstrapped.pop(name):
                self.select(entry)
        elif not self.scope.takes(name):
            return
        elif entry.event_id in self.unfit:
            self.bootstrapped[name] = True
        elif self.replaced is not None and not self.replaced.takes(name):
            if entry.keys.kind is EventKind.CREATE_TABLE:
                self.created.add(name)
            if name in self.created:
                self.select(entry)
            if is_drop:
                self.created.discard(name)
        elif entry.keys.transactional:
            self.transactional.add(name)
        else:
            self.select(entry)

    def take_rename(self, entry: Entry, was: TableName, now: TableName) -> None:
        comes = self.scope.takes(now)
        if was in self.bootstrapped:
            if self.bootstrapped.pop(was):
                self.select(entry, RENAME_DROP_TABLE)
            if comes:
                self.bootstrapped[now] = False
        elif self.replaced is None and self.scope.takes(was):
            self.select(entry, "" if comes else RENAME_DROP_TABLE)
        else:
            if self.replaced is not None and (self.replaced.takes(was) or was in self.created):
                self.created.discard(was)
                self.select(entry, RENAME_DROP_TABLE)
            if comes:
                self.bootstrapped[now] = False

    def select(self, entry: Entry, kind: str = "") -> None:
        self.selected.append(SelectedEvent(entry, kind))


def steps_of(entries: Iterable[Entry]) -> Iterator[Step]:
    """Return the events in steps, where a step is all successive events that one call wrote: a run of one kind on one
    table, or the drops of all objects of a database and the drop of the database after them."""
    drops: list[Step] = []
    for run in runs_of(entries):
        if drops and not follows(drops[-1][-1], run[0]):
            yield from drops
            drops = []
        if run[0].keys.kind in ENDS_TABLE_OR_FUNCTION:
            drops.append(run)
        elif drops and run[0].keys.kind is EventKind.DROP_DATABASE:
            yield [entry for step in (*drops, run) for entry in step]
            drops = []
        else:
            yield from drops
            yield run
            drops = []
    yield from drops


def runs_of(entries: Iterable[Entry]) -> Iterator[Step]:
    run: Step = []
    for entry in entries:
        if run and not same_run(run[-1], entry):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def follows(one: Entry, next_: Entry) -> bool:
    """Tell whether `next_` is the very next event of the log after `one`, and on the same database."""
    before, after = one.keys.table, next_.keys.table
    return (
        next_.event_id == one.event_id + 1
        and before is not None
        and after is not None
        and before.database == after.database
    )
