"""What a change of a target's policy moves, drops, keeps and reads, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from calque.core.images.image import SOURCE
from calque.core.images.policies import ordered
from calque.core.records.lifecycle import State
from calque.engine.replica.dry_run import explain_next_window
from calque.engine.sides.sides import TargetSide
from calque.model.facets import ColumnStatistics, Longs, StatisticsCounts
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.plan import AlterPartitions
from calque.model.policy import Policy
from support.faults.fragile import FragileLedger
from support.memory.metastore import HIVE_3
from support.worlds.histories import differences
from support.worlds.policies import PolicyWorld
from support.worlds.worlds import Died

PLAIN = Policy("dr", "hq", include=("d1.*", "d2.*"), warehouse="file:/target")
CHANGING = ("create", "drop", "add", "alter", "rename")
A, B, C = TableName("d1", "a"), TableName("d1", "b"), TableName("d2", "c")


def world_of(*policies: Policy) -> PolicyWorld:
    """Settled under the first policy: two plain tables, one with partitions in another database, and a function."""
    world = PolicyWorld(policies, HIVE_3)
    for database in ("d1", "d2", "x"):
        world.source.create_database(Database(database))
    for name in (A, B):
        world.source.create_table(replace(table(name), storage=storage(f"file:/source/{name}")))
        world.storage.write(f"file:/source/{name}/one", str(name).encode())
    world.source.create_table(replace(table(C), partition_keys=(Column("p", "string"),)))
    rows = [Partition((value,), *C, storage=storage(f"file:/source/c/{value}"), parameters={}) for value in "12"]
    for value in "12":
        world.storage.write(f"file:/source/c/{value}/one", value.encode())
    world.source.add_partitions(C, rows)
    world.source.create_function(Function("f", "d2", "com.example.F"))
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    return world


def table(name: TableName) -> Table:
    return Table(
        name.table, name.database, storage=storage(None), parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE"
    )


def storage(location: str | None) -> Storage:
    return Storage((Column("x", "int"),), location, serde=SerDe(parameters={}))


def copies(world: PolicyWorld) -> list[str]:
    """What storages are asked to copy from now on."""
    found: list[str] = []
    world.storage.before = lambda call, about: found.append(about) if call == "copy" else None
    return found


def at_target(world: PolicyWorld) -> dict[str, list[str]]:
    store = world.target_store
    return {name: list(store.tables(name)) for name in store.databases() if not name.startswith(("_", "default"))}


def test_an_unchanged_policy_asks_nothing_of_source_or_target_but_who_they_are_and_where_the_log_ends() -> None:
    world = world_of(PLAIN)
    called: list[str] = []
    world.between = called.append
    world.change(0)
    assert {*called} == {"identity", "current"}


def test_a_changed_rename_moves_tables_functions_and_databases_and_copies_nothing() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d2": "m", "d1.a": "n.aa"}))
    copied, events = copies(world), world.target_store.current()
    world.change(1)
    assert copied == []
    assert at_target(world) == {"d1": ["b"], "m": ["c"], "n": ["aa"]}
    assert list(world.target_store.functions("m")) == ["f"]
    assert len(world.target_store.the_table(TableName("m", "c")).partitions) == 2
    assert world.target_store.current() < events + 10
    world.settle()
    assert copied == []
    assert world.problems == []


def test_names_that_are_swapped_open_a_ring_and_say_so() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d1.a": "d1.b", "d1.b": "d1.a"}))
    copied = copies(world)
    world.change(1)
    world.settle()
    assert world.target_states() == {name: (world.target_states()[name][0], False) for name in world.history.states}
    assert [bridge.table for window in world.windows for bridge in window.bridges()] == [str(A)]
    assert (copied, world.misplaced) == ([], [])


def test_a_name_that_somebody_else_has_sets_the_table_aside_and_its_release_copies_nothing() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d1.a": "d1.taken"}))
    taken = TableName("d1", "taken")
    world.target_store.create_table(replace(table(taken), storage=storage("file:/else")))
    copied = copies(world)
    world.change(1)
    world.settle()
    assert world.replica.tables.in_state(State.QUARANTINED) == [A]
    assert at_target(world)["d1"] == ["a", "b", "taken"]
    world.target_store.drop_table(taken, delete_data=False)
    world.replica.reads.reread(lambda _: True, "released", {State.QUARANTINED})
    world.settle()
    assert at_target(world)["d1"] == ["b", "taken"]
    assert copied == []


@pytest.mark.parametrize("drops", ["follow", "keep"])
def test_what_is_admitted_no_more_goes_or_stays_and_comes_back_without_a_copy_where_it_stayed(drops: str) -> None:
    wide = replace(PLAIN, drops=drops)
    world = world_of(wide, replace(wide, include=("d1.*",), exclude=("d1.b",)))
    world.change(1)
    world.settle()
    assert at_target(world) == ({"d1": ["a"]} if drops == "follow" else {"d1": ["a", "b"], "d2": ["c"]})
    copied = copies(world)
    world.change(0)
    world.settle()
    assert at_target(world) == {"d1": ["a", "b"], "d2": ["c"]}
    assert bool(copied) is (drops == "follow")
    assert list(world.target_store.functions("d2")) == ["f"]
    assert world.problems == []


@pytest.mark.parametrize("instead", [0, 1])
def test_a_change_that_dies_half_way_is_finished_or_taken_back_and_nothing_is_copied(instead: int) -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d1.a": "d1.b", "d1.b": "d1.a", "d2": "m"}))
    copied = copies(world)
    wanted = [{"d1": ["a", "b"], "d2": ["c"]}, {"d1": ["a", "b"], "m": ["c"]}]
    for number in range(20, 82, 3):
        dies_after(world, number, lambda: world.change(1))
        world.change(instead)
        assert at_target(world) == wanted[instead]
        assert (world.target_store.the_table(A).table.parameters or {})[SOURCE] == f"hq:{(A, B)[instead]}"
        world.change(0)
        assert at_target(world) == wanted[0]
    world.settle()
    assert (copied, world.misplaced, world.problems) == ([], [], [])


def test_what_half_a_change_dropped_is_read_again_when_the_change_is_taken_back() -> None:
    narrow = replace(PLAIN, include=("d1.a",))
    for number in range(20, 38, 4):
        world = world_of(PLAIN, narrow)
        dies_after(world, number, lambda world=world: world.change(1))
        world.change(0)
        world.settle()
        assert at_target(world) == {"d1": ["a", "b"], "d2": ["c"]}
        assert (world.misplaced, world.problems) == ([], [])


def test_a_function_that_half_a_rename_dropped_is_there_again_when_the_rename_is_taken_back() -> None:
    deaths = 0
    while True:
        world = world_of(PLAIN, replace(PLAIN, include=("d2.*",), rename={"d2": "m"}))
        try:
            dies_after(world, deaths, lambda world=world: world.change(1))
        except AssertionError:
            assert deaths > 20
            return
        world.change(0)
        world.settle()
        assert (function_names(world), world.problems) == (["f"], [])
        deaths += 1


def test_a_change_that_dies_before_any_of_its_writes_is_made_good_by_the_next_start() -> None:
    narrow = replace(PLAIN, include=("d1.a", "x.*"), properties={"k": "v"})
    for writes in range(30):
        world, ledger = world_of(narrow, PLAIN), FragileLedger()
        ledger.put_tables(list(world.ledger.tables().values()))
        ledger.put_records(world.ledger.records())
        for epoch in world.ledger.epochs():
            ledger.publish(epoch, world.ledger.objects(epoch.epoch), [])
        world.ledger, ledger.writes_left = ledger, writes
        with suppress(Died):
            world.change(1)
        lives, ledger.writes_left = ledger.writes_left is not None, None
        world.change(1)
        world.settle()
        assert at_target(world) == {"d1": ["a", "b"], "d2": ["c"]}
        assert (function_names(world), world.misplaced, world.problems) == (["f"], [], [])
        if lives:
            assert writes >= 5
            return
    raise AssertionError("it never came to an end")


def function_names(world: PolicyWorld) -> list[str]:
    return list(world.target_store.functions("d2"))


def dies_after(world: PolicyWorld, points: int, work: Callable[[], None]) -> None:
    """Do what dies after so many points at which it can."""
    left = iter([*[False] * points, True])
    world.fate, world.mortal = lambda: next(left, False), True
    with suppress(Died):
        work()
    assert next(left, None) is None, "it was done before it could die"
    world.fate, world.mortal = lambda: False, False


def test_names_that_the_ledger_knows_are_those_that_the_policy_admits() -> None:
    world = world_of(PLAIN, replace(PLAIN, include=("d1.*",), exclude=("d1.b",)))
    world.change(1)
    assert [TableName(*key[1:]) for key in world.ledger.tables() if key[0] == "table"] == [A]


def test_a_view_is_written_anew_where_the_policy_gives_its_tables_other_names() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d1.a": "n.aa"}))
    text = "select x from `d1`.`a`"
    view = replace(table(TableName("d1", "v")), type="VIRTUAL_VIEW", view_original_text=text, view_expanded_text=text)
    world.source.create_table(replace(view, storage=Storage((Column("x", "int"),), None)))
    world.note()
    world.settle()
    world.change(1)
    world.settle()
    stored = world.target_store.the_table(TableName("d1", "v")).table
    assert "`n`.`aa`" in (stored.view_expanded_text or "")
    assert world.problems == []


def test_databases_whose_tables_move_one_by_one_say_so_first() -> None:
    whole = replace(PLAIN, consistency="database")
    world = world_of(whole, replace(whole, rename={"d1.a": "d1.aa", "d1.b": "d1.bb"}))
    said: list[str] = []

    def look(method: str) -> None:
        if method == "alter_table":
            said.append((world.target_store.the_database("d1").parameters or {}).get("calque.state", ""))

    world.between = look
    world.change(1)
    world.settle()
    assert said == ["rebasing", "rebasing"]
    assert "calque.state" not in (world.target_store.the_database("d1").parameters or {})


def test_a_database_and_a_function_never_go_back_to_before_they_were_admitted() -> None:
    world = world_of(replace(PLAIN, include=("d1.*",)), PLAIN)
    there, f = world.source.the_database("d2"), TableName("d2", "f")
    for newer in ("one", "two"):
        world.source.alter_database("d2", replace(there, description=newer, parameters={"k": newer}))
        world.source.drop_function(f)
        world.source.create_function(Function("f", "d2", f"com.example.{newer}"))
    world.note()
    world.change(1)
    for _ in range(6):
        world.capture_all(1)
        world.window()
        function = world.target_store.function(f)
        assert world.target_store.the_database("d2").description == "two"
        assert function is not None
        assert function.class_name == "com.example.two"
    world.settle()


def test_databases_that_change_places_while_the_source_drops_one_leave_none_behind() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d1": "d2", "d2": "d1"}))
    world.change(1)
    world.settle()
    world.writer.source.drop_database("d2", cascade=True)
    world.change(0)
    world.settle()
    assert at_target(world) == {"d1": ["a", "b"]}


def test_a_database_that_the_policy_takes_stays_when_it_is_empty() -> None:
    wide = replace(PLAIN, include=("d1.*", "x.*"))
    world = world_of(wide, replace(wide, rename={"d1.a": "d1.aa"}))
    world.change(1)
    assert "x" in world.target_store.databases()


def test_a_moved_table_keeps_the_statistics_of_its_partitions() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d2": "m"}))
    statistics = ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(0, 9, 0, 1)))
    for store in (world.source, world.target_store):
        store.update_statistics(C, [statistics], ("1",))
    world.change(1)
    world.settle()
    assert world.target_store.the_table(TableName("m", "c")).statistics == {("1",): {"x": statistics}}


def test_changed_properties_are_written_without_a_copy() -> None:
    world = world_of(PLAIN, replace(PLAIN, properties={"team": "dr"}))
    copied = copies(world)
    for number, wanted in ((1, "dr"), (0, None)):
        world.change(number)
        world.settle()
        for name in (A, B, C):
            assert (world.target_store.the_table(name).table.parameters or {}).get("team") == wanted
    assert copied == []


def test_a_rename_across_the_edge_of_the_policy_is_a_drop_or_the_read_of_one_table() -> None:
    world = world_of(PLAIN)
    outside = TableName("x", "a")
    world.source.alter_table(A, replace(world.source.the_table(A).table, database="x"))
    world.note()
    world.settle()
    assert at_target(world)["d1"] == ["b"]
    world.source.alter_table(outside, replace(world.source.the_table(outside).table, database="d1", name="back"))
    world.note()
    world.capture_all()
    world.window()
    assert world.replica.tables.in_state(State.UNKNOWN) == [TableName("d1", "back")]
    world.settle()
    assert at_target(world)["d1"] == ["b", "back"]
    assert world.problems == []


def test_the_plan_of_a_changed_policy_goes_on_from_what_the_change_makes_and_changes_nothing() -> None:
    world = world_of(PLAIN, replace(PLAIN, rename={"d2": "m", "d1.a": "d1.b", "d1.b": "d1.a"}))
    part = world.source.the_table(C).partitions["1",]
    world.source.alter_partitions(C, [replace(part, parameters={"k": "v"})])
    world.capture_all()
    before = world.target_store.current(), world.ledger.tables()
    side = TargetSide.of(world.policies[1], world.side.catalog, world.ledger, world.storage)
    found = explain_next_window(world.source_side, side, world.beginning, None)
    assert (found.reads, found.quarantined) == ((), ())
    assert [type(hop.operation) for group in found.groups for hop in group.plan.hops] == [AlterPartitions]
    assert (world.target_store.current(), world.ledger.tables()) == before


def test_what_a_narrower_policy_admits_no_more_goes_however_much_it_is_and_the_plan_lists_it_before() -> None:
    world = world_of(PLAIN, replace(PLAIN, include=("d2.*",)))
    for number in range(12):
        name = TableName("d1", f"t{number}")
        world.source.create_table(replace(table(name), storage=storage(f"file:/source/{name}")))
    world.note()
    world.settle()
    side = TargetSide.of(world.policies[1], world.side.catalog, world.ledger, world.storage)
    found = explain_next_window(world.source_side, side, world.beginning, None)
    assert [item.operation for item in found.other_calls].count("drop_table") == 14
    world.change(1)
    assert at_target(world) == {"d2": ["c"]}


def locations(world: PolicyWorld, name: TableName) -> list[str]:
    stored = world.target_store.the_table(name)
    return [location_of(thing) or "" for thing in (stored.table, *stored.partitions.values())]


def test_tables_whose_files_are_copied_no_more_are_switched_to_the_source_s_and_back() -> None:
    world = world_of(PLAIN, replace(PLAIN, data={"*.*": "copy", "d1.a": "none", "d2.*": "none"}))
    copied, called = copies(world), list[str]()
    world.between = called.append
    before = {name: locations(world, name) for name in (A, B, C)}
    world.change(1)
    world.settle()
    assert copied == []
    assert locations(world, A) == ["file:/source/d1.a"]
    assert locations(world, B) == before[B]
    assert locations(world, C)[1:] == ["file:/source/c/1", "file:/source/c/2"]
    assert differences(world) == []
    assert [one for one in called if one.startswith(CHANGING)] == ["alter_table", "alter_partitions", "alter_table"]
    called.clear()
    world.change(0)
    world.settle()
    assert len(copied) == 3
    assert differences(world) == []
    assert sorted(one for one in called if one.startswith(CHANGING)) == [
        "alter_partitions",
        "alter_table",
        "alter_table",
    ]
    assert world.problems == []


def test_a_rename_into_a_name_whose_files_stay_reads_one_table_and_copies_nothing() -> None:
    world = world_of(replace(PLAIN, data={"d2.*": "none"}))
    copied, moved = copies(world), TableName("d2", "a")
    world.source.alter_table(A, replace(world.source.the_table(A).table, database="d2"))
    world.note()
    world.capture_all()
    world.window()
    assert world.replica.tables.in_state(State.UNKNOWN) == [moved]
    world.settle()
    assert at_target(world) == {"d1": ["b"], "d2": ["a", "c"]}
    assert (copied, locations(world, moved)) == ([], ["file:/source/d1.a"])
    world.source.alter_table(moved, replace(world.source.the_table(moved).table, database="d1"))
    world.note()
    world.settle()
    assert at_target(world) == {"d1": ["a", "b"], "d2": ["c"]}
    assert differences(world) == []
    assert world.problems == []


def test_moves_come_in_an_order_in_which_every_name_is_free() -> None:
    a, b, c, d, aside = (TableName("x", name) for name in "abcdz")
    assert ordered({a: b, b: c}, lambda _: aside) == [(b, c), (a, b)]
    assert ordered({a: b, b: a, c: d}, lambda _: aside) == [(c, d), (a, aside), (b, a), (aside, b)]
