"""`ports.Catalog`: what every metastore does, in memory and real."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import Fault
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.world import ProbeResult, listening, probed, server_version
from calque.engine.target.list_calls import send_list
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import (
    Column,
    Database,
    Function,
    Partition,
    Resource,
    Skew,
    SortColumn,
    Storage,
    Table,
    location_of,
)
from calque.model.names import TableName, partition_name
from calque.model.policy import Limits, TargetCapabilities
from calque.ports import Conflict, TableCommit, TooLarge
from calque.sandbox.writer import HiveClient

if TYPE_CHECKING:
    from calque.sandbox import Metastore
    from support.worlds.metastore_worlds import World

T = TypeVar("T")
AWKWARD = (
    "a b",
    " lead",
    "%",
    "a%2Fb",
    "#",
    "=",
    "x=y",
    ":",
    "/",
    "'",
    '"',
    "\\",
    "[x]",
    "{",
    "^",
    "*?",
    "tab\there",
    "é☃",
    "日本",
    "-1",
    "__HIVE_DEFAULT_PARTITION__",
)
FACETS = ("transient_lastDdlTime", "numFiles", "totalSize", "numFilesErasureCoded", "numRows", "rawDataSize")


def test_a_table_reads_back_as_it_was_written(world: World) -> None:
    world.create_database()
    table = world.table("orders", ["day", "region"], **{"calque.event": "7", "Ünïcode": "☃ = 'x'"})
    name = world.created(table)
    assert definition(world.catalog.table(name)) == definition(table)


def test_bucketing_sorting_and_skew_read_back_as_they_were_written(world: World) -> None:
    world.create_database()
    plain = world.table("buckets")
    storage = replace(
        plain.storage or Storage(),
        buckets=4,
        bucket_columns=("a",),
        sort_columns=(SortColumn("a", 0), SortColumn("b", 1)),
        skew=Skew(("a",), (("1",), ("ü",)), {("1",): world.place("skewed")}),
        sub_directories=True,
        parameters={"storage": "ü"},
    )
    table = replace(plain, storage=storage)
    name = world.created(table)
    assert definition(world.catalog.table(name)) == definition(table)


def test_a_view_reads_back_as_it_was_written(world: World) -> None:
    world.create_database()
    view = world.view("orders_view", "SELECT 'Ä' FROM t WHERE x = \"y\"\nAND z")
    name = world.created(view)
    assert definition(world.catalog.table(name)) == definition(view)


def test_what_is_missing_reads_as_absent(world: World) -> None:
    nowhere = TableName("nowhere", "nothing")
    world.create_database()
    for name in (nowhere, TableName(world.database(), "nothing")):
        assert world.catalog.table(name) is None
        assert world.catalog.function(name) is None
        assert world.catalog.partition_names(name) == ()
        assert world.catalog.partitions(name, ["p=1"]) == {}
        assert world.catalog.few_partitions(Table(name.table, name.database), 1) == {}
    assert world.catalog.database("nowhere") is None
    assert world.catalog.tables("nowhere") == ()
    assert world.catalog.functions("nowhere") == ()


def test_names_list_what_is_there(world: World) -> None:
    database = world.create_database()
    world.created(world.table("orders"))
    world.created(world.view("orders_view", "SELECT 1"))
    assert database in world.catalog.databases()
    assert sorted(world.catalog.tables(database)) == ["orders", "orders_view"]


def test_headers_are_what_tables_read_one_by_one_are(world: World) -> None:
    database = world.create_database()
    names = [
        world.created(table)
        for table in (
            world.table("orders", ["p"], note="Größe"),
            world.managed_table("managed"),
            world.view("orders_view", "SELECT 1"),
        )
    ]
    asked = ["nothing", *(name.table for name in names)]
    assert world.catalog.headers(database, asked) == {name.table: world.catalog.table(name) for name in names}
    assert world.catalog.headers("nowhere", asked) == {}
    assert world.catalog.headers(database, []) == {}


def test_a_database_is_altered_as_a_whole(world: World) -> None:
    name = world.create_database()
    changed = Database(name, "Verkäufe", world.place("other"), {"calque.event": "9"}, "someone", 3)
    world.catalog.alter_database(name, changed)
    found = world.catalog.database(name)
    assert found
    assert (found.description, found.location, found.parameters) == (
        changed.description,
        changed.location,
        changed.parameters,
    )
    assert (found.owner, found.owner_type) == ("someone", 3)


def test_a_database_is_dropped_only_when_it_is_empty(world: World) -> None:
    database = world.create_database()
    name = world.created(world.table("orders"))
    with pytest.raises(Conflict):
        world.catalog.drop_database(database)
    world.catalog.drop_table(name)
    world.catalog.drop_database(database)
    assert world.catalog.database(database) is None


def test_partitions_with_awkward_values_are_found_by_their_names(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day", "region"])
    name = world.created(table)
    written = [
        build_partition(table, (value, "x"), world.place("parts", str(number)), n=str(number), wert=value)
        for number, value in enumerate(AWKWARD)
    ]
    world.catalog.add_partitions(name, written)
    expected = {partition_name(("day", "region"), one.values): one for one in written}
    names = world.catalog.partition_names(name)
    assert sorted(names) == sorted(expected)
    few = world.catalog.few_partitions(table, len(written))
    assert few == world.catalog.partitions(name, names)
    assert world.catalog.few_partitions(table, len(written) - 1) is None
    found = world.catalog.partitions(name, [*names, "day=never/region=x"])
    assert {wanted: content(one) for wanted, one in found.items()} == {
        wanted: content(one) for wanted, one in expected.items()
    }


def test_values_that_differ_in_case_alone_are_two_partitions(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    world.catalog.add_partitions(name, [build_partition(table, (value,), world.place(value)) for value in ("a", "A")])
    found = world.catalog.partitions(name, ["day=a", "day=A"])
    assert {wanted: one.values for wanted, one in found.items()} == {"day=a": ("a",), "day=A": ("A",)}


def test_a_thousand_partitions_are_added_altered_and_dropped_by_calls_of_the_declared_size(
    world: World, build_partition: Build
) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    limits = world.catalog.abilities().limits
    (world.root / "shared").mkdir()
    added = [build_partition(table, (f"{n:04}",), world.place("shared"), n=str(n)) for n in range(1000)]
    for batch in cut(added, limits.add_partitions):
        world.catalog.add_partitions(name, batch)
    names = world.catalog.partition_names(name)
    assert len(names) == 1000
    for batch in cut([replace(one, parameters={"n": "new"}) for one in added], limits.alter_partitions):
        world.catalog.alter_partitions(name, batch)
    found = world.catalog.partitions(name, names)
    assert {(one.parameters or {})["n"] for one in found.values()} == {"new"}
    for few in cut(names, limits.drop_partitions):
        world.catalog.drop_partitions(name, few)
    assert world.catalog.partition_names(name) == ()


def test_a_list_beyond_the_declared_size_is_refused_and_changes_nothing(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    world.catalog.add_partitions(name, [build_partition(table, ("0",), world.place("0"), n="old")])
    limits = world.catalog.abilities().limits
    most = max(limits.add_partitions, limits.alter_partitions, limits.drop_partitions)
    many = [build_partition(table, (str(n),), world.place(str(n)), n="new") for n in range(most + 2)]
    with pytest.raises(Refused, match=f"at most {limits.add_partitions} in one call"):
        world.catalog.add_partitions(name, many[1 : limits.add_partitions + 2])
    with pytest.raises(Refused, match=f"at most {limits.alter_partitions} in one call"):
        world.catalog.alter_partitions(name, many[: limits.alter_partitions + 1])
    with pytest.raises(Refused, match=f"at most {limits.drop_partitions} in one call"):
        world.catalog.drop_partitions(name, [f"day={n}" for n in range(limits.drop_partitions + 1)])
    found = world.catalog.partitions(name, world.catalog.partition_names(name))
    assert {wanted: one.parameters for wanted, one in found.items()} == {
        "day=0": {**(found["day=0"].parameters or {}), "n": "old"}
    }


def test_a_list_that_the_server_finds_too_large_is_taken_in_halves(narrow: World, build_partition: Build) -> None:
    narrow.create_database()
    table = narrow.table("orders", ["day"])
    name = narrow.created(table)
    many = [build_partition(table, (f"{n:04}",), narrow.place("shared"), n="old") for n in range(500)]
    catalog = narrow.catalog
    with pytest.raises(TooLarge, match="500"):
        catalog.add_partitions(name, many)
    assert catalog.abilities().limits == Limits(add_partitions=250)
    assert catalog.partition_names(name) == ()
    send_list(catalog, "add_partitions", lambda some: catalog.add_partitions(name, some), many)
    new = [replace(one, parameters={"n": "new"}) for one in many]
    send_list(catalog, "alter_partitions", lambda some: catalog.alter_partitions(name, some), new)
    found = catalog.partitions(name, catalog.partition_names(name))
    assert len(found) == 500
    assert {(one.parameters or {})["n"] for one in found.values()} == {"new"}
    send_list(catalog, "drop_partitions", lambda some: catalog.drop_partitions(name, some), sorted(found))
    assert catalog.partition_names(name) == ()
    limits = catalog.abilities().limits
    assert (limits.add_partitions, limits.alter_partitions) == (250, 250)


def test_a_call_with_one_bad_partition_changes_none_or_those_ahead_of_it(world: World, build_partition: Build) -> None:
    """All or nothing where the catalog declares its lists atomic; else what comes first is written."""
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    one, two, three = (build_partition(table, (day,), world.place(day), n="old") for day in ("1", "2", "3"))
    new = replace(one, parameters={"n": "new"})
    atomic = world.catalog.abilities().atomic_lists
    world.catalog.add_partitions(name, [one])
    with pytest.raises(Conflict):
        world.catalog.add_partitions(name, [two, one, three])
    with pytest.raises(Conflict):
        world.catalog.alter_partitions(name, [new, three])
    assert {wanted: content(found) for wanted, found in every_partition(world, name).items()} == (
        {"day=1": content(one)} if atomic else {"day=1": content(new), "day=2": content(two)}
    )
    with pytest.raises(Conflict):
        world.catalog.drop_partitions(name, ["day=1", "day=3", "day=2"])
    assert list(every_partition(world, name)) == (["day=1"] if atomic else ["day=2"])


def test_any_difference_of_a_table_is_one_commit(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"], **{"calque.event": "1"})
    name = TableName(table.database, "orders")
    one, two, three, four = (build_partition(table, (day,), world.place(day), n="old") for day in "1234")
    commit = world.catalog.commit_table
    if not world.catalog.abilities().any_difference:
        with pytest.raises(Refused, match="no commit of any difference"):
            commit(TableCommit(None, table, [one]))
        assert world.catalog.table(name) is None
        return
    commit(TableCommit(None, table, [one, two, three]))
    assert list(every_partition(world, name)) == ["day=1", "day=2", "day=3"]
    wider, new = widened(table, "c"), replace(one, parameters={"n": "new"})
    commit(TableCommit(name, wider, [new, four], ["day=2"], cascade=True, expected_event="1"))
    assert definition(world.catalog.table(name)) == definition(wider)
    kept = replace(three, storage=replace(wider.storage or Storage(), location=world.place("3")))
    assert {wanted: content(found) for wanted, found in every_partition(world, name).items()} == {
        "day=1": content(new),
        "day=3": content(kept),
        "day=4": content(four),
    }


def test_a_commit_that_can_not_be_made_changes_nothing(world: World, build_partition: Build) -> None:
    if not world.catalog.abilities().any_difference:
        pytest.skip("the catalog has no such commit")
    world.create_database()
    table = world.table("orders", ["day"], **{"calque.event": "7"})
    name, one = world.created(table), build_partition(table, ("1",), world.place("1"))
    world.catalog.add_partitions(name, [one])
    wider, two = widened(table, "c"), build_partition(table, ("2",), world.place("2"))
    commits = {
        "come too late": TableCommit(name, wider, [two], ["day=1"], expected_event="6"),
        "create an existing table": TableCommit(None, wider, [two]),
        "change a missing table": TableCommit(TableName(name.database, "absent"), wider, [two]),
        "drop a missing partition": TableCommit(name, wider, [two], ["day=1", "day=9"]),
    }
    outcomes = {what: outcome(partial(world.catalog.commit_table, commit)) for what, commit in commits.items()}
    assert outcomes == dict.fromkeys(commits, "Conflict")
    with pytest.raises(Refused):
        world.catalog.commit_table(TableCommit(name, wider, [two, replace(two, values=("3", "x"))], ["day=1"]))
    with pytest.raises(Refused):
        world.catalog.commit_table(TableCommit(name, replace(wider, name="other"), [two], ["day=1"]))
    assert definition(world.catalog.table(name)) == definition(table)
    assert {wanted: content(found) for wanted, found in every_partition(world, name).items()} == {"day=1": content(one)}


def test_a_renamed_table_keeps_its_partitions_and_places_also_across_databases(
    world: World, build_partition: Build
) -> None:
    world.create_database()
    other = world.create_database("archive")
    table = world.table("orders", ["day"])
    name = world.created(table)
    one = build_partition(table, ("1",), world.place("elsewhere"))
    world.catalog.add_partitions(name, [one])
    renamed = replace(table, database=other, name="old_orders")
    world.catalog.alter_table(name, renamed)
    new_name = TableName(other, "old_orders")
    assert world.catalog.table(name) is None
    assert definition(world.catalog.table(new_name)) == definition(renamed)
    found = world.catalog.partitions(new_name, world.catalog.partition_names(new_name))["day=1"]
    assert content(found) == content(replace(one, database=other, table="old_orders"))


def test_columns_reach_partitions_only_by_cascade(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    world.catalog.add_partitions(name, [build_partition(table, ("1",), world.place("1"))])
    wider = widened(table, "c")
    world.catalog.alter_table(name, wider)
    assert columns_of(world, name) == (["a", "b", "c"], ["a", "b"])
    widest = widened(wider, "d")
    world.catalog.alter_table(name, widest, cascade=True)
    assert columns_of(world, name) == (["a", "b", "c", "d"], ["a", "b", "c", "d"])


def test_given_statistics_are_kept(world: World, build_partition: Build) -> None:
    statistics = {"numFiles": "7", "totalSize": "700", "numRows": "70", "transient_lastDdlTime": "1"}
    world.create_database()
    table = world.table("orders", ["day"], **statistics)
    name = world.created(table)
    one = build_partition(table, ("1",), world.place("1"))
    world.catalog.add_partitions(name, [one])
    world.catalog.alter_partitions(name, [replace(one, parameters=statistics)])
    changed = replace(table, parameters={**(table.parameters or {}), "note": "x"})
    world.catalog.alter_table(name, changed)
    found = world.catalog.table(name)
    assert found
    assert found.parameters == changed.parameters
    assert world.catalog.partitions(name, ["day=1"])["day=1"].parameters == statistics


def test_a_renamed_partition_of_an_external_table_stays_where_it_is(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    one = build_partition(table, ("1",), world.place("1"), note="x")
    world.catalog.add_partitions(name, [one])
    renamed = build_partition(table, ("2 / 2",), world.place("not there"), note="y")
    world.catalog.rename_partition(name, ("1",), renamed)
    assert world.catalog.partition_names(name) == ("day=2 %2F 2",)
    found = world.catalog.partitions(name, ["day=2 %2F 2"])["day=2 %2F 2"]
    assert content(found) == content(replace(renamed, storage=one.storage))


def test_a_renamed_partition_has_the_counts_of_an_alteration_after_it(world: World, build_partition: Build) -> None:
    """And not always those that the rename says: its files may be counted anew."""
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    one = build_partition(table, ("1",), world.place("1"), numFiles="7", totalSize="700")
    world.catalog.add_partitions(name, [one])
    renamed = replace(one, values=("2",), parameters={**(one.parameters or {}), "numFiles": "8"})
    world.catalog.rename_partition(name, ("1",), renamed)
    found = world.catalog.partitions(name, ["day=2"])["day=2"].parameters or {}
    assert (found["numFiles"], found["totalSize"]) == ("0", "0")
    world.catalog.alter_partitions(name, [renamed])
    found = world.catalog.partitions(name, ["day=2"])["day=2"].parameters or {}
    assert (found["numFiles"], found["totalSize"]) == ("8", "700")


def test_compare_and_swap_stops_a_writer_who_comes_too_late(world: World) -> None:
    world.create_database()
    table = world.table("orders", **{"calque.event": "1"})
    name = world.created(table)
    world.catalog.alter_table(name, marked(table, "2"), expected_event="1")
    if world.catalog.abilities().compare_and_swap:
        with pytest.raises(Conflict):
            world.catalog.alter_table(name, marked(table, "3"), expected_event="1")
        assert event_of(world, name) == "2"
    else:
        world.catalog.alter_table(name, marked(table, "3"), expected_event="1")
        assert event_of(world, name) == "3"


def test_of_writers_who_compare_and_swap_each_success_counts(world: World) -> None:
    if not world.catalog.abilities().compare_and_swap:
        pytest.skip("the server has no compare-and-swap")
    world.create_database()
    table = world.table("counter", **{"calque.event": "0"})
    name = world.created(table)

    def increments(_: int) -> int:
        successes = 0
        for _ in range(8):
            seen = event_of(world, name)
            try:
                world.catalog.alter_table(name, marked(table, str(int(seen) + 1)), expected_event=seen)
            except Conflict:
                continue
            successes += 1
        return successes

    with ThreadPoolExecutor(4) as pool:
        successes = sum(pool.map(increments, range(4)))
    assert event_of(world, name) == str(successes)


def test_the_directories_of_tables_and_partitions_are_made(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    day = world.place("data", "orders", "1")
    world.catalog.add_partitions(world.created(table), [build_partition(table, ("1",), day)])
    assert {location_of(table), day} <= {*made(world)}


def test_the_directory_of_a_database_is_made_where_it_is_created_and_not_where_it_is_altered(world: World) -> None:
    name = world.create_database()
    world.catalog.alter_database(name, Database(name, "", world.place("other")))
    assert made(world) == [world.place("sales")]


def test_no_directory_is_made_of_what_is_altered(world: World, build_partition: Build) -> None:
    """What calque relies on where a target's objects lie at the source."""
    world.create_database()
    table = placed(world.table("hidden", ["day"]), world.place("empty"))
    name = world.created(table)
    world.catalog.add_partitions(name, [build_partition(table, ("1",), world.place("empty"))])
    before = made(world)
    moved = build_partition(table, ("1",), world.place("source", "orders", "1"))
    world.catalog.alter_partitions(name, [moved])
    renamed = placed(replace(table, name="orders"), world.place("source", "orders"))
    world.catalog.alter_table(name, renamed)
    name = TableName(name.database, "orders")
    elsewhere = build_partition(table, ("2",), world.place("source", "orders", "2"))
    world.catalog.rename_partition(name, ("1",), replace(elsewhere, table="orders"))
    assert made(world) == before
    assert location_of(world.catalog.table(name)) == world.place("source", "orders")
    [partition] = world.catalog.partitions(name, ["day=2"]).values()
    assert location_of(partition) == world.place("source", "orders", "1")


def test_a_rename_onto_a_name_that_is_taken_is_a_conflict(world: World) -> None:
    world.create_database()
    table = world.table("orders")
    name, other = world.created(table), world.created(world.table("others"))
    with pytest.raises(Conflict):
        world.catalog.alter_table(name, replace(table, name=other.table))


def test_no_data_are_deleted_whatever_is_dropped(world: World, build_partition: Build) -> None:
    database = world.create_database()
    table = replace(world.managed_table("orders", ["day"]), storage=world.table("orders").storage)
    if world.name == "hive-4.2.0-stock":
        table = replace(table, parameters={"EXTERNAL": "TRUE", "external.table.purge": "true"}, type="EXTERNAL_TABLE")
    name = world.created(table)
    files = [written_file(world.root / "data" / "orders" / day / "file") for day in ("1", "2")]
    days = [build_partition(table, (day,), world.place("data", "orders", day)) for day in ("1", "2")]
    world.catalog.add_partitions(name, days)
    world.catalog.drop_partitions(name, ["day=1"])
    world.catalog.drop_table(name)
    world.catalog.drop_database(database)
    assert [file.exists() for file in files] == [True, True]
    assert world.directories is None or world.directories.removed == []


def test_a_function_is_created_found_and_dropped(world: World) -> None:
    database = world.create_database()
    function = Function("rate", database, "org.example.Rate", "owner", 1, None, 1, (Resource(1, "file:/x.jar"),))
    name = TableName(database, "rate")
    world.catalog.create_function(function)
    with pytest.raises(Conflict):
        world.catalog.create_function(function)
    found = world.catalog.function(name)
    assert found
    assert replace(found, create_time=None, catalog=None) == function
    assert world.catalog.functions(database) == ("rate",)
    world.catalog.drop_function(name)
    with pytest.raises(Conflict):
        world.catalog.drop_function(name)
    assert world.catalog.functions(database) == ()


def test_what_exists_or_is_missing_is_a_conflict(world: World, build_partition: Build) -> None:
    database = world.create_database()
    table, other, absent = (world.table(name, ["day"]) for name in ("orders", "other", "absent"))
    name, missing = world.created(table), TableName(database, "absent")
    world.created(other)
    one, two = (build_partition(table, (day,), world.place(day)) for day in ("1", "2"))
    world.catalog.add_partitions(name, [one, two])
    misplaced = Function("rate", "nowhere", "org.example.Rate", "owner", 1, None, 1, ())
    catalog = world.catalog
    calls: dict[str, Callable[[], None]] = {
        "create an existing database": lambda: catalog.create_database(Database(database)),
        "alter a missing database": lambda: catalog.alter_database("nowhere", Database("nowhere")),
        "drop a missing database": lambda: catalog.drop_database("nowhere"),
        "create an existing table": lambda: catalog.create_table(table),
        "create a table in a missing database": lambda: catalog.create_table(replace(table, database="nowhere")),
        "alter a missing table": lambda: catalog.alter_table(missing, absent),
        "rename onto an existing table": lambda: catalog.alter_table(name, replace(table, name="other")),
        "rename into a missing database": lambda: catalog.alter_table(name, replace(table, database="nowhere")),
        "drop a missing table": lambda: catalog.drop_table(missing),
        "add an existing partition": lambda: catalog.add_partitions(name, [one]),
        "add to a missing table": lambda: catalog.add_partitions(missing, [replace(one, table="absent")]),
        "alter a missing partition": lambda: catalog.alter_partitions(name, [replace(one, values=("9",))]),
        "alter in a missing table": lambda: catalog.alter_partitions(missing, [replace(one, table="absent")]),
        "rename a missing partition": lambda: catalog.rename_partition(name, ("9",), replace(one, values=("8",))),
        "rename onto an existing partition": lambda: catalog.rename_partition(name, ("1",), two),
        "rename in a missing table": lambda: catalog.rename_partition(missing, ("1",), two),
        "drop a missing partition": lambda: catalog.drop_partitions(name, ["day=9"]),
        "drop in a missing table": lambda: catalog.drop_partitions(missing, ["day=1"]),
        "create a function in a missing database": lambda: catalog.create_function(misplaced),
        "drop a missing function": lambda: catalog.drop_function(missing),
    }
    assert {what: outcome(call) for what, call in calls.items()} == dict.fromkeys(calls, "Conflict")
    assert sorted(catalog.tables(database)) == ["orders", "other"]
    assert catalog.partition_names(name) == ("day=1", "day=2")


def test_a_name_that_no_metastore_takes_is_refused(world: World) -> None:
    world.create_database()
    with pytest.raises(Refused):
        world.catalog.create_table(world.table("größe"))


def test_several_threads_read_and_write_at_once(world: World) -> None:
    world.create_database()

    def create_and_read(number: int) -> Table | None:
        return world.catalog.table(world.created(world.table(f"t{number}", n=str(number))))

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(create_and_read, range(24)))
    assert [(table.parameters or {})["n"] for table in found if table] == [str(number) for number in range(24)]


def test_real_readers_travel_as_pickles(world: World) -> None:
    if not isinstance(world.catalog, HiveCatalog):
        pytest.skip("only real readers are sent to other processes")
    database = world.create_database()
    reader = pickle.loads(pickle.dumps(world.catalog))
    log = pickle.loads(pickle.dumps(world.log))
    assert reader.database(database) == world.catalog.database(database)
    assert isinstance(log, HiveLog)
    assert log.current() >= 1
    reader.client.close()
    log.client.close()


def test_the_world_says_what_a_server_can(world: World) -> None:
    if not isinstance(world.catalog, HiveCatalog):
        pytest.skip("only real servers are asked")
    world.create_database()
    client = world.catalog.client
    assert server_version(client) == ("3" if "3.1.3" in world.name else "4.2.0")
    assert listening(client).transactional
    assert not listening(client).afterwards
    assert probed(client, world.table("scratch")) == ProbeResult(world.habits.compare_and_swap, logs=True)
    assert world.catalog.tables(world.database()) == ()


def test_the_next_address_is_taken_when_one_does_not_answer(metastore_of: Callable[[str], Metastore]) -> None:
    client = Client(f"thrift://127.0.0.1:1,{metastore_of('hive-3.1.3').uri}", connect_timeout=2)
    assert "default" in HiveReader(client).databases()
    client.close()


def test_reading_goes_on_after_the_server_was_restarted(metastore_of: Callable[[str], Metastore]) -> None:
    server = metastore_of("hive-3.1.3")
    reader = HiveReader(Client(server.uri))
    assert "default" in reader.databases()
    server.restart()
    assert "default" in reader.databases()
    reader.client.close()


def test_nobody_at_the_address_is_unavailable_and_says_what_to_do() -> None:
    with pytest.raises(Unavailable, match=r"No metastore answers at thrift://127\.0\.0\.1:1\..*Check the address"):
        HiveReader(Client("thrift://127.0.0.1:1", connect_timeout=2)).databases()


def test_a_rename_that_is_not_answered_is_given_up_before_other_calls() -> None:
    table = Table("b", "shop", parameters={})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"thrift://127.0.0.1:{silent.getsockname()[1]}", call_timeout=1.0)
        catalog = HiveCatalog(client, TargetCapabilities(), rename_seconds=0.05)
        begin = time.monotonic()
        with pytest.raises(Unavailable, match="whether it changed anything is unknown"):
            catalog.alter_table(TableName("shop", "a"), table)
        renamed = time.monotonic() - begin
        with pytest.raises(Unavailable):
            catalog.alter_table(TableName("shop", "b"), table)
        assert renamed < 1.0 <= time.monotonic() - begin - renamed


def test_who_is_silent_is_asked_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"thrift://127.0.0.1:{silent.getsockname()[1]}", call_timeout=1.0)
        with pytest.raises(Unavailable, match="read timeout"):
            HiveReader(client).databases()
        silent.accept()[0].close()
        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize("uris", ["", "127.0.0.1:9083", "ftp://127.0.0.1", "thrift://", "http://"])
def test_an_address_that_is_none_is_refused(uris: str) -> None:
    with pytest.raises(Refused):
        Client(uris)


Build = Callable[..., Partition]


def definition(table: Table | None) -> Table | None:
    """What a client says of a table: without what servers fill in."""
    if table is None:
        return None
    return replace(
        table,
        create_time=None,
        last_access_time=None,
        retention=None,
        storage=plain_storage(table.storage),
        partition_keys=table.partition_keys or None,
        parameters=without_facets(table.parameters),
        temporary=None,
        rewrite_enabled=None,
        catalog=None,
        owner_type=None,
        id=None,
    )


def content(partition: Partition) -> Partition:
    """What a client says of a partition."""
    return replace(
        partition,
        create_time=None,
        last_access_time=None,
        storage=plain_storage(partition.storage),
        parameters=without_facets(partition.parameters),
        catalog=None,
    )


def every_partition(world: World, name: TableName) -> Mapping[str, Partition]:
    return world.catalog.partitions(name, sorted(world.catalog.partition_names(name)))


def cut(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def plain_storage(storage: Storage | None) -> Storage:
    storage = storage or Storage()
    skew = storage.skew if storage.skew and storage.skew.columns else None
    return replace(
        storage,
        compressed=storage.compressed or None,
        bucket_columns=storage.bucket_columns or None,
        sort_columns=storage.sort_columns or None,
        parameters=storage.parameters or None,
        skew=skew,
        sub_directories=storage.sub_directories or None,
    )


def without_facets(parameters: object) -> dict[str, str]:
    assert isinstance(parameters, dict)
    return {key: value for key, value in parameters.items() if key not in FACETS}


def widened(table: Table, column: str) -> Table:
    storage = table.storage or Storage()
    return replace(table, storage=replace(storage, columns=(*(storage.columns or ()), Column(column, "int"))))


def columns_of(world: World, name: TableName) -> tuple[list[str], list[str]]:
    table = world.catalog.table(name)
    assert table
    (partition,) = world.catalog.partitions(name, world.catalog.partition_names(name)).values()
    return column_names(table.storage), column_names(partition.storage)


def column_names(storage: Storage | None) -> list[str]:
    columns: Sequence[Column] = (storage.columns if storage else None) or ()
    return [column.name for column in columns]


def marked(table: Table, event: str) -> Table:
    return replace(table, parameters={**(table.parameters or {}), "calque.event": event})


def event_of(world: World, name: TableName) -> str:
    table = world.catalog.table(name)
    assert table
    return (table.parameters or {})["calque.event"]


def made(world: World) -> list[str]:
    """The directories that the metastore has made."""
    if world.directories is not None:
        return sorted({*world.directories.made})
    return sorted(world.place(str(path.relative_to(world.root))) for path in world.root.rglob("*") if path.is_dir())


def placed(table: Table, location: str) -> Table:
    return replace(table, storage=replace(table.storage or Storage(), location=location))


def written_file(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("x")
    return path


def outcome(call: Callable[[], None]) -> str:
    try:
        call()
    except (Conflict, CalqueError) as error:
        return type(error).__name__ if isinstance(error, Conflict) else f"{type(error).__name__}: {error}"
    return "nothing was raised"


def test_a_metastore_has_one_id_for_all_who_ask(world: World) -> None:
    identity = world.catalog.identity()
    assert identity
    assert world.catalog.identity() == identity
    if isinstance(world.catalog, HiveCatalog):
        other = Client(world.catalog.client.uris.replace("127.0.0.1", "localhost"))
        assert HiveReader(other).identity() == identity
        other.close()


def test_a_change_of_column_types_that_servers_refuse_by_default_is_made(world: World) -> None:
    world.create_database()
    name = world.created(world.table("narrowed"))
    table = world.catalog.table(name)
    assert table
    assert table.storage
    narrowed = replace(table, storage=replace(table.storage, columns=(Column("b", "array<string>"),)))
    if isinstance(world.writer, HiveClient):
        with pytest.raises(Fault, match="types incompatible with the existing columns"):
            world.writer.alter_table(name, narrowed)
    world.catalog.alter_table(name, narrowed)
    altered = world.catalog.table(name)
    assert altered
    assert altered.storage
    assert [column.name for column in altered.storage.columns or ()] == ["b"]
