"""The start of a target at an event (`start = EVENT_ID`): a target that is known to equal the source at an event is
taken as it is, and followed from there.

The log itself tells what was touched since; of everything else source and target must have the same names. Headers and
partitions at the target get their marks; no file is looked at, and nothing is copied. Files are compared when their
directory is touched for the first time, so that an append needs no new directory. Where the claim is wrong, an event
that does not fit, `verify` or a scan finds it, and the table is read exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from calque.core.events.keys import keys_of
from calque.core.events.kinds import obstacle
from calque.core.images.image import EVENT, INCARNATION, SOURCE, Marks, is_ours, source_mark
from calque.core.plan.limits import batches
from calque.engine.apply.databases import owned
from calque.engine.apply.functions import Functions, same_function
from calque.engine.exact_reads.take_over import taken, with_marks
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.log_reads import events_after
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import require_no_listed_partitions
from calque.engine.target.list_calls import send_list
from calque.engine.target.observe import NotOurReplica
from calque.errors import Refused
from calque.model.hive import Database, is_partitioned
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, TableName, table_name
from calque.ports import CatalogReader, Conflict, EventLog

LOG = logging.getLogger(__name__)
INSTEAD = 'Use start = "bootstrap", or a later event at which the target equals the source'


@dataclass(frozen=True, slots=True)
class StartAtEvent:
    """The start of one target from what it has, as the source's state at an event. `unfiltered` is the source's catalog
    with the objects that came from this target, which `source.catalog` hides; `begin` says after which event the
    journal begins."""

    source: SourceSide
    unfiltered: CatalogReader
    side: TargetSide
    begin: Callable[[], EventId]
    functions: Functions
    names_at_source: Callable[[], Sequence[TableName]]
    pool: Executor

    def tables(self, event_id: EventId) -> list[TableRow]:
        """Mark what the target has as the source's state at event `event_id`, and return the rows of the tables.
        Nothing is lost when it is done again. Raises `Refused` where events since then are not to be had, or where
        objects came to the source from the target."""
        source, side = self.source, self.side
        if side.origins.names and (returned := self.any_returned()) is not None:
            raise Refused(
                f"The target can't start at event {event_id}",
                f"{returned} came to the source from there: which objects were whose at that event is not known",
                'Use start = "bootstrap"',
            )
        require_reach(source, self.begin(), event_id)
        databases = {name: source.catalog.database(name) for name in source.catalog.databases()}
        low = source.log.current()
        source_names, target_names = {*self.names_at_source()}, names_at_target(side)
        touched = names_touched(source.log, event_id, low)
        untouched = {name: database for name, database in databases.items() if TableName(name) not in touched}
        take_databases(side, event_id, untouched)
        self.take_functions(event_id, touched)
        names = sorted(name for name in target_names if name in source_names or name in touched)
        rows = list(self.pool.map(ClaimTable(source.catalog, side, event_id), names))
        reason = f"it is not at the target, which is said to equal the source at event {event_id}"
        rows += [
            TableRow(*name, TableState.UNKNOWN, None, reason, low)
            for name in sorted(source_names - target_names - touched)
        ]
        LOG.info("%s starts at event %d with %d tables", side.policy.target, event_id, len(names))
        return rows

    def any_returned(self) -> TableName | None:
        """Return a table that the policy takes and that came to the source from the target; None where there is
        none."""
        admission = self.side.admission
        for database in filter(admission.touches_database, self.unfiltered.databases()):
            own_tables = {*self.source.catalog.tables(database)}
            for name in self.unfiltered.tables(database):
                if name not in own_tables and admission.takes(TableName(database, name)):
                    return TableName(database, name)
        return None

    def take_functions(self, event_id: EventId, touched: set[TableName]) -> None:
        """Make functions that are at the target ours, but for those that differ from the source's without an event that
        explains it. `touched` are the objects that events since `event_id` name."""
        side, catalog = self.side, self.source.catalog
        for database in filter(side.admission.takes_database, catalog.databases()):
            for function in catalog.functions(database):
                name = table_name(database, function)
                target_function = side.catalog.function(side.admission.name_at_target(name))
                source_function = catalog.function(name)
                if target_function is None or source_function is None or not side.admission.takes_function(name):
                    continue
                if name in touched or same_function(target_function, side.imaging.function(source_function)):
                    self.functions.own(name, event_id, "it was there at the start")


def require_reach(source: SourceSide, begin: EventId, event_id: EventId) -> None:
    """Raise `Refused` unless every event after `event_id` is in the journal, or still in the log."""
    what = f"The target can't start at event {event_id}"
    newest = source.log.current()
    if event_id > newest:
        raise Refused(what, f"The source's newest event is {newest}", "Correct `start`")
    journal_begin = max(begin, reach(source.journal))
    if journal_begin > event_id:
        raise Refused(what, f"The journal begins with event {journal_begin + 1}", INSTEAD)
    first_event = next(iter(source.log.read(event_id, 1)), None)
    if event_id < newest and (first_event is None or first_event.event_id != event_id + 1):
        state_of_log = "has none after it" if first_event is None else f"goes on with event {first_event.event_id}"
        raise Refused(what, f"The source's log was cleaned and {state_of_log}", INSTEAD)
    for gap in source.gaps.recorded() if source.gaps is not None else ():
        if gap.span[1] > event_id:
            raise Refused(what, f"The journal has a gap from event {gap.span[0]} to {gap.span[1]}", INSTEAD)


def names_at_target(side: TargetSide) -> set[TableName]:
    """Return the tables at the target by the names that the policy gives them at the source."""
    catalog, admission = side.catalog, side.admission
    names = (
        admission.source_of(table_name(database, table))
        for database in catalog.databases()
        for table in catalog.tables(database)
    )
    return {name for name in names if name is not None}


def names_touched(log: EventLog, after: EventId, upto: EventId) -> set[TableName]:
    """Return every object that the events after `after` up to `upto` name."""
    names: set[TableName] = set()
    for event in events_after(log, after, upto):
        keys = keys_of(event)
        names |= {name for name in (keys.table, keys.other) if name is not None}
    return names


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """A function that makes the target's table the replica of the source's at event `event_id`, and returns its row:
    live, or quarantined with the reason."""

    source: CatalogReader
    side: TargetSide
    event_id: EventId

    def __call__(self, name: TableName) -> TableRow:
        try:
            problem = self.mark(name)
        except (Refused, NotOurReplica, Conflict) as error:
            problem = str(error)
        if problem:
            return TableRow(*name, TableState.QUARANTINED, None, problem, self.event_id)
        return TableRow(*name, TableState.LIVE, self.event_id)

    def mark(self, name: TableName) -> str:
        """Mark the table and its partitions. Return the reason why the table is to be set aside; empty when it is the
        replica now, or is gone. Raises `NotOurReplica` for the replica of another table or source, `Refused` for an
        ACID table and for listed partitions of a projected one, and `Conflict` where another writer changes it
        meanwhile."""
        side, marks = self.side, Marks(self.event_id, f"r{self.event_id}")
        target_name = side.admission.name_at_target(name)
        target_table, source_table = side.catalog.table(target_name), self.source.table(name)
        if source_table is not None and (problem := obstacle(source_table)):
            return problem
        require_no_listed_partitions(self.source, source_table)
        if target_table is None:
            return ""
        mark = (target_table.parameters or {}).get(SOURCE, "")
        if mark and mark != source_mark(side.policy.source, name):
            raise NotOurReplica(name, target_name, mark, collides=is_ours(target_table.parameters, side.policy.source))
        if not mark:
            side.catalog.alter_table(target_name, taken(side, name, target_table, source_table, marks))
        if is_partitioned(target_table):
            self.mark_partitions(target_name, marks)
        return ""

    def mark_partitions(self, target_name: TableName, marks: Marks) -> None:
        catalog = self.side.catalog
        limit = catalog.abilities().limits.alter_partitions
        for names in batches(list(catalog.partition_names(target_name)), limit):
            parts = catalog.partitions(target_name, names).values()
            unmarked_parts = [part for part in parts if not {EVENT, INCARNATION} <= (part.parameters or {}).keys()]
            marked_parts = [with_marks(part, marks) for part in unmarked_parts]
            send_list(
                catalog, "alter_partitions", lambda batch: catalog.alter_partitions(target_name, batch), marked_parts
            )


def take_databases(side: TargetSide, event_id: EventId, source_databases: Mapping[str, Database | None]) -> None:
    """Make databases at the target ours that the policy takes whole: those that no event touched as the source has them
    (`source_databases`), the others as they are. Databases that are missing are made when they get their first object,
    or with their next event."""
    for target_name in side.catalog.databases():
        name = side.admission.source_of(TableName(target_name))
        target_database = (
            side.catalog.database(target_name)
            if name is not None and side.admission.takes_database(name.database)
            else None
        )
        if name is not None and target_database is not None and SOURCE not in (target_database.parameters or {}):
            database = source_databases.get(name.database) or replace(target_database, name=name.database)
            side.catalog.alter_database(
                target_name, owned(side.imaging.database(database, event_id, target_database.location), target_database)
            )
