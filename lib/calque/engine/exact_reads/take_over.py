"""The take-over of a table at a target that is not ours: it becomes ours where it lies, when an exact read of it lands.

One call marks it; the read then makes of it what the source has, through the ordinary path. Until then no mark of an
owner lies in its directory, which is therefore never swept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calque.core.events.kinds import ACID, kind_of
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import natural_location
from calque.core.formats.pointers import relocated
from calque.core.formats.symlinks import is_symlinks
from calque.core.images.image import EVENT, INCARNATION, ORIGIN, SOURCE, TYPE, Marks, is_ours, is_parked
from calque.core.states.exact_state import same_incarnation, unchanged
from calque.engine.apply import AppliedChanges
from calque.engine.files.content_proof import is_shared, prove, require_told, same_files
from calque.engine.files.delta_versions import VersionLost, live_files
from calque.engine.files.symlink_manifests import lacks_named_files
from calque.engine.sides.sides import TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.list_calls import send_list
from calque.engine.target.observe import NOT_FOLLOWED, ShownTable, event_of
from calque.errors import Refused
from calque.model.files import DELTA_LOG, File, Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import EventId, TableName

NOT_TO_KEEP = (File(f"{DELTA_LOG}/{'9' * 20}.json", 0, 0),)
"""A listing's files for a directory whose content can't stay. The file is the commit of a Delta version that no log
reaches, so that the listing equals that of no content, and nothing is appended to it."""
NOT_YET: EventId = 0
"""The event of an object that is ours and does not show what the source has."""
NOBODY = "r0"
"""The incarnation of a table of which the source's can't be made, so that it is replaced."""


def take_over(side: TargetSide, exact: ExactTable) -> None:
    """Mark the table that stands under the name as the replica, in one call that leaves columns, parameters and place
    as they are; the server is not to act on the table by itself any more. Raises `Conflict` where another writer
    changed the table, and `Refused` as `taken` does."""
    target_name = side.admission.name_at_target(exact.name)
    target_table = side.catalog.table(target_name)
    if exact.table is None or target_table is None or is_ours(target_table.parameters, side.policy.source):
        return
    image = taken(side, exact.name, target_table, exact.table, Marks(NOT_YET, f"r{exact.exact_at}"))
    if not same_incarnation(image, exact.table, side.imaging):
        image = replace(image, parameters={**(image.parameters or {}), INCARNATION: NOBODY})
    if unchanged(image, side.imaging.table(exact.table, Marks(exact.exact_at, ""), None)):
        image = replace(image, parameters={**(image.parameters or {}), EVENT: str(exact.exact_at)})
    root = own_root(side, exact.name, target_table, exact.table)
    image = relocated(image, root) if root else image
    side.catalog.alter_table(target_name, image, expected_event=(target_table.parameters or {}).get(EVENT, ""))


def taken(side: TargetSide, name: TableName, target_table: Table, source: Table | None, marks: Marks) -> Table:
    """Return the target's definition as one of ours. `source` is the source's table, for what only its definition
    tells; None where the source has none. Raises `Refused` for an ACID table at the target, which no call makes an
    external one."""
    if kind_of(target_table) == ACID:
        raise Refused(
            f"{side.admission.name_at_target(name)} can't be taken over",
            f"It is one of the {ACID} at the target, which no call makes an external one",
            "Drop it there, and release it from quarantine",
        )
    image = side.imaging.table(
        replace(target_table, database=name.database, name=name.table), marks, location_of(target_table)
    )
    texts = (target_table.view_original_text, target_table.view_expanded_text)
    source_parameters = side.imaging.table(source, marks, None).parameters or {} if source is not None else {}
    kept_parameters = {
        key: value for key, value in source_parameters.items() if key in (TYPE, ORIGIN) or is_of_replication(key)
    }
    own_parameters = {key: value for key, value in (image.parameters or {}).items() if not is_of_replication(key)}
    parameters = {**own_parameters, **kept_parameters}
    return replace(image, parameters=parameters, view_original_text=texts[0], view_expanded_text=texts[1])


def is_of_replication(key: str) -> bool:
    """Tell whether Hive's own replication put the parameter `key` there, parked or not: it is no part of what the
    source has."""
    return key.removeprefix(f"{SOURCE}.").lower().startswith(("repl.", "hive.repl."))


def own_root(side: TargetSide, name: TableName, target_table: Table, source: Table) -> str | None:
    """Return the directory where the table has to lie to begin with; None where it may stay. It is the source's place
    where files stay there. It lies in the warehouse for a table that lies in the source's own directory, where new
    partitions would lie, too, and for one whose copied files name the source's paths, as Iceberg's metadata do."""
    target_location, source_location = location_of(target_table), location_of(source)
    if is_view(target_table) or is_view(source) or not target_location or not source_location:
        return None
    if not side.admission.copies(name):
        return source_location
    if is_iceberg(target_table) or (
        is_partitioned(target_table) and is_shared(Listing(source_location, ()), Listing(target_location, ()))
    ):
        target_name = side.admission.name_at_target(name)
        return natural_location(side.policy.warehouse, target_name.database, target_name.table)
    return None


def look(side: TargetSide, exact: ExactTable, shown: ShownTable) -> None:
    """Find out which files of the table are those of the source, where an operator asked for that. Files that the table
    has in the source's own directory are no copies. Directories whose content can't stay get the files `NOT_TO_KEEP` in
    `shown.listings`. Raises `Unavailable` and `Refused` as the ports do."""
    looks = side.read_requests.looks(exact.name)
    pairs = [(listing, shown.listings[key]) for key, listing in exact.listings.items() if key in shown.listings]
    times = prove(side, pairs, also_known=True) if looks else {}
    if times:
        shown.listings.update(listed(side, shown.listings))
        require_told(times, shown.listings.values())
    for key, listing in exact.listings.items():
        target_listing = shown.listings.get(key)
        if target_listing is not None and (
            is_shared(listing, target_listing)
            or is_read_otherwise(exact, shown, key)
            or (looks and not is_whole(side, listing, target_listing))
            or lacks_named_files(side.storage, listing, target_listing)
        ):
            shown.listings[key] = replace(target_listing, files=NOT_TO_KEEP, combination=None)


def is_read_otherwise(exact: ExactTable, shown: ShownTable, partition: str) -> bool:
    """Tell whether at one side alone the files are manifests that name the files with rows."""
    source, target = exact.partitions.get(partition, exact.table), shown.partitions.get(partition, shown.table)
    return source is not None and is_symlinks(source) != is_symlinks(target)


def is_whole(side: TargetSide, source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether a Delta table shows the source's version, and has its files with their content. A table of an
    earlier version is not known to be whole, and is copied anew. Tables that are no Delta tables count as whole."""
    if source_listing.version is None or target_listing.version is None:
        return True
    if source_listing.fingerprint() != target_listing.fingerprint():
        return False
    try:
        source_files, target_files = live_files(side.storage, source_listing), live_files(side.storage, target_listing)
    except VersionLost:
        return False
    return same_files(side, source_files, target_files)


def listed(side: TargetSide, listings: dict[str, Listing]) -> dict[str, Listing]:
    """Return the listings of the same directories as they are now; manifests that were not written for the target stay
    unlike all others."""
    listings_by_location = side.storage.list(sorted({listing.location for listing in listings.values()}))
    return {
        key: listing if listing.files == NOT_FOLLOWED else listings_by_location[listing.location]
        for key, listing in listings.items()
    }


def mark_partitions(side: TargetSide, exact: ExactTable, shown: ShownTable | None, applied: AppliedChanges) -> None:
    """Give partitions that landed as they were the marks that they lack. Partitions of an adopted table may have marks
    of another stream. Raises `Conflict` where another writer changed one of them."""
    if shown is None or exact.table is None or not shown.partitions:
        return
    target_name, marks = side.admission.name_at_target(exact.name), Marks(exact.exact_at, f"r{exact.exact_at}")
    adopted = side.read_requests.adopts(exact.name)
    unmarked_parts = {name: part for name, part in shown.partitions.items() if lacks_marks(part, marks, adopted)}
    places = (
        {name: location_of(part) for name, part in exact.partitions.items()}
        if not side.admission.copies(exact.name)
        else {}
    )
    marked_parts = {name: with_marks(part, marks, places.get(name)) for name, part in unmarked_parts.items()}

    def mark(batch: Sequence[Partition]) -> None:
        side.catalog.alter_partitions(target_name, batch)
        applied.calls += 1

    send_list(side.catalog, "alter_partitions", mark, list(marked_parts.values()))
    shown.partitions.update(marked_parts)


def lacks_marks(part: Partition, marks: Marks, adopted: bool) -> bool:
    own_marks = Marks(event_of(part.parameters), (part.parameters or {}).get(INCARNATION, ""))
    return not own_marks.event or not own_marks.incarnation or (adopted and own_marks != marks)


def with_marks(part: Partition, marks: Marks, location: str | None = None) -> Partition:
    own_parameters = {key: value for key, value in (part.parameters or {}).items() if not is_parked(key)}
    parameters = {**own_parameters, EVENT: str(marks.event), INCARNATION: marks.incarnation}
    marked = replace(part, parameters=parameters)
    return relocated(marked, location) if location else marked
