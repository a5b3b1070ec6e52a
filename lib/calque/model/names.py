"""How things are called: tables, partitions, spans.

Names of databases and tables are case-insensitive in Hive; here they are always lower-case.
A partition's name is Hive's own (`ds=2024-01-01/region=a%2Fb`): keys and values escaped as in directory names
(`FileUtils.escapePathName`), so that it identifies the partition and splits unambiguously.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

EventId = int
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
OURS = "_calque"
"""Objects whose name begins so belong to calque and are never replicated or compared."""

ESCAPED = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{[\\]^]")


class TableName(NamedTuple):
    """A table's (or function's) name; `table` is empty for the database itself."""

    database: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.table else self.database


def table_name(database: str, table: str = "") -> TableName:
    """The lower-case name."""
    return TableName(database.lower(), table.lower())


@dataclass(frozen=True, slots=True)
class Span:
    """Event ids after `after` up to and including `upto`."""

    after: EventId
    upto: EventId

    def __len__(self) -> int:
        return self.upto - self.after

    def __contains__(self, event_id: object) -> bool:
        return isinstance(event_id, int) and self.after < event_id <= self.upto


def partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """Hive's name of the partition with `values` for `keys`; keys are lower-cased as Hive does."""
    return "/".join(f"{escape_path(key.lower())}={escape_path(value)}" for key, value in zip(keys, values, strict=True))


def partition_values(name: str) -> tuple[str, ...]:
    """The values in a partition's name, unescaped."""
    return tuple(unescape_path(part.split("=", 1)[1]) for part in name.split("/"))


def named_values(values: Sequence[str]) -> tuple[str, ...]:
    """`partition_values` of the name of the partition with these values: lists that it is equal for have one name."""
    return tuple(value or DEFAULT_PARTITION for value in values)


def escape_path(text: str) -> str:
    """`FileUtils.escapePathName`; the empty value is the default partition."""
    if not text:
        return DEFAULT_PARTITION
    return ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape_path(text: str) -> str:
    if "%" not in text:
        return text
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), text)
