"""Marks for programs: `calque.done.mark`, `after`, `check` and `wait`.

`config` is the path of a configuration. Tables are named as at the source, `db.table`; keys of partitions are named
arguments, their values texts, numbers, booleans, dates or times. `target` and `timeout` are no names of keys here: such
keys go into `partition`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from calque.config import load
from calque.core.policy.patterns import named_table
from calque.errors import Refused
from calque.model.names import DEFAULT_PARTITION
from calque.plugins.marks.api.sets import DoneSets, outside
from calque.plugins.marks.core import Done, NotDone, OutsidePolicy
from calque.plugins.marks.model import Mark

Value = str | int | float | bool | datetime.date | datetime.datetime | None
Partition = Mapping[str, Value]


def mark(config: str | Path, table: str, /, partition: Partition | None = None, **keys: Value) -> Mark:
    """Say that all partitions of the table that match the keys are complete. It is durable when this returns.

    Raises `calque.errors.Refused` where the table, a key or a value is none, and `Unavailable`, after which it may be
    said again."""
    return opened(config).mark(named_table(table), texts(partition, keys))


@contextmanager
def after(config: str | Path, table: str, /, partition: Partition | None = None, **keys: Value) -> Iterator[None]:
    """Mark the set when the block has succeeded, behind the last event of what it wrote; not at all where it raised.

    The configuration, the table and the keys are looked at first, so that a mistake is told before the block runs."""
    sets, name, values = opened(config), named_table(table), texts(partition, keys)
    sets.question(name, values, None)
    yield
    sets.mark(name, values)


def check(
    config: str | Path, table: str, /, partition: Partition | None = None, *, target: str | None = None, **keys: Value
) -> Done | NotDone:
    """Whether the set is done: at the target, or where none is named at the source. `NotDone` says why. Raises
    `Refused` where the target does not take the table."""
    verdict = opened(config).verdict(named_table(table), texts(partition, keys), target)
    if isinstance(verdict, OutsidePolicy):
        raise outside(verdict, target)
    return verdict


def wait(
    config: str | Path,
    table: str,
    /,
    partition: Partition | None = None,
    *,
    target: str | None = None,
    timeout: float | None = None,
    **keys: Value,
) -> Done:
    """Return as soon as the set is done, also one that is marked only later. Raises `Unavailable` after `timeout`
    seconds."""
    return opened(config).wait(named_table(table), texts(partition, keys), target, timeout)


def opened(config: str | Path) -> DoneSets:
    return DoneSets.of(load(config))


def texts(partition: Partition | None, keys: Partition) -> dict[str, str]:
    """The keys with their values as texts. Raises `Refused` for a key that is given twice."""
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
