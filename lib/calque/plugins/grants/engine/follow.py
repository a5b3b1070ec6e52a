"""Have the target's databases and tables the grants of the source's.

Grants raise no events, so that they are looked at again and again. What tells that both sides show the same object is
what `verify` goes by: the target's position is read first, then the grants, then the source's newest event. Where no
event between them names the object, the grants at the source are those of what the target shows: nobody gets access to
rows by the grants of a table that only took the name.
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
"""Between two looks, at least."""
SHARE = 10
"""Looks take at most one of so many seconds."""
PAGE = 100
"""Tables that are looked at between two looks at the log."""
FARTHEST = 20_000
"""A target that is so many events behind has its grants when it is not."""

Pair = tuple[TableName, TableName]
"""A database or table by its names at the source and at the target."""


@dataclass
class GrantsFollower:
    """Of one target; for one thread. `refused` are objects whose grants the target did not take, and why."""

    source: SourceSide
    side: TargetSide
    from_source: Privileges
    at_target: Privileges
    refused: dict[TableName, str] = field(default_factory=dict)

    def once(self) -> int:
        """Look at all that is at both sides; how many objects were changed. Raises `Unavailable`, `Refused`."""
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
        """The target's names of what may have other grants there. All of what has grants is asked for at once."""
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
        """Of these names at the target those that are there and ours: what they show is said by their marks."""
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
        """At a page. What an event names that the target may not show yet is left to the next look."""
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
        """Databases and tables that the source's events name behind the position; None where there are too many."""
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
        """Whether the target took them: what goes is taken away first. An object of which it does not is told once."""
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
        """Those that the target lacks; who has them is said there."""
        for role in sorted({grant.principal for grant in grants if grant.kind == ROLE} - roles):
            with suppress(Conflict):
                self.at_target.create_role(role)
            roles.add(role)
