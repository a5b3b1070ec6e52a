"""Damage of the state folder: each kind of file, cut or with a bit flipped, is one line that says what to do."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from calque.adapters.control import ControlStore
from calque.adapters.delta import table as tables
from calque.adapters.delta.snapshot import SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.core.records.state_damage import damaged
from calque.errors import StateUnusable
from support.runs.seeds import seed

SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("files", pa.list_(pa.struct([pa.field("path", pa.string()), pa.field("size", pa.int64())]))),
    ]
)
LAST = "journal"
FLIPS = 25
Content = tuple[int, Mapping[str, int], Sequence[Any]]


def table(folder: Path) -> RangedTable:
    return RangedTable(str(folder), SCHEMA, (LAST,))


def grown(folder: Path, commits: int) -> Path:
    """A table of so many commits."""
    grows = table(folder)
    for number in range(commits):
        rows = [
            {"event_id": number * 2 + 1, "text": f"row {number}" * 20, "files": [{"path": "a", "size": number}]},
            {"event_id": number * 2 + 2, "text": None, "files": []},
        ]
        files = grows.write([pa.Table.from_pylist(rows, SCHEMA)])
        marks = {LAST: number * 2 + 2}
        grows.commit(lambda _, files=files, marks=marks: SnapshotChange(add=files, marks=marks))
    return folder


def content(folder: Path) -> Content:
    reads = table(folder)
    snapshot = reads.snapshot()
    return snapshot.version, dict(snapshot.marks), reads.read(range(10_000)).to_pylist()


@pytest.fixture(autouse=True)
def _few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ATTEMPTS", 2)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grown(tmp_path_factory.mktemp("sound") / "state" / "ledgers" / "dr" / "epochs", 4)


@pytest.fixture
def copied(sound: Path, tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """A copy of the table, and the file of that name in it: the first one for a pattern."""

    def copy(pattern: str) -> tuple[Path, Path]:
        folder = tmp_path / "state" / "ledgers" / "dr" / "epochs"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sound, folder)
        return folder, min(folder.glob(pattern))

    return copy


def cut(data: bytes, where: str) -> bytes:
    return {"at 0": b"", "at half": data[: len(data) // 2], "before the last byte": data[:-1]}[where]


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


FIRST, MIDDLE, DATA = (f"_delta_log/{0:020}.json", f"_delta_log/{2:020}.json", "*.parquet")


@pytest.mark.parametrize("where", ["at 0", "at half", "before the last byte"])
@pytest.mark.parametrize("file", [FIRST, MIDDLE, DATA], ids=["first commit", "a commit", "data file"])
def test_a_table_with_a_file_that_is_cut_is_one_line_with_folder_loss_and_way_on(
    copied: Callable[[str], tuple[Path, Path]], file: str, where: str
) -> None:
    folder, path = copied(file)
    path.write_bytes(cut(path.read_bytes(), where))
    with pytest.raises(StateUnusable) as raised:
        content(folder)
    assert raised.value.what == f"{folder} is damaged"
    assert raised.value.todo.startswith(
        f"Put it back from a copy, or say `rm -r '{folder.parent}'` and start again: lost"
    )
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 65


@pytest.mark.parametrize("file", [DATA, MIDDLE], ids=["data file", "a commit"])
def test_a_table_that_lacks_a_file_is_damaged(copied: Callable[[str], tuple[Path, Path]], file: str) -> None:
    folder, path = copied(file)
    path.unlink()
    with pytest.raises(StateUnusable, match="is damaged"):
        content(folder)


def test_a_newest_commit_that_a_machine_left_empty_when_it_lost_its_power_was_never_made(
    copied: Callable[[str], tuple[Path, Path]],
) -> None:
    folder, path = copied(f"_delta_log/{4:020}.json")
    path.write_bytes(b"")
    assert content(folder)[1][LAST] == 6
    grown_on = table(folder)
    grown_on.commit(lambda _: SnapshotChange(marks={LAST: 8}))
    assert content(folder)[1][LAST] == 8


@pytest.mark.parametrize("file", [FIRST, MIDDLE, DATA], ids=["first commit", "a commit", "data file"])
def test_whichever_bit_is_flipped_a_table_is_damaged_or_says_what_it_said(
    sound: Path, copied: Callable[[str], tuple[Path, Path]], file: str
) -> None:
    truth, chance = content(sound), random.Random(seed())
    for _ in range(FLIPS):
        folder, path = copied(file)
        data = path.read_bytes()
        bit = chance.randrange(len(data) * 8)
        path.write_bytes(flipped(data, bit))
        with suppress(StateUnusable):
            found = content(folder)
            if found != truth:
                pytest.fail(f"{file}: bit {bit} changes what is read")


def test_a_handle_that_was_open_meets_the_damage_of_a_new_commit(copied: Callable[[str], tuple[Path, Path]]) -> None:
    folder, _ = copied(FIRST)
    reader = table(folder)
    assert reader.snapshot().version == 4
    (folder / f"_delta_log/{5:020}.json").write_text('{"add":{"path":"x')
    with pytest.raises(StateUnusable, match="is damaged"):
        reader.snapshot()


@pytest.mark.parametrize("where", ["at 0", "at half", "before the last byte"])
def test_a_record_that_is_cut_is_damage_and_one_of_the_moment_is_done_without(tmp_path: Path, where: str) -> None:
    control = ControlStore(tmp_path / "state" / "control")
    for name in ("identity", "paused/dr", "capturing", "running/dr", "processes/1", "requests/dr/1"):
        control.put(name, {"state": "running", "at": 1.5})
        path = Path(control.place(name))
        path.write_bytes(cut(path.read_bytes(), where))
    for name in ("identity", "paused/dr"):
        with pytest.raises(StateUnusable, match=f"{name}.json is damaged"):
            control.read(name)
    assert [control.read(name) for name in ("capturing", "running/dr", "processes/1", "requests/dr/1")] == [None] * 4


def test_whichever_bit_is_flipped_a_record_is_damaged_or_says_what_it_said(tmp_path: Path) -> None:
    control, record = ControlStore(tmp_path), {"id": "a3f", "format": 1, "deep": {"n": [1, 2.5, None]}}
    control.put("identity", record)
    path = Path(control.place("identity"))
    data = path.read_bytes()
    for bit in range(len(data) * 8):
        path.write_bytes(flipped(data, bit))
        try:
            found = control.read("identity")
        except StateUnusable:
            continue
        assert found is not None
        assert {name: found.get(name) for name in record} == record, bit


@pytest.mark.parametrize(
    ("place", "whole", "lost"),
    [
        ("/s/ledgers/dr/objects", "/s/ledgers/dr", "the target's epochs"),
        ("/s/ledgers/dr/history/hops", "/s/ledgers/dr/history", "the rest goes on"),
        ("/s/sources/far/journal", "/s/sources/far/journal", "events that a target does not show yet"),
        ("/s/evidence", "/s/evidence", "which files belonged to states that are over"),
        ("/s/control/paused/dr.json", "/s/control/paused/dr.json", "that the target is held back"),
        ("/s/control/gaps.json", "/s", "all that this folder knows"),
        ("s3://bucket/state/journal", "s3://bucket/state/journal", "events that a target"),
    ],
)
def test_the_way_on_is_said_for_what_goes_as_a_whole(place: str, whole: str, lost: str) -> None:
    error = damaged(place, "why")
    assert error.what == f"{place} is damaged"
    assert f"'{whole}'" in error.todo or f"remove {whole}" in error.todo
    assert lost in error.todo
