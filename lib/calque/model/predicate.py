"""A predicate over named values: a closed union of frozen values. The functions over it are in
`core.policy.predicates`.

Names are lower-case. In a predicate over partitions they are names of partition keys; in a predicate over a table's
definition they are `type`, `owner`, `location` and `param:<key>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LiteralKind(StrEnum):
    STRING = "a string"
    NUMBER = "a number"
    DATE = "a date"
    BOOLEAN = "a boolean"


class Operator(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a predicate. `text` is its canonical form: a decimal number, an ISO date, `true` or `false`, or the
    string itself."""

    kind: LiteralKind
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    operator: Operator
    literal: Literal


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The test that the partition key `name` has Hive's default partition as its value."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class AllOf:
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    predicates: tuple[Predicate, ...]


Predicate = Comparison | OneOf | IsNull | Not | AllOf | AnyOf
