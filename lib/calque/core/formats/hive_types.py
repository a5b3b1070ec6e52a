"""Hive's types, parsed from the metastore's texts: `map<string,decimal(10,2)>`.

Source: the grammar in Hive's `TypeInfoUtils.TypeInfoParser`. Names of types count in any case; those of a struct's
fields keep theirs, because Spark writes them so. A text that is no type of columns in this grammar is `Other`, never an
error, and so is a type in which types lie more than `DEEPEST` levels deep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from calque.core.formats.bounded import number_of
from calque.core.formats.partition_values import PARAMETRIC
from calque.model.bounds import DEEPEST

SYNONYMS = {"integer": "int", "double precision": "double", "numeric": "decimal"}
PRIMITIVES = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"}
)
NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts, by its one name in Hive (`int`, never `integer`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Array:
    element: HiveType


@dataclass(frozen=True, slots=True)
class Map:
    key: HiveType
    value: HiveType


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[tuple[str, HiveType], ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A type that few readers know (char, varchar, unions, intervals, void), or a text that can't be parsed."""

    text: str


HiveType = Primitive | Decimal | Array | Map | Struct | Other


@lru_cache(4096)
def parse_type(text: str) -> HiveType:
    """Parse a type. Never raises: a text without a known type is `Other`."""
    stripped = text.strip()
    if depth_of(stripped) > DEEPEST:
        return Other(stripped)
    if nested := NESTED.fullmatch(stripped):
        return nested_type(nested[1].lower(), split(nested[2])) or Other(stripped)
    name = stripped.lower()
    name = SYNONYMS.get(name, name)
    if name in PRIMITIVES:
        return Primitive(name)
    parametric = PARAMETRIC.fullmatch(name)
    if parametric and parametric[1] in ("decimal", "numeric"):
        precision, scale = number_of(parametric[2] or "10", 10_000), number_of(parametric[3] or "0", 10_000)
        if scale <= precision <= MOST_DIGITS and precision:
            return Decimal(precision, scale)
    return Other(stripped)


def depth_of(text: str) -> int:
    """Return the greatest number of angle brackets that are open at once; 0 without counting where they can't exceed
    `DEEPEST`."""
    if text.count("<") <= DEEPEST:
        return 0
    depth = deepest = 0
    for bracket in re.findall("[<>]", text):
        depth += 1 if bracket == "<" else -1
        deepest = max(deepest, depth)
    return deepest


def nested_type(name: str, parts: list[str]) -> HiveType | None:
    match name, parts:
        case "array", [element]:
            return Array(parse_type(element))
        case "map", [key, value]:
            return Map(parse_type(key), parse_type(value))
        case "struct", _:
            pairs = [part.partition(":") for part in parts]
            if all(field.strip() and colon for field, colon, _ in pairs):
                return Struct(tuple((field.strip(), parse_type(kind)) for field, _, kind in pairs))
    return None


def split(text: str) -> list[str]:
    """Split the text at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def type_text(kind: HiveType) -> str:
    """Return the type's text as Hive writes it; `parse_type` of it is `kind` again."""
    match kind:
        case Primitive(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array<{type_text(element)}>"
        case Map(key, value):
            return f"map<{type_text(key)},{type_text(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{name}:{type_text(field)}' for name, field in fields)}>"
        case Other(text):
            return text


def others(kind: HiveType) -> list[str]:
    """Return the texts of all parts of the type that are `Other`."""
    match kind:
        case Other(text):
            return [text]
        case Array(element):
            return others(element)
        case Map(key, value):
            return others(key) + others(value)
        case Struct(fields):
            return [text for _, field in fields for text in others(field)]
    return []


def same_but_case(one: HiveType, other: HiveType) -> bool:
    """Tell whether the types are equal but for the case of struct fields' names."""
    return type_text(one).lower() == type_text(other).lower()
