"""Large windows spread over Spark: each task reads the rows of its share of the groups, and prepares these."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from calque.core.rows import entries_of
from calque.engine.spread import BESIDE, Cut, Group, links_of, prepare_share
from calque.engine.world import SourceSide, TargetSide
from calque.errors import Unavailable
from calque.model.journal import Entry, Kind
from calque.model.names import Span, TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READERS = 4
"""Threads of a task: most of what it waits for is the target's answers."""
SHARES_PER_CORE = 3
"""Hot tables make shares unequal; with several for each core none waits long for another."""
ON_DRIVER = sorted(kind.value for kind in {*BESIDE, Kind.RENAME_TABLE, Kind.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Opening:
    """How a task opens its world: functions of modules, or `functools.partial` of such, over small values. `rows` gives
    a span's rows of the journal without their messages."""

    sides: Callable[[], tuple[SourceSide, TargetSide]]
    rows: Callable[[Span], pa.Table]


@dataclass(frozen=True, slots=True)
class SparkSpread:
    """The port `engine.spread.Spread`. The driver makes entries of renames, databases, functions and what is not known
    alone."""

    session: Callable[[], SparkSession]
    opening: Opening

    def __call__(self, cut: Cut) -> tuple[Sequence[Entry], Sequence[Group]]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from calque.adapters.spark.query import rebuilt

        beside, links = of_all_shares(self.opening.rows(cut.span))
        context = self.session().sparkContext
        shares = context.defaultParallelism * SHARES_PER_CORE
        opening = self.opening
        tasks = context.parallelize(range(shares), shares)
        try:
            found = tasks.map(lambda number: prepared_share(opening, cut, links, number, shares)).collect()
        except (Py4JError, PySparkException) as error:
            raise rebuilt(str(error)) or Unavailable(
                "Spark could not prepare a window", str(error)[:500], "Look at Spark's log; it is tried again"
            ) from error
        return beside, in_order(found)


def of_all_shares(rows: pa.Table) -> tuple[Sequence[Entry], Mapping[TableName, TableName]]:
    """A window's entries of databases and functions; of each renamed table the name that decides its share."""
    entries = list(entries_of(rows.filter(pc.is_in(rows["kind"], pa.array(ON_DRIVER)))))
    beside = [entry for entry in entries if entry.keys.kind in {*BESIDE, Kind.UNKNOWN}]
    return beside, links_of(entry for entry in entries if entry.keys.kind is Kind.RENAME_TABLE)


def in_order(found: Iterable[Sequence[Group]]) -> Sequence[Group]:
    return sorted((group for share in found for group in share), key=lambda group: group.entries[0].event_id)


def prepared_share(
    opening: Opening, cut: Cut, links: Mapping[TableName, TableName], number: int, shares: int
) -> list[Group]:
    """What one task does."""
    source, side = opening.sides()
    entries = entries_of(share_of(opening.rows(cut.span), links, number, shares))
    with ThreadPoolExecutor(READERS) as pool:
        return prepare_share(source, side, cut, entries, pool)


def share_of(rows: pa.Table, links: Mapping[TableName, TableName], number: int, shares: int) -> pa.Table:
    """The rows of tables that fall to this share; linked ones fall to one."""
    names = pc.binary_join_element_wise(rows["key_database"], rows["key_table"], "\n").combine_chunks()
    encoded = names.dictionary_encode()
    tables = [TableName(*name.split("\n")) for name in encoded.dictionary.to_pylist()]
    mine = [zlib.crc32(str(links.get(table, table)).encode()) % shares == number for table in tables]
    return rows.filter(pa.array(mine, pa.bool_()).take(encoded.indices))
