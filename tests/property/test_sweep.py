"""`engine.sweep.sweep` after and amid generated histories: all litter goes, nothing that is shown or may be wanted
does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest

from calque.core.admit import Admission
from calque.core.layout import STAGE, join, place
from calque.core.rows import rows_of_events
from calque.engine.sweep.directory_tree import event_of
from calque.engine.sweep.sweep import SweepResult, sweep_target
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Storage, Table, is_partitioned, location_of
from calque.model.ledger import TableRow, TableState
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from calque.ports import Catalog, Conflict
from support.runs.seeds import history_seeds
from support.worlds.worlds import World

SEEDS = history_seeds(25)
HOUR = 3600
POLICY = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target", grace=HOUR)


class Crash(BaseException):
    """As if the process had died there."""


class Sweeper:
    """Sweeps a world, and keeps the notes between sweeps."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.noted: Mapping[str, int] = {}

    def sweep(self, hours: float = 0.0, others: Sequence[Admission] = ()) -> SweepResult:
        """`hours` after now, whose clock is ahead of the world's."""
        swept = sweep_target(self.world.side, self.world.journal, later(hours), self.noted, others)
        self.noted = swept.noted
        return swept


def later(hours: float) -> int:
    return time.time_ns() + int(hours * HOUR * 1e9)


def begun(seed: int, policy: Policy = POLICY) -> World:
    world = World(seed, policy=policy)
    world.write(world.rng.randrange(30))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.replica.open()
    return world


def go_on(world: World) -> None:
    for _ in range(world.rng.randrange(1, 8)):
        world.write(world.rng.randrange(12))
        if world.rng.random() < 0.8:
            world.capture_all()
        if world.rng.random() < 0.5:
            world.background.run()
        world.window()


def shown(world: World) -> object:
    return {name: state for name, state in world.target_states().items() if state is not None}


def litter(world: World) -> list[str]:
    """Files below the warehouse that no table or partition at the target has, but for calque's own empty marks."""
    store = world.target_store
    leaves = set()
    for database in store.databases():
        for name in store.tables(database):
            stored = store.the_table(TableName(database, name))
            things = [*stored.partitions.values()] if is_partitioned(stored.table) else [stored.table]
            leaves |= {str(place(at)) for thing in things if (at := location_of(thing))}
    files = [path for path in world.storage.paths() if path.startswith("file:/target/")]
    return [path for path in files if not any(path.startswith(f"{leaf}/") for leaf in leaves)]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_grace_all_litter_goes_and_the_target_shows_the_same(seed: int) -> None:
    world = begun(seed)
    go_on(world)
    world.settle()
    before, sweeper = shown(world), Sweeper(world)
    sweeper.sweep(hours=1.1)
    assert litter(world) == []
    assert shown(world) == before
    assert before == world.source_states(), "\n".join(world.writer.done)
    assert (sweeper.sweep(hours=1.1), sweeper.sweep(hours=3)) == (SweepResult(), SweepResult())


@pytest.mark.parametrize("seed", SEEDS)
def test_sweeps_without_grace_between_any_two_calls_take_nothing_that_is_shown_or_wanted(seed: int) -> None:
    world = begun(seed, replace(POLICY, grace=0.0))
    sweeper, sweeping = Sweeper(world), False

    def sweep_now_and_then(*_: str) -> None:
        nonlocal sweeping
        if not sweeping and world.rng.random() < 0.1:
            sweeping = True
            try:
                sweeper.sweep()
            finally:
                sweeping = False

    world.between = sweep_now_and_then
    world.storage.before = sweep_now_and_then
    go_on(world)
    world.settle()
    assert not world.problems, "\n".join(world.problems[:3])
    assert shown(world) == world.source_states(), "\n".join(world.writer.done)


class Restless:
    """A target's catalog, with something that happens before each call."""

    def __init__(self, catalog: Catalog, happen: Callable[[str], None]) -> None:
        self.catalog, self.happen = catalog, happen

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.catalog, name)

        def called(*arguments: Any) -> Any:
            self.happen(str(arguments[0]) if arguments else "")
            return call(*arguments)

        return called


def sweep_beside(sweeper: Sweeper, happen: Callable[[str], None]) -> SweepResult:
    world = sweeper.world
    side = replace(world.side, catalog=cast(Catalog, Restless(world.side.catalog, happen)))
    swept = sweep_target(side, world.journal, later(1.1), sweeper.noted)
    sweeper.noted = swept.noted
    return swept


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_under_whose_hands_the_target_changes_takes_nothing_that_is_shown_or_wanted(seed: int) -> None:
    world = begun(seed, replace(POLICY, grace=0.0))
    sweeper = Sweeper(world)

    def happen(_: str) -> None:
        if world.rng.random() < 0.2:
            world.write(world.rng.randrange(4))
            world.capture_all()
            world.background.run()
            world.window()

    for _ in range(10):
        go_on(world)
        with suppress(Unavailable):
            sweep_beside(sweeper, happen)
    world.settle()
    assert not world.problems, "\n".join(world.problems[:3])
    assert shown(world) == world.source_states(), "\n".join(world.writer.done)


def test_tables_that_come_and_go_in_another_database_keep_no_sweep_from_its_work() -> None:
    world = with_table(replace(POLICY, grace=0.0))
    old = overwrite(world, b"2")
    overwrite(world, b"3")
    world.target_store.create_database(Database("other"))
    numbers = count()

    def happen(about: str) -> None:
        if about != "other":
            name = f"t{next(numbers)}"
            world.target_store.create_table(Table(name, "other", storage=Storage(location=f"file:/other/{name}")))

    assert old in {item.location for item in sweep_beside(Sweeper(world), happen).removed}


@pytest.mark.parametrize(("mark", "event_id"), [("27", 27), ("r27", 27), ("moved27", 27), ("27.3", 27), ("x", 0)])
def test_every_mark_tells_its_event(mark: str, event_id: int) -> None:
    """Whatever a window beyond the position claims is not touched: a partition that moves is copied under its mark."""
    assert event_of(mark) == event_id


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_crash_left_goes_too_and_never_before_it_was_done_again(seed: int) -> None:
    world = begun(seed)
    left, sweeper = world.rng.randrange(1, 60), Sweeper(world)

    def die(call: str, about: str) -> None:
        nonlocal left
        if call == "copy" or about.startswith("file:/target"):
            left -= 1
            if left == 0:
                raise Crash

    world.storage.before = die
    try:
        go_on(world)
        world.settle()
    except Crash:
        pass
    world.storage.before = lambda _call, _about: None
    sweeper.sweep(hours=24)
    sweeper.sweep(hours=48)
    world.replica = world.new_replica()
    world.replica.open()
    world.settle()
    sweeper.sweep(hours=96)
    assert litter(world) == []
    assert shown(world) == world.source_states(), "\n".join(world.writer.done)


# Single rules


def with_table(policy: Policy = POLICY) -> World:
    """A world whose target shows the table d1.t with the file f1."""
    world = World(1, policy=policy)
    world.replica.open()
    world.source.create_database(Database("d1"))
    world.source.create_table(Table("t", "d1", storage=Storage((Column("x", "int"),)), type="MANAGED_TABLE"))
    world.settle()
    overwrite(world, b"1")
    return world


def change_header(world: World) -> None:
    name = TableName("d1", "t")
    world.source.alter_table(name, replace(world.source.the_table(name).table, owner="o"))


def overwrite(world: World, content: bytes) -> str:
    """Replace the table's file; where it is at the target now."""
    root = location_of(world.source.the_table(TableName("d1", "t")).table) or ""
    world.storage.write(f"{root}/f{content.decode()}", content)
    for name in world.storage.children(root):
        if name != f"f{content.decode()}":
            world.storage.remove([f"{root}/{name}"])
    world.source.insert(TableName("d1", "t"), [f"{root}/f{content.decode()}"], replace=True)
    world.settle()
    return location_of(world.target_store.the_table(TableName("d1", "t")).table) or ""


def test_replaced_files_stay_for_grace_however_old_they_are() -> None:
    world = with_table()
    sweeper = Sweeper(world)
    old = overwrite(world, b"2")
    overwrite(world, b"3")
    assert sweeper.sweep(hours=0.9).removed == ()
    assert world.storage.exists(join(old, "f2"))
    assert join(old, "f2") in {join(item.location, "f2") for item in sweeper.sweep(hours=1.1).removed}
    assert not world.storage.exists(old)


def behind(world: World) -> None:
    """One more event is in the journal than the target shows."""
    world.source.create_database(Database("d3"))
    world.journal.append(rows_of_events(world.source.events(world.journal.last() or 0)))


def test_while_the_target_is_behind_a_sweep_only_takes_notes_and_a_later_one_removes() -> None:
    world = with_table()
    sweeper = Sweeper(world)
    overwrite(world, b"2")
    overwrite(world, b"3")
    behind(world)
    assert sweeper.sweep(hours=2).removed == ()
    noted = sweeper.noted
    assert len(noted) == 2
    assert (sweeper.sweep(hours=2.9).removed, sweeper.noted) == ((), noted)
    assert {item.location for item in sweeper.sweep(hours=3.1).removed} == {*noted}
    assert sweeper.noted == {}


def test_leftovers_of_copying_go_from_a_live_directory_and_the_pending_ones_stay() -> None:
    world = with_table()
    live = overwrite(world, b"2")
    position = world.replica.epochs.position() or 0
    old, pending = f"{STAGE}/{position}/f", f"{STAGE}/{position + 1}/f"
    for name in (old, pending, ".calque-copy-1", "_SUCCESS"):
        world.storage.write(join(live, name), b"x")
    removed = [item for item in Sweeper(world).sweep(hours=2).removed if item.what == "staging"]
    assert sorted((item.location, item.files, item.bytes) for item in removed) == [
        (join(live, ".calque-copy-1"), 1, 1),
        (join(live, f"{STAGE}/{position}"), 1, 1),
    ]
    assert [name for name in (pending, "f2", "_SUCCESS") if world.storage.exists(join(live, name))] == [
        pending,
        "f2",
        "_SUCCESS",
    ]


def test_directories_that_calque_did_not_make_and_those_of_other_targets_are_left_alone() -> None:
    world = with_table()
    at = overwrite(world, b"2")
    world.target_store.drop_table(TableName("d1", "t"), delete_data=False)
    for foreign in ("d1.db/theirs/f", "other.db/t/f", "other.db/t/_calque_owner.5/f", "d1.db/_tmp/f", "loose"):
        world.storage.write(f"file:/target/{foreign}", b"x")
    before = world.storage.paths()
    other = Admission(replace(POLICY, target="other"))
    assert Sweeper(world).sweep(hours=2, others=[other]).removed == ()
    assert world.storage.paths() == before
    removed = Sweeper(world).sweep(hours=2).removed
    assert at in {item.location for item in removed}
    assert not any("theirs" in item.location or "other.db" in item.location for item in removed)


def test_a_foreign_table_keeps_the_directory_that_it_points_at() -> None:
    world = with_table()
    old = overwrite(world, b"2")
    overwrite(world, b"3")
    storage = Storage((Column("x", "int"),), old)
    world.target_store.create_database(Database("theirs"))
    world.target_store.create_table(
        Table("t", "theirs", storage=storage, type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    )
    Sweeper(world).sweep(hours=2)
    assert world.storage.exists(join(old, "f2"))


def test_a_sweep_that_died_in_the_middle_is_finished_by_the_next() -> None:
    world = with_table()
    overwrite(world, b"2")
    removals = 0

    def die(call: str, _: str) -> None:
        nonlocal removals
        removals += call == "remove"
        if call == "remove" and removals == 2:
            raise Crash

    world.storage.before = die
    with pytest.raises(Crash):
        Sweeper(world).sweep(hours=2)
    world.storage.before = lambda _call, _about: None
    Sweeper(world).sweep(hours=2)
    assert litter(world) == []
    assert world.storage.children("file:/target/d1.db") == ["_calque"]


@pytest.mark.parametrize("data", ["copy", "none"])
def test_epochs_are_kept_for_grace_and_the_newest_always(data: str) -> None:
    world = with_table(replace(POLICY, data=data))
    change_header(world)
    world.settle()
    numbers = [epoch.epoch for epoch in world.ledger.epochs()]
    assert Sweeper(world).sweep(hours=0.9).epochs == 0
    assert Sweeper(world).sweep(hours=1.1).epochs == len(numbers) - 1
    assert [epoch.epoch for epoch in world.ledger.epochs()] == numbers[-1:]


def world_later(world: World, hours: float) -> int:
    return world.clock.now + int(hours * HOUR * 1e9)


def test_nothing_of_a_table_that_is_set_aside_is_taken() -> None:
    world = with_table()
    for name in ("u/_calque_owner.c5/x", "u/f", "u/p=1/_calque_owner.c6/x", "_calque/u.r1/data/1/f"):
        world.storage.write(f"file:/target/d1.db/{name}", b"x")
    before = world.storage.paths()
    world.ledger.put_tables([TableRow("d1", "u", TableState.UNKNOWN)])
    sweeper = Sweeper(world)
    sweeper.sweep(hours=2)
    assert (sweeper.sweep(hours=4).removed, world.storage.paths()) == ((), before)
    world.ledger.remove_tables([("table", "d1", "u")])
    removed = {item.location: item.files for item in sweeper.sweep(hours=6).removed}
    assert removed == {"file:/target/d1.db/u": 3, "file:/target/d1.db/_calque/u.r1/data/1": 1}


def test_a_renamed_table_that_is_set_aside_keeps_what_lies_below_its_old_name() -> None:
    world = with_table()
    overwrite(world, b"2")
    store = world.target_store
    world.source.alter_table(
        TableName("d1", "t"), replace(world.source.the_table(TableName("d1", "t")).table, name="u")
    )
    world.settle()
    old = location_of(store.the_table(TableName("d1", "u")).table) or ""
    assert "/t." in old
    beside = join(old.rsplit("/", 1)[0], "1")
    world.storage.write(join(beside, "f"), b"x")
    world.ledger.put_tables([TableRow("d1", "u", TableState.UNKNOWN)])
    sweeper = Sweeper(world)
    sweeper.sweep(hours=2)
    sweeper.sweep(hours=4)
    assert world.storage.exists(beside)
    world.ledger.remove_tables([("table", "d1", "u")])
    assert beside in {item.location for item in sweeper.sweep(hours=6).removed}
    assert world.storage.exists(old)


def test_what_was_written_within_grace_stays_though_nothing_refers_to_it() -> None:
    world = with_table()
    world.clock.now = time.time_ns()
    world.storage.write("file:/target/d1.db/u/_calque_owner.1/x", b"")
    Sweeper(world).sweep(hours=0.9)
    assert world.storage.exists("file:/target/d1.db/u")
    Sweeper(world).sweep(hours=1.1)
    assert not world.storage.exists("file:/target/d1.db/u")


def test_new_partitions_of_a_renamed_table_that_is_set_aside_stay_below_its_old_name() -> None:
    world = World(1, policy=POLICY)
    world.replica.open()
    world.source.create_database(Database("d1"))
    keys = (Column("p", "string"),)
    world.source.create_table(
        Table("t", "d1", storage=Storage((Column("x", "int"),)), partition_keys=keys, type="MANAGED_TABLE")
    )
    table = world.source.the_table(TableName("d1", "t")).table
    world.source.alter_table(TableName("d1", "t"), replace(table, name="u"))
    world.settle()
    root = location_of(world.target_store.the_table(TableName("d1", "u")).table) or ""
    world.storage.write(join(root, "p=9/_calque_owner.c1/x"), b"")
    world.ledger.put_tables([TableRow("d1", "u", TableState.UNKNOWN)])
    sweeper = Sweeper(world)
    sweeper.sweep(hours=2)
    assert sweeper.sweep(hours=4).removed == ()
    world.ledger.remove_tables([("table", "d1", "u")])
    assert [item.location for item in sweeper.sweep(hours=6).removed] == [join(root, "p=9")]


@pytest.mark.parametrize("data", ["copy", "none"])
def test_hidden_tables_that_a_death_left_go_when_nothing_is_to_be_done_and_those_of_others_stay(data: str) -> None:
    world = with_table(replace(POLICY, data=data))
    store = world.target_store
    stored = store.the_table(TableName("d1", "t")).table
    with suppress(Conflict):  # Tables that are built hidden have made it.
        store.create_database(Database(OURS))
    left = replace(stored, database=OURS, name=f"{OURS}_d1_t_old_7")
    another = replace(stored, database=OURS, name=f"{OURS}_elsewhere_t_9")
    foreign = replace(left, name=f"{OURS}_d1_t_1", parameters={})
    for table in (left, another, foreign):
        store.create_table(table)
    change_header(world)
    world.capture_all()
    assert [item for item in Sweeper(world).sweep(hours=3).removed if item.what == "hidden table"] == []
    world.settle()
    removed = [item for item in Sweeper(world).sweep(hours=3).removed if item.what == "hidden table"]
    assert [item.location for item in removed] == [f"{OURS}.{left.name}"]
    assert sorted(store.tables(OURS)) == sorted([another.name, foreign.name])
