"""`repl.last.id`: what Hive's own replication writes on a database that it loaded, kept up beside calque's marks.

Tools of Hive read it (`REPL STATUS`). calque changes it once for each epoch, on databases of its own that carry one;
it gives none to a database that has none.
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
"""All databases are looked at again after ten seconds, and so seldom that it takes a hundredth of the time."""


class HivePositions:
    """Of one target. Nothing here is called beside a window."""

    def __init__(self, side: TargetSide, clock: Clock) -> None:
        self.side, self.clock = side, clock
        self.carrying: set[str] = set()
        """The target's databases that have one."""
        self.looks_ns = 0
        """When all databases are looked at again: another may carry one then."""
        self.unlooked: EventId | None = None
        """The event that is shown, as long as only the databases that were known to carry one were told."""

    def is_due(self) -> bool:
        """Whether all databases are to be looked at for an event that is shown already."""
        return self.unlooked is not None and self.clock.elapsed_ns() >= self.looks_ns

    def look_again(self) -> None:
        """The same as `show`, when that is due: no later epoch may come for a long time."""
        if self.unlooked is not None and self.is_due():
            self.show(self.unlooked)

    def forget(self) -> None:
        """Another database may carry one now."""
        self.looks_ns = 0

    def show(self, event_id: EventId) -> None:
        """Have them all say this event, which the target shows. A database that does not take it says an older one."""
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
        """Whether it stands for the database that the policy shows under that name: dumps of the same source may be
        loaded under others."""
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
    """The image of a database with the position that stands at the target."""
    position = position_of(target_database)
    return database if position is None else at_position(database, position)


def at_position(database: Database, position: str) -> Database:
    return replace(database, parameters={**(database.parameters or {}), HIVE_POSITION: position})
