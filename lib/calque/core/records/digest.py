"""Digests that prove a published epoch as a record: each covers the epoch and its object rows, chained to the one
before.

The text that is digested is UTF-8, one line per value, each line JSON with sorted keys and no spaces: the epoch without
its `digest` (and without a null `gap` and empty `set_aside`, `parts`, `rereads`, `disarmed`, `abandoned` and
`together`), then its object rows in order of (database, table, partition, event id, step), each without an empty
`definition`, `row_digest` or `claim` and a `step` of 0. The digest is blake2b of 32 bytes, hexadecimal. So anyone can
compute it from the tables alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace

from calque.model.ledger import Epoch, ObjectRow

COLUMNS = tuple(column.name for column in fields(ObjectRow))
LATER_COLUMNS = frozenset({"definition", "step", "row_digest", "claim"})


def sealed(epoch: Epoch, objects: Sequence[ObjectRow], previous: Epoch | None) -> Epoch:
    """Return the epoch with its digest, chained to `previous`, the epoch before it (None: it is the first)."""
    chained = replace(epoch, previous_digest=previous.digest if previous else "", digest="")
    return replace(chained, digest=digest_of(chained, objects))


def is_intact(epoch: Epoch, objects: Sequence[ObjectRow]) -> bool:
    """Tell whether the epoch and its rows are the ones that were sealed: their digest is the epoch's."""
    return digest_of(epoch, objects) == epoch.digest


def digest_of(epoch: Epoch, objects: Sequence[ObjectRow]) -> str:
    """Return the digest of an epoch and its object rows, as the module's docstring says; the epoch's own `digest` is
    ignored."""
    head = asdict(epoch)
    del head["digest"]
    if epoch.gap is None:
        del head["gap"]
    for name in ("set_aside", "parts", "rereads", "disarmed", "abandoned", "together"):
        if not head[name]:
            del head[name]
    digest = hashlib.blake2b(line(head), digest_size=32)
    for row in in_order(objects):
        digest.update(line(record_of(row)))
    return digest.hexdigest()


def in_order(objects: Sequence[ObjectRow]) -> tuple[ObjectRow, ...]:
    """Return the rows in the ledger's order: by name, event id and step."""
    return tuple(sorted(objects, key=lambda row: (row.database, row.table, row.partition, row.event_id, row.step)))


def record_of(row: ObjectRow) -> dict[str, object]:
    """Return the row's columns by name. A column that the first ledgers did not have is left out where it is empty."""
    values = {name: value for name in COLUMNS if (value := getattr(row, name)) or name not in LATER_COLUMNS}
    return values | {"files": [asdict(file) for file in row.files]}


def line(record: dict[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"
