"""The switch of a table that a policy has copied now and had not before, or the other way round: the same objects get
other places.

Nothing but their locations changes here, and both places hold the rows of the exact read, so that rows are right after
each call. Other differences are for the ordinary way to the state that was read.
"""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import place
from calque.core.formats.pointers import relocated
from calque.core.formats.symlinks import is_symlinks
from calque.core.images.compare import same_place
from calque.core.states.exact_state import OLD, same_incarnation
from calque.engine.apply import AppliedChanges
from calque.engine.apply.context import HopContext
from calque.engine.apply.definitions import ReadImages
from calque.engine.apply.tables import expected, root
from calque.engine.files.content_proof import is_shared
from calque.engine.files.stage import StageRequest
from calque.engine.sides.sides import TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import ShownTable
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.plan import BASE, Head


def switch_places(side: TargetSide, exact: ExactTable, shown: ShownTable | None, applied: AppliedChanges) -> None:
    """Have the table's objects lie where the policy says. `shown` is what the target has of the table; it is kept up to
    date. Costs no call where they lie there. Raises `Conflict` where another writer changed an object, `ContentLost`
    where files are gone, and `Refused` where a place may not be used."""
    source = exact.table
    if source is None or is_view(source) or shown is None or not goes_on(side, exact, shown):
        return
    context = HopContext(side, ReadImages(exact), lambda data: Listing(data.location, ()), {exact.name: shown}, applied)
    if side.admission.copies(exact.name):
        to_copies(context, exact, source, shown)
    else:
        to_source(context, exact, source, shown)


def goes_on(side: TargetSide, exact: ExactTable, target_table: ShownTable | None) -> bool:
    """Tell whether the target's table is the one that was read, so that its other partitions stay."""
    return (
        target_table is not None
        and exact.table is not None
        and same_incarnation(target_table.table, exact.table, side.imaging)
    )


def to_copies(context: HopContext, exact: ExactTable, source: Table, shown: ShownTable) -> None:
    """Copy the files of objects that lie at the source, and let the objects point to the copies. The table's own
    directory comes first, so that nothing is ever made below the source's. Files that an Iceberg table's definition
    points to are switched with the definition."""
    name, incarnation = exact.name, shown.incarnation()
    target_name = context.name_at_target(name)
    requests = {
        key: StageRequest(
            exact.listings[key],
            None,
            target_name,
            key,
            incarnation,
            exact.exact_at,
            symlinks=is_symlinks(exact.partitions[key]),
        )
        for key, part in shown.partitions.items()
        if key in exact.listings and is_at_source(context.side, exact, part, exact.listings[key].location)
    }
    if is_at_source(context.side, exact, shown.table, location_of(source)):
        if is_partitioned(shown.table) or is_iceberg(shown.table):
            placed = root(context, name, source, Head(OLD, BASE, incarnation, None, exact.exact_at))
        else:
            listing = exact.listings[""]
            symlinks = is_symlinks(source)
            request = StageRequest(listing, None, target_name, "", incarnation, exact.exact_at, symlinks=symlinks)
            placed = context.staged(name, {"": request})[""]
        put_table(context, exact, shown, placed.location)
    if requests:
        directories = context.staged(name, requests)
        put_partitions(context, exact, shown, {key: placed.location for key, placed in directories.items()})


def to_source(context: HopContext, exact: ExactTable, source: Table, shown: ShownTable) -> None:
    """Let the objects point to the source's directories. An Iceberg table is left to its definition, which says its
    place."""
    partitions = {key: part for key, part in shown.partitions.items() if key in exact.partitions}
    places = {
        key: location_of(exact.partitions[key]) or ""
        for key, part in partitions.items()
        if not same_place(exact.partitions[key], part)
    }
    put_partitions(context, exact, shown, places)
    location = location_of(source)
    if location and not is_iceberg(source) and not same_place(source, shown.table):
        put_table(context, exact, shown, location)


def is_at_source(
    side: TargetSide, exact: ExactTable, target_object: Table | Partition, source_location: str | None
) -> bool:
    """Tell whether an object lies where the source has it, or may have had it before it moved: a table that is copied
    only now has nothing at the policy's places yet."""
    if lies_in(target_object, source_location):
        return True
    location = location_of(target_object)
    if location is None or not side.read_requests.copies(exact.name):
        return False
    places = (side.policy.warehouse, side.policy.external_base, *side.policy.locations.values())
    return not any(own and place(own).contains(place(location)) for own in places)


def lies_in(target_object: Table | Partition, source_location: str | None) -> bool:
    """Tell whether the object's directory is the source's own, lies in it or contains it."""
    location = location_of(target_object)
    return bool(location and source_location) and is_shared(
        Listing(source_location or "", ()), Listing(location or "", ())
    )


def put_table(context: HopContext, exact: ExactTable, shown: ShownTable, location: str) -> None:
    table = relocated(shown.table, location)
    target_name = context.name_at_target(exact.name)
    context.call(context.side.catalog.alter_table, target_name, table, expected_event=expected(shown))
    shown.table = table


def put_partitions(context: HopContext, exact: ExactTable, shown: ShownTable, places: Mapping[str, str]) -> None:
    if places:
        parts = {key: shown.partitions[key] for key in places}
        placed = {key: relocated(part, places[key]) for key, part in parts.items()}
        context.alter_partitions(context.name_at_target(exact.name), placed.values())
        shown.partitions.update(placed)
