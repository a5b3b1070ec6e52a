"""REPL LOAD: dumps that Hive itself wrote, played into a target in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.adapters.files.storage import FileStorage
from calque.engine.sides.sides import SystemClock
from calque.errors import Refused
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.plugins.dumps.adapters.directory import open_dump
from calque.plugins.dumps.run.load import LoadBounds, name_of
from calque.plugins.dumps.run.load_target import incomplete
from calque.plugins.dumps.wiring.dump_source import OpenedDump
from calque.ports.forwarding import ForwardingCatalog
from support.faults.defects import Defect
from support.sources.loads import RECORDED_POLICY, LoadWorld, unpack_recorded
from support.sources.recorded_dumps import BOOTSTRAP, INCREMENT


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    return unpack_recorded(tmp_path / "source")


@pytest.fixture
def world(tmp_path: Path) -> LoadWorld:
    return LoadWorld(tmp_path, RECORDED_POLICY)


def names(world: LoadWorld) -> dict[str, object]:
    """What is shown, with the names of the files in place of their contents."""

    def plain(shown: object) -> object:
        match shown:
            case (columns, dict(files)) if all(isinstance(value, bytes) for value in files.values()):
                return columns, sorted(files)
            case (columns, dict(parts)):
                return columns, {values: sorted(files) for values, files in parts.items()}
        return shown

    return {name: plain(shown) for name, shown in world.shown("dst").items()}


BOOTSTRAPPED = {
    "chi_ld": (("id", "pid"), []),
    "par_ent": (("id", "code"), []),
    "part": (
        ("id", "v"),
        {
            ("2024-01-01", "0"): ["d2.txt"],
            ("2024-01-01", "1"): ["d3.txt"],
            ("2024-01-02", "0"): ["d4.txt"],
            ("a b/c=d#e%", "7"): ["d5.txt"],
        },
    ),
    "plain": (("id", "name"), ["d1.txt"]),
    "pq": (("id", "s", "m"), {("2024-02-01",): []}),
    "todrop": (("a",), []),
    "torename": (("a",), {("x",): ["d6.txt"]}),
    "v_plain": "SELECT `plain`.`id`, `plain`.`name` FROM `dst`.`plain` WHERE `plain`.`id` > 0",
}
INCREASED = {
    "chi_ld": (("id", "pid"), []),
    "n1": (("a", "b"), {("1",): ["d9.txt"], ("2",): [], ("3",): ["d8.txt"]}),
    "par_ent": (("id", "code"), []),
    "part": (
        ("id", "v"),
        {("2024-01-01", "1"): [], ("2024-01-09", "9"): ["d2.txt"], ("a b/c=d#e%", "7"): ["d5.txt"]},
    ),
    "plain": (("id", "name", "extra"), []),
    "pq": (("id", "s", "m"), {("2024-02-01",): []}),
    "renamed": (("a",), {("x",): ["d12.txt", "d6.txt"]}),
    "torename": (("z",), []),
    "v_plain": "SELECT `plain`.`id` FROM `dst`.`plain`",
}
"""The source's states at events 22 and 90 (tests/golden/dumps/hive-4.0.1-history.txt), of which Hive's own load of the
second left `v_plain`, `plain` and two functions behind."""


def test_hives_bootstrap_and_its_increment_are_the_sources_states(recorded: str, world: LoadWorld) -> None:
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    assert names(world) == BOOTSTRAPPED
    assert world.load(f"{recorded}/{INCREMENT}") == []
    assert names(world) == INCREASED
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    assert (epoch.event_id, epoch.bridges) == (90, ())
    assert world.target.the_database("dst").owner == "bob"
    assert world.target.functions("dst") == ["f_inc"]


@pytest.mark.parametrize("tasks", [1, 3, 10])
def test_an_increment_in_small_passes_comes_to_the_same(recorded: str, world: LoadWorld, tasks: int) -> None:
    world.load(f"{recorded}/{BOOTSTRAP}")
    assert world.load(f"{recorded}/{INCREMENT}", LoadBounds(tasks, 8)) == []
    assert names(world) == INCREASED


def test_a_dump_that_is_loaded_twice_changes_nothing(recorded: str, world: LoadWorld) -> None:
    for dump in (BOOTSTRAP, INCREMENT):
        world.load(f"{recorded}/{dump}")
        before = world.target.current()
        world.load(f"{recorded}/{dump}")
        assert world.target.current() == before


def test_constraints_and_statistics_come_along(recorded: str, world: LoadWorld) -> None:
    world.load(f"{recorded}/{BOOTSTRAP}")
    own = {constraint.name for constraint in world.catalog.constraints(TableName("dst", "par_ent"))}
    assert {"pk_parent", "uk_parent"} <= own
    assert [key.name for key in world.catalog.foreign_keys_to(TableName("dst", "par_ent"))] == ["fk_child"]
    world.load(f"{recorded}/{INCREMENT}")
    own = {constraint.name for constraint in world.catalog.constraints(TableName("dst", "par_ent"))}
    assert "uk_parent" not in own
    assert "pk_n1" in {constraint.name for constraint in world.catalog.constraints(TableName("dst", "n1"))}


def test_a_file_that_is_nowhere_sets_its_table_aside_and_no_other(
    tmp_path: Path, recorded: str, world: LoadWorld
) -> None:
    kept = tmp_path / "source" / "cmroot" / "d6.txt_1dcca23355272056f04fe8bf20edfce0"
    lying = tmp_path / "source" / "warehouse" / "src.db" / "renamed" / "p=x" / "d6.txt"
    content = kept.read_bytes()
    kept.unlink()
    (row,) = world.load(f"{recorded}/{BOOTSTRAP}")
    assert (name_of(row), row.state) == ("src.torename", TableState.QUARANTINED)
    assert "torename/p=x/d6.txt is nowhere to be had" in row.reason
    assert str(kept) in row.reason
    assert "torename" not in names(world)
    kept.write_bytes(content)
    assert lying.exists()
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    assert names(world) == BOOTSTRAPPED


@pytest.mark.parametrize("error", [KeyError("x"), Refused("It is too much")], ids=["defect", "refusal"])
def test_a_function_that_can_not_be_made_is_what_the_load_lacks_and_all_else_is_there(
    recorded: str, world: LoadWorld, error: Exception
) -> None:
    defect = Defect("create_function", error, on=True)
    world.catalog = ForwardingCatalog(world.catalog, defect)
    (row,) = world.load(f"{recorded}/{BOOTSTRAP}")
    assert (name_of(row), row.state) == ("function src.f_boot", TableState.QUARANTINED)
    assert names(world) == BOOTSTRAPPED
    defect.on = False
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    assert world.target.functions("dst") == ["f_boot"]


@pytest.mark.parametrize("error", [KeyError("x"), Refused("It is too much")], ids=["defect", "refusal"])
@pytest.mark.parametrize(
    ("method", "text", "named"),
    [("alter_database", "bob", "database src"), ("create_function", "", "function src.f_inc")],
)
def test_what_an_event_brings_and_can_not_be_made_is_what_the_load_lacks_until_it_is_said_again(
    recorded: str, world: LoadWorld, method: str, text: str, named: str, error: Exception
) -> None:
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    defect = Defect(method, error, on=True, about=lambda one: text in repr(one))
    world.catalog = ForwardingCatalog(world.catalog, defect)
    for _ in range(2):
        rows = world.load(f"{recorded}/{INCREMENT}")
        assert [(name_of(row), row.state) for row in rows] == [(named, TableState.QUARANTINED)]
        assert names(world) == INCREASED
    opened = OpenedDump(open_dump(world.storage, f"{recorded}/{INCREMENT}"), world.storage)
    said = incomplete(opened, rows)
    assert (said.exit_code, f"{named}: " in said.why) == (75, True)
    defect.on = False
    assert world.load(f"{recorded}/{INCREMENT}") == []
    assert (world.target.the_database("dst").owner, world.target.functions("dst")) == ("bob", ["f_inc"])


def test_a_file_of_another_content_at_its_place_is_taken_from_the_change_manager(
    tmp_path: Path, recorded: str, world: LoadWorld
) -> None:
    place = tmp_path / "source" / "warehouse" / "src.db" / "plain" / "d1.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"something else")
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    (content,) = dict(world.shown("dst")["plain"][1]).values()  # type: ignore[index]
    assert len(content) == 12
    assert content != b"something else"


def test_a_link_is_read_as_the_file_that_it_leads_to_and_one_that_leads_nowhere_is_no_file(
    tmp_path: Path, recorded: str, world: LoadWorld
) -> None:
    kept = tmp_path / "source" / "cmroot" / "d6.txt_1dcca23355272056f04fe8bf20edfce0"
    elsewhere, content = tmp_path / "elsewhere", kept.read_bytes()
    kept.unlink()
    kept.symlink_to(kept)
    (row,) = world.load(f"{recorded}/{BOOTSTRAP}")
    assert (name_of(row), row.state) == ("src.torename", TableState.QUARANTINED)
    kept.unlink()
    kept.symlink_to(elsewhere)
    (row,) = world.load(f"{recorded}/{BOOTSTRAP}")
    assert "torename/p=x/d6.txt is nowhere to be had" in row.reason
    elsewhere.write_bytes(content)
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    assert names(world) == BOOTSTRAPPED


class RecordingClock(SystemClock):
    """Remembers what was waited for, in seconds."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        super().sleep(seconds)


def test_tables_that_are_empty_in_a_dump_are_waited_for_no_longer(
    tmp_path: Path, recorded: str, world: LoadWorld
) -> None:
    """Of a live source's an INSERT OVERWRITE may just have removed the files."""
    for path in (tmp_path / "source").rglob("*"):
        os.utime(path, (0, 0) if path.is_file() else None)
    world.clock = clock = RecordingClock()
    assert world.load(f"{recorded}/{BOOTSTRAP}") == []
    assert names(world) == BOOTSTRAPPED
    assert clock.waits == []


def test_a_dump_that_is_not_complete_is_refused(tmp_path: Path, recorded: str) -> None:
    finished = tmp_path / "source" / "repl" / INCREMENT / "hive" / "_finished_dump"
    finished.unlink()
    with pytest.raises(Refused, match=r"is not complete\. It has no _finished_dump"):
        open_dump(FileStorage(), f"{recorded}/{INCREMENT}")


def test_a_directory_that_is_no_dump_is_refused(recorded: str) -> None:
    with pytest.raises(Refused, match="is no dump"):
        open_dump(FileStorage(), recorded)
