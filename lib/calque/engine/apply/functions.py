"""The functions at the target. They carry no parameters, so the ledger says whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from calque.core.defects import ObjectDefect, work_on
from calque.core.events import decode
from calque.core.events.decode import Undecodable
from calque.core.events.effects import OF_FUNCTIONS
from calque.engine.apply import AppliedChanges
from calque.engine.files.copies import ContentLost
from calque.engine.files.referenced_files import Attachments
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.fault_isolation import FaultIsolation, is_same_defect, reason
from calque.errors import Refused, Unavailable
from calque.model.hive import Function
from calque.model.journal import Entry, EventKind
from calque.model.ledger import FunctionRow, StateRow, TableState, state_key
from calque.model.names import EventId, TableName, table_name
from calque.ports import Conflict

FUNCTION = "function"
SAME = "it existed with the same definition"


class Functions:
    """The replicas of the source's functions at one target. Rows in the ledger say which functions at the target are
    ours."""

    def __init__(self, source: SourceSide, side: TargetSide, faults: FaultIsolation) -> None:
        self.source, self.side, self.faults = source, side, faults
        self.owned: dict[TableName, FunctionRow] = {}

    def adopt(self, rows: Iterable[StateRow]) -> None:
        """Take up the functions that are ours, or set aside, as the ledger's rows say."""
        self.owned = {row.name: row for row in rows if isinstance(row, FunctionRow)}

    def bootstrap(self, event_id: EventId) -> None:
        """Make every admitted function as the source has it now, as of event `event_id`."""
        for database in self.source.catalog.databases():
            if not self.side.admission.takes_database(database):
                continue
            for function in self.source.catalog.functions(database):
                name = table_name(database, function)
                if self.side.admission.takes_function(name):
                    self.bring(name, partial(self.source.catalog.function, name), event_id, AppliedChanges())

    def follow(self, event_id: EventId) -> None:
        """Bring functions of ours to the policy. Those that it admits no more are dropped, unless they are kept; those
        that it calls by another name are made under that name. A function that a crash left undone is made as the
        source has it, at `event_id`."""
        admission, catalog = self.side.admission, self.side.catalog
        moving: dict[TableName, tuple[TableName, Function | None]] = {}
        for name, row in sorted(self.owned.items()):
            target_name = row.at_target
            if not admission.takes_function(name):
                if target_name is None or self.side.policy.drops == "follow":
                    self.drop_at(name, target_name, AppliedChanges())
            elif target_name is not None:
                target_function = catalog.function(target_name)
                if target_function is None or target_name != admission.name_at_target(name):
                    moving[name] = (target_name, target_function)
        for target_name, _ in moving.values():
            with suppress(Conflict):
                catalog.drop_function(target_name)
        for name, (_, target_function) in moving.items():
            try:
                with work_on(work_of(name)):
                    self.make(name, target_function or self.source.catalog.function(name), event_id)
            except ObjectDefect as error:
                self.faults.require_own_fault(work_of(name), error)
                self.quarantine(name, reason(error), event_id)

    def make(self, name: TableName, function: Function | None, event_id: EventId) -> None:
        """Make a function of ours under its new name; without a definition, forget it."""
        if function is None:
            self.side.ledger.remove_tables([state_key(self.owned[name])])
            del self.owned[name]
            return
        target_name = self.side.admission.name_at_target(name)
        desired_function = replace(function, database=target_name.database, name=target_name.table)
        target_function = self.side.catalog.function(target_name)
        if target_function is not None and same_function(target_function, desired_function):
            self.own(name, event_id)
            return
        self.own(name, self.owned[name].shows or event_id)
        try:
            self.side.catalog.create_function(desired_function)
        except Conflict:
            self.owned[name] = replace(self.owned[name], at_target=None)
            self.conflict(name, target_name, event_id)

    def read(self, names: Iterable[TableName], event_id: EventId) -> None:
        """Make the named functions as the source has them now, as of event `event_id`."""
        for name in names:
            self.bring(name, partial(self.source.catalog.function, name), event_id, AppliedChanges())

    def apply(self, entries: Iterable[Entry], applied: AppliedChanges) -> None:
        """Bring the functions of the window's `entries` to what their newest events say."""
        newest: dict[TableName, Entry] = {}
        created: dict[TableName, EventId] = {}
        for entry in entries:
            name = entry.keys.table
            if entry.keys.kind in OF_FUNCTIONS and name is not None and self.side.admission.takes_function(name):
                newest[name] = entry
                if entry.keys.kind is EventKind.CREATE_FUNCTION:
                    created[name] = entry.event_id
        for name, entry in newest.items():
            if entry.keys.kind is EventKind.DROP_FUNCTION:
                self.bring_drop(name, created.get(name), entry.event_id, applied)
            else:
                self.bring(name, partial(self.after, entry.event_id), entry.event_id, applied)

    def after(self, event_id: EventId) -> Function:
        """Return the function that the event made. Raises `Undecodable`."""
        return decode.function_of(self.source.journal.events([event_id])[event_id])

    def recognise(self, name: TableName, event_id: EventId) -> None:
        """Take a function for ours that the window makes, at event `event_id`, and drops, where the target has the same
        and no row says whose it is, as after the ledger was put back. Windows that part the two events would take it
        for ours, too."""
        if self.is_owned(name) or self.came_back(name):
            return
        try:
            desired_function = self.desired(name, self.after(event_id))
        except (Undecodable, Refused, ContentLost):
            return
        target_function = self.side.catalog.function(TableName(desired_function.database, desired_function.name))
        if target_function is not None and same_function(target_function, desired_function):
            self.own(name, event_id, SAME)

    def desired(self, name: TableName, function: Function) -> Function:
        """Return the function as the target is to have it, with its resources copied there. Raises `Refused` for a
        resource that may not be copied, `ContentLost` for one that is gone or changes meanwhile, and `Unavailable`."""
        return Attachments(self.side).of_function(name, self.side.imaging.function(function))

    def bring(
        self, name: TableName, image: Callable[[], Function | None], event_id: EventId, applied: AppliedChanges
    ) -> None:
        """Make the function at the target as `image` returns it. Where `image` returns None, the source has no such
        function any more, and the target's is left as it is until the event of the drop comes. A function whose message
        can't be read is set aside, and so is one that the target does not take, or that meets a defect of calque.
        Raises `Unavailable` where the world is at fault and not the function; a function that was set aside before is
        so still then."""
        before = self.owned.get(name)
        try:
            with work_on(work_of(name), Undecodable, ContentLost):
                function = image()
                if function is None:
                    return
                self.make_so(name, function, event_id, applied)
        except Undecodable as error:
            self.quarantine(name, f"event {event_id} can't be read: {error}", event_id)
        except ContentLost as error:
            self.quarantine(name, str(error), event_id)
        except (Refused, Unavailable, ObjectDefect) as error:
            self.require_own_fault(name, before, error, event_id)
            self.quarantine(name, reason(error), event_id)
        else:
            self.faults.succeeded(work_of(name))

    def require_own_fault(
        self,
        name: TableName,
        before: FunctionRow | None,
        error: Refused | Unavailable | ObjectDefect,
        event_id: EventId,
    ) -> None:
        if before is not None and is_same_defect(error, before.reason, before.since_event, event_id):
            return
        try:
            self.faults.require_own_fault(work_of(name), error)
        except Unavailable:
            if before is not None and before.state is TableState.QUARANTINED:
                self.quarantine(name, before.reason, before.since_event or event_id)
            raise

    def bring_drop(
        self, name: TableName, created_at: EventId | None, event_id: EventId, applied: AppliedChanges
    ) -> None:
        """Drop the function, which the window may have made before, at event `created_at`. Raises `Unavailable`."""
        try:
            with work_on(work_of(name)):
                if created_at is not None:
                    self.recognise(name, created_at)
                self.drop(name, applied)
        except ObjectDefect as error:
            self.faults.require_own_fault(work_of(name), error)
            self.quarantine(name, reason(error), event_id)

    def put(self, name: TableName, function: Function, event_id: EventId, applied: AppliedChanges) -> None:
        """Make the function as `bring` does, with the definition in hand."""
        self.bring(name, lambda: function, event_id, applied)

    def make_so(self, name: TableName, function: Function, event_id: EventId, applied: AppliedChanges) -> None:
        """Make the function, in place of an older one of ours. A function that is not ours is a conflict, and stays.
        Functions carry no path: they came from where their database came from. Raises as `desired` does."""
        if self.came_back(name):
            return
        desired_function = self.desired(name, function)
        target_name = TableName(desired_function.database, desired_function.name)
        target_function = self.side.catalog.function(target_name)
        if target_function is not None and same_function(target_function, desired_function):
            self.own(name, event_id, "" if name in self.owned else SAME)
            return
        if target_function is not None and not self.is_owned(name):
            self.conflict(name, target_name, event_id)
            return
        self.own(name, event_id)
        try:
            if target_function is not None:
                self.side.catalog.drop_function(target_name)
            self.side.catalog.create_function(desired_function)
            applied.calls += 1
        except Conflict:
            self.conflict(name, target_name, event_id)

    def came_back(self, name: TableName) -> bool:
        if not self.side.origins.names or name in self.owned:
            return False
        database = self.source.catalog.database(name.database)
        return database is not None and self.side.origins.has(database.parameters)

    def drop(self, name: TableName, applied: AppliedChanges) -> None:
        if self.is_owned(name):
            self.drop_at(name, self.side.admission.name_at_target(name), applied)

    def drop_at(self, name: TableName, target_name: TableName | None, applied: AppliedChanges) -> None:
        if target_name is not None:
            with suppress(Conflict):
                self.side.catalog.drop_function(target_name)
                applied.calls += 1
        self.side.ledger.remove_tables([state_key(self.owned[name])])
        del self.owned[name]

    def is_owned(self, name: TableName) -> bool:
        row = self.owned.get(name)
        return row is not None and (row.state is TableState.LIVE or row.at_target is not None)

    def own(self, name: TableName, event_id: EventId, reason: str = "") -> None:
        """Record in the ledger that the function at the target is ours. Called before the function is made, so that a
        crash in between leaves no function without an owner."""
        target_name = self.side.admission.name_at_target(name)
        row = FunctionRow(*name, TableState.LIVE, event_id, reason, at_target=target_name)
        if self.owned.get(name) != row:
            self.owned[name] = row
            self.side.ledger.put_tables([row])

    def conflict(self, name: TableName, target_name: TableName, event_id: EventId) -> None:
        reason = (
            f"function {target_name} exists at the target and is not ours: drop it there, or rename it in the policy"
        )
        self.quarantine(name, reason, event_id)

    def quarantine(self, name: TableName, reason: str, event_id: EventId) -> None:
        """Set the function aside; what the target has of it stays, and stays ours."""
        before = self.owned.get(name)
        target_name = before.at_target if before is not None else None
        row = FunctionRow(*name, TableState.QUARANTINED, None, reason, event_id, target_name)
        self.owned[name] = row
        self.side.ledger.put_tables([row])


def work_of(name: TableName) -> str:
    """Return the name of the work on the source's function `name`."""
    return f"{FUNCTION} {name}"


def same_function(one: Function, other: Function) -> bool:
    """Tell whether class, type and resources of the functions are the same."""
    return (one.class_name, one.type, one.resources or ()) == (other.class_name, other.type, other.resources or ())
