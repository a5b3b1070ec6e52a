"""The build of a large table that the target does not have: it is read and built under a hidden name, batch by batch,
and renamed in by one call.

The brackets are those of `engine.source.exact_read`, drawn out: a partition that was built is as it was at the event
that began its bracket, and is still so unless an event has touched it since.

    A bracket begins at event 80, and the log is at event 95 when all partitions were read. Event 90 touched `ds=1`:
    that partition is read again, with a bracket that begins at 95. All others are at 95 as they were built.

A build that a death left behind therefore needs no record of its own. Its header's mark says where its bracket began,
and it goes on from there as long as the journal reaches back. The definitions of one batch are held at a time, and for
each partition its row for the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.core.events.effects import MAY_REBIND_TABLE_NAME, OF_PARTITIONS_OR_FILES
from calque.core.events.kinds import obstacle
from calque.core.formats.definition import text_of_partition, text_of_table
from calque.core.images.image import INCARNATION, SOURCE, Marks, source_mark
from calque.core.images.object_row import row_of
from calque.core.plan.limits import batches
from calque.core.states.exact_state import NEW, stays, unchanged
from calque.engine.apply import AppliedChanges
from calque.engine.apply.context import HopContext
from calque.engine.apply.definitions import ReadImages
from calque.engine.apply.hidden_table import begin, clear, hidden_name
from calque.engine.apply.partitions import has_no_place, new_partitions
from calque.engine.apply.tables import new_table
from calque.engine.files.copies import ContentLost
from calque.engine.sides.journal_reads import touching
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import ROUNDS, ExactTable, TableIsTooBusy, listed
from calque.engine.source.stable_listings import UnsureDirectories
from calque.engine.target.observe import ShownTable, event_of
from calque.engine.window.advance import GroupOutcome
from calque.engine.window.prepare import Unreachable
from calque.errors import Unavailable
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned, location_of
from calque.model.journal import Entry, EventKind
from calque.model.ledger import ObjectRow
from calque.model.names import EventId, Span, TableName
from calque.model.plan import Data, GroupPlan, Head, HiddenBuild, Hop, Part, Version
from calque.ports import Conflict

LOG = logging.getLogger(__name__)
BATCH = 2000
"""Partitions that are held at a time; a table with more of them is built batch by batch."""
Tell = Callable[[TableName, int, int], None]
"""A function that is told the table, how many of its partitions are built, and how many there are."""


@dataclass(frozen=True, slots=True)
class BuiltTable:
    """A table that the target shows now, as it was at event `exact.exact_at`; `exact` holds no partitions, `partitions`
    has their names."""

    exact: ExactTable
    partitions: Sequence[str]
    advanced: GroupOutcome


def build(source: SourceSide, side: TargetSide, name: TableName, batch: int, tell: Tell) -> BuiltTable | None:
    """Build the table, or go on with what a death left of it. Return None where it can't be built in batches: its name
    is taken at the target, the source has no partitioned table of that name of a kind that is replicated, the catalog
    commits any difference at once, or the policy wants another format that the table can have. `batch` is how many
    partitions are held at a time. `tell` is called after each batch. Raises `TableIsTooBusy` and `Refused` as
    `read_exact` does, `Unreachable`, and `Unavailable`."""
    if side.catalog.abilities().any_difference or side.catalog.table(side.admission.name_at_target(name)) is not None:
        return None
    wanted_format = side.admission.wanted_format(name)
    if wanted_format and (table := source.catalog.table(name)) and not side.misfit(wanted_format, table):
        return None
    try:
        return TableBuild(source, side, name, batch, tell).run()
    except Conflict as conflict:
        raise Unreachable(f"{name} was changed at the target by another while it was being built") from conflict


@dataclass(frozen=True, slots=True)
class PartitionBatch:
    """Partitions as they were read in one batch. `names` were asked for; those whose files were `unsettled` are read
    again later."""

    names: Sequence[str]
    partitions: Mapping[str, Partition]
    listings: Mapping[str, Listing]
    unsettled: Collection[str]


@dataclass(slots=True)
class TableBuild:
    """The build of one table. `low` is the event where the bracket of the next round begins. `rows` has the ledger's
    row of each partition that is built. The `doubtful` ones are to be read again, with `reads_all` all that are not
    built, and with `rereads_built` those that are built, too."""

    source: SourceSide
    side: TargetSide
    name: TableName
    batch: int
    tell: Tell
    context: HopContext = field(init=False)
    hidden: TableName = field(init=False)
    low: EventId = 0
    incarnation: str = ""
    table: Table | None = None
    rows: dict[str, ObjectRow] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    reads_all: bool = True
    rereads_built: bool = False
    total: int = 0
    bytes: int = 0
    unsure: UnsureDirectories = field(default_factory=UnsureDirectories)

    def __post_init__(self) -> None:
        no_images = ReadImages(ExactTable(self.name, 0))
        self.context = HopContext(self.side, no_images, lambda data: Listing(data.location, ()), {}, AppliedChanges())
        gaps = self.source.gaps.recorded() if self.source.gaps is not None else ()
        self.hidden = hidden_name(self.side.admission.name_at_target(self.name), f"read{len(gaps)}")

    def run(self) -> BuiltTable | None:
        for attempt in range(ROUNDS):
            if not self.begin():
                return None
            high, quiet = self.round()
            if not self.doubtful and not self.reads_all:
                return self.finish(high)
            self.low = high
            if quiet:
                self.source.clock.sleep(min(0.02 * (attempt + 1), 0.5))
        raise TableIsTooBusy(f"{self.name} changes faster than it can be read: {ROUNDS} rounds did not settle it")

    # Begin

    def begin(self) -> bool:
        """Read the header; the first time, go on with a build or begin one. Return False where there is nothing to
        build."""
        if not self.incarnation:
            self.low = self.source.log.current()
        table = self.table = self.source.catalog.table(self.name)
        if table is None or not is_partitioned(table) or obstacle(table):
            clear(self.context, self.hidden)
            return False
        if not self.incarnation and not self.resume():
            self.start()
        return True

    def start(self) -> None:
        """Make an empty table under the hidden name."""
        self.incarnation = f"r{self.low}"
        definition = self.definition(self.low)
        begin(self.context, self.name, self.hidden, definition)

    def resume(self) -> bool:
        """Tell whether a build that was left behind goes on, and take up its partitions then. It has to be of the
        header that was read, and the journal has to have all events since."""
        hidden_table = self.side.catalog.table(self.hidden)
        parameters = (hidden_table.parameters if hidden_table is not None else None) or {}
        low = event_of(parameters)
        if hidden_table is None or parameters.get(SOURCE) != source_mark(self.side.policy.source, self.name):
            return False
        if not low <= self.low or not reaches_back(self.source, low):
            return False
        self.incarnation = parameters.get(INCARNATION, "")
        target_name = self.side.admission.name_at_target(self.name)
        expected_table = self.definition(low)
        is_at_source = self.context.lies_at_source(self.name, expected_table)
        expected_location = self.context.empty_directory if is_at_source else location_of(expected_table)
        if location_of(hidden_table) != expected_location or not unchanged(
            replace(hidden_table, database=target_name.database, name=target_name.table), expected_table
        ):
            self.incarnation = ""
            return False
        self.low = low
        for names in batches(list(self.side.catalog.partition_names(self.hidden)), self.batch):
            self.remember_left(self.without_early(self.side.catalog.partitions(self.hidden, names)))
        text = "%s: %s goes on with %d partitions from event %d"
        LOG.info(text, self.side.policy.target, self.name, len(self.rows), low)
        return True

    def without_early(self, built_partitions: Mapping[str, Partition]) -> Mapping[str, Partition]:
        """Drop those of the partitions that still lie in the empty directory, and return the others."""
        early_names = [name for name, partition in built_partitions.items() if has_no_place(partition)]
        self.context.drop_partitions(self.hidden, early_names)
        return {name: partition for name, partition in built_partitions.items() if name not in early_names}

    def remember_left(self, built_partitions: Mapping[str, Partition]) -> None:
        files = self.files_there(built_partitions)
        for name, partition in built_partitions.items():
            event_id, definition = event_of(partition.parameters), text_of_partition(partition)
            self.rows[name] = row_of(
                self.name, name, self.incarnation, event_id, "add_partition", files.get(name), definition
            )

    def definition(self, event_id: EventId) -> Table:
        """Return the table's definition for the target as of event `event_id`, with its directory made."""
        assert self.table is not None
        self.context.images = ReadImages(ExactTable(self.name, event_id, self.table))
        head = Head(NEW, Version(event_id, -1), self.incarnation, None, event_id)
        # No reader sees the hidden table yet, so it may go on in its directory.
        self.context.shown.pop(self.name, None)
        definition, _ = new_table(self.context, self.name, head)
        self.context.shown[self.name] = ShownTable(definition)
        return definition

    # Rounds

    def round(self) -> tuple[EventId, bool]:
        """Read what is in doubt and build it, then look what events touched meanwhile. The last batch is built only
        when that is known, so that the bracket of a short round ends before any file is copied. Return the event that
        ends the bracket, and whether no event touched the table."""
        last_batch: PartitionBatch | None = None
        unbuilt: set[str] = set()
        for names in batches(self.todo(), self.batch):
            if last_batch is not None:
                unbuilt |= self.put(last_batch, ())
            last_batch = self.read(names)
        high = self.source.log.current()
        touched = touching(self.source, self.name, Span(self.low, high)) if high > self.low else []
        if any(entry.keys.kind in MAY_REBIND_TABLE_NAME for entry in touched):
            self.give_up()
            return high, False
        self.reads_all = self.rereads_built = any(is_of_all(entry) for entry in touched)
        doubtful = {part for entry in touched for part in (*entry.keys.partitions, *entry.keys.others)}
        if last_batch is not None:
            unbuilt |= self.put(last_batch, doubtful)
        self.doubtful = doubtful | unbuilt
        return high, not touched

    def todo(self) -> list[str]:
        if not self.reads_all:
            self.total = max(self.total, len(self.rows.keys() | self.doubtful))
            return sorted(self.doubtful)
        names = self.source.catalog.partition_names(self.name)
        self.total = len(names)
        self.drop(self.rows.keys() - set(names))
        rereads_built = self.rereads_built
        return [name for name in names if rereads_built or name not in self.rows or name in self.doubtful]

    def give_up(self) -> None:
        """Drop what was built, so that the next round begins anew: the name may mean another table now."""
        self.incarnation, self.rows, self.doubtful, self.reads_all, self.rereads_built = "", {}, set(), True, False
        clear(self.context, self.hidden)

    def read(self, names: Sequence[str]) -> PartitionBatch:
        if self.side.stopping.is_set():
            raise Unavailable(f"{self.name} is not built yet", "calque ends", "It goes on when it runs again")
        started_ns = self.source.clock.now_ns()
        partitions = self.source.catalog.partitions(self.name, names)
        if not self.side.admission.copies(self.name):
            return PartitionBatch(names, partitions, {}, ())
        places = {
            name: location for name, partition in partitions.items() if (location := location_of(partition)) is not None
        }
        return PartitionBatch(names, partitions, *listed(self.source, places, started_ns, self.unsure))

    def put(self, batch: PartitionBatch, doubtful: Collection[str]) -> set[str]:
        """Bring the hidden table to what the batch read, but for `doubtful` partitions. Return those that are to be
        read again, because their files were unsettled or could not be copied."""
        skipped_names = {*doubtful, *batch.unsettled}
        names = [name for name in batch.names if name not in skipped_names]
        same_names = self.same(batch, [name for name in names if name in self.rows and name in batch.partitions])
        self.drop([name for name in names if name in self.rows and name not in same_names])
        missing = set(batch.unsettled)
        try:
            self.add(batch, [name for name in names if name in batch.partitions and name not in same_names])
        except ContentLost as lost:
            LOG.info("%s: a batch of %s is read again: %s", self.side.policy.target, self.name, lost)
            missing |= {name for name in names if name not in same_names}
        self.tell(self.name, len(self.rows), self.total)
        return missing

    def same(self, batch: PartitionBatch, names: Sequence[str]) -> set[str]:
        """Return those of the built partitions that look as they were read."""
        hidden_partitions = self.side.catalog.partitions(self.hidden, names) if names else {}
        files = self.files_there(hidden_partitions)
        target_name, same_names = self.side.admission.name_at_target(self.name), set()
        for name, partition in hidden_partitions.items():
            expected_partition = self.side.imaging.partition(
                batch.partitions[name], self.name, Marks(self.low, ""), None
            )
            same_files = name not in files or files[name].fingerprint() == batch.listings[name].fingerprint()
            under_its_name = replace(partition, database=target_name.database, table=target_name.table)
            if same_files and stays(
                self.name, under_its_name, batch.partitions[name], expected_partition, self.side.imaging
            ):
                same_names.add(name)
        return same_names

    def files_there(self, partitions: Mapping[str, Partition]) -> dict[str, Listing]:
        """Return the listings of the partitions' directories at the target, by partition; none where files stay at the
        source."""
        if not self.side.admission.copies(self.name):
            return {}
        places = {
            name: location for name, partition in partitions.items() if (location := location_of(partition)) is not None
        }
        listings = self.side.storage.list(sorted(set(places.values())))
        return {name: listings[location] for name, location in places.items()}

    def add(self, batch: PartitionBatch, names: Sequence[str]) -> None:
        low, context = self.low, self.context
        partitions = {name: batch.partitions[name] for name in names}
        listings = {listing.location: listing for listing in batch.listings.values()}
        context.images = ReadImages(ExactTable(self.name, low, self.table, partitions))
        context.listing = lambda data: listings.get(data.location, Listing(data.location, ()))
        parts = [
            (name, Part(f"{name}@{low}", Version(low, index), self.data(batch, name), self.incarnation, low))
            for index, name in enumerate(names)
        ]
        writes = new_partitions(context, self.name, context.shown_table(self.name), parts)
        hidden_partitions = replace_table((write.definition for write in writes.values()), self.hidden)
        context.add_partitions(self.name, self.hidden, hidden_partitions)
        for name, write in writes.items():
            placed = write.placed
            listing = placed.listing() if placed is not None else None
            definition = text_of_partition(write.definition)
            self.rows[name] = row_of(self.name, name, self.incarnation, low, write.change, listing, definition)

    def data(self, batch: PartitionBatch, name: str) -> Data:
        if not self.side.admission.copies(self.name):
            return Data(self.low, location_of(batch.partitions[name]) or "", stays=True)
        return Data(self.low, batch.listings[name].location if name in batch.listings else "")

    def drop(self, partition_names: Iterable[str]) -> None:
        names = list(partition_names)
        self.context.drop_partitions(self.hidden, names)
        for name in names:
            del self.rows[name]

    # End

    def finish(self, high: EventId) -> BuiltTable:
        """Rename the table in. All that is in it is so at event `high`."""
        definition, context = self.definition(high), self.context
        context.call(self.side.catalog.alter_table, self.hidden, definition)
        place = Listing(location_of(definition) or "", ())
        row = row_of(self.name, "", self.incarnation, high, "create_table", place, text_of_table(definition))
        context.applied.objects = [row, *self.rows.values()]
        head = Head(NEW, Version(high, -1), self.incarnation, None, high)
        hop = Hop(high, HiddenBuild(self.name, head, ()), len(self.rows), context.applied.bytes)
        plan = GroupPlan((self.name,), 1, (hop,))
        advanced = GroupOutcome((self.name,), plan, True, high, frozenset({self.name}), context.applied)
        return BuiltTable(ExactTable(self.name, high, self.table), list(self.rows), advanced)


def reaches_back(source: SourceSide, event_id: EventId) -> bool:
    """Tell whether the journal has, or will have, all events after `event_id`."""
    oldest, last = source.journal.oldest(), source.journal.last()
    return (last is None or last <= event_id) or (oldest is not None and oldest <= event_id + 1)


def is_of_all(entry: Entry) -> bool:
    """Tell whether the event may have changed any of the table's partitions."""
    if entry.keys.kind is EventKind.FACET:
        return False
    return entry.keys.kind not in OF_PARTITIONS_OR_FILES or not (entry.keys.partitions or entry.keys.others)


def replace_table(partitions: Iterable[Partition], target_name: TableName) -> list[Partition]:
    return [replace(partition, database=target_name.database, table=target_name.table) for partition in partitions]
