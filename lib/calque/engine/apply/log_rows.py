"""The rows of ACID tables whose replica has a log of commits: the commit takes them from the source's files, so that no
file is copied.

For the planner, and for what calque records, such a table has the source's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.images.table_layout import has_own_row_files
from calque.engine.apply.context import HopContext
from calque.engine.apply.partitions import PartitionWrite, Parts
from calque.engine.files.copies import ContentLost
from calque.engine.files.stage import StagedFiles
from calque.engine.target.observe import NOT_FOLLOWED, ShownTable
from calque.model.files import Listing
from calque.model.hive import Table, location_of
from calque.model.plan import Data, Head
from calque.ports import FileGone, TableCommit


def data_of(head: Head, parts: Parts) -> dict[str, Data]:
    """Return the contents that an operation speaks of, by partition (`""`: the table)."""
    data = {name: part.data for name, part in parts if part.data.location}
    return data if head.data is None else {**data, "": head.data}


def new_rows(context: HopContext, old: ShownTable, contents: Mapping[str, Data]) -> dict[str, StagedFiles]:
    """Return the new files of partitions that stay where they are, as the source has them."""
    staged = {}
    for name, data in contents.items():
        location = location_of(old.partitions[name] if name else old.table) or ""
        listing, before = context.listing(data), old.listings.get(name, Listing(location, ()))
        new_files = {*listing.files} - {*before.files}
        context.count(StagedFiles("", (), len(new_files), sum(file.size for file in new_files)))
        staged[name] = StagedFiles(location, listing.files)
    return staged


def with_rows(
    context: HopContext, definition: Table, written: Mapping[str, PartitionWrite], parts: Parts
) -> dict[str, PartitionWrite]:
    """Return the new partitions with the source's files in their places, where the commit takes the rows from them."""
    if not has_own_row_files(definition):
        return dict(written)
    listings = {name: context.listing(part.data) for name, part in parts if part.data.location}
    return {
        name: replace(write, placed=replace(write.placed, files=listings[name].files))
        if write.placed is not None and name in listings
        else write
        for name, write in written.items()
    }


def commit(
    context: HopContext, change: TableCommit, head: Head, parts: Parts, old: Mapping[str, Listing] | None = None
) -> None:
    """Make the commit. That of an ACID table names the source's files, and the partitions whose rows those follow, if
    it is known which rows they have. `old` are the files that the target shows; None for a new table. Raises
    `ContentLost` where files of the source are gone."""
    if not has_own_row_files(change.table):
        context.call(context.side.catalog.commit_table, change)
        return
    data, lineages = data_of(head, parts), {name: part.lineage for name, part in parts}
    of_source = {name: context.listing(data[name]) for name in change.contents if name in data}
    before = {
        name: was
        for name in of_source
        if (was := lineages.get(name, "")) in (old or {}) and (old or {})[was].files != NOT_FOLLOWED
    }
    try:
        context.call(context.side.catalog.commit_table, replace(change, contents=of_source, before=before))
    except FileGone as gone:
        raise ContentLost(gone.path, "it is not as it was listed", gone.size, gone.modified_ns) from gone
