"""The looks for changes of databases that the source's log has no event of.

Servers of Hive 4 log an alteration of a database only where its parameters or its owner change. So the admitted
databases are looked at now and then. Both sides show the same database by the rule that `verify` uses: first the
target's position is read, then the source's database, then the source's newest event. Where no event between them names
the database, it is as the target has to show it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.images.image import is_ours, same_definition
from calque.core.states.fold import names_in
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.apply.hive_positions import with_position
from calque.engine.sides.journal_reads import PAGE, entries_in
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.hive import Database
from calque.model.names import EventId, Span, table_name

LOG = logging.getLogger(__name__)
SECONDS = 10.0
"""The least seconds between two looks."""
SHARE = 100
"""The share of time that looks take: at most one of so many seconds."""


@dataclass(frozen=True, slots=True)
class FoundDatabase:
    """The source's database as it was at some moment before the source's event `head`."""

    database: Database
    head: EventId


class DatabaseLooks:
    """The looks at the databases of one target. `once` is for a thread of its own, which only finds; the thread of the
    windows applies. `wake` is called when a look found a change."""

    def __init__(self, source: SourceSide, side: TargetSide, wake: Callable[[], None]) -> None:
        self.source, self.side, self.wake = source, side, wake
        self.found: dict[str, FoundDatabase] = {}
        """Databases that changed, by the source's names."""
        self.applied: dict[str, Database] = {}
        """Databases as they were applied last. Where the target keeps another definition, it is not asked for the same
        one again."""

    def run_once(self, databases: Databases, shown: EventId) -> int:
        """Look at every admitted database while the target shows event `shown`; return how many are others at the
        source. Raises `Unavailable`, `Refused`, `AccessRefused`."""
        names = [name for name in self.source.catalog.databases() if self.side.admission.takes_database(name)]
        differing = {name: found for name in names if (found := self.difference(databases, shown, name)) is not None}
        head = self.source.log.current()
        if not differing or head - shown > PAGE:
            return 0
        touched = names_in(list(entries_in(self.source, Span(shown, max(head, shown)))))
        untouched = {name: database for name, database in differing.items() if table_name(name) not in touched}
        self.found |= {name: FoundDatabase(database, head) for name, database in untouched.items()}
        if untouched:
            self.wake()
        return len(untouched)

    def difference(self, databases: Databases, shown: EventId, name: str) -> Database | None:
        """Return the source's database `name` if the definition of its replica, as the target would show it at event
        `shown`, is another. None where the definitions are equal, where either side has no such database, where the
        target's is no replica or is quarantined, where this definition was applied already, and after a defect, which
        is logged."""
        try:
            with work_on(f"the look at database {name}"):
                database = self.source.catalog.database(name)
                replica = self.side.catalog.database(self.side.admission.name_at_target(table_name(name)).database)
                if database is None or replica is None or not is_ours(replica.parameters, self.side.policy.source):
                    return None
                if self.applied.get(name) == database or name in databases.quarantined_rows:
                    return None
                image = with_position(databases.image(database, shown, replica.location), replica)
                return None if same_definition(replica, image) else database
        except ObjectDefect as error:
            LOG.warning("%s: %s", self.side.policy.target, error, exc_info=traceback_of(error))
            return None

    def apply(self, databases: Databases, shown: EventId) -> None:
        """Apply the databases that were found, as far as no event since then named them. Not to be called beside a
        window. Raises `Unavailable`; the next look finds the same then."""
        for name in list(self.found):
            found = self.found.pop(name)
            later = Span(found.head, max(shown, found.head))
            if table_name(name) not in names_in(list(entries_in(self.source, later))):
                LOG.info("%s: database %s changed without an event", self.side.policy.target, name)
                databases.put(found.database, shown, AppliedChanges())
                self.applied[name] = found.database
