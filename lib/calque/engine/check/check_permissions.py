"""The check whether a target's directories and files can get the owners and modes that they have at the source."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.formats.layout import join
from calque.core.policy.admit import Admission
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Target
from calque.model.hive import Table, is_view, location_of
from calque.model.names import TableName
from calque.model.permissions import Permissions

SAMPLE = 20
"""The number of tables whose directories are looked at, at most, and of owners that are tried."""


def check_permissions(
    target: Target, admission: Admission, tables: Mapping[TableName, Table], findings: Findings
) -> None:
    """Try to give a scratch directory in the warehouse the permissions of directories at the source, and report what
    fails. Raises `Unavailable` and `Refused` as the ports do."""
    warehouse = target.policy.warehouse
    locations = [
        location
        for name, table in sorted(tables.items())
        if admission.takes(name) and admission.copies(name) and not is_view(table) and (location := location_of(table))
    ][:SAMPLE]
    present = [location for location in locations if target.storage.exists(location)]
    source_permissions = target.storage.permissions(present)
    without = next((location for location in present if location not in source_permissions), "")
    if not target.storage.permissions([warehouse]):
        without = warehouse
    if without:
        findings.add(
            target.where,
            Severity.WARNING,
            f'permissions = "keep" does nothing for {without}',
            "Its storage has no owners, groups and modes",
            'Write permissions = "target", and give rights by what the storage has instead',
        )
        return
    problems = problems_of(target, join(warehouse, f"_{target.scratch}"), source_permissions)
    if problems:
        findings.add(
            target.where,
            Severity.WARNING,
            f"Directories and files can't all have the source's permissions: {problems}",
            "They are copied all the same, and `calque verify` tells which differ",
            "Run calque as a superuser of the target's storage, where the same users and groups are known",
        )


def problems_of(target: Target, scratch: str, source_permissions: Mapping[str, Permissions]) -> str:
    """Return the first problem with giving `scratch` one of the permissions, empty if all can be given. The directory
    is made for this and removed."""
    try:
        target.storage.make_directories([scratch])
        for permissions in list(dict.fromkeys(source_permissions.values()))[:SAMPLE]:
            for problem in target.storage.set_permissions({scratch: permissions}).values():
                return problem
        return ""
    finally:
        target.storage.remove([scratch])
