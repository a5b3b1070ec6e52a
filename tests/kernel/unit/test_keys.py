"""`core.events.keys`: what an event touches.

Recorded messages of real metastores (3.1.3 plain, 4.1.0 plain and gzipped) lie in `golden/events`; 2.3's, which lack
objects, are built here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from calque.core.events.keys import NOTHING, keys_of, why_unknown
from calque.model.hive import Column, Database, Function, Partition, Storage, Table
from calque.model.journal import Event, EventKind, Keys, TableShape
from calque.model.names import TableName
from support.places import GOLDEN
from support.sources.logs import WITHOUT_EFFECT
from support.sources.tjson import event, gzipped, recorded, tjson

EVENTS = GOLDEN / "events"

T, U, U2, M, EX, SK, FN = (TableName("d1", name) for name in ("t", "u", "u2", "m", "ex", "sk", "fn"))
ODD = (
    "p=a%2Fb",
    "p=x%3Dy",
    "p=p%25q",
    "p=sp ace",
    "p=ümlaut",
    "p=a%3Ab",
    "p=é%22q",
    "p=%23h",
    "p=日本",
    "p=__HIVE_DEFAULT_PARTITION__",
)
THREE = ("p=%23h", "p=1", "p=__HIVE_DEFAULT_PARTITION__")


def situations(warehouse: str, loose: str) -> dict[str, Keys]:
    """What was done to the recorded metastores: tables lay below `warehouse`, table u (later u2) at `loose`."""

    def partitions(kind: EventKind, table: TableName, *names: str, **said: Any) -> Keys:
        keys = Keys(
            kind,
            table,
            shape=TableShape.PARTITIONED,
            partitions=names,
            locations=tuple(f"{warehouse}/{table.table}/{name}" for name in names),
        )
        return replace(keys, **said)

    altered = Keys(EventKind.ALTER_TABLE, T, shape=TableShape.PARTITIONED)
    plain_u = Keys(EventKind.INSERT, U, shape=TableShape.PLAIN, locations=(loose,))
    plain_m = Keys(EventKind.CREATE_TABLE, M, shape=TableShape.PLAIN, locations=(f"{warehouse}/m",))
    return {
        "database created": Keys(EventKind.CREATE_DATABASE, TableName("d1")),
        "database altered": Keys(EventKind.ALTER_DATABASE, TableName("d1")),
        "database dropped": Keys(EventKind.DROP_DATABASE, TableName("d1")),
        "t created": Keys(EventKind.CREATE_TABLE, T, shape=TableShape.PARTITIONED),
        "u created": replace(plain_u, kind=EventKind.CREATE_TABLE),
        "sk created": Keys(EventKind.CREATE_TABLE, SK, shape=TableShape.PARTITIONED),
        "uni created": Keys(EventKind.CREATE_TABLE, TableName("d1", "uni"), shape=TableShape.PARTITIONED),
        "m created": plain_m,
        "v created": Keys(EventKind.CREATE_TABLE, TableName("d1", "v"), shape=TableShape.VIEW),
        "mv created": Keys(EventKind.CREATE_TABLE, TableName("d1", "mv"), shape=TableShape.VIEW),
        "one added": partitions(EventKind.ADD_PARTITIONS, T, "p=1"),
        "odd ones added": partitions(EventKind.ADD_PARTITIONS, T, *ODD),
        "one altered": partitions(EventKind.ALTER_PARTITIONS, T, "p=1"),
        "three altered": partitions(EventKind.ALTER_PARTITIONS, T, *THREE),
        "one renamed": partitions(
            EventKind.RENAME_PARTITION, T, "p=one", others=("p=1",), locations=(f"{warehouse}/t/p=1",)
        ),
        "one dropped": Keys(EventKind.DROP_PARTITIONS, T, shape=TableShape.PARTITIONED, partitions=("p=one",)),
        "two dropped": Keys(
            EventKind.DROP_PARTITIONS, T, shape=TableShape.PARTITIONED, partitions=("p=a%2Fb", "p=p%25q")
        ),
        "u inserted": plain_u,
        "t overwritten": partitions(EventKind.INSERT, T, "p=a%2Fb", replaces=True),
        "t inserted": partitions(EventKind.INSERT, T, "p=x%3Dy"),
        "t altered": altered,
        "t widened": replace(altered, columns_changed=True),
        "u counted": replace(plain_u, kind=EventKind.ALTER_TABLE, facets_only=True),
        "u renamed": replace(plain_u, kind=EventKind.RENAME_TABLE, table=U2, other=U),
        "m truncated": replace(plain_m, kind=EventKind.ALTER_TABLE, replaces=True, facets_only=True),
        "ex truncated": partitions(EventKind.ALTER_PARTITIONS, EX, "p=one", replaces=True, facets_only=True),
        "ex truncated in a list": partitions(EventKind.ALTER_PARTITIONS, EX, "p=one", replaces=True),
        "ex counted": partitions(EventKind.ALTER_PARTITIONS, EX, "p=one", facets_only=True),
        "function created": Keys(EventKind.CREATE_FUNCTION, FN),
        "function dropped": Keys(EventKind.DROP_FUNCTION, FN),
        "facet of t": Keys(EventKind.FACET, T),
        "facet of one": Keys(EventKind.FACET, T, partitions=("p=x%3Dy",)),
        "facet of u2": Keys(EventKind.FACET, U2),
        "foreign key of sk": Keys(EventKind.FACET, SK),
        "nothing": NOTHING,
        "sk dropped": Keys(EventKind.DROP_TABLE, SK, shape=TableShape.PARTITIONED),
        "v dropped": Keys(EventKind.DROP_TABLE, TableName("d1", "v"), shape=TableShape.VIEW),
        "m dropped": Keys(EventKind.DROP_TABLE, M, shape=TableShape.PLAIN),
    }


CREATED = {1: "database created", 2: "database altered", 3: "t created", 4: "u created", 5: "sk created"} | {
    6: "uni created",
    7: "m created",
    8: "v created",
    9: "mv created",
    10: "one added",
    11: "odd ones added",
    12: "one altered",
}
IN_3 = CREATED | {
    16: "one renamed",
    19: "one dropped",
    20: "u inserted",
    21: "t overwritten",
    22: "t altered",
    23: "t widened",
    24: "u renamed",
    25: "ex truncated",
    26: "ex counted",
    27: "function created",
    28: "function dropped",
    29: "facet of t",
    30: "foreign key of sk",
    31: "facet of t",
    32: "facet of t",
    33: "facet of t",
    37: "nothing",
    39: "nothing",
    40: "nothing",
    41: "nothing",
    42: "sk dropped",
    43: "v dropped",
    44: "m dropped",
    57: "database dropped",
}
IN_4 = CREATED | {
    13: "three altered",
    15: "one renamed",
    18: "one dropped",
    19: "u inserted",
    20: "t overwritten",
    21: "t inserted",
    23: "t altered",
    24: "t widened",
    25: "u counted",
    26: "u renamed",
    27: "m truncated",
    28: "ex truncated in a list",
    29: "function created",
    30: "function dropped",
    31: "facet of t",
    32: "foreign key of sk",
    33: "facet of t",
    34: "facet of t",
    35: "facet of t",
    36: "facet of t",
    37: "facet of t",
    38: "facet of u2",
    39: "facet of one",
    40: "facet of u2",
    41: "facet of u2",
    43: "two dropped",
    44: "nothing",
    46: "nothing",
    47: "sk dropped",
    48: "v dropped",
    49: "m dropped",
    61: "database dropped",
}
THREE_ONE = situations("file:/data/w-ev/wh/d1.db", "file:/data/w-ev/u")
FOUR_ONE = situations("file:/data/wh_external/d1.db", "file:/data/u")
RECORDINGS = {
    "hive-3.1-json": {event_id: THREE_ONE[name] for event_id, name in IN_3.items()},
    "hive-4.1-json": {event_id: FOUR_ONE[name] for event_id, name in IN_4.items()},
    "hive-4.1-gzip": {event_id: FOUR_ONE[name] for event_id, name in IN_4.items()},
}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_recorded_events_have_the_keys_of_what_was_done(recording: str) -> None:
    lines = (EVENTS / f"{recording}.jsonl").read_text().splitlines()
    found = {one.event_id: keys_of(one) for one in map(recorded, lines)}
    assert found == RECORDINGS[recording]


def test_a_message_has_the_same_keys_plain_and_gzipped() -> None:
    for line in (EVENTS / "hive-3.1-json.jsonl").read_text().splitlines():
        assert keys_of(gzipped(recorded(line))) == keys_of(recorded(line))


# Shapes, names, locations

STORAGE = Storage(columns=(Column("a", "int"),), location="file:/w/t")
PLAIN = Table(name="t", database="d1", storage=STORAGE, type="MANAGED_TABLE", parameters={})
TWO_KEYS = replace(PLAIN, partition_keys=(Column("Ds", "date"), Column("region", "string")))


def part(*values: str, **said: Any) -> Partition:
    return replace(
        Partition(values, "d1", "t", storage=Storage(location=f"file:/w/t/{'-'.join(values)}"), parameters={}), **said
    )


def created(table: Table) -> Event:
    return event("CREATE_TABLE", {"tableObjJson": tjson(table)}, table="t")


def altered(before: Table, after: Table, **said: object) -> Event:
    objects = {"tableObjBeforeJson": tjson(before), "tableObjAfterJson": tjson(after)}
    return event("ALTER_TABLE", objects | said, database=after.database, table=after.name)


def altered_partition(before: Partition, after: Partition, table: Table = TWO_KEYS, **said: object) -> Event:
    objects = {
        "tableObjJson": tjson(table),
        "partitionObjBeforeJson": tjson(before),
        "partitionObjAfterJson": tjson(after),
    }
    return event("ALTER_PARTITION", objects | said, table="t")


def test_names_are_lower_case() -> None:
    assert keys_of(created(replace(PLAIN, name="T", database="D1"))).table == T


def test_a_change_of_case_is_no_rename() -> None:
    keys = keys_of(altered(PLAIN, replace(PLAIN, name="T", database="D1")))
    assert (keys.kind, keys.table, keys.other) == (EventKind.ALTER_TABLE, T, None)


def test_a_rename_to_another_database_names_both() -> None:
    keys = keys_of(altered(PLAIN, replace(PLAIN, database="d2")))
    assert keys == Keys(
        EventKind.RENAME_TABLE, TableName("d2", "t"), other=T, shape=TableShape.PLAIN, locations=("file:/w/t",)
    )


def test_a_table_without_a_location_has_none_to_look_at() -> None:
    keys = keys_of(created(replace(PLAIN, storage=Storage(columns=()))))
    assert keys == Keys(EventKind.CREATE_TABLE, T, shape=TableShape.PLAIN)


@pytest.mark.parametrize(
    ("parameters", "transactional"),
    [
        ({"transactional": "true"}, True),
        ({"transactional": "TRUE"}, True),
        ({"TRANSACTIONAL": "True"}, True),
        ({"transactional": "false"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_transactional_is_a_parameter(parameters: dict[str, str] | None, transactional: bool) -> None:
    assert keys_of(created(replace(PLAIN, parameters=parameters))).transactional is transactional


def test_a_partitioned_view_is_a_view_and_its_partitions_have_no_locations() -> None:
    view = replace(TWO_KEYS, type="VIRTUAL_VIEW")
    added = event(
        "ADD_PARTITION",
        {"tableObjJson": tjson(view), "partitionListJson": [tjson(part("2024-01-01", "eu", storage=None))]},
    )
    assert keys_of(added) == Keys(
        EventKind.ADD_PARTITIONS, T, shape=TableShape.VIEW, partitions=("ds=2024-01-01/region=eu",)
    )


def test_dropped_partitions_take_the_order_of_the_tables_keys() -> None:
    dropped = event(
        "DROP_PARTITION",
        {"tableObjJson": tjson(TWO_KEYS), "partitions": [{"region": "a/b", "Ds": "2024-01-01"}]},
    )
    assert keys_of(dropped).partitions == ("ds=2024-01-01/region=a%2Fb",)


def test_only_a_change_of_storage_columns_may_have_cascaded() -> None:
    wider = replace(TWO_KEYS, storage=replace(STORAGE, columns=(Column("a", "bigint"),)))
    moved = replace(TWO_KEYS, storage=replace(STORAGE, location="file:/w/elsewhere"))
    found = [keys_of(altered(TWO_KEYS, after)).columns_changed for after in (wider, moved)]
    assert found == [True, False]
    plain_wider = replace(PLAIN, storage=wider.storage)
    assert not keys_of(altered(PLAIN, plain_wider)).columns_changed


def test_an_alteration_of_basic_statistics_alone_is_facets_only() -> None:
    counted = {"numRows": "5", "transient_lastDdlTime": "9"}
    more = {"numRows": "6", "owner": "x"}
    assert keys_of(altered(PLAIN, replace(PLAIN, parameters=counted))).facets_only
    assert not keys_of(altered(PLAIN, replace(PLAIN, parameters=more))).facets_only
    assert not keys_of(altered(PLAIN, replace(PLAIN, name="x", parameters=counted))).facets_only
    assert not keys_of(altered(PLAIN, replace(PLAIN, owner="x", parameters=counted))).facets_only
    one = part("2024-01-01", "eu")
    assert keys_of(altered_partition(one, replace(one, parameters=counted))).facets_only
    assert not keys_of(altered_partition(one, replace(one, parameters=more))).facets_only


def test_a_partition_rename_names_both() -> None:
    before, after = part("2024-01-01", "eu"), part("2024-01-01", "us")
    assert keys_of(altered_partition(before, after)) == Keys(
        EventKind.RENAME_PARTITION,
        T,
        shape=TableShape.PARTITIONED,
        partitions=("ds=2024-01-01/region=us",),
        others=("ds=2024-01-01/region=eu",),
        locations=("file:/w/t/2024-01-01-us",),
    )


# Which catalog


@pytest.mark.parametrize("event_type", ["CREATE_TABLE", "DROP_DATABASE", "ADD_PRIMARYKEY", "A_NEW_TYPE"])
def test_other_catalogs_are_nothing(event_type: str) -> None:
    assert keys_of(event(event_type, {}, catalog="spark", table="t")) == NOTHING


@pytest.mark.parametrize("catalog", ["", "hive", "HIVE"])
def test_the_default_catalog_may_be_left_out(catalog: str) -> None:
    assert keys_of(replace(created(PLAIN), catalog=catalog)).kind is EventKind.CREATE_TABLE


@pytest.mark.parametrize(
    "event_type",
    WITHOUT_EFFECT,
)
def test_events_without_effect_are_not_even_parsed(event_type: str) -> None:
    assert keys_of(Event(1, 0, event_type, "", "null", " ", "json-0.2", "{broken")) == NOTHING


def test_a_reload_says_of_which_table_and_changes_nothing() -> None:
    event = Event(1, 0, "RELOAD", "hive", "D1", "T", "json-0.2", "{broken")
    assert keys_of(event) == Keys(EventKind.NOTHING, TableName("d1", "t"))


# Facets


def strings(*values: str) -> str:
    """A TJSON object whose fields from 1 on are `values`."""
    return json.dumps({str(number): {"str": value} for number, value in enumerate(values, start=1)})


@pytest.mark.parametrize(
    "event_type",
    [
        "ADD_PRIMARYKEY",
        "ADD_UNIQUECONSTRAINT",
        "ADD_NOTNULLCONSTRAINT",
        "ADD_DEFAULTCONSTRAINT",
        "ADD_CHECKCONSTRAINT",
        "DROP_CONSTRAINT",
        "UPDATE_TBL_COL_STAT_EVENT",
        "UPDATE_PART_COL_STAT_EVENT",
        "UPDATE_PART_COL_STAT_EVENT_BATCH",
        "DELETE_TBL_COL_STAT_EVENT",
        "DELETE_PART_COL_STAT_EVENT",
    ],
)
def test_constraints_and_statistics_are_facets_of_the_table_in_the_row(event_type: str) -> None:
    assert keys_of(event(event_type, {}, table="T")) == Keys(EventKind.FACET, T)


@pytest.mark.parametrize(
    ("event_type", "message"),
    [
        ("ADD_PRIMARYKEY", {"primaryKeyListJson": [strings("d1", "t")]}),
        ("ADD_FOREIGNKEY", {"foreignKeyListJson": [strings("d1", "parent", "c", "d1", "t", "c")]}),
        ("ADD_NOTNULLCONSTRAINT", {"notNullConstraintListJson": [strings("hive", "d1", "t", "c")]}),
        ("DROP_CONSTRAINT", {"dbName": "D1", "tableName": "T", "constraintName": "c"}),
        ("UPDATE_TBL_COL_STAT_EVENT", {"tableObjJson": tjson(PLAIN)}),
    ],
)
def test_without_a_row_the_objects_name_the_table_of_a_facet(event_type: str, message: dict[str, object]) -> None:
    assert keys_of(event(event_type, message, database="")) == Keys(EventKind.FACET, T)


@pytest.mark.parametrize(
    ("event_type", "message"),
    [
        (
            "UPDATE_PART_COL_STAT_EVENT",
            {"tableObjJson": tjson(TWO_KEYS), "partVals": ["2024-01-01", "a/b"]},
        ),
        (
            "DELETE_PART_COL_STAT_EVENT",
            {"partName": "Ds=2024-01-01/region=a%2Fb", "partValues": ["2024-01-01", "a/b"], "colName": "a"},
        ),
    ],
)
def test_statistics_of_a_partition_name_it_as_hive_does(event_type: str, message: dict[str, object]) -> None:
    found = keys_of(event(event_type, message, table="T"))
    assert found == Keys(EventKind.FACET, T, partitions=("ds=2024-01-01/region=a%2Fb",))


# What 2.3 leaves out


def test_2_3_drops_a_table_by_name_alone() -> None:
    assert keys_of(event("DROP_TABLE", {"db": "d1", "table": "t"}, catalog="", table="t")) == Keys(
        EventKind.DROP_TABLE, T
    )


def test_2_3_alters_without_a_truncate_flag() -> None:
    one = part("2024-01-01", "eu")
    keys = keys_of(altered_partition(one, replace(one, parameters={"a": "b"})))
    assert keys == Keys(
        EventKind.ALTER_PARTITIONS,
        T,
        shape=TableShape.PARTITIONED,
        partitions=("ds=2024-01-01/region=eu",),
        locations=("file:/w/t/2024-01-01-eu",),
    )


@pytest.mark.parametrize(
    ("event_type", "message", "table"),
    [
        ("INSERT", {"db": "d1", "table": "t", "files": [], "partKeyVals": {}}, T),
        ("CREATE_DATABASE", {"db": "d1"}, TableName("d1")),
    ],
)
def test_what_2_3_does_not_say_is_unknown_and_no_defect(
    event_type: str, message: dict[str, object], table: TableName
) -> None:
    keys = keys_of(event(event_type, message, catalog="", table=table.table))
    assert keys == Keys(EventKind.UNKNOWN, table)


def test_what_another_version_does_not_say_is_a_defect() -> None:
    keys = keys_of(event("INSERT", {"db": "d1", "table": "t", "files": []}, table="t"))
    assert keys == Keys(EventKind.UNKNOWN, T, defect="the message has no tableObjJson")


def test_a_type_that_is_not_known_is_unknown_and_no_defect() -> None:
    assert keys_of(event("A_NEW_TYPE", {}, table="T")) == Keys(EventKind.UNKNOWN, T)


# What can't be folded


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (event("A_NEW_TYPE", {}, table="t"), "calque does not know events of this type"),
        (
            replace(event("CREATE_TABLE", {"db": "d1", "table": "t"}, table="t"), catalog=""),
            "the message has no tableObjJson, as in all messages of old metastores",
        ),
        (
            altered(PLAIN, replace(PLAIN, parameters={"table_type": "ICEBERG"})),
            "the table became an Iceberg table, or was one",
        ),
    ],
)
def test_what_is_unknown_without_a_defect_says_why(one: Event, why: str) -> None:
    assert keys_of(one) == Keys(EventKind.UNKNOWN, T)
    assert why_unknown(one) == why


@pytest.mark.parametrize(
    ("one", "defect"),
    [
        (replace(created(PLAIN), message_format="protobuf"), "message format 'protobuf' is not known"),
        (replace(created(PLAIN), message="[]"), "the message is no JSON object"),
        (replace(created(PLAIN), message=""), "the message is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (event("CREATE_TABLE", {"tableObjJson": 5}, table="t"), "tableObjJson is no string"),
        (event("CREATE_TABLE", {"tableObjJson": "{}"}, table="t"), "an object has no name"),
        (altered_partition(part("eu"), part("us")), "a partition has 1 values for 2 keys"),
        (altered_partition(part("a", "b"), part("a", "b", storage=None)), "a partition has no location"),
        (
            event(
                "ADD_PARTITION",
                {"tableObjJson": tjson(TWO_KEYS), "partitionListJson": ['{"1":{"lst":["str",3,"a","b"]}}']},
                table="t",
            ),
            "field 1 is no list",
        ),
        (
            event("INSERT", {"tableObjJson": tjson(TWO_KEYS), "ptnObjJson": None}, table="t"),
            "the insert does not say into which partition",
        ),
        (
            event("DROP_PARTITION", {"tableObjJson": tjson(TWO_KEYS), "partitions": [{"Ds": "1"}]}, table="t"),
            "a dropped partition does not have the table's keys",
        ),
        (
            event("DROP_PARTITION", {"tableObjJson": tjson(PLAIN)}, table="t"),
            "the message has no list of partitions",
        ),
    ],
)
def test_what_can_not_be_folded_is_unknown_with_the_row_and_the_reason(one: Event, defect: str) -> None:
    assert keys_of(one) == Keys(EventKind.UNKNOWN, T, defect=defect)


def test_a_lone_surrogate_makes_a_message_unknown() -> None:
    broken = replace(created(PLAIN), message=created(PLAIN).message.replace("file:/w/t", r"file:/w/\\ud800"))
    assert keys_of(broken).kind is EventKind.UNKNOWN


@pytest.mark.parametrize(("database", "table"), [("", ""), ("null", " "), ("\ud800", "t")])
def test_a_row_that_names_nothing_leaves_the_table_open(database: str, table: str) -> None:
    keys = keys_of(event("A_NEW_TYPE", {}, database=database, table=table))
    assert keys == Keys(EventKind.UNKNOWN)


def test_objects_of_databases_and_functions_are_named() -> None:
    database = event("CREATE_DATABASE", {"db": "D2", "dbJson": tjson(Database("D2"))}, database="D2")
    function = event("CREATE_FUNCTION", {"db": "d1", "functionObjJson": tjson(Function("Fn", "d1", "a.B"))})
    assert keys_of(database) == Keys(EventKind.CREATE_DATABASE, TableName("d2"))
    assert keys_of(function) == Keys(EventKind.CREATE_FUNCTION, FN)
