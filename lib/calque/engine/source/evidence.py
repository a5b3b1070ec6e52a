"""The gathering of evidence: listings that prove which files belong to the newest events on the directories that these
touched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.events.effects import (
    ENDS_TABLE_OR_PARTITIONS,
    FREES_PARTITION_NAMES,
    MAKES_TABLE_OR_PARTITIONS,
    REBINDS_TABLE_NAME,
)
from calque.core.states.moves import may_move, move_of
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide
from calque.engine.source.stable_listings import UnsureDirectories, emptied_lately, list_what_can_be
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.files import Evidence, Listing, agree
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import OURS, EventId, Span, TableName

LOG = logging.getLogger(__name__)
ObjectKey = tuple[TableName, str]
"""A table and a partition (empty for a table without partitions)."""
RETRY_SECONDS = 0.25
MOST_EMPTY = 100_000
"""Objects that are remembered as empty, at most. An object that is not remembered costs `MOVING_NS` when its definition
changes while it is empty."""


@dataclass(frozen=True, slots=True)
class PendingListing:
    """A directory to list for the event `event_id`. `named` is where the event says that it lies; `location` is where
    it lies after the renames since, because the same event may name other content under the name that was left.
    `read_ns` is when the event was read. `may_be_empty`: the event made the object or removed its files, or the object
    had none before."""

    event_id: EventId
    named: str
    location: str
    read_ns: int
    may_be_empty: bool


class EvidenceGatherer:
    """The gatherer lists directories that events touched until a listing proves which files they have. `copies` says
    of which tables any target copies the files. `tell` is called when there are new events or new evidence."""

    def __init__(
        self, source: SourceSide, copies: Callable[[TableName], bool], tell: Callable[[], None] = lambda: None
    ) -> None:
        self.source, self.copies, self.tell = source, copies, tell
        self.pending: dict[ObjectKey, PendingListing] = {}
        self.proven: list[Evidence] = []
        """Evidence that is not recorded yet."""
        self.unsure = UnsureDirectories()
        self.pinned: dict[tuple[EventId, str], Listing] = {}
        """Files that are kept for pending events, by event and the directory that it names."""
        self.empty: set[ObjectKey] = set()
        """Some of the objects that had no files when they were listed last."""
        self.upto: EventId = 0
        self.considered: EventId = 0
        self.changed = threading.Condition()
        self.stopped = False
        self.problem: str | None = None
        """The reason why nothing can be listed now."""

    def resume(self, after: EventId, upto: EventId) -> None:
        """Take up the events that were in the journal and not considered yet when the last process ended. `after` and
        `upto` are the span of the journal."""
        self.considered = max(self.source.evidence.considered(), after, reach(self.source.journal))
        self.catch_up(self.considered, upto)
        self.upto = max(self.upto, upto)

    def catch_up(self, after: EventId, upto: EventId) -> None:
        """Take up the events of the journal in `(after, upto]` that were not added yet."""
        begin = max(after, self.upto)
        if upto > begin and upto > (begin := max(begin, reach(self.source.journal))):
            self.add(self.source.journal.entries(Span(begin, upto)), self.source.clock.now_ns())

    def stop(self) -> None:
        """Make `run` return."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def add(self, entries: Sequence[Entry], read_ns: int) -> None:
        """Take up entries that are in the journal now; `read_ns` is when they were read from the log."""
        with self.changed:
            for entry in entries:
                if entry.keys.table is not None:
                    self.take_what_can_be(entry, entry.keys.table, read_ns)
                self.upto = max(self.upto, entry.event_id)
            self.changed.notify_all()
        self.tell()

    def take_what_can_be(self, entry: Entry, table: TableName, read_ns: int) -> None:
        """Call `take`. If that meets a defect of calque, drop what is pending for the table, which gets no evidence
        then."""
        try:
            with work_on(f"evidence of event {entry.event_id} on table {table}"):
                self.take(entry, table, read_ns)
        except ObjectDefect as defect:
            LOG.exception("%s", defect, exc_info=traceback_of(defect))
            self.pending = {key: item for key, item in self.pending.items() if key[0] not in (table, entry.keys.other)}

    def take(self, entry: Entry, table: TableName, read_ns: int) -> None:
        keys = entry.keys
        if keys.transactional and self.source.commits is not None:
            # What an ACID table's directories hold in a state follows from its transactions (`commits`).
            return
        if may_move(entry) and self.carry(entry, table):
            return
        if keys.kind in REBINDS_TABLE_NAME:
            ended_names = {table, keys.other}
            self.pending = {key: value for key, value in self.pending.items() if key[0] not in ended_names}
        if keys.kind in FREES_PARTITION_NAMES:
            for partition in (*keys.partitions, *keys.others):
                self.pending.pop((table, partition), None)
        if keys.kind in ENDS_TABLE_OR_PARTITIONS or not (is_hidden(table) or self.copies(table)):
            return
        for partition, location in zip(keys.partitions or ("",), keys.locations, strict=False):
            if location:
                may_be_empty = self.may_be_empty((table, partition), keys)
                self.pending[table, partition] = PendingListing(
                    entry.event_id, location, location, read_ns, may_be_empty
                )

    def may_be_empty(self, key: ObjectKey, keys: Keys) -> bool:
        """Tell whether a listing without files can be believed of the object after the event."""
        if keys.kind is EventKind.INSERT:
            self.empty.discard(key)
            return False
        before = self.pending.get(key)
        if keys.kind in MAKES_TABLE_OR_PARTITIONS or keys.replaces:
            return True
        return before.may_be_empty if before is not None else key in self.empty

    def carry(self, entry: Entry, table: TableName) -> bool:
        """If the rename keeps contents, move what is pending to the new name and to where it lies now. Return whether
        it does."""
        keys, move = entry.keys, move_of(self.source.journal.events([entry.event_id])[entry.event_id])
        is_table = keys.kind is EventKind.RENAME_TABLE
        if move is None and not (is_table and keys.shape is TableShape.PARTITIONED):
            return False
        renamed: dict[ObjectKey, ObjectKey] = {
            (name, partition): (table, partition if is_table else keys.partitions[0])
            for name, partition in self.pending
            if (name == keys.other if is_table else (name, partition) == (table, keys.others[0]))
        }
        carried = {
            renamed[key]: replace(item, location=move.follow(item.location) if move else item.location)
            for key, item in self.pending.items()
            if key in renamed
        }
        self.pending = {key: item for key, item in self.pending.items() if key not in renamed} | carried
        return True

    def run(self) -> None:
        """Gather evidence beside capture, until `stop`."""
        while True:
            with self.changed:
                if not self.stopped and self.upto <= self.considered:
                    self.changed.wait(RETRY_SECONDS if self.pending else None)
                if self.stopped:
                    return
            try:
                with work_on("evidence"):
                    self.run_once()
            except (CalqueError, ObjectDefect) as error:
                LOG.warning("evidence: %s", error, exc_info=traceback_of(error))
                self.problem = str(error)
                self.source.clock.sleep(1.0)
            else:
                self.problem = None

    def run_once(self) -> None:
        """List everything that is pending, and record the evidence that this gives."""
        with self.changed:
            todo, upto = dict(self.pending), self.upto
        self.proven += self.look(todo)
        self.unsure.only(self.locations())
        if self.stopped:
            return
        if self.proven or upto > self.considered:
            self.source.evidence.append(self.proven, upto)
            self.proven = []
            self.tell()
        self.considered = max(self.considered, upto)

    def look(self, todo: Mapping[ObjectKey, PendingListing]) -> list[Evidence]:
        """List everything in `todo` twice, and return the evidence. A listing is evidence if both agree, no file is
        younger than the event, the directory is not missing or emptied lately without the event's saying so, and no
        newer event touched the object. An object with evidence is pending no more."""
        if not todo:
            return []
        locations = sorted({item.location for item in todo.values()})
        first, refused = list_what_can_be(self.source.storage, locations)
        self.pin(todo.values(), first)
        second, more = list_what_can_be(self.source.storage, sorted(first)) if first else ({}, {})
        self.give_up(todo, refused | more)
        filled = {item.location for item in todo.values() if not item.may_be_empty}
        emptied = emptied_lately(
            self.source.storage, [second[each] for each in filled & second.keys()], self.source.clock.now_ns()
        )
        now_ns = self.source.clock.elapsed_ns()
        settled = {
            key: Evidence(item.event_id, replace(second[item.location], location=item.named))
            for key, item in todo.items()
            if item.location in second
            and agree(first[item.location], second[item.location])
            and second[item.location].is_settled(item.read_ns)
            and self.unsure.is_certain(second[item.location], now_ns, just_emptied=item.location in emptied)
        }
        if not settled or not self.wait_for(self.source.log.current()):
            return []
        with self.changed:
            proven = {key: value for key, value in settled.items() if self.pending.get(key) == todo[key]}
            for key, value in proven.items():
                del self.pending[key]
                self.empty.discard(key)
                if not value.listing.files and len(self.empty) < MOST_EMPTY:
                    self.empty.add(key)
        return list(proven.values())

    def give_up(self, todo: Mapping[ObjectKey, PendingListing], refused: Mapping[str, Refused | ObjectDefect]) -> None:
        """Drop directories that can't be listed. Their tables get no evidence: they wait, are then read exactly, and
        that read says what is wrong."""
        for error in refused.values():
            LOG.warning("evidence: %s", error, exc_info=traceback_of(error))
        with self.changed:
            for key, item in todo.items():
                if item.location in refused and self.pending.get(key) == item:
                    del self.pending[key]

    def pin(self, items: Iterable[PendingListing], listings: Mapping[str, Listing]) -> None:
        """Pin the files of the listings before a writer replaces them, even if a listing proves nothing yet. A pin that
        fails is logged, because evidence without a pin is evidence all the same."""
        if self.source.pins is None:
            return
        due = {(item.event_id, item.named): listings[item.location] for item in items if item.location in listings}
        self.pinned = {key: listing for key, listing in self.pinned.items() if due.get(key) == listing}
        for (event_id, location), listing in due.items():
            if (event_id, location) in self.pinned or listing.missing or listing.version is not None:
                continue
            try:
                with work_on(f"pinning {location}"):
                    is_kept = self.source.pins.keep(event_id, location, listing)
            except (Unavailable, Refused, ObjectDefect) as error:
                LOG.warning("evidence: %s is not pinned: %s", location, error, exc_info=traceback_of(error))
            else:
                if is_kept:
                    self.pinned[event_id, location] = listing
                else:
                    LOG.debug("evidence: %s is not pinned", location)

    def locations(self) -> set[str]:
        """Return the directories of events whose files are not known yet."""
        with self.changed:
            return {item.location for item in self.pending.values()}

    def wait_for(self, event_id: EventId) -> bool:
        """Wait until capture has added the events up to `event_id`. Return False if it does not within 30 seconds, or
        `stop` was called."""
        with self.changed:
            return self.changed.wait_for(lambda: self.stopped or self.upto >= event_id, timeout=30) and not self.stopped


def is_hidden(table: TableName) -> bool:
    """Tell whether the table is a hidden build of another calque, whose later name is not known yet."""
    return table.database == OURS
