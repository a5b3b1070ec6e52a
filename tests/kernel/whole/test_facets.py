"""Column statistics and constraints from the source's log, or its catalog, to a target, in whole worlds in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace

import pytest

from calque.core.images.compare import Difference, DifferenceKind
from calque.core.images.image import EVENT, Marks
from calque.core.records.lifecycle import State
from calque.engine.apply.statistics import ACCURATE
from calque.engine.replica.dry_run import explain_next_window
from calque.engine.verify.verify import verify
from calque.model.facets import (
    ColumnStatistics,
    Constraint,
    ForeignKey,
    Longs,
    NotNull,
    PrimaryKey,
    Statistics,
    StatisticsCounts,
    Strings,
)
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.worlds import INPUT, OUTPUT, SERDE, InlineExecutor, World

ORDERS, LINES, OTHER = TableName("d1", "orders"), TableName("d1", "lines"), TableName("d3", "orders")
AT = {name: TableName("d1_dr", name.table) for name in (ORDERS, LINES)}
POLICY = Policy("dr", "hq", include=("d1.*",), rename={"d1": "d1_dr"}, warehouse="file:/target")
COLUMNS = (Column("x", "int"), Column("y", "string"))
STORAGE = Storage(COLUMNS, None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))


def begun(habits: ServerHabits = HIVE_4, policy: Policy = POLICY) -> World:
    """A world with empty databases, and a target that follows it."""
    world = World(1, habits, policy)
    for database in ("d1", "d3"):
        world.source.create_database(Database(database))
    opened(world)
    world.settle()
    return world


def opened(world: World) -> World:
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    return world


def create(world: World, name: TableName, *values: str) -> None:
    keys = (Column("p", "string"),) if values else ()
    world.source.create_table(
        Table(
            name.table, name.database, "me", storage=STORAGE, partition_keys=keys, parameters={}, type="MANAGED_TABLE"
        )
    )
    if values:
        added = [Partition((value,), *name, storage=STORAGE, parameters={}) for value in values]
        world.source.add_partitions(name, added)


def window(world: World) -> None:
    for _ in range(3):
        world.capture_all()
    world.window_alone()


def longs(high: int) -> ColumnStatistics:
    return ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(0, high, 0, 1)))


def strings(longest: int) -> ColumnStatistics:
    return ColumnStatistics("y", "string", StatisticsCounts(strings=Strings(longest, 1.5, 0, 1)))


def key(name: TableName = ORDERS) -> PrimaryKey:
    return PrimaryKey(*name, "x", 1, "pk")


def foreign_key(parent: TableName = ORDERS, child: TableName = LINES) -> ForeignKey:
    return ForeignKey(*parent, "x", *child, "x", 1, 0, 0, "fk", "pk", False, False, True)


def statistics(world: World, name: TableName, *values: str) -> Statistics:
    return world.target_store.the_table(AT.get(name, name)).statistics.get(values, {})


def constraints(world: World, name: TableName) -> list[Constraint]:
    return world.target_store.constraints(AT.get(name, name))


def names(world: World, name: TableName) -> set[str]:
    return {str(row.name) for row in constraints(world, name)}


def accurate(world: World, name: TableName) -> str | None:
    return (world.target_store.the_table(AT[name]).table.parameters or {}).get(ACCURATE)


def reread(world: World, name: TableName) -> None:
    world.replica.reads.reread(lambda one: one == name, "the test wants it", {State.LIVE})


def pool(_workers: int, _name: str) -> Executor:
    return InlineExecutor()


def compared(world: World) -> tuple[Difference, ...]:
    found = verify(world.source_side, world.side, (), "none", pool=pool)
    assert found.set_aside == ()
    return found.differences


# Events


def test_statistics_and_constraints_of_a_window_are_at_the_target_when_it_is_through() -> None:
    world = begun()
    create(world, ORDERS)
    create(world, LINES, "1", "a b")
    world.source.update_statistics(ORDERS, [longs(1), strings(3)])
    world.source.update_statistics(ORDERS, [longs(2)])
    world.source.update_statistics(LINES, [longs(7)], ("a b",))
    world.source.add_constraints([key()])
    world.source.add_constraints([NotNull(None, *ORDERS, "y", "nn", True, False, True)])
    window(world)
    assert statistics(world, ORDERS) == {"x": longs(2), "y": strings(3)}
    assert (statistics(world, LINES, "a b"), statistics(world, LINES, "1")) == ({"x": longs(7)}, {})
    assert constraints(world, ORDERS) == [replace(row, database="d1_dr") for row in world.source.constraints(ORDERS)]
    assert accurate(world, ORDERS) == (world.source.the_table(ORDERS).table.parameters or {})[ACCURATE]


def test_what_comes_and_goes_inside_a_window_is_never_there() -> None:
    world = begun()
    create(world, ORDERS)
    window(world)
    world.source.add_constraints([key()])
    world.source.drop_constraint(ORDERS, "pk")
    world.source.update_statistics(ORDERS, [longs(1)])
    world.source.delete_statistics(ORDERS, "x")
    before = world.target_store.current()
    window(world)
    assert (constraints(world, ORDERS), statistics(world, ORDERS)) == ([], {})
    assert [event.event_type for event in world.target_store.events(before)] in ([], ["ALTER_TABLE"])


def test_what_the_source_drops_goes() -> None:
    world = begun()
    create(world, ORDERS)
    world.source.add_constraints([key()])
    world.source.update_statistics(ORDERS, [longs(1), strings(2)])
    window(world)
    world.source.drop_constraint(ORDERS, "pk")
    world.source.delete_statistics(ORDERS, "x")
    window(world)
    assert (constraints(world, ORDERS), statistics(world, ORDERS)) == ([], {"y": strings(2)})


def test_a_constraint_that_was_made_anew_replaces_the_one_of_its_name() -> None:
    world = begun()
    create(world, ORDERS)
    world.source.add_constraints([key()])
    window(world)
    world.source.drop_constraint(ORDERS, "pk")
    world.source.add_constraints([replace(key(), column="y")])
    window(world)
    assert [row.column for row in constraints(world, ORDERS)] == ["y"]


def test_facets_follow_the_renames_of_their_window() -> None:
    world = begun()
    create(world, ORDERS, "1")
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)], ("1",))
    world.source.add_constraints([key()])
    partition = world.source.the_table(ORDERS).partitions["1",]
    world.source.rename_partition(ORDERS, ("1",), replace(partition, values=("2",)))
    world.source.alter_table(ORDERS, replace(world.source.the_table(ORDERS).table, name="past"))
    window(world)
    past = TableName("d1_dr", "past")
    assert statistics(world, past, "2") == {"x": longs(1)}
    assert [(row.table, row.name) for row in constraints(world, past)] == [("past", "pk")]


def test_statistics_of_what_is_gone_by_the_end_of_the_window_are_nothing() -> None:
    world = begun()
    create(world, ORDERS, "1", "2")
    create(world, LINES)
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)], ("1",))
    world.source.drop_partitions(ORDERS, ["p=1"])
    world.source.update_statistics(LINES, [longs(1), strings(2)])
    table = world.source.the_table(LINES).table
    columns = (Column("x", "bigint"), Column("y", "string"))
    world.source.alter_table(LINES, replace(table, storage=replace(STORAGE, columns=columns)))
    window(world)
    assert world.target_store.the_table(AT[ORDERS]).statistics == {}
    assert statistics(world, LINES) == {"y": strings(2)}


def test_a_table_that_is_made_again_has_none_of_the_facets_of_the_first() -> None:
    world = begun()
    create(world, ORDERS)
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)])
    world.source.add_constraints([key()])
    world.source.drop_table(ORDERS)
    create(world, ORDERS)
    window(world)
    assert (constraints(world, ORDERS), statistics(world, ORDERS)) == ([], {})


def test_statistics_that_a_later_change_made_inaccurate_are_not_called_accurate() -> None:
    world = begun()
    create(world, ORDERS)
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)])
    table = world.source.the_table(ORDERS).table
    parameters = {name: value for name, value in (table.parameters or {}).items() if name != ACCURATE}
    world.source.alter_table(ORDERS, replace(table, parameters={**parameters, "numRows": "9"}))
    window(world)
    assert (statistics(world, ORDERS), accurate(world, ORDERS)) == ({"x": longs(1)}, None)


@pytest.mark.parametrize(("policy", "calls"), [(POLICY, 2), (replace(POLICY, data="none"), 4)])
def test_statistics_that_follow_a_definition_in_its_window_are_written_with_it(policy: Policy, calls: int) -> None:
    world = begun(policy=policy)
    create(world, LINES, "1")
    window(world)
    before, counted = world.target_store.current(), {"numRows": "9", "totalSize": "90"}
    create(world, ORDERS)
    world.source.add_partitions(LINES, [Partition(("2",), *LINES, storage=STORAGE, parameters={})])
    table = world.source.the_table(ORDERS).table
    world.source.alter_table(ORDERS, replace(table, parameters={**(table.parameters or {}), **counted}))
    added = world.source.the_table(LINES).partitions["2",]
    world.source.alter_partitions(LINES, [replace(added, parameters={**(added.parameters or {}), **counted})])
    window(world)
    found = world.target_store.the_table(AT[LINES]).partitions["2",].parameters or {}
    shown = world.target_store.the_table(AT[ORDERS]).table.parameters or {}
    assert counted.items() <= found.items()
    assert counted.items() <= shown.items()
    assert found[EVENT] == str(world.source.current())
    assert world.target_store.current() == before + calls


def test_a_window_of_facets_alone_makes_no_hop_and_says_what_it_calls() -> None:
    world = begun()
    create(world, ORDERS)
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)])
    world.capture_all()
    foreseen = explain_next_window(world.source_side, world.side, lambda: world.begin, None)
    assert [(group.plan.hops, group.calls) for group in foreseen.groups] == [((), 1)]
    window(world)
    assert [plan.hops for plan in world.windows[-1].plans] == [()]
    assert world.windows[-1].applied.calls in (1, 2)


def test_a_window_played_twice_writes_no_facet_again() -> None:
    world = begun()
    create(world, ORDERS)
    create(world, LINES, "1")
    window(world)
    world.source.add_constraints([key()])
    world.source.add_constraints([foreign_key()])
    world.source.update_statistics(LINES, [longs(7)], ("1",))
    ledger = world.ledger.copy()
    window(world)
    before = world.target_store.current()
    world.restart_replica(ledger)
    window(world)
    assert world.target_store.current() == before


def test_a_message_of_a_facet_that_can_not_be_read_harms_nobody() -> None:
    world = begun()
    create(world, ORDERS)
    window(world)
    world.source.update_statistics(ORDERS, [longs(1)])
    [broken] = world.source.events(world.source.current() - 1)
    world.source._log[-1] = replace(broken, message=broken.message.replace("colStatsJson", "nothing"))
    world.source.add_constraints([key()])
    window(world)
    assert (names(world, ORDERS), statistics(world, ORDERS)) == ({"pk"}, {})
    assert world.replica.epochs.position() == world.source.current()


def test_the_image_of_a_table_without_partition_keys_says_so() -> None:
    world = begun()
    given = Table("orders", "d1", storage=STORAGE, partition_keys=None, parameters={})
    assert world.side.imaging.table(given, Marks(1, "1"), None).partition_keys == ()


# Foreign keys


def test_a_foreign_key_is_there_whichever_of_its_tables_comes_first() -> None:
    for first, second in ((ORDERS, LINES), (LINES, ORDERS)):
        world = begun()
        create(world, first)
        create(world, second)
        world.source.add_constraints([key()])
        world.source.add_constraints([foreign_key()])
        window(world)
        at = {"parent_database": "d1_dr", "database": "d1_dr", "catalog": "hive"}
        assert constraints(world, LINES) == [replace(foreign_key(), **at)]  # type: ignore[arg-type]


def test_a_foreign_key_to_a_table_that_the_policy_does_not_take_is_left_out() -> None:
    world = begun()
    create(world, OTHER)
    create(world, LINES)
    world.source.add_constraints([key(OTHER)])
    world.source.add_constraints([foreign_key(OTHER)])
    window(world)
    assert constraints(world, LINES) == []
    assert compared(world) == ()


def test_a_foreign_key_is_made_again_with_a_parent_that_was_read_again() -> None:
    world = begun()
    create(world, ORDERS)
    create(world, LINES)
    world.source.add_constraints([key()])
    world.source.add_constraints([foreign_key()])
    window(world)
    world.target_store.drop_table(AT[ORDERS])
    assert names(world, LINES) == set()
    reread(world, ORDERS)
    world.settle()
    assert (names(world, ORDERS), names(world, LINES)) == ({"pk"}, {"fk"})


# Exact reads


@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4], ids=["3", "4"])
def test_a_bootstrap_brings_the_facets_of_all_tables(habits: ServerHabits) -> None:
    world = World(1, habits, POLICY)
    world.source.create_database(Database("d1"))
    create(world, LINES, "1", "2")
    create(world, ORDERS)
    world.source.add_constraints([key()])
    world.source.add_constraints([foreign_key()])
    world.source.update_statistics(ORDERS, [longs(1)])
    world.source.update_statistics(LINES, [longs(2)], ("2",))
    opened(world).settle()
    assert (names(world, ORDERS), names(world, LINES)) == ({"pk"}, {"fk"})
    assert (statistics(world, ORDERS), statistics(world, LINES, "2")) == ({"x": longs(1)}, {"x": longs(2)})
    assert compared(world) == ()


def test_a_repair_makes_facets_those_of_the_source() -> None:
    world = begun()
    create(world, ORDERS, "1", "2")
    window(world)
    world.source.update_statistics(ORDERS, [longs(1), strings(4)], ("1",))
    world.source.add_constraints([key()])
    window(world)
    world.target_store.update_statistics(AT[ORDERS], [longs(9)], ("1",))
    world.target_store.delete_statistics(AT[ORDERS], "y", ("1",))
    world.target_store.update_statistics(AT[ORDERS], [longs(9)], ("2",))
    world.target_store.update_statistics(AT[ORDERS], [longs(9)])
    world.target_store.drop_constraint(AT[ORDERS], "pk")
    world.target_store.add_constraints([NotNull(None, *AT[ORDERS], "x", "nn")])
    reread(world, ORDERS)
    world.settle()
    assert names(world, ORDERS) == {"pk"}
    assert statistics(world, ORDERS, "1") == {"x": longs(1), "y": strings(4)}
    assert (statistics(world, ORDERS, "2"), statistics(world, ORDERS)) == ({}, {})
    assert compared(world) == ()


def test_facets_of_a_table_that_is_renamed_while_they_are_read_come_from_where_it_is_then() -> None:
    world = begun()
    create(world, ORDERS, "1", "2")
    create(world, LINES)
    world.source.add_constraints([key()])
    world.source.update_statistics(ORDERS, [longs(1)], ("1",))
    window(world)
    reread(world, ORDERS)
    tables = [world.source.the_table(name).table for name in (ORDERS, LINES)]

    def swap(method: str) -> None:
        if method == "table_statistics" and tables:
            orders, lines = tables
            tables.clear()
            world.source.alter_table(ORDERS, replace(orders, name="swapped"))
            world.source.alter_table(LINES, replace(lines, name="orders"))

    world.between = swap
    world.read()
    assert names(world, ORDERS) == {"pk"}
    assert statistics(world, ORDERS, "1") == {"x": longs(1)}
    world.settle()
    assert (names(world, ORDERS), names(world, TableName("d1_dr", "swapped"))) == (set(), {"pk"})
    assert compared(world) == ()
    assert [bridge for found in world.windows for bridge in found.bridges()] == []


# Deaths


def crowded() -> World:
    """A window with facets of every sort before it."""
    world = begun()
    create(world, ORDERS)
    create(world, LINES, "1")
    window(world)
    world.source.add_constraints([key()])
    world.source.add_constraints([foreign_key()])
    world.source.update_statistics(ORDERS, [longs(1), strings(4)])
    world.source.update_statistics(LINES, [longs(7)], ("1",))
    return world


def test_facets_are_all_there_wherever_it_dies() -> None:
    deaths = 0
    for moment in range(100):
        world = crowded()
        countdown = iter([*[False] * moment, True])
        world.fate = lambda countdown=countdown: next(countdown, False)  # type: ignore[misc]
        window(world)
        deaths += world.deaths
        world.settle()
        assert (names(world, ORDERS), names(world, LINES)) == ({"pk"}, {"fk"})
        assert statistics(world, ORDERS) == {"x": longs(1), "y": strings(4)}
        assert compared(world) == ()
        if not world.deaths:
            break
    assert deaths > 10


@pytest.mark.parametrize("later", [{}, {"numRows": "3", "numFiles": "8"}, {"note": "x"}], ids=["", "counts", "more"])
def test_what_the_target_counts_of_a_renamed_partition_is_not_shown_wherever_it_dies(later: Mapping[str, str]) -> None:
    """The source's own counts are of an earlier day."""
    deaths = 0
    for moment in range(100):
        world = begun(HIVE_3)
        create(world, ORDERS, "1", "3")
        was = world.source.the_table(ORDERS).partitions["1",]
        counted = replace(was, parameters={**(was.parameters or {}), "numFiles": "7", "totalSize": "70"})
        world.source.alter_partitions(ORDERS, [counted])
        window(world)
        renamed = replace(counted, values=("2",))
        world.source.rename_partition(ORDERS, ("1",), renamed)
        if later:
            altered = replace(renamed, parameters={**(renamed.parameters or {}), **later})
            world.source.alter_partitions(ORDERS, [altered])
        countdown = iter([*[False] * moment, True])
        world.fate = lambda countdown=countdown: next(countdown, False)  # type: ignore[misc]
        window(world)
        deaths += world.deaths
        world.settle()
        found = world.target_store.the_table(AT[ORDERS]).partitions["2",].parameters or {}
        assert {"numFiles": "7", "totalSize": "70", **later}.items() <= found.items()
        assert compared(world) == ()
        if not world.deaths:
            break
    assert deaths > 3


# Comparing


def spoil_statistics(world: World) -> None:
    world.target_store.update_statistics(AT[LINES], [longs(8)], ("1",))


def forget_statistics(world: World) -> None:
    world.target_store.delete_statistics(AT[ORDERS], "x")


def drop_key(world: World) -> None:
    world.target_store.drop_constraint(AT[LINES], "fk")


def add_key(world: World) -> None:
    world.target_store.add_constraints([NotNull(None, *AT[ORDERS], "x", "theirs", True)])


FOREIGN = "ForeignKey (x) {0} orders pk relied"


@pytest.mark.parametrize(
    ("spoil", "difference"),
    [
        (
            spoil_statistics,
            Difference(
                LINES,
                "p=1",
                DifferenceKind.DEFINITION,
                "statistics of column x",
                "low 0, high 7, nulls 0, distinct 1",
                "low 0, high 8, nulls 0, distinct 1",
            ),
        ),
        (
            forget_statistics,
            Difference(
                ORDERS,
                "",
                DifferenceKind.DEFINITION,
                "statistics of column x",
                "low 0, high 1, nulls 0, distinct 1",
                None,
            ),
        ),
        (
            drop_key,
            Difference(LINES, "", DifferenceKind.DEFINITION, "constraint fk", FOREIGN.format("d1_dr"), None),
        ),
        (
            add_key,
            Difference(ORDERS, "", DifferenceKind.DEFINITION, "constraint theirs", None, "NotNull (x) enabled"),
        ),
    ],
)
def test_a_facet_that_differs_is_told_with_both_sides(spoil: Callable[[World], None], difference: Difference) -> None:
    world = crowded()
    window(world)
    assert compared(world) == ()
    spoil(world)
    assert compared(world) == (difference,)
