"""The findings of scans in the memory of this process, as port `Scans`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from calque.model.files import Listing
from calque.model.journal import Entry, EventKind, Keys
from calque.model.scan import Memory, Scan


class MemoryScans:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scans: dict[int, Scan] = {}
        self._last = 0
        self._memory = Memory()

    def last(self) -> int:
        return self._last

    def append(self, scans: Sequence[Scan]) -> int:
        with self._lock:
            for scan in scans:
                self._last += 1
                self._scans[self._last] = scan
            return self._last

    def entries(self, after: int) -> Sequence[Entry]:
        with self._lock:
            return [entry_of(number, scan) for number, scan in self._scans.items() if number > after]

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        with self._lock:
            scans = {number: self._scans[number] for number in numbers if number in self._scans}
        return {
            (number, listing.location): replace(listing, scan=number)
            for number, scan in scans.items()
            for listing in scan.listings.values()
        }

    def forget(self, upto: int) -> int:
        with self._lock:
            forgotten_scans = [number for number in self._scans if number <= upto]
            for number in forgotten_scans:
                del self._scans[number]
            return len(forgotten_scans)

    def remembered(self) -> Memory:
        return self._memory

    def remember(self, memory: Memory) -> None:
        self._memory = replace(memory, watched=dict(memory.watched))


def entry_of(number: int, scan: Scan) -> Entry:
    partitions = tuple(sorted(scan.listings))
    locations = tuple(scan.listings[partition].location for partition in partitions)
    named = partitions if partitions != ("",) else ()
    keys = Keys(EventKind.SCAN, scan.table, shape=scan.shape, partitions=named, locations=locations)
    return Entry(scan.event_id, scan.found_at, "SCAN", keys, (number,) * len(locations))
