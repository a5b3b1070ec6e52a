"""The look of `calque check` at grants: can a target follow the grants of its source?"""

from __future__ import annotations

from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import where_of
from calque.engine.lease.fence import NoFence
from calque.errors import AccessRefused, Refused, Unavailable
from calque.plugins.grants.ports import Privileges
from calque.plugins.grants.wiring import privileges_at, privileges_of
from calque.wiring.wiring import Wiring


def check_grants(wiring: Wiring, name: str, findings: Findings) -> None:
    """Add to `findings` what keeps the target `name` from following grants; nothing where its policy does not follow
    them."""
    target = wiring.target(name)
    if target.plug.keys.grants == "follow":
        where = where_of(name)
        check_privileges(where, privileges_of(target.source), privileges_at(target, NoFence()), findings)


def check_privileges(where: str, of_source: Privileges | None, at_target: Privileges, findings: Findings) -> None:
    """Add to `findings` what keeps the target from following grants. The check only reads, because users would see a
    grant that it tries. `of_source` is None where the source keeps no grants."""
    if of_source is None:
        todo = 'Write grants = "ignore" for the target'
        findings.add(where, Severity.ERROR, "There are no grants to follow", "The source keeps none", todo)
        return
    for side, privileges in (("source", of_source), (where, at_target)):
        try:
            privileges.all_grants()
            privileges.roles()
        except (Unavailable, Refused, AccessRefused) as error:
            findings.refused(side, error)
