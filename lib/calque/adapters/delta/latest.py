"""An index from each object (database, table, partition) to the epoch that wrote its newest row.

Memory: 16 bytes for each object, at most `FRESH` recent ones at about 150 bytes each, and up to `CACHED` file entries
of whole rows (some 20 MB). Keys are kept as 64-bit hashes, so a caller must compare the row that it finds in the epoch
with the key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

from calque.model.ledger import ObjectRow

ObjectKey = tuple[str, str, str]
FRESH = 50_000
CACHED = 100_000


class LatestEpochs:
    """The newest epoch with a row of each object. Epochs are added in ascending order."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.int64)
        self._epochs = np.empty(0, np.int64)
        self._fresh: dict[int, int] = {}

    def add(self, keys: Iterable[ObjectKey], epoch: int) -> None:
        for key in keys:
            self._fresh[hash(key)] = epoch
        if len(self._fresh) > FRESH:
            self._settle()

    def find(self, key: ObjectKey) -> int | None:
        key_hash = hash(key)
        if key_hash in self._fresh:
            return self._fresh[key_hash]
        place = int(np.searchsorted(self._hashes, key_hash))
        if place < len(self._hashes) and self._hashes[place] == key_hash:
            return int(self._epochs[place])
        return None

    def _settle(self) -> None:
        hashes = np.concatenate([self._hashes, np.fromiter(self._fresh.keys(), np.int64, len(self._fresh))])
        epochs = np.concatenate([self._epochs, np.fromiter(self._fresh.values(), np.int64, len(self._fresh))])
        order = np.argsort(hashes, kind="stable")
        hashes, epochs = hashes[order], epochs[order]
        newest = np.append(hashes[1:] != hashes[:-1], True)
        self._hashes, self._epochs = hashes[newest], epochs[newest]
        self._fresh.clear()


class RecentRows:
    """The rows that were written or read last, with their epochs. The number of files in them bounds the memory."""

    def __init__(self) -> None:
        self._rows: OrderedDict[ObjectKey, tuple[int, ObjectRow]] = OrderedDict()
        self._weight = 0

    def put(self, epoch: int, row: ObjectRow) -> None:
        key = key_of(row)
        if key in self._rows:
            self._weight -= weight(self._rows.pop(key)[1])
        self._rows[key] = (epoch, row)
        self._weight += weight(row)
        while self._weight > CACHED:
            self._weight -= weight(self._rows.popitem(last=False)[1][1])

    def find(self, key: ObjectKey, epoch: int) -> ObjectRow | None:
        """Return the row of the object that `epoch` wrote; None where it is not held."""
        entry = self._rows.get(key)
        if entry is None or entry[0] != epoch:
            return None
        self._rows.move_to_end(key)
        return entry[1]


def key_of(row: ObjectRow) -> ObjectKey:
    return row.database, row.table, row.partition


def weight(row: ObjectRow) -> int:
    return 1 + len(row.files)
