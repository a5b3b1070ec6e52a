"""`ports.Catalog`: column statistics and constraints, in memory and real."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from calque.core.events.keys import keys_of
from calque.core.states.facets import Changes, Rows, by_name, same_constraint, same_statistics
from calque.engine.apply.statistics import calls_accurate
from calque.errors import Refused
from calque.model.facets import (
    Binaries,
    Booleans,
    Check,
    ColumnStatistics,
    Constraint,
    Decimal,
    Decimals,
    DefaultValue,
    Doubles,
    ForeignKey,
    Longs,
    Moment,
    Moments,
    NotNull,
    PrimaryKey,
    Statistics,
    StatisticsCounts,
    Strings,
    UniqueKey,
)
from calque.model.hive import Column, Partition, Table
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import TableName
from calque.model.plan import FacetEvent
from calque.ports import Conflict

if TYPE_CHECKING:
    from support.worlds.metastore_worlds import World

KINDS = {
    "i": ("int", StatisticsCounts(longs=Longs(-3, 9, 2, 3))),
    "s": ("string", StatisticsCounts(strings=Strings(9, 2.5, 0, 3))),
    "d": ("decimal(10,2)", StatisticsCounts(decimals=Decimals(Decimal(b"\xff\x2c", 2), Decimal(b"\x7f", 0), 1, 2))),
    "t": ("timestamp", StatisticsCounts(timestamps=Moments(Moment(5), Moment(10), 0, 2))),
    "dt": ("date", StatisticsCounts(dates=Moments(Moment(5), Moment(10), 0, 2))),
    "b": ("boolean", StatisticsCounts(booleans=Booleans(1, 2, 3))),
    "f": ("double", StatisticsCounts(doubles=Doubles(-1.5, 2.5, 0, 2))),
    "n": ("double", StatisticsCounts(doubles=Doubles(-0.0, float("nan"), 0, 2))),
    "bi": ("binary", StatisticsCounts(binaries=Binaries(4, 2.25, 1))),
}
"""A column of each kind, with its statistics."""
COLUMNS = tuple(Column(name, type_) for name, (type_, _) in KINDS.items())
STATISTICS = {name: ColumnStatistics(name, *said) for name, said in KINDS.items()}
NAMES = list(KINDS)
MORE = {"i": ColumnStatistics("i", "int", StatisticsCounts(longs=Longs(1, 2, 3, 4)))}


def created(world: World, name: str, *keys: str) -> TableName:
    if world.database() not in world.catalog.databases():
        world.create_database()
    table = world.table(name, keys)
    assert table.storage
    return world.created(replace(table, storage=replace(table.storage, columns=COLUMNS)))


def same(one: Statistics, other: Statistics) -> bool:
    return one.keys() == other.keys() and all(same_statistics(one[name], other[name]) for name in one)


def accurate(thing: Table | Partition | None) -> bool:
    assert thing
    return calls_accurate(thing.parameters or {}, NAMES)


# Statistics


def test_statistics_of_every_kind_read_back_as_they_were_written(world: World) -> None:
    name = created(world, "analyzed")
    assert world.catalog.table_statistics(name, NAMES) == {}
    world.catalog.put_statistics(name, {"": STATISTICS})
    assert same(world.catalog.table_statistics(name, NAMES), STATISTICS)
    assert world.catalog.table_statistics(name, ["s"]).keys() == {"s"}
    assert accurate(world.catalog.table(name))


def test_statistics_of_partitions_are_written_and_read_by_their_names(world: World) -> None:
    name = created(world, "parts", "p")
    added = [Partition((value,), *name, storage=None, parameters={}) for value in ("1", "x=y", "a b/ü")]
    storage = (world.catalog.table(name) or Table()).storage
    assert storage
    places = [replace(one, storage=replace(storage, location=world.place("p", str(n)))) for n, one in enumerate(added)]
    world.catalog.add_partitions(name, places)
    names = ["p=1", "p=x%3Dy", "p=a b%2Fü"]
    world.catalog.put_statistics(name, dict.fromkeys(names, STATISTICS))
    found = world.catalog.partition_statistics(name, NAMES, [*names, "p=missing"])
    assert found.keys() == set(names)
    assert all(same(found[one], STATISTICS) for one in names)
    assert all(map(accurate, world.catalog.partitions(name, names).values()))
    assert world.catalog.table_statistics(name, NAMES) == {}


def test_columns_that_are_not_named_keep_their_statistics(world: World) -> None:
    name = created(world, "analyzed")
    world.catalog.put_statistics(name, {"": STATISTICS})
    world.catalog.put_statistics(name, {"": MORE})
    assert same(world.catalog.table_statistics(name, NAMES), {**STATISTICS, **MORE})


def test_statistics_of_one_column_are_dropped(world: World) -> None:
    name = created(world, "analyzed")
    world.catalog.put_statistics(name, {"": STATISTICS})
    world.catalog.drop_statistics(name, "", "i")
    assert world.catalog.table_statistics(name, NAMES).keys() == set(NAMES) - {"i"}


def test_statistics_outlive_an_alteration_that_calls_them_accurate_no_more(world: World) -> None:
    name = created(world, "analyzed")
    world.catalog.put_statistics(name, {"": STATISTICS})
    table = world.catalog.table(name)
    assert table
    world.catalog.alter_table(name, replace(table, parameters={"EXTERNAL": "TRUE", "x": "1"}))
    assert same(world.catalog.table_statistics(name, NAMES), STATISTICS)
    assert not accurate(world.catalog.table(name))


def test_statistics_follow_a_rename(world: World) -> None:
    name = created(world, "analyzed")
    world.catalog.put_statistics(name, {"": STATISTICS})
    table = world.catalog.table(name)
    assert table
    world.catalog.alter_table(name, replace(table, name="renamed"))
    assert same(world.catalog.table_statistics(TableName(name.database, "renamed"), NAMES), STATISTICS)
    assert world.catalog.table_statistics(name, NAMES) == {}


def test_statistics_of_what_is_not_there_are_a_conflict_and_read_as_none(world: World) -> None:
    name = created(world, "analyzed")
    missing = TableName(name.database, "missing")
    with pytest.raises(Conflict):
        world.catalog.put_statistics(missing, {"": STATISTICS})
    with pytest.raises(Conflict):
        world.catalog.put_statistics(name, {"": {"z": ColumnStatistics("z", "int", StatisticsCounts(longs=Longs()))}})
    assert world.catalog.table_statistics(missing, NAMES) == {}
    assert world.catalog.partition_statistics(missing, NAMES, ["p=1"]) == {}


def test_events_carry_statistics_where_the_server_logs_them(world: World) -> None:
    name = created(world, "analyzed")
    before = world.log.current()
    world.catalog.put_statistics(name, {"": STATISTICS})
    world.catalog.drop_statistics(name, "", "i")
    changes = noted(world, before, name)
    if not world.habits.facet_events:
        assert changes == Changes()
        return
    found = {column: row for column, row in changes.statistics[""].items() if row is not None}
    assert changes.statistics[""]["i"] is None
    assert same(found, {column: row for column, row in STATISTICS.items() if column != "i"})
    assert calls_accurate(changes.parameters[""], NAMES)


# Constraints


def rows_of(name: TableName, parent: TableName, number: int) -> dict[str, Rows]:
    """A constraint of each kind, the keys on two columns; some servers want names that no other table has."""
    flags = {"enabled": False, "validated": False, "relied": True}
    to: dict[str, str] = {"database": name.database, "table": name.table}
    of = {"parent_database": parent.database, "parent_table": parent.table, "parent_key": f"pk{number}"}
    rules = {"update_rule": 0, "delete_rule": 0}
    every: list[Constraint] = [
        PrimaryKey(parent.database, parent.table, "i", 1, f"pk{number}", **flags),
        PrimaryKey(parent.database, parent.table, "s", 2, f"pk{number}", **flags),
        UniqueKey("hive", *name, "i", 1, f"uk{number}", **flags),
        UniqueKey("hive", *name, "s", 2, f"uk{number}", **flags),
        NotNull("hive", *name, "i", f"nn{number}", **flags),
        DefaultValue("hive", *name, "s", "'Ä'", f"df{number}", **flags),
        Check("hive", *name, "i", "i > 'ü'", f"ck{number}", **flags),
        ForeignKey(**of, **to, **rules, parent_column="i", column="i", position=1, name=f"fk{number}", **flags),
        ForeignKey(**of, **to, **rules, parent_column="s", column="s", position=2, name=f"fk{number}", **flags),
    ]
    return by_name(every)


def constrained(world: World) -> tuple[TableName, TableName, dict[str, Rows]]:
    name, parent = created(world, "child"), created(world, "parent")
    rows = rows_of(name, parent, world.number)
    for one in rows.values():
        world.catalog.add_constraints(one)
    return name, parent, rows


def equal(one: dict[str, Rows], other: dict[str, Rows]) -> bool:
    return one.keys() == other.keys() and all(same_constraint(one[name], other[name]) for name in one)


def test_constraints_of_every_kind_read_back_as_they_were_written(world: World) -> None:
    name, parent, rows = constrained(world)
    key = f"pk{world.number}"
    assert equal(by_name(world.catalog.constraints(parent)), {key: rows[key]})
    del rows[key]
    assert equal(by_name(world.catalog.constraints(name)), rows)
    keys = by_name(world.catalog.foreign_keys_to(parent))
    assert equal(keys, {f"fk{world.number}": rows[f"fk{world.number}"]})
    assert not world.catalog.foreign_keys_to(name)


def test_each_constraint_is_dropped_by_its_name(world: World) -> None:
    name, _, rows = constrained(world)
    for constraint in rows.keys() - {f"pk{world.number}"}:
        world.catalog.drop_constraint(name, constraint)
    assert not world.catalog.constraints(name)


def test_a_constraint_that_is_missing_is_a_conflict(world: World) -> None:
    name = created(world, "child")
    with pytest.raises(Conflict):
        world.catalog.drop_constraint(name, "missing")
    with pytest.raises(Conflict):
        world.catalog.drop_constraint(TableName(name.database, "missing"), "missing")
    assert not world.catalog.constraints(TableName(name.database, "missing"))


def test_what_can_not_be_a_constraint_is_refused(world: World) -> None:
    name, parent, rows = constrained(world)
    key = rows[f"pk{world.number}"]
    without = [replace(row, name=f"no{world.number}") for row in rows[f"fk{world.number}"]]
    lost = [replace(row, parent_table="missing") for row in without if isinstance(row, ForeignKey)]
    loose = [replace(row, parent_table=name.table, parent_column="b") for row in lost]
    for refused in ([replace(row, name=f"other{world.number}") for row in key], lost, loose):
        with pytest.raises((Refused, Conflict)):
            world.catalog.add_constraints(refused)
    assert equal(by_name(world.catalog.constraints(parent)), {f"pk{world.number}": key})


def test_constraints_follow_the_renames_of_both_tables(world: World) -> None:
    name, parent, rows = constrained(world)
    for one, new in ((parent, "parent2"), (name, "child2")):
        table = world.catalog.table(one)
        assert table
        world.catalog.alter_table(one, replace(table, name=new))
    moved = {
        key: tuple(
            replace(row, table="child2", parent_table="parent2")
            if isinstance(row, ForeignKey)
            else replace(row, table="child2")
            for row in rows
        )
        for key, rows in rows.items()
        if key != f"pk{world.number}"
    }
    assert equal(by_name(world.catalog.constraints(TableName(name.database, "child2"))), moved)


def test_a_foreign_key_goes_with_its_parent(world: World) -> None:
    name, parent, _ = constrained(world)
    world.catalog.drop_table(parent)
    assert not any(isinstance(row, ForeignKey) for row in world.catalog.constraints(name))


def test_events_carry_constraints_and_name_the_child(world: World) -> None:
    before = world.log.current()
    name, parent, rows = constrained(world)
    logged = {key: one for key, one in rows.items() if world.habits.facet_events or not key.startswith(("df", "ck"))}
    world.catalog.drop_constraint(name, f"nn{world.number}")
    key = f"pk{world.number}"
    found = noted(world, before, name).constraints
    assert found.pop(f"nn{world.number}") is None
    del logged[f"nn{world.number}"]
    assert equal({one: rows for one, rows in found.items() if rows}, {k: v for k, v in logged.items() if k != key})
    assert equal(
        {one: rows for one, rows in noted(world, before, parent).constraints.items() if rows}, {key: rows[key]}
    )


def noted(world: World, after: int, name: TableName) -> Changes:
    """What the events after an id say of the table's facets."""
    changes = Changes()
    for event in facet_events(world, after):
        if keys_of(event) == Keys(EventKind.FACET, name):
            changes.note(FacetEvent(event.event_id, name, "", newest=True), event)
    return changes


def facet_events(world: World, after: int) -> list[Event]:
    return [event for event in world.logged(after) if keys_of(event).kind is EventKind.FACET]
