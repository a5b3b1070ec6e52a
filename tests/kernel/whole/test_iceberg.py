"""Iceberg tables through the engine: every metadata file that a target shows reads as the source's of that name."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from calque.adapters.files.storage import FileStorage
from calque.core.formats.iceberg import name_of
from calque.core.formats.layout import place
from calque.core.records.lifecycle import State
from calque.engine.failpoints import FailpointGuard
from calque.engine.sweep.sweep import SweepTerms, sweep_target
from calque.engine.verify.verify import verify
from calque.model import hive
from calque.model.hive import Database, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.ports import Conflict, CopiedFile, CopyTask
from support.memory.metastore import HIVE_3
from support.sources.lakes import (
    Lake,
    Rows,
    data_files,
    definition,
    delete_positions,
    references_of,
    rows_of,
    snapshots_of,
)
from support.worlds.worlds import Died, Noting, World

SCHEMA = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
T = TableName("d1", "t")


def rows(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64()), "b": [f"v{value}" for value in values]})


@dataclass
class Effects:
    """What was written, and a place to die at."""

    done: list[str] = field(default_factory=list)
    left: int = -1

    def __call__(self, name: str) -> None:
        self.done.append(name)
        self.left -= 1
        if self.left == 0:
            raise Died


class Counted(FileStorage):
    """Local files; remembers what was copied, written and read."""

    def __init__(self) -> None:
        super().__init__()
        self.copied: list[str] = []
        self.written: list[str] = []

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        self.copied += [task.target for task in tasks]
        return super().copy(tasks, progress)

    def write(self, path: str, content: bytes) -> None:
        self.written.append(path)
        super().write(path, content)


class Bay:
    """A source with Iceberg tables and a target, on local files."""

    def __init__(self, root: Path, **policy: Any) -> None:
        self.root = root
        self.lake = Lake(self.commit)
        wanted = Policy("dr", "hq", include=("d1.*",), warehouse=f"file://{root}/target", **policy)
        self.world = World(1, HIVE_3, wanted)
        self.storage, self.effects = Counted(), Effects()
        self.world.source_side = replace(self.world.source_side, storage=self.storage)
        self.world.side = replace(self.world.side, storage=FailpointGuard(self.effects).storage(self.storage))
        self.world.replica = self.world.new_replica()
        self.source = Noting(self.world.source, self.world.note)
        self.source.create_database(Database("d1", location=f"file:{root}/source/d1.db"))
        self.world.open()
        self.shown: list[str] = []
        self.problems: list[str] = []
        look = self.world.looked
        self.world.looked = lambda method: (look(method), self.look())[0]  # type: ignore[method-assign]

    @property
    def location(self) -> str:
        return f"file://{self.root}/source/d1.db/t"

    def commit(self, name: str, location: str, metadata: str, before: str | None) -> None:
        table = definition(name, location, metadata, before)
        if before is None:
            self.source.create_table(table)
        else:
            self.source.alter_table(TableName("d1", name), table)

    def create(self, name: str = "t", spec: PartitionSpec | None = None, **properties: str) -> Table:
        at = f"file://{self.root}/source/d1.db/{name}"
        more = {} if spec is None else {"partition_spec": spec}
        return self.lake.create_table(("d1", name), SCHEMA, at, properties=properties, **more)

    def follow(self) -> None:
        self.world.settle(20)
        assert not self.problems
        assert not self.world.problems

    def there(self, name: TableName = T) -> hive.Table | None:
        try:
            return self.world.target_store.the_table(name).table
        except Conflict:
            return None

    def metadata(self, name: TableName = T) -> str:
        """The metadata file that the target names; empty where there is none."""
        table = self.there(name)
        return (table.parameters or {}).get("metadata_location", "") if table is not None else ""

    def look(self) -> None:
        """A reader at the target, after every call: a state of the source, and never an older one."""
        at = self.metadata()
        if not at or self.shown[-1:] == [at] or self.world.policy.data == "none":
            return
        self.shown.append(at)
        source = f"{self.location}/metadata/{name_of(at)}"
        if not Path(place(source).path).exists():
            self.problems.append(f"{at} is none of the source's")
        elif rows_of(at) != rows_of(source):
            self.problems.append(f"{at} reads {rows_of(at)} instead of {rows_of(source)}")

    def rows(self, name: TableName = T) -> Rows:
        return rows_of(self.metadata(name))


@pytest.fixture
def bay(tmp_path: Path) -> Bay:
    return Bay(tmp_path)


def sorted_rows(table: Table) -> Rows:
    return rows_of(table.metadata_location)


def test_a_target_reads_what_the_source_reads_after_every_kind_of_commit(bay: Bay) -> None:
    table = bay.create()
    bay.follow()
    assert bay.rows() == []
    table.append(rows(1, 2, 3))
    bay.follow()
    table.append(rows(4, 5))
    table.delete("a = 2")
    bay.follow()
    delete_positions(table, {data_files(table)[0]: [0]})
    bay.follow()
    assert bay.rows() == sorted_rows(table)
    with table.update_schema() as update:
        update.add_column("c", LongType())
        update.rename_column("b", "renamed")
    bay.follow()
    with table.update_spec() as update:
        update.add_field("renamed", IdentityTransform())
    table.append(pa.table({"a": [10, 11], "renamed": ["x", "y"], "c": [1, None]}))
    bay.follow()
    table.overwrite(pa.table({"a": [20], "renamed": ["z"], "c": [2]}))
    bay.follow()
    assert bay.rows() == sorted_rows(table) == [{"a": 20, "renamed": "z", "c": 2}]
    assert {name_of(at) for at in bay.shown} <= {path.name for path in bay.root.glob("source/**/*.json")}
    for snapshot in snapshots_of(table.metadata_location):
        assert rows_of(bay.metadata(), snapshot) == rows_of(table.metadata_location, snapshot)


def test_nothing_at_the_target_points_outside_of_it(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1, 2, 3))
    delete_positions(table, {data_files(table)[0]: [1]})
    table.append(rows(4))
    bay.follow()
    wanted = sorted_rows(table)
    shutil.rmtree(bay.root / "source")
    assert bay.rows() == wanted == [{"a": 1, "b": "v1"}, {"a": 3, "b": "v3"}, {"a": 4, "b": "v4"}]
    below = f"file:{bay.root}/target/d1.db/t"
    assert [path for path in references_of(bay.metadata()) if not (path + "/").startswith(below + "/")] == []


@pytest.mark.parametrize("bounds", [True, False])
def test_position_deletes_name_the_targets_files_whatever_their_manifest_says_of_them(bay: Bay, bounds: bool) -> None:
    table = bay.create()
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    delete_positions(table, {path: [1] for path in data_files(table)}, bounds)
    bay.follow()
    assert [row["a"] for row in bay.rows()] == [1, 3]


def test_a_commit_costs_what_it_changed(bay: Bay) -> None:
    table = bay.create()
    for number in range(12):
        table.append(rows(number))
    bay.follow()
    bay.storage.copied.clear()
    bay.storage.written.clear()
    table.append(rows(100))
    bay.follow()
    assert len(bay.storage.copied) == 1
    assert len(bay.storage.written) == 3, "a manifest, a manifest list and the metadata"


def test_states_that_no_reader_needs_are_passed_over(bay: Bay) -> None:
    table = bay.create()
    bay.follow()
    for number in range(5):
        table.append(rows(number))
    bay.follow()
    assert len(bay.shown) == 2
    assert len(bay.rows()) == 5


@pytest.mark.parametrize("step", range(1, 14))
def test_a_death_at_any_effect_is_gone_on_from(bay: Bay, step: int) -> None:
    table = bay.create()
    table.append(rows(1, 2, 3))
    delete_positions(table, {data_files(table)[0]: [1]})
    table.append(rows(4))
    bay.effects.left = step
    bay.follow()
    assert bay.rows() == sorted_rows(table)
    assert (there := bay.there()) is not None
    assert there.storage is not None
    assert there.storage.location == f"file://{bay.root}/target/d1.db/t"
    written = [path for path in bay.storage.written if "/target/" in path]
    assert len(written) <= len(set(written)) + 1, "what was written before is not written again"


def test_a_rename_a_drop_and_another_table_of_the_name(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1))
    bay.follow()
    first = bay.metadata()
    stored = bay.world.source.the_table(T).table
    bay.source.alter_table(T, replace(stored, name="u"))
    bay.follow()
    assert bay.there() is None
    assert bay.metadata(TableName("d1", "u")) == first
    bay.source.drop_table(TableName("d1", "u"), delete_data=False)
    bay.follow()
    assert bay.there(TableName("d1", "u")) is None
    again = bay.create()
    again.append(rows(7))
    bay.shown.clear()
    bay.follow()
    assert [row["a"] for row in bay.rows()] == [7]
    assert not bay.metadata().startswith(first.rpartition("/metadata/")[0] + "/")


def test_a_sweep_takes_what_a_dropped_table_left_and_nothing_of_one_that_is_there(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1))
    bay.follow()
    bay.source.drop_table(T, delete_data=False)
    again = bay.create()
    again.append(rows(2))
    table = bay.create("u")
    table.append(rows(3))
    bay.shown.clear()
    bay.follow()
    noted: Mapping[str, int] = {}
    for later in (1, 2):
        world, now = bay.world, time.time_ns() + later * 10**16
        noted = sweep_target(world.side, world.journal, now, SweepTerms(noted=noted)).noted
    assert not (bay.root / "target/d1.db/t").exists()
    assert [row["a"] for row in bay.rows()] == [2]
    assert [row["a"] for row in bay.rows(TableName("d1", "u"))] == [3]


def test_a_snapshot_whose_files_are_gone_is_left_out(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1))
    old = data_files(table)
    table.overwrite(rows(2))
    for path in old:
        Path(place(path).path).unlink()
    bay.follow()
    assert [row["a"] for row in bay.rows()] == [2]
    kept, all_of_them = snapshots_of(bay.metadata()), snapshots_of(table.metadata_location)
    assert set(kept) < set(all_of_them)
    for snapshot in kept:
        rows_of(bay.metadata(), snapshot)


def test_a_state_whose_files_are_gone_is_never_shown(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1))
    bay.follow()
    table.append(rows(2))
    newest = sorted(bay.root.glob("source/d1.db/t/data/*"), key=lambda path: path.stat().st_mtime_ns)[-1]
    content = newest.read_bytes()
    newest.unlink()
    before = bay.metadata()
    bay.world.capture_all()
    for _ in range(4):
        bay.world.work()
    assert bay.metadata() == before
    newest.write_bytes(content)
    bay.world.clock.now += 60_000_000_000
    table.append(rows(3))
    bay.follow()
    assert [row["a"] for row in bay.rows()] == [1, 2, 3]


def test_files_outside_of_the_tables_location_come_along(bay: Bay) -> None:
    table = bay.create(**{"write.data.path": f"file://{bay.root}/source/far/data"})
    table.append(rows(1, 2))
    delete_positions(table, {data_files(table)[0]: [0]})
    bay.follow()
    shutil.rmtree(bay.root / "source")
    assert [row["a"] for row in bay.rows()] == [2]


def test_places_in_its_parameters_follow_or_are_left_out(bay: Bay) -> None:
    """Iceberg's Hive catalog copies a table's properties to the metastore."""
    bay.create().append(rows(1))
    bay.follow()
    places = {"write.data.path": f"{bay.location}/d", "write.metadata.path": f"file://{bay.root}/source/d1.db/far"}
    shown = bay.source.the_table(T).table
    parameters = {**(shown.parameters or {}), **places, "k": f"{bay.location}/x"}
    bay.source.alter_table(T, replace(shown, parameters=parameters))
    bay.follow()
    target = bay.world.target_store.the_table(T).table
    own = location_of(target)
    parameters = target.parameters or {}
    assert (parameters["k"], parameters["write.data.path"]) == (f"{own}/x", f"{own}/d")
    assert "write.metadata.path" not in parameters
    assert verify(bay.world.source_side, bay.world.side).differences == ()


def test_a_plain_table_that_becomes_one_is_read_again(bay: Bay) -> None:
    plain = definition("t", bay.location, "")
    plain = replace(plain, parameters={"EXTERNAL": "TRUE"})
    bay.source.create_table(plain)
    bay.storage.write(f"{bay.location}/f", b"1")
    bay.world.clock.now = time.time_ns() + 10**9
    bay.follow()
    bay.source.drop_table(T, delete_data=False)
    bay.source.create_table(plain)
    bay.follow()
    staged = Lake(lambda *_: None)
    table = staged.create_table(("d1", "t"), SCHEMA, bay.location)
    table.append(rows(1))
    bay.source.alter_table(T, definition("t", bay.location, table.metadata_location))
    bay.world.settle(20)
    assert [row["a"] for row in bay.rows()] == [1]


def test_one_that_names_no_metadata_is_quarantined_with_the_reason(bay: Bay) -> None:
    table = definition("t", bay.location, "")
    bay.source.create_table(table)
    bay.world.settle(20)
    row = bay.world.replica.tables.rows[T]
    assert row.state == TableState.QUARANTINED
    assert "metadata_location" in row.reason


def test_metadata_only_targets_point_at_the_source(tmp_path: Path) -> None:
    bay = Bay(tmp_path, data="none")
    table = bay.create()
    table.append(rows(1))
    bay.world.settle(20)
    assert bay.metadata() == table.metadata_location


def test_a_bootstrap_reads_tables_that_were_there_before(tmp_path: Path) -> None:
    bay = Bay(tmp_path)
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "b"))
    table = bay.create(spec=spec)
    table.append(rows(1, 2))
    bay.world.capture_all()
    bay.world.begin = bay.world.source.current()
    bay.world.ledger = type(bay.world.ledger)(lambda _: None)
    bay.world.restart_replica(bay.world.ledger)
    bay.follow()
    assert bay.rows() == sorted_rows(table)


def test_a_listing_of_its_directory_is_never_waited_for(bay: Bay) -> None:
    bay.create()
    bay.world.append_log()
    assert bay.world.gatherer.pending == {}


def test_verification_finds_both_equal_and_tells_versions_apart(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1))
    bay.follow()
    found = verify(bay.world.source_side, bay.world.side)
    assert found.differences == ()
    stored = bay.world.target_store.the_table(T).table
    wrong = {**(stored.parameters or {}), "metadata_location": bay.metadata().replace("0000", "9999")}
    bay.world.target_store.alter_table(T, replace(stored, parameters=wrong))
    found = verify(bay.world.source_side, bay.world.side, data="none")
    assert [difference.what for difference in found.differences] == ["parameters.metadata_location"]


def test_verification_finds_files_that_are_missing_or_damaged_and_a_read_mends_them(bay: Bay) -> None:
    table = bay.create()
    table.append(rows(1, 2))
    table.append(rows(3))
    delete_positions(table, {data_files(table)[0]: [0]})
    bay.follow()

    def differences(data: str) -> list[str]:
        found = verify(bay.world.source_side, bay.world.side, data=data)
        return [difference.kind.value for difference in found.differences]

    assert differences("checksum") == []
    files = sorted(bay.root.glob("target/d1.db/t/data/*.parquet"))
    assert len(files) == 3
    kept = {path: path.read_bytes() for path in files}
    first = files[0]
    first.unlink()
    assert differences("size") == ["files"]
    assert differences("none") == []
    first.write_bytes(kept[first] + b"x")
    assert differences("size") == ["files"]
    data = next(path for path in files if "deletes" not in path.name)
    first.write_bytes(kept[first])
    data.write_bytes(bytes([kept[data][0] ^ 1]) + kept[data][1:])
    assert differences("size") == []
    assert differences("checksum") == ["content"]
    data.write_bytes(kept[data])
    for path in files:
        path.unlink()
    bay.world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    bay.follow()
    assert differences("checksum") == []
    assert bay.rows() == sorted_rows(table)


@pytest.mark.parametrize("where", ["copied", "the source's"])
def test_a_table_that_was_copied_by_hand_is_copied_anew_and_what_was_copied_stays(tmp_path: Path, where: str) -> None:
    bay = Bay(tmp_path)
    table = bay.create()
    table.append(rows(1, 2))
    table.append(rows(3))
    by_hand = tmp_path / "hand/t"
    shutil.copytree(tmp_path / "source/d1.db/t", by_hand)
    at = f"file://{by_hand}" if where == "copied" else bay.location
    bay.world.target_store.create_table(definition("t", at, table.metadata_location.replace(bay.location, at)))
    folders = (by_hand, tmp_path / "source")
    before = [contents(folder) for folder in folders]
    bay.world.settle(20)
    assert bay.world.replica.tables.in_state(State.QUARANTINED) == [T]
    assert bay.world.replica.requests.adoption.tables(lambda _: True, lambda _: True, "asked for") == [T]
    bay.world.settle(20)
    assert bay.metadata().startswith(f"file:{tmp_path}/target/")
    assert rows_of(bay.metadata()) == rows_of(table.metadata_location)
    assert [contents(folder) for folder in folders] == before
    assert all(path.startswith(f"file:{tmp_path}/target/") for path in references_of(bay.metadata()))
    shutil.rmtree(by_hand)
    table.append(rows(4))
    bay.world.settle(20)
    assert bay.problems == []
    assert rows_of(bay.metadata()) == rows_of(table.metadata_location)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
