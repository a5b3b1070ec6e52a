"""The findings of scans that a target has not taken yet.

An entry of a scan says what lay in directories at one time. Like an event it makes a stop of the table's chain, which
can be shown while those files are there. The newest entry of a directory has to be what lies there now, so that a
target never goes back, and an entry that is met twice changes nothing; where it is not, the next scan brings a newer
one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.records.lifecycle import BEHIND, UNREAD, State
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.model.records import Record, ScanProgress, one_of
from calque.model.scan import ObjectKey
from calque.ports import Ledger, Scans

PATIENCE_SECONDS = 10.0
"""Seconds that a table waits for the next scan of a directory that has moved on. Then it goes on without it."""
FORGET_SECONDS = 600.0
MANY = 50
"""Entries of one directory that are kept as stops; of more the newest ones."""


@dataclass(slots=True)
class UnappliedScan:
    """One directory as a scan found it. `number` and `entry` are the scan's; `moved_on_ns` is when the directory was
    first seen to hold other files than its newest scan found, 0 while it does not."""

    number: int
    location: str
    entry: Entry
    moved_on_ns: int = 0


class ScanBacklog:
    """The scans that one target has still to take. Without scans, or where all files stay at the source, there are
    none."""

    def __init__(self, source: SourceSide, side: TargetSide, tables: TableStates) -> None:
        self.source, self.side, self.tables = source, side, tables
        self.scans = source.scans if side.admission.copies_some else None
        self.read = self.recorded = 0
        self.unapplied_scans: dict[ObjectKey, list[UnappliedScan]] = {}
        self.floors: dict[TableName, int] = {}
        self.using: dict[ObjectKey, int] = {}

    def open(self, records: Iterable[Record]) -> None:
        """Take up from the ledger's records which scans were taken; those taken later without a record are met
        again."""
        self.read = self.recorded = newest_taken(records)
        self.unapplied_scans.clear()
        self.floors.clear()

    def begin(self) -> None:
        """Count all scans until now as taken: the target begins with exact reads, which see what the scans found."""
        self.read = self.last()

    def last(self) -> int:
        return self.scans.last() if self.scans is not None else 0

    def leave(self, name: TableName) -> None:
        """Count all that scans found of the table until now as taken, because the table is read from now on."""
        if self.scans is not None:
            self.floors[name] = self.last()

    def news(self) -> bool:
        """Tell whether there is a scan for a window to take."""
        return self.last() > self.read or self.owes()

    def owes(self) -> bool:
        """Tell whether the next window tries again to take a scan that could not be taken yet."""
        aside, now = BEHIND | UNREAD, self.source.clock.elapsed_ns()
        return any(
            not self.tables.is_(name, aside) and now - (items[-1].moved_on_ns or now) < 2 * PATIENCE_SECONDS * 1e9
            for (name, _), items in list(self.unapplied_scans.items())
        )

    def due(
        self, upto: EventId, entries: Sequence[Entry], shown: Callable[[TableName], EventId]
    ) -> tuple[list[Entry], list[TableName]]:
        """Return the scans' entries for a window to `upto` with these `entries` of the journal, and the tables that
        must be read: of these it can't be told where among their events an entry of a scan belongs. `shown` says which
        event a table shows.

            A scan after event 80 found `t` changed. `t` shows event 90 by now, and event 85 changed it.
            The scan may have seen `t` before or after event 85, so `t` must be read.
        """
        self.collect()
        self.prune({entry.keys.table for entry in entries})
        self.using = {}
        ready = {
            key: due_scans
            for key, items in self.unapplied_scans.items()
            if not self.tables.is_(key[0], UNREAD)
            and (due_scans := [item for item in items if item.entry.event_id <= upto])
        }
        stops: dict[tuple[TableName, int], list[tuple[str, UnappliedScan, int]]] = {}
        first_late_events: dict[TableName, EventId] = {}
        for (name, partition), numbered in self.numbered(ready).items():
            newest, shown_event = numbered[-1][0], shown(name)
            if newest.entry.event_id < shown_event:
                first_late_events[name] = min(first_late_events.get(name, shown_event), newest.entry.event_id)
            self.using[name, partition] = newest.number
            for item, number in numbered:
                if item is newest or item.entry.event_id >= shown_event:
                    stops.setdefault((name, item.number), []).append((partition, item, number))
        lost = {name for name, since in first_late_events.items() if self.is_touched(name, Span(since, shown(name)))}
        self.using = {key: number for key, number in self.using.items() if key[0] not in lost}
        scan_entries = [entry_of(items, shown(name)) for (name, _), items in stops.items() if name not in lost]
        return scan_entries, sorted(lost)

    def collect(self) -> None:
        """Take in the entries of new scans, of tables whose files the target copies."""
        if self.scans is None or self.last() <= self.read:
            return
        for entry in self.scans.entries(self.read):
            keys = entry.keys
            assert keys.table is not None
            self.read = max(self.read, entry.scans[0])
            if self.side.admission.takes(keys.table) and self.side.admission.copies(keys.table):
                for partition, location in zip(keys.partitions or ("",), keys.locations, strict=True):
                    items = self.unapplied_scans.setdefault((keys.table, partition), [])
                    items.append(UnappliedScan(entry.scans[0], location, entry))
                    del items[:-MANY]

    def prune(self, touched: Collection[TableName | None]) -> None:
        """Forget what scans found of tables that are quarantined, or neither at the target nor in `touched` by this
        window, and what was found before an exact read of the table."""
        for (name, partition), items in list(self.unapplied_scans.items()):
            is_known = name in self.tables.rows or name in touched
            if not is_known or self.tables.is_(name, {State.QUARANTINED}):
                items = []
            kept_items = [item for item in items if item.number > self.floors.get(name, 0)]
            if kept_items:
                self.unapplied_scans[name, partition] = kept_items
            else:
                del self.unapplied_scans[name, partition]

    def numbered(
        self, ready: Mapping[ObjectKey, list[UnappliedScan]]
    ) -> dict[ObjectKey, list[tuple[UnappliedScan, int]]]:
        """Return the scans of each directory with their numbers, negative where a scan's files are gone. A directory
        that has been other than its newest scan for `PATIENCE_SECONDS` is left out, and its scans are forgotten after
        `FORGET_SECONDS`. None is lost by that: the next scan compares the directory with the newest entry, and finds it
        changed once it rests."""
        if not ready or self.scans is None:
            return {}
        recorded_listings = self.scans.listings({item.number for items in ready.values() for item in items})
        current_listings = self.source.storage.list(sorted({items[-1].location for items in ready.values()}))
        clock_ns = self.source.clock.elapsed_ns()
        numbered_scans = {}
        for key, items in ready.items():
            newest = items[-1]
            files = current_listings[newest.location].files
            is_unchanged = (
                listing := recorded_listings.get((newest.number, newest.location))
            ) is not None and listing.files == files
            newest.moved_on_ns = 0 if is_unchanged else newest.moved_on_ns or clock_ns
            waited_seconds = 0.0 if is_unchanged else (clock_ns - newest.moved_on_ns) / 1e9
            if waited_seconds > FORGET_SECONDS:
                del self.unapplied_scans[key]
            elif waited_seconds < PATIENCE_SECONDS:
                stops = [
                    (item, signed(recorded_listings.get((item.number, item.location)), newest, files))
                    for item in items[:-1]
                ]
                numbered_scans[key] = [
                    (item, sign * item.number) for item, sign in [*stops, (newest, 1 if is_unchanged else -1)]
                ]
        return numbered_scans

    def is_touched(self, name: TableName, span: Span) -> bool:
        """Tell whether an event of the span concerns the table; True where the journal does not have the span."""
        try:
            entries = self.source.journal.entries(span)
        except Refused:
            return True
        return any(
            name in (entry.keys.table, entry.keys.other) for entry in entries if entry.keys.kind is not EventKind.FACET
        )

    def miss(self, names: Collection[TableName]) -> None:
        """Keep what scans found of the tables `names` for a later window, because this one did not come to it."""
        self.using = {key: number for key, number in self.using.items() if key[0] not in names}

    def done(self) -> None:
        """Forget the scans that the window has shown."""
        for key, number in self.using.items():
            kept_items = [item for item in self.unapplied_scans.get(key, ()) if item.number > number]
            if kept_items:
                self.unapplied_scans[key] = kept_items
            else:
                self.unapplied_scans.pop(key, None)
        self.using = {}

    def progress(self) -> ScanProgress:
        return ScanProgress(min([self.read, *(items[0].number - 1 for items in self.unapplied_scans.values())]))

    def record(self) -> None:
        """Have the ledger say which scans are taken, where that changed. Called after the epoch that shows them: what a
        death leaves unsaid is taken again, and changes nothing then."""
        progress = self.progress()
        if progress.newest_scan != self.recorded:
            self.side.ledger.put_records([progress])
            self.recorded = progress.newest_scan


def signed(recorded: Listing | None, newest: UnappliedScan, files: tuple[File, ...]) -> int:
    """Return 1 where the files of an earlier scan are all among those that lie in the newest one's directory now, else
    -1."""
    return (
        1 if recorded is not None and recorded.location == newest.location and set(recorded.files) <= set(files) else -1
    )


def entry_of(items: Collection[tuple[str, UnappliedScan, int]], least: EventId) -> Entry:
    """Return one scan of a table as an entry, with the partitions in `items` (partition, scan, signed number), at event
    `least` or later."""
    ordered = sorted(items, key=lambda item: item[0])
    entry = ordered[0][1].entry
    partitions = tuple(partition for partition, _, _ in ordered)
    keys = replace(
        entry.keys,
        partitions=partitions if partitions != ("",) else (),
        locations=tuple(item.location for _, item, _ in ordered),
    )
    return replace(
        entry, event_id=max(entry.event_id, least), keys=keys, scans=tuple(number for _, _, number in ordered)
    )


def newest_taken(records: Iterable[Record]) -> int:
    """Return the number of the newest scan that a target has taken together with all before it; 0 for none."""
    progress = one_of(records, ScanProgress)
    return progress.newest_scan if progress is not None else 0


def forget_taken(scans: Scans, ledgers: Iterable[Ledger]) -> int:
    """Forget the scans that every target has taken; return how many there were."""
    upto = min((newest_taken(ledger.records()) for ledger in ledgers), default=0)
    return scans.forget(upto) if upto else 0
