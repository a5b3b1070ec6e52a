"""Whether a natural path is one object's alone where paths come from the source: there they may be equal, or lie in
one another (`external_base`, `locations`)."""

from __future__ import annotations

from collections.abc import Iterator

from calque.core.layout import natural_location, place
from calque.engine.sides.sides import TargetSide
from calque.model.names import OURS, TableName

OWNER = f"{OURS}_owner."
"""How the name of the hidden directory begins that says whose a natural path is."""
LEFT = f"{OWNER}left"
"""The one that says that its table has another name by now: nobody takes the path again."""


def comes_from_source(side: TargetSide, natural: str, at_target: TableName) -> bool:
    """Whether the path of a table is made of its location at the source, not of its name."""
    return natural != natural_location(side.policy.warehouse, at_target.database, at_target.table)


def lies_in_another(side: TargetSide, natural: str) -> bool:
    """Whether a directory above is some object's: its readers would find the files of both."""
    return any(has_owner(side, above) for above in above_of(side, natural))


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


def leave(side: TargetSide, natural: str) -> None:
    """The table that has the path as its own goes to another name, and keeps its directory. One that was made in the
    same second, and comes to the old name, would take it for its own."""
    side.storage.make_directories([f"{natural}/{LEFT}"])


def has_owner(side: TargetSide, location: str, ignored_mark: str = "") -> bool:
    return any(name.startswith(OWNER) and name != ignored_mark for name in side.storage.children(location))


def contested(side: TargetSide, natural: str, mark: str, *, fresh: bool) -> bool:
    """Whether another took the path, or one above or below, while this object did. Its own mark is taken back then.
    `fresh`: the path was free. Where directories are nothing by themselves (object stores) there is nothing to see."""
    entries = side.storage.children(natural)
    if mark not in entries:
        return False
    others = [name for name in entries if name != mark and (fresh or name.startswith(OWNER))]
    if not others and not lies_in_another(side, natural):
        return False
    side.storage.remove([f"{natural.rstrip('/')}/{mark}"])
    return True
