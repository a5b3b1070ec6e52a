"""The names of databases, tables and partitions, and spans of event ids.

Names of databases and tables are case-insensitive in Hive; here they are always lower-case. A partition's name is
Hive's own (`ds=2024-01-01/region=a%2Fb`): keys and values are escaped as in directory names
(`FileUtils.escapePathName`), so that the name identifies the partition and splits unambiguously.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

EventId = int
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
OURS = "_calque"
"""The prefix of names of calque's own objects, which are never replicated or compared."""

ESCAPED = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{[\\]^]")


class TableName(NamedTuple):
    """The name of a table, a view or a function; `table` is empty for the database itself."""

    database: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.table else self.database


def table_name(database: str, table: str = "") -> TableName:
    """Return the name in lower case."""
    return TableName(database.lower(), table.lower())


@dataclass(frozen=True, slots=True)
class Span:
    """The event ids after `after`, up to and including `upto`."""

    after: EventId
    upto: EventId

    def __len__(self) -> int:
        return self.upto - self.after

    def __contains__(self, event_id: object) -> bool:
        return isinstance(event_id, int) and self.after < event_id <= self.upto


def partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """Return Hive's name of the partition with `values` for `keys`. Keys are lower-cased as Hive does."""
    return "/".join(f"{escape_path(key.lower())}={escape_path(value)}" for key, value in zip(keys, values, strict=True))


def partition_values(name: str) -> tuple[str, ...]:
    """Return the values in a partition's name, unescaped."""
    return tuple(unescape_path(part.split("=", 1)[1]) for part in name.split("/"))


def named_values(values: Sequence[str]) -> tuple[str, ...]:
    """Return `partition_values` of the name that the partition with these values has. Lists of values that share a name
    give the same result: an empty value and Hive's default partition are one."""
    return tuple(value or DEFAULT_PARTITION for value in values)


def escape_path(text: str) -> str:
    """Escape a key or a value as `FileUtils.escapePathName` does; the empty value becomes the default partition."""
    if not text:
        return DEFAULT_PARTITION
    return ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape_path(text: str) -> str:
    if "%" not in text:
        return text
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), text)
