"""Can marks of the source's tables be kept as these say?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calque.engine.check.findings import Findings, Severity, listed
from calque.model.hive import Table, is_partitioned
from calque.model.names import TableName
from calque.plugins.marks.api.sets import DoneSets
from calque.wiring.wiring import Wiring


def check_lifetimes(wiring: Wiring, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Of marks of the tables."""
    check_marks(tables, DoneSets(wiring).why_no_lifetime, findings)


def check_marks(tables: Mapping[TableName, Table], why_no_lifetime: Callable[[Table], str], findings: Findings) -> None:
    """`why_no_lifetime` says why it is not known how long a table's marks are kept; empty where it is."""
    names_by_problem: dict[str, list[TableName]] = {}
    for name, table in tables.items():
        if is_partitioned(table) and (problem := why_no_lifetime(table)):
            names_by_problem.setdefault(problem, []).append(name)
    for problem, names in sorted(names_by_problem.items()):
        what = f"{listed(names)} can't be marked as done"
        todo = "Set the parameter to a duration such as '7d', or remove it"
        findings.add("source", Severity.WARNING, what, problem, todo)
