"""Hops at catalogs of every kind: which calls are made, what a reader sees between them, and what a death leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import pytest

from calque.core.formats.layout import join
from calque.core.images.image import DROPPED, EVENT, INCARNATION, STATE, same_definition
from calque.core.plan.limits import HIDDEN_BATCH
from calque.engine.apply import AppliedChanges, Applier
from calque.engine.apply.hidden_table import hidden_name
from calque.engine.apply.statistics import ACCURATE
from calque.engine.exact_reads.land import land
from calque.engine.files.copies import ContentLost
from calque.engine.sides.announced_exceptions import bridges, in_parts
from calque.engine.sides.sides import TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import observe
from calque.engine.window.advance import GroupOutcome
from calque.model.facets import ColumnStatistics, ForeignKey, Longs, NotNull, PrimaryKey, StatisticsCounts
from calque.model.files import Listing
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import Bridge
from calque.model.names import TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    Head,
    HiddenBuild,
    Hop,
    Operation,
    Part,
    PrepareFlipSweep,
    Rebuild,
    RenamePartition,
    Version,
)
from calque.model.policy import Limits, Policy, TargetCapabilities
from support.memory.ledger import MemoryLedger
from support.memory.metastore import DELTA_LIKE, GLUE_LIKE, HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.writers import Directories

ORDERS, PAST = TableName("sales", "orders"), TableName("sales", "past")
SMALL = TargetCapabilities(Limits(add_partitions=3, alter_partitions=2, drop_partitions=2))
Rows = Mapping[str, tuple[str, ...]]
"""Files that a reader finds, by partition; partitions without files are left out."""


class Died(BaseException):
    """The process was killed."""


@dataclass
class Definitions:
    """What the source's objects look like: an event's table has the columns of `columns`, every partition the same."""

    columns: Mapping[int, Sequence[str]] = field(default_factory=dict)
    tables: Mapping[int, TableName] = field(default_factory=dict)
    places: Mapping[int, str] = field(default_factory=dict)
    values: dict[Version, str] = field(default_factory=dict)
    kind: str = "MANAGED_TABLE"

    def storage(self, event_id: int, location: str) -> Storage:
        columns = tuple(Column(name, "int") for name in self.columns.get(event_id, ["x"]))
        return Storage(columns, location, "in", "out", serde=SerDe(class_name="text", parameters={}))

    def place(self, version: Version) -> str:
        return self.places.get(version.event_id, "file:/source/orders")

    def table(self, version: Version, /) -> Table:
        name = self.tables.get(version.event_id, ORDERS)
        return Table(
            name.table,
            name.database,
            storage=self.storage(version.event_id, self.place(version)),
            partition_keys=(Column("p", "string"),),
            parameters={"v": str(version.event_id)},
            type=self.kind,
            owner_type=1,
        )

    def partition(self, version: Version, /) -> Partition:
        value = self.values[version]
        location = join(self.place(version), f"p={value}")
        return Partition(
            (value,),
            *ORDERS,
            storage=self.storage(version.event_id, location),
            parameters={"v": str(version.event_id)},
        )


class Rig:
    """One target. `calls` are the catalog's writing calls so far; `mortal` counts down to death before and after each
    of them, and before each call at the storage; `look` is called after each."""

    def __init__(
        self, abilities: TargetCapabilities | None = None, message_bytes: int = sys.maxsize, **policy: str
    ) -> None:
        self.storage = MemoryStorage()
        self.store = MemoryMetastore(HIVE_4, "file:/managed", directories=Directories(self.storage))
        self.storage.before = lambda _call, _about: self.perhaps_die()
        self.ledger = MemoryLedger()
        self.catalog = MemoryCatalog(self.store, abilities, self.before, self.after, message_bytes)
        made = Policy("dr", "hq", warehouse="file:/target", **policy)  # type: ignore[arg-type]
        self.side = TargetSide.of(made, self.catalog, self.ledger, self.storage)
        self.store.create_database(Database("sales"))
        self.definitions = Definitions()
        self.calls: list[str] = []
        self.mortal: int | None = None
        self.counting = Lock()
        """Calls about hidden tables come from several threads."""
        self.look: Callable[[], None] = lambda: None

    def before(self, method: str) -> None:
        if method in READS:
            return
        self.perhaps_die()
        self.calls.append(method)

    def after(self, method: str) -> None:
        if method not in READS:
            self.look()
            self.perhaps_die()

    def perhaps_die(self) -> None:
        with self.counting:
            if self.mortal is not None:
                self.mortal -= 1
                if self.mortal < 0:
                    self.mortal = None
                    raise Died

    # The source

    def part(self, event_id: int, value: str, *files: str, added: int = 0) -> tuple[str, Part]:
        """A partition as `event_id` leaves it: a definition of its own, and these files and no others."""
        version = Version(event_id, len(self.definitions.values))
        self.definitions.values[version] = value
        location = f"file:/source/{event_id}/p={value}"
        self.storage.make_directories([location])
        for name in files:
            self.storage.write(join(location, name), name.encode())
        incarnation = str(added or event_id)
        return f"p={value}", Part(f"p={value}@{incarnation}", version, Data(event_id, location), incarnation, event_id)

    def listing(self, data: Data) -> Listing:
        return self.storage.list([data.location])[data.location]

    # The target

    def run(self, *hops: Hop | Operation, touched: Sequence[str] = ()) -> AppliedChanges:
        """Observe the tables, with the touched partitions, and apply the hops, in a process of its own."""
        self.side.announced.load(self.ledger.records(), 0)
        self.calls.clear()
        shown = observe(self.side, [ORDERS, PAST], {ORDERS: touched, PAST: touched})
        applied = AppliedChanges()
        applier = Applier(self.side, self.definitions, self.listing, shown, None, applied)
        for hop in hops:
            applier.run(hop if isinstance(hop, Hop) else Hop(90, hop, 1))
        return applied

    def land(self, exact: ExactTable) -> GroupOutcome:
        self.side.announced.load(self.ledger.records(), 0)
        self.calls.clear()
        return land(self.side, exact)

    def partitions(self, table: TableName = ORDERS) -> dict[str, Partition]:
        return dict(self.store_reader().partitions(table, self.store_reader().partition_names(table)))

    def store_reader(self) -> MemoryCatalog:
        return MemoryCatalog(self.store)

    def rows(self) -> Rows:
        mortal, self.mortal = self.mortal, None
        found = {name: self.files(location_of(one)) for name, one in self.partitions().items()}
        self.mortal = mortal
        return {name: files for name, files in found.items() if files}

    def files(self, location: str | None) -> tuple[str, ...]:
        return tuple(file.path for file in self.storage.list([location or ""])[location or ""].files)

    def mark(self, name: str, key: str = EVENT, table: TableName = ORDERS) -> str | None:
        return (self.partitions(table)[name].parameters or {}).get(key)

    def table_mark(self, table: TableName = ORDERS) -> str | None:
        found = self.store_reader().table(table)
        return (found.parameters or {}).get(EVENT) if found else None


READS = {
    "table",
    "database",
    "partitions",
    "few_partitions",
    "partition_names",
    "databases",
    "tables",
    "functions",
    "function",
    "constraints",
    "foreign_keys_to",
    "table_statistics",
    "partition_statistics",
}


def head(event_id: int, incarnation: str = "10") -> Head:
    return Head(1, Version(event_id), incarnation, None, event_id)


def built(rig: Rig, *parts: tuple[str, Part]) -> Rig:
    """With the table `orders` of event 10 and these partitions."""
    rig.run(HiddenBuild(ORDERS, head(10), parts))
    return rig


# Any difference in one commit


def test_a_table_with_partitions_is_created_by_one_commit() -> None:
    rig = Rig(DELTA_LIKE)
    rig.run(CommitTable(ORDERS, None, head(10), (rig.part(11, "1", "a"), rig.part(12, "2", "b"))))
    assert rig.calls == ["commit_table"]
    assert rig.rows() == {"p=1": ("a",), "p=2": ("b",)}
    assert (rig.table_mark(), rig.mark("p=1"), rig.mark("p=2")) == ("10", "11", "12")


def test_any_difference_is_one_commit_and_carries_its_marks() -> None:
    rig = Rig(DELTA_LIKE)
    built(rig, rig.part(11, "changed", "a"), rig.part(11, "gone", "b"), rig.part(11, "kept", "c"))
    before = rig.partitions()
    rig.definitions.columns = {20: ["x", "y"]}
    changed, new = rig.part(21, "changed", "a2", added=11), rig.part(22, "new", "d")
    operation = CommitTable(
        ORDERS, ORDERS, head(20), (changed, ("p=gone", None), new), frozenset({"p=changed"}), cascade=20
    )
    applied = rig.run(operation, touched=["p=changed", "p=gone", "p=new"])
    after = rig.partitions()
    assert rig.calls == ["commit_table"]
    assert {name: rig.files(location_of(one)) for name, one in after.items()} == {
        "p=changed": ("a2",),
        "p=kept": ("c",),
        "p=new": ("d",),
    }
    assert location_of(after["p=changed"]) != location_of(before["p=changed"])
    assert location_of(after["p=kept"]) == location_of(before["p=kept"])
    assert columns_of(after["p=kept"]) == ["x", "y"]
    assert columns_of(after["p=new"]) == ["x"]
    assert [rig.table_mark(), *(rig.mark(name, EVENT) for name in after)] == ["20", "21", "11", "22"]
    assert [rig.mark(name, INCARNATION) for name in after] == ["11", "11", "22"]
    assert sorted((row.table, row.partition, row.change) for row in applied.objects) == [
        ("orders", "", "commit_table"),
        ("orders", "p=changed", "alter_partition"),
        ("orders", "p=gone", "drop_partition"),
        ("orders", "p=new", "add_partition"),
    ]


def test_a_commit_copies_no_file_of_a_partition_that_it_renames() -> None:
    rig = Rig(DELTA_LIKE)
    built(rig, rig.part(11, "old", "a"))
    place = location_of(rig.partitions()["p=old"])
    name, part = rig.part(20, "new", added=11)
    source = Data(11, "file:/source/11/p=old")
    renamed = replace(part, lineage="p=old@11", data=source)
    applied = rig.run(
        CommitTable(ORDERS, ORDERS, head(10), (("p=old", None), (name, renamed))), touched=["p=old", "p=new"]
    )
    assert rig.rows() == {"p=new": ("a",)}
    assert location_of(rig.partitions()["p=new"]) == place
    assert (rig.mark("p=new"), rig.mark("p=new", INCARNATION)) == ("20", "11")
    assert applied.bytes == 0


# Definitions only


def test_a_location_that_changes_at_the_source_is_followed_where_no_data_are_copied() -> None:
    rig = Rig(data="none")
    built(rig, rig.part(11, "1"))
    name, part = rig.part(20, "1", added=11)
    rig.definitions.places = {20: "file:/elsewhere"}
    rig.run(AlterPartitions(ORDERS, ((name, part),)), AlterTable(ORDERS, ORDERS, head(20)), touched=[name])
    table = rig.store_reader().table(ORDERS)
    assert table
    assert [location_of(table), location_of(rig.partitions()[name])] == ["file:/elsewhere", "file:/elsewhere/p=1"]


# Files that stay at the source


def of_source(rig: Rig) -> list[str]:
    return [path for path in rig.storage.tree("file:/source") if "orders" in path]


def test_what_lies_at_the_source_is_made_over_an_empty_directory_and_switched() -> None:
    rig = Rig(data="none")
    seen: list[tuple[str, dict[str, str | None]]] = []
    rig.look = lambda: seen.append((rig.calls[-1], {name: location_of(one) for name, one in rig.partitions().items()}))
    rig.run(CreateTable(ORDERS, head(10)))
    assert rig.calls == ["create_table", "create_database", "create_table", "alter_table"]
    name, part = rig.part(11, "1")
    seen.clear()
    rig.run(AddPartitions(ORDERS, ((name, part),)))
    assert seen == [
        ("add_partitions", {name: "file:/target/_calque.db/empty"}),
        ("alter_partitions", {name: "file:/source/11/p=1"}),
    ]
    assert location_of(rig.store_reader().table(ORDERS)) == "file:/source/orders"
    assert (rig.mark(name), rig.mark(name, STATE)) == ("11", None)
    assert of_source(rig) == []


def test_a_partition_that_a_death_left_in_the_empty_directory_is_switched_by_the_next_process() -> None:
    rig = Rig(data="none")
    built(rig)
    name, part = rig.part(11, "1")
    rig.mortal = 2
    with pytest.raises(Died):
        rig.run(AddPartitions(ORDERS, ((name, part),)))
    assert (rig.mark(name), rig.mark(name, STATE)) == ("0", "early")
    rig.run(AlterPartitions(ORDERS, ((name, part),)), touched=[name])
    assert (rig.mark(name), rig.mark(name, STATE)) == ("11", None)
    assert location_of(rig.partitions()[name]) == "file:/source/11/p=1"


def test_a_view_has_no_directory_and_is_made_by_one_call() -> None:
    rig = Rig(data="none")
    rig.definitions.kind = "VIRTUAL_VIEW"
    rig.run(CreateTable(ORDERS, head(10)))
    assert rig.calls == ["create_table"]


def test_a_renamed_partition_lies_where_the_source_has_moved_it() -> None:
    rig = Rig(data="none")
    built(rig, rig.part(11, "1"))
    name, part = rig.part(20, "2", added=11)
    rig.run(RenamePartition(ORDERS, "p=1", name, part), touched=["p=1"])
    assert rig.calls == ["alter_partitions", "rename_partition"]
    assert {name: location_of(one) for name, one in rig.partitions().items()} == {"p=2": "file:/source/orders/p=2"}


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"EXTERNAL": "TRUE", "external.table.purge": "true"}, "EXTERNAL_TABLE"),
        ({"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}, "EXTERNAL_TABLE"),
        ({"EXTERNAL": "FALSE"}, "MANAGED_TABLE"),
    ],
)
def test_what_users_did_to_a_table_that_lies_at_the_source_is_taken_back_before_it_is_worked_on(
    parameters: Mapping[str, str], kind: str
) -> None:
    rig = Rig(data="none")
    built(rig, rig.part(11, "1"))
    table = rig.store.the_table(ORDERS).table
    rig.store.alter_table(ORDERS, replace(table, parameters={**(table.parameters or {}), **parameters}, type=kind))
    shown = observe(rig.side, [ORDERS], {})
    applier = Applier(rig.side, rig.definitions, rig.listing, shown, None, AppliedChanges())
    rig.calls.clear()
    applier.disarm()
    applier.disarm()
    assert rig.calls == ["alter_table"]
    assert same_definition(rig.store.the_table(ORDERS).table, table)


# Lists, cut to what one call takes


def test_every_list_is_cut_to_what_one_call_takes() -> None:
    rig = Rig(SMALL)
    values = ("1", "2", "3", "4", "5")
    names = [f"p={value}" for value in values]
    rig.run(HiddenBuild(ORDERS, head(10), tuple(rig.part(10, value) for value in values)))
    assert rig.calls == ["create_table", "create_database", "create_table", *["add_partitions"] * 2, "alter_table"]
    rig.run(AlterPartitions(ORDERS, tuple(rig.part(20, value, added=10) for value in values)), touched=names)
    assert rig.calls == ["alter_partitions"] * 3
    rig.run(DropPartitions(ORDERS, tuple(names)), touched=names)
    assert rig.calls == ["drop_partitions"] * 3
    rig.run(AddPartitions(ORDERS, tuple(rig.part(30, value) for value in values)))
    assert rig.calls == ["add_partitions"] * 2
    doomed, changed = names[:3], [rig.part(40, value, "x", added=30) for value in values[3:]]
    added = [rig.part(40, value, "x") for value in ("6", "7", "8", "9")]
    rig.run(PrepareFlipSweep(ORDERS, tuple(added), tuple(changed), tuple(doomed)), touched=names)
    assert rig.calls == [*["add_partitions"] * 2, *["alter_partitions"] * 5, *["drop_partitions"] * 2]
    assert sorted(rig.rows()) == [f"p={value}" for value in ("4", "5", "6", "7", "8", "9")]


# Rows in one call


def test_rows_of_new_changed_and_doomed_partitions_change_in_one_call() -> None:
    rig = Rig()
    built(rig, rig.part(11, "changed", "a"), rig.part(11, "doomed", "b"), rig.part(11, "kept", "c"))
    before = rig.rows()
    seen: list[tuple[str, Rows, list[str]]] = []
    rig.look = lambda: seen.append((rig.calls[-1], rig.rows(), sorted(rig.partitions())))
    operation = PrepareFlipSweep(
        ORDERS, (rig.part(21, "new", "d"),), (rig.part(22, "changed", "a", "e", added=11),), ("p=doomed",)
    )
    rig.run(operation, touched=["p=changed", "p=doomed", "p=new"])
    after = {"p=changed": ("a", "e"), "p=kept": ("c",), "p=new": ("d",)}
    everything = ["p=changed", "p=doomed", "p=kept", "p=new"]
    assert seen == [
        ("add_partitions", before, everything),
        ("alter_partitions", after, everything),
        ("drop_partitions", after, ["p=changed", "p=kept", "p=new"]),
    ]
    assert [(rig.mark(name), rig.mark(name, STATE)) for name in after] == [("22", None), ("11", None), ("21", None)]


def test_a_partition_listed_without_its_rows_says_so_and_carries_no_event_at_which_it_was_not_there() -> None:
    rig = Rig()
    built(rig, rig.part(11, "doomed", "b"))
    operation = PrepareFlipSweep(ORDERS, (rig.part(21, "new", "d"),), (), ("p=doomed",))
    marks = marks_after_each_call(rig)
    rig.run(operation, touched=["p=doomed", "p=new"])
    assert marks == [
        {"p=doomed": ("11", None, None), "p=new": ("0", "early", None)},
        {"p=doomed": ("11", "late", "90"), "p=new": ("21", None, None)},
        {"p=new": ("21", None, None)},
    ]


def test_a_partition_that_goes_before_it_had_rows_stays_early() -> None:
    """Whoever listed it died; the log drops it meanwhile."""
    rig = Rig()
    built(rig, rig.part(11, "doomed", "b"))
    operation = PrepareFlipSweep(ORDERS, (rig.part(21, "new", "d"),), (), ("p=doomed",))

    def die() -> None:
        raise Died

    rig.look = die
    with pytest.raises(Died):
        rig.run(operation, touched=["p=doomed", "p=new"])
    marks = marks_after_each_call(rig)
    rig.run(PrepareFlipSweep(ORDERS, (), (), ("p=doomed", "p=new")), touched=["p=doomed", "p=new"])
    assert marks == [{"p=doomed": ("11", "late", "90"), "p=new": ("0", "early", "90")}, {}]


def marks_after_each_call(rig: Rig) -> list[dict[str, tuple[str | None, ...]]]:
    """What each partition carries after each call that is made from now on."""
    marks: list[dict[str, tuple[str | None, ...]]] = []
    carried = (EVENT, STATE, DROPPED)
    rig.look = lambda: marks.append({name: tuple(rig.mark(name, key) for key in carried) for name in rig.partitions()})
    return marks


# Deaths

KINDS = {
    "hive": (None, "listing"),
    "hive, rows": (None, "rows"),
    "small, rows": (SMALL, "rows"),
    "glue": (GLUE_LIKE, "listing"),
    "delta": (DELTA_LIKE, "listing"),
}
"""Catalogs and atomicities."""


def whole(rig: Rig, exact_at: int, parts: Mapping[str, Sequence[str]]) -> ExactTable:
    """The table as it is read at an event: its partitions' values with their files. A file is written once."""
    partitions, listings = {}, {}
    for value, files in parts.items():
        location = f"file:/source/orders/p={value}"
        rig.storage.make_directories([location])
        for name in files:
            if join(location, name) not in rig.storage.paths():
                rig.storage.write(join(location, name), name.encode())
        version = Version(exact_at, len(partitions))
        rig.definitions.values[version] = value
        partitions[f"p={value}"] = replace(rig.definitions.partition(version), parameters={})
        listing = rig.storage.list([location])[location]
        listings[f"p={value}"] = replace(listing, files=tuple(one for one in listing.files if one.path in files))
    return ExactTable(
        ORDERS, exact_at, replace(rig.definitions.table(Version(exact_at)), parameters={}), partitions, listings
    )


def rows_of(exact: ExactTable) -> Rows:
    found = {name: tuple(file.path for file in listing.files) for name, listing in exact.listings.items()}
    return {name: files for name, files in found.items() if files}


MIXED = (
    {"a": ["1"], "b": ["1"], "c": [], "gone": ["1"], "gone too": []},
    {"a": ["1"], "b": ["1", "2"], "c": ["1"], "new": ["1"], "new too": [], "last": []},
)
GROWN = ({"a": ["1"]}, {value: ["1"] for value in "abcdefg"})


def deaths(
    kind: str, states: tuple[Mapping[str, Sequence[str]], ...]
) -> Iterator[tuple[Rig, list[ExactTable], list[Rows]]]:
    """A target that died before, inside or after each effect of taking it from the first state to the second, and was
    started again; with all that a reader saw."""
    abilities, atomicity = KINDS[kind]
    for moment in range(1000):
        rig = Rig(abilities, atomicity=atomicity)
        read = [whole(rig, 10 * number, parts) for number, parts in enumerate(states, start=1)]
        rig.land(read[0])
        assert rig.rows() == rows_of(read[0])
        seen: list[Rows] = [rig.rows()]
        rig.look = lambda rig=rig, seen=seen: seen.append(rig.rows())  # type: ignore[misc]
        rig.mortal = moment
        try:
            rig.land(read[1])
        except Died:
            rig.land(read[1])
            yield rig, read, seen
        else:
            assert moment > 3
            return


@pytest.mark.parametrize("states", [MIXED, GROWN], ids=["mixed", "grown"])
@pytest.mark.parametrize("kind", KINDS)
def test_dying_at_any_effect_and_starting_again_ends_in_the_same_state(
    kind: str, states: tuple[Mapping[str, Sequence[str]], ...]
) -> None:
    for rig, read, _ in deaths(kind, states):
        assert rig.rows() == rows_of(read[1])
        assert sorted(rig.partitions()) == sorted(read[1].partitions)
        assert {rig.mark(name, STATE) for name in rig.partitions()} == {None}
        own = [location_of(one) for one in rig.partitions().values()]
        assert len(set(own)) == len(own)
        again = rig.land(read[1])
        assert (rig.calls, again.plan.hops) == ([], ())


@pytest.mark.parametrize("kind", ["hive, rows", "delta"])
def test_rows_change_at_once_wherever_it_dies(kind: str) -> None:
    for _, read, seen in deaths(kind, MIXED):
        old, new = rows_of(read[0]), rows_of(read[1])
        assert all(rows in (old, new) for rows in seen)
        assert seen == sorted(seen, key=lambda rows: rows == new)


def test_a_list_that_is_not_atomic_goes_on_where_death_cut_it() -> None:
    for _, read, seen in deaths("glue", GROWN):
        names = sorted(rows_of(read[1]))
        assert [sorted(rows) for rows in seen] == [names[: count + 1] for count in range(len(names))]


# Facets of what is made anew


def with_facets(abilities: TargetCapabilities | None = None) -> Rig:
    """Statistics of the table and of its partitions `old` and `kept`, a key, and a foreign key of another table."""
    rig = Rig(abilities)
    built(rig, rig.part(11, "old", "a"), rig.part(11, "kept", "b"))
    store = rig.store
    store.create_table(Table("lines", "sales", storage=Storage((Column("x", "int"),))))
    store.add_constraints([PrimaryKey(*ORDERS, "x", 1, "pk")])
    store.add_constraints([NotNull(None, *ORDERS, "x", "nn")])
    store.add_constraints([ForeignKey(*ORDERS, "x", "sales", "lines", "x", 1, name="fk")])
    for number, values in enumerate([(), ("old",), ("kept",)]):
        store.update_statistics(ORDERS, [counted(number)], values)
    return rig


def counted(high: int) -> ColumnStatistics:
    return ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(0, high, 0, 1)))


def facets(rig: Rig, table: TableName) -> object:
    """Constraints, foreign keys that point to the table, and statistics."""
    stored = rig.store.the_table(table)
    names = sorted(str(row.name) for row in stored.constraints)
    assert {(row.database, row.table) for row in stored.constraints} <= {table}
    return names, [row.name for row in rig.store.foreign_keys_to(table)], stored.statistics


def renamed_part(rig: Rig, event_id: int) -> tuple[str, Part]:
    """The partition `old` under the name `new`."""
    name, part = rig.part(event_id, "new", "a", added=11)
    return name, replace(part, lineage="p=old")


KEYS = (["nn", "pk"], ["fk"])


def test_a_table_that_is_rebuilt_keeps_its_facets() -> None:
    rig = with_facets()
    rig.definitions.tables = {20: PAST}
    rig.run(Rebuild(PAST, ORDERS, head(20), (renamed_part(rig, 21), ("p=old", None))), touched=["p=old", "p=new"])
    found = {(): {"x": counted(0)}, ("new",): {"x": counted(1)}, ("kept",): {"x": counted(2)}}
    assert facets(rig, PAST) == (*KEYS, found)
    assert rig.mark("p=kept", ACCURATE, PAST) is not None
    assert rig.mark("p=new", ACCURATE, PAST) is None


def test_a_table_that_another_one_replaces_leaves_it_no_facets() -> None:
    rig = with_facets()
    rig.run(Rebuild(ORDERS, ORDERS, head(20, "20"), (rig.part(21, "kept", "c"),), whole=True), touched=["p=kept"])
    assert facets(rig, ORDERS) == ([], [], {})


def test_a_commit_keeps_facets_of_what_it_renames() -> None:
    rig = with_facets(DELTA_LIKE)
    rig.run(CommitTable(ORDERS, ORDERS, head(20), (renamed_part(rig, 21), ("p=old", None))), touched=["p=old", "p=new"])
    found = {(): {"x": counted(0)}, ("kept",): {"x": counted(2)}, ("new",): {"x": counted(1)}}
    assert facets(rig, ORDERS) == (*KEYS, found)


def test_a_partition_that_is_flipped_to_another_name_keeps_its_statistics() -> None:
    rig = with_facets()
    rig.run(PrepareFlipSweep(ORDERS, (renamed_part(rig, 21),), (), ("p=old",)), touched=["p=old", "p=new"])
    found = {(): {"x": counted(0)}, ("kept",): {"x": counted(2)}, ("new",): {"x": counted(1)}}
    assert facets(rig, ORDERS) == (*KEYS, found)


# What readers are told of


def test_a_bridge_stands_in_the_ledger_before_its_first_effect_and_after_a_death() -> None:
    for moment in range(20):
        rig = Rig()
        built(rig, rig.part(11, "doomed", "b"))
        hop = Hop(21, PrepareFlipSweep(ORDERS, (rig.part(21, "new", "d"),), (), ("p=doomed",)), 2, bridge=True)
        before = rig.store.current()
        rig.mortal = moment
        with pytest.raises(Died):
            rig.run(hop, touched=["p=doomed", "p=new"])
        told = bridges(rig.ledger.records())
        assert told in ((), (Bridge("sales.orders", 0, 21),))
        if rig.store.current() != before:
            assert told != ()
            return
    raise AssertionError("it died before each effect")


def test_what_is_done_in_parts_stands_in_the_ledger_and_what_is_not_does_not() -> None:
    rig = Rig(GLUE_LIKE)
    built(rig)
    rig.run(Hop(20, AddPartitions(ORDERS, (rig.part(20, "1"),)), 1))
    assert in_parts(rig.ledger.records()) == ()
    rig.run(Hop(30, AddPartitions(ORDERS, (rig.part(30, "2"), rig.part(30, "3"))), 2, in_parts=2))
    assert in_parts(rig.ledger.records()) == ("sales.orders",)


def test_a_list_that_the_server_finds_too_large_goes_in_halves_that_readers_are_told_of() -> None:
    rig = Rig(message_bytes=2000)
    built(rig)
    added = tuple(rig.part(20, str(number)) for number in range(7))
    told: list[tuple[str, ...]] = []
    rig.look = lambda: told.append(in_parts(rig.ledger.records()))
    rig.run(Hop(20, AddPartitions(ORDERS, added), 1))
    limit = rig.catalog.abilities().limits.add_partitions
    assert 1 < limit < 7
    assert rig.calls == ["add_partitions"] * -(-7 // limit)
    assert set(rig.partitions()) >= {name for name, _ in added}
    assert set(told) == {("sales.orders",)}
    rig.run(Hop(30, DropPartitions(ORDERS, tuple(name for name, _ in added)), 1), touched=[name for name, _ in added])
    assert set(rig.partitions()).isdisjoint(name for name, _ in added)


def test_a_hop_that_was_planned_before_a_list_was_too_large_is_announced_before_its_first_part() -> None:
    rig = Rig(message_bytes=2000)
    built(rig)
    announced = rig.side.announced
    first, second = (tuple(rig.part(event_id, f"{event_id}{n}") for n in range(7)) for event_id in (20, 30))
    rig.run(Hop(20, AddPartitions(ORDERS, first), 1))
    announced.mark_published(rig.ledger, announced.waiting(), 20)
    told: list[tuple[str, ...]] = []
    rig.look = lambda: told.append(in_parts(announced.waiting()))
    rig.run(Hop(30, AddPartitions(ORDERS, second), 1))
    assert told == [("sales.orders",)] * -(-7 // rig.catalog.abilities().limits.add_partitions)


def test_the_sweep_behind_a_flip_is_no_part_of_it() -> None:
    rig = Rig(TargetCapabilities(Limits(drop_partitions=2)))
    doomed = [rig.part(11, str(number)) for number in range(5)]
    built(rig, *doomed)
    names = tuple(name for name, _ in doomed)
    rig.run(Hop(21, PrepareFlipSweep(ORDERS, (rig.part(21, "new"),), (), names), 3), touched=names)
    assert rig.calls == ["add_partitions", "alter_partitions", *["drop_partitions"] * 3]
    assert rig.side.announced.waiting() == ()


def test_a_table_that_is_built_of_lists_that_are_too_large_appears_at_once() -> None:
    rig = Rig(message_bytes=2000)
    exact = whole(rig, 10, {str(number): ["f"] for number in range(7)})
    rig.look = lambda: seen.add(len(rig.partitions()) if rig.store_reader().table(ORDERS) else 0)
    seen: set[int] = set()
    rig.land(exact)
    assert seen == {0, 7}
    assert rig.rows() == rows_of(exact)
    assert in_parts(rig.ledger.records()) == ()


@pytest.mark.parametrize("data", ["copy", "none"])
def test_a_large_table_is_built_by_calls_side_by_side_and_appears_at_once(data: str) -> None:
    rig, count = Rig(data=data), 2 * HIDDEN_BATCH + 1
    exact = whole(rig, 10, {str(number): ["f"] for number in range(count)})
    rig.look = lambda: seen.add(len(rig.partitions()) if rig.store_reader().table(ORDERS) else 0)
    seen: set[int] = set()
    landed = rig.land(exact)
    switches = ["alter_partitions"] * 3 if data == "none" else []
    *_, hidden_at = (at for at, call in enumerate(rig.calls) if call == "create_table")
    assert rig.calls[hidden_at:] == ["create_table", *["add_partitions"] * 3, *switches, "alter_table"]
    assert landed.applied.calls == len(rig.calls[hidden_at:])
    assert seen == {0, count}
    assert set(rig.partitions()) == set(exact.partitions)
    places = {location_of(one) for one in rig.partitions().values()}
    assert len(places) == count


def test_a_large_table_whose_build_died_in_any_call_is_built_again() -> None:
    for moment in range(100):
        rig = Rig(data="none")
        exact = whole(rig, 10, {str(number): [] for number in range(HIDDEN_BATCH + 1)})
        rig.mortal = moment
        try:
            rig.land(exact)
        except Died:
            assert rig.store_reader().table(ORDERS) is None or "alter_table" in rig.calls
            rig.land(exact)
        else:
            assert moment > len(rig.calls)
            return
        assert set(rig.partitions()) == set(exact.partitions)


def test_nothing_is_told_of_a_bridge_whose_files_were_gone_before_it_began() -> None:
    rig = Rig()
    built(rig, rig.part(11, "doomed", "b"))
    name, part = rig.part(21, "new", "d")
    found = rig.listing(part.data)
    rig.storage.remove([join(found.location, "d")])
    rig.listing = lambda _: found  # type: ignore[method-assign]
    with pytest.raises(ContentLost):
        rig.run(
            Hop(21, PrepareFlipSweep(ORDERS, ((name, part),), (), ("p=doomed",)), 2, bridge=True), touched=["p=doomed"]
        )
    assert (rig.calls, bridges(rig.ledger.records())) == ([], ())


def columns_of(partition: Partition) -> list[str]:
    columns = partition.storage.columns if partition.storage else None
    return [column.name for column in columns or ()]


def test_tables_whose_long_names_end_differently_are_built_under_different_names() -> None:
    names = [TableName("d" * 60, "t" * 60 + last) for last in "ab"]
    hidden = {hidden_name(name, token) for name in names for token in ("1", "2")}
    assert len(hidden) == 4
    assert max(len(name.table) for name in hidden) < 128
