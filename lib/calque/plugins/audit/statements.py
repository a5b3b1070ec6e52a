"""Statements over the relations of the audit."""

from __future__ import annotations

from importlib.util import find_spec

from calque.config.extras import missing
from calque.plugins.audit.core import audit_relations
from calque.statements.result import StreamedResult
from calque.statements.session import Session
from calque.statements.statement import EngineStatement


def run_audit(statement: EngineStatement, session: Session) -> StreamedResult | None:
    """Execute a statement over relations of the audit; return None for a statement that reads none of them. Raises
    `Refused` where the configuration has no source, and with the engine's words for a statement that it refuses. Raises
    `Unavailable`, also while rows are read."""
    relations = audit_relations(statement.text, session.database)
    if relations is None:
        return None
    from calque.plugins.audit.wiring import ask_audit

    if find_spec("duckdb") is None:
        raise missing("audit", "SQL over what was shown", "duckdb")
    session.wiring.config.require_source()
    columns, rows = ask_audit(session.wiring, statement.text, statement.parameters, relations, session.target)
    return StreamedResult(columns, rows)
