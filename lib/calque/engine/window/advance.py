"""One group through one window: observe, fold, plan, apply. Also one table from an exact read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from calque.core.edges import Ground
from calque.core.facets import Changes
from calque.core.fold import Chain, defining, fold, groups
from calque.core.iceberg import is_iceberg
from calque.core.land import landing, same_incarnation
from calque.core.layout import join
from calque.core.moves import Move, may_move, move_of, places
from calque.core.plan import Solution, solve
from calque.core.problem import START, Problem, problem_of
from calque.core.state import Content, departure
from calque.engine.apply import Applied, Applier, Images
from calque.engine.apply.definitions import EventImages, ReadImages
from calque.engine.apply.facet_sources import changes_of
from calque.engine.exact_reads.start_at_event import recognise
from calque.engine.exact_reads.take_over import look, mark_partitions, take_over
from calque.engine.files.iceberg_metadata import mend
from calque.engine.files.referenced_files import Doubts
from calque.engine.files.stage import ContentLost, Lost
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import Exact
from calque.engine.target.observe import NotOurs, Shown, as_observed, every_partition, observe, read_files
from calque.engine.target.recovered_rows import ADOPT, PAGE, READ, as_it_is, found, whole
from calque.errors import Broken
from calque.model.files import Listing
from calque.model.hive import is_partitioned, location_of
from calque.model.journal import Entry
from calque.model.ledger import ObjectRow
from calque.model.names import EventId, TableName
from calque.model.plan import Data, GroupPlan
from calque.ports import Conflict

Listings = dict[Data, Listing]
ATTEMPTS = 5
FARTHEST = 100_000
"""How far behind the cursor a drop is looked for that a longer window made before it died."""
ANY_MARK = 2**62
"""A cursor above every mark: what the target shows is taken as it is."""


class Ahead(Exception):
    """The target shows a state beyond the window's end, up to `event_id`: the window must reach it."""

    def __init__(self, event_id: EventId) -> None:
        self.event_id = event_id
        super().__init__(f"the target shows event {event_id} already")


class Unreachable(Exception):
    """No operations lead to the window's end from what the target shows: the tables must be read."""


@dataclass(slots=True)
class Advanced:
    """What became of a group. `shows` is the last event of the state reached, or the cursor when no state was;
    `complete` says that it is the window's end."""

    tables: tuple[TableName, ...]
    plan: GroupPlan
    complete: bool
    shows: EventId
    present: frozenset[TableName]
    applied: Applied = field(default_factory=Applied)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group's planning problem with everything that its solution needs to be applied. `looked_for` are the partitions
    that were read, where they exist."""

    problem: Problem
    solution: Solution
    shown: dict[TableName, Shown | None]
    listings: Listings
    looked_for: Mapping[TableName, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a preparation leaves to do, without the states that it was found among: it may come from another process.
    `shows` and `complete` as in `Advanced`."""

    tables: tuple[TableName, ...]
    plan: GroupPlan
    shows: EventId
    complete: bool
    shown: dict[TableName, Shown | None]
    listings: Listings
    looked_for: Mapping[TableName, Collection[str]]


def advance(
    source: SourceSide,
    side: TargetSide,
    entries: Sequence[Entry],
    cursor: EventId,
    upto: EventId,
    cascaded: frozenset[EventId],
    applied: Applied | None = None,
    accept: Callable[[Ready], None] = lambda _: None,
    lost: set[Lost] | None = None,
    *,
    tried: bool = False,
) -> Advanced:
    """Take the group's tables from what the target shows to the state after `entries`, as far as files are known.
    `applied` is what was done for them before; `accept` may raise to leave all as it is. `lost` are files that are
    known to be gone at the source; more of them are added. `tried`: an attempt whose record was lost may have shown
    some of it.

    Raises `Unfoldable`, `Unreachable`, `NotOurs`, `Ahead`, `decode.Undecodable`, and what ports raise.
    """
    lost = set() if lost is None else lost
    applied = applied or Applied()
    for _ in range(ATTEMPTS):
        ready = ready_of(prepare(source, side, entries, cursor, upto, cascaded, frozenset(lost)), cursor)
        accept(ready)
        try:
            return carry_out(source, side, ready, applied, cursor if tried else None)
        except Conflict:
            tried = True
        except ContentLost as error:
            if error.file in lost:
                raise Unreachable(str(error)) from error
            lost.add(error.file)
            tried = True
    raise Unreachable(f"{entries[0].keys.table} was changed at the target by another while it was being written")


def carry_out(
    source: SourceSide, side: TargetSide, ready: Ready, applied: Applied, recorded: EventId | None = None
) -> Advanced:
    """Do what is left to do, as long as nothing has changed since. `recorded`: what the target shows has no rows in the
    ledger beyond that event, and gets them. Raises `Conflict`, `ContentLost`."""
    if recorded is not None:
        applied.objects += found(side, ready.shown, ready.looked_for, recorded)
    changes = changes_of(source.journal, ready.plan.facet_events)
    perform(side, ready, EventImages(source.journal, ready.plan), changes, applied)
    return advanced(ready, applied)


def prepare(
    source: SourceSide,
    side: TargetSide,
    entries: Sequence[Entry],
    cursor: EventId,
    upto: EventId,
    cascaded: frozenset[EventId] = frozenset(),
    lost: frozenset[Lost] = frozenset(),
) -> Prepared:
    """Observe, fold, plan; changes nothing. `lost` are files of the source that could not be copied."""
    events = len(entries)
    if side.policy.data == "none":
        entries = defining(entries)
    chain = replace(fold(entries, cascaded), events=events)
    names = [name for name in chain.tables if side.admission.takes(name)]
    looked_for = touched_partitions(entries)
    shown = observe(side, names, looked_for, side.policy.data != "none")
    listings = evidence_of(source, chain, lost, moves_in(source, entries))
    if side.policy.start is not None:
        recognise(side, chain, shown, listings)
    prepared = planned(side, chain, shown, listings, cursor)
    if prepared.problem.origin == START:
        if newest_mark(shown) > upto:
            raise Ahead(newest_mark(shown))
        last = min(source.journal.last() or 0, cursor + FARTHEST)
        if last > upto and lacks_something(prepared.problem):
            raise Ahead(last)
    if prepared.solution.missing:
        raise Unreachable(f"{chain.tables[0]}: no operations lead from what the target shows to event {upto}")
    return replace(prepared, looked_for=looked_for)


def lacks_something(problem: Problem) -> bool:
    """Whether something is not at the target that the chain has from before. What a longer window dropped before it
    died carries no mark, and must not come back."""
    touches = departure(problem.start, problem.first).touches
    return any(
        (touch.was_named is None and touch.named is not None) or any(was is None and now for _, was, now in touch.parts)
        for touch in touches
    )


def newest_mark(shown: Mapping[TableName, Shown | None]) -> EventId:
    seen = [as_observed(table) for table in shown.values() if table is not None]
    return max((mark for table in seen for mark in (table.event, *(p.event for p in table.parts.values()))), default=0)


def planned(
    side: TargetSide,
    chain: Chain,
    shown: dict[TableName, Shown | None],
    listings: Listings,
    cursor: EventId,
) -> Prepared:
    """The cheapest plan from what is shown along the chain."""
    observed = {name: as_observed(table) if table is not None else None for name, table in shown.items()}
    policy = side.policy
    contents = {data: (listing.fingerprint(), listing.size) for data, listing in listings.items()}
    known = {contents[data][0]: listing for data, listing in listings.items()}
    for table in shown.values():
        if table is not None:
            known |= {listing.fingerprint(): listing for listing in table.listings.values()}
    files = {content: frozenset(listing.files) for content, listing in known.items()}
    versions = {content: listing.version for content, listing in known.items() if listing.version is not None}

    def listed(data: Data) -> tuple[Content, int] | None:
        return ("", 0) if policy.data == "none" else contents.get(data)

    @cache
    def extends(one: Content, other: Content) -> bool:
        if one in versions or other in versions:
            return versions.get(one, 0) < versions.get(other, -1)
        return one in files and other in files and files[one] <= files[other]

    ground = Ground(side.catalog.abilities(), extends, policy.appends == "in_place", policy.atomicity == "rows")
    problem = problem_of(chain, observed, cursor, side.admission.takes, listed, ground)
    return Prepared(problem, solve(problem), shown, listings)


def ready_of(prepared: Prepared, cursor: EventId) -> Ready:
    problem, solution = prepared.problem, prepared.solution
    shows = problem.stages[solution.reached - 1].event_id if solution.reached > 0 else cursor
    complete = solution.reached == problem.last
    chain = problem.chain
    looked_for = {name: tuple(parts) for name, parts in prepared.looked_for.items()}
    return Ready(chain.tables, solution.plan, shows, complete, prepared.shown, prepared.listings, looked_for)


def perform(
    side: TargetSide, ready: Ready, images: Images, changes: Mapping[TableName, Changes], applied: Applied
) -> None:
    """Apply the plan's hops in order, then its facets."""
    listings = ready.listings

    def listing(data: Data) -> Listing:
        if data in listings or side.policy.data == "none":
            return listings.get(data, Listing(data.location, ()))
        raise Broken(
            f"The plan copies files of {data.location} at event {data.event_id}",
            "no evidence lists them",
            "Report this",
        )

    hops = ready.plan.hops
    applier = Applier(side, images, listing, ready.shown, hops[-1] if hops else None, applied)
    for number, hop in enumerate(hops):
        applier.run(hop)
        images.passed(number)
    basic = {table: dict(versions) for table, versions in ready.plan.facets}
    for table in sorted(changes.keys() | basic.keys()):
        applier.facets(table, changes.get(table, Changes()), basic.get(table, {}))
    applier.waiting_keys(ready.tables)


def outcome(prepared: Prepared, applied: Applied, cursor: EventId) -> Advanced:
    return advanced(ready_of(prepared, cursor), applied)


def advanced(ready: Ready, applied: Applied) -> Advanced:
    present = frozenset(name for name, table in ready.shown.items() if table is not None)
    return Advanced(ready.tables, ready.plan, ready.complete, ready.shows, present, applied)


def touched_partitions(entries: Sequence[Entry]) -> dict[TableName, set[str]]:
    """Partitions that the events name, under every name that their table has in the window."""
    touched: dict[TableName, set[str]] = {}
    for linked in groups(entries):
        parts = {partition for entry in linked for partition in (*entry.keys.partitions, *entry.keys.others)}
        names = {name for entry in linked for name in (entry.keys.table, entry.keys.other) if name is not None}
        if parts:
            touched |= dict.fromkeys(names, parts)
    return touched


def moves_in(source: SourceSide, entries: Sequence[Entry]) -> list[Move]:
    """Directories that the group's renames moved, in order."""
    ids = [entry.event_id for entry in entries if may_move(entry)]
    return [move for event in messages(source.journal, ids) if (move := move_of(event)) is not None]


def evidence_of(source: SourceSide, chain: Chain, lost: frozenset[Lost], moves: Sequence[Move]) -> Listings:
    """What is known of the chain's contents; files are looked for where the last rename left them."""
    wanted = set(contents_of(chain))
    listings = scanned(source, {data for data in wanted if data.scan}, lost)
    events = {data.event_id for data in wanted if not data.scan}
    found = source.evidence.evidence(events) if events else {}
    for data in wanted:
        if data.scan:
            continue
        at = places(data.event_id, data.location, moves)
        listing = next((found[data.event_id, place] for place in reversed(at) if (data.event_id, place) in found), None)
        if listing is not None:
            listing = replace(listing, location=at[-1], pin=pin_of(source, data.event_id, listing.location, lost))
            if not is_lost(listing, lost):
                listings[data] = listing
    return listings


def scanned(source: SourceSide, wanted: Collection[Data], lost: frozenset[Lost]) -> Listings:
    """What scans found of the contents."""
    if not wanted or source.scans is None:
        return {}
    found = source.scans.listings({data.scan for data in wanted})
    kept = {data: found[data.scan, data.location] for data in wanted if (data.scan, data.location) in found}
    return {data: listing for data, listing in kept.items() if not is_lost(listing, lost)}


def pin_of(source: SourceSide, event_id: EventId, location: str, lost: frozenset[Lost]) -> str:
    """Where the files are kept, unless something there is lost."""
    pin = source.pins.at(event_id, location) if source.pins is not None else ""
    return "" if any(path.startswith(f"{pin}/") for path, _, _ in lost) else pin


def is_lost(listing: Listing, lost: frozenset[Lost]) -> bool:
    """Whether a file of the listing is known to be gone."""
    return (
        bool(lost)
        and not listing.pin
        and not lost.isdisjoint(
            (join(listing.location, file.path), file.size, file.modified_ns) for file in listing.files
        )
    )


def contents_of(chain: Chain) -> Iterable[Data]:
    for step in chain.steps:
        for head in step.heads.values():
            if head.data is not None and head.data.location:
                yield head.data
        for part in step.parts.values():
            if part is not None and part.data.location:
                yield part.data


def land(side: TargetSide, exact: Exact, page: int = PAGE) -> Advanced:
    """Take one table from what the target shows to what was read; one that is not ours where that was asked for. Of a
    table that was compared `page` partitions are held at a time.
    Raises `NotOurs`, `Unreachable`, `Refused`."""
    applied = Applied()
    for _ in range(ATTEMPTS):
        if side.asked.adopts(exact.name):
            try:
                take_over(side, exact)
            except Conflict:
                continue
        prepared = prepare_landing(side, exact)
        created = prepared.shown[exact.name] is None and exact.table is not None
        if prepared.solution.missing:
            raise Unreachable(f"{exact.name}: no operations lead from what the target shows to what was read")
        mend_lake(side, exact, prepared.shown[exact.name])
        try:
            perform(side, ready_of(prepared, exact.exact_at), ReadImages(exact), {}, applied)
            mark_partitions(side, exact, prepared.shown[exact.name], applied)
        except Conflict:
            continue
        if not created:
            applied.objects += as_landed(side, exact, prepared.shown[exact.name], page)
        return outcome(prepared, applied, exact.exact_at)
    raise Unreachable(f"{exact.name} was changed at the target by another while it was being written")


def as_landed(side: TargetSide, exact: Exact, shown: Shown | None, page: int) -> Sequence[ObjectRow]:
    """Rows of all that the table has, whatever was recorded of it before."""
    if exact.only is not None:
        return as_it_is(side, exact.name, exact.exact_at, page)
    return whole(exact.name, shown, exact.exact_at, ADOPT if side.asked.adopts(exact.name) else READ)


def goes_on(side: TargetSide, exact: Exact, there: Shown | None) -> bool:
    """Whether the target's table is the one that was read, so that its other partitions stay."""
    return there is not None and exact.table is not None and same_incarnation(there.table, exact.table, side.imaging)


def mend_lake(side: TargetSide, exact: Exact, shown: Shown | None) -> None:
    """An Iceberg table's definition does not tell whether its files are all there."""
    if shown is None or exact.table is None or side.policy.data == "none":
        return
    if is_iceberg(shown.table) and is_iceberg(exact.table):
        mend(side, exact.table, shown.table)


def prepare_landing(side: TargetSide, exact: Exact) -> Prepared:
    name = exact.name
    try:
        shown = observe(side, [name], {}, with_files=False)
    except NotOurs:
        if exact.table is not None:
            raise
        shown = {name: None}
    there = shown[name]
    if there is not None and is_partitioned(there.table):
        if exact.only is None:
            there.partitions.update(every_partition(side, there.table))
        else:
            there.partitions.update(side.catalog.partitions(side.admission.name_at_target(name), sorted(exact.only)))
    if exact.only is not None and not goes_on(side, exact, there):
        raise Unreachable(f"{name} is not at the target any more as it was when it was compared")
    if side.policy.data != "none":
        read_files(side, shown)
        if there is not None:
            look(side, exact, there)
    locations = {partition: listing.location for partition, listing in exact.listings.items()}
    if side.policy.data == "none":
        locations = {partition: location_of(value) or "" for partition, value in exact.partitions.items()}
    doubts = Doubts(side.storage, side)
    chain = landing(
        name,
        exact.exact_at,
        exact.table,
        exact.partitions,
        locations,
        side.imaging,
        doubts.as_found(there.table) if there else None,
        {key: doubts.as_found(part) for key, part in there.partitions.items()} if there else {},
    )
    listings = {Data(exact.exact_at, listing.location): listing for listing in exact.listings.values()}
    return planned(side, chain, shown, listings, ANY_MARK)
