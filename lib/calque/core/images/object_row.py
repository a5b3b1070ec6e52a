"""The ledger's row of one object that an epoch changed."""

from __future__ import annotations

from dataclasses import replace

from calque.model.files import Listing
from calque.model.ledger import ObjectRow
from calque.model.names import EventId, TableName


def row_of(
    table: TableName,
    partition: str,
    incarnation: str,
    event_id: EventId,
    change: str,
    listing: Listing | None,
    definition: str = "",
) -> ObjectRow:
    """Return the ledger's row of an object. `listing` is the target's directory where it was written, None elsewhere;
    `change` is the operation's name."""
    row = ObjectRow(table.database, table.table, partition, incarnation, event_id, change, definition=definition)
    if listing is None:
        return row
    files = replace(listing, files=tuple(sorted(listing.files)))
    return replace(
        row,
        location=listing.location,
        files=listing.stored,
        fingerprint=files.fingerprint(),
        delta_version=files.version,
        claim=listing.claim,
        row_digest=listing.combination.row_digest if listing.combination is not None else "",
    )
