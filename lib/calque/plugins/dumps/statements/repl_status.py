"""The statement `REPL STATUS`: which event of its source a database at a target shows."""

from __future__ import annotations

from calque.plugins.dumps.core.metadata import LAST_EVENT
from calque.plugins.dumps.core.options import known_options
from calque.plugins.dumps.statements.kinds import ReplStatus
from calque.statements.result import Result
from calque.statements.session import Session

COLUMNS = ("last_repl_id",)


def repl_status(statement: ReplStatus, session: Session) -> Result:
    """Execute a REPL STATUS. The row has the last event that the database of this name at the target shows. There is no
    row where the database is no replica of a dump, or is not there. Raises `Refused` for an unknown key."""
    say_meaningless(known_options(statement.options, ()).meaningless, session)
    catalog = session.wiring.target(session.only_target(None)).side().catalog
    database = catalog.database(statement.database)
    last = ((database.parameters if database is not None else None) or {}).get(LAST_EVENT, "")
    return Result(COLUMNS, ((int(last),),) if last.isdecimal() else ())


def say_meaningless(keys: tuple[str, ...], session: Session) -> None:
    """Note for the user that these keys of WITH change nothing; say nothing where there are none."""
    if keys:
        session.note(
            f"{', '.join(keys)}: Hive knows {'it' if len(keys) == 1 else 'these'}, and calque has no use for it"
        )
