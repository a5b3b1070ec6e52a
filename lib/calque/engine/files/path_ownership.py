"""Whether a natural path is one object's alone where paths come from the source: there they may be equal, or lie in
one another (`external_base`, `locations`)."""

from __future__ import annotations

from collections.abc import Iterator

from calque.core.formats.layout import natural_location, place
from calque.core.records.claims import claim_file, is_mark
from calque.engine.files.claims import is_claimed
from calque.engine.sides.sides import TargetSide
from calque.model.names import TableName


def comes_from_source(side: TargetSide, natural: str, at_target: TableName) -> bool:
    """Whether the path of a table is made of its location at the source, not of its name."""
    return natural != natural_location(side.policy.warehouse, at_target.database, at_target.table)


def lies_in_another(side: TargetSide, natural: str) -> bool:
    """Whether a directory above is some object's: its readers would find the files of both."""
    return any(is_claimed(side.storage, above) for above in above_of(side, natural))


def above_of(side: TargetSide, natural: str) -> Iterator[str]:
    """The directories above that calque may have made, the nearest first."""
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
    """Whether another took a path above or below while this object claimed its own, which was free. The claim is taken
    back then. Where directories are nothing by themselves (object stores) there is nothing to see."""
    names = side.storage.children(natural)
    if all(is_mark(name) for name in names) and not lies_in_another(side, natural):
        return False
    side.storage.remove([claim_file(natural, 1)])
    return True
