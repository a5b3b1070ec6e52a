"""Control records: whole or not there, counted once across processes, nothing outside their folder."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.errors import Refused, StateUnusable, Unavailable
from calque.ports.records import MISSING, Json

BUMPS, PROCESSES = 50, 3
BUMP = f"""
import json, sys
from calque.adapters.control import ControlStore
print(json.dumps([ControlStore(sys.argv[1]).bump("wake/dr") for _ in range({BUMPS})]))
"""


@pytest.fixture
def control(tmp_path: Path) -> ControlStore:
    return ControlStore(tmp_path / "control")


def test_what_was_put_is_read_also_through_another_store(tmp_path: Path) -> None:
    record: dict[str, Json] = {"at": 1.5, "tables": ["sales.ä"], "nothing": None, "deep": {"yes": True}}
    ControlStore(tmp_path).put("paused/dr", record)
    assert ControlStore(str(tmp_path)).read("paused/dr") == record


def test_a_record_that_was_never_put_is_none(control: ControlStore) -> None:
    assert (control.read("paused/dr"), control.count("wake/dr"), control.stamp("a")) == (None, 0, MISSING)


def test_putting_again_replaces_the_whole_record(control: ControlStore) -> None:
    control.put("a", {"one": 1, "two": 2})
    control.put("a", {"three": 3})
    assert control.read("a") == {"three": 3}


def test_a_reader_never_meets_a_part_of_a_record(control: ControlStore) -> None:
    records: list[dict[str, Json]] = [{"n": n, "text": str(n) * 5000} for n in range(2)]
    control.put("a", records[0])
    stopping = threading.Event()

    def write() -> None:
        while not stopping.is_set():
            for record in records:
                control.put("a", record)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [control.read("a") for _ in range(300)]
    finally:
        stopping.set()
        writer.join()
    assert all(record in records for record in found)


def test_nothing_but_records_is_left_behind(control: ControlStore, tmp_path: Path) -> None:
    for number in range(5):
        control.put("paused/dr", {"n": number})
    assert [path.name for path in (tmp_path / "control" / "paused").iterdir()] == ["dr.json"]


def test_a_record_that_no_json_can_say_leaves_the_old_one(control: ControlStore) -> None:
    control.put("a", {"n": 1})
    with pytest.raises(TypeError):
        control.put("a", {"n": object()})  # type: ignore[dict-item]
    assert control.read("a") == {"n": 1}


def test_names_are_sorted_and_leave_out_drafts_and_locks(control: ControlStore, tmp_path: Path) -> None:
    for name in ("b", "paused/dr", "paused/bi", "paused.old"):
        control.put(name, {})
    control.bump("wake/dr")
    (tmp_path / "control" / "paused" / ".bi.json.5f").write_text("{")
    assert control.names() == ["b", "paused.old", "paused/bi", "paused/dr", "wake/dr"]
    assert control.names("paused/") == ["paused/bi", "paused/dr"]


def test_removing_ends_a_record_and_may_be_done_twice(control: ControlStore) -> None:
    control.put("a", {})
    control.remove("a")
    control.remove("a")
    assert (control.read("a"), control.names()) == (None, [])


def test_no_two_processes_get_the_same_number(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUMP, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    numbers = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    assert sorted(number for one in numbers for number in one) == list(range(1, BUMPS * PROCESSES + 1))
    assert all(one == sorted(one) for one in numbers)
    assert ControlStore(tmp_path).count("wake/dr") == BUMPS * PROCESSES


def test_every_write_changes_the_stamp_even_one_of_equal_content(control: ControlStore) -> None:
    control.put("a", {"n": 1})
    stamp = control.stamp("a")
    assert not control.changed_since("a", stamp)
    control.put("a", {"n": 1})
    assert control.changed_since("a", stamp)


def test_appearing_and_vanishing_are_changes(control: ControlStore) -> None:
    assert not control.changed_since("a", MISSING)
    control.put("a", {})
    stamp = control.stamp("a")
    assert control.changed_since("a", MISSING)
    control.remove("a")
    assert control.changed_since("a", stamp)


@pytest.mark.parametrize("name", ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", ".a", "a b", "ä", "a\n"])
def test_a_name_that_could_leave_the_folder_or_hide_is_refused(control: ControlStore, name: str) -> None:
    for call in (lambda: control.put(name, {}), lambda: control.read(name), lambda: control.bump(name)):
        with pytest.raises(Refused):
            call()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"\xff"])
def test_a_file_that_is_no_record_is_damage(control: ControlStore, tmp_path: Path, content: bytes) -> None:
    control.put("a", {})
    (tmp_path / "control" / "a.json").write_bytes(content)
    with pytest.raises(StateUnusable, match=r"a\.json is damaged"):
        control.read("a")


@pytest.mark.parametrize("record", [{}, {"count": "1"}, {"count": None}])
def test_a_record_that_is_no_counter_is_not_counted_up(control: ControlStore, record: dict[str, Json]) -> None:
    control.put("a", record)
    with pytest.raises(StateUnusable):
        control.bump("a")
    assert control.read("a") == record


def test_a_folder_that_can_not_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "control").write_text("a file")
    with pytest.raises(Unavailable):
        ControlStore(tmp_path / "control").put("a", {})
