"""The row of an epoch in lists of epochs: those of `calque epochs` and of `SHOW EPOCHS`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from calque.model.ledger import Epoch

EPOCH_FIELDS = (
    "epoch",
    "event_id",
    "from_event_id",
    "published_at",
    "kind",
    "tables",
    "hops",
    "files",
    "bytes",
    "bridges",
    "parts",
    "rereads",
    "quarantined",
)
"""The names of a row's fields, in order."""


class EpochReference(NamedTuple):
    """An epoch as the command line names it: `N` is its number, `@N` the newest epoch at or below event id N."""

    number: int
    is_event: bool


def epoch_row(epoch: Epoch) -> dict[str, Any]:
    """Return an epoch's row: JSON values by field name."""
    spans = {
        name: [{"table": each.table, "from": each.from_event, "to": each.to_event} for each in exceptions]
        for name, exceptions in (("bridges", epoch.bridges), ("parts", epoch.parts))
    }
    return {
        **{name: getattr(epoch, name) for name in EPOCH_FIELDS},
        **spans,
        "rereads": list(map(asdict, epoch.rereads)),
    }
