"""`ports.EventLog`: what is read from every metastore's log, in memory and real, after the same writer was at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from calque.model.hive import Database, Function, Partition, Resource
from calque.model.journal import Event
from calque.model.names import TableName
from calque.ports import Conflict
from calque.sandbox.writer import HiveClient
from support.memory.metastore import HIVE_3, HIVE_4, MemoryLog, MemoryMetastore

if TYPE_CHECKING:
    from calque.sandbox import Metastore
    from support.worlds.metastore_worlds import World

STATISTICS = ("transient_lastDdlTime", "numFiles", "totalSize", "numFilesErasureCoded", "COLUMN_STATS_ACCURATE")
TABLE_TIMES, TABLE_WRITE_ID, TABLE_ID = ("4", "5"), "19", "25"
PARTITION_WRITE_ID = "10"
DATABASE_OWNER_TYPE, DATABASE_CATALOG, DATABASE_TIME, DATABASE_KIND = "7", "8", "9", "11"


def test_every_event_follows_the_one_before(world: World) -> None:
    before = world.log.current()
    make_three(world)
    events = world.logged(before)
    assert [event.event_id for event in events] == [before + 1, before + 2, before + 3]
    assert world.log.current() == before + 3


def test_a_limit_takes_the_oldest(world: World) -> None:
    before = world.log.current()
    make_three(world)
    assert [event.event_id for event in world.log.read(before, 2)] == [before + 1, before + 2]
    assert [event.event_id for event in world.log.read(before + 2, 2)] == [before + 3]
    assert list(world.log.read(before, 0)) == []


def test_only_an_empty_answer_is_the_end(world: World) -> None:
    before = world.log.current()
    make_three(world)
    world.created(world.table("c", note="x" * 100_000))
    found = list[int]()
    while more := world.log.read(found[-1] if found else before, 100_000):
        found += [event.event_id for event in more]
    assert found == [before + 1, before + 2, before + 3, before + 4]


def test_nothing_is_behind_the_end(world: World) -> None:
    end = world.log.current()
    assert list(world.log.read(end, 10)) == []
    assert list(world.log.read(end + 100, 10)) == []


def test_a_row_has_its_columns_and_absent_names_are_empty(world: World) -> None:
    before = world.log.current()
    started = int(time.time())
    database = world.create_database()
    world.created(world.table("orders"))
    of_database, of_table = world.logged(before)
    assert (of_database.event_type, of_database.database, of_database.table) == ("CREATE_DATABASE", database, "")
    assert (of_table.event_type, of_table.database, of_table.table) == ("CREATE_TABLE", database, "orders")
    assert {event.catalog for event in (of_database, of_table)} == {"hive"}
    assert {event.message_format for event in (of_database, of_table)} == {"json-0.2"}
    assert started - 2 <= of_table.event_time <= int(time.time()) + 2
    assert "Größe ☃" in of_table.message


def test_writers_at_once_leave_no_hole_and_no_double(world: World) -> None:
    world.create_database()
    before = world.log.current()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: world.created(world.table(f"t{number}")), range(40)))
    ids = [event.event_id for event in world.logged(before)]
    assert ids == list(range(before + 1, before + 41))


def test_memory_and_servers_log_the_same_for_the_same_calls(world: World, build_partition: Build) -> None:
    """The whole of the messages, but for times, statistics, ids and what is empty."""
    if not world.real or world.name == "hive-4.2.0-stock":
        pytest.skip("memory is what is compared with; the stock transformer makes other tables of managed ones")
    before = world.log.current()
    work(world, build_partition)
    store = MemoryMetastore(world.habits, "file:/warehouse")
    twin = replace(world, writer=store, log=MemoryLog(store))
    work(twin, build_partition)
    logged = [comparable(world, event) for event in world.logged(before)]
    expected_log = [comparable(twin, event) for event in twin.logged(0)]
    assert with_cascades_sorted(logged) == with_cascades_sorted(expected_log)


def test_a_call_for_many_partitions_is_one_event_in_4_and_one_for_each_in_3(
    world: World, build_partition: Build
) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    days = [build_partition(table, (str(day),), world.place(str(day))) for day in range(3)]
    world.catalog.add_partitions(name, days)
    before = world.log.current()
    world.catalog.alter_partitions(name, days)
    world.catalog.drop_partitions(name, ["day=0", "day=1", "day=2"])
    types = [event.event_type for event in world.logged(before)]
    in_3 = ["ALTER_PARTITION"] * 3 + ["DROP_PARTITION"] * 3
    assert types == (["ALTER_PARTITIONS", "DROP_PARTITION"] if world.habits.bulk_events else in_3)


def test_a_call_that_fails_logs_nothing(world: World, build_partition: Build) -> None:
    world.create_database()
    table = world.table("orders", ["day"])
    name = world.created(table)
    before = world.log.current()
    for call in (
        lambda: world.catalog.create_table(table),
        lambda: world.catalog.drop_partitions(name, ["day=1"]),
        lambda: world.catalog.alter_partitions(name, [build_partition(table, ("1",), world.place("1"))]),
    ):
        with pytest.raises(Conflict):
            call()
    assert world.log.current() == before


@pytest.mark.parametrize("server", ["hive-3.1.3", "hive-4.2.0"])
def test_ten_thousand_events_arrive_whole(metastore_of: Callable[[str], Metastore], server: str) -> None:
    metastore = metastore_of(server)
    client = HiveClient(metastore.uri)
    after = client.current()
    message = json.dumps({"text": "ü" * 2500})
    metastore.sql(
        """INSERT INTO "NOTIFICATION_LOG"
             ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "MESSAGE", "MESSAGE_FORMAT", "CAT_NAME")
           SELECT n + 1000000000, n, extract(epoch FROM now())::int, 'OPEN_TXN', %s, 'json-0.2', 'hive'
           FROM generate_series(%s::int, %s::int) AS n""",
        (message, after + 1, after + 10_000),
    )
    metastore.sql('UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = %s', (after + 10_001,))
    events = client.events(after)
    assert [event.event_id for event in events] == list(range(after + 1, after + 10_001))
    assert {(event.message, event.database, event.table) for event in events} == {(message, "", "")}
    client.close()


@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4], ids=["3", "4"])
def test_memory_forgets_what_is_purged_and_keeps_counting(habits: Any) -> None:
    store = MemoryMetastore(habits)
    for name in ("one", "two", "three"):
        store.create_database(Database(name))
    store.purge(2)
    log = MemoryLog(store)
    assert (log.current(), [event.event_id for event in log.read(0, 10)]) == (3, [3])


def test_watches_run_between_the_calls_of_a_memory_log() -> None:
    store = MemoryMetastore()
    calls: list[str] = []

    def before(method: str) -> None:
        calls.append(method)
        store.create_database(Database(f"database_{len(calls)}"))

    log = MemoryLog(store, before)
    assert (log.current(), log.current(), len(log.read(0, 10))) == (1, 2, 3)
    assert calls == ["current", "current", "read"]


Build = Callable[..., Partition]


def make_three(world: World) -> None:
    world.create_database()
    for name in ("a", "b"):
        world.created(world.table(name))


def work(world: World, build_partition: Build) -> None:
    """Everything that a writer can do, in the same order everywhere."""
    writer = world.writer
    sales, archive = world.database(), world.database("archive")
    writer.create_database(Database(sales, "Käufe", None, {"a": "b"}, "owner", 1))
    writer.create_database(Database(archive, None, None, {}, "owner", 1))
    for description in ("neu", "neuer"):
        writer.alter_database(sales, Database(sales, description, place_of(writer, sales), {"a": "c"}, "other", 3))
    plain, external = TableName(sales, "plain"), TableName(sales, "orders")
    orders = world.table("orders", ["day", "region"])
    writer.create_table(world.managed_table("plain"))
    writer.create_table(orders)
    writer.create_table(replace(world.table("unmarked"), parameters={}))
    writer.create_table(replace(world.table("marked"), type="MANAGED_TABLE"))
    writer.create_table(world.view("orders_view", "SELECT 'ä'"))
    writer.create_table(replace(world.table("Spelled", ["Day"]), database=sales.upper()))
    days = [build_partition(orders, (day, "ü / x"), world.place(day), n=day) for day in ("1", "2", "3")]
    writer.add_partitions(external, days)
    writer.append_partition(external, ("4", "y"))
    writer.alter_partition(external, replace(days[0], parameters={"n": "x"}))
    writer.alter_partitions(external, [replace(day, parameters={"n": "y"}) for day in days])
    writer.rename_partition(external, ("1", "ü / x"), replace(days[0], values=("11", "z")))
    writer.insert(plain, [])
    writer.insert(external, [], values=("2", "ü / x"), replace=True)
    writer.alter_table(plain, replace(stored(world, plain), parameters={"note": "ü"}))
    writer.alter_table(external, replace(orders, parameters={"EXTERNAL": "TRUE", "note": "x"}), cascade=True)
    writer.alter_table(plain, replace(stored(world, plain), name="moved"))
    writer.alter_table(TableName(sales, "moved"), replace(stored(world, TableName(sales, "moved")), database=archive))
    writer.create_table(world.managed_table("parted", ["p", "q"]))
    parted = TableName(sales, "parted")
    for values in (("a", "1"), ("b", "1"), ("b", "2")):
        writer.append_partition(parted, values)
    writer.rename_partition(parted, ("a", "1"), replace(days[0], values=("c", "1"), table="parted"))
    writer.create_table(world.managed_table("other", ["p", "q"]))
    writer.exchange_partitions({"p": "b", "q": "2"}, parted, TableName(sales, "other"))
    writer.alter_table(parted, replace(stored(world, parted), name="renamed"))
    parted = TableName(sales, "renamed")
    writer.truncate_table(parted, ["p=b/q=1"])
    writer.truncate_table(parted, [])
    writer.truncate_table(parted)
    writer.create_table(world.managed_table("emptied"))
    writer.truncate_table(TableName(sales, "emptied"))
    writer.truncate_table(TableName(sales, "emptied"), [])
    writer.drop_partitions(parted, ["p=b/q=1", "p=c/q=1"])
    function = Function("rate", sales, "org.example.Rate", "owner", 1, None, 1, (Resource(1, "file:/x.jar"),))
    writer.create_function(function)
    writer.drop_function(TableName(sales, "rate"))
    writer.create_function(function)
    writer.drop_table(external)
    writer.drop_database(archive, cascade=True)
    writer.drop_database(sales, cascade=True)


def place_of(writer: HiveClient | MemoryMetastore, database: str) -> str | None:
    found = writer.catalog.database(database) if isinstance(writer, HiveClient) else writer.the_database(database)
    return found.location if found else None


def stored(world: World, name: TableName) -> Any:
    writer = world.writer
    return writer.catalog.table(name) if isinstance(writer, HiveClient) else writer.the_table(name).table


def with_cascades_sorted(events: Sequence[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """3.1 drops the tables of a cascade in whatever order its database gives them."""
    sorted_events: list[tuple[str, str, str, Any]] = []
    for event_type, run in groupby(events, key=itemgetter(0)):
        in_order = list(run)
        sorted_events.extend(sorted(in_order, key=itemgetter(2)) if event_type == "DROP_TABLE" else in_order)
    return sorted_events


def comparable(world: World, event: Event) -> tuple[str, str, str, Any]:
    message = json.loads(event.message)
    del message["timestamp"]
    message = {key: comparable_part(key, value) for key, value in message.items()}
    return event.event_type, event.database, event.table, without_places(world, message)


def comparable_part(key: str, value: Any) -> Any:
    if not key.endswith("Json") or value is None:
        return value
    if isinstance(value, list):
        return [comparable_part(key, item) for item in value]
    structure = json.loads(value)
    if key.startswith("db"):
        forget(structure, DATABASE_OWNER_TYPE, DATABASE_CATALOG, DATABASE_TIME, DATABASE_KIND)
    elif key.startswith("table"):
        forget(structure, *TABLE_TIMES, TABLE_WRITE_ID, TABLE_ID)
    elif key.startswith(("part", "ptn")):
        forget(structure, *TABLE_TIMES, PARTITION_WRITE_ID)
    else:
        forget(structure, "6", "9")
    return without_nothing(structure)


def forget(structure: dict[str, Any], *fields: str) -> None:
    for number in fields:
        structure.pop(number, None)


def without_nothing(value: Any) -> Any:
    """Without fields that say nothing: empty lists and maps, zero, false; and without statistics."""
    if isinstance(value, Mapping):
        parts = {key: without_nothing(part) for key, part in value.items() if key not in STATISTICS}
        return {key: part for key, part in parts.items() if part not in ({}, [], 0, None)}
    if isinstance(value, list) and value and value[0] in ("str", "rec", "lst") and isinstance(value[-1], Mapping):
        items = [without_nothing(item) for item in value if not isinstance(item, int)]
        return items if any(items[2:]) or (len(items) > 1 and isinstance(items[-1], Mapping) and items[-1]) else []
    if isinstance(value, list) and value[1:2] == [0]:
        return []
    return value


def without_places(world: World, message: Any) -> Any:
    """With the same names for the directories that differ."""
    text = json.dumps(message, ensure_ascii=False, sort_keys=True)
    for place, name in places(world):
        text = text.replace(place, name)
    return json.loads(text)


def places(world: World) -> Sequence[tuple[str, str]]:
    if isinstance(world.writer, MemoryMetastore):
        return (("file:/warehouse", "WAREHOUSE"),)
    base = Path(world.root).parent
    return tuple(
        (f"file:{folder}", "WAREHOUSE")
        for server in base.glob("target-*")
        for folder in (server / "warehouse", server / "external")
    )
