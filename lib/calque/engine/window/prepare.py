"""The preparation of one group of a window: what the target shows, the states, their files, and the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from calque.core.acid.contents import flattened, is_flattened
from calque.core.events.contents_by_event import known_at
from calque.core.images.table_layout import committed_format
from calque.core.plan.edges import EdgeRules
from calque.core.plan.problem import START, Problem, base_contents, problem_of
from calque.core.plan.search import Solution, solve
from calque.core.states.fold import Chain, ColumnChanges, LineageId, Unfoldable, defining, fold, groups, names_in
from calque.core.states.moves import Move, may_move, move_of, places
from calque.core.states.state import Content, departure
from calque.engine.files.copies import Lost
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.observe import NO_LOOKS, LookedTables, ShownTable, as_observed, observe
from calque.engine.window.kept_contents import available, kept_listings, listings_by_checksum
from calque.engine.window.recognise import recognise
from calque.engine.window.unlisted_contents import infer_listings, object_runs, said_listings
from calque.model.files import Listing
from calque.model.hive import is_transactional
from calque.model.journal import Entry, EventKind, TableShape
from calque.model.names import EventId, TableName
from calque.model.plan import Data, GroupPlan

Listings = dict[Data, Listing]
ATTEMPTS = 5
FARTHEST = 100_000
"""The number of events after the last one that the group shows in which a drop is searched for that a longer window
made before it died."""
ANY_MARK = 2**62
"""A cursor above every mark: what the target shows is taken as it is."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The events that a group's tables show: the tables in `apart` show their own, all others show `cursor`. Objects at
    the target under names that are `aside` are not for windows to touch."""

    cursor: EventId
    apart: Mapping[TableName, EventId] = field(default_factory=dict)
    aside: frozenset[TableName] = frozenset()

    def shown(self, name: TableName) -> EventId:
        return self.apart.get(name, self.cursor)

    def by_all(self, names: Iterable[TableName]) -> EventId:
        """Return the newest event that all of `names` show, but for those that are aside."""
        return min((self.shown(name) for name in names if name not in self.aside), default=self.cursor)


class TargetIsAhead(Exception):
    """The target shows a state beyond the window's end, up to `event_id`, so the window must reach that event. For
    example, a window to 95 shows event 93 of `t`, and dies: a next window to 90 can't take `t` back."""

    def __init__(self, event_id: EventId) -> None:
        self.event_id = event_id
        super().__init__(f"the target shows event {event_id} already")


class Unreachable(Exception):
    """No operations lead to the window's end from what the target shows: the tables must be read."""


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """A group's planning problem with everything that is needed to apply its solution. `looked_for` are the partitions
    that were read, where they exist."""

    problem: Problem
    solution: Solution
    shown: dict[TableName, ShownTable | None]
    listings: Listings
    looked_for: Mapping[TableName, Collection[str]] = field(default_factory=dict)
    moves: Sequence[Move] = ()
    """The renames of the group that took directories along, for tables whose files stay at the source."""


@dataclass(frozen=True, slots=True)
class ReadyPlan:
    """The part of a preparation that is left to do, without the states among which the plan was found: it may come from
    another process. `shows`, `complete` and `arrived` are as in `GroupOutcome`, `moves` as in `PreparedGroup`; `views`
    are the lineages that are views. `lacked` are the names under which the source shows a table of which the target has
    nothing, at `shows` or on the way there."""

    tables: tuple[TableName, ...]
    plan: GroupPlan
    shows: EventId
    complete: bool
    shown: dict[TableName, ShownTable | None]
    listings: Listings
    looked_for: Mapping[TableName, Collection[str]]
    arrived: frozenset[TableName]
    lacked: frozenset[TableName]
    views: frozenset[LineageId] = frozenset()
    moves: Sequence[Move] = ()


def prepare(
    source: SourceSide,
    side: TargetSide,
    entries: Sequence[Entry],
    positions: Positions,
    upto: EventId,
    column_changes: ColumnChanges | None = None,
    lost: frozenset[Lost] = frozenset(),
    looked: LookedTables = NO_LOOKS,
) -> PreparedGroup:
    """Observe what the target shows, fold the `entries` and plan the group's way to event `upto`; change nothing.
    `lost` are files of the source that could not be copied; `looked` are tables that were just read at the target.

    Raises `Unfoldable`, `Unreachable`, `NotOurReplica`, `TargetIsAhead`, and what ports raise.
    """
    events = len(entries)
    copies = cache(side.admission.copies)

    def stays(name: TableName) -> bool:
        return not copies(name)

    if side.admission.leaves_some:
        entries = defining(entries, stays)
    moves = moves_in(source, entries)

    @cache
    def follows(name: TableName) -> bool:
        return name not in positions.aside and side.admission.takes(name)

    carrying = frozenset(move.event_id for move in moves) - copied_anew(source, entries)
    chain = replace(
        fold(entries, column_changes, carrying, follows, stays, side.admission.subset.predicate), events=events
    )
    names = [name for name in chain.tables if follows(name)]
    looked_for = touched_partitions(entries)
    shown = observe(side, names, looked_for, looked=looked)
    for event_id, name, is_there in chain.arrivals:
        if not is_there or name not in shown:
            continue
        mark = newest_mark({name: shown[name]})
        if mark > positions.shown(name) and (chain.names[name] is None or name in chain.arrived(mark)):
            raise Unfoldable(name, event_id, "a window that died brought it there from a table that is to be read")
    listings: Listings = {}
    if any(map(copies, names)):
        with_bases = any(map(source.natively, names))
        evidence = evidence_of(source, chain, lost, moves, with_bases=with_bases)
        listings = available(evidence, lost)
        runs = object_runs(source, chain, entries, moves, listings, shown, positions.shown)
        if source.event_files is not None:
            listings |= available(said_listings(source.event_files, runs), lost)
        else:
            inferred = infer_listings(runs)
            listings |= available(inferred, lost)
            listings |= kept_listings(source.storage, runs, {**inferred, **evidence}, lost)
            listings |= available(listings_by_checksum(source.storage, runs, listings), lost)
    if side.policy.start is not None:
        recognise(side, chain, shown, listings)
    prepared = planned(side, chain, shown, listings, positions.shown, follows, parts_of(side, entries))
    prepared.listings.update(renamed_listings(prepared, moves, at_source=source.event_files is None))
    if prepared.problem.origin == START:
        if newest_mark(shown) > upto:
            raise TargetIsAhead(newest_mark(shown))
        last = min(source.journal.last() or 0, positions.by_all(names) + FARTHEST)
        if last > upto and lacks_something(prepared.problem):
            raise TargetIsAhead(last)
    if prepared.solution.missing:
        why = why_unreachable(prepared)
        raise Unreachable(f"{chain.tables[0]}: no operations lead from what the target shows to event {upto}{why}")
    return replace(prepared, looked_for=looked_for, moves=moves if any(map(stays, names)) else ())


def parts_of(side: TargetSide, entries: Sequence[Entry]) -> Sequence[Collection[TableName]]:
    """Return the names of tables that share the group because of renames, where transactions link several such
    parts."""
    parts = [names_in(part) for part in groups(entries)] if side.policy.consistency == "table" else []
    return parts if len(parts) > 1 else ()


def why_unreachable(prepared: PreparedGroup) -> str:
    """Return which hole the way to the window's end has, as the end of a sentence: the first event whose files, or
    partitions' columns, are not known."""
    chain, unvisitable = prepared.problem.chain, prepared.solution.plan.unvisitable
    known_contents = prepared.listings.keys() | chain.renamed.keys()
    unlisted_events = sorted({data.event_id for data in contents_of(chain) if data not in known_contents})
    if unlisted_events:
        return f": {FILES_UNKNOWN} {unlisted_events[0]} are not known"
    return f": {COLUMNS_UNKNOWN} {unvisitable[0]} is not known" if unvisitable else ""


FILES_UNKNOWN = "the files of event"
COLUMNS_UNKNOWN = "what partitions' columns were after event"


def renamed_listings(prepared: PreparedGroup, moves: Sequence[Move], *, at_source: bool) -> Listings:
    """Return listings of files that the target has already, where the source's renames left them. Where the log came
    with its files the source may be far ahead, so the files are to be had at the target (not `at_source`)."""
    renamed, contents = prepared.problem.chain.renamed, base_contents(prepared.problem.start)
    if not renamed:
        return {}
    shown_tables = [table for table in prepared.shown.values() if table is not None]
    shown_listings = {listing.fingerprint(): listing for table in shown_tables for listing in table.listings.values()}
    found: dict[Data, Listing] = {}
    for data, cell in renamed.items():
        listing = shown_listings.get(contents[cell][0]) if cell in contents else None
        if listing is not None:
            location = places(data.event_id, data.location, moves)[-1]
            found[data] = Listing(location, listing.files) if at_source else known_at(location, listing)
    return found


def lacks_something(problem: Problem) -> bool:
    """Tell whether the target lacks an object that the chain has from before the window. A longer window may have
    dropped the object before it died: what is dropped carries no mark, and must not come back."""
    touches = departure(problem.start, problem.first).touches
    return any(
        (touch.was_named is None and touch.named is not None) or any(was is None and now for _, was, now in touch.parts)
        for touch in touches
    )


def newest_mark(shown: Mapping[TableName, ShownTable | None]) -> EventId:
    observed_tables = [as_observed(table) for table in shown.values() if table is not None]
    return max(
        (mark for table in observed_tables for mark in (table.event, *(p.event for p in table.parts.values()))),
        default=0,
    )


def planned(
    side: TargetSide,
    chain: Chain,
    shown: dict[TableName, ShownTable | None],
    listings: Listings,
    shown_event: Callable[[TableName], EventId],
    follows: Callable[[TableName], bool],
    parts: Sequence[Collection[TableName]] = (),
) -> PreparedGroup:
    """Return the group with the cheapest plan along the chain from what is `shown`, for the names that the target
    `follows`. `parts` are as in `Problem`."""
    observed = {name: as_observed(table) if table is not None else None for name, table in shown.items()}
    policy = side.policy
    contents = {data: (listing.fingerprint(), listing.size) for data, listing in listings.items()}
    listings_by_content = {contents[data][0]: listing for data, listing in listings.items()}
    for table in shown.values():
        if table is not None:
            listings_by_content |= {listing.fingerprint(): listing for listing in table.listings.values()}
    files = {
        content: frozenset(listing.files)
        for content, listing in listings_by_content.items()
        if listing.combination is None
    }
    versions = {
        content: listing.version for content, listing in listings_by_content.items() if listing.version is not None
    }

    flat = {content for content, listing in listings_by_content.items() if is_flattened(listing)}

    def listed(data: Data) -> tuple[Content, int] | None:
        return ("", 0) if data.stays else contents.get(data)

    @cache
    def extends(one: Content, other: Content) -> bool:
        if one in versions or other in versions:
            return versions.get(one, 0) < versions.get(other, -1)
        if one not in files or other not in files or not files[one] <= files[other]:
            return False
        # A publication of several files is one rename after the other; a transaction's files are seen all at once.
        return other not in flat or len(files[other] - files[one]) <= 1

    in_place, rows = policy.appends == "in_place", policy.atomicity == "rows"
    committed = committed_lineages(side, chain, shown)
    defined = defined_lineages(side, chain)
    transacted = transacted_lineages(side, chain, shown)
    ground = EdgeRules(side.catalog.abilities(), extends, in_place, rows, committed, defined, transacted)
    own_order = policy.consistency == "table"
    problem = problem_of(chain, observed, shown_event, follows, listed, ground, own_order, parts)
    return PreparedGroup(problem, solve(problem), shown, listings)


def committed_lineages(
    side: TargetSide, chain: Chain, shown: Mapping[TableName, ShownTable | None]
) -> frozenset[LineageId]:
    """Return the lineages that have a log of commits at the target, and the new ones that are to have one. The target
    is asked under all names that a table has in the chain, because a window may have renamed the table before it died.
    What the definition of a new table says against a log is seen when the table is made."""
    named = (*chain.names.items(), *(item for step in chain.steps for item in step.names.items()))
    lineages = {
        lineage
        for name, lineage in named
        if lineage is not None and (table := shown.get(name)) is not None and committed_format(table.table)
    }
    new_lineages = {
        lineage: name for step in chain.steps for name, lineage in step.names.items() if lineage in chain.complete
    }
    lineages |= {
        lineage
        for lineage, name in new_lineages.items()
        if new_format(side, chain, lineage, name) and chain.shapes.get(lineage) is not TableShape.VIEW
    }
    return frozenset(lineages)


def new_format(side: TargetSide, chain: Chain, lineage: LineageId, name: TableName) -> str:
    """Return the format that a new table is to have."""
    is_acid = lineage in chain.transactional
    return side.admission.acid_format(name) if is_acid else side.admission.wanted_format(name)


def transacted_lineages(
    side: TargetSide, chain: Chain, shown: Mapping[TableName, ShownTable | None]
) -> frozenset[LineageId]:
    """Return the lineages that are ACID tables at the target, and the new ones that are to be some."""
    named = [*chain.names.items(), *(item for step in chain.steps for item in step.names.items())]
    lineages = {
        lineage
        for name, lineage in named
        if lineage is not None and (table := shown.get(name)) is not None and is_transactional(table.table)
    }
    new_lineages = chain.transactional & chain.complete
    return frozenset(
        lineages
        | {lineage for name, lineage in named if lineage in new_lineages and side.admission.acid(name) == "native"}
    )


def defined_lineages(side: TargetSide, chain: Chain) -> frozenset[LineageId]:
    """Return the lineages whose files stay at the source, under all the names that they have in the chain."""
    named = (*chain.names.items(), *(item for step in chain.steps for item in step.names.items()))
    copied = {lineage for name, lineage in named if side.admission.takes(name) and side.admission.copies(name)}
    return frozenset(lineage for _, lineage in named if lineage is not None and lineage not in copied)


def ready_of(prepared: PreparedGroup, cursor: EventId) -> ReadyPlan:
    problem, solution = prepared.problem, prepared.solution
    shows = problem.stages[solution.reached - 1].event_id if solution.reached > 0 else cursor
    complete = solution.reached == problem.last
    chain = problem.chain
    looked_for = {name: tuple(sorted(parts)) for name, parts in prepared.looked_for.items()}
    last = ANY_MARK if complete else shows
    arrived, lacked = (frozenset(prepared.shown.keys() & names) for names in (chain.arrived(last), chain.lacked(last)))
    views = frozenset(lineage for lineage, shape in chain.shapes.items() if shape is TableShape.VIEW)
    parts = (prepared.shown, prepared.listings, looked_for, arrived, lacked, views, prepared.moves)
    return ReadyPlan(chain.tables, solution.plan, shows, complete, *parts)


def touched_partitions(entries: Sequence[Entry]) -> dict[TableName, set[str]]:
    """Return the partitions that the events name, under every name that their table has in the window."""
    touched: dict[TableName, set[str]] = {}
    for linked_group in groups(entries):
        parts = {partition for entry in linked_group for partition in (*entry.keys.partitions, *entry.keys.others)}
        if parts:
            touched |= dict.fromkeys(names_in(linked_group), parts)
    return touched


def copied_anew(source: SourceSide, entries: Sequence[Entry]) -> set[EventId]:
    """Return the renames of partitions of ACID tables: the target has a new partition for each, because its metastore
    would move the directory before readers learn of it."""
    return {
        entry.event_id
        for entry in entries
        if entry.keys.kind is EventKind.RENAME_PARTITION
        and entry.keys.table is not None
        and entry.keys.transactional
        and source.natively(entry.keys.table)
    }


def moves_in(source: SourceSide, entries: Sequence[Entry]) -> list[Move]:
    """Return the group's renames that keep contents, in order."""
    ids = [entry.event_id for entry in entries if may_move(entry)]
    return [move for event in messages(source.journal, ids) if (move := move_of(event)) is not None]


def evidence_of(
    source: SourceSide, chain: Chain, lost: frozenset[Lost], moves: Sequence[Move], *, with_bases: bool
) -> Listings:
    """Return the listings that evidence and scans have of the chain's contents. Their locations are where the last
    rename left the directories; files that are pinned are read from their pins, but for pins that have `lost` files."""
    contents = set(contents_of(chain))
    listings = scanned(source, {data for data in contents if data.scan}, moves)
    events = {data.event_id for data in contents if not data.scan}
    evidence = source.evidence.evidence(events) if events else {}
    for data in contents:
        if data.scan:
            continue
        listing = evidence.get((data.event_id, data.location))
        if listing is not None:
            location = places(data.event_id, data.location, moves)[-1]
            pin = pin_of(source, data.event_id, data.location, lost)
            listings[data] = flattened(replace(listing, location=location, pin=pin), with_bases=with_bases)
    return listings


def scanned(source: SourceSide, contents: Collection[Data], moves: Sequence[Move]) -> Listings:
    """Return the listings of those of `contents` that scans found."""
    if not contents or source.scans is None:
        return {}
    listings = source.scans.listings({data.scan for data in contents})
    return {
        data: replace(listings[data.scan, data.location], location=places(data.event_id, data.location, moves)[-1])
        for data in contents
        if (data.scan, data.location) in listings
    }


def pin_of(source: SourceSide, event_id: EventId, location: str, lost: frozenset[Lost]) -> str:
    """Return the directory where the content's files are pinned; empty where they are not, or where a file there is
    lost."""
    pin = source.pins.at(event_id, location) if source.pins is not None else ""
    return "" if any(path.startswith(f"{pin}/") for path, _, _ in lost) else pin


def contents_of(chain: Chain) -> Iterable[Data]:
    for step in chain.steps:
        for head in step.heads.values():
            if head.data is not None and head.data.location and not head.data.stays:
                yield head.data
        for part in step.parts.values():
            if part is not None and part.data.location and not part.data.stays:
                yield part.data
