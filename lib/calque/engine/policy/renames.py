"""The names at the target after a change of policy: tables that move, tables that go, databases that are made and
dropped."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from calque.core.defects import ObjectDefect, work_on
from calque.core.formats.bounded import number_of
from calque.core.formats.layout import natural_location
from calque.core.images.image import EVENT, INCARNATION, SOURCE
from calque.core.images.policies import PolicyTermChange, databases_of, marked, ordered
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.policy.retained import RetainedReplicas, move, partition_statistics
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.fault_isolation import defect_reason
from calque.model.hive import Database, Table, is_view
from calque.model.ledger import ObjectRow
from calque.model.names import OURS, EventId, TableName, table_name
from calque.model.records import AnnouncedBridge
from calque.ports import Conflict

TAKEN = "its name at the target is taken"
UNSEEN = "what the target has of it can't be looked at"


@dataclass(frozen=True, slots=True)
class OwnedTable:
    """A table of calque's at the target: its name at the source, and its definition."""

    name: TableName
    table: Table

    def row(self, change: str) -> ObjectRow:
        parameters = self.table.parameters or {}
        event = parameters.get(EVENT, "")
        return ObjectRow(*self.name, "", parameters.get(INCARNATION, ""), number_of(event), change)


OwnedTables = dict[TableName, OwnedTable]
"""Tables of calque's by their names at the target."""


class TargetRenames:
    """The calls that make a target's names those of its policy. A crash may follow each call, so what is done already
    is seen at the target."""

    def __init__(self, source: SourceSide, side: TargetSide, databases: Databases, retained: RetainedReplicas) -> None:
        self.source, self.side, self.databases, self.retained = source, side, databases, retained

    def aside(self, name: TableName) -> TableName:
        """Return the name under which a table waits whose new name is another moving table's: no other table, and no
        other target, has it."""
        return TableName(OURS, f"{self.prefix()}{digest(str(name))}")

    def prefix(self) -> str:
        return f"{OURS}_move_{digest(self.side.policy.target)}_"

    def affected_tables(self, change: PolicyTermChange) -> tuple[OwnedTables, list[TableName]]:
        """Return tables that earlier policies put where they are and that may have to go or to change, and tables that
        a crash left aside. The second value are the source's tables whose replicas can't be looked at; these stay where
        they are."""
        tables: OwnedTables = {}
        unseen: set[TableName] = set()
        for database in self.side.catalog.databases():
            names = [table_name(database, table) for table in self.side.catalog.tables(database)]
            is_own_database = database == OURS
            for target_name in names:
                if target_name.table.startswith(self.prefix()) if is_own_database else change.concerns(target_name):
                    replica = self.look(target_name)
                    if isinstance(replica, ObjectDefect):
                        unseen |= self.leave_unseen(change, target_name, replica)
                    elif replica is not None and (is_own_database or change.was_put(replica.name, target_name)):
                        tables[target_name] = replica
        return tables, sorted(unseen)

    def look(self, target_name: TableName) -> OwnedTable | ObjectDefect | None:
        """Return the result of `replica`, None for none, or the defect that keeps calque from looking."""
        found: list[OwnedTable | None] = []
        work = f"look at table {target_name} at the target"
        trouble = self.databases.faults.attempt(work, lambda: found.append(self.replica(target_name)))
        return trouble if trouble is not None else found[0]

    def leave_unseen(self, change: PolicyTermChange, target_name: TableName, error: ObjectDefect) -> set[TableName]:
        """Keep the replica that can't be looked at because of the defect `error`, which is recorded as the reason, and
        return the source's tables that earlier policies put under the name `target_name`."""
        names = {name for one in change.before if (name := one.source_of(target_name)) is not None}
        for name in names:
            self.retained.keep(name, target_name, 0, defect_reason(error))
        return names

    def replica(self, target_name: TableName) -> OwnedTable | None:
        table = self.side.catalog.table(target_name)
        if table is None:
            return None
        name = marked((table.parameters or {}).get(SOURCE, ""), self.side.policy.source)
        return OwnedTable(name, table) if name is not None else None

    # Tables

    def leave(self, replicas: OwnedTables, shows: EventId) -> list[ObjectRow]:
        """Drop the tables that are not admitted any more, or keep them, as the policy says, and return rows of those
        that were dropped. Views go before the tables that they may show."""
        dropped_rows: list[ObjectRow] = []
        for target_name, replica in sorted(replicas.items(), key=lambda item: (not is_view(item[1].table), item[0])):
            if self.side.policy.drops == "keep":
                self.retained.keep(replica.name, target_name, shows, "the policy does not admit it any more")
                continue
            work = f"drop of table {target_name}"
            try:
                with work_on(work, Conflict):
                    self.side.catalog.drop_table(target_name)
            except Conflict:
                continue
            except ObjectDefect as error:
                self.databases.faults.require_own_fault(work, error)
                self.retained.keep(replica.name, target_name, shows, defect_reason(error))
                continue
            dropped_rows.append(replica.row("drop_table"))
        return dropped_rows

    def move(self, replicas: OwnedTables, cursor: EventId) -> tuple[list[ObjectRow], list[TableName]]:
        """Rename each table to the name that the policy gives it. Return rows of those that moved, and the tables that
        stay where they are, because their name is taken or they met a defect."""
        now = self.side.admission
        goals = {target_name: now.name_at_target(replica.name) for target_name, replica in replicas.items()}
        by_name = dict(replicas)
        done: list[ObjectRow] = []
        stuck: list[TableName] = []
        for was, to in ordered(goals, lambda target_name: self.aside(replicas[target_name].name)):
            replica = by_name.pop(was, None)
            if replica is None:
                continue
            work, is_moved, why = f"move of table {replica.name}", False, TAKEN
            try:
                with work_on(work):
                    if to.database == OURS:
                        ensure_own_database(self.side.catalog, self.side.policy.warehouse)
                        self.side.announced.add(self.side.ledger, AnnouncedBridge, [replica.name], cursor)
                    else:
                        self.make_room(replica.name, was)
                    is_moved = move(self.side, was, to, replica.table)
            except ObjectDefect as error:
                self.databases.faults.require_own_fault(work, error)
                why = defect_reason(error)
            if is_moved:
                by_name[to] = OwnedTable(replica.name, replace(replica.table, database=to.database, name=to.table))
                done.append(replica.row("rename_table"))
            else:
                self.retained.keep(replica.name, was, cursor, why)
                stuck.append(replica.name)
        return done, stuck

    def make_room(self, name: TableName, was: TableName) -> None:
        """Make the database that the table goes to if it does not exist. If the source has dropped it since, it is made
        like the one that the table comes from."""
        self.databases.ensure(name)
        target_name = self.side.admission.name_at_target(name).database
        if self.side.catalog.database(target_name) is None:
            old_database = self.side.catalog.database(was.database) if was.database != OURS else None
            location = natural_location(self.side.policy.warehouse, target_name)
            database = old_database or Database(target_name)
            self.side.catalog.create_database(replace(database, name=target_name, location=location))

    def loses_statistics(self, target_name: TableName, replica: OwnedTable) -> bool:
        """Tell whether partitions of the table have column statistics, which a rename would lose."""
        return any(partition_statistics(self.side, target_name, replica.table))

    # Databases

    def make_databases(self, names: list[str], event_id: EventId) -> None:
        """Make databases of the source under the names that the policy gives them, as the source has them now."""
        for name in names:
            if (database := self.source.catalog.database(name)) is not None:
                self.databases.put(database, event_id, AppliedChanges())

    def drop_databases(self, change: PolicyTermChange) -> None:
        """Drop databases that were made for one of the source's that has another name now, or is not admitted any more.
        A database that is not empty stays."""
        for target_name in self.side.catalog.databases():
            work = f"drop of database {target_name}, which the policy does not have any more"
            with suppress(Conflict):
                self.databases.faults.attempt(work, partial(self.drop_database, change, target_name), Conflict)

    def drop_database(self, change: PolicyTermChange, target_name: str) -> None:
        """Drop the database if it was made under an earlier policy and is not in use. Raises `Conflict` if it is not
        empty."""
        target_database = self.side.catalog.database(target_name)
        mark = ((target_database.parameters if target_database else None) or {}).get(SOURCE, "")
        name = marked(mark, self.side.policy.source)
        if name is None or not change.was_made(name.database, target_name):
            return
        if not self.is_in_use(change, name.database, target_name):
            self.side.catalog.drop_database(target_name)
            self.databases.known_databases.discard(target_name)

    def is_in_use(self, change: PolicyTermChange, database: str, target_name: str) -> bool:
        now = change.now
        if not now.touches_database(database) and self.side.policy.drops == "keep":
            return True
        if target_name in databases_of(now, database) or any(
            new.database == target_name and now.takes(old) for old, new in now.tables.items()
        ):
            return True
        other = now.source_of(TableName(target_name))
        return other is not None and self.source.catalog.database(other.database) is not None


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
