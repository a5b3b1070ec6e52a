"""`core.events.keys` and `core.states.fold` together: what every kind of event does to a chain of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from calque.core.events.kinds import obstacle
from calque.core.states.fold import Step, Unfoldable, defining, fold, groups, same_run
from calque.model.hive import Database, Function, SerDe, Storage, Table
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.model.plan import BASE, BASE_DATA, Data, Head, Part, Version
from support.sources.logs import WITHOUT_EFFECT, Log, name, part, partitioned, plain, told, view, widened
from support.sources.tjson import tjson

T, P, V = plain(), partitioned(), view()
ONE, TWO = part(P, "1"), part(P, "2")
COUNTED = {"numRows": "5"}
DATABASE, FUNCTION = Database("d1"), Function("f", "d1", "a.B")
NOTHING: list[list[str]] = []


@dataclass(frozen=True)
class Case:
    """What `log` does to the tables it is about: the changes of each step."""

    event_type: str
    what: str
    log: Callable[[], Log]
    steps: list[list[str]]


def external(table: Table) -> Table:
    return replace(table, type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})


def hudi(**changes: Any) -> Table:
    return replace(T, storage=replace(T.storage or Storage(), **changes))


def objects(event_type: str, message: Mapping[str, object], table: str = "") -> Callable[[], Log]:
    return lambda: Log().write(event_type, message, "d1", table)


CASES = (
    # Databases and functions are replicated beside the groups of tables.
    Case("CREATE_DATABASE", "is no state of a table", objects("CREATE_DATABASE", {"dbJson": tjson(DATABASE)}), NOTHING),
    Case(
        "ALTER_DATABASE",
        "is no state of a table",
        objects("ALTER_DATABASE", {"dbObjAfterJson": tjson(DATABASE)}),
        NOTHING,
    ),
    Case("DROP_DATABASE", "is no state of a table", objects("DROP_DATABASE", {"db": "d1"}), NOTHING),
    Case(
        "CREATE_FUNCTION",
        "is no state of a table",
        objects("CREATE_FUNCTION", {"functionObjJson": tjson(FUNCTION)}),
        NOTHING,
    ),
    Case(
        "DROP_FUNCTION",
        "is no state of a table",
        objects("DROP_FUNCTION", {"db": "d1", "functionName": "f"}),
        NOTHING,
    ),
    # Tables
    Case(
        "CREATE_TABLE",
        "gives a name its first definition",
        lambda: Log().create(T),
        [["d1.t is 1", "1: of 1, files of 1"]],
    ),
    Case(
        "CREATE_TABLE",
        "of a partitioned table has no files",
        lambda: Log().create(P),
        [["d1.t is 1", "1: of 1, no files"]],
    ),
    Case("CREATE_TABLE", "of a view has no files", lambda: Log().create(V), [["d1.v is 1", "1: of 1, no files"]]),
    Case("DROP_TABLE", "ends what was there", lambda: Log().drop(T), [["d1.t is gone"]]),
    Case(
        "DROP_TABLE",
        "and another one of the same name with partitions is another lineage",
        lambda: Log().drop(T).create(P).add(P, ONE),
        [["d1.t is gone"], ["d1.t is 2", "2: of 2, no files"], ["2 p=1: of 3, files of 3"]],
    ),
    Case(
        "ALTER_TABLE",
        "replaces the definition and may have changed the files",
        lambda: Log().alter(T, replace(T, owner="me")),
        [["1: of 1, files of 1"]],
    ),
    Case(
        "ALTER_TABLE",
        "of a partitioned table leaves files alone",
        lambda: Log().alter(P, replace(P, owner="me")),
        [["1: of 1, files as they were"]],
    ),
    Case(
        "ALTER_TABLE",
        "of basic statistics may be a new file",
        lambda: Log().alter(T, replace(T, parameters=COUNTED)),
        [["1: as it was, files of 1"]],
    ),
    Case(
        "ALTER_TABLE",
        "of a partitioned table's basic statistics is no state",
        lambda: Log().alter(P, replace(P, parameters=COUNTED)),
        NOTHING,
    ),
    Case(
        "ALTER_TABLE",
        "that truncates changes the files and no definition",
        lambda: Log().alter(T, replace(T, parameters=COUNTED), truncate=True),
        [["1: as it was, files of 1"]],
    ),
    Case(
        "ALTER_TABLE",
        "from managed to external and back is a definition",
        lambda: Log().alter(T, external(T)).alter(external(T), T),
        [["1: of 1, files of 1"], ["1: of 2, files of 2"]],
    ),
    Case(
        "ALTER_TABLE",
        "with another name moves the lineage",
        lambda: Log().rename(P, "u"),
        [["d1.t is gone", "d1.u is 1", "1: of 1, files as they were"]],
    ),
    Case(
        "ALTER_TABLE",
        "with another database moves the lineage",
        lambda: Log().rename(T, "t", "d2"),
        [["d1.t is gone", "d2.t is 1", "1: of 1, files of 1"]],
    ),
    Case(
        "ALTER_TABLE",
        "to the same name in other case is a definition and never a drop",
        lambda: Log().rename(T, "T", "D1"),
        [["1: of 1, files of 1"]],
    ),
    Case(
        "ALTER_TABLE",
        "of a view is a definition",
        lambda: Log().alter(V, replace(V, view_expanded_text="SELECT 2")),
        [["1: of 1, files as they were"]],
    ),
    Case(
        "ALTER_TABLE",
        "of columns is a definition",
        lambda: Log().alter(P, widened(P, "b")),
        [["1: of 1, files as they were", "1 has other columns"]],
    ),
    # Partitions
    Case(
        "ADD_PARTITION",
        "adds all it lists at once",
        lambda: Log().add(P, ONE, TWO),
        [["1 p=1: of 1, files of 1", "1 p=2: of 1 number 1, files of 1"]],
    ),
    Case(
        "ADD_PARTITION",
        "to a view adds partitions without files",
        lambda: Log().create(replace(P, type="VIRTUAL_VIEW")).add(replace(P, type="VIRTUAL_VIEW"), ONE),
        [["d1.t is 1", "1: of 1, no files"], ["1 p=1: of 2, no files"]],
    ),
    Case(
        "ALTER_PARTITION",
        "replaces the definition and may have changed the files",
        lambda: Log().alter_partition(P, ONE, replace(ONE, parameters={"k": "v"})),
        [["1 p=1: of 1, files of 1"]],
    ),
    Case(
        "ALTER_PARTITION",
        "of basic statistics may be a new file",
        lambda: Log().alter_partition(P, ONE, replace(ONE, parameters=COUNTED)),
        [["1 p=1: as it was, files of 1"]],
    ),
    Case(
        "ALTER_PARTITION",
        "that truncates changes the files and no definition",
        lambda: Log().alter_partition(P, ONE, replace(ONE, parameters=COUNTED), truncate=True),
        [["1 p=1: as it was, files of 1"]],
    ),
    Case(
        "ALTER_PARTITION",
        "with other values renames",
        lambda: Log().alter_partition(P, ONE, TWO),
        [["1 p=1 is gone", "1 p=2: of 1, files of 1"]],
    ),
    Case(
        "ALTER_PARTITIONS",
        "changes all it lists at once",
        lambda: Log().alter_partitions(P, ONE, TWO),
        [["1 p=1: of 1, files of 1", "1 p=2: of 1 number 1, files of 1"]],
    ),
    Case(
        "DROP_PARTITION",
        "removes all it lists at once",
        lambda: Log().drop_partitions(P, ONE, TWO),
        [["1 p=1 is gone", "1 p=2 is gone"]],
    ),
    # Inserts
    Case("INSERT", "changes files alone", lambda: Log().insert(T), [["1: as it was, files of 1"]]),
    Case(
        "INSERT",
        "that replaces changes files alone",
        lambda: Log().insert(T, overwrite=True),
        [["1: as it was, files of 1"]],
    ),
    Case(
        "INSERT",
        "into a partition changes its files alone",
        lambda: Log().insert(P, ONE).insert(P, ONE, overwrite=True),
        [["1 p=1: as it was, files of 1"], ["1 p=1: as it was, files of 2"]],
    ),
    # Facets are compared at epochs.
    *(
        Case(event_type, "is a facet, no state", objects(event_type, {}, table="t"), NOTHING)
        for event_type in (
            "ADD_PRIMARYKEY",
            "ADD_UNIQUECONSTRAINT",
            "ADD_NOTNULLCONSTRAINT",
            "ADD_DEFAULTCONSTRAINT",
            "ADD_CHECKCONSTRAINT",
            "DROP_CONSTRAINT",
            "UPDATE_TBL_COL_STAT_EVENT",
            "DELETE_TBL_COL_STAT_EVENT",
            "UPDATE_PART_COL_STAT_EVENT",
            "DELETE_PART_COL_STAT_EVENT",
            "UPDATE_PART_COL_STAT_EVENT_BATCH",
        )
    ),
    Case(
        "ADD_FOREIGNKEY",
        "is a facet, no state",
        objects("ADD_FOREIGNKEY", {"foreignKeyListJson": ['{"4":{"str":"d1"},"5":{"str":"t"}}']}, table="parent"),
        NOTHING,
    ),
    # Known, and about nothing that calque replicates
    *(Case(event_type, "has no effect", objects(event_type, {}, table="t"), NOTHING) for event_type in WITHOUT_EFFECT),
    Case("RELOAD", "has no effect", objects("RELOAD", {}, table="t"), NOTHING),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.event_type} {case.what}")
def test_every_type_of_event_has_a_stated_effect(case: Case) -> None:
    assert [told for group in groups(case.log().entries()) for told in told_group(group)] == case.steps


def told_group(group: list[Entry]) -> list[list[str]]:
    return told(fold(group))


def test_no_type_of_event_is_left_out() -> None:
    """The event types that Hive has."""
    types = """
        CREATE_DATABASE DROP_DATABASE ALTER_DATABASE CREATE_TABLE DROP_TABLE ALTER_TABLE ADD_PARTITION DROP_PARTITION
        ALTER_PARTITION ALTER_PARTITIONS INSERT CREATE_FUNCTION DROP_FUNCTION ADD_PRIMARYKEY ADD_FOREIGNKEY
        ADD_UNIQUECONSTRAINT ADD_NOTNULLCONSTRAINT ADD_DEFAULTCONSTRAINT ADD_CHECKCONSTRAINT DROP_CONSTRAINT OPEN_TXN
        COMMIT_TXN ABORT_TXN ALLOC_WRITE_ID_EVENT ACID_WRITE_EVENT BATCH_ACID_WRITE_EVENT UPDATE_TBL_COL_STAT_EVENT
        DELETE_TBL_COL_STAT_EVENT UPDATE_PART_COL_STAT_EVENT DELETE_PART_COL_STAT_EVENT UPDATE_PART_COL_STAT_EVENT_BATCH
        CREATE_ISCHEMA ALTER_ISCHEMA DROP_ISCHEMA ADD_SCHEMA_VERSION ALTER_SCHEMA_VERSION DROP_SCHEMA_VERSION
        CREATE_CATALOG ALTER_CATALOG DROP_CATALOG CREATE_DATACONNECTOR ALTER_DATACONNECTOR DROP_DATACONNECTOR RELOAD
        COMMIT_COMPACTION_EVENT CONFIG_CHANGE_EVENT CREATE_INDEX DROP_INDEX ALTER_INDEX
    """
    assert {case.event_type for case in CASES} == set(types.split())


# The cells of a chain


def test_what_stood_before_is_base_and_what_is_created_is_whole() -> None:
    chain = Log().alter_partition(P, ONE, replace(ONE, parameters={"k": "v"})).chain()
    assert chain.names == {name("d1.t"): 1}
    assert chain.heads == {1: Head(1, BASE, data=BASE_DATA)}
    assert chain.parts == {(1, "p=1"): Part("p=1", BASE, BASE_DATA)}
    assert not chain.complete
    created = Log().create(P).add(P, ONE).chain()
    assert (created.names, created.heads, created.parts) == ({name("d1.t"): None}, {}, {(1, "p=1"): None})
    assert created.complete == {1}
    assert created.shapes == {1: TableShape.PARTITIONED}


def test_a_step_has_whole_cells() -> None:
    chain = Log().create(T).insert(T).alter(T, replace(T, owner="me")).chain()
    files = [Data(event_id, "file:/w/d1/t") for event_id in (1, 2, 3)]
    assert chain.steps == [
        Step((1,), {name("d1.t"): 1}, {1: Head(1, Version(1), "1", files[0], 1)}),
        Step((2,), {}, {1: Head(1, Version(1), "1", files[1], 2)}),
        Step((3,), {}, {1: Head(1, Version(3), "1", files[2], 3)}),
    ]


def test_a_partition_keeps_its_incarnation_through_changes_and_renames() -> None:
    more, moved = replace(ONE, parameters={"k": "v"}), replace(TWO, storage=ONE.storage)
    chain = Log().add(P, ONE).alter_partition(P, ONE, more).insert(P, more).alter_partition(P, more, moved).chain()
    at = "file:/w/d1/t/p=1"
    assert [list(step.parts.values()) for step in chain.steps] == [
        [Part("p=1@1", Version(1), Data(1, at), "1", 1)],
        [Part("p=1@1", Version(2), Data(2, at), "1", 2)],
        [Part("p=1@1", Version(2), Data(3, at), "1", 3)],
        [None, Part("p=1@1", Version(4), Data(4, at), "1", 4)],
    ]


def test_a_partition_that_was_dropped_and_added_is_another_incarnation() -> None:
    chain = Log().add(P, ONE).drop_partitions(P, ONE).add(P, ONE).chain()
    assert told(chain) == [["1 p=1: of 1, files of 1"], ["1 p=1 is gone"], ["1 p=1: of 3, files of 3"]]
    first, _, last = (step.parts[1, "p=1"] for step in chain.steps)
    assert first is not None
    assert last is not None
    assert (first.lineage, last.lineage) == ("p=1@1", "p=1@3")


def test_an_exchange_is_half_a_step_on_each_table() -> None:
    into = partitioned("u")
    log = Log().add(into, part(into, "1")).drop_partitions(P, ONE)
    assert [told_group(group) for group in groups(log.entries())] == [
        [["1 p=1: of 1, files of 1"]],
        [["1 p=1 is gone"]],
    ]


def test_statistics_are_facets_of_their_newest_event_until_a_definition_replaces_them() -> None:
    log = Log().alter(T, replace(T, parameters=COUNTED)).alter(T, replace(T, parameters={"numRows": "6"}))
    log.alter_partition(P, ONE, replace(ONE, parameters=COUNTED))
    assert log.chain().facets == {(1, ""): Version(2), (1, "p=1"): Version(3)}
    more = replace(ONE, parameters={"k": "v"})
    assert log.alter(T, replace(T, owner="me")).alter_partition(P, ONE, more).chain().facets == {}


def test_where_contents_are_the_sources_own_only_definitions_and_facets_are_told() -> None:
    more = {"numRows": "6"}
    log = Log().add(P, ONE).insert(P, ONE).alter_partition(P, ONE, replace(ONE, parameters=COUNTED))
    chain = fold(defining(log.alter_partition(P, ONE, replace(ONE, parameters=more)).insert(T).entries()))
    assert told(chain) == [["1 p=1: of 1, files of 1"]]
    assert chain.facets == {(1, "p=1"): Version(4)}
    assert [entry.event_id for entry in defining(Log().insert(T).insert(T).entries())] == [2]


def test_statistics_of_a_partition_end_with_it() -> None:
    assert Log().alter_partition(P, ONE, replace(ONE, parameters=COUNTED)).drop_partitions(P, ONE).chain().facets == {}


def test_events_that_change_nothing_are_counted_and_name_their_table() -> None:
    chain = Log().on(T, "UPDATE_TBL_COL_STAT_EVENT", {}).on(T, "DROP_CONSTRAINT", {}).chain()
    assert (chain.tables, chain.events, chain.steps) == ((name("d1.t"),), 2, [])


def test_files_that_a_scan_found_are_a_state_of_their_own() -> None:
    inserts = Log().insert(T).insert(T).entries()
    scanned = replace(inserts[1], event_type="SCAN", keys=replace(inserts[1].keys, kind=EventKind.SCAN))
    assert told(fold([inserts[0], scanned])) == [["1: as it was, files of 1"], ["1: as it was, files of 2"]]


# What can't be folded is never guessed


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (Log().create(T).create(T), "d1.t at event 2: it was created while it existed"),
        (Log().drop(T).insert(T), "d1.t at event 2: it was changed while it did not exist"),
        (Log().drop(T).drop(T), "d1.t at event 2: it was changed while it did not exist"),
        (Log().create(plain("u")).rename(T, "u"), "d1.u at event 2: a table was renamed onto it while it existed"),
        (Log().add(P, ONE).add(P, TWO, ONE), "d1.t at event 2: partition p=1 was added while it existed"),
        (Log().insert(P, ONE).add(P, ONE), "d1.t at event 2: partition p=1 was added while it existed"),
        (Log().create(P).insert(P, ONE), "d1.t at event 2: partition p=1 was changed while it did not exist"),
        (
            Log().drop_partitions(P, ONE).drop_partitions(P, ONE),
            "d1.t at event 2: partition p=1 was changed while it did not exist",
        ),
        (
            Log().add(P, TWO).alter_partition(P, ONE, TWO),
            "d1.t at event 2: partition p=1 was renamed onto p=2 while that existed",
        ),
        (Log().alter(P, P).alter(P, T), "d1.t at event 2: it changed from partitioned to plain"),
        (Log().on(T, "A_NEW_TYPE", {}), "d1.t at event 1: A_NEW_TYPE does not say what it did"),
        (
            Log().write("ALTER_TABLE", {}, "d1", "t"),
            "d1.t at event 1: the message has no tableObjBeforeJson",
        ),
    ],
)
def test_an_event_that_contradicts_the_log_or_does_not_say_makes_the_table_unknown(log: Log, reason: str) -> None:
    with pytest.raises(Unfoldable) as caught:
        log.chain()
    assert str(caught.value) == reason


# Other catalogs, kinds that are set aside, 2.3


def test_events_of_other_catalogs_belong_to_no_group() -> None:
    log = Log().create(T).insert(T)
    log.events = [replace(one, catalog="spark") for one in log.events]
    assert groups(log.entries()) == []


def test_a_conversion_to_acid_is_marked_on_its_event() -> None:
    acid = replace(T, parameters={"transactional": "true"})
    before, at, after = Log().insert(T).alter(T, acid).insert(acid).entries()
    assert [entry.keys.transactional for entry in (before, at, after)] == [False, True, True]
    assert "ACID" in obstacle(acid)


@pytest.mark.parametrize(
    ("table", "shape"),
    [
        (replace(V, type="MATERIALIZED_VIEW"), TableShape.VIEW),
        (
            replace(T, parameters={"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}),
            TableShape.PLAIN,
        ),
        (replace(T, type="INDEX_TABLE"), TableShape.PLAIN),
        (hudi(input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat"), TableShape.PLAIN),
        (hudi(input_format="org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"), TableShape.PLAIN),
        (hudi(input_format="com.uber.hoodie.hadoop.HoodieInputFormat"), TableShape.PLAIN),
        (replace(T, parameters={"spark.sql.sources.provider": "hudi"}), TableShape.PLAIN),
        (
            replace(T, parameters={"Spark.Sql.Sources.Provider": "org.apache.hudi.Spark3DefaultSource"}),
            TableShape.PLAIN,
        ),
        (replace(T, parameters={"connector": "hudi"}), TableShape.PLAIN),
        (replace(T, parameters={"last_commit_time_sync": "20261122101010123"}), TableShape.PLAIN),
        (replace(T, parameters={"hoodie.datasource.write.recordkey.field": "id"}), TableShape.PLAIN),
        (hudi(serde=SerDe(parameters={"hoodie.query.as.ro.table": "true"})), TableShape.PLAIN),
    ],
)
def test_kinds_that_are_set_aside_fold_like_others_and_say_why(table: Table, shape: TableShape) -> None:
    log = Log().create(table).drop(table)
    assert log.entries()[0].keys.shape is shape
    assert [step.names for step in log.chain().steps] == [
        {name(f"d1.{table.name}"): 1},
        {name(f"d1.{table.name}"): None},
    ]
    assert "are not replicated" in obstacle(table)


def test_a_log_of_2_3_folds_where_its_messages_say_enough() -> None:
    def history() -> Log:
        wider = widened(P, "b")
        log = Log().create(P).add(P, ONE, TWO).alter_partition(P, ONE, replace(ONE, parameters={"k": "v"}))
        return log.drop_partitions(P, TWO).alter(P, wider).rename(wider, "u").drop(replace(wider, name="u"))

    assert history().as_2_3().chain() == history().chain()


def test_an_insert_of_2_3_makes_its_table_unknown() -> None:
    with pytest.raises(Unfoldable, match="INSERT does not say what it did"):
        Log().insert(T).as_2_3().chain()


def test_a_truncation_in_2_3_looks_like_any_alteration_and_may_have_changed_the_files() -> None:
    truncated = Log().alter(T, replace(T, parameters=COUNTED), truncate=True).as_2_3()
    assert told(truncated.chain()) == [["1: as it was, files of 1"]]


# Compound steps


def many(count: int) -> list[str]:
    return [str(value) for value in range(count)]


def test_a_bulk_alteration_that_is_a_thousand_events_is_one_step() -> None:
    log = Log()
    for value in many(1000):
        before = part(P, value)
        log.alter_partition(P, before, replace(before, parameters={"k": "v"}))
    [step] = log.chain().steps
    assert step.events == tuple(range(1, 1001))
    assert len(step.parts) == 1000


def test_a_bulk_drop_that_is_a_thousand_events_is_one_step() -> None:
    log = Log()
    for value in many(1000):
        log.drop_partitions(P, part(P, value))
    [step] = log.chain().steps
    assert step.event_id == 1000
    assert set(step.parts.values()) == {None}


def test_one_truncation_of_two_partitions_in_3_1_is_one_step() -> None:
    log = Log()
    for one in (ONE, TWO):
        log.alter_partition(P, one, one, truncate=True).alter_partition(P, one, replace(one, parameters={"k": "v"}))
    assert [step.events for step in log.chain().steps] == [(1, 2, 3, 4)]


def test_the_batches_of_a_bulk_alteration_in_4_1_are_one_step() -> None:
    log = Log().alter_partitions(P, ONE, TWO).alter_partitions(P, part(P, "3"))
    assert [step.events for step in log.chain().steps] == [(1, 2)]


MORE = replace(ONE, parameters={"k": "v"})


@pytest.mark.parametrize(
    ("log", "steps"),
    [
        (Log().alter_partition(P, ONE, MORE).alter_partition(P, MORE, ONE), [(1,), (2,)]),
        (Log().alter_partition(P, ONE, MORE).at(3).alter_partition(P, TWO, TWO), [(1,), (3,)]),
        (Log().alter_partition(P, ONE, MORE).drop_partitions(P, TWO), [(1,), (2,)]),
        (Log().alter_partition(P, ONE, part(P, "3")).alter_partition(P, TWO, part(P, "4")), [(1,), (2,)]),
        (Log().alter_partitions(P, ONE, TWO).alter_partitions(P, TWO), [(1,), (2,)]),
        (Log().add(P, ONE).add(P, TWO), [(1,), (2,)]),
        (Log().insert(P, ONE).insert(P, TWO), [(1,), (2,)]),
    ],
    ids=[
        "of one partition again",
        "with another event between",
        "of another type",
        "that rename",
        "that share a partition",
        "that add",
        "that insert",
    ],
)
def test_events_of_calls_that_can_be_told_apart_are_steps_of_their_own(log: Log, steps: list[tuple[int, ...]]) -> None:
    assert [step.events for step in log.chain().steps] == steps


def test_a_run_ends_at_another_table() -> None:
    other = partitioned("u")
    one, two = Log().drop_partitions(P, ONE).drop_partitions(other, part(other, "2")).entries()
    assert not same_run(one, two)
    assert same_run(one, replace(one, event_id=2, keys=replace(one.keys, partitions=("p=2",))))


# Groups


def names_in(log: Log) -> list[dict[str, int | None]]:
    """Which lineage each name shows, state by state."""
    chain = log.chain()
    states = [dict(chain.names)]
    for step in chain.steps:
        states.append(states[-1] | dict(step.names))
    return [{str(table): lineage for table, lineage in sorted(state.items())} for state in states]


def test_tables_that_no_rename_links_are_groups_of_their_own_in_the_order_of_the_log() -> None:
    log = Log().insert(plain("b")).insert(plain("a")).insert(plain("b")).rename(plain("a"), "c").insert(plain("d"))
    found = [[entry.event_id for entry in group] for group in groups(log.entries())]
    assert found == [[1, 3], [2, 4], [5]]


def test_all_that_had_a_name_and_all_its_later_names_are_one_group() -> None:
    log = Log().rename(plain("a"), "b").create(plain("a")).rename(plain("a"), "c").insert(plain("b")).insert(plain("c"))
    assert [[entry.event_id for entry in group] for group in groups(log.entries())] == [[1, 2, 3, 4, 5]]


def test_a_chain_of_renames_is_one_lineage_under_one_name_after_another() -> None:
    log = Log().rename(plain("a"), "b").rename(plain("b"), "c").rename(plain("c"), "d", "d2")
    assert log.chain().tables == (name("d1.a"), name("d1.b"), name("d1.c"), name("d2.d"))
    assert names_in(log) == [
        {"d1.a": 1, "d1.b": None, "d1.c": None, "d2.d": None},
        {"d1.a": None, "d1.b": 1, "d1.c": None, "d2.d": None},
        {"d1.a": None, "d1.b": None, "d1.c": 1, "d2.d": None},
        {"d1.a": None, "d1.b": None, "d1.c": None, "d2.d": 1},
    ]


def test_a_swap_goes_through_two_states_in_which_a_name_is_free() -> None:
    log = Log().rename(plain("a"), "tmp").rename(plain("b"), "a").rename(plain("tmp"), "b")
    assert names_in(log) == [
        {"d1.a": 1, "d1.b": 2, "d1.tmp": None},
        {"d1.a": None, "d1.b": 2, "d1.tmp": 1},
        {"d1.a": 2, "d1.b": None, "d1.tmp": 1},
        {"d1.a": 2, "d1.b": 1, "d1.tmp": None},
    ]


def test_a_rename_onto_a_name_that_was_dropped_goes_through_its_absence() -> None:
    log = Log().drop(plain("a")).rename(plain("b"), "a")
    assert names_in(log) == [{"d1.a": 1, "d1.b": 2}, {"d1.a": None, "d1.b": 2}, {"d1.a": 2, "d1.b": None}]


def test_a_name_that_a_rename_left_can_be_created_again() -> None:
    log = Log().rename(plain("a"), "b").create(plain("a")).insert(plain("a"))
    assert names_in(log)[-1] == {"d1.a": 2, "d1.b": 1}
    assert told(log.chain())[1:] == [["d1.a is 2", "2: of 2, files of 2"], ["2: of 2, files of 3"]]


def test_a_way_out_of_the_policy_and_back_is_one_lineage_all_the_time() -> None:
    inside, outside = partitioned("a"), partitioned("a", "other")
    log = Log().rename(inside, "a", "other").add(outside, part(outside, "1")).rename(outside, "a", "d1")
    assert told(log.chain()) == [
        ["d1.a is gone", "other.a is 1", "1: of 1, files as they were"],
        ["1 p=1: of 2, files of 2"],
        ["other.a is gone", "d1.a is 1", "1: of 3, files as they were"],
    ]


@pytest.mark.parametrize(("back", "arrived"), [("a", set()), ("b", {"d1.b"})])
def test_a_table_that_comes_back_under_another_name_than_it_left_is_read(back: str, arrived: set[str]) -> None:
    """What the target showed of it went with its name."""
    inside, outside = plain("a"), plain("a", "other")
    log = Log().rename(inside, "a", "other").rename(outside, back, "d1")
    chain = fold(log.entries(), follows=lambda name: name.database == "d1")
    assert {str(name) for name in chain.arrived(2)} == arrived
    assert told(chain)[0][0] == "d1.a is gone"


def test_a_table_that_was_made_and_left_comes_back_under_any_name() -> None:
    log = Log().create(plain("a")).rename(plain("a"), "a", "other").rename(plain("a", "other"), "b", "d1")
    chain = fold(log.entries(), follows=lambda name: name.database == "d1")
    assert chain.arrivals == []


def test_a_table_that_comes_from_outside_the_policy_was_there_and_is_not_whole() -> None:
    chain = Log().rename(plain("a", "other"), "a", "d1").chain()
    assert chain.names == {name("d1.a"): None, name("other.a"): 1}
    assert chain.heads == {1: Head(1, BASE, data=BASE_DATA)}
    assert 1 not in chain.complete


def test_a_renamed_table_keeps_its_incarnation_and_its_partitions() -> None:
    renamed = replace(P, name="u")
    chain = Log().create(P).add(P, ONE).rename(P, "u").drop_partitions(renamed, ONE).chain()
    assert [step.heads[1].incarnation for step in chain.steps if 1 in step.heads] == ["1", "1"]
    assert told(chain)[-1] == ["1 p=1 is gone"]


# Column changes


WIDER, WIDEST = widened(P, "b"), widened(P, "b", "c")


def test_a_change_that_is_known_to_have_cascaded_says_so() -> None:
    assert told(Log().alter(P, WIDER).chain(1)) == [["1: of 1, files as they were", "1 cascades"]]


def test_changes_after_the_last_one_that_cascaded_did_not() -> None:
    log = Log().alter(P, WIDER).alter(WIDER, WIDEST)
    assert told(log.chain(1)) == [
        ["1: of 1, files as they were", "1 cascades"],
        ["1: of 2, files as they were", "1 has other columns"],
    ]


def test_changes_before_one_that_cascaded_are_doubtful() -> None:
    log = Log().alter(P, WIDER).insert(P, ONE).alter(WIDER, WIDEST)
    assert told(log.chain(3)) == [
        ["1: of 1, files as they were", "1 has other columns", "1 is doubtful"],
        ["1 p=1: as it was, files of 2"],
        ["1: of 3, files as they were", "1 cascades"],
    ]


def test_changes_before_a_drop_are_doubtful() -> None:
    log = Log().alter(P, WIDER).drop(WIDER)
    assert told(log.chain()) == [
        ["1: of 1, files as they were", "1 has other columns", "1 is doubtful"],
        ["d1.t is gone"],
    ]


def test_a_change_of_a_table_that_has_no_partitions_yet_is_never_doubtful() -> None:
    log = Log().create(P).alter(P, WIDER).add(WIDER, part(WIDER, "1")).alter(WIDER, WIDEST).drop(WIDEST)
    assert [bool(step.doubtful) for step in log.chain().steps] == [False, False, False, True, False]


def test_a_cascade_belongs_to_its_own_table_also_in_a_swap() -> None:
    a, b = partitioned("a"), partitioned("b")
    log = Log().alter(a, widened(a, "x")).alter(b, widened(b, "x")).rename(widened(a, "x"), "tmp")
    log.rename(widened(b, "x"), "a").alter(partitioned("a"), widened(partitioned("a"), "y"))
    chain = log.chain(1, 5)
    assert [(sorted(step.cascades), sorted(step.doubtful)) for step in chain.steps] == [
        ([1], []),
        ([], [2]),
        ([], []),
        ([], []),
        ([2], []),
    ]


def test_a_columns_change_is_seen_only_where_partitions_have_columns() -> None:
    found = [entry.keys.columns_changed for entry in Log().alter(P, WIDER).alter(T, widened(T, "b")).entries()]
    assert found == [True, False]


def test_what_one_look_finds_of_a_table_is_one_step_and_what_the_next_one_finds_another() -> None:
    keys = Keys(EventKind.ALTER_TABLE, TableName("d", "t"), shape=TableShape.PARTITIONED)
    added = replace(keys, kind=EventKind.ADD_PARTITIONS, partitions=("p=1",), locations=("file:/t/p=1",))
    one = Entry(1, 100, "LOOKED_ALTER_TABLE", keys)
    two = Entry(2, 100, "LOOKED_ADD_PARTITION", added)
    assert same_run(one, two)
    assert not same_run(one, replace(two, event_time=101))
    assert not same_run(one, replace(two, event_id=3))
    assert not same_run(one, replace(two, event_type="ADD_PARTITION"))
    assert not same_run(one, replace(two, keys=replace(added, table=TableName("d", "u"))))
    assert [step.events for step in fold([one, two]).steps] == [(1, 2)]
    assert [step.events for step in fold([one, replace(two, event_time=101)]).steps] == [(1,), (2,)]


def test_what_one_commit_changed_is_one_step_and_one_group_where_it_is_bound() -> None:
    def commit(event_id: int, table: str) -> Entry:
        keys = Keys(EventKind.COMMIT, TableName("d1", table), locations=(f"file:/{table}",), transactional=True)
        return Entry(event_id, 0, "COMMIT_TXN", keys)

    entries = [commit(5, "a"), commit(5, "b"), commit(6, "b"), commit(7, "c")]
    assert [step.events for step in fold(entries).steps] == [(5, 5), (6,), (7,)]
    names = [[str(entry.keys.table) for entry in group] for group in groups(entries, lambda _: True)]
    assert names == [["d1.a", "d1.b", "d1.b"], ["d1.c"]]
    assert len(groups(entries)) == 3
