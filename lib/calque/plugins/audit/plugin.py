"""The plugin of the audit: its statements, and the history that it keeps when ledgers and journals forget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.config.extras import Extra
    from calque.statements.forms import Statements
    from calque.wiring.retention_kinds import RetentionKind


def statements() -> Statements:
    from calque.statements.forms import Executors, Statements

    def executors() -> Executors:
        from calque.plugins.audit.statements import run_audit

        return Executors({}, foreign=(run_audit,))

    return Statements(executors=executors)


def retention() -> tuple[RetentionKind, ...]:
    from calque.plugins.audit.wiring import RETENTION

    return (RETENTION,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.audit.extras import AUDIT

    return (AUDIT,)


PLUGIN = Plugin(name="audit", statements=statements, retention=retention, extras=extras)
