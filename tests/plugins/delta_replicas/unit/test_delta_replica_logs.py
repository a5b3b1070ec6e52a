"""The logs of Delta replicas under several writers, deaths, checkpoints and the hands of others."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from calque.adapters.files.storage import FileStorage
from calque.core.formats.layout import join
from calque.core.images.image import EVENT, SOURCE
from calque.core.images.table_layout import with_format
from calque.model.files import Listing
from calque.model.hive import Column, Database, Partition, Table, location_of
from calque.model.names import TableName
from calque.plugins.delta_replicas.adapters.catalog import with_delta_replicas
from calque.plugins.delta_replicas.adapters.logs import CHECKPOINT_EVERY, ReplicaLogs
from calque.plugins.delta_replicas.core.log import LoggedTable
from calque.ports import Conflict, TableCommit, parts_of
from calque.ports.forwarding import ForwardingCatalog
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.writers import PARQUET

ORDERS, PAST = TableName("sales", "orders"), TableName("sales", "past")
EFFECTS = ("write", "publish", "create_table", "alter_table")


class Died(BaseException):
    """The process was killed."""


@dataclass
class Rig:
    """A metastore and a storage, which processes come to and die at."""

    root: str = "file:/target/orders"
    storage: Any = field(default_factory=MemoryStorage)
    store: MemoryMetastore = field(default_factory=lambda: MemoryMetastore(HIVE_4, "file:/managed"))
    calls: list[str] = field(default_factory=list)
    dies: Callable[[list[str]], bool] = lambda _calls: False

    def __post_init__(self) -> None:
        self.store.create_database(Database("sales"))

    def process(self, checkpoint_every: int = CHECKPOINT_EVERY, grace: float = 3600.0) -> ForwardingCatalog:
        """A catalog as a new process has it."""
        logs = ReplicaLogs(Watched(self), grace, checkpoint_every=checkpoint_every)  # type: ignore[arg-type]
        catalog = MemoryCatalog(self.store, before=self.called, after=self.called)
        return ForwardingCatalog(with_delta_replicas(parts_of(catalog), self.storage, logs, lambda: 1))

    def called(self, method: str) -> None:
        if method in EFFECTS:
            self.calls.append(method)
            if self.dies(self.calls):
                raise Died

    def table(self, event: int, *columns: str, name: TableName = ORDERS) -> Table:
        fields = (Column("id", "bigint"), *(Column(column, "string") for column in columns))
        table = Table(
            name.table,
            name.database,
            storage=replace(PARQUET, columns=fields, location=self.root),
            partition_keys=(Column("day", "string"),),
            parameters={SOURCE: "hq:sales.orders", EVENT: str(event)},
            type="MANAGED_TABLE",
            owner_type=1,
        )
        return with_format(table, "delta")

    def partition(self, day: str, event: int, *, rows: Sequence[int] = (1, 2)) -> tuple[Partition, Listing]:
        """With one file of so many rows."""
        location = join(self.root, f"day={day}/{event}")
        content = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array(rows, pa.int64())}), content)
        self.storage.write(join(location, "part-0"), content.getvalue())
        storage = replace(PARQUET, columns=(Column("id", "bigint"),), location=location)
        partition = Partition((day,), "sales", "orders", storage=storage, parameters={EVENT: str(event)})
        return partition, self.storage.list([location])[location]

    def commit(
        self, catalog: ForwardingCatalog, event: int, *days: str, drop: Sequence[str] = (), expected: str = ""
    ) -> None:
        """A state in which these days have new files."""
        made = {f"day={day}": self.partition(day, event, rows=range(event)) for day in days}
        put, contents = [one for one, _ in made.values()], {name: listing for name, (_, listing) in made.items()}
        name = None if catalog.table(ORDERS) is None else ORDERS
        commit = TableCommit(name, self.table(event), put, drop, expected_event=expected, contents=contents)
        catalog.commit_table(commit)


@dataclass
class Watched:
    """The rig's storage, whose calls are noted before and after them."""

    rig: Rig

    def __getattr__(self, method: str) -> Any:
        call = getattr(self.rig.storage, method)

        def called(*arguments: Any) -> Any:
            self.rig.called(method)
            result = call(*arguments)
            self.rig.called(method)
            return result

        return called


def state(catalog: ForwardingCatalog, name: TableName = ORDERS) -> object:
    """All that the engine sees of a table."""
    table = catalog.table(name)
    if table is None:
        return None
    names = catalog.partition_names(name)
    return table, catalog.partitions(name, names), catalog.contents(table, names)


def days(catalog: ForwardingCatalog, name: TableName = ORDERS) -> list[str]:
    return [one.removeprefix("day=") for one in catalog.partition_names(name)]


def test_a_partitioned_table_has_no_file_of_the_one_without_keys_whose_name_it_took() -> None:
    rig = Rig()
    catalog = rig.process()
    _, listing = rig.partition("old", 7)
    plain = replace(rig.table(7), partition_keys=())
    catalog.commit_table(TableCommit(None, plain, contents={"": listing}))
    assert len(ReplicaLogs(rig.storage, 3600.0).read(rig.root).files[""]) == 1
    rig.commit(catalog, 8)
    assert ReplicaLogs(rig.storage, 3600.0).read(rig.root).files == {}
    rig.commit(catalog, 9, "1")
    assert ReplicaLogs(rig.storage, 3600.0).read(rig.root).files.keys() == {"day=1"}


def test_a_file_without_values_of_the_keys_is_shown_as_readers_see_it() -> None:
    """A calque before this one left such files, so that `verify` has to see them."""
    rig = Rig()
    catalog = rig.process()
    rig.commit(catalog, 8, "1")
    logged = ReplicaLogs(rig.storage, 3600.0).read(rig.root)
    stray = {"path": "stray", "partitionValues": {}, "size": 3, "modificationTime": 1}
    shown = logged.after([{"add": stray}])
    nulls = "day=__HIVE_DEFAULT_PARTITION__"
    assert shown.partition_names() == {"day=1", nulls}
    assert [file.path for file in shown.contents(nulls).files] == ["stray"]
    assert (shown.partition(nulls) or Partition()).values == ("__HIVE_DEFAULT_PARTITION__",)
    assert logged.partition_names() == {"day=1"}
    assert logged.contents(nulls).files == ()


def test_of_two_writers_of_one_version_the_second_conflicts_and_nothing_is_lost() -> None:
    rig = Rig()
    rig.commit(rig.process(), 1, "1")
    one, two = rig.process(), rig.process()
    coming = [lambda: rig.commit(two, 2, "2")]

    def publish(call: str, path: str) -> None:
        if call == "publish" and path.endswith(".json") and coming:
            coming.pop()()

    rig.storage.before = publish
    with pytest.raises(Conflict, match="written by another"):
        rig.commit(one, 3, "3")
    assert days(one) == ["1", "2"]
    rig.commit(one, 3, "3")
    assert days(two) == ["1", "2", "3"]
    assert not [path for path in rig.storage.paths() if "copying" in path]


def test_a_writer_whose_state_is_not_the_one_it_knows_conflicts() -> None:
    rig = Rig()
    rig.commit(rig.process(), 1, "1")
    one, two = rig.process(), rig.process()
    assert days(one) == ["1"]
    rig.commit(two, 2, "2", expected="1")
    with pytest.raises(Conflict, match="has been modified"):
        rig.commit(one, 3, "3", expected="1")
    assert days(one) == ["1", "2"]


def test_a_writer_that_was_away_while_commits_were_removed_goes_on_from_the_newest() -> None:
    rig = Rig()
    away = rig.process()
    rig.commit(away, 1, "1")
    busy = rig.process(checkpoint_every=4, grace=-1e9)
    for event in range(2, 10):
        rig.commit(busy, event, str(event))
    versions = [int(path[-25:-5]) for path in rig.storage.paths() if path.endswith(".json") and "_last" not in path]
    assert versions == [8]
    assert state(away) == state(busy)
    rig.commit(away, 10, "10")
    assert days(rig.process()) == sorted(map(str, range(1, 11)))


def change(rig: Rig, catalog: ForwardingCatalog) -> None:
    rig.commit(catalog, 2, "1", "3", drop=["day=2"])


def rename(rig: Rig, catalog: ForwardingCatalog) -> None:
    """With another column and another parameter, as one call of a metastore may."""
    table = rig.table(2, "note", name=PAST)
    renamed = replace(table, owner="you", parameters={**(table.parameters or {}), "v": "2"})
    catalog.alter_table(ORDERS, renamed, expected_event="1")


def make(rig: Rig, catalog: ForwardingCatalog) -> None:
    rig.commit(catalog, 2, "1", "3")


def calls_of(begin: Sequence[str], act: Callable[[Rig, ForwardingCatalog], None]) -> int:
    """How many points there are at which the act can die."""
    rig = Rig()
    if begin:
        rig.commit(rig.process(), 1, *begin)
    rig.calls.clear()
    act(rig, rig.process())
    return len(rig.calls)


@pytest.mark.parametrize("act", [change, make, rename])
def test_a_death_before_and_after_each_call_leaves_one_state_or_the_other(
    act: Callable[[Rig, ForwardingCatalog], None],
) -> None:
    begin = () if act is make else ("1", "2")
    points = calls_of(begin, act)
    assert points >= 6
    for point in range(points):
        rig = Rig()
        if begin:
            rig.commit(rig.process(), 1, *begin)
        before = [state(rig.process(), name) for name in (ORDERS, PAST)]
        rig.calls.clear()
        rig.dies = lambda calls, point=point: len(calls) > point
        with pytest.raises(Died):
            act(rig, rig.process())
        rig.dies = lambda _calls: False
        dead = [state(rig.process(), name) for name in (ORDERS, PAST)]
        other = Rig()
        if begin:
            other.commit(other.process(), 1, *begin)
        act(other, other.process())
        after = [state(other.process(), name) for name in (ORDERS, PAST)]
        assert without_times(dead) in (without_times(before), without_times(after))
        settled(rig)
        if without_times(dead) == without_times(before):
            act(rig, rig.process())
        assert without_times([state(rig.process(), name) for name in (ORDERS, PAST)]) == without_times(after)
        settled(rig)
        assert at_metastore(rig) == at_metastore(other)


def settled(rig: Rig) -> None:
    """A new process comes, and does what a dead one left undone."""
    catalog = rig.process()
    for name in (ORDERS, PAST):
        if (table := catalog.table(name)) is not None:
            catalog.settle(table)
            assert catalog.table(name) == table


def without_times(states: list[Any]) -> object:
    """Times of files and of creation are no part of what is compared."""
    return [
        found
        and (
            replace(found[0], create_time=None, parameters=untimed(found[0])),
            {name: replace(one, create_time=None, parameters=untimed(one)) for name, one in found[1].items()},
            {name: [(file.path, file.size) for file in one.files] for name, one in found[2].items()},
        )
        for found in states
    ]


def untimed(thing: Table | Partition) -> dict[str, str]:
    return {key: text for key, text in (thing.parameters or {}).items() if key != "transient_lastDdlTime"}


def at_metastore(rig: Rig) -> list[Table]:
    tables = [rig.store.the_table(TableName("sales", table)).table for table in rig.store.tables("sales")]
    return [replace(table, create_time=None, parameters=untimed(table), id=None) for table in tables]


def test_a_rename_of_which_the_log_has_not_heard_is_what_the_metastore_says() -> None:
    rig = Rig()
    rig.commit(rig.process(), 1, "1", "2")
    rig.calls.clear()
    rig.dies = lambda calls: "write" in calls
    with pytest.raises(Died):
        rename(rig, rig.process())
    rig.dies = lambda _calls: False
    catalog = rig.process()
    table = catalog.table(PAST)
    assert table is not None
    assert catalog.table(ORDERS) is None
    assert (table.name, (table.parameters or {})[EVENT]) == ("past", "2")
    assert [one.table for one in catalog.partitions(PAST, ["day=1", "day=2"]).values()] == ["past", "past"]
    catalog.settle(table)
    assert rig.process().table(PAST) == table
    assert logged(rig).table.name == "past"


def logged(rig: Rig) -> LoggedTable:
    return ReplicaLogs(rig.storage, 3600.0).read(rig.root)


def test_a_state_of_a_checkpoint_is_the_state_of_its_commits(tmp_path: Path) -> None:
    rig = Rig(f"file:{tmp_path}/orders", FileStorage())
    catalog = rig.process()
    for event in range(1, CHECKPOINT_EVERY + 3):
        rig.commit(catalog, event, str(event % 7), drop=["day=3"] if event % 7 == 5 else [])
        if event % 7 == 5:
            rig.commit(catalog, event, "3")
    seen = state(catalog)
    log = tmp_path / "orders" / "_delta_log"
    assert (log / f"{CHECKPOINT_EVERY:020}.checkpoint.parquet").exists()
    assert state(rig.process()) == seen
    for version in range(CHECKPOINT_EVERY):
        (log / f"{version:020}.json").unlink()
    assert state(rig.process()) == seen
    assert state(catalog) == seen
    rows = DeltaTable(tmp_path / "orders").to_pyarrow_table().num_rows
    assert rows == sum(file_rows(catalog))


def file_rows(catalog: ForwardingCatalog) -> list[int]:
    table = catalog.table(ORDERS)
    assert table is not None
    contents = catalog.contents(table, catalog.partition_names(ORDERS)) or {}
    paths = [join(listing.location, file.path) for listing in contents.values() for file in listing.files]
    return [pq.read_metadata(path.removeprefix("file:")).num_rows for path in paths]


def test_a_log_that_others_checkpoint_and_vacuum_says_the_same(tmp_path: Path) -> None:
    rig = Rig(f"file:{tmp_path}/orders", FileStorage())
    catalog = rig.process()
    for event in range(1, 6):
        rig.commit(catalog, event, "1", str(event))
    seen = state(catalog)
    DeltaTable(tmp_path / "orders").create_checkpoint()
    log = tmp_path / "orders" / "_delta_log"
    for version in range(4):
        (log / f"{version:020}.json").unlink()
    unreferenced = DeltaTable(tmp_path / "orders").vacuum(0, enforce_retention_duration=False)
    assert len(unreferenced) == 4
    for path in unreferenced:
        (tmp_path / "orders" / path).unlink()
    assert state(rig.process()) == seen
    assert sum(file_rows(rig.process())) == DeltaTable(tmp_path / "orders").to_pyarrow_table().num_rows


def append_as_another(rig: Rig, root: Path, day: str) -> None:
    """A commit that has nothing of ours, as Spark makes it."""
    directory = root / f"day={day}"
    directory.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([7, 8, 9], pa.int64())}), directory / "part-x.parquet")
    add = {
        "path": f"day={day}/part-x.parquet",
        "partitionValues": {"day": day},
        "size": (directory / "part-x.parquet").stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
    }
    path = root / "_delta_log" / f"{logged(rig).version + 1:020}.json"
    path.write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}) + "\n" + json.dumps({"add": add}) + "\n")


@pytest.mark.parametrize("day", ["1", "9"])
def test_what_another_appends_is_seen_and_stays_until_its_partition_is_written(tmp_path: Path, day: str) -> None:
    """In a partition of the source's, and in one that it does not have."""
    root = tmp_path / "orders"
    rig = Rig(f"file:{root}", FileStorage())
    catalog = rig.process()
    rig.commit(catalog, 1, "1", "2")
    append_as_another(rig, root, day)
    assert days(catalog) == sorted({"1", "2", day})
    table = catalog.table(ORDERS)
    assert table is not None
    (listing,) = (catalog.contents(table, [f"day={day}"]) or {}).values()
    assert len(listing.files) == (2 if day == "1" else 1)
    rig.commit(catalog, 2, "2")
    assert DeltaTable(root).to_pyarrow_table().num_rows == 1 + 2 + 3
    rig.commit(catalog, 3, "1", drop=["day=9"] if day == "9" else [])
    assert days(rig.process()) == ["1", "2"]
    assert DeltaTable(root).to_pyarrow_table().num_rows == 3 + 2


def test_a_table_of_a_hundred_thousand_partitions_is_loaded() -> None:
    rig, count = Rig(), 100_000
    catalog = rig.process(checkpoint_every=1)
    rig.commit(catalog, 1, "0")
    text = rig.storage.read(join(rig.root, f"_delta_log/{0:020}.json")).decode()
    (domain,) = (line for line in text.splitlines() if "calque.partition/day=0" in line)
    (add,) = (line for line in text.splitlines() if line.startswith('{"add"'))
    lines = [
        line.replace('\\"0\\"', f'\\"{number}\\"')
        .replace("day=0", f"day={number}")
        .replace('"day":"0"', f'"day":"{number}"')
        for number in range(1, count)
        for line in (domain, add)
    ]
    rig.storage.write(join(rig.root, f"_delta_log/{1:020}.json"), "\n".join(lines).encode())
    rig.commit(catalog, 2, "0")
    assert json.loads(rig.storage.read(join(rig.root, "_delta_log/_last_checkpoint")))["version"] == 2
    found = logged(rig)
    assert (found.version, len(found.partitions), len(found.files)) == (2, count, count)
    assert location_of(found.partition("day=99999") or Partition(())) == join(rig.root, "day=99999/1")


def counted(rig: Rig) -> tuple[ForwardingCatalog, list[str]]:
    """A catalog, and the calls that it makes at the metastore."""
    calls: list[str] = []

    def note(method: str, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        calls.append(method)
        return call(*arguments, **named)

    metastore = ForwardingCatalog(MemoryCatalog(rig.store), note)
    logs = ReplicaLogs(rig.storage, 3600.0)
    return ForwardingCatalog(with_delta_replicas(parts_of(metastore), rig.storage, logs, lambda: 1)), calls


def test_a_plain_table_costs_no_call_more_than_without_delta_tables() -> None:
    rig = Rig()
    catalog, calls = counted(rig)
    plain = with_format(rig.table(1), "")
    one, _ = rig.partition("1", 1)
    catalog.create_table(plain)
    catalog.add_partitions(ORDERS, [one])
    catalog.partitions(ORDERS, ["day=1"])
    catalog.alter_partitions(ORDERS, [one])
    catalog.drop_partitions(ORDERS, catalog.partition_names(ORDERS))
    catalog.alter_table(ORDERS, replace(plain, name="past"))
    catalog.put_statistics(PAST, {})
    catalog.drop_table(PAST)
    assert calls == [
        "create_table",
        "add_partitions",
        "partitions",
        "alter_partitions",
        "partition_names",
        "drop_partitions",
        "alter_table",
        "put_statistics",
        "drop_table",
    ]


def test_a_commit_asks_the_metastore_nothing_that_was_seen_before() -> None:
    rig = Rig()
    catalog, calls = counted(rig)
    rig.commit(catalog, 1, "1")
    calls.clear()
    rig.commit(catalog, 2, "2", expected="1")
    assert calls == ["table", "alter_table"]
