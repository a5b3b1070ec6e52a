"""The rules by which a natural path belongs to one object alone, where paths come from the source: with `external_base`
or `locations` two objects may have the same path, or one path may lie in another."""

from __future__ import annotations

from collections.abc import Iterator

from calque.core.formats.layout import natural_location, place
from calque.core.records.claims import claim_file, is_mark
from calque.engine.files.claims import is_claimed
from calque.engine.sides.sides import TargetSide
from calque.model.names import TableName


def comes_from_source(side: TargetSide, natural: str, at_target: TableName) -> bool:
    """Tell whether `natural`, the path of table `at_target`, is made of the table's location at the source and not of
    its name."""
    return natural != natural_location(side.policy.warehouse, at_target.database, at_target.table)


def lies_in_another(side: TargetSide, natural: str) -> bool:
    """Tell whether an object has claimed a directory above `natural`; the readers of that object would find the files
    of both."""
    return any(is_claimed(side.storage, above) for above in above_of(side, natural))


def above_of(side: TargetSide, natural: str) -> Iterator[str]:
    """Yield the directories above `natural` that calque may have made, the nearest first: those at or below
    `external_base` or a replacement in `locations`."""
    natural_place = place(natural)
    bases = [place(base) for base in (side.policy.external_base, *side.policy.locations.values()) if base]
    path = natural_place.path.rpartition("/")[0]
    while path:
        above = type(natural_place)(natural_place.scheme, natural_place.authority, path)
        if not any(base.contains(above) for base in bases):
            return
        yield str(above)
        path = path.rpartition("/")[0]


def contested(side: TargetSide, natural: str) -> bool:
    """Tell whether another object claimed a path above or below `natural` while this object claimed `natural`, which
    was free. If so, remove this object's claim, which is the first one there. An object store has no directories of its
    own, so it shows only claims that lie directly in `natural` or in a directory above."""
    names = side.storage.children(natural)
    if all(is_mark(name) for name in names) and not lies_in_another(side, natural):
        return False
    side.storage.remove([claim_file(natural, 1)])
    return True
