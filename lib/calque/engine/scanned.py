"""What scans found and a target has not taken yet.

An entry of a scan says what lay in directories at one time. A target takes the newest one of each directory, all of a
table's in one step, and only while the directories are still so: hence it never goes back, and an entry that is met
twice changes nothing. What is not so any more waits a moment for the next scan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from calque.engine.tables import OUT, Tables
from calque.engine.world import SourceSide, TargetSide
from calque.errors import Refused
from calque.model.journal import Entry, Kind
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, Span, TableName
from calque.model.scan import ObjectKey

TAKEN = ("scan", "*", "*")
"""The ledger's row for the number of the newest scan that was taken with all before it."""
PATIENCE_SECONDS = 60.0
"""How long a directory that has moved on holds back what was found with it."""


@dataclass(slots=True)
class Owed:
    """One directory that a scan found changed. `moved_on_ns` is when it was first seen to be other by now."""

    number: int
    location: str
    entry: Entry
    moved_on_ns: int = 0


class Scanned:
    """One target's view of the scans. Without scans, or where files stay at the source, it is always empty."""

    def __init__(self, source: SourceSide, side: TargetSide, tables: Tables) -> None:
        self.source, self.side, self.tables = source, side, tables
        self.scans = source.scans if side.policy.data != "none" else None
        self.read = self.recorded = 0
        self.owed: dict[ObjectKey, Owed] = {}
        self.floors: dict[TableName, int] = {}
        self.using: dict[ObjectKey, int] = {}

    def open(self, rows: Iterable[TableRow]) -> None:
        """Take up what the ledger says; what was taken after that is met again."""
        found = [row.shows or 0 for row in rows if (row.kind, row.database, row.table) == TAKEN]
        self.read = self.recorded = max(found, default=0)
        self.owed.clear()
        self.floors.clear()

    def begin(self) -> None:
        """The target begins with exact reads: what was found before them is nothing new."""
        self.read = self.last()

    def last(self) -> int:
        return self.scans.last() if self.scans is not None else 0

    def leave(self, name: TableName) -> None:
        """From now on the table is read: what was found before is nothing new."""
        if self.scans is not None:
            self.floors[name] = self.last()

    def news(self) -> bool:
        """Whether a window has something to take."""
        return self.last() > self.read or self.owes()

    def owes(self) -> bool:
        """Whether something is tried again that could not be taken yet."""
        aside = {TableState.WAITING, *OUT}
        return any(not self.tables.is_(name, aside) for name, _ in list(self.owed))

    def due(
        self, upto: EventId, entries: Sequence[Entry], shown: Callable[[TableName], EventId]
    ) -> tuple[list[Entry], list[TableName]]:
        """Entries for a window with these `entries` of the journal, and tables of which it can't be told where among
        their events an entry belongs: they must be read."""
        self.collect()
        self.using = {}
        created = {entry.keys.table for entry in entries}
        found: dict[TableName, list[tuple[str, Owed]]] = {}
        for (name, partition), item in list(self.owed.items()):
            known = (name in self.tables.rows or name in created) and not self.tables.is_(
                name, {TableState.QUARANTINED}
            )
            if not known or item.number <= self.floors.get(name, 0) or self.is_told(name, partition, item, entries):
                del self.owed[name, partition]
            elif not self.tables.is_(name, OUT) and item.entry.event_id <= upto:
                found.setdefault(name, []).append((partition, item))
        fit = self.still_so(found)
        due, lost = [], []
        for name, items in fit.items():
            entry, at = together(items), shown(name)
            self.using |= {(name, partition): item.number for partition, item in items}
            if entry.event_id >= at:
                due.append(entry)
            elif self.is_touched(name, Span(entry.event_id, at)):
                lost.append(name)
            else:
                due.append(replace(entry, event_id=at))
        return due, lost

    def collect(self) -> None:
        """Take in what is new: the newest of each directory counts."""
        if self.scans is None or self.last() <= self.read:
            return
        for entry in self.scans.entries(self.read):
            keys = entry.keys
            assert keys.table is not None
            self.read = max(self.read, entry.scans[0])
            if self.side.admission.takes(keys.table):
                for partition, location in zip(keys.partitions or ("",), keys.locations, strict=True):
                    before = self.owed.get((keys.table, partition))
                    since = before.moved_on_ns if before is not None else 0
                    self.owed[keys.table, partition] = Owed(entry.scans[0], location, entry, since)

    def is_told(self, name: TableName, partition: str, item: Owed, entries: Iterable[Entry]) -> bool:
        """Whether the directory has moved on and a later event tells of it."""
        if not item.moved_on_ns:
            return False
        return any(
            entry.event_id > item.entry.event_id
            and entry.keys.table == name
            and partition in (entry.keys.partitions or ("",))
            for entry in entries
        )

    def still_so(self, found: dict[TableName, list[tuple[str, Owed]]]) -> dict[TableName, list[tuple[str, Owed]]]:
        """Of each table what still lies there as it was found; nothing while some of it moved on a moment ago."""
        if not found or self.scans is None:
            return {}
        all_items = [item for items in found.values() for _, item in items]
        then = self.scans.listings({item.number for item in all_items})
        now = self.source.storage.list(sorted({item.location for item in all_items}))
        clock_ns = self.source.clock.now_ns()
        fit: dict[TableName, list[tuple[str, Owed]]] = {}
        for name, items in found.items():
            same, held = [], False
            for partition, item in items:
                listing = then.get((item.number, item.location))
                if listing is None:
                    del self.owed[name, partition]
                elif listing.files == now[item.location].files:
                    item.moved_on_ns = 0
                    same.append((partition, item))
                elif item.moved_on_ns and clock_ns - item.moved_on_ns > PATIENCE_SECONDS * 1e9:
                    del self.owed[name, partition]
                else:
                    item.moved_on_ns = item.moved_on_ns or clock_ns
                    held = True
            if same and not held:
                fit[name] = same
        return fit

    def is_touched(self, name: TableName, span: Span) -> bool:
        """Whether an event of the span concerns the table; in doubt it does."""
        try:
            entries = self.source.journal.entries(span)
        except Refused:
            return True
        return any(
            name in (entry.keys.table, entry.keys.other) for entry in entries if entry.keys.kind is not Kind.FACET
        )

    def done(self) -> None:
        """The window's entries are shown, but for those of tables that wait."""
        for key, number in self.using.items():
            item = self.owed.get(key)
            if item is not None and item.number == number and not self.tables.is_(key[0], {TableState.WAITING}):
                del self.owed[key]
        self.using = {}

    def row(self) -> TableRow | None:
        """For the ledger, where it changed."""
        taken = min([self.read, *(item.number - 1 for item in self.owed.values())])
        if taken == self.recorded:
            return None
        self.recorded = taken
        kind, database, table = TAKEN
        return TableRow(database, table, TableState.LIVE, taken, kind=kind)


def together(items: Collection[tuple[str, Owed]]) -> Entry:
    """One entry of all, at the newest of them."""
    ordered = sorted(items, key=lambda pair: pair[0])
    newest = max((item for _, item in ordered), key=lambda item: item.number).entry
    partitions = tuple(partition for partition, _ in ordered)
    keys = replace(
        newest.keys,
        partitions=partitions if partitions != ("",) else (),
        locations=tuple(item.location for _, item in ordered),
    )
    return replace(newest, keys=keys, scans=tuple(item.number for _, item in ordered))
