"""Values of partition keys become what Hive writes into partition names."""

from __future__ import annotations

import pytest

from calque.core.formats.partition_values import as_in_names, named_partition
from calque.errors import Refused
from calque.model.hive import Column, Table
from calque.model.names import DEFAULT_PARTITION

TABLE = Table("orders", "sales", partition_keys=(Column("ds", "date"), Column("Region", "string"), Column("n", "int")))


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("int", "01", "1"),
        ("int", "-0", "0"),
        ("tinyint", "+127", "127"),
        ("bigint", "9223372036854775807", "9223372036854775807"),
        ("string", "01", "01"),
        ("string", "a/b=c ü", "a/b=c ü"),
        ("string", "", DEFAULT_PARTITION),
        ("int", DEFAULT_PARTITION, DEFAULT_PARTITION),
        ("boolean", "TRUE", "true"),
        ("date", "2024-1-2", "2024-01-02"),
        ("timestamp", "2024-01-02 03:04:05", "2024-01-02 03:04:05"),
        ("timestamp", "2024-01-02T03:04:05.500", "2024-01-02 03:04:05.5"),
        ("timestamp", "2024-01-02", "2024-01-02 00:00:00"),
        ("decimal(5,2)", "01.50", "1.5"),
        ("decimal(10)", "7.0", "7"),
        ("decimal(5,2)", "-0.00", "0"),
        ("double", "1", "1.0"),
        ("double", "0.5", "0.5"),
        ("double", "12345678", "1.2345678E7"),
        ("double", "1e7", "1.0E7"),
        ("double", "0.0001", "1.0E-4"),
        ("varchar(3)", "abc", "abc"),
        ("binary", "x", "x"),
    ],
)
def test_a_value_is_written_as_hive_writes_it(kind: str, value: str, written: str) -> None:
    assert as_in_names(Column("k", kind), value) == written


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "1.5"),
        ("int", "x"),
        ("tinyint", "128"),
        ("boolean", "yes"),
        ("date", "2024-02-30"),
        ("date", "20240101"),
        ("timestamp", "2024-01-01 25:00:00"),
        ("decimal(5,2)", "1234.5"),
        ("decimal(5,2)", "1.234"),
        ("double", "x"),
        ("varchar(3)", "abcd"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, value: str) -> None:
    with pytest.raises(Refused, match=rf'"{value}" is no value of k\. The partition key k has the type {kind[:3]}'):
        as_in_names(Column("k", kind), value)


def test_keys_are_named_in_any_case_and_come_in_lexical_order() -> None:
    assert list(named_partition(TABLE, {"REGION": "us", "DS": "2024-1-1"}, "A mark").items()) == [
        ("ds", "2024-01-01"),
        ("region", "us"),
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "No partition key is named. A mark speaks of the partitions that match some of them. Name one at least"),
        ({"dt": "x"}, "sales.orders has no partition key dt. Known: ds, region, n."),
        ({"region": "x", "Region": "y"}, "Region has two values."),
        ({"n": "x"}, '"x" is no value of n. The partition key n has the type int.'),
    ],
)
def test_keys_that_can_not_be_meant_are_refused(values: dict[str, str], said: str) -> None:
    with pytest.raises(Refused) as refused:
        named_partition(TABLE, values, "A mark")
    assert str(refused.value).startswith(said)
