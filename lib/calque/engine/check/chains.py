"""Which of the source's tables came from the target, or are replicas themselves (rings and chains of metastores)?"""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.image import SOURCE
from calque.core.origins import path_of
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.sides import Source, Target
from calque.engine.target.origin_registry import RegisteredSource, known_at, record_of
from calque.model.hive import Table
from calque.model.names import TableName


def carried_to(
    source: Source, target: Target, tables: Mapping[TableName, Table], findings: Findings
) -> Mapping[TableName, Table]:
    """The tables without those that came from the target. Raises `Unavailable`, `Refused`."""
    if not tables:
        return tables
    here, there = source.catalog.identity(), target.catalog.identity()
    if not here or not there:
        return tables
    name, known = target.policy.source, known_at(source.catalog)
    for where, one in sorted(
        {(at, one) for at, found in (("source", known), (target.where, known_at(target.catalog))) for one in found}
    ):
        if one.name == name and one.id != here:
            tell_namesake(where, one, here, findings)
    home = {one.name for one in known if one.id == there or one.name == name}
    returned = {found for found, table in tables.items() if not home.isdisjoint(path_of(table.parameters))}
    if returned:
        what = f"{len(returned)} tables came from this target, and are not carried back: {listed(sorted(returned))}"
        findings.add(target.where, Severity.INFO, what)
    replicas = sorted(
        found for found, table in tables.items() if SOURCE in (table.parameters or {}) and found not in returned
    )
    if replicas:
        findings.add(
            target.where,
            Severity.INFO,
            f"{len(replicas)} tables are replicas themselves: {listed(replicas)}",
            "files that are appended to them in place raise no event",
            'Let whoever makes them have appends = "new_directory", or look for such files by `scan`',
        )
    return {found: table for found, table in tables.items() if found not in returned}


def tell_namesake(where: str, one: RegisteredSource, here: str, findings: Findings) -> None:
    findings.add(
        where,
        Severity.WARNING,
        f'Two metastores are called "{one.name}"',
        f"one has the id {one.id}, the source {here}; their objects carry the same marks",
        "Give each source a [source] name of its own; if the source has taken the other's place, drop the view "
        f"{record_of(one)}",
    )
