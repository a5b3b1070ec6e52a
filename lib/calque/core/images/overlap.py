"""Overlap of two policies: do both write one name? Two targets in one metastore must not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from string import ascii_lowercase, digits

from calque.core.policy.admit import Admission
from calque.core.policy.patterns import Expression, Glob
from calque.model.names import TableName

ALPHABET = frozenset(ascii_lowercase + digits + "_")
Symbol = frozenset[str] | None
"""The characters that may stand at one place; None for `*`."""


@dataclass(frozen=True, slots=True)
class SharedName:
    """A name at the target that two policies would write, or a regular expression that both include. `pattern` is the
    text for people: the name, or a glob such as `sales.*` where the name is only an example of it."""

    name: str
    pattern: str


def shared_name(one: Admission, other: Admission) -> SharedName | None:
    """Return a name at the target that both policies would write, or None when none was found.

    A name that is returned is certainly written by both, or is a regular expression that both include. Globs are
    compared exactly but for excludes. For regular expressions only equal ones are found, and names that globs and plain
    names of the other side suggest.
    """
    for name, pattern in _suggestions(one, other):
        if one.source_of(name) and other.source_of(name):
            return SharedName(str(name), pattern)
    equal = _expressions(one) & _expressions(other)
    if equal and one.policy.rename == other.policy.rename and one.policy.exclude == other.policy.exclude:
        return SharedName(f"/{min(equal)}/", f"/{min(equal)}/")
    return None


def common_text(one: str, other: str) -> str | None:
    """Return a text that both globs (lower-case) match, or None."""
    return _meet(_symbols(one), _symbols(other))


def _suggestions(one: Admission, other: Admission) -> Iterator[tuple[TableName, str]]:
    """Yield names that both may write, each with its `SharedName.pattern`."""
    for side in (one, other):
        for name in (side.name_at_target(name) for name in side.named() if name.table):
            yield name, str(name)
    for first_database, first_table in _images(one):
        for second_database, second_table in _images(other):
            database = common_text(first_database, second_database)
            table = common_text(first_table, second_table)
            if database and table:
                shown_database = "*" if first_database == second_database == "*" else database
                shown_table = "*" if first_table == second_table == "*" else table
                yield TableName(database, table), f"{shown_database}.{shown_table}"


def _images(admission: Admission) -> Iterator[tuple[str, str]]:
    """Yield the include patterns as globs over names at the target; wider than the truth, never narrower."""
    for pattern in admission.include:
        glob = (pattern.database, pattern.table) if isinstance(pattern, Glob) else ("*", "*")
        yield glob
        for old, new in admission.databases.items():
            if common_text(glob[0], old):
                yield new, glob[1]


def _expressions(admission: Admission) -> set[str]:
    return {pattern.text for pattern in admission.include if isinstance(pattern, Expression)}


def _symbols(glob: str) -> tuple[Symbol, ...]:
    parts = re.findall(r"\[!?[^\]]+\]|.", glob)
    symbols: list[Symbol] = [None if part == "*" else _characters(part) for part in parts]
    if not any(symbols):
        symbols.insert(0, ALPHABET)
    return tuple(symbols)


def _characters(part: str) -> frozenset[str]:
    if part == "?" or part.startswith("["):
        return frozenset(character for character in ALPHABET if fnmatchcase(character, part))
    return frozenset(part)


def _meet(one: tuple[Symbol, ...], other: tuple[Symbol, ...]) -> str | None:
    """Return a text that both globs match, or None, by a walk through both at once: a `*` takes a character and stays,
    or is left behind."""

    @cache
    def walk(left: int, right: int) -> str | None:
        if left < len(one) and one[left] is None and (suffix := walk(left + 1, right)) is not None:
            return suffix
        if right < len(other) and other[right] is None and (suffix := walk(left, right + 1)) is not None:
            return suffix
        if left == len(one) or right == len(other):
            return "" if left == len(one) and right == len(other) else None
        left_symbol, right_symbol = one[left], other[right]
        common = (
            right_symbol if left_symbol is None else left_symbol if right_symbol is None else left_symbol & right_symbol
        )
        suffix = walk(left + (left_symbol is not None), right + (right_symbol is not None)) if common else None
        return max(common) + suffix if common and suffix is not None else None

    return walk(0, 0)
