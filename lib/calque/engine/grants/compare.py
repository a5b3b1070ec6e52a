"""What the privileges of one object differ in."""

from __future__ import annotations

from collections.abc import Collection

from calque.core.compare import TABLE, Difference, DifferenceKind, some
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.names import TableName
from calque.model.privileges import Grant


def compare_grants(
    source: SourceSide, side: TargetSide, name: TableName, target_name: TableName, of: str = TABLE
) -> list[Difference]:
    """Of a database (names without a table) or a table that is at both sides; none where they are not followed."""
    if source.privileges is None or side.privileges is None:
        return []
    wanted, current = source.privileges.grants(name), side.privileges.grants(target_name)
    if wanted == current:
        return []
    missing, extra = listed(wanted - current), listed(current - wanted)
    return [Difference(name, "", DifferenceKind.DEFINITION, "grants", missing, extra, of)]


def listed(grants: Collection[Grant]) -> str | None:
    return some([str(grant) for grant in sorted(grants)]) if grants else None
