"""The executors of `MARK SET DONE` and `SHOW SETS DONE`, which do what `calque done` does."""

from __future__ import annotations

from calque.plugins.marks.api.rows import SET_FIELDS, set_row
from calque.plugins.marks.api.sets import DoneSets
from calque.plugins.marks.statements.kinds import MARK_COLUMNS, MarkSetDone, ShowSetsDone
from calque.statements.result import Result, result_of
from calque.statements.session import Session, named


def mark_set_done(statement: MarkSetDone, session: Session) -> Result:
    """Mark the set, and return the event behind which the mark stands. Raises `Refused` for a table, a key or a value
    that can't be marked, and `Unavailable`."""
    mark = DoneSets(session.wiring).mark(named(statement.table, session), statement.partition)
    return Result(MARK_COLUMNS, ((mark.event_id,),))


def show_sets_done(statement: ShowSetsDone, session: Session) -> Result:
    """Return a row for each set that was marked and has not expired; with a target, only those that are done there.
    Raises `Refused` for an unknown target, and `Unavailable`."""
    name = named(statement.table, session) if statement.table is not None else None
    target = session.only_target(statement.target) if statement.target is not None else None
    sets = DoneSets(session.wiring).marks(name, target)
    return result_of(SET_FIELDS, (set_row(done.mark, done.table) for done in sets))
