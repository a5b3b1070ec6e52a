"""Values of partition keys in the form that Hive writes into partition names: `01` of an INT is `1`.

Hive normalises values by the key's type where it makes partitions (`BaseSemanticAnalyzer.validatePartColumnType`): the
value is converted, and the text of the converted value goes into the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal, InvalidOperation

from calque.core.formats.bounded import number_of
from calque.errors import Refused, nearest
from calque.model.hive import Column, Table
from calque.model.names import DEFAULT_PARTITION

WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
"""Bits of each type of whole numbers."""
PARAMETRIC = re.compile(r"(decimal|numeric|varchar|char)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
HUGE = 10**6
"""The number that stands for a length or a precision that no type has."""
LONGEST = 1000
"""Characters of a whole number; longer texts are no values."""
NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
FRACTION = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?", re.ASCII)


def named_partition(table: Table, values: Mapping[str, str], wanted: str) -> dict[str, str]:
    """Return values of some of the table's partition keys by key, in lexical order, each as Hive writes it. `values`
    name keys in any case. Raises `Refused` where a key is none of the table's, or a value is none of its type; `wanted`
    says, for the error, what the keys are for."""
    name = f"{table.database}.{table.name}"
    keys = {column.name.lower(): column for column in table.partition_keys or ()}
    if not keys:
        raise Refused(f"{name} has no partition keys", f"{wanted} speaks of partitions", "Name a partitioned table")
    if not values:
        todo = f"Name one at least of {', '.join(keys)}"
        raise Refused("No partition key is named", f"{wanted} speaks of the partitions that match some of them", todo)
    partition: dict[str, str] = {}
    for given, value in values.items():
        column = keys.get(given.lower())
        if column is None:
            raise Refused(f"{name} has no partition key {given}", nearest(given, keys), "Name a key of its partitions")
        if column.name.lower() in partition:
            raise Refused(f"{column.name} has two values", "Case does not count in names", "Remove one of them")
        partition[column.name.lower()] = as_in_names(column, value)
    return dict(sorted(partition.items()))


def as_in_names(column: Column, value: str) -> str:
    """Return the value as partition names have it, not escaped. Raises `Refused` where it is none of the key's type."""
    kind = column.type.strip().lower()
    if value in ("", DEFAULT_PARTITION):
        return DEFAULT_PARTITION
    convert = converter(kind)
    converted = convert(value) if convert is not None else value
    if converted is None:
        why = f"The partition key {column.name} has the type {column.type}"
        raise Refused(f'"{value}" is no value of {column.name}', why, f"Write a value of {column.type}")
    return converted


def converter(kind: str) -> Callable[[str], str | None] | None:
    """Return the function that converts a value of the type to its text in names, and a text that is no value to None.
    None for types that take any text."""
    if kind in WHOLE:
        return lambda value: whole(value, WHOLE[kind])
    match kind:
        case "boolean":
            return boolean
        case "float" | "double" | "double precision":
            return floating
        case "date":
            return day
        case "timestamp":
            return moment
    parametric = PARAMETRIC.fullmatch(kind)
    if parametric is None:
        return None
    name, size, scale = parametric.groups()
    if name in ("decimal", "numeric"):
        return lambda value: decimal(value, number_of(size or "10", HUGE), number_of(scale or "0", HUGE))
    return lambda value: value if len(value) <= number_of(size or "1", HUGE) else None


def whole(value: str, bits: int) -> str | None:
    if not NUMBER.fullmatch(value.strip()) or len(value) > LONGEST:
        return None
    number = int(value)
    return str(number) if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def boolean(value: str) -> str | None:
    return value.lower() if value.lower() in ("true", "false") else None


def floating(value: str) -> str | None:
    """Return the text that Java writes for a number: 1.0, 1.0E7, 1.0E-4. None for a text that is no number."""
    if not FRACTION.fullmatch(value.strip()):
        return None
    number = float(value)
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return format(Decimal(repr(number)), "f") if "." in format(Decimal(repr(number)), "f") else f"{number:.1f}"
    digits, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"


def decimal(value: str, precision: int, scale: int) -> str | None:
    if not FRACTION.fullmatch(value.strip()):
        return None
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        return None
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    before, _, after = text.lstrip("+-").partition(".")
    fits = len(after) <= scale and len(before.lstrip("0")) <= precision - scale
    return (text if number else "0") if fits else None


def day(value: str) -> str | None:
    parts = DATE.fullmatch(value.strip())
    try:
        return date(*map(int, parts.groups())).isoformat() if parts is not None else None
    except ValueError:
        return None


def moment(value: str) -> str | None:
    """Return the text of a timestamp: fractions of a second end in no zero, and a whole second has none. None for a
    text that is no timestamp."""
    day_text, _, time_text = value.strip().replace("T", " ").partition(" ")
    parts, day_of_it = TIME.fullmatch(time_text or "00:00:00"), day(day_text)
    if parts is None or day_of_it is None:
        return None
    hour, minute, second = map(int, parts.groups()[:3])
    try:
        clock = time(hour, minute, second).isoformat("seconds")
    except ValueError:
        return None
    fraction = (parts[4] or "").rstrip("0")
    return f"{day_of_it} {clock}.{fraction}" if fraction else f"{day_of_it} {clock}"
