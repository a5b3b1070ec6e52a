"""The check of the world that a configuration names: what is wrong with it, and how to mend it.

The looks do not depend on each other: a side that can't be reached becomes a finding, and the other looks go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calque.core.defects import ObjectDefect, work_on
from calque.engine.check.chains import carried_to
from calque.engine.check.check_source import check_source
from calque.engine.check.check_target import check_target
from calque.engine.check.column_changes import check_column_changes
from calque.engine.check.findings import Findings
from calque.engine.check.sides import Source, Target
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Table
from calque.model.names import TableName


def check(source: Source, targets: Sequence[Target], refusals: Sequence[Refused] = ()) -> Findings:
    """Check the source and the targets, and return the findings. `refusals` are settings that this version does not
    support."""
    findings = Findings()
    for error in refusals:
        findings.refused("configuration", error)
    tables: Mapping[TableName, Table] = {}
    try:
        with work_on("the look at the source"):
            tables = check_source(source, [target.policy for target in targets], findings)
    except ObjectDefect as error:
        findings.defective("source", error)
    for target in targets:
        try:
            with work_on(f"the look at {target.where}"):
                carried_tables = carried_to(source, target, tables, findings)
                check_target(target, carried_tables, findings)
                for look in target.looks:
                    look(findings)
                check_column_changes(source, target, findings)
        except (Unavailable, Refused, AccessRefused) as error:
            findings.refused(target.where, error)
        except ObjectDefect as error:
            findings.defective(target.where, error)
    return findings
