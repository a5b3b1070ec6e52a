"""`core.records.places`: which epoch left a directory, and with which claim."""

from __future__ import annotations

from calque.core.records.places import DROPPED, NEVER_SHOWN, LeftPlace, places_of
from calque.model.claims import AbandonedDirectory
from calque.model.ledger import Epoch, PlaceRow
from calque.model.names import TableName

PLACE, TABLE = "file:/target/d1.db/t", TableName("d1", "t")


def row(epoch: int, change: str, claim: str = "") -> PlaceRow:
    return PlaceRow(epoch, *TABLE, "", "1", epoch, change, PLACE if claim else "", claim)


def abandoning(epoch: int, claim: str) -> Epoch:
    return Epoch(epoch, epoch, epoch, "", "window", abandoned=(AbandonedDirectory(PLACE, claim),))


def left(rows: list[PlaceRow], *epochs: Epoch) -> LeftPlace:
    [found] = places_of(rows, epochs).left.values()
    return found


def test_the_last_epoch_that_left_a_directory_counts() -> None:
    """A sweep has removed what the first one left, before the directory was made again."""
    shown = [row(1, "create_table", "first"), row(2, "drop_table")]
    nobody = TableName("", "")
    assert left(shown) == LeftPlace(PLACE, "first", 2, DROPPED, TABLE)
    assert left(shown, abandoning(3, "second")) == LeftPlace(PLACE, "second", 3, NEVER_SHOWN, nobody)
    again = LeftPlace(PLACE, "third", 4, NEVER_SHOWN, nobody)
    assert left(shown, abandoning(3, "second"), abandoning(4, "third")) == again
    later = [row(3, "create_table", "second"), row(4, "drop_table")]
    assert left(later, abandoning(2, "first")) == LeftPlace(PLACE, "second", 4, DROPPED, TABLE)


def test_an_abandoned_directory_that_an_object_has_since_was_not_left() -> None:
    assert places_of([row(3, "create_table", "second")], [abandoning(2, "first")]).left == {}
