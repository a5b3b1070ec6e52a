"""The change of a target's policy: which tables move, go, and are read, so that a replica that was made under one
policy becomes one of another.

The ledger says which policies the target may have been written under. A change adds the new policy there before its
first effect, and leaves only this one after the last. So a change that a crash cut short, or that was taken back
half-way, is finished from what the target shows. Marks name the source's objects, so they hold under every name at the
target.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from calque.core.events.effects import OF_FUNCTIONS
from calque.core.images.policies import PolicyTermChange, policy_of, terms_of
from calque.engine.apply.databases import Databases, is_of_database
from calque.engine.apply.functions import Functions
from calque.engine.policy.renames import TAKEN, UNSEEN, OwnedTables, TargetRenames
from calque.engine.policy.retained import RetainedReplicas
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TABLE
from calque.engine.window.consistency import Consistency
from calque.model.hive import is_view
from calque.model.journal import Entry
from calque.model.ledger import ObjectRow, StateKey, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.model.records import AdmittedObject, ReadMode, Record, TargetPolicies, all_of, one_of, record_key

LOG = logging.getLogger(__name__)
Rows = Mapping[StateKey, StateRow]
COPIED = "the policy has its files copied now"
NARROWED = "the policy takes other partitions of it now"
LEFT_OUT = "the policy's where does not take it any more"
LEFT = "the policy leaves its files at the source now"


ACID_SWITCHED = "the policy's word for ACID tables changed"


def as_format(name: str) -> str:
    """Return the reason why a table is read that is to have the format `name` (empty: the source's)."""
    return f"the policy keeps it as a {name.title()} table now" if name else "the policy keeps it plain now"


class PolicyChange:
    """The change of one target's policy. `admitted` are databases and functions that a change admitted; the journal
    still has events of these that are older than their read."""

    def __init__(
        self, source: SourceSide, side: TargetSide, databases: Databases, functions: Functions, consistency: Consistency
    ) -> None:
        self.source, self.side = source, side
        self.databases, self.functions, self.consistency = databases, functions, consistency
        self.retained = RetainedReplicas(side)
        self.moves = TargetRenames(source, side, databases, self.retained)
        self.admitted: dict[TableName, AdmittedObject] = {}

    def open(self, records: Sequence[Record], rows: Rows, cursor: EventId) -> list[ObjectRow]:
        """Bring the target, which shows `cursor`, to its policy, and return rows of what was moved and dropped there.
        It makes no call at the target if the policy is unchanged."""
        self.retained.adopt(records)
        self.admitted = {one.name: one for one in all_of(records, AdmittedObject)}
        now, written = self.side.policy, one_of(records, TargetPolicies)
        if written is None:
            self.record(now)
            return []
        if written.policies == (terms_of(now),):
            return []
        before = tuple(policy_of(terms, now) for terms in written.policies)
        if terms_of(now) not in map(terms_of, before):
            self.record(*before, now)
        done = self.change(PolicyTermChange.of(before, self.side.admission), rows, cursor)
        self.record(now)
        return done

    def record(self, *policies: Policy) -> None:
        self.side.ledger.put_records([TargetPolicies(tuple(map(terms_of, policies)))])

    def knows(self, entry: Entry) -> bool:
        """Tell whether the target has the entry's database or function in a later state, because a change of policy
        read it after the entry's event."""
        name = entry.keys.table
        if name is None or not self.admitted:
            return False
        if not is_of_database(entry) and entry.keys.kind not in OF_FUNCTIONS:
            return False
        admitted = self.admitted.get(TableName(name.database) if is_of_database(entry) else name)
        return admitted is not None and entry.event_id <= admitted.read_at

    def change(self, change: PolicyTermChange, rows: Rows, cursor: EventId) -> list[ObjectRow]:
        """Do all that the change asks for, and return rows of what was moved and dropped. Tables that have to be read
        are UNKNOWN in the ledger before the first effect."""
        moves, now = self.moves, change.now
        low = (
            self.source.log.current()
            if change.differs("include", "exclude", "rename", "data", "format", "acid", "partitions", "where")
            else cursor
        )
        affected_tables, unseen = moves.affected_tables(change)
        admitted_tables = {name: replica for name, replica in affected_tables.items() if now.takes(replica.name)}
        functions = list(self.new_functions(change))
        databases = list(self.new_databases(change))
        unknown = list(self.unknown(change, rows, admitted_tables, cursor, low))
        admitted = [AdmittedObject(name, low) for name in (*map(TableName, databases), *functions)]
        switched = [row.name for row in unknown if change.switches_data(row.name) and now.copies(row.name)]
        self.side.read_requests.add(self.side.ledger, ReadMode.COPY, switched, COPIED)
        # Two commits: a death between them, as one after both, leaves policies that are several, and the change is made
        # anew from its beginning.
        if unknown:
            self.side.ledger.put_tables(unknown)
        if admitted:
            self.side.ledger.put_records(admitted)
        self.admitted |= {one.name: one for one in admitted}
        moving = {
            name: replica for name, replica in admitted_tables.items() if now.name_at_target(replica.name) != name
        }
        self.announce(change, {replica.name.database for replica in moving.values()})
        moves.make_databases(databases, low)
        dropped = {name: replica for name, replica in affected_tables.items() if name not in admitted_tables}
        done = moves.leave(dropped, cursor)
        renamed_rows, stuck = moves.move(moving, cursor)
        done += renamed_rows
        again = dict.fromkeys(filter(now.takes, unseen), UNSEEN) | dict.fromkeys(stuck, TAKEN)
        if again:
            self.side.ledger.put_tables(
                [TableRow(*name, TableState.UNKNOWN, None, reason, low) for name, reason in again.items()],
            )
        self.functions.follow(low)
        self.functions.read(functions, low)
        moves.drop_databases(change)
        self.forget(rows, cursor)
        text = "%s: its policy changed: %d tables are read, %d moved or dropped"
        LOG.info(text, self.side.policy.target, len(unknown), len(done))
        return done

    def announce(self, change: PolicyTermChange, databases: set[str]) -> None:
        """Mark the databases whose tables will not move in one step, and remove the marks where the policy does not ask
        for consistency by database any more."""
        if not change.differs("consistency") and not self.consistency.by_database:
            return
        self.databases.adopt_states()
        if self.consistency.by_database:
            for database in sorted(databases):
                self.consistency.rebase(database)
        else:
            for database in sorted(self.databases.states):
                self.databases.say(database, "")

    # What is read

    def unknown(
        self, change: PolicyTermChange, rows: Rows, admitted_tables: OwnedTables, cursor: EventId, low: EventId
    ) -> Iterator[TableRow]:
        """Yield rows of the tables that have to be read, because they are new, were set aside under the old policy, or
        are to look otherwise."""
        reasons = dict(self.set_aside(change, rows))
        for target_name, replica in admitted_tables.items():
            if change.differs("properties"):
                reasons[replica.name] = "the policy's properties changed"
            elif change.switches_data(replica.name):
                reasons[replica.name] = COPIED if change.now.copies(replica.name) else LEFT
            elif change.switches_format(replica.name):
                reasons[replica.name] = as_format(change.now.wanted_format(replica.name))
            elif change.switches_acid(replica.name):
                reasons[replica.name] = ACID_SWITCHED
            elif change.switches_subset(replica.name):
                reasons[replica.name] = NARROWED
            elif change.differs("where") and self.source.catalog.table(replica.name) is None:
                reasons[replica.name] = LEFT_OUT
            elif change.renames and is_view(replica.table):
                reasons[replica.name] = "the policy calls tables by other names, which its text may name"
            elif change.now.name_at_target(replica.name) != target_name and self.moves.loses_statistics(
                target_name, replica
            ):
                reasons[replica.name] = "the policy gives it another name, and its partitions have statistics"
        shown = {replica.name for replica in admitted_tables.values()}
        for name in self.new_tables(change):
            reasons.setdefault(name, "admitted by the policy")
        for name in self.left_tables(change):
            if name not in shown:
                reasons.setdefault(name, "the policy's where takes it now")
        for name, reason in sorted(reasons.items()):
            row = rows.get((TABLE, *name))
            is_behind = isinstance(row, TableRow) and row.state is not TableState.LIVE
            shows = row.shows if isinstance(row, TableRow) and is_behind else cursor if name in shown else None
            yield TableRow(*name, TableState.UNKNOWN, shows, reason, low)

    def set_aside(self, change: PolicyTermChange, rows: Rows) -> Iterator[tuple[TableName, str]]:
        for row in rows.values():
            is_quarantined = isinstance(row, TableRow) and row.state is TableState.QUARANTINED
            if is_quarantined and change.now.takes(row.name):
                yield row.name, "its policy changed"

    def new_tables(self, change: PolicyTermChange) -> Iterator[TableName]:
        """Yield the tables that the policy admits newly: those that the source has, and those whose replica was
        kept."""
        if not change.admits_others:
            return
        yield from filter(change.is_new, self.retained.replicas)
        for database in self.source.catalog.databases():
            if change.now.touches_database(database):
                names = (TableName(database, table.lower()) for table in self.source.catalog.tables(database))
                yield from filter(change.is_new, names)

    def left_tables(self, change: PolicyTermChange) -> Iterator[TableName]:
        """Yield all tables of the source that the policy's patterns take, if its `where` changed, because any of them
        may be taken now."""
        if not change.differs("where"):
            return
        for database in self.source.catalog.databases():
            if change.now.touches_database(database):
                names = (TableName(database, table.lower()) for table in self.source.catalog.tables(database))
                yield from filter(change.now.takes, names)

    def new_databases(self, change: PolicyTermChange) -> Iterator[str]:
        """Yield the databases that are to be made, or made under another name."""
        if change.admits_others or change.renames:
            for database in self.source.catalog.databases():
                if change.is_new(TableName(database)) or change.is_elsewhere(database):
                    yield database

    def new_functions(self, change: PolicyTermChange) -> Iterator[TableName]:
        if change.admits_others or change.differs("data"):
            for database in self.source.catalog.databases():
                if change.now.takes_database(database):
                    names = (TableName(database, name.lower()) for name in self.source.catalog.functions(database))
                    yield from filter(change.is_new_function, names)

    def forget(self, rows: Rows, cursor: EventId) -> None:
        """Remove rows of tables that are not admitted any more, and records of admitted objects whose older events the
        target is past."""
        now = self.side.admission
        forgotten_keys = [key for key in rows if key[0] == TABLE and not now.takes(TableName(*key[1:]))]
        past_objects = [one for one in self.admitted.values() if one.read_at <= cursor]
        if forgotten_keys:
            self.side.ledger.remove_tables(forgotten_keys)
        if past_objects:
            self.side.ledger.remove_records([record_key(one) for one in past_objects])
        for one in past_objects:
            del self.admitted[one.name]
