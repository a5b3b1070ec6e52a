"""Names at the target after a change of policy: tables that move, tables that go, databases that come and go."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from calque.core.image import EVENT, INCARNATION, SOURCE
from calque.core.layout import natural_location
from calque.core.policies import Change, databases_of, marked, ordered
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.policy.retained import RetainedReplicas, move, partition_statistics
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.hive import Database, Table, is_view
from calque.model.ledger import ObjectRow
from calque.model.names import OURS, EventId, TableName, table_name
from calque.model.records import AnnouncedBridge
from calque.ports import Conflict

TAKEN = "its name at the target is taken"


@dataclass(frozen=True, slots=True)
class OwnedTable:
    """A table of ours at the target: its name at the source and its definition."""

    name: TableName
    table: Table

    def row(self, change: str) -> ObjectRow:
        parameters = self.table.parameters or {}
        event = parameters.get(EVENT, "")
        return ObjectRow(*self.name, "", parameters.get(INCARNATION, ""), int(event or 0), change)


Standing = dict[TableName, OwnedTable]
"""By their names at the target."""


class TargetRenames:
    """Makes a target's names those of its policy. Each call at the target is one that a crash may follow: what is done
    is seen there."""

    def __init__(self, source: SourceSide, side: TargetSide, databases: Databases, kept: RetainedReplicas) -> None:
        self.source, self.side, self.databases, self.kept = source, side, databases, kept

    def aside(self, name: TableName) -> TableName:
        """Where a table of a ring waits: a name that no other table, and no other target, has."""
        return TableName(OURS, f"{self.prefix()}{digest(str(name))}")

    def prefix(self) -> str:
        return f"{OURS}_move_{digest(self.side.policy.target)}_"

    def there(self, change: Change) -> Standing:
        """Tables that the policies before put where they are, and that may have to go or to change; and those that a
        crash left aside."""
        found: Standing = {}
        for database in self.side.catalog.databases():
            names = [table_name(database, table) for table in self.side.catalog.tables(database)]
            aside = database == OURS
            for at in names:
                if at.table.startswith(self.prefix()) if aside else change.concerns(at):
                    replica = self.replica(at)
                    if replica is not None and (aside or change.was_put(replica.name, at)):
                        found[at] = replica
        return found

    def replica(self, at: TableName) -> OwnedTable | None:
        table = self.side.catalog.table(at)
        if table is None:
            return None
        name = marked((table.parameters or {}).get(SOURCE, ""), self.side.policy.source)
        return OwnedTable(name, table) if name is not None else None

    # Tables

    def leave(self, there: Standing, shows: EventId) -> list[ObjectRow]:
        """Tables that are admitted no more go, or are kept, as the policy says; views before the tables that they may
        show."""
        gone: list[ObjectRow] = []
        for at, replica in sorted(there.items(), key=lambda item: (not is_view(item[1].table), item[0])):
            if self.side.policy.drops == "keep":
                self.kept.keep(replica.name, at, shows, "the policy does not admit it any more")
                continue
            try:
                self.side.catalog.drop_table(at)
            except Conflict:
                continue
            gone.append(replica.row("drop_table"))
        return gone

    def move(self, there: Standing, cursor: EventId) -> tuple[list[ObjectRow], list[TableName]]:
        """Each table to its name; those whose name is taken stay where they are, and come second."""
        now = self.side.admission
        goals = {at: now.name_at_target(replica.name) for at, replica in there.items()}
        by_name = dict(there)
        done: list[ObjectRow] = []
        stuck: list[TableName] = []
        for was, to in ordered(goals, lambda at: self.aside(there[at].name)):
            replica = by_name.pop(was, None)
            if replica is None:
                continue
            if to.database == OURS:
                ensure_own_database(self.side.catalog, self.side.policy.warehouse)
                self.side.announced.add(self.side.ledger, AnnouncedBridge, [replica.name], cursor)
            else:
                self.make_room(replica.name, was)
            if move(self.side, was, to, replica.table):
                by_name[to] = OwnedTable(replica.name, replace(replica.table, database=to.database, name=to.table))
                done.append(replica.row("rename_table"))
            else:
                self.kept.keep(replica.name, was, cursor, TAKEN)
                stuck.append(replica.name)
        return done, stuck

    def make_room(self, name: TableName, was: TableName) -> None:
        """The database that the table goes to; where the source has dropped it since, as the one that it comes from."""
        self.databases.ensure(name)
        at = self.side.admission.name_at_target(name).database
        if self.side.catalog.database(at) is None:
            there = self.side.catalog.database(was.database) if was.database != OURS else None
            location = natural_location(self.side.policy.warehouse, at)
            self.side.catalog.create_database(replace(there or Database(at), name=at, location=location))

    def loses_statistics(self, at: TableName, replica: OwnedTable) -> bool:
        """Whether partitions have column statistics."""
        return any(partition_statistics(self.side, at, replica.table))

    # Databases

    def make_databases(self, names: list[str], event_id: EventId) -> None:
        """Databases of the source under the names that the policy gives them, as the source has them now."""
        for name in names:
            if (found := self.source.catalog.database(name)) is not None:
                self.databases.put(found, event_id, AppliedChanges())

    def drop_databases(self, change: Change) -> None:
        """Databases that were made for one of the source's that has another place now, or is admitted no more. One that
        is not empty stays."""
        for at in self.side.catalog.databases():
            there = self.side.catalog.database(at)
            name = marked((there.parameters or {}).get(SOURCE, ""), self.side.policy.source) if there else None
            if name is None or not change.was_made(name.database, at) or self.is_in_use(change, name.database, at):
                continue
            try:
                self.side.catalog.drop_database(at)
            except Conflict:
                continue
            self.databases.known_databases.discard(at)

    def is_in_use(self, change: Change, database: str, at: str) -> bool:
        now = change.now
        if not now.touches_database(database) and self.side.policy.drops == "keep":
            return True
        if at in databases_of(now, database) or any(
            new.database == at and now.takes(old) for old, new in now.tables.items()
        ):
            return True
        other = now.source_of(TableName(at))
        return other is not None and self.source.catalog.database(other.database) is not None


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
