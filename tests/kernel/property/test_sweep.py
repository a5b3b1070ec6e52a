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

from calque.core.events.rows import rows_of_events
from calque.core.formats.layout import STAGE, VERSIONS, join, place
from calque.core.policy.admit import Admission
from calque.core.records.claims import OLD_MARK, claim_file, is_mark, written
from calque.engine.files.stage import StageRequest, choose
from calque.engine.sweep.candidates import ASIDE_REASON, HIDDEN, STAGING, RemovedPlace
from calque.engine.sweep.evidence import Neighbour
from calque.engine.sweep.remove import OF_BEFORE
from calque.engine.sweep.stock import take_stock
from calque.engine.sweep.sweep import SweepResult, SweepTerms, sweep_target
from calque.engine.target.references import is_referenced
from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Database, Storage, Table, is_partitioned, location_of
from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from calque.model.records import LedgerIdentity
from calque.ports import Catalog, Conflict
from support.memory.ledger import MemoryLedger
from support.runs.seeds import history_seeds
from support.worlds.worlds import World

SEEDS = history_seeds(16)
HOUR = 3600
POLICY = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target", grace=HOUR)


class Crash(BaseException):
    """As if the process had died there."""


class Sweeper:
    """Sweeps a world, and keeps the notes between sweeps."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.noted: Mapping[str, int] = {}

    def sweep(self, hours: float = 0.0, others: Sequence[Admission] = (), **terms: Any) -> SweepResult:
        """`hours` after now, whose clock is ahead of the world's."""
        neighbours = [Neighbour(MemoryLedger(), admission) for admission in others]
        writer = self.world.side.claims.writer
        terms_of_this = SweepTerms(noted=self.noted, neighbours=neighbours, living_writer=writer, **terms)
        swept = sweep_target(self.world.side, self.world.journal, later(hours), terms_of_this)
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
    """Files below the warehouse that no table or partition at the target has, but for the claims of those."""
    store = world.target_store
    leaves, roots = set(), set()
    for database in store.databases():
        for name in store.tables(database):
            stored = store.the_table(TableName(database, name))
            if root := location_of(stored.table):
                roots.add(str(place(root)))
            things = [*stored.partitions.values()] if is_partitioned(stored.table) else [stored.table]
            leaves |= {str(place(at)) for thing in things if (at := location_of(thing))}
    files = [path for path in world.storage.paths() if path.startswith("file:/target/")]
    claims = {claim_file(root, generation) for root in roots for generation in range(1, 10)}
    return [path for path in files if path not in claims and not any(path.startswith(f"{leaf}/") for leaf in leaves)]


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
    terms = SweepTerms(noted=sweeper.noted, living_writer=world.side.claims.writer)
    swept = sweep_target(side, world.journal, later(1.1), terms)
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

    assert old in {item.place for item in sweep_beside(Sweeper(world), happen).removed}


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
    assert join(old, "f2") in {join(item.place, "f2") for item in sweeper.sweep(hours=1.1).removed}
    assert not world.storage.exists(old)


def test_what_was_replaced_goes_though_the_target_is_behind_and_tables_are_set_aside() -> None:
    world = with_table()
    first, second = overwrite(world, b"2"), overwrite(world, b"3")
    world.source.create_database(Database("d3"))
    world.journal.append(rows_of_events(world.source.events(world.journal.last() or 0)))
    world.ledger.put_tables([TableRow("d1", "t", TableState.UNKNOWN)])
    removed = Sweeper(world).sweep(hours=2).removed
    assert {(item.place, item.reason) for item in removed} == {
        ("file:/target/d1.db/t", "replaced"),
        (first, "replaced"),
    }
    assert world.storage.exists(second)


def test_leftovers_of_copying_go_from_a_live_directory_and_the_pending_ones_stay() -> None:
    world = with_table()
    live = overwrite(world, b"2")
    position = world.replica.epochs.position() or 0
    old, pending = f"{STAGE}/{position}/f", f"{STAGE}/{position + 1}/f"
    for name in (old, pending, ".calque-copy-1", "_SUCCESS"):
        world.storage.write(join(live, name), b"x")
    removed = [item for item in Sweeper(world).sweep(hours=2).removed if item.reason in (STAGING, ASIDE_REASON)]
    assert sorted((item.place, item.files, item.bytes) for item in removed) == [
        (join(live, ".calque-copy-1"), 1, 1),
        (join(live, f"{STAGE}/{position}"), 1, 1),
    ]
    assert [name for name in (pending, "f2", "_SUCCESS") if world.storage.exists(join(live, name))] == [
        pending,
        "f2",
        "_SUCCESS",
    ]


FOREIGN = ("d1.db/theirs/f", "d1.db/old/_calque_owner.5/f", "d1.db/old/g", "other.db/t/f", "d1.db/_tmp/f", "loose")


def directories(swept: SweepResult) -> list[RemovedPlace]:
    """What a sweep removed, but for leftovers of copying."""
    return [item for item in swept.removed if item.reason != STAGING]


def test_what_has_neither_a_record_nor_an_owner_is_reported_and_goes_when_an_operator_says_so() -> None:
    world = with_table()
    live = overwrite(world, b"2")
    Sweeper(world).sweep(hours=2)
    for foreign in FOREIGN:
        world.storage.write(f"file:/target/{foreign}", b"x")
    before = world.storage.paths()
    sweeper = Sweeper(world)
    swept = sweeper.sweep()
    assert (directories(swept), world.storage.paths()) == ([], before)
    assert directories(sweeper.sweep(hours=0.9, unknown=True)) == []
    unknown = {item.place: item.files for item in swept.unknown}
    assert unknown == {"file:/target/d1.db/theirs": 1, "file:/target/d1.db/old": 2}
    assert sweeper.sweep(hours=2, dry=True, unknown=True).removed
    assert world.storage.paths() == before
    gone = {item.place for item in directories(sweeper.sweep(hours=2, unknown=True))}
    assert gone == unknown.keys()
    assert {*before} - {*world.storage.paths()} == {f"file:/target/{path}" for path in FOREIGN[:3]}
    assert world.storage.exists(live)


def test_what_is_unknown_is_left_alone_while_another_target_of_the_names_writes_there_or_it_is_young() -> None:
    world = with_table()
    world.clock.now = time.time_ns()
    world.storage.write("file:/target/d1.db/theirs/f", b"x")
    other = Admission(replace(POLICY, target="other"))
    assert Sweeper(world).sweep(hours=2, others=[other], unknown=True).unknown == ()
    assert directories(Sweeper(world).sweep(hours=0.9, unknown=True)) == []
    assert world.storage.exists("file:/target/d1.db/theirs/f")


def test_many_unknown_directories_wait_for_an_operators_second_word() -> None:
    world = with_table()
    for number in range(10):
        world.storage.write(f"file:/target/d1.db/u{number}/f", b"x")
    sweeper = Sweeper(world)
    sweeper.sweep()
    swept = sweeper.sweep(hours=2, unknown=True)
    assert (directories(swept), len(swept.held), len(swept.unknown)) == ([], 10, 10)
    swept = sweeper.sweep(hours=2, unknown=True, confirmed=True)
    assert (len(directories(swept)), swept.held, swept.unknown) == (10, (), ())


def test_directories_of_another_ledger_are_unknown_and_those_of_another_deployment_nobodys_business() -> None:
    world = with_table()
    claimed(world, "d1.db/u", ledger="a standby's")
    claimed(world, "d1.db/v", ledger="a neighbour's", deployment="another")
    sweeper = Sweeper(world)
    assert {item.place for item in sweeper.sweep().unknown} == {"file:/target/d1.db/u"}
    removed = directories(sweeper.sweep(hours=2, unknown=True))
    assert {item.place for item in removed} == {"file:/target/d1.db/u"}


def test_a_table_that_the_catalog_forgot_keeps_its_directory() -> None:
    """So does all of a target whose metastore is another one, or lost what it knew."""
    world = with_table()
    at = overwrite(world, b"2")
    Sweeper(world).sweep(hours=2)
    world.target_store.drop_table(TableName("d1", "t"), delete_data=False)
    before = world.storage.paths()
    swept = Sweeper(world).sweep(hours=2, unknown=True, confirmed=True)
    assert (directories(swept), swept.unknown, world.storage.paths()) == ([], (), before)
    assert world.storage.exists(at)


def claimed(world: World, path: str, **values: Any) -> str:
    """A directory with a file and a claim on it: of this ledger's, made by a process that is dead."""
    location = f"file:/target/{path}"
    database, _, table = path.partition(".db/")
    claim = replace(world.side.claims.new_claim(f"{database}.{table}", "", "r5"), writer="dead", epoch=1)
    world.storage.write(claim_file(location, 1), written(replace(claim, **values)))
    world.storage.write(join(location, "f"), b"x")
    return location


def test_what_a_death_left_goes_unless_it_is_wanted_or_young() -> None:
    world = with_table()
    world.clock.now = time.time_ns()
    at, living = claimed(world, "d1.db/u"), claimed(world, "d1.db/v", writer=world.side.claims.writer)
    pending = claimed(world, "d1.db/w", epoch=(world.ledger.last_epoch() or Epoch(0, 0, 0, "", "")).epoch + 1)
    world.ledger.put_tables([TableRow("d1", "u", TableState.UNKNOWN)])
    sweeper = Sweeper(world)
    assert directories(sweeper.sweep(hours=0.9)) == directories(sweeper.sweep(hours=2)) == []
    world.ledger.remove_tables([("table", "d1", "u")])
    assert directories(sweeper.sweep(hours=0.9)) == directories(sweeper.sweep(hours=2)) == []
    assert directories(sweeper.sweep(hours=2.9)) == [], "whether somebody has read there since, no record says"
    assert [item.place for item in directories(sweeper.sweep(hours=3.1))] == [at]
    assert (world.storage.exists(living), world.storage.exists(pending)) == (True, True)


def test_who_takes_a_directory_up_and_who_removes_it_never_both_have_it() -> None:
    """A sweep that has listed a directory, and then waits, finds that another object went on in it."""
    world = with_table()
    at = claimed(world, "d1.db/u")
    listing = world.storage.list(["file:/source/none"])["file:/source/none"]
    request = StageRequest(replace(listing, missing=False), at, TableName("d1", "u"), "", "9", 9, grows=True)
    taken: list[str] = []

    def come_between(call: str, about: str) -> None:
        if call == "create" and about == claim_file(at, 2) and not taken:
            taken.append("")
            taken[0] = choose(world.side, [request])[0].location

    sweeper = Sweeper(world)
    assert directories(sweeper.sweep(hours=2)) == []
    world.storage.before = come_between
    assert directories(sweeper.sweep(hours=3.1)) == []
    assert (taken, world.storage.exists(join(at, "f"))) == ([at], True)


def test_who_comes_to_a_directory_that_is_being_removed_takes_another_one() -> None:
    world = with_table()
    at = claimed(world, "d1.db/u")
    listing = world.storage.list(["file:/source/none"])["file:/source/none"]
    request = StageRequest(replace(listing, missing=False), at, TableName("d1", "u"), "", "9", 9, grows=True)
    taken: list[str] = []

    def come_between(call: str, about: str) -> None:
        if call == "set aside" and about == at and not taken:
            taken.append("")
            taken[0] = choose(world.side, [request])[0].location

    sweeper = Sweeper(world)
    assert directories(sweeper.sweep(hours=2)) == []
    world.storage.before = come_between
    assert [item.place for item in directories(sweeper.sweep(hours=3.1))] == [at]
    assert taken == ["file:/target/d1.db/_calque/u.9/data/9"]


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


@pytest.mark.parametrize("location", ["file:/target/d1.db/../d1.db/t", "somewhere"])
def test_a_foreign_table_whose_place_can_t_be_read_is_named_and_nothing_goes(location: str) -> None:
    world = with_table()
    old = overwrite(world, b"2")
    overwrite(world, b"3")
    world.target_store.create_database(Database("theirs"))
    foreign = Table("t", "theirs", storage=Storage((), "file:/far"), type="EXTERNAL_TABLE", parameters={})
    world.target_store.create_table(foreign)
    world.target_store.the_table(TableName("theirs", "t")).table = replace(foreign, storage=Storage((), location))
    with pytest.raises(Refused, match=r"has a table theirs\.t at .*, and nothing is removed meanwhile"):
        Sweeper(world).sweep(hours=2)
    assert world.storage.exists(join(old, "f2"))
    assert is_referenced(world.side, "file:/target/d1.db/other")
    world.target_store.drop_table(TableName("theirs", "t"))
    Sweeper(world).sweep(hours=2)
    assert not world.storage.exists(join(old, "f2"))
    assert not is_referenced(world.side, "file:/target/d1.db/other")


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
    assert [item for item in Sweeper(world).sweep(hours=3).removed if item.reason == HIDDEN] == []
    world.settle()
    removed = [item for item in Sweeper(world).sweep(hours=3).removed if item.reason == HIDDEN]
    assert [item.place for item in removed] == [f"{OURS}.{left.name}"]
    assert sorted(store.tables(OURS)) == sorted([another.name, foreign.name])


# What versions before claims left


def as_before_claims(world: World) -> None:
    """Make of the target what a version before claims would have left: its marks, and a ledger that names no claim."""
    for path in [path for path in world.storage.paths() if path.startswith("file:/target/")]:
        location, _, name = path.rpartition("/")
        if is_mark(name):
            world.storage.remove([path])
            if f"/{VERSIONS}/" not in location:
                world.storage.make_directories([join(location, f"{OLD_MARK}c1")])
    ledger, known = MemoryLedger(), world.ledger
    for epoch in known.epochs():
        rows = [replace(row, claim="") for row in known.objects(epoch.epoch)]
        ledger.publish(replace(epoch, abandoned=()), rows, [])
    ledger.put_tables([*known.tables().values()])
    ledger.put_records([record for record in known.records() if not isinstance(record, LedgerIdentity)])
    world.ledger = ledger
    world.side = replace(world.side, ledger=ledger)
    world.replica = world.new_replica()
    world.replica.open()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_version_before_claims_left_waits_until_stock_is_taken_and_then_goes(seed: int) -> None:
    world = begun(seed)
    go_on(world)
    world.settle()
    as_before_claims(world)
    files, sweeper = {*litter(world)}, Sweeper(world)
    foreseen, removed = (sweeper.sweep(hours=1.1, dry=dry).removed for dry in (True, False))
    assert {item.place for item in removed} == {item.place for item in foreseen}
    assert sum(item.files for item in removed) == sum(item.files for item in foreseen)
    go_on(world)
    world.settle()
    sweeper.sweep(hours=3)
    take_stock(world.side)
    sweeper.sweep(hours=5)
    assert files & {*litter(world)} == set()
    assert litter(world) == []
    assert shown(world) == world.source_states(), "\n".join(world.writer.done)


def test_a_record_of_before_outlives_its_epoch_and_what_is_replaced_after_an_upgrade_needs_no_stock() -> None:
    world = with_table()
    first, second = overwrite(world, b"2"), overwrite(world, b"3")
    as_before_claims(world)
    sweeper = Sweeper(world)
    kept = sweeper.sweep(hours=2)
    assert ({item.place for item in kept.kept}, kept.removed) == ({"file:/target/d1.db/t", first}, ())
    assert {item.reason for item in kept.kept} == {OF_BEFORE}
    assert kept.epochs > 0
    overwrite(world, b"4")
    assert {item.place for item in sweeper.sweep(hours=2).removed} == {second}
    assert (take_stock(world.side), take_stock(world.side)) == (2, 2)
    assert {item.place for item in sweeper.sweep(hours=2).removed} == {"file:/target/d1.db/t", first}
    assert take_stock(world.side) == 0
