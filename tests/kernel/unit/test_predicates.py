"""Predicates over partition keys and definitions: what parses, what is true, what fits."""

from __future__ import annotations

import pytest

from calque.core.policy.predicate_parser import parse_predicate
from calque.core.policy.predicates import holds, keys_of_partition, misfit, not_true, predicate_text
from calque.core.policy.subset import Subset, crossed, narrowed, parse_where
from calque.errors import Refused
from calque.model.journal import Entry, EventKind, Keys
from calque.model.names import TableName
from calque.model.policy import Policy

T = TableName("sales", "orders")
NULL = "ds=__HIVE_DEFAULT_PARTITION__/hr=1"


@pytest.mark.parametrize(
    ("text", "partition", "result"),
    [
        ("ds >= '2024-01-01'", "ds=2024-01-01/hr=1", True),
        ("'2024-01-01' <= ds", "ds=2024-01-01/hr=1", True),
        ("hr > 9", "ds=x/hr=10", True),
        ("hr > '9'", "ds=x/hr=10", False),
        ("hr = 1", "ds=x/hr=01", True),
        ("hr = 1", "ds=x/hr=one", None),
        ("hr IN (1, 2) AND NOT ds = 'x'", "ds=x/hr=1", False),
        ("hr BETWEEN 1 AND 3", "ds=x/hr=2", True),
        ("DS IS NULL", NULL, True),
        ("ds IS NOT NULL", NULL, False),
        ("ds <> 'x'", NULL, None),
        ("NOT ds = 'x'", NULL, None),
        ("ds = 'x' OR hr = 1", NULL, True),
        ("ds = 'x' AND hr = 1", NULL, None),
        ("ds = 'a/b'", "ds=a%2Fb/hr=1", True),
        ("d >= DATE '2024-01-01'", "d=2023-12-31", False),
        ("b = true", "b=TRUE", True),
    ],
)
def test_a_predicate_is_true_false_or_unknown_as_in_sql(text: str, partition: str, result: bool | None) -> None:
    assert holds(parse_predicate(text), keys_of_partition(partition)) is result


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ds",
        "ds =",
        "ds = other",
        "ds LIKE 'a%'",
        "ds IN (SELECT ds FROM t)",
        "upper(ds) = 'X'",
        "t.ds = 'x'",
        "ds = 'x'; DROP TABLE t",
        "SELECT 1",
        "d = DATE '2024-02-30'",
        "ds = 'x' AND",
        "(" * 5000 + "ds = 'x'" + ")" * 5000,
    ],
)
def test_what_is_no_predicate_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_predicate(text)


def test_many_alternatives_are_no_deep_tree() -> None:
    predicate = parse_predicate(" OR ".join(f"ds = '{number}'" for number in range(300)))
    assert holds(predicate, {"ds": "299"}) is True


def test_a_literal_fits_the_type_of_its_key() -> None:
    types = {"ds": "string", "hr": "int", "d": "date", "price": "decimal(10,2)"}
    for text in ("ds = 'x'", "hr = 1", "d = '2024-01-01'", "d = DATE '2024-01-01'", "price < 1.5", "hr IS NULL"):
        assert misfit(parse_predicate(text), types) == ""
    assert misfit(parse_predicate("hr = '1'"), types) == "'1' is a string, and hr is of type int"
    assert misfit(parse_predicate("ds = 1"), types) == "'1' is a number, and ds is of type string"
    assert misfit(parse_predicate("d = 'yesterday'"), types) == "'yesterday' is a string, and d is of type date"
    assert misfit(parse_predicate("region = 'eu'"), types) == "region is no partition key"


@pytest.mark.parametrize("text", ["rows = 1", "param('numRows') = '1'", "param('transient_lastDdlTime') > '1'"])
def test_where_asks_for_what_people_set(text: str) -> None:
    with pytest.raises(Refused):
        parse_where(text)


def subset(predicate: str) -> Subset:
    return Subset(Policy("dr", "hq", partitions={"sales.*": "ds = 'never'", "sales.orders": predicate}))


def entry(kind: EventKind, *partitions: str, others: tuple[str, ...] = ()) -> Entry:
    locations = tuple(f"file:/{one}" for one in partitions)
    return Entry(7, 0, "", Keys(kind, T, partitions=partitions, others=others, locations=locations))


def test_partitions_that_are_left_keep_their_places_in_the_message() -> None:
    event = narrowed(subset("ds >= '2'"), entry(EventKind.ADD_PARTITIONS, "ds=1", "ds=2", "ds=3"))
    assert event is not None
    assert (event.keys.partitions, event.keys.numbers) == (("ds=2", "ds=3"), (1, 2))
    assert event.keys.locations == ("file:/ds=2", "file:/ds=3")


def test_a_rename_over_the_edge_is_a_drop_or_an_addition() -> None:
    into = narrowed(subset("ds >= '2'"), entry(EventKind.RENAME_PARTITION, "ds=2", others=("ds=1",)))
    out = narrowed(subset("ds >= '2'"), entry(EventKind.RENAME_PARTITION, "ds=1", others=("ds=2",)))
    beyond = narrowed(subset("ds >= '2'"), entry(EventKind.RENAME_PARTITION, "ds=0", others=("ds=1",)))
    assert into is not None
    assert out is not None
    assert (into.keys.kind, into.keys.partitions, into.keys.others) == (EventKind.ADD_PARTITIONS, ("ds=2",), ())
    assert (out.keys.kind, out.keys.partitions, out.keys.others) == (EventKind.DROP_PARTITIONS, ("ds=2",), ())
    assert beyond is None


def test_a_predicate_on_a_key_that_the_table_lacks_makes_the_table_one_to_read() -> None:
    event = narrowed(subset("region = 'eu'"), entry(EventKind.INSERT, "ds=1"))
    assert event is not None
    assert (event.keys.kind, event.keys.defect) == (EventKind.UNKNOWN, "region is no partition key")


def test_an_alteration_over_the_edge_of_where_is_a_drop_or_an_arrival() -> None:
    altered = Entry(7, 0, "ALTER_TABLE", Keys(EventKind.ALTER_TABLE, T))
    out, into = crossed(altered, True, False), crossed(altered, False, True)
    assert out is not None
    assert into is not None
    assert (out.keys.kind, out.keys.table) == (EventKind.DROP_TABLE, T)
    assert (into.keys.kind, into.keys.table, into.keys.other) == (EventKind.RENAME_TABLE, T, None)
    assert crossed(altered, True, True) is altered
    assert crossed(altered, False, False) is None


@pytest.mark.parametrize(
    "text",
    [
        "ds >= '2024-01-01'",
        "NOT (ds = 'x' OR hr IN (1, -2)) AND ds IS NOT NULL",
        "NOT (NOT (hr BETWEEN 1 AND 3 AND ds <> 'x'))",
        "ds IS NULL OR hr = 1",
        r"ds = 'it\'s a \\ and a \"' OR `hr` < 2.50",
    ],
)
def test_a_predicate_can_be_written_down_and_turned_into_where_it_is_not_true(text: str) -> None:
    predicate = parse_predicate(text)
    assert parse_predicate(predicate_text(predicate)) == predicate
    rest = parse_predicate(predicate_text(not_true(predicate)))
    for ds in (None, "x", "2024-01-01", "it's a \\ and a \""):
        for hr in (None, "-2", "1", "2", "4"):
            values = {"ds": ds, "hr": hr}
            assert (holds(rest, values) is True) is (holds(predicate, values) is not True)


def test_dates_and_booleans_are_written_as_they_are_read() -> None:
    predicate = parse_predicate("d = DATE '2024-01-01' AND b = true")
    assert parse_predicate(predicate_text(predicate)) == predicate
