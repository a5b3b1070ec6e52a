"""The check of what a target makes of ACID tables, and which engines read that."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.policy.admit import Admission
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.sides import Target
from calque.model.hive import Table, is_transactional
from calque.model.names import TableName

READERS = "Hive 4 alone reads them right: Spark, DuckDB and others take files of all states for rows"
INSTEAD = 'Write acid = "delta", or "external" for insert-only tables, or use a metastore of Hive 4'


def check_native(target: Target, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Report whether the target can have native replicas, where its policy asks for some, and who reads them. Raises
    `Unavailable`."""
    admission = Admission(target.policy)
    if target.why_not_native is None:
        return
    why = target.why_not_native()
    words = {name: admission.acid(name) for name, table in tables.items() if is_transactional(table)}
    taken = [name for name in words if admission.takes(name)]
    native = [name for name in taken if words[name] == "native" or (words[name] == "auto" and not why)]
    if not why:
        findings.add_expected(target.where, "The metastore can have native replicas of ACID tables")
        if native:
            what = f"ACID tables become ACID tables at the target: {listed(native)}"
            findings.add(target.where, Severity.INFO, what, READERS, "Other forms: `acid` in docs/acid.md")
    elif native:
        what = f"The metastore can't have native replicas of ACID tables, and calque sets them aside: {listed(native)}"
        findings.add(target.where, Severity.WARNING, what, why, INSTEAD)
    elif admission.has_auto:
        findings.add_expected(target.where, "The metastore can't have native replicas of ACID tables", why)
