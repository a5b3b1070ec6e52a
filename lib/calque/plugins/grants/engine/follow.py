"""The transfer of grants: the target's databases and tables get the grants of the source's.

Grants raise no events, so that they are looked at again and again. A look must know that both sides show the same
object, in the way of `verify`: it reads the target's position first, then the grants, then the source's newest event.
Where no event between the two names the object, the grants at the source are those of the object that the target shows.
Without this a table that only took the name of another would pass its grants on to the other table's rows:

    The target is at event 80 and shows `t`. At the source event 85 drops `t`, and event 86 makes another `t`, which
    bob may read. The look finds `t` in the events 81..86, and leaves it alone: bob can't read rows of the old `t`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.images.image import SOURCE
from calque.core.images.policies import marked
from calque.core.plan.limits import batches
from calque.core.states.fold import names_in
from calque.engine.sides.journal_reads import entries_in
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import CallFailed, Refused
from calque.model.hive import Database, Table
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, Span, TableName, table_name
from calque.plugins.grants.model import ROLE, Grant
from calque.plugins.grants.ports import Privileges
from calque.ports import Conflict

LOG = logging.getLogger(__name__)
SECONDS = 5.0
"""The least seconds between two looks."""
SHARE = 10
"""Looks take at most one second in this number of seconds."""
PAGE = 100
"""The most objects whose grants are read between two looks at the log."""
FARTHEST = 20_000
"""A target that is more than this number of events behind gets no grants until it has caught up."""

Pair = tuple[TableName, TableName]
"""A database or table by its names at the source and at the target."""


@dataclass
class GrantsFollower:
    """The transfer of grants to one target, for one thread. `refused` has the objects whose grants the target did not
    take, with the reasons."""

    source: SourceSide
    side: TargetSide
    from_source: Privileges
    at_target: Privileges
    refused: dict[TableName, str] = field(default_factory=dict)

    def run_once(self) -> int:
        """Give each database and table that is at both sides the grants of the source's. Return the number of objects
        that were changed. A grant that the target refuses is logged and no error. Raises `Unavailable` and `Refused` as
        the ports do."""
        differing = self.differing()
        if not differing:
            return 0
        roles = set(self.at_target.roles())
        absent = {
            TableName(row.database, row.table)
            for row in self.side.ledger.tables().values()
            if isinstance(row, TableRow) and row.state is not TableState.LIVE
        }
        changed = sum(self.look(self.own(names), absent, roles) for names in batches(differing, PAGE))
        if changed:
            LOG.info("%s: grants of %d objects were changed", self.side.policy.target, changed)
        return changed

    def differing(self) -> Sequence[TableName]:
        """Return the names at the target of objects that may have other grants at the source. All grants of both sides
        are read in a few calls."""
        admission = self.side.admission
        wanted = {
            admission.name_at_target(name): grants
            for name, grants in self.from_source.all_grants().items()
            if admission.takes(name)
        }
        current = {
            name: grants
            for name, grants in self.at_target.all_grants().items()
            if admission.source_of(name) is not None
        }
        return sorted(name for name in {*wanted, *current} if wanted.get(name) != current.get(name))

    def own(self, names: Sequence[TableName]) -> Sequence[Pair]:
        """Return those of the names at the target that are there and are replicas of this source, each with its name at
        the source. The marks on the objects say which these are."""
        found: dict[TableName, Table | Database] = {}
        for database in {name.database for name in names}:
            tables = [name.table for name in names if name.database == database and name.table]
            headers = self.side.catalog.headers(database, tables) if tables else {}
            found |= {TableName(database, table): stored for table, stored in headers.items()}
            stored = self.side.catalog.database(database) if table_name(database) in names else None
            found |= {table_name(database): stored} if stored is not None else {}
        marks = {name: (stored.parameters or {}).get(SOURCE, "") for name, stored in found.items()}
        origins = {name: marked(mark, self.side.policy.source) for name, mark in marks.items()}
        takes = self.side.admission.takes
        return [(origin, name) for name, origin in origins.items() if origin is not None and takes(origin)]

    def look(self, pairs: Sequence[Pair], absent: Collection[TableName], roles: set[str]) -> int:
        """Change the grants of a page of objects, and return how many objects were changed. An object that an event
        behind the target's position names is left to the next look, because the target may not show it yet. `absent`
        are objects that are not live."""
        epoch = self.side.ledger.last_epoch()
        if epoch is None or not pairs:
            return 0
        wanted = self.from_source.grants([name for name, _ in pairs])
        current = self.at_target.grants([target_name for _, target_name in pairs])
        touched = self.touched_since(epoch.event_id)
        if touched is None:
            return 0
        return sum(
            self.put(name, target_name, wanted[name], current[target_name], roles)
            for name, target_name in pairs
            if wanted[name] != current[target_name] and name not in absent and name not in touched
        )

    def touched_since(self, position: EventId) -> set[TableName] | None:
        """Return the databases and tables that the source's events after `position` name; None where there are more
        than `FARTHEST` events."""
        head = self.source.log.current()
        if head - position > FARTHEST:
            return None
        return names_in(list(entries_in(self.source, Span(position, max(head, position)))))

    def put(
        self,
        name: TableName,
        target_name: TableName,
        wanted: frozenset[Grant],
        current: frozenset[Grant],
        roles: set[str],
    ) -> bool:
        """Revoke the grants at the target that the source does not have, then give those that are missing. Return
        whether the target took them. A refusal is logged once for each object and reason."""
        try:
            with work_on(f"grants of {name}", Conflict):
                self.make_roles(wanted, roles)
                if extra := current - wanted:
                    self.at_target.revoke(target_name, extra)
                if missing := wanted - current:
                    self.at_target.grant(target_name, missing)
        except Conflict as conflict:
            LOG.debug("%s: grants of %s are looked at again: %s", self.side.policy.target, target_name, conflict)
            return False
        except (Refused, CallFailed, ObjectDefect) as error:
            if self.refused.get(name) != str(error):
                text = "%s: grants of %s are not followed: %s"
                LOG.warning(text, self.side.policy.target, name, error, exc_info=traceback_of(error))
            self.refused[name] = str(error)
            return False
        self.refused.pop(name, None)
        return True

    def make_roles(self, grants: Collection[Grant], roles: set[str]) -> None:
        """Make those roles of the grants that the target lacks. Their members are not copied: they are set at the
        target."""
        for role in sorted({grant.principal for grant in grants if grant.kind == ROLE} - roles):
            with suppress(Conflict):
                self.at_target.create_role(role)
            roles.add(role)
