"""`calque adopt`: objects at a target that are not ours, and what the source has under their names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from calque.core.image import is_ours
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases, is_of_database, owned
from calque.engine.apply.functions import FUNCTION_KINDS, Functions
from calque.engine.apply.hive_positions import HivePositions, with_position
from calque.engine.exact_reads.coordinator import ExactReads
from calque.engine.exact_reads.take_over import NOT_YET
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.records import ReadMode


@dataclass(frozen=True, slots=True)
class Adoption:
    """Takes over what stands at one target under the source's names. `begin` says where the journal begins."""

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
        by an exact read of each. Which tables. What the source does not have is left alone, and so is the replica of
        another of its tables. Only between windows."""
        for name in self.source.catalog.databases():
            if self.side.admission.takes_database(name):
                if covers(name):
                    self.adopt_database(name)
                self.adopt_functions(name, takes)
        known_tables = [name for name in self.tables_known.rows if takes(name)]
        foreign = [
            name
            for name, is_foreign in zip(known_tables, self.pool.map(self.is_foreign, known_tables), strict=True)
            if is_foreign
        ]
        self.reads.ask(foreign, reason, ReadMode.ADOPT)
        return foreign

    def is_foreign(self, name: TableName) -> bool:
        at_target = self.side.catalog.table(self.side.admission.name_at_target(name))
        return at_target is not None and not is_ours(at_target.parameters, self.side.policy.source)

    def adopt_database(self, name: str) -> None:
        """The database is the source's from now on; what it lacks of the newest definition is brought by the next
        window where events are still to come."""
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

    def adopt_functions(self, database: str, takes: Callable[[TableName], bool]) -> None:
        side, cursor = self.side, self.tables_known.cursor
        for function in self.source.catalog.functions(database):
            name = table_name(database, function)
            at_source = self.source.catalog.function(name) if takes(name) else None
            if at_source is None or not side.admission.takes_function(name) or self.functions.is_owned(name):
                continue
            if side.catalog.function(side.admission.name_at_target(name)) is None:
                continue
            self.functions.own(name, cursor)
            if not self.is_pending(is_of_function(name)):
                self.functions.put(name, at_source, cursor, AppliedChanges())

    def is_pending(self, concerns: Callable[[Entry], bool]) -> bool:
        """Whether an event that no window has taken yet concerns what was just read at the source."""
        now = self.source.log.current()
        span = Span(max(self.tables_known.cursor, self.begin()), now)
        if not len(span):
            return False
        wait_for_journal(self.source, now)
        return any(map(concerns, self.source.journal.entries(span)))


def is_of_function(name: TableName) -> Callable[[Entry], bool]:
    return lambda entry: entry.keys.kind in FUNCTION_KINDS and entry.keys.table == name
