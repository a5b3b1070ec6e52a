"""The landing of a table that was read exactly: the target is brought to what was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from calque.core.formats.iceberg import is_iceberg
from calque.core.images.table_layout import has_own_row_files
from calque.core.states.exact_state import landing
from calque.engine.apply import AppliedChanges
from calque.engine.apply.definitions import ReadImages
from calque.engine.exact_reads.switch_format import switch_format
from calque.engine.exact_reads.switch_places import goes_on, switch_places
from calque.engine.exact_reads.take_over import look, mark_partitions, take_over
from calque.engine.files.delta_versions import VersionLost, live_files
from calque.engine.files.iceberg_metadata import mend
from calque.engine.files.permissions import contents_of, keep, keeps_permissions
from calque.engine.files.referenced_files import SharedFileCheck
from calque.engine.sides.sides import TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import (
    NotOurReplica,
    ShownTable,
    distrust_lost_rows,
    every_partition,
    observe,
    read_files,
)
from calque.engine.target.recovered_rows import ADOPT, PAGE, READ, as_it_is, whole
from calque.engine.window.advance import GroupOutcome, outcome, perform
from calque.engine.window.prepare import (
    ANY_MARK,
    ATTEMPTS,
    PreparedGroup,
    ReadyPlan,
    Unreachable,
    newest_mark,
    planned,
    ready_of,
)
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import is_partitioned, is_transactional, location_of
from calque.model.ledger import ObjectRow
from calque.model.names import EventId, TableName
from calque.model.plan import Data
from calque.model.records import AnnouncedBridge
from calque.ports import Conflict, FormatMisfit


def land(
    side: TargetSide,
    exact: ExactTable,
    page: int = PAGE,
    last_absence: Callable[[], EventId | None] = lambda: None,
) -> GroupOutcome:
    """Take one table from what the target shows to what was read; also one that is not ours, where an operator asked to
    adopt it. Of a table of which only some partitions were read, `page` partitions are held at a time for their rows.
    Raises `NotOurReplica`, `Unreachable`, `Refused`.

    Where the way takes a bridge, `last_absence` says at which event in between the source had no table of that name, if
    it had none at one, and the way goes over that state:

        The target shows `t` as of event 80. Event 85 drops `t`, event 88 makes another, and `t` is read at event 90.
        So the target may show no `t`, as the source did after 85, before it shows the other one.
    """
    applied = AppliedChanges()
    misfit = ""
    for _ in range(ATTEMPTS):
        if side.read_requests.adopts(exact.name):
            try:
                take_over(side, exact)
            except Conflict:
                continue
        shown = whole_table(side, exact)
        if shown is not None and switches_acid(side, exact, shown):
            side.announced.add(side.ledger, AnnouncedBridge, (exact.name,), exact.exact_at)
            applied.objects += land(side, ExactTable(exact.name, exact.exact_at)).applied.objects
            shown = None
        try:
            switch_places(side, exact, shown, applied)
            switch_format(side, exact, shown, applied, misfit)
        except Conflict:
            continue
        except FormatMisfit as error:
            misfit = error.reason
            continue
        prepared = prepare_landing(side, exact, shown)
        if exact.only is None and any(hop.bridge for hop in prepared.solution.plan.hops):
            absent_at = last_absence()
            if absent_at is not None and newest_mark(prepared.shown) < absent_at:
                prepared = prepare_landing(side, exact, whole_table(side, exact), absent_at)
        created = prepared.shown[exact.name] is None and exact.table is not None
        if prepared.solution.missing:
            raise Unreachable(f"{exact.name}: no operations lead from what the target shows to what was read")
        mend_lake(side, exact, prepared.shown[exact.name])
        keep_permissions(side, exact, prepared.shown[exact.name])
        try:
            perform(side, of_a_read(ready_of(prepared, exact.exact_at)), ReadImages(exact), {}, applied)
            mark_partitions(side, exact, prepared.shown[exact.name], applied)
        except Conflict:
            continue
        except FormatMisfit as error:
            if exact.table is not None and is_transactional(exact.table):
                raise Refused(
                    f"{exact.name} can't be a Delta table", error.reason, 'Set another "acid" for it'
                ) from error
            misfit = error.reason
            continue
        if not created:
            applied.objects += as_landed(side, exact, prepared.shown[exact.name], page)
        return outcome(prepared, applied, exact.exact_at)
    raise Unreachable(f"{exact.name} was changed at the target by another while it was being written")


def switches_acid(side: TargetSide, exact: ExactTable, shown: ShownTable) -> bool:
    """Tell whether the replica of an ACID table is to become another kind of table, which no call makes of it: it is
    dropped, and built anew."""
    if exact.table is None or not is_transactional(exact.table):
        return exact.table is not None and has_own_row_files(shown.table)
    if is_transactional(shown.table) is not (side.admission.acid(exact.name) == "native"):
        return True
    return has_own_row_files(shown.table) is not bool(side.wanted_format(exact.table))


def of_a_read(ready: ReadyPlan) -> ReadyPlan:
    """Return the plan without the first events of its hops: a read tells how a table is, not since when."""
    hops = tuple(replace(hop, first_event=0) for hop in ready.plan.hops)
    return replace(ready, plan=replace(ready.plan, hops=hops))


def land_absence(side: TargetSide, name: TableName, absent_at: EventId) -> AppliedChanges:
    """Have the target show that the source had no table of that name at event `absent_at`, unless it shows a newer
    event."""
    try:
        shown = observe(side, [name], {}, with_files=False)
    except NotOurReplica:
        return AppliedChanges()
    if shown[name] is None or newest_mark(shown) >= absent_at:
        return AppliedChanges()
    return land(side, ExactTable(name, absent_at)).applied


def as_landed(side: TargetSide, exact: ExactTable, shown: ShownTable | None, page: int) -> Sequence[ObjectRow]:
    """Return rows for the ledger of all that the table has, independent of what was recorded of it before. They are
    read from the target, `page` partitions at a time, where not all partitions were looked at, as of a table that the
    source has no more and that is kept."""
    is_kept = exact.table is None and shown is not None
    if exact.only is not None or is_kept:
        return as_it_is(side, exact.name, exact.exact_at, page)
    return whole(exact.name, shown, exact.exact_at, ADOPT if side.read_requests.adopts(exact.name) else READ)


def mend_lake(side: TargetSide, exact: ExactTable, shown: ShownTable | None) -> None:
    """Copy files of an Iceberg table again that are missing at the target, or have another size there; the table's
    definition does not tell whether its files are whole."""
    if shown is None or exact.table is None or not side.admission.copies(exact.name):
        return
    if is_iceberg(shown.table) and is_iceberg(exact.table):
        mend(side, exact.table, shown.table)


def keep_permissions(side: TargetSide, exact: ExactTable, shown: ShownTable | None) -> None:
    """Give the files and directories that the target has already the owners, modes and ACLs of the source's. A change
    of permissions at the source raises no event, so that this is the only time at which files that are not copied again
    get them. Does nothing unless the policy keeps permissions."""
    if shown is None or exact.table is None or not side.admission.copies(exact.name) or not keeps_permissions(side):
        return
    source_root, root = location_of(exact.table), location_of(shown.table)
    roots = [(source_root, root)] if source_root and root else []
    source_listings, target_listings = (
        {key: with_live_files(side, listing) for key, listing in listings.items()}
        for listings in (exact.listings, shown.listings)
    )
    keep(side, [*roots, *contents_of(source_listings, target_listings)])


def with_live_files(side: TargetSide, listing: Listing) -> Listing:
    """Return the listing with the files of a Delta table's version; as it is where the table's log can't be read."""
    try:
        return live_files(side.storage, listing)
    except VersionLost:
        return listing


def whole_table(side: TargetSide, exact: ExactTable) -> ShownTable | None:
    """Return what the target has of the table, without files: with all partitions, or with those that were read. Raises
    `NotOurReplica`, unless the source has no such table: then the result is None."""
    name = exact.name
    try:
        target_table = observe(side, [name], {}, with_files=False)[name]
    except NotOurReplica:
        if exact.table is not None:
            raise
        return None
    if target_table is not None and exact.table is not None and is_partitioned(target_table.table):
        if exact.only is None:
            target_table.partitions.update(every_partition(side, target_table.table))
        else:
            target_table.partitions.update(
                side.catalog.partitions(side.admission.name_at_target(name), sorted(exact.only))
            )
    return target_table


def prepare_landing(
    side: TargetSide, exact: ExactTable, target_table: ShownTable | None, absent_at: EventId | None = None
) -> PreparedGroup:
    name, shown = exact.name, {exact.name: target_table}
    if exact.only is not None and not goes_on(side, exact, target_table):
        raise Unreachable(f"{name} is not at the target any more as it was when it was compared")
    if side.admission.copies(name):
        read_files(side, shown)
        if target_table is not None:
            distrust_lost_rows(side.storage, target_table)
            look(side, exact, target_table)
    locations = {partition: listing.location for partition, listing in exact.listings.items()}
    if not side.admission.copies(name):
        locations = {partition: location_of(value) or "" for partition, value in exact.partitions.items()}
    shared_files = SharedFileCheck(side.storage, side)
    chain = landing(
        name,
        exact.exact_at,
        exact.table,
        exact.partitions,
        locations,
        side.imaging,
        shared_files.as_found(name, target_table.table) if target_table else None,
        {key: shared_files.as_found(name, part) for key, part in target_table.partitions.items()}
        if target_table
        else {},
        absent_at,
    )
    listings = {Data(exact.exact_at, listing.location): listing for listing in exact.listings.values()}
    return planned(side, chain, shown, listings, lambda _: ANY_MARK, side.admission.takes)
