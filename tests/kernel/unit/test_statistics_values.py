"""Column statistics: two values are one value exactly when their bits are, however they are written."""

import math
import struct
from collections.abc import Callable

import pytest

from calque.core.events.decode import thrift_object
from calque.core.events.encode import tjson
from calque.core.states.facets import compare_columns, same_statistics, text_of_statistics
from calque.model.facets import (
    Binaries,
    ColumnStatistics,
    Decimal,
    Decimals,
    Doubles,
    Statistics,
    StatisticsCounts,
    Strings,
)
from calque.model.hive import Column, Storage, Table
from calque.model.names import TableName

NAN, DENORMAL = float("nan"), 5e-324
OTHER_NAN = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]


def doubles(low: float, high: float) -> ColumnStatistics:
    return ColumnStatistics("x", "double", StatisticsCounts(doubles=Doubles(low, high, 0, 2)))


def decimals(unscaled: int, scale: int) -> ColumnStatistics:
    length = unscaled.bit_length() // 8 + 1
    low = Decimal(unscaled.to_bytes(length, "big", signed=True), scale)
    return ColumnStatistics("x", "decimal(38,10)", StatisticsCounts(decimals=Decimals(low, low)))


@pytest.mark.parametrize("value", [float("nan"), math.inf, -math.inf, 0.0, -0.0, DENORMAL, 1.7976931348623157e308])
def test_a_value_read_twice_is_one_value(value: float) -> None:
    again = struct.unpack(">d", struct.pack(">d", value))[0]
    assert same_statistics(doubles(value, value), doubles(again, again))


@pytest.mark.parametrize("value", [float("nan"), math.inf, -math.inf, -0.0, DENORMAL])
def test_a_value_in_a_message_or_dump_is_read_as_it_was_written(value: float) -> None:
    row = doubles(value, 1.0)
    assert same_statistics(thrift_object(ColumnStatistics, tjson(row)), row)


def test_numbers_that_are_none_are_one_whatever_their_bits_beyond_that() -> None:
    """Messages and databases write `NaN`, which has no more bits."""
    assert same_statistics(doubles(NAN, OTHER_NAN), doubles(OTHER_NAN, NAN))


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (DENORMAL, 0.0), (NAN, math.inf), (math.inf, -math.inf)])
def test_values_of_other_bits_are_two_values(one: float, other: float) -> None:
    assert not same_statistics(doubles(one, 1.0), doubles(other, 1.0))
    assert text_of_statistics(doubles(one, 1.0)) != text_of_statistics(doubles(other, 1.0))


@pytest.mark.parametrize(
    "counted",
    [
        lambda: StatisticsCounts(strings=Strings(3, float("nan"), 0, 1)),
        lambda: StatisticsCounts(binaries=Binaries(3, float("nan"), 0)),
    ],
)
def test_an_average_that_is_no_number_equals_itself(counted: Callable[[], StatisticsCounts]) -> None:
    assert same_statistics(ColumnStatistics("x", "string", counted()), ColumnStatistics("x", "string", counted()))


def test_decimals_are_compared_in_all_their_digits() -> None:
    assert same_statistics(decimals(1500, 3), decimals(15, 1))
    assert same_statistics(decimals(15, -3), decimals(15000, 0))
    assert not same_statistics(decimals(10**37 + 1, 10), decimals(10**37 + 2, 10))


def test_statistics_that_are_no_numbers_do_not_differ_at_a_target() -> None:
    table = Table("shop", "t", storage=Storage(columns=(Column("x", "double"),)))
    source: Statistics = {"x": doubles(NAN, NAN)}
    target: Statistics = {"x": doubles(float("nan"), float("nan"))}
    assert compare_columns(TableName("shop", "t"), "", table, source, target) == []
