"""Sets of partitions that are done: producers mark them at the source, consumers look and wait for them at targets.

with calque.done.after("calque.toml", "sales.orders", ds="2024-01-01"):
    ...                                 # write the day's partitions; marked when the block has succeeded

calque.done.wait("calque.toml", "sales.orders", target="dr", ds="2024-01-01")

`config` is the path of a configuration. Tables are named as at the source, `db.table`; keys of partitions are named
arguments, their values texts, numbers, booleans, dates or times. `target` and `timeout` are no names of keys here: such
keys go into `partition`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from calque.app import APP
from calque.core.policy.patterns import named_table
from calque.plugins.marks.api.functions import Partition, Value, texts
from calque.plugins.marks.api.sets import DoneSets, outside
from calque.plugins.marks.core import Done, NotDone, OutsidePolicy
from calque.plugins.marks.model import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["after", "check", "mark", "wait", "write"]


def mark(config: str | Path, table: str, /, partition: Partition | None = None, **keys: Value) -> Mark:
    """Say that all partitions of the table that match the keys are complete. The mark is durable when this returns.

    Raises `calque.errors.Refused` where the table, a key or a value is not valid, and `Unavailable`, after which it may
    be said again.
    """
    return opened(config).mark(named_table(table), texts(partition, keys))


@contextmanager
def after(config: str | Path, table: str, /, partition: Partition | None = None, **keys: Value) -> Iterator[None]:
    """Mark the set when the block has succeeded, behind the last event of what the block wrote. Where the block raises,
    nothing is marked.

    The configuration, the table and the keys are looked at first, so that a mistake is told before the block runs.
    """
    sets, name, values = opened(config), named_table(table), texts(partition, keys)
    sets.question(name, values, None)
    yield
    sets.mark(name, values)


def check(
    config: str | Path, table: str, /, partition: Partition | None = None, *, target: str | None = None, **keys: Value
) -> Done | NotDone:
    """Tell whether the set is done at `target`, or at the source where None is given. A `NotDone` says why it is not.
    Raises `Refused` where the target does not take the table."""
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
    """Wait until the set is done at `target`, or at the source where None is given; also for a set that is marked only
    later. Raises `Unavailable` after `timeout` seconds; None waits for ever."""
    return opened(config).wait(named_table(table), texts(partition, keys), target, timeout)


def write(
    frame: DataFrame,
    config: str | Path,
    table: str,
    /,
    mark: Partition,
    mode: Literal["append", "overwrite"] = "append",
) -> None:
    """Insert the frame's rows into the table, then mark the set of the partitions that match `mark`. Where the write
    fails, nothing is marked.

    Spark has to know the table by the same name. Columns go by name, and partitions as the rows say (dynamic
    partitions). With `overwrite` each partition that has a row in the frame has only the frame's rows then. Raises what
    Spark raises, and what `calque.done.mark` raises.
    """
    from calque.plugins.marks.api.write_frame import write_within

    write_within(after(config, table, mark), frame, table, mode)


def opened(config: str | Path) -> DoneSets:
    return DoneSets(APP.wiring(APP.load(config)))
