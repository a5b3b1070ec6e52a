"""Which files belong to the newest events on the directories that they touched."""

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
"""A table and a partition (empty: the plain table)."""
RETRY_SECONDS = 0.25
MOST_EMPTY = 100_000
"""Objects of which is known that they were empty. One more costs `MOVING_NS` when its definition changes."""


@dataclass(frozen=True, slots=True)
class PendingListing:
    """What event `event_id` names at `named`, and where it lies after the renames since: under the name that it left
    there may be another content of the same event. `may_be_empty`: the event made the object or removed its files, or
    the object had none before."""

    event_id: EventId
    named: str
    location: str
    read_ns: int
    may_be_empty: bool


class EvidenceGatherer:
    """Lists what events touched until a listing proves something. `takes` says which tables any target admits; `tell`
    is called when there are new events or new evidence."""

    def __init__(
        self, source: SourceSide, takes: Callable[[TableName], bool], tell: Callable[[], None] = lambda: None
    ) -> None:
        self.source, self.takes, self.tell = source, takes, tell
        self.pending: dict[ObjectKey, PendingListing] = {}
        self.proven: list[Evidence] = []
        """What is not recorded yet."""
        self.unsure = UnsureDirectories()
        self.pinned: dict[tuple[EventId, str], Listing] = {}
        """What is kept of pending events, by the directories that they name."""
        self.empty: set[ObjectKey] = set()
        """Some of the objects that had no files when they were listed last."""
        self.upto: EventId = 0
        self.considered: EventId = 0
        self.changed = threading.Condition()
        self.stopped = False
        self.problem: str | None = None
        """Why nothing can be listed now."""

    def resume(self, after: EventId, upto: EventId) -> None:
        """Take up what was appended and not yet considered when the last process ended."""
        self.considered = max(self.source.evidence.considered(), after, reach(self.source.journal))
        self.catch_up(self.considered, upto)
        self.upto = max(self.upto, upto)

    def catch_up(self, after: EventId, upto: EventId) -> None:
        """Take up what the journal has from behind `after` to `upto` and was not added."""
        begin = max(after, self.upto)
        if upto > begin and upto > (begin := max(begin, reach(self.source.journal))):
            self.add(self.source.journal.entries(Span(begin, upto)), self.source.clock.now_ns())

    def stop(self) -> None:
        """Have `run` end."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def add(self, entries: Sequence[Entry], read_ns: int) -> None:
        """Entries that are in the journal now."""
        with self.changed:
            for entry in entries:
                if entry.keys.table is not None:
                    self.take_what_can_be(entry, entry.keys.table, read_ns)
                self.upto = max(self.upto, entry.event_id)
            self.changed.notify_all()
        self.tell()

    def take_what_can_be(self, entry: Entry, table: TableName, read_ns: int) -> None:
        """As `take`; a table that meets a defect of calque gets no evidence."""
        try:
            with work_on(f"evidence of event {entry.event_id} on table {table}"):
                self.take(entry, table, read_ns)
        except ObjectDefect as defect:
            LOG.exception("%s", defect, exc_info=traceback_of(defect))
            self.pending = {key: item for key, item in self.pending.items() if key[0] not in (table, entry.keys.other)}

    def take(self, entry: Entry, table: TableName, read_ns: int) -> None:
        keys = entry.keys
        if may_move(entry) and self.carry(entry, table):
            return
        if keys.kind in REBINDS_TABLE_NAME:
            ended_names = {table, keys.other}
            self.pending = {key: value for key, value in self.pending.items() if key[0] not in ended_names}
        if keys.kind in FREES_PARTITION_NAMES:
            for partition in (*keys.partitions, *keys.others):
                self.pending.pop((table, partition), None)
        if keys.kind in ENDS_TABLE_OR_PARTITIONS or not (is_hidden(table) or self.takes(table)):
            return
        for partition, location in zip(keys.partitions or ("",), keys.locations, strict=False):
            if location:
                may_be_empty = self.may_be_empty((table, partition), keys)
                self.pending[table, partition] = PendingListing(
                    entry.event_id, location, location, read_ns, may_be_empty
                )

    def may_be_empty(self, key: ObjectKey, keys: Keys) -> bool:
        """Whether the object has no files after the event, if none are found."""
        if keys.kind is EventKind.INSERT:
            self.empty.discard(key)
            return False
        before = self.pending.get(key)
        if keys.kind in MAKES_TABLE_OR_PARTITIONS or keys.replaces:
            return True
        return before.may_be_empty if before is not None else key in self.empty

    def carry(self, entry: Entry, table: TableName) -> bool:
        """Whether the rename keeps contents: then what is pending goes on under the new name, where it lies now."""
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
        """Go on beside capture, until `stop`."""
        while True:
            with self.changed:
                if not self.stopped and self.upto <= self.considered:
                    self.changed.wait(RETRY_SECONDS if self.pending else None)
                if self.stopped:
                    return
            try:
                with work_on("evidence"):
                    self.once()
            except (CalqueError, ObjectDefect) as error:
                LOG.warning("evidence: %s", error, exc_info=traceback_of(error))
                self.problem = str(error)
                self.source.clock.sleep(1.0)
            else:
                self.problem = None

    def once(self) -> None:
        """Look at everything that is pending, and record what that proves."""
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
        """List everything in `todo` twice; what is proven leaves `pending`."""
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
        """What can't be listed gets no evidence: its tables wait, are read exactly, and say there what is wrong."""
        for error in refused.values():
            LOG.warning("evidence: %s", error, exc_info=traceback_of(error))
        with self.changed:
            for key, item in todo.items():
                if item.location in refused and self.pending.get(key) == item:
                    del self.pending[key]

    def pin(self, items: Iterable[PendingListing], listings: Mapping[str, Listing]) -> None:
        """Keep the files before anybody replaces them, whether or not their listing proves anything yet; evidence
        without a pin is evidence all the same."""
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
        """Directories of events whose files are not known yet."""
        with self.changed:
            return {item.location for item in self.pending.values()}

    def wait_for(self, event_id: EventId) -> bool:
        """Until capture has appended up to `event_id`; False when it does not get there."""
        with self.changed:
            return self.changed.wait_for(lambda: self.stopped or self.upto >= event_id, timeout=30) and not self.stopped


def is_hidden(table: TableName) -> bool:
    """Whether it is a hidden build of another calque: what it will be called is not known yet."""
    return table.database == OURS
