"""What the log of a Delta table says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from calque.core.formats.deltalog import (
    Actions,
    Checkpoint,
    DataFile,
    checkpoint_actions,
    commit_actions,
    commit_path,
    log_of,
    newest_commit,
    replayed,
    starts_with,
    vector_path,
)
from calque.errors import Refused

VALUES = ["plain", "a b", "50%", "a/b", "k=v", "10:30", "é", "日本", "#x", "?", "'\"", "+", None]


def commit(*actions: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(action) for action in actions).encode()


def rows(*values: str | None) -> pa.Table:
    return pa.table({"p": pa.array(values, pa.string()), "a": pa.array(range(len(values)))})


def on_disk(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_delta_log" not in path.parts}


def commits_of(root: Path, first: int = 0) -> list[Actions]:
    newest = newest_commit(path.name for path in (root / "_delta_log").iterdir())
    assert newest is not None
    return [commit_actions((root / commit_path(version)).read_bytes()) for version in range(first, newest + 1)]


def test_paths_in_a_log_are_those_on_disk_whatever_the_partitions_are_called(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(*VALUES), partition_by=["p"])
    live = replayed([], commits_of(tmp_path))
    assert {file.path for file in live} == on_disk(tmp_path)
    assert len(live) == len(VALUES)


def test_a_version_needs_what_was_added_and_not_removed(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, rows("x", str(number)), mode="append")
    table = DeltaTable(tmp_path)
    table.delete("p = 'x' and a = 0")
    table.optimize.compact()
    wanted = {Path(uri).relative_to(tmp_path) for uri in DeltaTable(tmp_path).file_uris()}
    assert {file.path for file in replayed([], commits_of(tmp_path))} == {str(path) for path in wanted}
    assert wanted < {Path(path) for path in on_disk(tmp_path)}


def test_a_checkpoint_says_what_all_commits_up_to_it_say(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(*VALUES), partition_by=["p"])
    write_deltalake(tmp_path, rows("x", "y"), mode="append")
    DeltaTable(tmp_path).delete("p = 'a b'")
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, rows("z"), mode="append")
    found = log_of(path.name for path in (tmp_path / "_delta_log").iterdir())
    checkpoint = found.checkpoint(3)
    assert checkpoint == Checkpoint(2, ("_delta_log/00000000000000000002.checkpoint.parquet",))
    base = checkpoint_actions((tmp_path / checkpoint.files[0]).read_bytes())
    everything = commits_of(tmp_path)
    assert set(base.added) == replayed([], everything[:3])
    assert replayed([base], everything[3:]) == replayed([], everything)
    pointer = (tmp_path / "_delta_log/_last_checkpoint").read_bytes()
    assert starts_with(pointer, checkpoint)
    assert not starts_with(pointer, Checkpoint(3, checkpoint.files))
    assert not starts_with(pointer, Checkpoint(2, checkpoint.files * 2))
    assert not starts_with(b"no json", checkpoint)
    assert not starts_with(None, checkpoint)


def test_change_data_files_are_no_part_of_a_version(tmp_path: Path) -> None:
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, rows("x", "y"), configuration=configuration)
    DeltaTable(tmp_path).update(updates={"a": "7"}, predicate="p = 'x'")
    *_, last = commits_of(tmp_path)
    assert last.changes
    assert all((tmp_path / path).is_file() for path in last.changes)
    assert not set(last.changes) & {file.path for file in replayed([], commits_of(tmp_path))}


def test_a_deletion_vector_is_named_as_the_protocol_says() -> None:
    assert vector_path("ab^-aqEH.-t@S}K{vb[*k^") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_path("^-aqEH.-t@S}K{vb[*k^") == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_a_file_with_another_deletion_vector_is_another_state_of_it() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^", "offset": 1}
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    first = commit_actions(commit({"add": {"path": "f"}}))
    second = commit_actions(commit({"remove": {"path": "f"}}, {"add": {"path": "f", "deletionVector": vector}}))
    moved = {**vector, "offset": 40}
    third = commit_actions(
        commit(
            {"remove": {"path": "f", "deletionVector": vector}},
            {"add": {"path": "f", "deletionVector": moved}},
            {"add": {"path": "g", "deletionVector": inline}},
        )
    )
    file = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert [found.paths for found in replayed([], [first, second])] == [("f", file)]
    assert {found.paths for found in replayed([], [first, second, third])} == {("f", file), ("g",)}


def test_a_commit_may_add_a_file_again_in_any_order_of_its_lines() -> None:
    added = {"add": {"path": "f", "deletionVector": {"storageType": "i", "pathOrInlineDv": "x"}}}
    removed = {"remove": {"path": "f"}}
    for actions in ([added, removed], [removed, added]):
        live = replayed([commit_actions(commit({"add": {"path": "f"}}))], [commit_actions(commit(*actions))])
        assert live == {DataFile("f", "ix@None")}


@pytest.mark.parametrize(
    "action",
    [
        {"add": {"path": "file:/elsewhere/f"}},
        {"add": {"path": "s3a://bucket/f"}},
        {"add": {"path": "/elsewhere/f"}},
        {"add": {"path": "../f"}},
        {"add": {"path": "%2E%2E/f"}},
        {"cdc": {"path": "file:/elsewhere/f"}},
        {"sidecar": {"path": "file:/elsewhere/f"}},
        {"add": {"path": "f", "deletionVector": {"storageType": "p", "pathOrInlineDv": "file:/elsewhere/d.bin"}}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["catalogManaged"]}},
    ],
)
def test_a_table_whose_files_are_not_its_own_or_whose_log_is_elsewhere_is_refused(action: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        commit_actions(commit(action))


def protocol(reader: int, writer: int, **features: list[str]) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


@pytest.mark.parametrize(
    ("action", "named"),
    [
        (protocol(3, 7, readerFeatures=["neverHeardOf"], writerFeatures=["neverHeardOf"]), "feature neverHeardOf"),
        (protocol(3, 7, readerFeatures=["redirectReaderWriter-preview"]), "feature redirectReaderWriter-preview"),
        (protocol(1, 7, writerFeatures=["appendOnly", "redirectWriterOnly"]), "feature redirectWriterOnly"),
        (protocol(3, 7, writerFeatures=["adaptiveMetadata-preview"]), "feature adaptiveMetadata-preview"),
        (protocol(4, 7), "protocol 4 for readers"),
        (protocol(3, 8), "protocol 8 for writers"),
    ],
)
def test_a_table_with_what_calque_does_not_know_is_refused_by_name(
    action: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=named):
        commit_actions(commit(action))
    file = tmp_path / "checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist([action]), file)
    with pytest.raises(Refused, match=named):
        checkpoint_actions(file.read_bytes())


@pytest.mark.parametrize(
    "action",
    [
        protocol(1, 2),
        protocol(2, 6),
        protocol(
            3, 7, readerFeatures=["deletionVectors", "v2Checkpoint"], writerFeatures=["rowTracking", "clustering"]
        ),
        protocol(3, 7, readerFeatures=[], writerFeatures=[]),
    ],
)
def test_a_table_with_known_features_is_copied(action: dict[str, Any]) -> None:
    assert commit_actions(commit(action, {"add": {"path": "f"}})) == Actions((DataFile("f"),))


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(Refused, match="commit"):
        commit_actions(b"{")
    with pytest.raises(Refused, match="checkpoint"):
        checkpoint_actions(b"PAR1")


def name(version: int, rest: str) -> str:
    return f"{version:020}.{rest}"


def test_only_whole_checkpoints_count_and_of_two_the_one_with_fewer_files() -> None:
    unique = "80a083e8-7026-4e79-81be-64bd76c43a11"
    names = [
        name(0, "json"),
        name(1, "json"),
        name(1, "checkpoint.parquet"),
        name(2, "checkpoint.0000000001.0000000002.parquet"),
        name(2, "checkpoint.0000000002.0000000002.parquet"),
        name(3, "checkpoint.0000000001.0000000002.parquet"),
        name(4, f"checkpoint.{unique}.json"),
        name(5, f"checkpoint.{unique}.parquet"),
        name(5, "checkpoint.0000000001.0000000002.parquet"),
        name(5, "checkpoint.0000000002.0000000002.parquet"),
        name(6, "00000000000000000009.compacted.json"),
        name(7, "crc"),
        f".{name(8, 'json.crc')}",
        "_last_checkpoint",
        "_sidecars",
    ]
    found = log_of(reversed(names))
    assert found.commits == {0, 1}
    assert [(checkpoint.version, len(checkpoint.files)) for checkpoint in found.checkpoints] == [
        (1, 1),
        (2, 2),
        (4, 1),
        (5, 1),
    ]
    assert found.checkpoint(0) is None
    assert found.checkpoint(3) == Checkpoint(2, (f"_delta_log/{names[3]}", f"_delta_log/{names[4]}"))
    assert newest_commit(names) == 1
    assert newest_commit(["_sidecars", name(7, "crc")]) is None


def test_sidecars_of_a_checkpoint_lie_beside_it(tmp_path: Path) -> None:
    sidecars = pa.array([{"path": "s.parquet", "sizeInBytes": 1}, None])
    pq.write_table(pa.table({"sidecar": sidecars}), tmp_path / "c.parquet")
    found = checkpoint_actions((tmp_path / "c.parquet").read_bytes())
    assert found == Actions(sidecars=("_delta_log/_sidecars/s.parquet",))
