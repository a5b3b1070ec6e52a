"""The parameter `repl.last.id`, which Hive's own replication writes on a database that it loaded, kept up beside
calque's marks.

Tools of Hive read it (`REPL STATUS`). calque changes it once for each epoch, on databases of its own that carry one; it
gives none to a database that has none.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from calque.core.defects import ObjectDefect, work_on
from calque.core.images.image import SOURCE, source_mark
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused, Unavailable
from calque.model.hive import HIVE_POSITION, Database
from calque.model.names import EventId, TableName
from calque.ports import Clock, Conflict

LOG = logging.getLogger(__name__)
LOOK_NS = 10_000_000_000
SELDOM = 100
"""The share of time that looks at all databases take: a hundredth, and they come ten seconds apart at least."""


class HivePositions:
    """The positions (`repl.last.id`) of one target's databases. No method may be called beside a window."""

    def __init__(self, side: TargetSide, clock: Clock) -> None:
        self.side, self.clock = side, clock
        self.carrying: set[str] = set()
        """The target's databases that have a position."""
        self.looks_ns = 0
        """The time, by the clock, at which all databases are looked at again: another may carry a position then."""
        self.unlooked: EventId | None = None
        """The event that is shown, as long as only databases that were known to carry a position were told of it."""

    def is_due(self) -> bool:
        """Tell whether all databases are to be looked at for an event that is shown already."""
        return self.unlooked is not None and self.clock.elapsed_ns() >= self.looks_ns

    def look_again(self) -> None:
        """Show the last event to all databases when that is due, because no later epoch may come for a long time."""
        if self.unlooked is not None and self.is_due():
            self.show(self.unlooked)

    def forget(self) -> None:
        """Have the next `show` look at all databases, because another may carry a position now."""
        self.looks_ns = 0

    def show(self, event_id: EventId) -> None:
        """Have all databases with a position say this event, which the target shows. A database that does not take it
        says an older one, with a warning in the log."""
        began_ns = self.clock.elapsed_ns()
        is_due = began_ns >= self.looks_ns
        self.unlooked = None if is_due else event_id
        for name in sorted(self.ours() if is_due else self.carrying):
            database = self.side.catalog.database(name)
            if database is None or position_of(database) is None or not self.is_ours(name, database):
                self.carrying.discard(name)
                continue
            self.carrying.add(name)
            if position_of(database) != str(event_id):
                self.put(name, at_position(database, str(event_id)))
        if is_due:
            took_ns = self.clock.elapsed_ns() - began_ns
            self.looks_ns = began_ns + max(LOOK_NS, took_ns * SELDOM)

    def ours(self) -> set[str]:
        return {name for name in self.side.catalog.databases() if self.may_be_ours(name)}

    def may_be_ours(self, name: str) -> bool:
        return self.side.admission.source_of(TableName(name)) is not None

    def is_ours(self, name: str, database: Database) -> bool:
        """Tell whether the database stands for the one that the policy shows under the name: dumps of the same source
        may be loaded under others."""
        source_name = self.side.admission.source_of(TableName(name))
        mark = (database.parameters or {}).get(SOURCE)
        return source_name is not None and mark == source_mark(self.side.policy.source, source_name)

    def put(self, name: str, database: Database) -> None:
        try:
            with work_on(f"position of database {name}", Conflict):
                self.side.catalog.alter_database(name, database)
        except (Conflict, Refused, Unavailable, ObjectDefect) as error:
            LOG.warning("%s: database %s does not say %s: %s", self.side.policy.target, name, HIVE_POSITION, error)


def position_of(database: Database) -> str | None:
    return (database.parameters or {}).get(HIVE_POSITION)


def with_position(database: Database, target_database: Database) -> Database:
    """Return the image of a database with the position that stands at the target."""
    position = position_of(target_database)
    return database if position is None else at_position(database, position)


def at_position(database: Database, position: str) -> Database:
    return replace(database, parameters={**(database.parameters or {}), HIVE_POSITION: position})
