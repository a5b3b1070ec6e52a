"""`calque adopt`: objects at a target that are not ours, and what the source has under their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from calque.core.image import is_ours
from calque.engine.apply import Applied
from calque.engine.apply.databases import is_of_database, owned
from calque.engine.apply.functions import FUNCTION_KINDS
from calque.engine.exact_reads.take_over import NOT_YET
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import TargetSide
from calque.model.journal import Entry
from calque.model.names import Span, TableName, table_name
from calque.model.records import ReadMode

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica


def adopt(
    replica: Replica, takes: Callable[[TableName], bool], covers: Callable[[str], bool], reason: str
) -> list[TableName]:
    """Take over the chosen objects that are not ours: databases that `covers` chooses and functions at once, tables by
    an exact read of each. Which tables. What the source does not have is left alone, and so is the replica of another
    of its tables. Only between windows."""
    for name in replica.source.catalog.databases():
        if replica.side.admission.takes_database(name):
            if covers(name):
                adopt_database(replica, name)
            adopt_functions(replica, name, takes)
    known = [name for name in replica.tables.rows if takes(name)]
    found = [
        name for name, foreign in zip(known, replica.pool.map(is_foreign(replica.side), known), strict=True) if foreign
    ]
    replica.ask(found, reason, ReadMode.ADOPT)
    return found


def is_foreign(side: TargetSide) -> Callable[[TableName], bool]:
    def look_at(name: TableName) -> bool:
        there = side.catalog.table(side.admission.name_at_target(name))
        return there is not None and not is_ours(there.parameters, side.policy.source)

    return look_at


def adopt_database(replica: Replica, name: str) -> None:
    """The database is the source's from now on; what it lacks of the newest definition is brought by the next
    window where events are still to come."""
    side = replica.side
    at = side.admission.name_at_target(table_name(name)).database
    found, there = replica.source.catalog.database(name), side.catalog.database(at)
    if found is None or there is None or is_ours(there.parameters, side.policy.source):
        return
    pending = is_pending(replica, lambda entry: is_of_database(entry) and entry.keys.table == table_name(name))
    shape, event_id = (replace(there, name=name), NOT_YET) if pending else (found, replica.cursor)
    side.catalog.alter_database(at, owned(replica.databases.image(shape, event_id, there.location), there))


def adopt_functions(replica: Replica, database: str, takes: Callable[[TableName], bool]) -> None:
    for function in replica.source.catalog.functions(database):
        name = table_name(database, function)
        found = replica.source.catalog.function(name) if takes(name) else None
        if found is None or not replica.side.admission.takes_function(name) or replica.functions.is_owned(name):
            continue
        if replica.side.catalog.function(replica.side.admission.name_at_target(name)) is None:
            continue
        replica.functions.own(name, replica.cursor)
        if not is_pending(replica, is_of_function(name)):
            replica.functions.put(name, found, replica.cursor, Applied())


def is_of_function(name: TableName) -> Callable[[Entry], bool]:
    return lambda entry: entry.keys.kind in FUNCTION_KINDS and entry.keys.table == name


def is_pending(replica: Replica, concerns: Callable[[Entry], bool]) -> bool:
    """Whether an event that no window has taken yet concerns what was just read at the source."""
    now = replica.source.log.current()
    span = Span(max(replica.cursor, replica.begin()), now)
    if not len(span):
        return False
    wait_for_journal(replica.source, now)
    return any(map(concerns, replica.source.journal.entries(span)))
