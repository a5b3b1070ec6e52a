"""The scanner: it looks for files that changed without an event (docs/files.md), table by table at the table's
interval.

A directory is compared with what was last seen of it: first the times of the directories, where the storage has them;
the files only where these times changed, and in every tenth scan. A directory that differs is looked at again after a
moment. If it is still the same, no writer is at work there and no event came between, it becomes part of one entry of
calque's own for the table, placed after the event that was current. Changes that an event explains are left to the
evidence.

An entry says what lay in the directories at one time. It may come twice, and the target may show it already; a reader
of entries takes only those that are still true.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.events.effects import RELOADED
from calque.core.formats.layout import join
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide
from calque.engine.source.stable_listings import list_what_can_be
from calque.engine.source.table_directories import TableDirectories
from calque.engine.source.unfinished_writes import has_drafts, has_workplace
from calque.errors import CalqueError, EventsForgotten, Refused
from calque.model.files import Listing
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName
from calque.model.scan import Memory, ObjectKey, Scan, ScannedDirectory
from calque.ports import Scans

LOG = logging.getLogger(__name__)
DEFECTIVE_SECONDS = 30.0
"""Seconds until a scan that met a defect of calque is tried again."""
SETTLED_SECONDS = 2.0
"""Seconds for which a changed directory has to stay as it is."""
FULL_EVERY = 10
"""The number of scans of which one lists the files in any case, because a file that is written in place changes no
directory's time."""
REMEMBER_NS = 30 * 10**9
"""The least pause between two writings of the memory, in nanoseconds. A writing that takes long gets a longer pause."""
MARGIN_NS = 60 * 10**9
"""Nanoseconds by which the clocks of the source's storage and of this machine may differ."""
LOG_DIRECTORY = "_delta_log"


@dataclass(frozen=True, slots=True)
class ScanSelection:
    """The tables that are scanned: `interval` gives a table's seconds between scans (None: it is not scanned),
    `databases` says which databases may have scanned tables."""

    interval: Callable[[TableName], float | None]
    databases: Callable[[str], bool]


class Scanner:
    """The scanner of one source. `pending` gives the locations of events whose files are not known yet. The journal
    began after event `begun`, at `begun_ns`: a directory that was never seen before and is older than that was there
    when the targets were read. `tell` is called after new entries."""

    def __init__(
        self,
        source: SourceSide,
        scans: Scans,
        chosen: ScanSelection,
        pending: Callable[[], Collection[str]],
        begun: EventId,
        begun_ns: int,
        tell: Callable[[], None],
    ) -> None:
        self.source, self.scans, self.chosen = source, scans, chosen
        self.pending, self.begun, self.begun_ns, self.tell = pending, begun, begun_ns, tell
        self.places = TableDirectories(source, lambda name: chosen.interval(name) is not None, chosen.databases)
        self.watched: dict[ObjectKey, ScannedDirectory] = {}
        self.seen_event: EventId | None = None
        self.seen_scan = 0
        self.rounds: dict[TableName, int] = {}
        self.due_ns: dict[TableName, int] = {}
        self.unlisted: set[str] = set()
        self.remember_ns = 0
        self.changed = False

    def run(self, stopping: threading.Event) -> None:
        """Scan until `stopping` is set. Errors are logged, and the next round tries again."""
        while not stopping.wait(self.pause()):
            try:
                with work_on("a scan"):
                    self.run_once()
            except EventsForgotten as error:
                LOG.warning("scan: it begins anew: %s", error)
                self.seen_event = None
            except (CalqueError, ObjectDefect) as error:
                LOG.warning("scan: %s", error, exc_info=traceback_of(error))
                stopping.wait(1.0 if isinstance(error, CalqueError) else DEFECTIVE_SECONDS)
        try:
            self.remember(always=True)
        except CalqueError as error:
            LOG.warning("scan: %s", error)

    def pause(self) -> float:
        """Return the seconds until the next table is due, one at most."""
        if self.seen_event is None:
            return 0.0
        now = self.source.clock.elapsed_ns()
        return min(1.0, max(0.05, (min(self.due_ns.values(), default=now + 10**9) - now) / 1e9))

    def run_once(self) -> None:
        """Scan the tables that are due."""
        if self.seen_event is None:
            self.restore()
        self.learn()
        self.recall()
        now = self.source.clock.elapsed_ns()
        names = [name for name in self.places.tables.keys() | self.places.stale if self.due_ns.get(name, 0) <= now]
        self.places.read(names)
        self.explain()
        if looks := self.differing(names):
            self.settle(looks)
        for name in names:
            self.due_ns[name] = now + int((self.chosen.interval(name) or 1.0) * 1e9)
        self.tidy()
        self.remember()

    # What is known

    def restore(self) -> None:
        """Go on where the memory ends. Without a memory, or where the journal has forgotten the events since,
        everything is new: evidence of earlier events does not tell how a directory was last seen then, because tables
        were read in a later state."""
        memory = self.scans.remembered()
        current = max(self.begun, self.source.log.current())
        self.places.begin()
        try:
            since = max(self.begun, min(memory.event_id, current)) if memory.watched else current
            entries = self.entries(Span(since, current))
        except Refused:
            entries, memory = (), Memory()
        self.places.learn(entries)
        self.watched, self.seen_event, self.seen_scan = dict(memory.watched), current, memory.scan

    def entries(self, span: Span) -> Sequence[Entry]:
        """Return the entries of the span, once the journal has them. Raises `Refused` (`EventsForgotten`) where the
        journal has forgotten them, `Unavailable`."""
        if not len(span):
            return ()
        wait_for_journal(self.source, span.upto)
        return self.source.journal.entries(span)

    def learn(self) -> EventId:
        """Take up the events up to now, and return the current event."""
        current = self.source.log.current()
        assert self.seen_event is not None
        if current > self.seen_event:
            entries = self.entries(Span(self.seen_event, current))
            self.places.learn(entries)
            self.hasten(entry.keys.table for entry in entries if entry.event_type == RELOADED)
            self.seen_event = current
        return self.seen_event

    def hasten(self, names: Iterable[TableName | None]) -> None:
        """Make the tables `names` due at once, with their files: an engine found them changed."""
        for name in names:
            if name is not None and self.chosen.interval(name) is not None:
                self.due_ns[name] = 0
                self.rounds[name] = FULL_EVERY - 2

    def recall(self) -> None:
        """Take up entries that earlier scans stored and that are not taken up yet, because their process died or did
        not hear that they were stored. Found anew, a change would get another number, and targets would copy it
        again."""
        newest = self.scans.last()
        if newest == self.seen_scan:
            return
        entries = self.scans.entries(self.seen_scan)
        listings = self.scans.listings(number for entry in entries for number in entry.scans)
        for entry in entries:
            keys = entry.keys
            assert keys.table is not None
            for partition, location, number in zip(keys.partitions or ("",), keys.locations, entry.scans, strict=True):
                key, listing = (keys.table, partition), listings.get((number, location))
                touched_at, _ = self.places.touched.get(key, (0, ""))
                if listing is not None and touched_at <= entry.event_id:
                    self.places.touched.pop(key, None)
                    self.note({key: ScannedDirectory(location, listing.fingerprint())})
                newest = max(newest, number)
        self.seen_scan = newest

    def explain(self) -> None:
        """Remember the directories of touched objects as the evidence of their events says, because those changes are
        explained."""
        touched = self.places.touched
        evidence = self.source.evidence.evidence({event_id for event_id, _ in touched.values()}) if touched else {}
        considered, pending = self.source.evidence.considered(), set(self.pending())
        for key, (event_id, location) in list(touched.items()):
            listing = evidence.get((event_id, location))
            if listing is not None:
                self.watched[key] = ScannedDirectory(location, listing.fingerprint())
                self.changed = True
            if listing is not None or (event_id <= considered and location not in pending):
                del touched[key]

    def tidy(self) -> None:
        """Forget objects that do not exist any more."""
        tables = self.places.tables
        forgotten_keys = [
            key
            for key in self.watched
            if key[0] not in self.places.stale and (key[0] not in tables or key[1] not in tables[key[0]].locations)
        ]
        for key in forgotten_keys:
            del self.watched[key]
        for name in [name for name in self.due_ns if name not in tables]:
            del self.due_ns[name]

    def remember(self, *, always: bool = False) -> None:
        now = self.source.clock.elapsed_ns()
        if self.changed and self.seen_event is not None and (always or now >= self.remember_ns):
            self.scans.remember(Memory(self.seen_event, self.watched, self.seen_scan))
            self.changed = False
            ended = self.source.clock.elapsed_ns()
            self.remember_ns = ended + max(REMEMBER_NS, 20 * (ended - now))

    # One scan

    def differing(self, names: Sequence[TableName]) -> dict[ObjectKey, ScannedDirectory]:
        """Return the objects whose directories are not as they were last seen, as they are now."""
        suspects = self.moved(names)
        listings = self.listed(suspects.values())
        changes: dict[ObjectKey, ScannedDirectory] = {}
        for key, item in suspects.items():
            if (listing := listings.get(item.location)) is None:
                continue
            now = replace(item, fingerprint=listing.fingerprint())
            if self.is_news(self.watched.get(key), now, listing):
                changes[key] = now
            else:
                self.note({key: self.timed(now, listing, key)})
        return changes

    def listed(self, items: Iterable[ScannedDirectory]) -> Mapping[str, Listing]:
        """Return the listings of the directories that can be listed. A directory that can't be listed is logged
        once."""
        listings, refused = list_what_can_be(self.source.storage, sorted({item.location for item in items}))
        for location in refused.keys() - self.unlisted:
            LOG.warning("scan: %s", refused[location], exc_info=traceback_of(refused[location]))
        self.unlisted = (self.unlisted | refused.keys()) - listings.keys()
        return listings

    def moved(self, names: Sequence[TableName]) -> dict[ObjectKey, ScannedDirectory]:
        """Return the objects that may have changed, with the times of their directories, taken before anything is
        listed."""
        locations = [(key, location) for key, location in self.places.keys(names) if key not in self.places.touched]
        for name in names:
            self.rounds[name] = self.rounds.get(name, -1) + 1
        known_directories = {
            key: item
            for key, location in locations
            if (item := self.watched.get(key)) is not None and item.location == location
        }
        items = {
            key: known_directories.get(key) or ScannedDirectory(location, "", ("",)) for key, location in locations
        }
        times = self.times_of(items.values())
        suspects = {}
        for key, item in items.items():
            now = replace(item, times=tuple(times.get(join(item.location, each), -1) for each in item.directories))
            full = self.rounds[key[0]] % FULL_EVERY == FULL_EVERY - 1
            if full or key not in known_directories or not item.times or now.times != item.times or 0 in now.times:
                suspects[key] = now
        return suspects

    def times_of(self, items: Iterable[ScannedDirectory]) -> Mapping[str, int]:
        locations = [join(item.location, directory) for item in items for directory in item.directories]
        return self.source.storage.modified(locations)

    def timed(self, item: ScannedDirectory, listing: Listing, key: ObjectKey) -> ScannedDirectory:
        """Return `item` with the directories that hold data by `listing`. Where these are others than before, the
        item's `times` are empty, so that the next scan lists the files again: the times from before the listing are
        known of the old directories alone."""
        directories = tuple(directories_of(listing, plain=not key[1]))
        return item if directories == item.directories else replace(item, directories=directories, times=())

    def is_news(self, before: ScannedDirectory | None, now: ScannedDirectory, listing: Listing) -> bool:
        """Tell whether the directory differs from what was last seen. One that was never seen differs if it is
        younger than the journal."""
        if before is not None:
            return (before.location, before.fingerprint) != (now.location, now.fingerprint)
        newest = max([*now.times, *(file.modified_ns for file in listing.files)], default=0)
        return newest > self.begun_ns - MARGIN_NS

    def settle(self, looks: Mapping[ObjectKey, ScannedDirectory]) -> None:
        """Look again after a moment. Directories that are the same, finished, and touched by no event become
        entries."""
        self.source.clock.sleep(SETTLED_SECONDS)
        self.learn()
        listings = self.listed(looks.values())
        current = self.learn()
        same = {
            key: listings[item.location]
            for key, item in looks.items()
            if item.location in listings
            and self.is_there(key, item)
            and listings[item.location].fingerprint() == item.fingerprint
        }
        settled = self.finished(same)
        if not settled:
            return
        listings_by_table: dict[TableName, dict[str, Listing]] = {}
        for (name, partition), listing in sorted(settled.items(), key=lambda item: item[0]):
            listings_by_table.setdefault(name, {})[partition] = listing
        found_at = self.source.clock.now_ns() // 10**9
        self.seen_scan = self.scans.append(
            [
                Scan(current, found_at, name, self.places.tables[name].shape, listed)
                for name, listed in listings_by_table.items()
            ]
        )
        self.note({key: self.timed(looks[key], listing, key) for key, listing in settled.items()})
        self.tell()
        LOG.info("scan: %d directories of %d tables changed without an event", len(settled), len(listings_by_table))

    def is_there(self, key: ObjectKey, item: ScannedDirectory) -> bool:
        """Tell whether the directory is still the object's, and no event named the object meanwhile."""
        name, partition = key
        placed = self.places.tables.get(name)
        return (
            placed is not None
            and name not in self.places.stale
            and key not in self.places.touched
            and placed.locations.get(partition) == item.location
        )

    def finished(self, listings: Mapping[ObjectKey, Listing]) -> dict[ObjectKey, Listing]:
        """Return the listings of directories in which no writer is at work, and that are certain to be as listed."""
        now, storage = self.source.clock.now_ns(), self.source.storage
        roots = {name: self.places.tables[name].root for name, _ in listings}
        busy = {root for root in set(roots.values()) if root and has_workplace(storage, root, now)}
        return {
            key: listing
            for key, listing in listings.items()
            if roots[key[0]] not in busy
            and not has_drafts(listing, now)
            and (listing.location.rstrip("/") == roots[key[0]] or not has_workplace(storage, listing.location, now))
            and (not listing.missing or self.is_removed(listing.location, roots[key[0]]))
        }

    def is_removed(self, location: str, root: str) -> bool:
        """Tell whether a missing directory was removed. It was if its parent or that of the table's directory exists;
        else the storage itself may be missing."""
        parents = {above(location), above(root)} - {""}
        if any(self.source.storage.exists(parent) for parent in parents):
            return True
        LOG.warning("scan: %s is missing with all above it; it is not taken for empty", location)
        return False

    def note(self, items: Mapping[ObjectKey, ScannedDirectory]) -> None:
        for key, item in items.items():
            if self.watched.get(key) != item:
                self.watched[key] = item
                self.changed = True


def directories_of(listing: Listing, *, plain: bool) -> dict[str, None]:
    """Return the directory itself (`""`), those below it on the way to a file, and for a table without partitions the
    place where it may have a Delta log."""
    directories = {"": None}
    for file in listing.files:
        parts = file.path.split("/")[:-1]
        for depth in range(len(parts)):
            directories["/".join(parts[: depth + 1])] = None
    return directories | ({LOG_DIRECTORY: None} if plain else {})


def above(location: str) -> str:
    return location.rstrip("/").rpartition("/")[0]
