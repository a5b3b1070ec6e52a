"""Can a target follow the grants of its source?"""

from __future__ import annotations

from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Source, Target
from calque.errors import AccessRefused, Refused, Unavailable


def check_privileges(source: Source, target: Target, findings: Findings) -> None:
    """Reads only: a grant that is tried would be seen."""
    if target.policy.grants != "follow" or target.privileges is None:
        return
    if source.privileges is None:
        todo = 'Write grants = "ignore" for the target'
        findings.add(target.where, Severity.ERROR, "There are no grants to follow", "The source keeps none", todo)
        return
    for where, privileges in (("source", source.privileges), (target.where, target.privileges)):
        try:
            privileges.all_grants()
            privileges.roles()
        except (Unavailable, Refused, AccessRefused) as error:
            findings.refused(where, error)
