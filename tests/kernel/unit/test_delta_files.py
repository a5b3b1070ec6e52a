"""Versions of Delta tables, copied: real tables of delta-rs on local files, read back by delta-rs after each effect."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from calque.adapters.files import FileStorage
from calque.engine.files.delta_versions import VersionLost, advance, bring_whole, live_files
from calque.model.files import Listing
from calque.ports import CopiedFile, CopyTask

Rows = list[tuple[str, int]]
CONFIGURATION = {"delta.logRetentionDuration": "interval 0 seconds", "delta.enableExpiredLogCleanup": "true"}


class Watched:
    """A storage after each of whose renames and copies a reader looks."""

    def __init__(self, look: Any) -> None:
        self._storage, self._look = FileStorage(), look
        self.copied: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def copy(self, tasks: Sequence[CopyTask]) -> Sequence[CopiedFile]:
        results = []
        for task in tasks:
            results += self._storage.copy([task])
            self.copied.append(task.target)
            self._look()
        return results

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for rename in renames:
            self._storage.publish([rename])
            self._look()

    def write(self, path: str, content: bytes) -> None:
        self._storage.write(path, content)
        self._look()


class Pair:
    """A source's table and its copy. `states` are the rows of the source's versions, `seen` what a reader of the copy
    saw: (version, rows)."""

    def __init__(self, root: Path) -> None:
        self.source, self.target = root / "source", root / "target"
        self.states: dict[int, Rows] = {}
        self.seen: list[tuple[int, Rows]] = []
        self.watching = True
        self.storage = Watched(self.look)

    def look(self) -> None:
        if self.watching and any((self.target / "_delta_log").glob("*.json")):
            table = DeltaTable(self.target)
            self.seen.append((table.version(), rows_of(table)))

    def write(self, *values: tuple[str, int], mode: Any = "append", **options: Any) -> None:
        data = pa.table({"p": [p for p, _ in values], "a": [a for _, a in values]})
        write_deltalake(self.source, data, mode=mode, **options)
        self.note()

    def note(self) -> None:
        table = DeltaTable(self.source)
        self.states[table.version()] = rows_of(table)

    def delete(self, predicate: str) -> None:
        DeltaTable(self.source).delete(predicate)
        self.note()

    def listing(self, of: Path) -> Listing:
        return FileStorage().list([f"file:{of}"])[f"file:{of}"]

    def whole(self) -> None:
        """A directory that nobody reads while it is made."""
        self.watching = False
        bring_whole(self.storage, self.listing(self.source), f"file:{self.target}")
        self.watching = True
        self.look()

    def advance(self, event_id: int = 7) -> bool:
        found = advance(self.storage, self.listing(self.target), self.listing(self.source), event_id)
        return found is not None

    def check(self) -> None:
        """A reader saw versions of the source, all of them whole, and they went on."""
        versions = [version for version, _ in self.seen]
        assert versions == sorted(versions)
        assert all(rows == self.states[version] for version, rows in self.seen)
        source, target = self.listing(self.source), self.listing(self.target)
        assert source.fingerprint() == target.fingerprint()
        storage = FileStorage()
        live, there = live_files(storage, source), live_files(storage, target)
        assert [(file.path, file.size) for file in live.files] == [(file.path, file.size) for file in there.files]


def rows_of(table: DeltaTable) -> Rows:
    found = table.to_pyarrow_table().to_pylist()
    return sorted((row["p"], row["a"]) for row in found)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_a_table_goes_on_in_place_version_by_version(pair: Pair) -> None:
    pair.write(("x", 1), ("a b%/=é", 2), partition_by=["p"])
    pair.whole()
    pair.write(("x", 3))
    pair.write(("y", 4), mode="overwrite")
    pair.write(("y", 5))
    pair.delete("a = 4")
    assert pair.advance()
    pair.check()
    assert {version for version, _ in pair.seen} == {0, 1, 2, 3, 4}
    pair.write(("z", 6))
    assert pair.advance(8)
    pair.check()
    assert not (pair.target / "_calque_stage/8/_delta_log").exists() or not list(
        (pair.target / "_calque_stage/8/_delta_log").iterdir()
    )


def test_what_a_reader_may_go_back_to_at_the_target_is_what_it_may_at_the_source(pair: Pair) -> None:
    for number in range(4):
        pair.write(("x", number), mode="overwrite")
    pair.whole()
    pair.write(("x", 9), mode="overwrite")
    assert pair.advance()
    for version, rows in pair.states.items():
        assert rows_of(DeltaTable(pair.target, version=version)) == rows


def test_a_vacuumed_version_is_copied_without_what_is_gone(pair: Pair) -> None:
    for number in range(3):
        pair.write(("x", number), mode="overwrite")
    vacuum(pair)
    pair.whole()
    pair.check()
    assert pair.seen[-1] == (pair.states.keys() and max(pair.states), [("x", 2)])


def vacuum(pair: Pair) -> None:
    DeltaTable(pair.source).vacuum(0, dry_run=False, enforce_retention_duration=False)
    pair.note()


def test_a_version_whose_files_were_vacuumed_is_never_shown(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.whole()
    pair.write(("x", 1), mode="overwrite")
    pair.write(("x", 2), mode="overwrite")
    vacuum(pair)
    assert not pair.advance()
    assert pair.seen[-1] == (0, [("x", 0)])
    assert pair.listing(pair.target).version == 0


def test_a_log_that_begins_after_what_is_shown_can_not_go_on(pair: Pair) -> None:
    pair.write(("x", 0), configuration=CONFIGURATION)
    pair.whole()
    for number in range(3):
        pair.write(("x", number))
    DeltaTable(pair.source).create_checkpoint()
    DeltaTable(pair.source).cleanup_metadata()
    pair.write(("y", 1))
    assert not (pair.source / f"_delta_log/{1:020}.json").exists()
    assert not pair.advance()
    assert pair.listing(pair.target).version == 0
    shutil.rmtree(pair.target)
    pair.seen.clear()
    pair.whole()
    pair.check()
    assert (pair.target / "_delta_log/_last_checkpoint").is_file()
    pair.write(("y", 2))
    assert pair.advance()
    pair.check()


def test_another_table_at_the_same_path_does_not_go_on_from_the_one_before(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.write(("x", 1))
    pair.whole()
    shutil.rmtree(pair.source)
    for number in range(4):
        pair.write(("other", number))
    assert not pair.advance()
    assert pair.listing(pair.target).version == 1


def test_another_table_that_came_to_lie_at_the_path_is_not_taken_for_the_wanted_one(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.write(("x", 1))
    wanted = pair.listing(pair.source)
    shutil.rmtree(pair.source)
    for number in range(3):
        pair.write(("other", number))
    with pytest.raises(VersionLost, match="another log"):
        bring_whole(FileStorage(), wanted, f"file:{pair.target}")
    with pytest.raises(VersionLost, match="another log"):
        live_files(FileStorage(), wanted)
    DeltaTable(pair.source).create_checkpoint()
    moved = Listing(wanted.location, (replace(wanted.files[0], path=pair.listing(pair.source).files[0].path),))
    with pytest.raises(VersionLost, match="another log"):
        bring_whole(FileStorage(), moved, f"file:{pair.target}")
    assert not pair.target.exists()


def test_a_log_that_is_exchanged_while_it_is_copied_leaves_no_commit_of_the_other(pair: Pair) -> None:
    pair.write(("x", 0))
    wanted = pair.listing(pair.source)

    def exchange() -> None:
        if (pair.source / "_delta_log").exists() and not exchanged:
            exchanged.append(True)
            shutil.rmtree(pair.source / "_delta_log")
            write_deltalake(pair.source, pa.table({"p": ["other"], "a": [1]}))

    exchanged: list[bool] = []
    storage = Watched(exchange)
    with pytest.raises(VersionLost, match="another log"):
        bring_whole(storage, wanted, f"file:{pair.target}")
    assert not list((pair.target / "_delta_log").glob("*.json"))


def test_a_commit_of_somebody_else_at_the_target_is_not_built_upon(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.whole()
    pair.watching = False
    write_deltalake(pair.target, pa.table({"p": ["foreign"], "a": [1]}), mode="append")
    pair.write(("x", 1))
    pair.write(("x", 2))
    assert not pair.advance()


def test_readers_begin_with_the_newest_checkpoint_of_the_source(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.whole()
    for number in range(5):
        pair.write(("x", number))
    DeltaTable(pair.source).create_checkpoint()
    pair.write(("x", 9))
    assert pair.advance()
    pair.check()
    names = {path.name for path in (pair.target / "_delta_log").iterdir()}
    assert {f"{5:020}.checkpoint.parquet", "_last_checkpoint"} <= names
    for path in (pair.target / "_delta_log").glob("*.json"):
        if int(path.stem) < 5:
            path.unlink()
    assert rows_of(DeltaTable(pair.target)) == pair.states[6]


def test_a_checkpoint_of_a_later_version_is_not_brought(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.write(("x", 1))
    earlier = pair.listing(pair.source)
    pair.write(("x", 2))
    DeltaTable(pair.source).create_checkpoint()
    bring_whole(FileStorage(), earlier, f"file:{pair.target}")
    assert rows_of(DeltaTable(pair.target)) == pair.states[1]
    assert not list((pair.target / "_delta_log").glob("*checkpoint*"))


def test_a_file_that_is_gone_is_named_and_leaves_no_version_behind(pair: Pair) -> None:
    pair.write(("x", 0))
    listing = pair.listing(pair.source)
    [data] = pair.source.glob("*.parquet")
    data.unlink()
    with pytest.raises(VersionLost, match=data.name):
        bring_whole(FileStorage(), listing, f"file:{pair.target}")
    assert not (pair.target / "_delta_log").exists()


def test_what_was_copied_is_not_copied_again(pair: Pair) -> None:
    pair.write(("x", 0))
    pair.whole()
    pair.write(("x", 1))
    [new] = [path for path in pair.source.glob("*.parquet") if not (pair.target / path.name).exists()]
    shutil.copy2(new, pair.target / new.name)
    before = list(pair.storage.copied)
    assert pair.advance()
    assert [Path(path).suffix for path in pair.storage.copied[len(before) :]] == [".json"]
    assert pair.advance()
    assert len(pair.storage.copied) == len(before) + 1


def test_live_files_of_a_plain_listing_are_its_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    listing = FileStorage().list([str(tmp_path)])[str(tmp_path)]
    assert live_files(FileStorage(), listing) == listing
