"""The check for rings and chains of metastores: tables of the source that came from the target, or are replicas
themselves."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.images.image import SOURCE
from calque.core.images.origins import path_of
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.sides import Source, Target
from calque.engine.target.origin_registry import RegisteredSource, known_at, record_of
from calque.model.hive import Table
from calque.model.names import TableName


def carried_to(
    source: Source, target: Target, tables: Mapping[TableName, Table], findings: Findings
) -> Mapping[TableName, Table]:
    """Return `tables` without those that came from the target, and report these, tables that are replicas, and
    metastores of one name. Raises `Unavailable` and `Refused` as the ports do."""
    if not tables:
        return tables
    source_id, target_id = source.catalog.identity(), target.catalog.identity()
    if not source_id or not target_id:
        return tables
    source_name, source_records = target.policy.source, known_at(source.catalog)
    target_records = known_at(target.catalog)
    for where, record in sorted(
        {*(("source", record) for record in source_records), *((target.where, record) for record in target_records)}
    ):
        if record.name == source_name and record.id != source_id:
            tell_namesake(where, record, source_id, findings)
    home_names = {record.name for record in source_records if record.id == target_id or record.name == source_name}
    returned_names = {name for name, table in tables.items() if not home_names.isdisjoint(path_of(table.parameters))}
    if returned_names:
        names = listed(sorted(returned_names))
        what = f"Tables that came from this target are not carried back: {names}"
        findings.add(target.where, Severity.INFO, what)
    replicas = sorted(
        name for name, table in tables.items() if SOURCE in (table.parameters or {}) and name not in returned_names
    )
    if replicas:
        findings.add(
            target.where,
            Severity.INFO,
            f"Tables are replicas themselves: {listed(replicas)}",
            "Files that are appended to them in place raise no event",
            'Let whoever makes them have appends = "new_directory", or look for such files by `scan`',
        )
    return {name: table for name, table in tables.items() if name not in returned_names}


def tell_namesake(where: str, namesake: RegisteredSource, source_id: str, findings: Findings) -> None:
    findings.add(
        where,
        Severity.WARNING,
        f'Two metastores are called "{namesake.name}"',
        f"One has the id {namesake.id}, the source {source_id}; their objects carry the same marks",
        "Give each source a [source] name of its own; if the source has taken the other's place, drop the view "
        f"{record_of(namesake)}",
    )
