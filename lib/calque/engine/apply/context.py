"""The context in which all operations on a group's tables work: the target, what it shows, and the record of what was
done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import ParamSpec, Protocol, TypeVar

from calque.core.formats.definition import text_of_partition, text_of_table
from calque.core.formats.layout import join, natural_location
from calque.core.formats.pointers import relocated
from calque.core.images.image import EVENT, STATE
from calque.core.images.object_row import row_of
from calque.core.images.table_layout import committed_format, has_own_row_files, root_of_content
from calque.core.plan.limits import ListOperation, batches, of_hidden
from calque.engine.files.permissions import (
    Pair,
    directories_above,
    directories_below,
    files_of,
    keep,
    keeps_permissions,
)
from calque.engine.files.referenced_files import Attachments
from calque.engine.files.stage import StagedFiles, StageRequest, stage
from calque.engine.sides.announced_exceptions import ToAnnounce
from calque.engine.sides.sides import TargetSide
from calque.engine.target.list_calls import send_list
from calque.engine.target.observe import ShownTable
from calque.logs.fields import inherited
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_view, location_of
from calque.model.ledger import ObjectRow
from calque.model.names import OURS, EventId, TableName
from calque.model.plan import Data, Version
from calque.ports import Conflict

EARLY, LATE = "early", "late"
"""The values of `calque.state` for a partition that is listed before, or after, its rows."""
HIDDEN_CALLS = 4
"""Calls about a table under a hidden name that are made at a time."""
UNDEFINED = frozenset({"append", "rename_away", "drop_partition", "drop_table"})
"""Changes after which an object has no new definition."""
P = ParamSpec("P")
T = TypeVar("T")


class DefinitionSource(Protocol):
    """The definitions of the source by version."""

    def table(self, version: Version, /) -> Table: ...

    def partition(self, version: Version, /) -> Partition: ...

    def place(self, event_id: EventId, location: str, /) -> str:
        """Return where a directory of the event is at the source after the hop in hand, if its files stay there."""

    def passed(self, hop: int, /) -> None:
        """Note that the `hop`-th hop of the plan is done: a definition that no later hop needs is not asked for any
        more."""


@dataclass(slots=True)
class AppliedChanges:
    """The changes that the hops of a group made: rows for the ledger, calls, and the files and bytes that were
    copied."""

    objects: list[ObjectRow] = field(default_factory=list)
    calls: int = 0
    files: int = 0
    bytes: int = 0
    disarmed: list[TableName] = field(default_factory=list)
    """Tables of which users' changes were taken back that would have had calls reach the source's files."""
    together: list[tuple[TableName, ...]] = field(default_factory=list)
    """The tables of each transaction that changed the rows of several."""


@dataclass(slots=True)
class HopContext:
    """The target of a group's hops. `shown` is what the target has, by the source's names, kept up to date; `listing`
    gives the source's files of a content. `announcement` is made ahead of the next call, once."""

    side: TargetSide
    images: DefinitionSource
    listing: Callable[[Data], Listing]
    shown: dict[TableName, ShownTable | None]
    applied: AppliedChanges
    announcement: ToAnnounce | None = None
    parts_announcement: ToAnnounce | None = None
    """The announcement of the hop in hand, if it turns out to take several calls; None where readers need not be told
    of these: the hop is a bridge, or nothing that they read changes between the calls."""
    formats: dict[TableName, str] = field(default_factory=dict)
    """The text of a new table's mark that says why it does not have the format that was asked for."""
    prepared_files: dict[TableName, StagedFiles] = field(default_factory=dict)
    """Files of tables whose definitions point to them, made ready and not yet recorded."""
    claims: set[str] = field(default_factory=set)
    """Claims on directories that no call can have shown yet."""
    ended_transactions: set[TableName] = field(default_factory=set)
    """ACID tables, by their names at the target, in which no transaction of calque's is open."""
    attachments: Attachments = field(init=False)
    counting: Lock = field(default_factory=Lock)
    """Guards the count of calls, because calls about a hidden table come from several threads."""

    def __post_init__(self) -> None:
        self.attachments = Attachments(self.side)

    def name_at_target(self, table: TableName) -> TableName:
        return self.side.admission.name_at_target(table)

    def shown_table(self, table: TableName) -> ShownTable:
        shown = self.shown.get(table)
        if shown is None:
            raise Conflict(f"{self.name_at_target(table)} is not there")
        return shown

    def place(
        self,
        table: TableName,
        target_object: Table | Partition,
        source_object: Table | Partition,
        placed: StagedFiles | None,
    ) -> str | None:
        """Return where an altered object of the table lies: at its new directory if it got one (`placed`); else where
        it was, or, where files stay at the source, where the source has it. None for an object without a location."""
        if placed is not None:
            return placed.location
        return location_of(target_object if self.side.admission.copies(table) else source_object)

    def staged_listing(self, definition: Table, data: Data) -> Listing:
        """Return the source's files of a content that are copied before the call which shows them. Those of an ACID
        table at the target come in a transaction of their own, after that call, and those whose rows a log has are
        never copied."""
        listing = self.listing(data)
        has_copies = not (self.side.is_native(definition) or has_own_row_files(definition))
        return listing if has_copies else Listing(listing.location, ())

    def commits(self, target_table: Table) -> bool:
        """Tell whether any difference of the table at the target is one commit."""
        return bool(committed_format(target_table)) or self.side.catalog.abilities().any_difference

    def root(self, target_table: Table) -> str:
        """Return the directory below which all contents of a table with a log of commits lie; empty for other
        tables."""
        return root_of_content(location_of(target_table) or "") if committed_format(target_table) else ""

    def is_shown(self, location: str) -> bool:
        """Tell whether a table of the group lies at `location`."""
        return any(shown is not None and location_of(shown.table) == location for shown in self.shown.values())

    @property
    def empty_directory(self) -> str:
        """The directory that belongs to no object, where no file lies: partitions without rows point to it."""
        return join(natural_location(self.side.policy.warehouse, OURS), "empty")

    def lies_at_source(self, table: TableName, definition: Table | Partition) -> bool:
        """Tell whether the directory of the table, or of its partition, is the source's. A metastore makes the
        directory of an object that is added where the directory is missing, and never looks at the one that an
        alteration names."""
        is_place = not (isinstance(definition, Table) and is_view(definition)) and bool(location_of(definition))
        return is_place and not self.side.admission.copies(table)

    def leave(self, table: TableName, partitions: Collection[str] | None = None) -> None:
        """Note, for claims, that the next call may take the table, or these partitions of it, from where they lie, or
        from their names."""
        self.side.claims.leave(self.name_at_target(table), partitions)

    # Effects

    def call(self, effect: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
        """Make one call at the catalog. The announcement that waits is made before, and claims on directories that the
        call may show are used."""
        if self.announcement is not None:
            self.side.announced.add(self.side.ledger, *self.announcement)
            self.announcement = None
        if self.claims:
            self.side.claims.use(self.claims)
            self.claims.clear()
        with self.counting:
            self.applied.calls += 1
        return effect(*arguments, **named)

    def add_partitions(self, table: TableName, target_name: TableName, partitions: Iterable[Partition]) -> None:
        """Add partitions to the table, which has the name `target_name` at the target for now, in one call. Partitions
        whose files stay at the source are listed early, and switched by a second call."""
        partitions = list(partitions)
        if not any(self.lies_at_source(table, partition) for partition in partitions):
            self.send("add_partitions", self.side.catalog.add_partitions, target_name, partitions)
            return
        self.list_early(target_name, partitions)
        self.alter_partitions(target_name, partitions)

    def list_early(self, target_name: TableName, partitions: Iterable[Partition]) -> None:
        """Add partitions before their rows: they lie in the empty directory, and say so."""
        early = [emptied(partition, self.empty_directory, {EVENT: "0", STATE: EARLY}) for partition in partitions]
        self.send("add_partitions", self.side.catalog.add_partitions, target_name, early)

    def alter_partitions(self, target_name: TableName, partitions: Iterable[Partition]) -> None:
        self.send("alter_partitions", self.side.catalog.alter_partitions, target_name, list(partitions))

    def drop_partitions(self, target_name: TableName, names: Iterable[str]) -> None:
        names = list(names)
        if target_name.database != OURS:
            self.side.claims.leave(target_name, set(names))
        self.send("drop_partitions", self.side.catalog.drop_partitions, target_name, names)

    def send(
        self,
        operation: ListOperation,
        effect: Callable[[TableName, Sequence[T]], None],
        target_name: TableName,
        objects: Sequence[T],
    ) -> None:
        """Send objects in as few calls as the target takes. Readers are told of parts before they see any, also where
        the plan was made before the server refused a list of that length. A table under a hidden name has no readers,
        and its parts are sent side by side."""
        catalog = self.side.catalog

        def in_parts() -> None:
            if self.announcement is None:
                self.announcement = self.parts_announcement

        def call(batch: Sequence[T]) -> None:
            self.call(effect, target_name, batch)

        if target_name.database != OURS:
            send_list(catalog, operation, call, objects, in_parts)
            return
        most = getattr(of_hidden(catalog.abilities().limits), operation)
        if len(objects) <= most:
            send_list(catalog, operation, call, objects)
            return
        send = inherited(lambda batch: send_list(catalog, operation, call, batch))
        with ThreadPoolExecutor(HIDDEN_CALLS, thread_name_prefix="hidden") as pool:
            list(pool.map(send, batches(objects, most)))

    def staged(self, table: TableName, requests: Mapping[str, StageRequest]) -> dict[str, StagedFiles]:
        """Return directories of the table with their files, all copied in one go; the source's own directories where
        files stay there. Raises `ContentLost`."""
        if not self.side.admission.copies(table):
            listings = {key: request.listing for key, request in requests.items()}
            return {key: StagedFiles(listing.location, listing.files) for key, listing in listings.items()}
        directories = dict(zip(requests, stage(self.side, list(requests.values())), strict=True))
        self.claims.update(placed.claim for placed in directories.values())
        self.keep_permissions(table, requests, directories)
        for placed in directories.values():
            self.count(placed)
        return directories

    def keep_permissions(
        self, table: TableName, requests: Mapping[str, StageRequest], directories: Mapping[str, StagedFiles]
    ) -> None:
        """Give new directories the permissions of the source's, before an object shows them, where the source's are at
        hand."""
        if not keeps_permissions(self.side):
            return
        shown = self.shown.get(table)
        own_root = location_of(shown.table) if shown is not None else None
        pairs: list[Pair] = []
        for key, request in requests.items():
            if not request.listing.kept:
                location, root = directories[key].location, own_root if key else request.listing.location
                pairs += directories_above(request, location, root or "")
                pairs += directories_below(request.listing, location)
            if request.names_files:
                pairs += files_of(request.listing, directories[key].listing())
        keep(self.side, pairs)

    def count(self, placed: StagedFiles) -> None:
        self.applied.files += placed.files_copied
        self.applied.bytes += placed.bytes_moved

    # Records, after the effect

    def shows_files(self, table: TableName, partition: str, placed: StagedFiles) -> None:
        self.shown_table(table).listings[partition] = placed.listing()

    def record(
        self,
        table: TableName,
        partition: str,
        incarnation: str,
        event_id: EventId,
        change: str,
        placed: StagedFiles | None = None,
    ) -> None:
        """Add a row for the ledger; without `placed` the object has the files that it had before."""
        if not partition and (prepared := self.prepared_files.pop(table, None)) is not None:
            placed = replace(prepared, claim=placed.claim if placed is not None else "")
        listing = placed.listing() if placed is not None else None
        shown = self.shown.get(table) if change not in UNDEFINED else None
        written = shown if shown is None or not partition else shown.partitions.get(partition)
        definition = definition_text(written.table if isinstance(written, ShownTable) else written)
        self.applied.objects.append(row_of(table, partition, incarnation, event_id, change, listing, definition))


def emptied(partition: Partition, empty: str, marks: Mapping[str, str]) -> Partition:
    """Return the partition without rows, in the directory `empty`, and with these marks."""
    parameters = {**(partition.parameters or {}), **marks}
    return relocated(replace(partition, parameters=parameters), empty)


def definition_text(written: Table | Partition | None) -> str:
    match written:
        case None:
            return ""
        case Table():
            return text_of_table(written)
        case Partition():
            return text_of_partition(written)
