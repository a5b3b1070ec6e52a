"""Does a target equal its source? Object by object, while the source is written to and the target follows.

What makes a comparison hold: the target's position is read first (event p), then the object at the source and at the
target, then the source's newest event id (e). When no event in (p, e] touches the object, the source had one state of
it in all that time, and the target, live at p, showed that state: whatever differs is a difference. Otherwise the
comparison is made again, a bounded number of times.

A difference is reported when it is found twice, `SETTLING` apart: writers place files first and log later.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from typing import NamedTuple, NoReturn

import pyarrow as pa

from calque.core.compare import (
    DATABASE,
    FUNCTION,
    TABLE,
    ComparedCounts,
    Difference,
    DifferenceKind,
    TableSide,
    called,
    common_event,
    compare_contents,
    compare_database,
    compare_function,
    compare_table,
    file_pairs,
    foreign,
    places_of,
    shared_places,
)
from calque.core.iceberg import is_iceberg
from calque.core.image import is_ours
from calque.core.keys import keys_of
from calque.core.patterns import chosen, covers, parse_pattern
from calque.core.weight import first_ones
from calque.engine.apply.databases import DATABASE_KINDS
from calque.engine.apply.facet_sources import compare_facets
from calque.engine.files.delta_versions import VersionLost, live_files
from calque.engine.files.referenced_files import compare_files_of, expected_function, missing_resources
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import TableIsTooBusy, read_exact
from calque.engine.target.observe import ShownTable, read_files
from calque.engine.target.origin_registry import WithoutReturned, learn
from calque.engine.verify.iceberg import compare_lakes
from calque.errors import Broken, Refused, Unavailable
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.journal import Entry, Event, EventKind
from calque.model.ledger import Epoch, StateKey, StateRow, TableState, shown_event, state_key
from calque.model.names import OURS, EventId, Span, TableName, table_name
from calque.ports import EventLog, Storage

READERS = 4
CHUNK = 64
"""How many objects are compared by one look at the ledger."""
PAGE = 1000
PAUSE = 0.25
SETTLING = 3.0
"""Seconds between the two findings of a difference."""
PATIENCE = 10.0
"""Seconds without any change of the ledger after which nobody waits for the target."""
LONGEST = 60.0
"""Seconds after which an object is given up that changes, or is behind, at every look."""
LISTINGS = 3
"""How often objects are added that came to be while others were compared."""
TOO_FAST = "changes too fast to be compared"


class VerifiedObject(NamedTuple):
    """An object by its name at the source; `kind` as in the ledger's rows."""

    kind: str
    name: TableName


@dataclass(frozen=True, slots=True)
class SkippedObject:
    """An object that could not be compared; `shows` is the event id that the target shows of it."""

    table: TableName
    state: str
    shows: EventId | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a target is found to be.

    Each object was compared at an event id at or below `event_id`, and at `event_id` itself unless it was touched after
    its comparison. On a source that rests, or rests long enough for each table in turn, all comparisons hold at
    `event_id` together; under a load that never lets them it is the newest event id at which one of them holds.
    """

    target: str
    event_id: EventId
    compared: ComparedCounts = field(default_factory=ComparedCounts)
    differences: tuple[Difference, ...] = ()
    set_aside: tuple[SkippedObject, ...] = ()


def verify(
    source: SourceSide,
    side: TargetSide,
    tables: Sequence[str] = (),
    data: str = "size",
    *,
    patience: float = PATIENCE,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
) -> Verification:
    """Compare both ways what the target takes. `tables` are patterns over names at the source, none means all; `data`
    is "none", "size" or "checksum". `progress` is told how many objects of how many are done.

    Reads only, and asks nothing of capture: the log is read directly. Raises `Unavailable` when a whole side does not
    answer; an object that can't be read is set aside.
    """
    learn(source, side)
    source = replace(source, catalog=WithoutReturned(source.catalog, side.home), journal=LogJournal(source.log))
    comparing = ObjectComparer(source, side, data)
    with pool(READERS, f"verify-{side.policy.target}") as readers:
        return VerificationRun(comparing, Selection(side, tables), readers, patience, progress).run()


# The log, read directly


class LogJournal:
    """The journal's reading half, on the event log itself: `read_exact` with it waits for no capture."""

    def __init__(self, log: EventLog) -> None:
        self.log = log

    def last(self) -> EventId | None:
        return self.log.current()

    def oldest(self) -> EventId | None:
        first = self.log.read(0, 1)
        return first[0].event_id if first else None

    def entries(self, span: Span) -> Sequence[Entry]:
        return [entry_of(event) for event in self.read(span)]

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        each = (event for event_id in sorted(set(ids)) for event in self.read(Span(event_id - 1, event_id)))
        return {event.event_id: event for event in first_ones(each, lambda event: len(event.message), most)}

    def append(self, _rows: pa.Table) -> None:
        self.read_only()

    def forget(self, _upto: EventId) -> int:
        self.read_only()

    def restart(self, _at: EventId) -> None:
        self.read_only()

    def read(self, span: Span) -> Iterator[Event]:
        """The span's events. `Refused` when the log does not have them all any more."""
        after = span.after
        while after < span.upto:
            page = self.log.read(after, min(PAGE, span.upto - after))
            if not page or page[0].event_id != after + 1:
                raise Refused(
                    f"The source's log does not have event {after + 1} any more",
                    "the metastore removes old events",
                    "Let it keep them longer",
                )
            yield from (event for event in page if event.event_id <= span.upto)
            after = page[-1].event_id

    def read_only(self) -> NoReturn:
        raise Broken("The source's log is not written to", "it was taken for a journal", "Report this")


class TouchingEvents:
    """Which events touch which objects, kept as ids only; read on as far as is asked for. Safe from several threads."""

    def __init__(self, log: EventLog, after: EventId) -> None:
        self.log, self.after, self.upto = log, after, after
        self.ids: dict[VerifiedObject, list[EventId]] = {}
        self.lock = threading.Lock()

    def first(self, thing: VerifiedObject, span: Span) -> EventId | None:
        """The first event of the span that touches the thing. Where the log does not reach back, the first of all."""
        with self.lock:
            self.read_to(span.upto)
            if span.after < self.after and span.after < span.upto:
                return span.after + 1
            ids = self.ids.get(thing, [])
            at = bisect_right(ids, span.after)
            return ids[at] if at < len(ids) and ids[at] <= span.upto else None

    def things(self, span: Span) -> list[VerifiedObject]:
        """What the events of the span touch."""
        with self.lock:
            self.read_to(span.upto)
            places = ((thing, bisect_right(ids, span.after), ids) for thing, ids in self.ids.items())
            return sorted(thing for thing, at, ids in places if at < len(ids) and ids[at] <= span.upto)

    def read_to(self, upto: EventId) -> None:
        while self.upto < upto:
            page = self.log.read(self.upto, PAGE)
            start = page[0].event_id - 1 if page else upto
            if start > self.upto:
                self.after = start
            for event in page:
                for thing in things_of(entry_of(event)):
                    self.ids.setdefault(thing, []).append(event.event_id)
            self.upto = page[-1].event_id if page else upto


def entry_of(event: Event) -> Entry:
    return Entry(event.event_id, event.event_time, event.event_type, keys_of(event))


def things_of(entry: Entry) -> set[VerifiedObject]:
    keys = entry.keys
    if keys.table is None or keys.kind is EventKind.NOTHING:
        return set()
    if keys.kind in DATABASE_KINDS or not keys.table.table:
        return {VerifiedObject(DATABASE, TableName(keys.table.database))}
    kind = FUNCTION if keys.kind in (EventKind.CREATE_FUNCTION, EventKind.DROP_FUNCTION) else TABLE
    return {VerifiedObject(kind, name) for name in (keys.table, keys.other) if name is not None}


# What is compared


class Selection:
    """Objects that the policy takes and the patterns choose."""

    def __init__(self, side: TargetSide, tables: Sequence[str]) -> None:
        self.side = side
        self.chosen = chosen(tables)
        self.patterns = [parse_pattern(text) for text in tables]

    def takes(self, thing: VerifiedObject) -> bool:
        admission, name = self.side.admission, thing.name
        match thing.kind:
            case "table":
                return admission.takes(name) and self.chosen(name)
            case "function":
                return admission.takes_function(name) and self.chosen(name)
            case _:
                covered = not self.patterns or any(covers(pattern, name.database) for pattern in self.patterns)
                return covered and admission.takes_database(name.database)

    def list(self, source: SourceSide, rows: Iterable[StateRow]) -> list[VerifiedObject]:
        """Databases, then tables, then functions: what is at the source, at the target, or in the ledger."""
        found = {VerifiedObject(state_key(row)[0], row.name) for row in rows}
        found |= set(self.at_source(source)) | set(self.at_target())
        kinds = (DATABASE, TABLE, FUNCTION)
        wanted = [thing for thing in found if thing.kind in kinds and self.takes(thing)]
        return sorted(wanted, key=lambda thing: (kinds.index(thing.kind), thing.name))

    def at_source(self, source: SourceSide) -> Iterator[VerifiedObject]:
        for database in source.catalog.databases():
            if self.side.admission.touches_database(database):
                yield VerifiedObject(DATABASE, table_name(database))
                for table in source.catalog.tables(database):
                    yield VerifiedObject(TABLE, table_name(database, table))
                if self.side.admission.takes_database(database):
                    for function in source.catalog.functions(database):
                        yield VerifiedObject(FUNCTION, table_name(database, function))

    def at_target(self) -> Iterator[VerifiedObject]:
        admission = self.side.admission
        for name in admission.tables:
            yield VerifiedObject(TABLE, name)
        for at in self.side.catalog.databases():
            database = admission.source_of(TableName(at))
            if database is not None:
                yield VerifiedObject(DATABASE, database)
                for table in self.side.catalog.tables(at):
                    found = admission.source_of(table_name(at, table))
                    if found is not None:
                        yield VerifiedObject(TABLE, found)


# One object, compared once


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """The target's own word on itself, in the order that it was read; `head` is the source's newest event then."""

    epoch: Epoch | None
    rows: Mapping[StateKey, StateRow]
    head: EventId

    @property
    def position(self) -> EventId | None:
        return self.epoch.event_id if self.epoch is not None else None

    def row(self, thing: VerifiedObject) -> StateRow | None:
        return self.rows.get((thing.kind, *thing.name))


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """`held` are the event ids at which it holds, both ends included; None for an object that is set aside, of which
    only its foreign namesake was looked at."""

    held: Span | None
    counts: ComparedCounts = field(default_factory=ComparedCounts)
    differences: tuple[Difference, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    aside: SkippedObject | None = None


@dataclass(frozen=True, slots=True)
class NotYetComparable:
    """Not now: `aside` is what to say if it stays so. `event` is the event that the target would have to show; 0 where
    it is not for an event that the object waits."""

    aside: SkippedObject
    event: EventId = 0


Outcome = ObjectComparison | NotYetComparable | SkippedObject
Compare = tuple[ComparedCounts, list[Difference], tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class ObjectComparer:
    """Compares single objects; safe from several threads."""

    source: SourceSide
    side: TargetSide
    data: str
    touches: TouchingEvents = field(init=False)

    def look(self) -> TargetSnapshot:
        """The position first: a table that left the window later has events after it."""
        epoch = self.side.ledger.last_epoch()
        rows = self.side.ledger.tables()
        return TargetSnapshot(epoch, rows, self.source.log.current())

    def attempt(self, thing: VerifiedObject, look: TargetSnapshot) -> Outcome:
        try:
            return self.compare(thing, look)
        except TableIsTooBusy:
            return SkippedObject(thing.name, TableState.LIVE.value, look.position, TOO_FAST)
        except (Refused, Unavailable) as error:
            self.source.log.current()
            self.side.catalog.database(OURS)
            return SkippedObject(thing.name, TableState.LIVE.value, look.position, str(error))

    def compare(self, thing: VerifiedObject, look: TargetSnapshot) -> Outcome:
        row, position = look.row(thing), look.position
        if row is not None and row.state is not TableState.LIVE:
            return self.out(thing, row)
        if position is None:
            shows = shown_event(row) if row is not None else None
            return NotYetComparable(
                SkippedObject(thing.name, TableState.UNKNOWN.value, shows, "the target has no epoch yet")
            )
        start = min(position, look.head)
        if event := self.touches.first(thing, Span(start, look.head)):
            return behind(thing, position, event)
        counts, differences, places = self.both_sides(thing, row, look.head)
        end = max(self.source.log.current(), start)
        if event := self.touches.first(thing, Span(start, end)):
            return behind(thing, position, event)
        return ObjectComparison(Span(start, end), counts, tuple(differences), places)

    def both_sides(self, thing: VerifiedObject, row: StateRow | None, head: EventId) -> Compare:
        match thing.kind:
            case "table":
                return self.table(thing.name, head)
            case "function":
                return *self.function(thing.name, row), ()
            case _:
                return *self.database(thing.name, head), ()

    def table(self, name: TableName, head: EventId) -> Compare:
        files = self.data != "none" and self.side.policy.data != "none"
        exact = read_exact(self.source, name, files)
        here = TableSide(exact.table, exact.partitions, exact.listings)
        there = self.at_target(name, files and exact.table is not None)
        here, there = self.with_live_files(here, self.source.storage), self.with_live_files(there, self.side.storage)
        counts, differences = compare_table(name, here, there, self.side.imaging, max(head, exact.exact_at))
        ours = there.table is not None and is_ours(there.table.parameters, self.side.policy.source)
        if ours and exact.table is not None and not is_view(exact.table):
            differences += compare_facets(self.source.catalog, self.side, exact.name, here, there)
        if files and ours and exact.table is not None and there.table is not None and is_iceberg(exact.table):
            stores = (self.source.storage, self.side.storage)
            more, found = compare_lakes(*stores, name, exact.table, there.table, checksums=self.data == "checksum")
            counts, differences = counts + more, differences + found
        if files and ours and exact.table is not None and there.table is not None:
            things: list[tuple[str, Table | Partition]] = [("", there.table), *there.partitions.items()]
            differences += compare_files_of(self.source.storage, self.side, name, things)
        if self.data == "checksum" and files and ours:
            pairs = file_pairs(here, there)
            sums = self.source.storage.checksums([pair.source for pair in pairs])
            target_sums = self.side.storage.checksums([pair.target for pair in pairs])
            differences += compare_contents(name, pairs, sums, target_sums)
        copied = ours and self.side.policy.data != "none"
        return counts, differences, tuple(places_of(there)) if copied else ()

    def with_live_files(self, seen: TableSide, storage: Storage) -> TableSide:
        """The same, with the files of a Delta table's version. A log that can't be read is left as its commit."""
        listings = dict(seen.listings)
        for partition, listing in listings.items():
            with suppress(VersionLost):
                listings[partition] = live_files(storage, listing)
        return replace(seen, listings=listings)

    def at_target(self, name: TableName, files: bool) -> TableSide:
        """The whole table; files of what is ours."""
        at = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(at)
        if table is None:
            return TableSide()
        shown = ShownTable(table)
        if is_partitioned(table):
            shown.partitions.update(self.side.catalog.partitions(at, self.side.catalog.partition_names(at)))
        if files and is_ours(table.parameters, self.side.policy.source):
            read_files(self.side, {name: shown})
        return TableSide(shown.table, shown.partitions, shown.listings)

    def database(self, name: TableName, head: EventId) -> tuple[ComparedCounts, list[Difference]]:
        """One that exists at the target and is not ours is used as it is; one of ours that the source lacks stays as
        long as something is in it."""
        if self.came_back(name.database):
            return ComparedCounts(), []
        found = self.source.catalog.database(name.database)
        at = self.side.admission.name_at_target(name).database
        there = self.side.catalog.database(at)
        if there is None:
            if found is None:
                return ComparedCounts(), []
            return ComparedCounts(databases=1), [
                Difference(name, "", DifferenceKind.MISSING, DATABASE, str(name), None, DATABASE)
            ]
        if not is_ours(there.parameters, self.side.policy.source):
            return ComparedCounts(), []
        if found is not None:
            return ComparedCounts(databases=1), compare_database(name, found, there, self.side.imaging, head)
        kept = self.side.policy.drops == "keep" or self.side.catalog.tables(at) or self.side.catalog.functions(at)
        return ComparedCounts(), [] if kept else [
            Difference(name, "", DifferenceKind.EXTRA, DATABASE, None, at, DATABASE)
        ]

    def came_back(self, database: str) -> bool:
        if not self.side.home.names:
            return False
        found = self.source.catalog.database(database)
        return found is not None and self.side.home.has(found.parameters)

    def function(self, name: TableName, row: StateRow | None) -> tuple[ComparedCounts, list[Difference]]:
        """Functions carry no marks: the ledger says which are ours."""
        found = self.source.catalog.function(name)
        if row is None and found is not None and self.came_back(name.database):
            return ComparedCounts(), []
        at = self.side.admission.name_at_target(name)
        there = self.side.catalog.function(at)
        if found is None:
            kept = row is None or there is None or self.side.policy.drops == "keep"
            return ComparedCounts(), [] if kept else [
                Difference(name, "", DifferenceKind.EXTRA, FUNCTION, None, str(at), FUNCTION)
            ]
        if there is None:
            return ComparedCounts(), [Difference(name, "", DifferenceKind.MISSING, FUNCTION, str(name), None, FUNCTION)]
        if row is None:
            return ComparedCounts(), [foreign_function(name, at)]
        expected = expected_function(self.source.storage, self.side, found)
        lost = [
            Difference(name, "", DifferenceKind.FILES, f"function: missing: {url}", None, None, FUNCTION)
            for url in missing_resources(self.side, there)
        ]
        return ComparedCounts(), compare_function(name, expected, there, self.side.imaging) + lost

    def out(self, thing: VerifiedObject, row: StateRow) -> Outcome:
        """Of an object that the ledger does not call live."""
        aside = SkippedObject(thing.name, row.state.value, shown_event(row), row.reason)
        if row.state is not TableState.QUARANTINED:
            return NotYetComparable(aside)
        return ObjectComparison(None, differences=self.foreign_namesake(thing), aside=aside)

    def foreign_namesake(self, thing: VerifiedObject) -> tuple[Difference, ...]:
        at = self.side.admission.name_at_target(thing.name)
        if thing.kind == FUNCTION:
            both = self.side.catalog.function(at) and self.source.catalog.function(thing.name)
            return (foreign_function(thing.name, at),) if both else ()
        there = self.side.catalog.table(at) if thing.kind == TABLE else None
        if there is None or is_ours(there.parameters, self.side.policy.source):
            return ()
        found = self.source.catalog.table(thing.name)
        return (foreign(thing.name, TABLE, called(found), called(there)),) if found is not None else ()

    def location(self, name: TableName, partition: str) -> str | None:
        """Where the object of ours at the target has its data now."""
        at = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(at)
        if table is None or is_view(table) or not is_ours(table.parameters, self.side.policy.source):
            return None
        if not partition:
            return location_of(table)
        found = self.side.catalog.partitions(at, [partition]).get(partition)
        return location_of(found) if found is not None else None


# All objects, until each is settled


@dataclass(slots=True)
class PendingObject:
    """An object on its way. `since_ns` is when it was first put off, `event` the first that it waited for, `found` what
    differed, and when."""

    due_ns: int = 0
    since_ns: int = 0
    tries: int = 0
    event: EventId = 0
    found: tuple[Difference, ...] = ()
    found_ns: int = 0


@dataclass(slots=True)
class VerificationRun:
    comparing: ObjectComparer
    selection: Selection
    readers: Executor
    patience: float
    progress: Callable[[int, int], None]
    pending: dict[VerifiedObject, PendingObject] = field(default_factory=dict)
    settled: dict[VerifiedObject, ObjectComparison | SkippedObject] = field(default_factory=dict)
    last_word: tuple[object, ...] = ()
    moved_ns: int = 0

    def run(self) -> Verification:
        look = self.first_look()
        self.pending = {
            thing: PendingObject() for thing in self.selection.list(self.comparing.source, look.rows.values())
        }
        upto = look.head
        for _ in range(LISTINGS):
            self.settle()
            after, upto = upto, self.comparing.source.log.current()
            new = self.newcomers(Span(after, upto))
            if not new:
                break
            self.pending = {thing: PendingObject() for thing in new}
        else:
            upto = after
            self.pending.clear()
        return self.conclusion(upto)

    def first_look(self) -> TargetSnapshot:
        look = self.comparing.look()
        oldest = look.head if look.position is None else min(look.position, look.head)
        self.comparing.touches = TouchingEvents(self.comparing.source.log, oldest)
        self.note(look)
        return look

    def newcomers(self, span: Span) -> list[VerifiedObject]:
        touched = self.comparing.touches.things(span)
        return [thing for thing in touched if thing not in self.settled and self.selection.takes(thing)]

    def settle(self) -> None:
        """Compare what is pending, again and again, until each is compared or set aside."""
        clock = self.comparing.source.clock
        while self.pending:
            now = clock.elapsed_ns()
            ready = list(islice((thing for thing, pending in self.pending.items() if pending.due_ns <= now), CHUNK))
            if not ready:
                due = min(pending.due_ns for pending in self.pending.values())
                clock.sleep(max(due - now, 1_000_000) / 1e9)
                continue
            look = self.comparing.look()
            self.note(look)
            outcomes = self.readers.map(self.comparing.attempt, ready, repeat(look))
            for thing, outcome in zip(ready, outcomes, strict=True):
                self.judge(thing, outcome, clock.elapsed_ns())
            self.progress(len(self.settled), len(self.settled) + len(self.pending))

    def note(self, look: TargetSnapshot) -> None:
        """When the ledger last said something new."""
        word = (look.epoch, look.rows)
        if word != self.last_word:
            self.last_word, self.moved_ns = word, self.comparing.source.clock.elapsed_ns()

    def judge(self, thing: VerifiedObject, outcome: Outcome, now: int) -> None:
        pending = self.pending[thing]
        pending.since_ns = pending.since_ns or now
        waited = (now - pending.since_ns) / 1e9
        match outcome:
            case SkippedObject():
                self.close(thing, outcome)
            case ObjectComparison(differences=()):
                self.close(thing, outcome)
            case ObjectComparison() if (
                outcome.differences == pending.found and now - pending.found_ns >= SETTLING * 1e9
            ):
                self.close(thing, outcome)
            case ObjectComparison() if waited > LONGEST:
                self.close(thing, SkippedObject(thing.name, TableState.LIVE.value, None, TOO_FAST))
            case ObjectComparison():
                if outcome.differences != pending.found:
                    pending.found, pending.found_ns = outcome.differences, now
                pending.due_ns = pending.found_ns + int(SETTLING * 1e9)
            case NotYetComparable():
                quiet = (now - max(self.moved_ns, pending.since_ns)) / 1e9
                self.again(thing, outcome, now, waited > LONGEST or quiet > self.patience)

    def again(self, thing: VerifiedObject, outcome: NotYetComparable, now: int, enough: bool) -> None:
        pending = self.pending[thing]
        pending.tries += 1
        pending.event = pending.event or outcome.event
        if not enough:
            pending.due_ns = now + int(PAUSE * min(pending.tries, 8) * 1e9)
        elif outcome.event == pending.event:
            self.close(thing, outcome.aside)
        else:
            self.close(thing, replace(outcome.aside, reason=TOO_FAST))

    def close(self, thing: VerifiedObject, outcome: ObjectComparison | SkippedObject) -> None:
        self.settled[thing] = outcome
        del self.pending[thing]

    def conclusion(self, upto: EventId) -> Verification:
        compared = {thing: outcome for thing, outcome in self.settled.items() if isinstance(outcome, ObjectComparison)}
        asides = [outcome for outcome in self.settled.values() if isinstance(outcome, SkippedObject)]
        asides += [outcome.aside for outcome in compared.values() if outcome.aside is not None]
        differences = [difference for outcome in compared.values() for difference in outcome.differences]
        spans = [self.extended(thing, outcome.held, upto) for thing, outcome in compared.items() if outcome.held]
        return Verification(
            self.comparing.side.policy.target,
            common_event(spans, upto),
            sum((outcome.counts for outcome in compared.values()), ComparedCounts()),
            tuple(sorted([*differences, *self.shared(compared)], key=order)),
            tuple(sorted(asides, key=lambda aside: aside.table)),
        )

    def extended(self, thing: VerifiedObject, held: Span, upto: EventId) -> Span:
        """The event ids at which a comparison holds, on to the first event that touched the object after it."""
        if held.upto >= upto:
            return held
        event = self.comparing.touches.first(thing, Span(held.upto, upto))
        return Span(held.after, event - 1 if event is not None else upto)

    def shared(self, compared: Mapping[VerifiedObject, ObjectComparison]) -> list[Difference]:
        """Objects that have one directory, at one time: the first is read before and after each other."""
        places = (
            (thing.name, partition, location)
            for thing, outcome in compared.items()
            for partition, location in outcome.places
        )
        found = []
        for first, *others in shared_places(places):
            for other in others:
                before, between, after = (self.comparing.location(*one) for one in (first, other, first))
                if before is not None and before == between == after:
                    what = f"location, shared with {' '.join(filter(None, map(str, first)))}"
                    found.append(Difference(*other, DifferenceKind.DEFINITION, what, None, between))
        return found


def behind(thing: VerifiedObject, position: EventId, event: EventId) -> NotYetComparable:
    reason = f"the target shows event {position}, and event {event} changed it since"
    return NotYetComparable(SkippedObject(thing.name, TableState.LIVE.value, position, reason), event)


def foreign_function(name: TableName, at: TableName) -> Difference:
    return foreign(name, FUNCTION, f"function {name}", f"function {at}")


def order(difference: Difference) -> tuple[object, ...]:
    return difference.table, difference.partition, difference.kind, difference.what
