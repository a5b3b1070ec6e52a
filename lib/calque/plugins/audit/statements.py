"""Statements over the relations of the audit."""

from __future__ import annotations

from collections.abc import Collection

from calque.statements.result import StreamedResult
from calque.statements.session import Session
from calque.statements.statement import EngineStatement


def run_audit(statement: EngineStatement, relations: Collection[str], session: Session) -> StreamedResult:
    """Raises `Refused` where the configuration has no source, and with the engine's words; `Unavailable`, also while
    rows are read."""
    from calque.plugins.audit.wiring import ask_audit

    session.wiring.config.require_source()
    columns, rows = ask_audit(session.wiring, statement.text, statement.parameters, relations, session.target)
    return StreamedResult(columns, rows)
