"""The comparison of permissions of directories and files at both sides, where the target keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from calque.core.images.compare import DATABASE, SHOWN, Difference, DifferenceKind, TableSide
from calque.engine.files.permissions import Pair, contents_of, keeps_permissions, permissions_of
from calque.engine.sides.sides import TargetSide
from calque.model.hive import Database, location_of
from calque.model.names import TableName


def compare_permissions(side: TargetSide, name: TableName, source: TableSide, target: TableSide) -> list[Difference]:
    """Return a difference for each partition that has a file or directory with other permissions at the target, and one
    for the table itself (partition `""`)."""
    assert source.table is not None
    assert target.table is not None
    source_root, root = location_of(source.table), location_of(target.table)
    pairs = {
        key: contents_of({key: listing}, target.listings)
        for key, listing in source.listings.items()
        if key in target.listings
    }
    if source_root and root:
        pairs[""] = [(source_root, root), *pairs.get("", ())]
    return [each for key in sorted(pairs) for each in other_permissions(side, name, key, pairs[key])]


def compare_database_directory(
    side: TargetSide, name: TableName, source: Database, target: Database
) -> list[Difference]:
    if not keeps_permissions(side) or not side.admission.copies_some or not source.location or not target.location:
        return []
    return other_permissions(side, name, "", [(source.location, target.location)], DATABASE)


def other_permissions(
    side: TargetSide, name: TableName, partition: str, pairs: Iterable[Pair], of: str = "table"
) -> list[Difference]:
    """Return a difference that names the places with other permissions at the target, empty where there are none. Its
    values are those of the first place that differs."""
    others = [each for each in permissions_of(side, pairs) if each[2] != each[3]]
    if not others:
        return []
    shown = ", ".join(target for _, target, _, _ in others[:SHOWN])
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    _, _, wanted, current = others[0]
    what = f"permissions: {shown}{more}"
    return [Difference(name, partition, DifferenceKind.FILES, what, str(wanted), str(current), of)]
