"""The executors of the kernel's statements: what `calque status` and `calque epochs list` know, as rows, and `USE`."""

from __future__ import annotations

from calque.control.epoch_rows import EPOCH_FIELDS, epoch_row
from calque.control.status import snapshot, tables_at
from calque.core.policy.patterns import chosen
from calque.statements.kinds import TABLE_COLUMNS, TARGET_COLUMNS, ShowEpochs, ShowTables, ShowTargets, UseDatabase
from calque.statements.result import NO_RESULT, Result, result_of
from calque.statements.session import Session


def show_targets(_: ShowTargets, session: Session) -> Result:
    """Return a row for each target. Raises `Refused` for a configuration that has only clusters."""
    session.wiring.config.require_source()
    targets = snapshot(session.wiring)["targets"]
    return result_of(
        TARGET_COLUMNS, ({**target, **target["tables"], "target": name} for name, target in targets.items())
    )


def show_tables(statement: ShowTables, session: Session) -> Result:
    """Return a row for each table of the target that the pattern takes. Raises `Refused` for an unknown target and a
    wrong pattern, `Unavailable` where the ledger can't be read."""
    target = session.only_target(statement.target)
    takes = chosen([] if statement.pattern is None else [in_session(statement.pattern, session)])
    return result_of(TABLE_COLUMNS, tables_at(session.wiring, target, takes))


def in_session(pattern: str, session: Session) -> str:
    """Return the pattern with the session's database before it, where the pattern names none and the session has
    one."""
    names_database = "." in pattern or pattern.startswith("/")
    return pattern if names_database or session.database is None else f"{session.database}.{pattern}"


def show_epochs(statement: ShowEpochs, session: Session) -> Result:
    ledger = session.wiring.ledger(session.only_target(statement.target))
    return result_of(EPOCH_FIELDS, map(epoch_row, ledger.epochs()))


def use_database(statement: UseDatabase, session: Session) -> Result:
    session.database = statement.database
    return NO_RESULT
