"""ACID tables that are Delta tables at the target."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from calque.core.images.compare import Difference, DifferenceKind
from calque.engine.sides.committed_journal import with_commits
from calque.engine.sides.sides import TargetSide
from calque.engine.verify.verify import verify
from calque.model.hive import Column, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import SmallFilesRule
from support.sources.acid_files import delta_name
from support.worlds.acid_delta import POLICY, AcidDeltaWorld
from support.worlds.delta_reader import Snapshot, snapshot
from support.worlds.worlds import CHECKPOINT_EVERY, GRACE, InlineExecutor, formats_of


@pytest.fixture
def acid() -> AcidDeltaWorld:
    """At rest, with one table of each kind that has rows of two transactions."""
    acid = AcidDeltaWorld(1)
    acid.world.open()
    with acid.world.uninterrupted():
        plain, parted = acid.writer.create_table("d1", "plain"), acid.writer.create_table("d1", "parted", ("p",))
        added = acid.writer.create_table("d1", "added", is_full=False, file_format="parquet")
        for number in (0, 3):
            rows = [(number + place, f"v{number}") for place in (1, 2, 3)]
            with acid.writer.transaction() as transaction:
                transaction.insert(plain, {(): rows})
                transaction.insert(added, {(): rows})
                transaction.insert(parted, {("a",): rows, ("b",): rows})
        acid.note()
    acid.world.settle()
    assert (acid.problems, acid.differences(), acid.quarantined()) == ([], [], {})
    return acid


PLAIN, PARTED, ADDED = (TableName("d1", name) for name in ("plain", "parted", "added"))


def settled(acid: AcidDeltaWorld) -> None:
    acid.note()
    acid.world.settle()
    assert (acid.problems, acid.differences()) == ([], [])


def log(acid: AcidDeltaWorld, name: TableName) -> Snapshot:
    root = root_of(acid, name)
    return snapshot(acid.world.storage.read, acid.world.storage.children(f"{root}/_delta_log"), root)


def root_of(acid: AcidDeltaWorld, name: TableName) -> str:
    return location_of(acid.world.target_store.the_table(name).table) or ""


def verified(acid: AcidDeltaWorld, data: str = "checksum") -> list[Difference]:
    source = with_commits(acid.world.source_side, acid.world.side.admission)
    return list(verify(source, acid.world.side, (), data, pool=lambda *_: InlineExecutor()).differences)


def commit_as_another(acid: AcidDeltaWorld, name: TableName, *actions: Mapping[str, Any]) -> None:
    path = f"{root_of(acid, name)}/_delta_log/{log(acid, name).version + 1:020}.json"
    acid.world.storage.write(path, "".join(json.dumps(row) + "\n" for row in actions).encode())


def test_a_step_writes_what_its_transactions_changed(acid: AcidDeltaWorld) -> None:
    """Files without a deleted row stay, in all partitions."""
    before = log(acid, PARTED).files
    with acid.writer.transaction() as transaction:
        transaction.delete(PARTED, lambda row: row[0] == 2, ("a",))
        transaction.insert(PARTED, {("c",): [(9, "new")]})
    version = log(acid, PARTED).version
    settled(acid)
    after = log(acid, PARTED)
    rewritten, [made] = (
        before.keys() - after.files.keys(),
        [add for add in after.files.values() if add["partitionValues"] == {"p": "c"}],
    )
    assert [before[path]["partitionValues"] for path in rewritten] == [{"p": "a"}]
    assert made["tags"]["calque.write_ids"] == "3-3"
    assert len(after.files) == len(before) + 1
    assert after.version > version


@pytest.mark.parametrize("is_major", [False, True])
def test_a_compaction_of_what_is_shown_leaves_the_files_as_they_are(acid: AcidDeltaWorld, is_major: bool) -> None:
    files = {name: log(acid, name).files.keys() for name in (PLAIN, ADDED)}
    for name in files:
        acid.writer.clean(acid.writer.compact(name, is_major=is_major))
    settled(acid)
    assert verified(acid) == verified(acid, "size") == []
    for name in files:
        with acid.writer.transaction() as transaction:
            transaction.insert(name, {(): [(9, "new")]})
    settled(acid)
    for name, before in files.items():
        assert before < log(acid, name).files.keys()
        assert len(log(acid, name).files) == len(before) + 1


def test_the_schema_does_not_name_the_row_ids(acid: AcidDeltaWorld) -> None:
    assert [name for name, _ in log(acid, PLAIN).columns()] == ["id", "v"]


def test_verify_finds_rows_that_are_not_the_sources(acid: AcidDeltaWorld) -> None:
    assert verified(acid) == []
    acid.world.looked = lambda _: None  # type: ignore[method-assign]
    storage, root = acid.world.storage, root_of(acid, PLAIN)
    path = f"{root}/{next(iter(log(acid, PLAIN).files))}"
    content = storage.read(path)
    assert content is not None
    number = next(value for value in (b"v0", b"v3") if value in content)
    for changed, kind in ((content.replace(number, b"v9"), DifferenceKind.CONTENT), (b"short", DifferenceKind.FILES)):
        storage.write(path, changed)
        assert [(one.table, one.kind) for one in verified(acid)] == [(PLAIN, kind)]
    storage.remove([path])
    assert [(one.table, one.kind) for one in verified(acid, "size")] == [(PLAIN, DifferenceKind.FILES)]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_read_makes_rows_anew_whose_files_are_not_those_of_the_log(acid: AcidDeltaWorld, is_there: bool) -> None:
    storage, root = acid.world.storage, root_of(acid, PARTED)
    path = next(path for path, add in log(acid, PARTED).files.items() if add["partitionValues"] == {"p": "a"})
    content = storage.read(f"{root}/{path}")
    storage.remove([f"{root}/{path}"])
    if is_there:
        storage.write(f"{root}/{path}", content)
    others = {path for path, add in log(acid, PARTED).files.items() if add["partitionValues"] == {"p": "b"}}
    acid.world.looked = lambda _: None  # type: ignore[method-assign]
    acid.world.replica.reads.reread(PARTED.__eq__, "the test wants it", {TableState.LIVE})
    acid.world.settle()
    assert path not in log(acid, PARTED).files
    assert others < log(acid, PARTED).files.keys()
    assert acid.differences() == []
    assert verified(acid) == []


def test_files_that_another_puts_into_the_log_go_with_the_next_step(acid: AcidDeltaWorld) -> None:
    add = {"path": "x.parquet", "partitionValues": {}, "size": 4, "modificationTime": 1, "dataChange": True}
    commit_as_another(acid, PLAIN, {"add": add})
    assert [(one.table, one.kind) for one in verified(acid)] == [(PLAIN, DifferenceKind.FILES)]
    gone = next(iter(log(acid, ADDED).files))
    commit_as_another(acid, ADDED, {"remove": {"path": gone, "deletionTimestamp": 1, "dataChange": True}})
    acid.problems.clear()
    with acid.writer.transaction() as transaction:
        transaction.insert(PLAIN, {(): [(9, "new")]})
        transaction.insert(ADDED, {(): [(9, "new")]})
    acid.note()
    acid.world.settle()
    assert acid.differences() == []
    assert verified(acid) == []


def test_files_without_row_ids_have_those_that_follow_from_their_place(acid: AcidDeltaWorld) -> None:
    """As LOAD DATA leaves them. A delete finds them."""
    writer, place = acid.writer, acid.writer.location(PLAIN)
    with writer.transaction() as transaction:
        transaction.insert(PLAIN, {(): [(7, "x"), (8, "y")]})
        write_id = transaction.write_id(PLAIN)
        directory = f"{place}/{delta_name('delta', write_id, write_id, 0)}"
        acid.world.storage.remove([directory])
        sink = io.BytesIO()
        orc.write_table(pa.table({"_col0": pa.array([7, 8], pa.int32()), "_col1": ["x", "y"]}), sink)
        acid.world.storage.write(f"{directory}/000000_0", sink.getvalue())
    settled(acid)
    with writer.transaction() as transaction:
        transaction.delete(PLAIN, lambda row: row[0] == 7)
    settled(acid)
    assert verified(acid) == []


def test_files_of_before_a_table_was_an_acid_table_are_rows_of_it(acid: AcidDeltaWorld) -> None:
    """The table is a plain one at the target until then."""
    world, writer = acid.world, acid.writer
    with world.uninterrupted():
        name = writer.create_table("d1", "converted")
        definition, storage = writer.definition(name), writer.definition(name).storage
        assert storage is not None
        writer.drop(name)
        world.source.create_table(replace(definition, parameters={}, storage=replace(storage, location=None)))
        place = location_of(world.source.the_table(name).table)
        sink = io.BytesIO()
        orc.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}), sink)
        world.storage.write(f"{place}/000000_0", sink.getvalue())
    world.settle()
    assert verified(acid) == []
    with world.uninterrupted():
        plain = world.source.the_table(name).table
        world.source.alter_table(name, replace(plain, parameters={"transactional": "true"}))
    world.settle()
    assert acid.quarantined() == {}
    assert acid.shown(name) == {"": [((0, 1 << 29, 0), 1, "a"), ((0, 1 << 29, 1), 2, "b")]}
    assert verified(acid) == []


@pytest.mark.parametrize(("word", "kind"), [("external", None), ("native", None), ("skip", "delta")])
def test_another_word_moves_tables_over_and_back(acid: AcidDeltaWorld, word: str, kind: str | None) -> None:
    """With `skip` they stay as they are, and are set aside."""
    for acid_word, wanted in ((word, kind), ("delta", "delta")):
        taken_up(acid, acid_word)
        stored = acid.world.target_store.the_table(ADDED)
        assert (stored.table.parameters or {}).get("calque.format") == wanted
    assert acid.differences() == []
    assert acid.quarantined() == {}
    assert verified(acid) == []


def taken_up(acid: AcidDeltaWorld, word: str) -> None:
    """Another process takes the target up, with another word for ACID tables."""
    world = acid.world
    world.side = TargetSide.of(
        replace(world.policy, acid=word),
        world.target_catalog(),
        world.ledger,
        world.storage,
        formats=formats_of(world.policy),
        transactions=world.target_transactions() if word == "native" else None,
    )
    world.looked = lambda _: None  # type: ignore[method-assign]
    world.background.waiting.clear()
    world.replica = world.new_replica()
    world.open()
    world.settle()


def test_a_plain_replica_of_an_acid_table_is_a_plain_table_for_the_next_target(acid: AcidDeltaWorld) -> None:
    with acid.world.uninterrupted():
        name = acid.writer.create_table("d1", "chained")
        definition, storage = acid.writer.definition(name), acid.writer.definition(name).storage
        assert storage is not None
        acid.writer.drop(name)
        said = {"calque.source.transactional": "true", "calque.rows": "full", "calque.format": "delta"}
        acid.world.source.create_table(replace(definition, parameters=said, storage=replace(storage, location=None)))
    acid.world.settle()
    assert acid.quarantined() == {}
    parameters = acid.world.target_store.the_table(name).table.parameters or {}
    assert not parameters.keys() & {"calque.rows", "calque.format"}


def test_files_that_no_version_needs_go_with_a_checkpoint(acid: AcidDeltaWorld) -> None:
    storage, directory = acid.world.storage, f"{root_of(acid, PLAIN)}/_calque/rows"
    storage.write(f"{directory}/left.parquet", b"by a death")
    for number in range(2 * CHECKPOINT_EVERY):
        acid.world.clock.sleep(2 * GRACE)
        with acid.writer.transaction() as transaction:
            transaction.update(PLAIN, lambda _: True, lambda row, number=number: (row[0], f"n{number}"))
        settled(acid)
    needed = {path.rpartition("/")[2] for path in log(acid, PLAIN).files}
    kept = set(storage.children(directory))
    assert needed <= kept
    assert "left.parquet" not in kept
    assert len(kept) <= len(needed) * (CHECKPOINT_EVERY + 2)


def test_small_files_of_tables_that_are_not_copied_are_not_combined() -> None:
    rules = {"*.*": SmallFilesRule(files=2, below=10**6)}
    acid = AcidDeltaWorld(3, replace(POLICY, appends="new_directory", compact=rules))
    acid.world.open()
    with acid.world.uninterrupted():
        acid.writer.buckets = 3
        name = acid.writer.create_table("d1", "small", ("p",), is_full=False, file_format="parquet")
        with acid.writer.transaction() as transaction:
            transaction.insert(name, {("a",): [(number, "v") for number in range(6)]})
    settled(acid)
    assert verified(acid) == []


def test_a_table_whose_columns_do_not_fit_is_set_aside_with_the_reason(acid: AcidDeltaWorld) -> None:
    with acid.world.uninterrupted():
        acid.writer.create_table("d1", "odd", columns=(Column("id", "int"), Column("v", "char(3)")))
    acid.world.settle()
    assert "its column v has the type char(3), which Delta does not have" in acid.quarantined()["d1.odd"]


def test_a_new_column_is_null_in_rows_that_were_written_without_it(acid: AcidDeltaWorld) -> None:
    with acid.world.uninterrupted():
        definition, known = acid.writer.definition(PLAIN), acid.writer.tables[PLAIN]
        columns = (*known.columns, Column("w", "string"))
        assert definition.storage is not None
        acid.world.source.alter_table(PLAIN, replace(definition, storage=replace(definition.storage, columns=columns)))
        acid.writer.tables[PLAIN] = replace(known, columns=columns)
    acid.world.settle()
    with acid.writer.transaction() as transaction:
        transaction.insert(PLAIN, {(): [(9, "new", "w")]})
    acid.world.settle()
    assert acid.quarantined() == {}
    assert verified(acid) == []
    assert [name for name, _ in log(acid, PLAIN).columns()] == ["id", "v", "w"]
