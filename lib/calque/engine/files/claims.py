"""Claims on directories at a target: made before the first file, looked at before one is taken up again.

A directory that a death left may be taken up by any object of the same ledger, as long as no epoch has told of it and
nothing at the target lies there; one that was ever shown never is. See docs/how-hops-work.md.
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
    """The claim that counts in a directory; None where it has none. `names` are those of what lies in it."""
    numbers = generations(storage.children(location) if names is None else names)
    if not numbers:
        return None
    content = storage.read(claim_file(location, numbers[-1]))
    return StandingClaim(numbers[-1], read(content) if content is not None else None)


def chain(storage: Storage, location: str, names: Sequence[str]) -> list[tuple[int, Claim | None]]:
    """All claims on a directory, with their generations, ascending; `names` are those of what lies in it."""
    claims: list[tuple[int, Claim | None]] = []
    for generation in generations(names):
        content = storage.read(claim_file(location, generation))
        claims.append((generation, read(content) if content is not None else None))
    return claims


def is_of_before_claims(location: str, names: Sequence[str]) -> bool:
    """Whether a version before claims made the directory, as its marks or its path say, and nobody has claimed it."""
    is_calques = any(name.startswith(OLD_MARK) for name in names) or f"/{VERSIONS}/" in location
    return is_calques and not generations(names)


def make(side: TargetSide, claims: Mapping[str, tuple[int, Claim]]) -> dict[str, Claim]:
    """Make claims on directories, each of its generation; those that were made, by location."""
    paths = {location: claim_file(location, generation) for location, (generation, _) in claims.items()}
    try:
        created = side.storage.create({paths[location]: written(claim) for location, (_, claim) in claims.items()})
    except BaseException:
        side.claims.free(claim.number for _, claim in claims.values())
        raise
    side.claims.forget(claim.number for location, (_, claim) in claims.items() if paths[location] not in created)
    return {location: claim for location, (_, claim) in claims.items() if paths[location] in created}


def new_claim(side: TargetSide, location: str, table: TableName, partition: str, incarnation: str, epoch: int) -> Claim:
    """One for the object, and in the book."""
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
    """Whether an object may go on in a directory with that claim, as far as claims say. It is not shown there."""
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
    """Whether calque made the directory."""
    return any(is_mark(name) for name in storage.children(location))
