"""Contents that nobody listed: whatever a writer does to names, sizes and times, what is inferred of them is true.

The writer reuses names, keeps sizes and restores times; it overwrites, truncates and rewrites in place, with events
that say so and with events that don't. After each of its calls the truth is noted, and sometimes it is evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.core.formats.layout import join
from calque.core.images.image import EVENT
from calque.core.states.fold import Unfoldable, fold, groups
from calque.engine.sides.sides import SourceSide
from calque.engine.target.observe import ShownTable
from calque.engine.window.prepare import moves_in
from calque.engine.window.unlisted_contents import infer_listings, object_runs
from calque.model.files import File, Listing
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import EventId, Span, TableName
from calque.model.plan import Data
from support.memory.journal import MemoryJournal
from support.memory.metastore import HIVE_3, HIVE_4, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage
from support.sources.writers import Directories

NAMES = ("000000_0", "000001_0", "sub/000000_0")
START_NS = 1_700_000_000_000_000_000
TIMES = (START_NS - 1_000_000_000, START_NS - 2_000_000_000)
PLAIN, DAYS = ("a", "b"), "days"
VALUES = ("1", "2")
EXAMPLES = {"check": 60, "prove": 20_000}


@dataclass(frozen=True, slots=True)
class Act:
    """One call of the writer's: `choice` says which table, partition, names and times; `listed` whether its content is
    evidence afterwards."""

    what: str
    choice: int
    listed: bool


Shown = dict[TableName, ShownTable | None]
Truth = dict[str, tuple[File, ...]]


@dataclass
class Trickster:
    """A source whose files are written so that a later listing tells as little as possible."""

    hive_4: bool
    now_ns: int = START_NS
    written: int = 0
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    evidence: dict[Data, Listing] = field(default_factory=dict)
    truths: dict[EventId, Truth] = field(default_factory=dict)
    """The content of each directory after an event."""
    looks: dict[EventId, Shown] = field(default_factory=dict)
    """All tables after a call, marked as a target would mark them."""
    newest: dict[tuple[TableName, str], EventId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = MemoryMetastore(
            HIVE_4 if self.hive_4 else HIVE_3,
            "file:/source",
            directories=Directories(self.storage),
            clock=lambda: self.now_ns / 1e9,
        )
        self.source.create_database(Database("d"))
        self.create("a", ())
        self.create(DAYS, (Column("p", "string"),))
        self.look(0, listed=False)

    def create(self, name: str, keys: tuple[Column, ...]) -> None:
        storage = Storage((Column("x", "int"),))
        self.source.create_table(Table(name, "d", storage=storage, partition_keys=keys, type="MANAGED_TABLE"))

    def act(self, act: Act) -> None:
        self.now_ns += 300_000_000
        before = self.source.current()
        getattr(self, act.what)(act.choice)
        if self.source.current() != before:
            self.look(before, act.listed)

    def look(self, before: EventId, listed: bool) -> None:
        now = self.source.current()
        truth: Truth = {}
        shown: Shown = {}
        for table in self.source.tables("d"):
            name, stored = TableName("d", table), self.source.the_table(TableName("d", table))
            seen = ShownTable(stored.table, {f"p={part.values[0]}": part for part in stored.partitions.values()})
            for partition, thing in {"": stored.table, **seen.partitions}.items():
                location = location_of(thing) or ""
                seen.listings[partition] = self.storage.list([location])[location]
                truth[location] = seen.listings[partition].files
            shown[name] = seen
        self.looks[now] = shown
        for event_id in range(before + 1, now + 1):
            self.truths[event_id] = truth
        if listed:
            for location, files in truth.items():
                self.evidence[Data(now, location)] = Listing(location, files)

    # What it does to files

    def objects(self) -> list[tuple[TableName, Partition | None, str]]:
        """Everything that has a directory of data."""
        found: list[tuple[TableName, Partition | None, str]] = []
        for table in self.source.tables("d"):
            name, stored = TableName("d", table), self.source.the_table(TableName("d", table))
            if table == DAYS:
                found += [(name, part, location_of(part) or "") for part in stored.partitions.values()]
            else:
                found.append((name, None, location_of(stored.table) or ""))
        return found

    def any_object(self, choice: int) -> tuple[TableName, Partition | None, str]:
        objects = self.objects()
        return objects[choice % len(objects)]

    def put(self, location: str, choice: int) -> list[str]:
        """One or two files, of one byte each, with names that were used before and perhaps an old time."""
        chosen = (*((name,) for name in NAMES), NAMES[:2])[choice // 7 % 4]
        paths = [join(location, name) for name in chosen]
        for path in paths:
            self.written += 1
            self.storage.write(path, bytes([self.written % 256]))
            times = (self.now_ns, *TIMES)
            self.storage.date({path: times[choice // 5 % 3]})
        return paths

    def empty(self, location: str) -> None:
        self.storage.remove([join(location, file.path) for file in self.storage.list([location])[location].files])

    def insert(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        paths = self.put(location, choice)
        self.source.insert(name, paths, values=part.values if part else None)

    def overwrite(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.empty(location)
        self.source.insert(name, self.put(location, choice), values=part.values if part else None, replace=True)

    def overwrite_without_saying_so(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.empty(location)
        self.put(location, choice)
        self.source.insert(name, [], values=part.values if part else None)

    def truncate(self, choice: int) -> None:
        name, part, _ = self.any_object(choice)
        self.source.truncate_table(name, [f"p={part.values[0]}"] if part else None)

    def truncate_without_event(self, choice: int) -> None:
        """Not of sub-directories: a metastore does not list those of new objects, so nothing tells that they went."""
        location = self.any_object(choice)[2]
        if not any("/" in file.path for file in self.storage.list([location])[location].files):
            self.empty(location)

    def rewrite_without_event(self, choice: int) -> None:
        """A file that is there, with a time of its own. Only scans tell of that."""
        location = self.any_object(choice)[2]
        there = self.storage.list([location])[location].files
        if there:
            self.now_ns += 2_000_000_000
            path = join(location, there[choice % len(there)].path)
            self.storage.write(path, b"?")
            self.storage.date({path: self.now_ns})
            self.now_ns += 2_000_000_000

    def truncate_as_statistics(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.empty(location)
        self.alter(name, part, numFiles=str(choice % 2))

    def rewrite_as_statistics(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.put(location, choice)
        self.alter(name, part, numRows=str(choice % 2))

    def rewrite_with_an_empty_alteration(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.put(location, choice)
        self.alter(name, part)

    def rewrite_with_statistics_of_spark(self, choice: int) -> None:
        name, part, location = self.any_object(choice)
        self.empty(location)
        self.put(location, choice)
        self.alter(name, part, **{"spark.sql.statistics.totalSize": str(self.written)})

    def set_property(self, choice: int) -> None:
        """The metastore may count the files at the same time."""
        name, part, location = self.any_object(choice)
        files = self.storage.list([location])[location].files
        counted = {"numFiles": str(len(files)), "totalSize": str(sum(file.size for file in files))}
        self.alter(name, part, k=str(self.now_ns), **(counted if choice % 3 else {}))

    def alter(self, name: TableName, part: Partition | None, **parameters: str) -> None:
        if part is not None:
            self.source.alter_partition(name, replace(part, parameters={**(part.parameters or {}), **parameters}))
        else:
            table = self.source.the_table(name).table
            self.source.alter_table(name, replace(table, parameters={**(table.parameters or {}), **parameters}))

    # What it does to objects

    def rename(self, choice: int) -> None:
        there = self.source.tables("d")
        free = [name for name in PLAIN if name not in there]
        names = [name for name in there if name != DAYS]
        if names and free:
            name = TableName("d", names[choice % len(names)])
            self.storage.remove([f"file:/source/d.db/{free[0]}"])
            self.source.alter_table(name, replace(self.source.the_table(name).table, name=free[0]))

    def rename_partitioned(self, choice: int) -> None:
        """There and back, which moves its partitions."""
        for was, now in ((DAYS, "moved"), ("moved", DAYS))[: 1 + choice % 2]:
            if was in self.source.tables("d"):
                table = self.source.the_table(TableName("d", was)).table
                self.source.alter_table(TableName("d", was), replace(table, name=now))

    def create_again(self, choice: int) -> None:
        names = [name for name in self.source.tables("d") if name in PLAIN]
        if names:
            name = names[choice % len(names)]
            self.source.drop_table(TableName("d", name))
            self.create(name, ())

    def add_partition(self, choice: int) -> None:
        if DAYS in self.source.tables("d"):
            stored = self.source.the_table(TableName("d", DAYS))
            value = VALUES[choice % 2]
            if (value,) not in stored.partitions:
                self.put(f"{location_of(stored.table)}/p={value}", choice)
                self.source.add_partitions(
                    TableName("d", DAYS), [Partition((value,), "d", DAYS, storage=Storage((Column("x", "int"),)))]
                )

    def drop_partition(self, choice: int) -> None:
        if (chosen := self.any_partition(choice)) is not None:
            self.source.drop_partitions(TableName("d", DAYS), [f"p={chosen.values[0]}"])

    def rename_partition(self, choice: int) -> None:
        if (chosen := self.any_partition(choice)) is not None:
            there = self.source.the_table(TableName("d", DAYS)).partitions
            free = [value for value in VALUES if (value,) not in there]
            if free:
                renamed = replace(chosen, values=(free[0],))
                self.source.rename_partition(TableName("d", DAYS), chosen.values, renamed)

    def any_partition(self, choice: int) -> Partition | None:
        if DAYS not in self.source.tables("d"):
            return None
        partitions = list(self.source.the_table(TableName("d", DAYS)).partitions.values())
        return partitions[choice % len(partitions)] if partitions else None


ACTS = (
    *["insert"] * 6,
    *["set_property"] * 3,
    *["overwrite"] * 2,
    *["add_partition"] * 2,
    "overwrite_without_saying_so",
    "truncate",
    "truncate_without_event",
    "rewrite_without_event",
    "rewrite_with_an_empty_alteration",
    "truncate_as_statistics",
    "rewrite_as_statistics",
    "rewrite_with_statistics_of_spark",
    "rename",
    "rename_partitioned",
    "create_again",
    "drop_partition",
    "rename_partition",
)
DRAWN = st.builds(Act, st.sampled_from(ACTS), st.integers(0, 419), st.sampled_from([True, False, False]))


def inferred(trickster: Trickster, begin: EventId) -> dict[Data, Listing]:
    """What is inferred in a window from event `begin` to the end, by a target that shows what was there then."""
    journal = MemoryJournal()
    journal.append(rows_of_events(trickster.source.events()))
    log, reader = MemoryLog(trickster.source), MemoryReader(trickster.source)
    side = SourceSide("hq", log, reader, journal, MemoryEvidence(), trickster.storage)
    entries = [
        entry
        for entry in journal.entries(Span(begin, trickster.source.current()))
        if entry.keys.table is not None and entry.keys.table.table
    ]
    found: dict[Data, Listing] = {}
    for group in groups(entries):
        try:
            moves = moves_in(side, group)
            chain = fold(group, carrying=frozenset(move.event_id for move in moves))
        except Unfoldable:
            continue
        shown = {name: marked(trickster.looks[begin].get(name), begin) for name in chain.tables}
        found |= infer_listings(object_runs(side, chain, group, moves, trickster.evidence, shown, lambda _: begin))
    return found


def marked(table: ShownTable | None, event_id: EventId) -> ShownTable | None:
    """As a target shows it that has caught up with the event."""
    if table is None:
        return None
    mark = {EVENT: str(event_id)}
    partitions = {name: replace(part, parameters=mark) for name, part in table.partitions.items()}
    return ShownTable(replace(table.table, parameters=mark), partitions, table.listings)


def wrong(trickster: Trickster, found: dict[Data, Listing]) -> list[str]:
    return [
        f"{data} is {listing.files}, not {trickster.truths[data.event_id][data.location]}"
        for data, listing in found.items()
        if set(listing.files) != set(trickster.truths[data.event_id][data.location])
    ]


@settings(max_examples=EXAMPLES.get(settings.get_current_profile_name(), 300))
@given(st.booleans(), st.lists(DRAWN, min_size=3, max_size=14), st.integers(0, 99))
def test_no_inferred_content_is_ever_wrong(hive_4: bool, acts: Sequence[Act], begin: int) -> None:
    trickster = Trickster(hive_4)
    for act in acts:
        trickster.act(act)
    looks = sorted(trickster.looks)
    assert wrong(trickster, inferred(trickster, looks[begin % len(looks)])) == []


def test_where_names_are_new_each_insert_below_a_listing_is_known() -> None:
    trickster = Trickster(hive_4=True)
    begin = trickster.source.current()
    for what, choice, listed in (("insert", 0, False), ("set_property", 0, False), ("insert", 7, True)):
        trickster.act(Act(what, choice, listed))
    found = inferred(trickster, begin)
    assert wrong(trickster, found) == []
    assert {data.event_id - begin: [file.path for file in listing.files] for data, listing in found.items()} == {
        1: ["000000_0"],
        2: ["000000_0"],
    }
