"""The executor of `SHOW VERSIONS OF`: the versions of a Delta replica, and the events that they show."""

from __future__ import annotations

from dataclasses import asdict

from calque.plugins.delta_replicas.api import versions_of
from calque.plugins.delta_replicas.statements.kinds import VERSION_COLUMNS, ShowVersions
from calque.statements.result import Result, result_of
from calque.statements.session import Session, named


def show_versions(statement: ShowVersions, session: Session) -> Result:
    """Return a row for each version of the table at the target, oldest first. Raises `Refused` for an unknown target
    and a table that is not a Delta table there, and `Unavailable`."""
    target = session.only_target(statement.target)
    versions = versions_of(session.wiring, target, named(statement.table, session))
    return result_of(VERSION_COLUMNS, map(asdict, versions))
