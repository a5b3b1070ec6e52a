"""Claims on directories at a target. A claim is made before the first file is copied, and is read before a process
takes a directory up again.

Any object of the same ledger may take up a directory that a dead process left, as long as no epoch tells of it and
nothing at the target lies there. A directory that was ever shown is never taken up. See docs/how-hops-work.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calque.core.formats.layout import VERSIONS
from calque.core.records.claims import OLD_MARK, claim_file, generations, is_mark, read, written
from calque.engine.sides.claim_book import ClaimedDirectory, Use
from calque.engine.sides.sides import TargetSide
from calque.engine.target.references import is_referenced
from calque.model.claims import Claim, StandingClaim
from calque.model.names import TableName
from calque.ports import Storage


def standing(storage: Storage, location: str, names: Sequence[str] | None = None) -> StandingClaim | None:
    """Return the highest generation of a claim in the directory `location` with that claim (None in it where the claim
    can't be read); None if there is no claim. `names` are the names of what lies in the directory; without them it is
    listed."""
    numbers = generations(storage.children(location) if names is None else names)
    if not numbers:
        return None
    content = storage.read(claim_file(location, numbers[-1]))
    return StandingClaim(numbers[-1], read(content) if content is not None else None)


def chain(storage: Storage, location: str, names: Sequence[str]) -> list[tuple[int, Claim | None]]:
    """Return all claims on the directory `location` with their generations, ascending; None in place of a claim that
    can't be read. `names` are the names of what lies in the directory."""
    claims: list[tuple[int, Claim | None]] = []
    for generation in generations(names):
        content = storage.read(claim_file(location, generation))
        claims.append((generation, read(content) if content is not None else None))
    return claims


def is_of_before_claims(location: str, names: Sequence[str]) -> bool:
    """Tell whether a version of calque that knew no claims made the directory, as its marks or its path say, and no
    claim was made on it since."""
    is_calques = any(name.startswith(OLD_MARK) for name in names) or f"/{VERSIONS}/" in location
    return is_calques and not generations(names)


def make(side: TargetSide, claims: Mapping[str, tuple[int, Claim]]) -> dict[str, Claim]:
    """Make the claims, given by location with their generations, and return those that this call made, by location. A
    claim that another process made first is left out and forgotten by the book. After an exception all of them are free
    in the book, because nothing says which were made."""
    paths = {location: claim_file(location, generation) for location, (generation, _) in claims.items()}
    try:
        created = side.storage.create({paths[location]: written(claim) for location, (_, claim) in claims.items()})
    except BaseException:
        side.claims.free(claim.number for _, claim in claims.values())
        raise
    side.claims.forget(claim.number for location, (_, claim) in claims.items() if paths[location] not in created)
    return {location: claim for location, (_, claim) in claims.items() if paths[location] in created}


def new_claim(side: TargetSide, location: str, table: TableName, partition: str, incarnation: str, epoch: int) -> Claim:
    """Return a new claim for the object (a table, or a partition of it), and enter it in the claim book as held. It is
    not written to the directory yet."""
    claim = side.claims.new_claim(str(table), partition, incarnation, epoch=epoch)
    side.claims.hold(claim.number, ClaimedDirectory(location, table, partition, incarnation))
    return claim


def may_take_up(
    side: TargetSide,
    location: str,
    claim: Claim | None,
    table: TableName,
    partition: str,
    incarnation: str,
    *,
    is_natural: bool,
) -> bool:
    """Tell whether an object may copy its files into the directory `location`, on which `claim` stands. The caller
    knows that this object is not shown there. `is_natural`: the path is made of the object's name or its location at
    the source, so that another object may want it."""
    if claim is None or claim.removal or claim.ledger != side.claims.ledger_name():
        return False
    directory = side.claims.find(claim.number)
    if directory is not None:
        is_same_name = (directory.table, directory.partition) == (table, partition)
        match directory.use:
            case Use.FREE:
                return True
            case Use.HELD:
                return is_same_name and directory.incarnation == incarnation
            case Use.USED:
                return is_same_name
            case Use.LEFT:
                return False
    if claim.writer == side.claims.writer or side.claims.is_told(claim.number, location):
        return False
    # The path of a version has its object's incarnation and event in it; a natural one may be wanted by any object.
    return not is_natural or not is_referenced(side, location)


def is_claimed(storage: Storage, location: str) -> bool:
    """Tell whether calque made the directory `location`, as a mark in it says."""
    return any(is_mark(name) for name in storage.children(location))
