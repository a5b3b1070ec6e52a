"""Records of the directories that versions before claims left at a target, made once for sweeps to remove them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

from calque.core.formats.layout import place
from calque.core.records.places import places_of
from calque.engine.files.claims import is_of_before_claims
from calque.engine.sides.sides import TargetSide
from calque.model.policy import Policy
from calque.model.records import LedgerIdentity, LeftDirectory, Record, all_of, one_of


def own_places(policy: Policy) -> list[str]:
    """Return the directories below which calque writes at the target."""
    return [base for base in (policy.warehouse, policy.external_base, *policy.locations.values()) if base]


def take_stock(side: TargetSide) -> int:
    """Record the directories that the ledger names as replaced or dropped and that carry no claim, and return their
    number. Nothing is removed. A second call has the same result."""
    records = side.ledger.records()
    since, places = since_of(records), places_of(side.ledger.places(), side.ledger.epochs())
    named = [LeftDirectory(left.place, left.claim, left.epoch, left.reason) for left in places.left.values()]
    kept = [left for left in all_of(records, LeftDirectory) if not places.holds(left.place)]
    before = [left for left in (*kept, *named) if left.epoch <= since and is_of_before(side, left)]
    found = {left.place: replace(left, is_old=True) for left in before}
    if found:
        side.ledger.put_records(list(found.values()))
    return len(found)


def since_of(records: Iterable[Record]) -> int:
    """Return the last epoch of the time before claims. A ledger without an identity has no claims at all, so the result
    is then larger than any epoch."""
    identity = one_of(records, LedgerIdentity)
    return identity.since if identity is not None else sys.maxsize


def is_of_before(side: TargetSide, left: LeftDirectory) -> bool:
    """Tell whether a version before claims made the directory, and it lies where calque writes at this target."""
    if left.claim or not any(place(base).contains(place(left.place)) for base in own_places(side.policy)):
        return False
    return is_of_before_claims(left.place, side.storage.children(left.place))
