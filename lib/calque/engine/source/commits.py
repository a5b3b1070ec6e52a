"""The commits of transactions, found out beside capture: which tables each one changed, and the files that these have
then.

The log says which tables a transaction writes to and when it ends, not which partitions it wrote and which files it
left. Both follow from the directories, which are named by write ids. So after each commit the table's directories are
looked at, and compared with what the state before the commit has in them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.core.acid.contents import AcidLook, content_at
from calque.core.acid.transaction_states import TransactionStates
from calque.core.acid.transactions import Aborted, Committed, TransactionEvent, transaction_event
from calque.core.acid.write_ids import (
    NOT_KNOWN,
    TableWriteIds,
    ValidWriteIds,
    WriteIdFold,
)
from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.events.decode import Undecodable
from calque.core.events.effects import ALTERS_OR_RENAMES_TABLE, MAKES_OR_ENDS_TABLE, REBINDS_TABLE_NAME
from calque.core.events.kinds import obstacle
from calque.core.policy.admit import Admission
from calque.core.states.fold import names_of
from calque.engine.sides.acid_looks import look_of
from calque.engine.sides.journal_reads import entries_in, messages, newest, reach
from calque.engine.sides.sides import SourceSide
from calque.engine.source.stable_listings import list_what_can_be
from calque.errors import CalqueError
from calque.model.files import Evidence, Listing
from calque.model.hive import Table, is_partitioned, is_transactional, location_of
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.transactions import TransactionId
from calque.ports import Commits, Storage
from calque.ports.transactions import TransactionReader

LOG = logging.getLogger(__name__)
OF_TRANSACTIONS = frozenset({"OPEN_TXN", "ALLOC_WRITE_ID_EVENT", "COMMIT_TXN", "ABORT_TXN"})
MAY_CHANGE_WRITE_IDS = ALTERS_OR_RENAMES_TABLE | MAKES_OR_ENDS_TABLE
AT_ONCE = 5_000
"""Events that are taken together."""
WAIT_SECONDS = 0.25
"""Seconds between two looks for events of which nobody tells."""
REMEMBER_NS = 1_000_000_000


@dataclass(slots=True)
class FollowedTable:
    """An ACID table whose commits are followed. `places` are the locations of its partitions, `""` stands for a table
    without partitions; an empty location is not known."""

    shape: TableShape
    places: dict[str, str] = field(default_factory=dict)

    def copy(self) -> FollowedTable:
        return FollowedTable(self.shape, dict(self.places))

    def take(self, keys: Keys) -> None:
        """Take an event on the table that leaves its name as it is."""
        for partition in (*keys.others, *(keys.partitions if keys.kind is EventKind.DROP_PARTITIONS else ())):
            self.places.pop(partition, None)
        named = keys.partitions or ("",)
        self.places |= {name: place for name, place in zip(named, keys.locations, strict=False) if place}


@dataclass(frozen=True, slots=True)
class DueState:
    """A state of a table of which the files are to be found out: that after the event of `entry`, in which the write
    ids `valid` are seen. `before` are those that were seen before a commit; None where the event is none."""

    entry: Entry
    table: TableName
    valid: ValidWriteIds
    before: ValidWriteIds | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Successive events, and the states that they make. Where a transaction ends with the last of them whose write ids
    are not known, `rechecks` are the tables to which it may have written."""

    entries: Sequence[Entry]
    due: Sequence[DueState]
    rechecks: frozenset[TableName] = frozenset()

    @property
    def upto(self) -> EventId:
        return self.entries[-1].event_id


@dataclass(frozen=True, slots=True)
class PlacedState:
    """A state with the locations at which the table's partitions lay then (`FollowedTable.places`)."""

    state: DueState
    shape: TableShape
    places: Mapping[str, str]

    def without(self, went: Mapping[tuple[TableName, str], EventId]) -> PlacedState:
        """Return the state without the places of partitions that `went` later."""
        table, event_id = self.state.table, self.state.entry.event_id
        gone = {name for name in self.places if went.get((table, name), 0) > event_id}
        return replace(self, places={**self.places, **dict.fromkeys(gone, "")}) if gone else self


class CommitFinder:
    """The finder of commits. `wants` tells of a table's definition whether a target replicates the transactions of the
    table. `tell` is called when there are new commits."""

    def __init__(
        self,
        source: SourceSide,
        commits: Commits,
        transactions: TransactionReader,
        wants: Callable[[Table], bool],
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self.source, self.commits, self.transactions = source, commits, transactions
        self.wants, self.tell = wants, tell
        self.event: EventId = 0
        self.certain_after: EventId = 0
        self.known_after: TransactionId = 0
        self.fold, self.states = WriteIdFold(), TransactionStates()
        self.followed: dict[TableName, FollowedTable | None] = {}
        """Tables whose definitions are known; None for those whose commits nobody wants."""
        self.doubtful: dict[TableName, frozenset[str]] = {}
        """The partitions of tables whose files after the newest commit are not known."""
        self.batch: Batch | None = None
        """Events that are taken into `fold`, and whose states are not found out yet."""
        self.problem: str | None = None
        """The reason why no commits can be found out now."""
        self.remember_ns = 0
        self.more = threading.Event()
        """Set when the journal has more events."""

    def run(self, stopping: threading.Event) -> None:
        """Find out commits beside capture, until `stopping` is set."""
        is_open = False
        while not stopping.is_set():
            self.more.clear()
            try:
                with work_on("commits of transactions"):
                    if not is_open:
                        self.open()
                        is_open = True
                    if not self.run_once():
                        self.more.wait(WAIT_SECONDS)
            except (CalqueError, ObjectDefect) as error:
                LOG.warning("transactions: %s", error, exc_info=traceback_of(error))
                self.problem = str(error)
                stopping.wait(1.0)
            else:
                self.problem = None

    def open(self) -> None:
        """Take up where the last process ended; without its memory begin anew at the source's present state."""
        memory = self.commits.remembered()
        if memory is None or memory.gap != newest(self.source.gaps) or memory.event_id < reach(self.source.journal):
            self.begin_anew()
        else:
            self.event, self.certain_after = memory.event_id, memory.certain_after
            self.known_after = memory.known_after
            self.fold, self.states = WriteIdFold(memory.tables), memory.transactions

    def begin_anew(self) -> None:
        """Ask the source for the write ids of all tables that are wanted. What they were before is not known, so that
        tables which targets have are read."""
        low = self.source.log.current()
        names = [
            TableName(database, name) for database in self.source.catalog.databases() for name in self.of(database)
        ]
        states = self.transactions.open_transactions()
        valid = self.transactions.valid_write_ids(names)
        self.certain_after = self.source.log.current()
        self.states = TransactionStates(states.high, set(states.open), set(states.aborted))
        self.known_after = states.high
        self.fold = WriteIdFold({name: of_unknown_owners(ids) for name, ids in valid.items()})
        self.event, self.followed, self.batch = low, {}, None
        is_first, now = not self.commits.upto(), self.source.clock.now_ns() // 10**9
        self.commits.restart(low - 1)
        self.commits.append([] if is_first else [AcidCommit(low, now, name) for name in names], low)
        self.remember()

    def of(self, database: str) -> list[str]:
        """Return the tables of the database whose commits are wanted."""
        catalog = self.source.catalog
        headers = catalog.headers(database, catalog.tables(database))
        return sorted(name for name, table in headers.items() if self.wants(table))

    def run_once(self) -> bool:
        """Find out the commits of the next events of the journal. Return whether there were any events."""
        if self.batch is None:
            upto = min(self.source.journal.last() or 0, self.event + AT_ONCE)
            if upto <= self.event:
                return False
            self.batch = self.taken(self.source.journal.entries(Span(self.event, upto)))
        batch = self.batch
        followed, placed = self.placed(batch)
        evidence, commits = self.found(placed, batch) if placed else ([], [])
        commits += self.rechecked(batch)
        if evidence:
            self.source.evidence.append(evidence, self.source.evidence.considered())
        self.commits.append(commits, batch.upto)
        self.event, self.followed, self.batch = batch.upto, followed, None
        if self.source.clock.elapsed_ns() >= self.remember_ns:
            self.remember()
        self.tell()
        return True

    def remember(self) -> None:
        now = self.source.clock.elapsed_ns()
        tables = self.fold.tables()
        self.commits.remember(
            TransactionMemory(
                self.event, self.certain_after, self.known_after, self.states, tables, newest(self.source.gaps)
            )
        )
        ended = self.source.clock.elapsed_ns()
        self.remember_ns = ended + max(REMEMBER_NS, 20 * (ended - now))

    # What the log says

    def taken(self, entries: Sequence[Entry]) -> Batch:
        """Take the events into the fold, up to the first one after which it needs to ask the source. Return them with
        the states that they make."""
        ids = [entry.event_id for entry in entries if self.matters(entry)]
        events = {event.event_id: event for event in messages(self.source.journal, ids)}
        due: list[DueState] = []
        for number, entry in enumerate(entries, 1):
            event, table = events.get(entry.event_id), entry.keys.table
            try:
                change = transaction_event(event) if event is not None else None
                rechecks = self.may_have_written(change)
                before = self.fold.seen_by(change) if change is not None else {}
                changed = self.fold.take_event(event) if event is not None else frozenset()
            except Undecodable as error:
                LOG.warning("transactions: event %d can't be read: %s", entry.event_id, error)
                continue
            if change is not None:
                self.states.take(change)
            if table is not None and entry.keys.transactional and entry.keys.locations:
                due.append(DueState(entry, table, self.fold.valid(table)))
            due += [DueState(entry, name, self.fold.valid(name), before[name]) for name in sorted(changed)]
            if rechecks:
                return Batch(entries[:number], due, rechecks)
        return Batch(entries, due)

    def may_have_written(self, change: TransactionEvent | None) -> frozenset[TableName]:
        """Return the tables to which a transaction may have written that ends, and that began before anything was known
        of the log."""
        if not isinstance(change, Committed | Aborted) or change.transaction > self.known_after:
            return frozenset()
        return self.fold.may_have_written(change.transaction)

    def matters(self, entry: Entry) -> bool:
        """Tell whether the event may change write ids."""
        return entry.event_type in OF_TRANSACTIONS or (
            entry.keys.kind in MAY_CHANGE_WRITE_IDS
            and (entry.keys.transactional or bool(self.fold.tables_named(entry.keys.table, entry.keys.other)))
        )

    # Where the tables lie

    def placed(self, batch: Batch) -> tuple[dict[TableName, FollowedTable | None], list[PlacedState]]:
        """Return what is known of tables after the batch, and the due states of those that are wanted, with their
        places."""
        followed = {name: table.copy() if table is not None else None for name, table in self.followed.items()}
        due: dict[EventId, list[DueState]] = {}
        for state in batch.due:
            due.setdefault(state.entry.event_id, []).append(state)
        placed: list[PlacedState] = []
        for number, entry in enumerate(batch.entries):
            keys = entry.keys
            if keys.table is not None and keys.kind in REBINDS_TABLE_NAME:
                followed.pop(keys.table, None)
                if keys.other is not None:
                    followed.pop(keys.other, None)
            elif keys.table is not None and (known := followed.get(keys.table)) is not None:
                known.take(keys)
            for state in due.get(entry.event_id, ()):
                if state.table not in followed:
                    followed[state.table] = self.follow(state.table, batch.entries[number + 1 :], batch.upto)
                table = followed[state.table]
                if table is None:
                    continue
                if state.before is None:
                    named = dict(zip(keys.partitions or ("",), keys.locations, strict=False))
                    placed.append(PlacedState(state, table.shape, named))
                else:
                    placed.append(PlacedState(state, table.shape, dict(table.places)))
        return followed, placed

    def follow(self, name: TableName, later: Sequence[Entry], upto: EventId) -> FollowedTable | None:
        """Return the table as it was before the events `later`, which end with `upto`; None for one that no target
        wants. Without places where it does not exist by now, or has another name."""
        catalog = self.source.catalog
        table = catalog.table(name)
        if table is None:
            return FollowedTable(TableShape.NOT_SAID)
        if not self.wants(table):
            return None
        if not is_partitioned(table):
            return FollowedTable(TableShape.PLAIN, {"": location_of(table) or ""})
        partitions = catalog.partitions(name, catalog.partition_names(name))
        places = {partition: location_of(one) or "" for partition, one in partitions.items()}
        every = [*later, *self.after(upto)]
        return FollowedTable(TableShape.PARTITIONED, places_before(places, name, every))

    def after(self, event_id: EventId) -> list[Entry]:
        """Return the events after `event_id` up to the newest one of the log. This waits until the journal has it.
        Raises `Unavailable`."""
        return list(entries_in(self.source, Span(event_id, max(event_id, self.source.log.current()))))

    # What lies there

    def found(self, placed: Sequence[PlacedState], batch: Batch) -> tuple[list[Evidence], list[AcidCommit]]:
        """Look at the places, and return the files of the states that this proves, and the commits."""
        certain = [one for one in placed if one.state.entry.event_id > self.certain_after]
        is_committed = self.ahead(self.after(batch.upto))[1].is_committed
        looks = looks_that_can_be(self.source.storage, {place for one in certain for place in one.places.values()})
        later = self.after(batch.upto)
        fold, ended = self.ahead(later)
        seen, is_committed_now = seen_after(fold, later), ended.is_committed
        went = departures([*batch.entries, *later])
        evidence: list[Evidence] = []
        commits: list[AcidCommit] = []
        for one in [one.without(went) for one in placed]:
            state, entry = one.state, one.state.entry
            latest = seen(state.table) if entry.event_id > self.certain_after else None
            contents = Contents(one, looks, latest, is_committed, is_committed_now) if latest is not None else None
            if state.before is None:
                found = contents.all(state.valid) if contents is not None else {}
                evidence += [Evidence(entry.event_id, listing) for listing in found.values() if listing is not None]
                continue
            doubtful = self.doubtful.get(state.table, frozenset())
            changed = contents.changed(state.before, state.valid, doubtful) if contents is not None else None
            places = None
            if changed is not None:
                evidence += [Evidence(entry.event_id, listing) for listing in changed.values() if listing is not None]
                self.doubtful[state.table] = frozenset(name for name, listing in changed.items() if listing is None)
                places = {partition: one.places[partition] for partition in changed}
            if places is None or places:
                commits.append(AcidCommit(entry.event_id, entry.event_time, state.table, one.shape, places))
        return evidence, commits

    def ahead(self, later: Sequence[Entry]) -> tuple[WriteIdFold, TransactionStates]:
        """Return what is known of write ids and transactions after the events `later`, which follow those that were
        taken."""
        fold, states = WriteIdFold(self.fold.tables()), self.states.copy()
        ids = [entry.event_id for entry in later if self.matters(entry)]
        for event in messages(self.source.journal, ids):
            with suppress(Undecodable):
                change = transaction_event(event)
                if change is not None:
                    states.take(change)
                fold.take_event(event)
        return fold, states

    def rechecked(self, batch: Batch) -> list[AcidCommit]:
        """Ask the source for the write ids of the tables to which a transaction may have written that ended with the
        batch, and return the commits of those that have other ones by now. Which rows readers see is not known."""
        if not batch.rechecks:
            return []
        last = batch.entries[-1]
        answers = self.transactions.valid_write_ids(batch.rechecks)
        return [
            AcidCommit(last.event_id, last.event_time, name)
            for name in sorted(batch.rechecks)
            if self.fold.settle(name, answers[name])
        ]


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a table's directories, as far as looks prove them. `latest` are the write ids that are seen at an
    event after the looks; `is_committed` and `is_committed_now` are as in `content_at`."""

    placed: PlacedState
    looks: Mapping[str, AcidLook]
    latest: ValidWriteIds
    is_committed: Callable[[TransactionId], bool]
    is_committed_now: Callable[[TransactionId], bool]

    def all(self, valid: ValidWriteIds) -> dict[str, Listing | None]:
        """Return the files of each partition in the state with these write ids; None where they are not known."""
        return {partition: self.at(place, valid) for partition, place in self.placed.places.items()}

    def at(self, place: str, valid: ValidWriteIds) -> Listing | None:
        look = self.looks.get(place)
        if look is None or look.listing.missing:
            return None
        return content_at(look, valid, self.latest, self.is_committed, self.is_committed_now)

    def changed(
        self, before: ValidWriteIds, after: ValidWriteIds, doubtful: Collection[str]
    ) -> dict[str, Listing | None] | None:
        """Return the files after a commit of each partition in which it may have changed some, and of those whose files
        were `doubtful` before; None for files that are not known. Return None where there are no places, or not of all
        partitions."""
        if not self.placed.places or not all(self.placed.places.values()):
            return None
        return {
            partition: listing
            for partition, listing in self.all(after).items()
            if listing is None or partition in doubtful or self.at(self.placed.places[partition], before) != listing
        }


def seen_after(fold: WriteIdFold, later: Sequence[Entry]) -> Callable[[TableName], ValidWriteIds | None]:
    """Return a function that gives the write ids of a table that are seen after the events `later`, which `fold` has
    taken; None for a name that means another table by then, or none."""
    gone = {name for entry in later if entry.keys.kind in REBINDS_TABLE_NAME for name in names_of(entry)}
    return lambda name: None if name in gone else fold.valid(name)


def is_followed(admissions: Iterable[Admission], table: Table) -> bool:
    """Tell whether the table is an ACID table that one of the policies has replicated, or may have."""
    name = table_name(table.database, table.name)
    words = {one.acid(name) for one in admissions if one.takes(name)}
    return is_transactional(table) and any(word == "auto" or not obstacle(table, word) for word in words)


def looks_that_can_be(storage: Storage, locations: Collection[str]) -> dict[str, AcidLook]:
    """Return the looks at the locations that can be looked at. Raises `Unavailable`."""
    listings, refused = list_what_can_be(storage, sorted(filter(None, locations)))
    for error in refused.values():
        LOG.warning("transactions: %s", error, exc_info=traceback_of(error))
    return {location: look_of(storage, listing) for location, listing in listings.items()}


def of_unknown_owners(valid: ValidWriteIds) -> TableWriteIds:
    return TableWriteIds(valid.high, dict.fromkeys(valid.open, NOT_KNOWN), valid.aborted)


def departures(entries: Iterable[Entry]) -> dict[tuple[TableName, str], EventId]:
    """Return the last event of each partition at which it went under its name. Another one may lie in its place
    since."""
    went: dict[tuple[TableName, str], EventId] = {}
    for entry in entries:
        keys = entry.keys
        if keys.table is not None and keys.kind in (EventKind.DROP_PARTITIONS, EventKind.RENAME_PARTITION):
            names = keys.partitions if keys.kind is EventKind.DROP_PARTITIONS else keys.others
            went |= {(keys.table, name): entry.event_id for name in names}
    return went


def places_before(places: Mapping[str, str], name: TableName, later: Iterable[Entry]) -> dict[str, str]:
    """Return the places of a table's partitions before the events `later`, from those after some of them. A partition
    that went meanwhile has no known place."""
    earlier, met = dict(places), set[str]()
    for entry in later:
        keys = entry.keys
        if keys.table != name:
            continue
        comes = keys.partitions if keys.kind in (EventKind.ADD_PARTITIONS, EventKind.RENAME_PARTITION) else ()
        for partition in comes:
            if partition not in met:
                earlier.pop(partition, None)
        for partition in {*keys.partitions, *keys.others} - {*comes} - met:
            earlier.setdefault(partition, "")
        met |= {*keys.partitions, *keys.others}
    return earlier
