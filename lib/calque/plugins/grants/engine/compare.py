"""What the privileges of one object differ in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from calque.core.images.compare import TABLE, Difference, DifferenceKind, some
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.names import TableName
from calque.plugins.grants.model import Grant

Grants = Mapping[TableName, frozenset[Grant]]


@dataclass
class ComparedGrants:
    """Of what is at both sides; safe from several threads. All grants are read once, at the first question; what
    differs is read again."""

    source: SourceSide
    side: TargetSide

    @cached_property
    def all_grants(self) -> tuple[Grants, Grants]:
        assert self.source.privileges is not None
        assert self.side.privileges is not None
        return self.source.privileges.all_grants(), self.side.privileges.all_grants()

    def differences(self, name: TableName, target_name: TableName, of: str = TABLE) -> list[Difference]:
        """Of a database (names without a table) or a table; none where grants are not followed."""
        from_source, at_target = self.source.privileges, self.side.privileges
        if from_source is None or at_target is None:
            return []
        wanted, current = self.all_grants
        if wanted.get(name) == current.get(target_name):
            return []
        wanted, current = from_source.grants([name]), at_target.grants([target_name])
        if wanted[name] == current[target_name]:
            return []
        missing, extra = listed(wanted[name] - current[target_name]), listed(current[target_name] - wanted[name])
        return [Difference(name, "", DifferenceKind.DEFINITION, "grants", missing, extra, of)]


def listed(grants: Collection[Grant]) -> str | None:
    return some([str(grant) for grant in sorted(grants)]) if grants else None
