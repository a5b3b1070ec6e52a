"""The execution of one hop: which module does an operation, and what readers are told of before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

from calque.core.images.table_layout import committed_format
from calque.core.states.facets import Changes
from calque.engine.apply import (
    acid_rows,
    append_files,
    commit_table,
    facets,
    hidden_build,
    partitions,
    prepare_flip_sweep,
    tables,
)
from calque.engine.apply.begun_transactions import end_begun
from calque.engine.apply.context import AppliedChanges, DefinitionSource, HopContext
from calque.engine.sides.announced_exceptions import ToAnnounce
from calque.engine.sides.sides import TargetSide
from calque.engine.target.observe import ShownTable
from calque.model.files import Listing
from calque.model.hive import location_of
from calque.model.names import TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitRows,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    Head,
    HiddenBuild,
    Hop,
    Operation,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
    Version,
)
from calque.model.records import AnnouncedBridge, AnnouncedParts


class Applier:
    """The executor of one group's hops. `last` is the group's last hop: with `drops = "keep"` a table that ends absent
    stays."""

    def __init__(
        self,
        side: TargetSide,
        images: DefinitionSource,
        listing: Callable[[Data], Listing],
        shown: dict[TableName, ShownTable | None],
        last: Hop | None,
        applied: AppliedChanges,
    ) -> None:
        self.context = HopContext(side, images, listing, shown, applied)
        self.last = last

    def run(self, hop: Hop) -> None:
        """Do one hop, and announce it before its first effect where readers must be told of it. Raises `Conflict` where
        the target's object is not as calque saw it last, and `ContentLost` where files of the state can't be copied any
        more."""
        context, operation = self.context, hop.operation
        context.announcement = announcement(hop)
        context.parts_announcement = None if hop.bridge else (AnnouncedParts, names_of(operation), hop.to_event)
        match operation:
            case CreateTable():
                tables.create_table(context, operation)
            case HiddenBuild(head=head) if is_native_build(context, operation.table, head):
                acid_rows.build(context, operation, hop.to_event)
            case CommitRows():
                acid_rows.commit_rows(context, operation, hop.to_event)
            case PrepareFlipSweep() if any(has_rows(context, name) for name in names_of(operation)):
                acid_rows.flip(context, operation, hop.to_event)
            case Rebuild(was=was) if has_rows(context, was):
                acid_rows.rebuild(context, operation, hop.to_event)
            case HiddenBuild():
                hidden_build.build(context, operation)
            case AlterTable():
                tables.alter_table(context, operation)
            case DropTable(table):
                if context.side.policy.drops != "keep" or hop != self.last:
                    tables.drop_table(context, table, hop.to_event)
            case AddPartitions():
                partitions.add_partitions(context, operation)
            case AlterPartitions():
                partitions.alter_partitions(context, operation)
            case RenamePartition():
                partitions.rename_partition(context, operation)
            case DropPartitions():
                partitions.drop_partitions(context, operation, hop.to_event)
            case Publish():
                append_files.publish(context, operation)
            case PrepareFlipSweep():
                prepare_flip_sweep.flip(context, operation, hop.to_event)
            case Rebuild(was=was) if has_log(context, was):
                commit_table.rebuild(context, operation, hop)
            case Rebuild():
                hidden_build.rebuild(context, operation, hop.to_event)
            case CommitTable():
                commit_table.commit_table(context, operation, hop)
            case _:
                assert_never(operation)

    def disarm(self) -> None:
        """Make the group's tables ready for the first hop: users' changes that would have calls reach the source's
        files are taken back, and commits that a death cut short are finished."""
        tables.disarm(self.context)
        for shown in self.context.shown.values():
            if shown is not None and committed_format(shown.table):
                self.context.side.catalog.settle(shown.table)

    def end_transactions(self) -> None:
        """End transactions that a death cut short, and that no hop went on with."""
        for table, shown in self.context.shown.items():
            if shown is None or not self.context.side.is_native(shown.table):
                continue
            if self.context.name_at_target(table) not in self.context.ended_transactions:
                end_begun(self.context.side, location_of(shown.table) or "")

    def facets(self, table: TableName, changes: Changes, versions: Mapping[str, Version]) -> None:
        """Write the facets of a table, unless it has a log of commits, which has statistics of its own, and no
        constraints of the source's."""
        if not has_log(self.context, table) and not has_rows(self.context, table):
            facets.write_facets(self.context, table, changes, versions)

    def waiting_keys(self, tables: Iterable[TableName]) -> None:
        """Add foreign keys of other tables that waited for keys of these."""
        for table in tables:
            facets.add_waiting_keys(self.context, table)


def has_rows(context: HopContext, table: TableName | None) -> bool:
    """Tell whether the table's rows come by transactions."""
    shown = context.shown.get(table) if table is not None else None
    return shown is not None and context.side.is_native(shown.table)


def is_native_build(context: HopContext, table: TableName, head: Head) -> bool:
    is_wanted = context.side.admission.acid(table) == "native"
    return is_wanted and context.side.is_native(context.images.table(head.version))


def has_log(context: HopContext, table: TableName | None) -> bool:
    shown = context.shown.get(table) if table is not None else None
    return shown is not None and bool(committed_format(shown.table))


def announcement(hop: Hop) -> ToAnnounce | None:
    """Return the bridge, or the parts, of the hop that readers must be told of before its first effect; None where the
    hop is neither."""
    if hop.bridge:
        return AnnouncedBridge, names_of(hop.operation), hop.to_event
    return (AnnouncedParts, names_of(hop.operation), hop.to_event) if hop.in_parts > 1 else None


def names_of(operation: Operation) -> tuple[TableName, ...]:
    """Return the tables of an operation; one that is renamed under both names."""
    match operation:
        case AlterTable(table, was) | Rebuild(table, was) | CommitTable(table, was) if was is not None:
            return (table, was)
        case PrepareFlipSweep(header=AlterTable(table, was)):
            return (table, was)
        case CommitRows(tables):
            return tuple(rows.table for rows in tables)
        case _:
            return (operation.table,)
