"""What a published epoch is worth as a record: a digest over it and its object rows, chained to the one before.

The text that is digested is UTF-8, one line per value, each line JSON with sorted keys and no spaces: the epoch without
its `digest` (and without a null `gap` and empty `set_aside`, `parts`, `rereads`, `disarmed` and `abandoned`), then its
object rows in order of (database, table, partition, event id, step), each without an empty `definition`, `row_digest`
or `claim` and a `step` of 0. The digest is blake2b of 32 bytes, hexadecimal. So anyone can compute it from the tables
alone.
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
    """The epoch with its digest, following `previous`."""
    chained = replace(epoch, previous_digest=previous.digest if previous else "", digest="")
    return replace(chained, digest=digest_of(chained, objects))


def is_intact(epoch: Epoch, objects: Sequence[ObjectRow]) -> bool:
    """Whether the epoch and its rows are what was sealed."""
    return digest_of(epoch, objects) == epoch.digest


def digest_of(epoch: Epoch, objects: Sequence[ObjectRow]) -> str:
    head = asdict(epoch)
    del head["digest"]
    if epoch.gap is None:
        del head["gap"]
    for name in ("set_aside", "parts", "rereads", "disarmed", "abandoned"):
        if not head[name]:
            del head[name]
    digest = hashlib.blake2b(line(head), digest_size=32)
    for row in in_order(objects):
        digest.update(line(record_of(row)))
    return digest.hexdigest()


def in_order(objects: Sequence[ObjectRow]) -> tuple[ObjectRow, ...]:
    """The rows as the ledger keeps them."""
    return tuple(sorted(objects, key=lambda row: (row.database, row.table, row.partition, row.event_id, row.step)))


def record_of(row: ObjectRow) -> dict[str, object]:
    """The row's columns; those that the first ledgers had not are left out where they say nothing."""
    values = {name: value for name in COLUMNS if (value := getattr(row, name)) or name not in LATER_COLUMNS}
    return values | {"files": [asdict(file) for file in row.files]}


def line(record: dict[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"
