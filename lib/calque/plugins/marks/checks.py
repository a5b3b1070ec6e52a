"""The check of `calque check` whether the tables of a source say for how long their marks are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calque.engine.check.findings import Findings, Severity, listed
from calque.model.hive import Table, is_partitioned
from calque.model.names import TableName
from calque.plugins.marks.api.sets import DoneSets
from calque.wiring.wiring import Wiring


def check_lifetimes(wiring: Wiring, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Add a finding for each problem that keeps partitioned tables among `tables` from being marked."""
    check_marks(tables, DoneSets(wiring).why_no_lifetime, findings)


def check_marks(tables: Mapping[TableName, Table], why_no_lifetime: Callable[[Table], str], findings: Findings) -> None:
    """Add a finding for each problem, with the tables that have it. `why_no_lifetime` says why it is not known how long
    a table's marks are kept; empty where it is."""
    names_by_problem: dict[str, list[TableName]] = {}
    for name, table in tables.items():
        if is_partitioned(table) and (problem := why_no_lifetime(table)):
            names_by_problem.setdefault(problem, []).append(name)
    for problem, names in sorted(names_by_problem.items()):
        what = f"{listed(names)} can't be marked as done"
        todo = "Set the parameter to a duration such as '7d', or remove it"
        findings.add("source", Severity.WARNING, what, problem, todo)
