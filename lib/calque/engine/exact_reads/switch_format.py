"""The switch of a table that the policy wants in another format than it has at the target: the same files get a log of
commits, or lose it.

The new form is built under a hidden name over the files that are there, as what the target shows now; then the old one
is renamed away, and the new one in. For one call the table is absent: a bridge, which is announced. Other differences
that the read found are for the ordinary way from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.formats.layout import join, place
from calque.core.formats.pointers import relocated
from calque.core.images.image import FORMAT
from calque.core.images.table_layout import (
    committed_format,
    has_own_row_files,
    plain_because,
    root_of_content,
    with_format,
)
from calque.engine.apply import AppliedChanges
from calque.engine.apply.context import HopContext
from calque.engine.apply.definitions import ReadImages
from calque.engine.apply.hidden_build import make, swap
from calque.engine.apply.hidden_table import clear
from calque.engine.apply.tables import expected
from calque.engine.files.stage import StageRequest
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.sides import TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import ShownTable, event_of, read_files
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_view, location_of
from calque.model.names import TableName
from calque.model.plan import ShownState
from calque.model.records import AnnouncedBridge
from calque.ports import TableCommit


def switch_format(
    side: TargetSide, exact: ExactTable, shown: ShownTable | None, applied: AppliedChanges, misfit: str = ""
) -> None:
    """Have the table in the format that the policy says, as far as it can be. `shown` is what the target has of the
    table, with all partitions; it is kept up to date. `misfit` says why the table can't have the wanted format, where
    that is known. Costs no call where the format is right. Raises `Conflict` where another writer changed the table,
    `ContentLost` where files are gone, and `FormatMisfit` where the files do not fit the format."""
    if exact.table is None or exact.only is not None or shown is None or is_view(shown.table):
        return
    if has_own_row_files(shown.table):
        return
    wanted, had = side.wanted_format(exact.table), committed_format(shown.table)
    if not wanted and FORMAT not in (shown.table.parameters or {}):
        return
    why = misfit
    if wanted and not why:
        both = [*exact.partitions.values(), *shown.partitions.values()]
        why = side.misfit(wanted, exact.table, exact.partitions.values()) or side.misfit(wanted, shown.table, both)
    text = plain_because(why) if wanted and why else wanted
    to = "" if why else wanted
    switch = FormatSwitch(side, exact, shown, applied)
    if had and had != to:
        switch.to_plain(had, "" if to else text)
    if to and had != to:
        switch.to_log(to)
    elif not had and (shown.table.parameters or {}).get(FORMAT, "") != text:
        switch.say(text)


class FormatSwitch:
    """The switch of one table to another format."""

    def __init__(self, side: TargetSide, exact: ExactTable, shown: ShownTable, applied: AppliedChanges) -> None:
        self.side, self.name, self.shown = side, exact.name, shown
        self.event_id = exact.exact_at
        tables: dict[TableName, ShownTable | None] = {exact.name: shown}
        self.context = HopContext(side, ReadImages(exact), lambda data: Listing(data.location, ()), tables, applied)

    def to_log(self, table_format: str) -> None:
        """Give the table a log of commits. Partitions that lie outside of the table's directory are copied into it,
        because all files of such a table lie below its root."""
        root = location_of(self.shown.table) or ""
        self.side.storage.remove([join(root, self.side.log_of(table_format))])
        read_files(self.side, {self.name: self.shown})
        partitions = self.inside(root)
        definition = with_format(self.shown.table, table_format)
        listings = dict(self.shown.listings)
        shows = ShownState(event_of(self.shown.table.parameters), 0)

        def build_hidden(hidden: TableName, table: Table) -> None:
            ensure_own_database(self.side.catalog, self.side.policy.warehouse)
            clear(self.context, hidden)
            hidden_table = replace(table, database=hidden.database, name=hidden.table)
            put = [replace(one, database=hidden.database, table=hidden.table) for one in partitions.values()]
            commit = TableCommit(None, hidden_table, put, contents=listings, shows=shows)
            self.context.call(self.side.catalog.commit_table, commit)

        self.announce()
        swap(self.context, self.name, self.name, definition, build_hidden, self.event_id)
        self.shown.table = definition

    def inside(self, root: str) -> Mapping[str, Partition]:
        """Return the partitions; those that lay elsewhere have a directory below the root now, with copies of their
        files."""
        outside = {
            name: StageRequest(
                self.shown.listings[name],
                None,
                self.context.name_at_target(self.name),
                name,
                self.shown.incarnation(),
                event_of(partition.parameters),
                root=root,
            )
            for name, partition in self.shown.partitions.items()
            if name in self.shown.listings and not place(root).contains(place(location_of(partition) or root))
        }
        for name, placed in self.context.staged(self.name, outside).items():
            partition = self.shown.partitions[name]
            self.shown.partitions[name] = relocated(partition, placed.location)
            self.shown.listings[name] = placed.listing()
        return self.shown.partitions

    def to_plain(self, had: str, text: str) -> None:
        """Take the log of commits, of format `had`, away from the table. Files that lie in its directories and are in
        no state, as a death leaves them, are removed before: readers of a plain table would see them. `text` is what
        the table says of its format then."""
        root = root_of_content(location_of(self.shown.table) or "")
        read_files(self.side, {self.name: self.shown})
        listed = self.side.storage.list(sorted({one.location for one in self.shown.listings.values()} - {root}))
        contents = {one.location: {file.path for file in one.files} for one in self.shown.listings.values()}
        strangers = [
            join(location, file.path)
            for location, listing in listed.items()
            for file in listing.files
            if file.path not in contents[location]
        ]
        if strangers:
            self.side.storage.remove(strangers)
        definition = with_format(self.shown.table, text)

        def build_hidden(hidden: TableName, table: Table) -> None:
            make(self.context, self.name, hidden, table, self.shown.partitions.values())

        self.announce()
        swap(self.context, self.name, self.name, definition, build_hidden, self.event_id)
        self.side.storage.remove([join(root, self.side.log_of(had))])
        self.shown.table = definition

    def say(self, table_format: str) -> None:
        """Have a table that stays plain say another reason for that."""
        definition = with_format(self.shown.table, table_format)
        at_target = self.context.name_at_target(self.name)
        self.context.call(self.side.catalog.alter_table, at_target, definition, expected_event=expected(self.shown))
        self.shown.table = definition

    def announce(self) -> None:
        self.context.announcement = (AnnouncedBridge, (self.name,), self.event_id)
