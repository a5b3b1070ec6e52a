"""Databases at the target: made before their tables, changed with the source's, dropped after all that was in them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from calque.core import decode
from calque.core.decode import Undecodable
from calque.core.image import SOURCE, STATE, is_ours, same_definition
from calque.core.layout import natural_location
from calque.core.policies import databases_of, marked
from calque.engine.apply import AppliedChanges
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.fault_isolation import FaultIsolation, reason
from calque.errors import CallFailed, Refused, Unavailable
from calque.model.hive import Database
from calque.model.journal import Entry, EventKind
from calque.model.ledger import DatabaseRow, StateRow, TableState
from calque.model.names import EventId, TableName, table_name
from calque.ports import Conflict

LOG = logging.getLogger(__name__)
DATABASE = "database"
HELD = "the source dropped it; it is dropped when it is empty"


class Databases:
    """A database that exists and is not ours is used as it is: its parameters are not touched, it is never dropped."""

    def __init__(self, source: SourceSide, side: TargetSide, faults: FaultIsolation) -> None:
        self.source, self.side, self.faults = source, side, faults
        self.lock = threading.Lock()
        self.known: set[str] = set()
        self.held: set[str] = set()
        """Databases that the source dropped while one of their tables was set aside; named as at the source."""
        self.aside: dict[str, DatabaseRow] = {}
        """Databases that the target does not take as they are; named as at the source."""
        self.states: dict[str, str] = {}
        """What databases say in `calque.state`, by the source's names; nothing of most."""
        self.state_of_new = ""
        """What a database says from its creation on."""

    def adopt(self, rows: Iterable[StateRow]) -> None:
        """Take up what the ledger says."""
        found = {row.database: row for row in rows if isinstance(row, DatabaseRow)}
        self.aside = {name: row for name, row in found.items() if row.state is TableState.QUARANTINED}
        self.held = found.keys() - self.aside.keys()
        for name in [name for name in self.aside if not self.side.admission.touches_database(name)]:
            self.rejoin(name)

    def adopt_states(self) -> None:
        """Take up what databases of ours say at the target."""
        for at in self.side.catalog.databases():
            name = self.side.admission.source_of(TableName(at))
            there = self.side.catalog.database(at) if name is not None else None
            if name is None or there is None or not is_ours(there.parameters, self.side.policy.source):
                continue
            if state := (there.parameters or {}).get(STATE, ""):
                self.states[name.database] = state

    def say(self, name: str, state: str) -> None:
        """Set `calque.state` of the source's database `name`, empty: take it away. One that is not made yet has it from
        the start; one that is not ours stays as it is."""
        at = self.side.admission.name_at_target(table_name(name)).database
        with self.lock:
            there = self.side.catalog.database(at)
            if there is not None and is_ours(there.parameters, self.side.policy.source):
                wanted = saying(there, state)
                if wanted != there:
                    self.state(name, at, wanted)
            if state:
                self.states[name] = state
            else:
                self.states.pop(name, None)

    def state(self, name: str, at: str, wanted: Database) -> None:
        """One whose changes the target does not take says nothing."""
        try:
            self.alter(at, wanted)
        except (Refused, Unavailable) as error:
            self.faults.require_own_fault((DATABASE, name, STATE), error)
            LOG.warning("%s: database %s can't say how it is: %s", self.side.policy.target, name, error)

    def bootstrap(self, event_id: EventId) -> None:
        """Make every admitted database as the source has it now; later events say what changed since."""
        for name in self.source.catalog.databases():
            if self.side.admission.takes_database(name) and (found := self.source.catalog.database(name)) is not None:
                self.put(found, event_id, AppliedChanges())

    def before(self, entries: Iterable[Entry], applied: AppliedChanges) -> None:
        """Databases that the window's events leave in place, as their newest image has them."""
        for entry in last_of(entries, self.side):
            if entry.keys.kind is not EventKind.DROP_DATABASE:
                assert entry.keys.table is not None
                try:
                    found = self.left_by(entry, entry.keys.table.database)
                except Undecodable as error:
                    self.quarantine(
                        entry.keys.table.database, f"event {entry.event_id} can't be read: {error}", entry.event_id
                    )
                    continue
                if found is not None:
                    self.let_go(entry.keys.table.database)
                    self.put(found, entry.event_id, applied)

    def left_by(self, entry: Entry, name: str) -> Database | None:
        """The database as the event left it. Where the message does not have it (2.3), as the source has it now; None
        when it is gone: the event that dropped it is still to come."""
        if entry.keys.kind is EventKind.UNKNOWN:
            return self.source.catalog.database(name)
        return decode.database_after(self.source.journal.events([entry.event_id])[entry.event_id])

    def after(self, entries: Iterable[Entry], applied: AppliedChanges) -> None:
        """Databases that are gone at the window's end; one that still holds something is tried again later."""
        if self.side.policy.drops == "keep":
            return
        gone = dict.fromkeys(sorted(self.held), 0)
        for entry in last_of(entries, self.side):
            if entry.keys.kind is EventKind.DROP_DATABASE and entry.keys.table is not None:
                gone[entry.keys.table.database] = entry.event_id
        for name, event_id in gone.items():
            self.drop(name, applied, event_id)

    def drop(self, name: str, applied: AppliedChanges, event_id: EventId = 0) -> None:
        """Drop the source's database `name` at the target, now or when it is empty."""
        at = self.side.admission.name_at_target(table_name(name)).database
        there = self.side.catalog.database(at)
        if there is not None and self.stands_for(there, at, name):
            try:
                self.side.catalog.drop_database(at)
                applied.calls += 1
            except Conflict:
                self.hold(name)
                return
            except (Refused, Unavailable) as error:
                self.faults.require_own_fault((DATABASE, name), error)
                self.quarantine(name, reason(error), event_id)
                return
            self.known.discard(at)
        self.rejoin(name)
        self.let_go(name)

    def stands_for(self, there: Database, at: str, name: str) -> bool:
        """Whether the target's database `at`, which the policy gives to the source's `name`, is its replica. It may
        carry the mark of one that had the place under another policy: `name` was gone when its tables moved there."""
        marks = marked((there.parameters or {}).get(SOURCE, ""), self.side.policy.source)
        if marks is None:
            return False
        return marks == table_name(name) or at not in databases_of(self.side.admission, marks.database)

    def quarantine(self, name: str, why: str, event_id: EventId) -> None:
        """Set the database aside: it stays at the target as it is, and its tables go on."""
        row = DatabaseRow(name, TableState.QUARANTINED, why, event_id)
        if self.aside.get(name) == row:
            return
        LOG.warning("%s: database %s is quarantined at event %d: %s", self.side.policy.target, name, event_id, why)
        self.held.discard(name)
        self.aside[name] = row
        self.side.ledger.put_tables([row])

    def rejoin(self, name: str) -> None:
        """The database is not set aside any more."""
        self.faults.succeeded((DATABASE, name))
        if self.aside.pop(name, None) is not None:
            self.side.ledger.remove_tables([(DATABASE, name, "")])

    def hold(self, name: str) -> None:
        if name not in self.held:
            self.rejoin(name)
            self.held.add(name)
            self.side.ledger.put_tables([DatabaseRow(name, TableState.LIVE, HELD)])

    def let_go(self, name: str) -> None:
        if name in self.held:
            self.held.remove(name)
            self.side.ledger.remove_tables([(DATABASE, name, "")])

    def ensure(self, table: TableName) -> None:
        """The target's database for the source's `table` exists, unless the source has dropped it since."""
        at = self.side.admission.name_at_target(table).database
        with self.lock:
            if at in self.known:
                return
            if self.side.catalog.database(at) is None:
                found = self.source.catalog.database(table.database)
                if found is None and self.is_replica(at, table.database):
                    return
                self.create(at, found or Database(name=table.database), 0, AppliedChanges())
            self.known.add(at)

    def is_replica(self, at: str, database: str) -> bool:
        """Whether the target's database stands for the source's, whose own events make and drop it."""
        admission = self.side.admission
        return admission.takes_database(database) and admission.name_at_target(table_name(database)).database == at

    def put(self, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        """Make the database, or make it so; one that came from the target is left to whoever made it, and one that the
        target does not take is set aside. Raises `Unavailable`."""
        if self.side.home.has(database.parameters):
            return
        name = table_name(database.name).database
        try:
            self.make(database, event_id, applied)
        except (Refused, Unavailable) as error:
            self.faults.require_own_fault((DATABASE, name), error)
            self.quarantine(name, reason(error), event_id)
        else:
            self.rejoin(name)

    def make(self, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        at = self.side.admission.name_at_target(table_name(database.name)).database
        there = self.side.catalog.database(at)
        if there is None:
            self.create(at, database, event_id, applied)
        elif is_ours(there.parameters, self.side.policy.source):
            wanted = self.image(database, event_id, there.location)
            if not same_definition(there, wanted):
                self.alter(at, owned(wanted, there))
                applied.calls += 1

    def alter(self, at: str, wanted: Database) -> None:
        try:
            self.side.catalog.alter_database(at, wanted)
        except Conflict as error:
            raise CallFailed(f"Database {at} was changed by another", str(error), "It is looked at again") from error

    def create(self, at: str, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        location = natural_location(self.side.policy.warehouse, at)
        if self.state_of_new:
            self.states.setdefault(table_name(database.name).database, self.state_of_new)
        image = replace(self.image(database, event_id, location), name=at)
        try:
            self.side.catalog.create_database(image)
            applied.calls += 1
        except Conflict as error:
            # 3.1 says of a directory that it can't make what others say of a database that is there.
            if self.side.catalog.database(at) is None:
                what, todo = f"The metastore does not make database {at}", "Look into its log"
                raise CallFailed(what, str(error), todo) from error

    def image(self, database: Database, event_id: EventId, location: str | None) -> Database:
        """The policy's image, saying what the database has to say."""
        state = self.states.get(table_name(database.name).database, "")
        return saying(self.side.imaging.database(database, event_id, location), state)

    def left_over(self, found: set[TableName]) -> list[TableName]:
        """Tables of ours at the target whose source is not among `found`: by their source's names."""
        left: list[TableName] = []
        mine, admission = f"{self.side.policy.source}:", self.side.admission
        apart = {new.database for old, new in admission.tables.items() if admission.takes(old)}
        for at in self.side.catalog.databases():
            if at not in apart and admission.source_of(TableName(at)) is None:
                continue
            for table in self.side.catalog.tables(at):
                name = admission.source_of(table_name(at, table))
                if name is None or name in found:
                    continue
                there = self.side.catalog.table(table_name(at, table))
                if there is not None and (there.parameters or {}).get(SOURCE, "").startswith(mine):
                    left.append(name)
        return left


DATABASE_KINDS = frozenset({EventKind.CREATE_DATABASE, EventKind.ALTER_DATABASE, EventKind.DROP_DATABASE})


def last_of(entries: Iterable[Entry], side: TargetSide) -> Sequence[Entry]:
    """The newest database event of each admitted database."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        name = entry.keys.table
        if is_of_database(entry) and name is not None and side.admission.takes_database(name.database):
            newest[name.database] = entry
    return list(newest.values())


def is_of_database(entry: Entry) -> bool:
    """Whether a database is what the event is about; one that can't be folded names no table then."""
    keys = entry.keys
    return keys.kind in DATABASE_KINDS or (
        keys.kind is EventKind.UNKNOWN and keys.table is not None and not keys.table.table
    )


def owned(database: Database, there: Database) -> Database:
    """With the owner that is there where the source has none: Hive 4 gives a new database one, and fails to take it
    away."""
    if database.owner:
        return database
    return replace(database, owner=there.owner, owner_type=there.owner_type)


def saying(database: Database, state: str) -> Database:
    """The target's database with this `calque.state`, or none."""
    kept = {key: value for key, value in (database.parameters or {}).items() if key != STATE}
    return replace(database, parameters={**kept, STATE: state} if state else kept)
