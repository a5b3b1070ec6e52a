"""The adoption of objects at a target that are not ours (`calque adopt`), where the source has objects of their
names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.effects import OF_FUNCTIONS
from calque.core.images.image import is_ours
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases, is_of_database, owned
from calque.engine.apply.functions import Functions
from calque.engine.apply.hive_positions import HivePositions, with_position
from calque.engine.exact_reads.coordinator import SETTLED, ExactReads
from calque.engine.exact_reads.take_over import NOT_YET
from calque.engine.files.copies import ContentLost
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.target.fault_isolation import defect_reason
from calque.errors import EventsForgotten, Refused
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.records import ReadMode
from calque.ports import Conflict

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Adoption:
    """The means to take over what stands at one target under the source's names. `begin` says after which event the
    journal begins."""

    source: SourceSide
    side: TargetSide
    tables_known: TableStates
    databases: Databases
    functions: Functions
    positions: HivePositions
    reads: ExactReads
    pool: Executor
    begin: Callable[[], EventId]

    def tables(self, takes: Callable[[TableName], bool], covers: Callable[[str], bool], reason: str) -> list[TableName]:
        """Take over the chosen objects that are not ours: databases that `covers` chooses and functions at once, tables
        by an exact read of each. Return the tables. Objects that the source does not have are left alone, and so is the
        replica of another of its tables. An object that can't be taken over is set aside. Called between windows only.
        Raises `Unavailable`, and `EventsForgotten` until the replica has started again."""
        for name in self.source.catalog.databases():
            if self.side.admission.takes_database(name):
                if covers(name):
                    self.database(name)
                for function in self.functions_of(name, takes):
                    self.function(function)
        foreign = self.foreign([name for name in self.tables_known.rows if takes(name)])
        self.reads.ask(foreign, reason, ReadMode.ADOPT)
        return foreign

    # Tables

    def foreign(self, names: Sequence[TableName]) -> list[TableName]:
        """Return those of the tables that stand at the target and are not ours, sorted."""
        foreign: list[TableName] = []
        while names:
            looks = list(zip(names, self.pool.map(self.look, names), strict=True))
            foreign += [name for name, look in looks if look is True]
            defects = [(name, look) for name, look in looks if isinstance(look, ObjectDefect)]
            names = [name for name, defect in defects if not self.gives_up(name, defect)]
        return sorted(foreign)

    def look(self, name: TableName) -> bool | ObjectDefect:
        """Tell whether the table stands at the target and is not ours; return the defect of calque that this met, if it
        did."""
        try:
            with work_on(look_at(name)):
                at_target = self.side.catalog.table(self.side.admission.name_at_target(name))
                return at_target is not None and not is_ours(at_target.parameters, self.side.policy.source)
        except ObjectDefect as defect:
            return defect

    def gives_up(self, name: TableName, defect: ObjectDefect) -> bool:
        """Tell whether the table is not looked at again after a defect. It is set aside then, unless it is just read,
        copied or held."""
        if not self.databases.faults.gives_up(look_at(name), defect):
            return False
        if self.tables_known.is_(name, SETTLED) and name not in self.tables_known.passed_by():
            self.reads.quarantine(name, defect_reason(defect), self.tables_known.cursor)
        return True

    # Databases and functions

    def database(self, name: str) -> None:
        reason = self.attempt(f"adoption of database {name}", lambda: self.adopt_database(name))
        if reason:
            self.databases.quarantine(name, reason, self.tables_known.cursor)

    def functions_of(self, database: str, takes: Callable[[TableName], bool]) -> list[TableName]:
        """Return the chosen functions of the source's database."""
        names = [table_name(database, function) for function in self.source.catalog.functions(database)]
        return [name for name in names if takes(name) and self.side.admission.takes_function(name)]

    def function(self, name: TableName) -> None:
        reason = self.attempt(f"adoption of function {name}", lambda: self.adopt_function(name))
        if reason:
            self.functions.quarantine(name, reason, self.tables_known.cursor)

    def attempt(self, work: str, act: Callable[[], None]) -> str:
        """Take one object over by `act`. Return why it can't be taken over; empty when it was."""
        try:
            trouble = self.databases.faults.attempt(work, act, Conflict, ContentLost)
        except EventsForgotten:
            raise
        except (Refused, ContentLost) as error:
            return str(error)
        except Conflict:
            return "it was changed by another while it was taken over"
        return "" if trouble is None else defect_reason(trouble)

    def adopt_database(self, name: str) -> None:
        """Make the database the source's from now on. Where events of it are still to come, it keeps its definition,
        and the next window brings it to the newest one."""
        side = self.side
        target_name = side.admission.name_at_target(table_name(name)).database
        at_source, at_target = self.source.catalog.database(name), side.catalog.database(target_name)
        if at_source is None or at_target is None or is_ours(at_target.parameters, side.policy.source):
            return
        pending = self.is_pending(lambda entry: is_of_database(entry) and entry.keys.table == table_name(name))
        cursor = self.tables_known.cursor
        shape, event_id = (replace(at_target, name=name), NOT_YET) if pending else (at_source, cursor)
        image = with_position(self.databases.image(shape, event_id, at_target.location), at_target)
        side.catalog.alter_database(target_name, owned(image, at_target))
        self.positions.forget()

    def adopt_function(self, name: TableName) -> None:
        """Make the function the source's from now on; also one that is ours already, which a death or an error may have
        left half taken over."""
        side, cursor = self.side, self.tables_known.cursor
        at_source = self.source.catalog.function(name)
        is_present = side.catalog.function(side.admission.name_at_target(name)) is not None
        if at_source is None or not (is_present or self.functions.is_owned(name)):
            return
        is_pending = self.is_pending(is_of_function(name))
        self.functions.own(name, cursor)
        if not is_pending:
            self.functions.make_so(name, at_source, cursor, AppliedChanges())

    def is_pending(self, concerns: Callable[[Entry], bool]) -> bool:
        """Tell whether an event that no window has taken yet concerns what was just read at the source."""
        now = self.source.log.current()
        span = Span(max(self.tables_known.cursor, self.begin()), now)
        if not len(span):
            return False
        wait_for_journal(self.source, now)
        return any(map(concerns, self.source.journal.entries(span)))


def look_at(name: TableName) -> str:
    return f"look at table {name} at the target"


def is_of_function(name: TableName) -> Callable[[Entry], bool]:
    return lambda entry: entry.keys.kind in OF_FUNCTIONS and entry.keys.table == name
