"""The differences between the grants of one object at the source and at the target."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from calque.core.images.compare import Difference, DifferenceKind, some
from calque.model.names import TableName
from calque.plugins.grants.model import Grant
from calque.plugins.grants.ports import Privileges

Grants = Mapping[TableName, frozenset[Grant]]


@dataclass
class ComparedGrants:
    """The grants of both sides as an `engine.verify.comparison.Comparison`. The first question reads all grants at
    once. Grants that differ then are read again, because they may have changed in between. Safe from several
    threads."""

    of_source: Privileges
    at_target: Privileges

    @cached_property
    def all_grants(self) -> tuple[Grants, Grants]:
        return self.of_source.all_grants(), self.at_target.all_grants()

    def differences(self, name: TableName, target_name: TableName, of: str) -> list[Difference]:
        """Return the difference between the grants of the source's object `name` and the target's object `target_name`,
        at most one (see `engine.verify.comparison.Comparison`). Raises `Unavailable` and `Refused` as the ports do."""
        wanted, current = self.all_grants
        if wanted.get(name) == current.get(target_name):
            return []
        wanted, current = self.of_source.grants([name]), self.at_target.grants([target_name])
        if wanted[name] == current[target_name]:
            return []
        missing, extra = listed(wanted[name] - current[target_name]), listed(current[target_name] - wanted[name])
        return [Difference(name, "", DifferenceKind.DEFINITION, "grants", missing, extra, of)]


def listed(grants: Collection[Grant]) -> str | None:
    return some([str(grant) for grant in sorted(grants)]) if grants else None
