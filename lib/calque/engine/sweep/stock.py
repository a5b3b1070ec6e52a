"""Records once what versions before claims left at a target."""

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
    """Below which calque writes at the target."""
    return [base for base in (policy.warehouse, policy.external_base, *policy.locations.values()) if base]


def take_stock(side: TargetSide) -> int:
    """Record what the ledger names as replaced or dropped, and what carries no claim. How many directories. Nothing is
    removed; said again, it comes to the same."""
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
    """The last epoch of the time before claims; a ledger without an identity knows no other time."""
    identity = one_of(records, LedgerIdentity)
    return identity.since if identity is not None else sys.maxsize


def is_of_before(side: TargetSide, left: LeftDirectory) -> bool:
    """Whether a version before claims made the directory, where calque writes."""
    if left.claim or not any(place(base).contains(place(left.place)) for base in own_places(side.policy)):
        return False
    return is_of_before_claims(left.place, side.storage.children(left.place))
