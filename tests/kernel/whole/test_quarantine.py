"""Poison costs its table, its database or its function, and nothing else; released, they are what the source has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from calque.core.policy.patterns import chosen, covering
from calque.core.records.lifecycle import State
from calque.core.records.reached_state import ReachedState, reached_state
from calque.engine.sides.sides import TargetSide
from calque.engine.target.fault_isolation import RELEASE
from calque.engine.window.retries import TRIES
from calque.errors import AccessRefused, Broken, CallFailed, CalqueError, Refused, Unavailable
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.ports import Conflict, Storage
from support.faults.picky import Picky, picky
from support.worlds.gapped import add, at_target, create, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World

REFUSED = Refused("The metastore refused it", "it is too much for it", "Leave it out")
FAILING = CallFailed("The metastore failed", "NullPointerException", "Look into its log")
REASONS = {REFUSED: str(REFUSED), FAILING: f"The metastore failed. NullPointerException. {RELEASE}"}
X = TableName("d1", "x")
SETTLED = (State.LIVE, State.QUARANTINED)
FAILURES = pytest.mark.parametrize("error", [REFUSED, FAILING], ids=["refused", "failing"])


@dataclass
class Dislike:
    """Against calls that change what the test says, as long as it is on."""

    error: CalqueError | Conflict
    what: Callable[[str, tuple[Any, ...]], bool]
    on: bool = True

    def __call__(self, method: str, arguments: tuple[Any, ...]) -> Exception | None:
        return self.error if self.on and self.what(method, arguments) else None


def creates(name: str) -> Callable[[str, tuple[Any, ...]], bool]:
    def found(_: str, arguments: tuple[Any, ...]) -> bool:
        return any(isinstance(one, Table) and one.name == name for one in arguments)

    return found


def settled(world: World, rounds: int = 200) -> None:
    """Until the position is the source's newest event, and all tables are live or quarantined."""
    for _ in range(rounds):
        world.capture_all()
        world.work()
        found = [name for name, row in world.replica.tables.rows.items() if row.state not in SETTLED]
        if (
            not found
            and world.replica.epochs.position() == world.source.current()
            and not world.replica.tables.positions
        ):
            return
        world.clock.now += 2_000_000_000
    raise AssertionError(f"{world.replica.epochs.position()} of {world.source.current()}: {world.replica.tables.rows}")


def aside(world: World) -> dict[str, tuple[str, int | None]]:
    """What the ledger says is quarantined: why, and since when."""
    return {
        str(row.name): (row.reason, row.since_event)
        for row in world.ledger.tables().values()
        if row.state == TableState.QUARANTINED
    }


def let_go(world: World, *patterns: str) -> None:
    world.replica.requests.release.tables(chosen(patterns), covering(patterns), "the test wants it")


def poisoned(world: World, change: Callable[[Event], Event], since: int) -> None:
    """The log's events after `since` are other ones in the journal."""
    found = [change(event) if event.event_id > since else event for event in world.source._log]
    world.source._log[:] = found


@FAILURES
def test_a_table_that_the_target_does_not_take_is_set_aside_and_the_others_go_on(error: CalqueError) -> None:
    world = world_of()
    dislike = Dislike(error, creates("x"))
    found = picky(world, dislike)
    create(world, "x")
    since = world.source.current()
    create(world, "y")
    add(world, "t0", "new")
    settled(world)
    assert aside(world) == {"d1.x": (REASONS[error], since if error is REFUSED else world.source.current())}
    assert at_target(world) == sorted({*world.source.tables("d1")} - {"x"})
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    assert (epoch.event_id, epoch.quarantined) == (world.source.current(), ("d1.x",))
    reached = reached_state(epoch.event_id, world.ledger.tables().values(), epoch.event_id)
    assert (reached.state, reached.missing) == (ReachedState.WITHOUT, ("d1.x",))
    assert len(found.raised) <= 1 + 3 * TRIES
    dislike.on = False
    let_go(world, "d1.x")
    world.settle()
    assert (differences(world), aside(world), world.problems) == ([], {}, [])


@pytest.mark.parametrize("method", ["create_table", "headers"])
def test_a_refusal_of_access_is_no_table_s_fault_and_ends_the_attempt(method: str) -> None:
    world = world_of()
    refused = AccessRefused("The metastore refuses the password of calque", "It is wrong", "Put the right one in")
    dislike = Dislike(refused, lambda called, _: called == method)
    picky(world, dislike)
    create(world, "x")
    add(world, "t0", "new")
    with pytest.raises(AccessRefused):
        settled(world)
    assert aside(world) == {}
    dislike.on = False
    world.open()
    world.settle()
    assert (differences(world), aside(world), world.problems) == ([], {}, [])


@pytest.mark.parametrize("keys", [(), ("p",)], ids=["plain", "partitioned"])
def test_a_directory_of_hudi_is_set_aside_although_the_metastore_says_that_it_is_plain(keys: tuple[str, ...]) -> None:
    world = world_of(opened=False)
    create(world, "x", keys)
    world.storage.write("file:/source/d1.db/x/.hoodie/hoodie.properties", b"hoodie.table.name=x")
    world.open()
    settled(world)
    reason = (
        "file:/source/d1.db/x/.hoodie makes the directory a Hudi table, and the metastore does not say so. "
        "Its readers take files of all versions for one content. Leave the table out."
    )
    assert aside(world) == {"d1.x": (reason, world.source.current())}
    assert at_target(world) == sorted({*world.source.tables("d1")} - {"x"})


@FAILURES
def test_a_partition_that_the_target_does_not_take_costs_its_table_what_came_after(error: CalqueError) -> None:
    world = world_of()

    def of_poison(_: str, arguments: tuple[Any, ...]) -> bool:
        lists = [one for one in arguments if isinstance(one, list | tuple)]
        return any(isinstance(one, Partition) and one.values == ("bad",) for found in lists for one in found)

    dislike = Dislike(error, of_poison)
    picky(world, dislike)
    before = world.target_states()[TableName("d1", "t0")]
    add(world, "t0", "bad")
    add(world, "t0", "later")
    add(world, "t1", "good")
    settled(world)
    assert list(aside(world)) == ["d1.t0"]
    assert world.target_states()[TableName("d1", "t0")] == before
    assert "p=good" in str(world.target_store.the_table(TableName("d1", "t1")).partitions)
    dislike.on = False
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


@pytest.mark.parametrize("message", ["no JSON", '{"tableObjJson": "no JSON"}', "{}"])
def test_a_message_that_can_not_be_read_costs_its_table(message: str) -> None:
    world = world_of()
    since = world.source.current()
    create(world, "x")
    poisoned(world, lambda event: replace(event, message=message), since)
    add(world, "t0", "new")
    settled(world)
    assert [*aside(world)] == ["d1.x"]
    assert aside(world)["d1.x"][1] == since + 1
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


def test_an_event_of_a_type_that_nobody_knows_has_its_table_read() -> None:
    world = world_of()
    since = world.source.current()
    create(world, "x")
    poisoned(world, lambda event: replace(event, event_type="OPTIMIZE_TABLE"), since)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


# Databases


def creates_database(_: str, arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(one, Database) and (one.name == "d3" or one.description == "bad") for one in arguments)


@FAILURES
def test_a_database_that_can_not_be_made_costs_itself_and_its_tables(error: CalqueError) -> None:
    world = world_of()
    dislike = Dislike(error, creates_database)
    picky(world, dislike)
    world.writer.source.create_database(Database("d3"))
    since = world.source.current()
    create(world, "x", database="d3")
    create(world, "y")
    settled(world)
    assert aside(world).keys() == {"d3", "d3.x"}
    assert aside(world)["d3"] == (REASONS[error], since)
    assert "y" in at_target(world)
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    assert epoch.quarantined == ("d3", "d3.x")
    assert reached_state(since, world.ledger.tables().values(), since).missing == ("d3", "d3.x")
    world.restart()
    settled(world)
    assert aside(world).keys() == {"d3", "d3.x"}
    dislike.on = False
    let_go(world, "d3.*")
    world.settle()
    assert (differences(world), aside(world), world.problems) == ([], {}, [])


def test_a_database_that_is_not_there_though_the_target_says_so_is_not_taken_for_made() -> None:
    world = world_of()
    dislike = Dislike(Conflict("failed to create database d3"), creates_database)
    picky(world, dislike)
    world.writer.source.create_database(Database("d3"))
    create(world, "x", database="d3")
    settled(world)
    assert aside(world).keys() == {"d3", "d3.x"}
    assert "failed to create database d3" in aside(world)["d3"][0]
    dislike.on = False
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


@FAILURES
def test_a_database_that_can_not_be_changed_stays_as_it_is_and_its_tables_go_on(error: CalqueError) -> None:
    world = world_of()
    dislike = Dislike(error, creates_database)
    picky(world, dislike)
    world.writer.source.alter_database("d1", replace(world.source.the_database("d1"), description="bad"))
    since = world.source.current()
    create(world, "x")
    settled(world)
    assert aside(world) == {"d1": (REASONS[error], since)}
    assert "x" in at_target(world)
    dislike.on = False
    let_go(world, "d1.x")
    settled(world)
    assert [*aside(world)] == ["d1"]
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


def test_the_next_change_of_a_database_that_was_set_aside_brings_it_back() -> None:
    world = world_of()
    picky(world, Dislike(REFUSED, creates_database))
    world.writer.source.alter_database("d1", replace(world.source.the_database("d1"), description="bad"))
    settled(world)
    world.writer.source.alter_database("d1", replace(world.source.the_database("d1"), description="good"))
    settled(world)
    assert (differences(world), aside(world)) == ([], {})


@FAILURES
def test_a_database_that_can_not_be_dropped_is_set_aside(error: CalqueError) -> None:
    world = world_of()
    world.writer.source.create_database(Database("d3"))
    settled(world)
    dislike = Dislike(error, lambda method, arguments: (method, *arguments) == ("drop_database", "d3"))
    picky(world, dislike)
    world.writer.source.drop_database("d3")
    create(world, "x")
    settled(world)
    assert [*aside(world)] == ["d3"]
    assert "x" in at_target(world)
    dislike.on = False
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


def test_a_database_event_that_can_not_be_read_has_the_database_as_it_is_now() -> None:
    world = world_of()
    since = world.source.current()
    world.writer.source.create_database(Database("d3", "new"))
    poisoned(world, lambda event: replace(event, message="no JSON"), since)
    create(world, "x", database="d3")
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


@FAILURES
def test_a_database_that_is_refused_in_the_bootstrap_is_not_waited_for(error: CalqueError) -> None:
    world = world_of(opened=False)
    world.writer.source.create_database(Database("d3"))
    dislike = Dislike(error, creates_database)
    world.side = replace(world.side, catalog=Picky(world.side.catalog, dislike))  # type: ignore[arg-type]
    world.replica = world.new_replica()
    for _ in range(10):
        try:
            world.open()
        except Unavailable:
            continue
        break
    settled(world)
    assert [*aside(world)] == ["d3"]
    dislike.on = False
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


# Functions


@FAILURES
@pytest.mark.parametrize("name", ["f", "x"], ids=["of its own name", "of a table's name"])
def test_a_function_that_the_target_does_not_take_is_set_aside(error: CalqueError, name: str) -> None:
    world = world_of()
    dislike = Dislike(error, lambda method, _: method == "create_function")
    picky(world, dislike)
    world.writer.source.create_function(Function(name, "d1", "com.example.F", "somebody", 1, 1, 1, ()))
    since = world.source.current()
    create(world, "x")
    settled(world)
    assert aside(world) == {f"d1.{name}": (REASONS[error], since)}
    assert "x" in at_target(world)
    dislike.on = False
    let_go(world)
    world.settle()
    assert (differences(world), aside(world)) == ([], {})


# What depends on a table that was set aside


def set_aside(world: World, name: str = "x") -> Dislike:
    dislike = Dislike(REFUSED, creates(name))
    picky(world, dislike)
    create(world, name)
    settled(world)
    assert [*aside(world)] == [f"d1.{name}"]
    return dislike


def rename(world: World, was: str, name: str) -> None:
    table = world.source.the_table(TableName("d1", was)).table
    world.writer.source.alter_table(TableName("d1", was), replace(table, name=name))


def test_dropped_at_the_source_it_is_forgotten() -> None:
    world = world_of()
    set_aside(world)
    world.writer.source.drop_table(X)
    settled(world)
    assert (differences(world), aside(world)) == ([], {})


def test_renamed_at_the_source_it_comes_under_its_new_name() -> None:
    world = world_of()
    set_aside(world)
    rename(world, "x", "y")
    settled(world)
    assert (differences(world), aside(world)) == ([], {})


def test_another_that_takes_its_name_is_taken_for_it_and_nothing_of_it_is_shown() -> None:
    world = world_of()
    before = world.target_states()
    picky(world, Dislike(REFUSED, lambda method, arguments: method == "add_partitions" and arguments[0].table == "t0"))
    add(world, "t0", "bad")
    settled(world)
    assert [*aside(world)] == ["d1.t0"]
    assert world.target_states()[TableName("d1", "t0")] == before[TableName("d1", "t0")]
    world.writer.source.drop_table(TableName("d1", "t0"))
    rename(world, "t1", "t0")
    settled(world)
    assert (differences(world), aside(world), world.problems) == ([], {}, [])


def test_its_database_is_dropped_with_it() -> None:
    world = world_of()
    world.writer.source.create_database(Database("d3"))
    create(world, "x", database="d3")
    settled(world)
    picky(world, Dislike(REFUSED, lambda method, arguments: method == "alter_table" and arguments[0].table == "x"))
    table = world.source.the_table(TableName("d3", "x")).table
    world.writer.source.alter_table(TableName("d3", "x"), replace(table, owner="another"))
    settled(world)
    assert [*aside(world)] == ["d3.x"]
    world.writer.source.drop_database("d3", cascade=True)
    settled(world)
    assert (differences(world), aside(world)) == ([], {})
    assert "d3" not in world.target_store.databases()


def test_one_that_waited_for_its_files_is_set_aside_for_good() -> None:
    world = world_of()
    replica = world.replica
    now = world.source.current()
    replica.tables.wait_for_files(TableName("d1", "t0"), now, now, world.clock.elapsed_ns())
    replica.reads.quarantine(TableName("d1", "t0"), "the test wants it", world.source.current())
    world.clock.now += 60 * 10**9
    replica.reads.expire_waiting()
    assert replica.tables.in_state(State.QUARANTINED) == [TableName("d1", "t0")]


# The world's own failures


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_metastore_that_is_away_for_long_sets_nothing_aside(side: str) -> None:
    world = world_of()
    dislike = Dislike(Unavailable("No metastore answers", "connection refused", "Look"), lambda *_: True, on=False)
    if side == "target":
        picky(world, dislike)
    else:
        log, catalog = Picky(world.source_side.log, dislike), Picky(world.source_side.catalog, dislike)
        world.source_side = replace(world.source_side, log=log, catalog=catalog)  # type: ignore[arg-type]
        world.restart_replica(world.ledger)
    world.replica.reads.reread(lambda _: True, "the test wants it", {State.LIVE})
    dislike.on = True
    for _ in range(4 * TRIES):
        world.work()
        world.clock.now += 30_000_000_000
    rows = list(world.replica.tables.rows.values())
    assert {row.state for row in rows} == {TableState.UNKNOWN}
    assert all(row.reason.startswith("the test wants it; reading it is tried again: No metastore") for row in rows)
    dislike.on = False
    world.clock.now += 30_000_000_000
    settled(world)
    assert (differences(world), aside(world)) == ([], {})


def test_files_that_can_not_be_copied_for_long_cost_their_tables_time_and_nothing_else() -> None:
    world = world_of()
    away = Unavailable("Can't write", "the disk is ill", "It is tried again")
    ill = True

    def ailing(method: str, about: str) -> None:
        if ill and method == "copy" and "t0" in about:
            raise away

    world.storage.before = ailing
    add(world, "t0", "new")
    create(world, "y")
    for _ in range(60):
        world.capture_all()
        world.work()
        world.clock.now += 2_000_000_000
    assert "y" in at_target(world)
    assert world.replica.epochs.position() == world.source.current()
    row = world.replica.tables.rows[TableName("d1", "t0")]
    assert (row.state, "the disk is ill" in row.reason) == (TableState.UNKNOWN, True)
    ill = False
    settled(world)
    assert (differences(world), aside(world)) == ([], {})


DENIED = Refused("Not permitted to write", "InvalidAccessKeyId", "Give the user that runs calque the right to it")
FULL = Unavailable("No room to write", "ENOSPC", "Free or add space; it is tried again")


def storing(method: str, _: tuple[Any, ...]) -> bool:
    return method in {"copy", "create", "make_directories", "publish", "remove", "write"}


def stored(world: World, dislike: Dislike) -> None:
    """The target's storage takes from now on only what the test has nothing against."""
    storage = cast(Storage, Picky(world.storage, dislike))
    world.side = TargetSide.of(world.policy, world.side.catalog, world.ledger, storage)
    world.restart_replica(world.ledger)


def test_a_storage_that_takes_nothing_for_long_costs_no_table_anything_but_time() -> None:
    world = world_of()
    dislike = Dislike(FULL, storing)
    stored(world, dislike)
    before = world.replica.epochs.position()
    add(world, "t0", "new")
    create(world, "y")
    for _ in range(60):
        world.capture_all()
        world.work()
        assert "No room to write" in str(world.side.storage_failures.newest())
        world.clock.now += 2_000_000_000
    assert world.replica.epochs.position() == before
    assert {row.state for row in world.replica.tables.rows.values()} == {TableState.LIVE}
    dislike.on = False
    settled(world)
    assert (differences(world), aside(world), world.problems) == ([], {}, [])
    assert world.side.storage_failures.newest() is None


@pytest.mark.parametrize("live", [True, False], ids=["in windows", "in reads"])
def test_a_storage_that_lets_nobody_in_is_the_target_s_own_fault_and_no_table_s(live: bool) -> None:
    world = world_of()
    dislike = Dislike(DENIED, storing)
    stored(world, dislike)
    add(world, "t0", "new")
    create(world, "y")
    world.capture_all()
    if live:
        with pytest.raises(Refused, match="Not permitted to write"):
            world.work()
    else:
        world.replica.reads.reread(lambda _: True, "the test wants it", {State.LIVE})
    for _ in range(4 * TRIES):
        with suppress(Refused):
            world.work()
        world.clock.now += 30_000_000_000
    assert aside(world) == {}
    assert "Not permitted to write" in str(world.side.storage_failures.newest())
    dislike.on = False
    settled(world)
    assert (differences(world), aside(world), world.problems) == ([], {}, [])
    assert world.side.storage_failures.newest() is None


def test_a_read_that_fails_when_another_writer_has_the_target_ends_all() -> None:
    world = world_of()
    lost = Broken("The lease is another writer's", "this one was late", "Look who it is")
    errors = {"create": DENIED, "make_directories": DENIED, "copy": DENIED, "write": lost}
    storage = cast(Storage, Picky(world.storage, lambda method, _: errors.get(method)))
    world.side = TargetSide.of(world.policy, world.side.catalog, world.ledger, storage)
    world.restart_replica(world.ledger)
    create(world, "y")
    world.capture_all()
    world.replica.reads.need(TableName("d1", "y"), "the test wants it", world.source.current())
    with pytest.raises(Broken, match="another writer"):
        world.work()


def test_a_ledger_that_can_not_be_written_for_a_while_holds_everything_up_and_loses_nothing() -> None:
    world = world_of()
    dislike = Dislike(Unavailable("The table could not be written", "no room", "Make some"), writes_rows, on=False)
    ledger = Picky(world.ledger, dislike)
    world.side = replace(world.side, ledger=ledger)  # type: ignore[arg-type]
    world.replica = world.new_replica()
    world.open()
    add(world, "t0", "new")
    create(world, "y")
    dislike.on = True
    before = world.replica.epochs.position()
    for _ in range(40):
        world.capture_all()
        world.work()
        world.clock.now += 2_000_000_000
    assert world.replica.epochs.position() == before
    dislike.on = False
    settled(world)
    assert (differences(world), aside(world), world.problems) == ([], {}, [])


def writes_rows(method: str, _: tuple[Any, ...]) -> bool:
    return method in {"publish", "put_tables", "remove_tables", "put_records", "remove_records"}


def test_a_journal_that_can_not_be_written_for_a_while_is_taken_up_where_it_ends() -> None:
    world = world_of()
    full = Unavailable("The table could not be written", "no room", "Make some")
    dislike = Dislike(full, lambda method, _: method == "append")
    sides = {"journal": Picky(world.journal, dislike), "evidence": Picky(world.evidence, dislike)}
    world.source_side = replace(world.source_side, **sides)  # type: ignore[arg-type]
    world.restart()
    add(world, "t0", "new")
    last = world.capture.last()
    for _ in range(3):
        with pytest.raises(Unavailable):
            world.append_log()
    assert world.capture.last() == last
    dislike.on = False
    world.append_log()
    dislike.on = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            world.gatherer.run_once()
    dislike.on = False
    world.settle()
    assert (differences(world), world.problems) == ([], [])


def test_a_database_that_is_changed_by_another_at_the_same_moment_is_changed_again() -> None:
    world = world_of()
    conflicts = [Conflict("database d1 was modified")]
    picky(world, lambda method, _: conflicts.pop() if conflicts and method == "alter_database" else None)
    world.writer.source.alter_database("d1", replace(world.source.the_database("d1"), description="new"))
    settled(world)
    assert (differences(world), aside(world), conflicts) == ([], {}, [])
