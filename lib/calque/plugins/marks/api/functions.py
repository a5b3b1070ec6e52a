"""The values of partition keys as programs give them, turned into Hive's texts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from calque.errors import Refused
from calque.model.names import DEFAULT_PARTITION

Value = str | int | float | bool | datetime.date | datetime.datetime | None
Partition = Mapping[str, Value]


def texts(partition: Partition | None, keys: Partition) -> dict[str, str]:
    """Return all keys with their values as texts. Raises `Refused` for a key that is in `partition` and in `keys`."""
    values = {key: text_of(value) for key, value in (partition or {}).items()}
    for key, value in keys.items():
        if key in values:
            raise Refused(f"{key} has two values", "It is in partition, and a named argument", "Remove one of them")
        values[key] = text_of(value)
    return values


def text_of(value: Value) -> str:
    match value:
        case None:
            return DEFAULT_PARTITION
        case bool():
            return str(value).lower()
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date():
            return value.isoformat()
    return str(value)
