"""The databases at the target: made before their tables, changed with the source's, dropped after all that was in
them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from calque.core.defects import ObjectDefect, work_on
from calque.core.events import decode
from calque.core.events.decode import Undecodable
from calque.core.events.effects import OF_DATABASES
from calque.core.events.kinds import database_obstacle
from calque.core.formats.layout import natural_location, place
from calque.core.images.image import SOURCE, STATE, is_ours, same_definition
from calque.core.images.policies import databases_of, marked
from calque.engine.apply import AppliedChanges
from calque.engine.apply.hive_positions import with_position
from calque.engine.files.permissions import keep
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.fault_isolation import FaultIsolation, is_same_defect, reason
from calque.errors import CallFailed, Refused, Unavailable
from calque.logs.fields import about
from calque.model.hive import Database
from calque.model.journal import Entry, EventKind
from calque.model.ledger import DatabaseRow, StateRow, TableState
from calque.model.names import EventId, TableName, table_name
from calque.ports import Conflict

LOG = logging.getLogger(__name__)
DATABASE = "database"
HELD = "the source dropped it; it is dropped when it is empty"


class Databases:
    """The replicas of the source's databases at one target. A database that exists and is not ours is used as it is:
    its parameters are not touched, and it is never dropped."""

    def __init__(self, source: SourceSide, side: TargetSide, faults: FaultIsolation) -> None:
        self.source, self.side, self.faults = source, side, faults
        self.lock = threading.Lock()
        self.known_databases: set[str] = set()
        self.drops_on_hold: set[str] = set()
        """Databases that the source dropped while one of their tables was set aside; named as at the source."""
        self.quarantined_rows: dict[str, DatabaseRow] = {}
        """Databases that the target does not take as they are; named as at the source."""
        self.states: dict[str, str] = {}
        """The values of `calque.state` that databases have, by the source's names; most have none."""
        self.state_of_new = ""
        """The value of `calque.state` that a database has from its creation on."""

    def adopt(self, rows: Iterable[StateRow]) -> None:
        """Take up which databases are set aside, or wait to be dropped, as the ledger's rows say."""
        database_rows = {row.database: row for row in rows if isinstance(row, DatabaseRow)}
        self.quarantined_rows = {
            name: row for name, row in database_rows.items() if row.state is TableState.QUARANTINED
        }
        self.drops_on_hold = database_rows.keys() - self.quarantined_rows.keys()
        for name in [name for name in self.quarantined_rows if not self.side.admission.touches_database(name)]:
            self.rejoin(name)

    def adopt_states(self) -> None:
        """Take up the values of `calque.state` that databases of ours have at the target."""
        for target_name in self.side.catalog.databases():
            name = self.side.admission.source_of(TableName(target_name))
            target_database = self.side.catalog.database(target_name) if name is not None else None
            if (
                name is None
                or target_database is None
                or not is_ours(target_database.parameters, self.side.policy.source)
            ):
                continue
            if state := (target_database.parameters or {}).get(STATE, ""):
                self.states[name.database] = state

    def say(self, name: str, state: str) -> None:
        """Set `calque.state` of the source's database `name`; an empty `state` takes it away. A database that is not
        made yet has it from the start; one that is not ours stays as it is."""
        target_name = self.side.admission.name_at_target(table_name(name)).database
        with self.lock:
            target_database = self.side.catalog.database(target_name)
            if target_database is not None and is_ours(target_database.parameters, self.side.policy.source):
                desired_database = saying(target_database, state)
                if desired_database != target_database:
                    self.state(name, target_name, desired_database)
            if state:
                self.states[name] = state
            else:
                self.states.pop(name, None)

    def state(self, name: str, target_name: str, desired_database: Database) -> None:
        """Give the database at the target a definition that differs by its `calque.state`. A target that does not take
        the change leaves the database as it is, with a warning in the log."""
        work = f"state of {work_of(name)}"
        try:
            with work_on(work):
                self.alter(target_name, desired_database)
        except (Refused, Unavailable, ObjectDefect) as error:
            self.faults.require_own_fault(work, error)
            LOG.warning("%s: database %s can't say how it is: %s", self.side.policy.target, name, error)

    def bootstrap(self, event_id: EventId) -> None:
        """Make every admitted database as the source has it now, as of event `event_id`; later events say what changed
        since."""
        for name in self.source.catalog.databases():
            if self.side.admission.takes_database(name):
                self.bring(name, partial(self.source.catalog.database, name), event_id, AppliedChanges())

    def before(self, entries: Iterable[Entry], applied: AppliedChanges) -> None:
        """Make the databases that the window's events leave in place, as their newest images have them. Called before
        the window's tables."""
        for entry in last_of(entries, self.side):
            if entry.keys.kind is not EventKind.DROP_DATABASE:
                assert entry.keys.table is not None
                name = entry.keys.table.database
                self.bring(name, partial(self.left_by, entry, name), entry.event_id, applied)

    def left_by(self, entry: Entry, name: str) -> Database | None:
        """Return the database as the event left it, which is not to be dropped. Where the message does not have it
        (2.3), return it as the source has it now; None when it is gone: the event that dropped it is still to come."""
        if entry.keys.kind is EventKind.UNKNOWN:
            database = self.source.catalog.database(name)
        else:
            database = decode.database_after(self.source.journal.events([entry.event_id])[entry.event_id])
        if database is not None:
            self.let_go(name)
        return database

    def after(self, entries: Iterable[Entry], applied: AppliedChanges) -> None:
        """Drop the databases that are gone at the window's end, after its tables. A database that is not empty is tried
        again later."""
        if self.side.policy.drops == "keep":
            return
        dropping_events = dict.fromkeys(sorted(self.drops_on_hold), 0)
        for entry in last_of(entries, self.side):
            if entry.keys.kind is EventKind.DROP_DATABASE and entry.keys.table is not None:
                dropping_events[entry.keys.table.database] = entry.event_id
        for name, event_id in dropping_events.items():
            self.drop(name, applied, event_id)

    def drop(self, name: str, applied: AppliedChanges, event_id: EventId = 0) -> None:
        """Drop the source's database `name` at the target: now, or, where it is not empty, at the end of a later
        window. A database that is not its replica stays, and one that the target does not drop is set aside."""
        target_name = self.side.admission.name_at_target(table_name(name)).database
        target_database = self.side.catalog.database(target_name)
        if target_database is not None and self.stands_for(target_database, target_name, name):
            try:
                with work_on(work_of(name), Conflict):
                    self.side.catalog.drop_database(target_name)
                applied.calls += 1
            except Conflict:
                self.hold(name)
                return
            except (Refused, Unavailable, ObjectDefect) as error:
                self.faults.require_own_fault(work_of(name), error)
                self.quarantine(name, reason(error), event_id)
                return
            self.known_databases.discard(target_name)
        self.rejoin(name)
        self.let_go(name)

    def stands_for(self, target_database: Database, target_name: str, name: str) -> bool:
        """Tell whether the target's database `target_name`, which the policy gives to the source's `name`, is its
        replica. The database may carry the mark of one that had the place under another policy: `name` was gone when
        its tables moved there."""
        marks = marked((target_database.parameters or {}).get(SOURCE, ""), self.side.policy.source)
        if marks is None:
            return False
        return marks == table_name(name) or target_name not in databases_of(self.side.admission, marks.database)

    def quarantine(self, name: str, why: str, event_id: EventId) -> None:
        """Set the database aside with the reason `why`: it stays at the target as it is, and its tables go on."""
        row = DatabaseRow(name, TableState.QUARANTINED, why, event_id)
        if self.quarantined_rows.get(name) == row:
            return
        text = "%s: database %s is quarantined at event %d: %s"
        LOG.warning(text, self.side.policy.target, name, event_id, why, extra=about(event=event_id))
        self.drops_on_hold.discard(name)
        self.quarantined_rows[name] = row
        self.side.ledger.put_tables([row])

    def rejoin(self, name: str) -> None:
        """Forget that the database was set aside."""
        self.faults.succeeded(work_of(name))
        if self.quarantined_rows.pop(name, None) is not None:
            self.side.ledger.remove_tables([(DATABASE, name, "")])

    def hold(self, name: str) -> None:
        if name not in self.drops_on_hold:
            self.rejoin(name)
            self.drops_on_hold.add(name)
            self.side.ledger.put_tables([DatabaseRow(name, TableState.LIVE, HELD)])

    def let_go(self, name: str) -> None:
        if name in self.drops_on_hold:
            self.drops_on_hold.remove(name)
            self.side.ledger.remove_tables([(DATABASE, name, "")])

    def ensure(self, table: TableName) -> None:
        """Make the target's database for the source's `table`, if it is not there, unless the source has dropped it
        since. A database that the source does not have is made without properties. Raises `Refused` where the source's
        database is of a kind that is not replicated."""
        target_name = self.side.admission.name_at_target(table).database
        with self.lock:
            if target_name in self.known_databases:
                return
            is_there = self.side.catalog.database(target_name) is not None
            if not is_there or table.database in self.quarantined_rows:
                database = self.source.catalog.database(table.database)
                if database is not None and (problem := database_obstacle(database)):
                    raise Refused(problem)
                if database is None and self.is_replica(target_name, table.database):
                    return
                if not is_there:
                    self.create(target_name, database or Database(name=table.database), 0, AppliedChanges())
            self.known_databases.add(target_name)

    def is_replica(self, target_name: str, database: str) -> bool:
        """Tell whether the target's database stands for the source's, whose own events make and drop it."""
        admission = self.side.admission
        return (
            admission.takes_database(database)
            and admission.name_at_target(table_name(database)).database == target_name
        )

    def bring(
        self, name: str, image: Callable[[], Database | None], event_id: EventId, applied: AppliedChanges
    ) -> None:
        """Make the source's database `name` as its image has it; without an image it is gone, and left as it is. A
        database whose message can't be read is set aside, and so is one that the target does not take, or that meets a
        defect of calque. Raises `Unavailable`."""
        try:
            with work_on(work_of(name), Undecodable):
                database = image()
                if database is None or self.side.origins.has(database.parameters):
                    return
                self.make(database, event_id, applied)
        except Undecodable as error:
            self.quarantine(name, f"event {event_id} can't be read: {error}", event_id)
        except (Refused, Unavailable, ObjectDefect) as error:
            before = self.quarantined_rows.get(name)
            if before is None or not is_same_defect(error, before.reason, before.since_event, event_id):
                self.faults.require_own_fault(work_of(name), error)
            self.quarantine(name, reason(error), event_id)
        else:
            self.rejoin(name)

    def put(self, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        """Make the database, or alter it to this definition. One that came from the target is left alone, and one that
        the target does not take is set aside. Raises `Unavailable`."""
        self.bring(table_name(database.name).database, lambda: database, event_id, applied)

    def make(self, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        if problem := database_obstacle(database):
            raise Refused(problem)
        target_name = self.side.admission.name_at_target(table_name(database.name)).database
        target_database = self.side.catalog.database(target_name)
        if target_database is None:
            self.create(target_name, database, event_id, applied)
        elif is_ours(target_database.parameters, self.side.policy.source):
            image = self.image(database, event_id, target_database.location)
            desired_database = with_position(image, target_database)
            if not same_definition(target_database, desired_database):
                self.alter(target_name, owned(desired_database, target_database))
                applied.calls += 1
            self.keep_permissions(database, target_database.location)

    def alter(self, target_name: str, desired_database: Database) -> None:
        try:
            self.side.catalog.alter_database(target_name, desired_database)
        except Conflict as error:
            raise CallFailed(
                f"Database {target_name} was changed by another", str(error), "It is looked at again"
            ) from error

    def create(self, target_name: str, database: Database, event_id: EventId, applied: AppliedChanges) -> None:
        location = natural_location(self.side.policy.warehouse, target_name)
        if self.side.admission.leaves_some_of(database.name) and overlaps(
            self.side.policy.warehouse, database.location
        ):
            raise Refused(
                f"Database {target_name} would be made where the source's databases are",
                f'{self.side.policy.warehouse} holds {database.location}, and with data = "none" nothing is written at '
                "the source",
                "Choose another warehouse, and release the database from quarantine",
            )
        if self.state_of_new:
            self.states.setdefault(table_name(database.name).database, self.state_of_new)
        # A metastore of 4.x makes no database whose managed location is there already: it is said with the first table.
        image = replace(self.image(database, event_id, location), name=target_name, managed_location=None)
        try:
            self.side.catalog.create_database(image)
            applied.calls += 1
        except Conflict as error:
            # 3.1 says of a directory that it can't make what others say of a database that is there.
            if self.side.catalog.database(target_name) is None:
                what, todo = f"The metastore does not make database {target_name}", "Look into its log"
                raise CallFailed(what, str(error), todo) from error
        self.keep_permissions(database, location)

    def keep_permissions(self, database: Database, location: str | None) -> None:
        """Give the database's directory the permissions of the source's."""
        if database.location and location and self.side.admission.copies_some:
            keep(self.side, [(database.location, location)])

    def image(self, database: Database, event_id: EventId, location: str | None) -> Database:
        """Return the policy's image of the database, with the `calque.state` that the database has."""
        state = self.states.get(table_name(database.name).database, "")
        return saying(self.side.imaging.database(database, event_id, location), state)

    def left_over(self, source_names: set[TableName]) -> list[TableName]:
        """Return the tables of ours at the target whose source is not among `source_names`, by their source's names."""
        names: list[TableName] = []
        mine, admission = f"{self.side.policy.source}:", self.side.admission
        databases_of_renamed = {new.database for old, new in admission.tables.items() if admission.takes(old)}
        for target_name in self.side.catalog.databases():
            if target_name not in databases_of_renamed and admission.source_of(TableName(target_name)) is None:
                continue
            for table in self.side.catalog.tables(target_name):
                name = admission.source_of(table_name(target_name, table))
                if name is None or name in source_names:
                    continue
                target_table = self.side.catalog.table(table_name(target_name, table))
                if target_table is not None and (target_table.parameters or {}).get(SOURCE, "").startswith(mine):
                    names.append(name)
        return names


def work_of(name: str) -> str:
    """Return the name of the work on the source's database `name`."""
    return f"{DATABASE} {name}"


def overlaps(warehouse: str, location: str | None) -> bool:
    """Tell whether one of the directories lies in the other."""
    if not location:
        return False
    one, other = place(warehouse), place(location)
    return one.contains(other) or other.contains(one)


def last_of(entries: Iterable[Entry], side: TargetSide) -> Sequence[Entry]:
    """Return the newest database event of each admitted database."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        name = entry.keys.table
        if is_of_database(entry) and name is not None and side.admission.takes_database(name.database):
            newest[name.database] = entry
    return list(newest.values())


def is_of_database(entry: Entry) -> bool:
    """Tell whether the event is about a database; an event of a database that can't be folded names no table."""
    keys = entry.keys
    return keys.kind in OF_DATABASES or (
        keys.kind is EventKind.UNKNOWN and keys.table is not None and not keys.table.table
    )


def owned(database: Database, target_database: Database) -> Database:
    """Return the database with the owner that is at the target where the source has none: Hive 4 gives a new database
    an owner, and fails to take it away."""
    if database.owner:
        return database
    return replace(database, owner=target_database.owner, owner_type=target_database.owner_type)


def saying(database: Database, state: str) -> Database:
    """Return the target's database with this `calque.state`, or without one where `state` is empty."""
    other_parameters = {key: value for key, value in (database.parameters or {}).items() if key != STATE}
    return replace(database, parameters={**other_parameters, STATE: state} if state else other_parameters)
