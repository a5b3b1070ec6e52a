"""Predicates over partition keys and table definitions: typed, and evaluated. `predicate_parser` parses them.

A predicate is true, false, or unknown (`None`) as in SQL: a comparison with a missing value is unknown, and callers
take only partitions and tables for which the predicate is true. The literal decides how values are compared: numbers as
numbers, dates and strings by their text, which for dates gives the same order. `misfit` says where a literal does not
fit the key's type, so that Hive would compare otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import assert_never

from calque.errors import Refused, nearest
from calque.model.names import DEFAULT_PARTITION, unescape_path
from calque.model.predicate import (
    AllOf,
    AnyOf,
    Comparison,
    IsNull,
    Literal,
    LiteralKind,
    Not,
    OneOf,
    Operator,
    Predicate,
)

Values = Mapping[str, str | None]
Scalar = str | Decimal
PARAMETER = "param"
INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
NUMBERS = INTEGERS | {"float", "double", "decimal"}
STRINGS = frozenset({"string", "varchar", "char"})


def number(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_date(text: str) -> bool:
    try:
        return DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


# What it says of values


def holds(predicate: Predicate, values: Values) -> bool | None:
    """Return whether the predicate is true of the values; None where that is unknown. `values` must have every name of
    the predicate, with None for a missing value: else `KeyError`."""
    match predicate:
        case Comparison(name, operator, literal):
            return compared(values[name], operator, literal)
        case OneOf(name, literals):
            value = values[name]
            return _any(compared(value, Operator.EQUAL, literal) for literal in literals)
        case IsNull(name):
            return values[name] is None
        case Not(inner):
            result = holds(inner, values)
            return None if result is None else not result
        case AllOf(predicates):
            result = _any(_negated(holds(inner, values)) for inner in predicates)
            return _negated(result)
        case AnyOf(predicates):
            return _any(holds(inner, values) for inner in predicates)
        case _:
            assert_never(predicate)


def _negated(result: bool | None) -> bool | None:
    return None if result is None else not result


def _any(results: Iterator[bool | None]) -> bool | None:
    is_unknown = False
    for result in results:
        if result:
            return True
        is_unknown |= result is None
    return None if is_unknown else False


def compared(value: str | None, operator: Operator, literal: Literal) -> bool | None:
    if value is None:
        return None
    one: Scalar | None
    other: Scalar | None
    match literal.kind:
        case LiteralKind.NUMBER:
            one, other = number(value), number(literal.text)
        case LiteralKind.BOOLEAN:
            one, other = value.lower(), literal.text
        case LiteralKind.DATE | LiteralKind.STRING:
            one, other = value, literal.text
        case _:
            assert_never(literal.kind)
    if one is None or other is None:
        return None
    match operator:
        case Operator.EQUAL:
            return one == other
        case Operator.NOT_EQUAL:
            return one != other
        case Operator.LESS:
            return bool(one < other)  # type: ignore[operator]
        case Operator.AT_MOST:
            return bool(one <= other)  # type: ignore[operator]
        case Operator.GREATER:
            return bool(one > other)  # type: ignore[operator]
        case Operator.AT_LEAST:
            return bool(one >= other)  # type: ignore[operator]
        case _:
            assert_never(operator)


def not_true(predicate: Predicate) -> Predicate:
    """Return a predicate that is true exactly where `predicate` is false or unknown, for values that are of the
    literals' types."""
    match predicate:
        case Not(inner):
            return not_false(inner)
        case AllOf(predicates):
            return AnyOf(tuple(map(not_true, predicates)))
        case AnyOf(predicates):
            return AllOf(tuple(map(not_true, predicates)))
        case IsNull():
            return Not(predicate)
        case Comparison(name) | OneOf(name):
            return AnyOf((Not(predicate), IsNull(name)))
        case _:
            assert_never(predicate)


def not_false(predicate: Predicate) -> Predicate:
    """Return a predicate that is true exactly where `predicate` is true or unknown, for values that are of the
    literals' types."""
    match predicate:
        case Not(inner):
            return not_true(inner)
        case AllOf(predicates):
            return AllOf(tuple(map(not_false, predicates)))
        case AnyOf(predicates):
            return AnyOf(tuple(map(not_false, predicates)))
        case IsNull():
            return predicate
        case Comparison(name) | OneOf(name):
            return AnyOf((predicate, IsNull(name)))
        case _:
            assert_never(predicate)


def predicate_text(predicate: Predicate) -> str:
    """Return the text of a predicate over partition keys, in the form that `parse_predicate` reads."""
    match predicate:
        case Comparison(name, operator, literal):
            return f"{quoted_name(name)} {operator.value} {literal_text(literal)}"
        case OneOf(name, literals):
            return f"{quoted_name(name)} IN ({', '.join(map(literal_text, literals))})"
        case IsNull(name):
            return f"{quoted_name(name)} IS NULL"
        case Not(inner):
            return f"NOT ({predicate_text(inner)})"
        case AllOf(predicates):
            return " AND ".join(f"({predicate_text(inner)})" for inner in predicates)
        case AnyOf(predicates):
            return " OR ".join(f"({predicate_text(inner)})" for inner in predicates)
        case _:
            assert_never(predicate)


def quoted_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def literal_text(literal: Literal) -> str:
    match literal.kind:
        case LiteralKind.STRING:
            return "'" + literal.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case LiteralKind.DATE:
            return f"DATE '{literal.text}'"
        case LiteralKind.NUMBER | LiteralKind.BOOLEAN:
            return literal.text
        case _:
            assert_never(literal.kind)


def keys_of_partition(name: str) -> dict[str, str | None]:
    """Return the values in a partition's name by key, both unescaped; None for Hive's default partition."""
    values: dict[str, str | None] = {}
    for part in name.split("/"):
        key, _, value = part.partition("=")
        unescaped = unescape_path(value)
        values[unescape_path(key)] = None if unescaped == DEFAULT_PARTITION else unescaped
    return values


def names_in(predicate: Predicate) -> frozenset[str]:
    return frozenset(name for name, _ in _operands(predicate))


def misfit(predicate: Predicate, types: Mapping[str, str]) -> str:
    """Say why the predicate does not fit partition keys of these Hive types (by lower-case name); empty where it
    does."""
    for name, literal in _operands(predicate):
        if name not in types:
            return f"{name} is no partition key"
        if literal is not None and not fits(literal, types[name]):
            return f"{literal.text!r} is {literal.kind.value}, and {name} is of type {types[name]}"
    return ""


def fits(literal: Literal, hive_type: str) -> bool:
    root = hive_type.lower().partition("(")[0].strip()
    match literal.kind:
        case LiteralKind.STRING:
            return root in STRINGS or (root == "date" and is_date(literal.text)) or root == "timestamp"
        case LiteralKind.NUMBER:
            return root in NUMBERS
        case LiteralKind.DATE:
            return root in ("date", *STRINGS)
        case LiteralKind.BOOLEAN:
            return root == "boolean"
        case _:
            assert_never(literal.kind)


def unknown_name(predicate: Predicate, names: Collection[str]) -> Refused | None:
    """Return the error for a name of the predicate that is no parameter and not in `names`; None where it has no such
    name."""
    for name in sorted(names_in(predicate)):
        if name not in names and not name.startswith(f"{PARAMETER}:"):
            return Refused(
                f'"{name}" can\'t be asked for', nearest(name, names), f"Names are {', '.join(sorted(names))}"
            )
    return None


def _operands(predicate: Predicate) -> Iterator[tuple[str, Literal | None]]:
    match predicate:
        case Comparison(name, _, literal):
            yield name, literal
        case OneOf(name, literals):
            yield from ((name, literal) for literal in literals)
        case IsNull(name):
            yield name, None
        case Not(inner):
            yield from _operands(inner)
        case AllOf(predicates) | AnyOf(predicates):
            for inner in predicates:
                yield from _operands(inner)
        case _:
            assert_never(predicate)
