"""Large windows spread over Spark: each task reads the rows of its share of the groups, and prepares these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.files.spark import packed
from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_FUNCTION
from calque.core.events.rows import entries_of
from calque.core.states.fold import links_of
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.groups import Group, WindowBounds, prepare_share
from calque.errors import Unavailable
from calque.model.journal import Entry, EventKind
from calque.model.names import Span, TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READERS = 4
"""Threads of a task: most of what it waits for is the target's answers."""
PIECE = 200_000
"""Rows that are read at a time."""
DESCRIPTION = "spark.job.description"
ON_DRIVER = sorted(kind.value for kind in {*MAY_BE_OF_DATABASE_OR_FUNCTION, EventKind.RENAME_TABLE})


@dataclass(frozen=True, slots=True)
class WorkerOpening:
    """How a task opens its world: functions of modules, or `functools.partial` of such, over small values. `rows` gives
    a span's rows of the journal without their messages."""

    sides: Callable[[], tuple[SourceSide, TargetSide]]
    rows: Callable[[Span], pa.Table]


@dataclass(frozen=True, slots=True)
class SparkSpread:
    """The port `engine.window.groups.GroupSpreader`. The driver makes entries of renames, databases, functions and what
    is not known alone."""

    session: Callable[[], SparkSession]
    opening: WorkerOpening

    def __call__(self, cut: WindowBounds) -> tuple[Sequence[Entry], Sequence[Group]]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from calque.adapters.spark.query import rebuilt

        context = self.session().sparkContext
        driver_entries, shares = of_all_shares(pieces(self.opening, cut.span), context.defaultParallelism)
        opening = self.opening
        outer = context.getLocalProperty(DESCRIPTION)
        context.setJobDescription(
            f"calque: prepare events {cut.span.after + 1} to {cut.span.upto} in {shares.count} shares"
        )
        tasks = context.parallelize(range(shares.count), max(1, shares.count))
        try:
            groups_of_shares = tasks.map(lambda number: prepared_share(opening, cut, shares, number)).collect()
        except (Py4JError, PySparkException) as error:
            raise rebuilt(str(error)) or Unavailable(
                "Spark could not prepare a window", str(error)[:500], "Look at Spark's log; it is tried again"
            ) from error
        finally:
            context.setLocalProperty(DESCRIPTION, outer)  # type: ignore[arg-type]
        return driver_entries, in_order(groups_of_shares)


def pieces(opening: WorkerOpening, span: Span) -> Iterator[pa.Table]:
    """The span's rows, some at a time."""
    for after in range(span.after, span.upto, PIECE):
        yield opening.rows(Span(after, min(after + PIECE, span.upto)))


@dataclass(frozen=True, slots=True)
class Shares:
    """`count` shares of about as many rows each: every task reads all of a window's rows, so that there is one for each
    core. `links` has of each renamed table the name that decides its share, `numbers` which that is."""

    count: int
    links: Mapping[TableName, TableName]
    numbers: Mapping[TableName, int]


def of_all_shares(rows: Iterable[pa.Table], count: int) -> tuple[Sequence[Entry], Shares]:
    """A window's entries of databases and functions, and its tables' shares."""
    kinds = pa.array(ON_DRIVER)
    entries: list[Entry] = []
    rows_of_tables: Counter[TableName] = Counter()
    for rows_of_piece in rows:
        entries += entries_of(rows_of_piece.filter(pc.is_in(rows_of_piece["kind"], kinds)))
        tables, indices = places_of(rows_of_piece, {})
        for counted in pc.value_counts(indices.drop_null()).to_pylist():
            rows_of_tables[tables[counted["values"]]] += counted["counts"]
    links = links_of(entry for entry in entries if entry.keys.kind is EventKind.RENAME_TABLE)
    weights: Counter[TableName] = Counter()
    for table, weight in rows_of_tables.items():
        weights[links.get(table, table)] += weight
    shares = packed(list(weights), weights.__getitem__, count)
    numbers = {table: number for number, share in enumerate(shares) for table in share}
    driver_entries = [entry for entry in entries if entry.keys.kind in MAY_BE_OF_DATABASE_OR_FUNCTION]
    return driver_entries, Shares(len(shares), links, numbers)


def in_order(groups_of_shares: Iterable[Sequence[Group]]) -> Sequence[Group]:
    return sorted((group for share in groups_of_shares for group in share), key=lambda group: group.entries[0].event_id)


def prepared_share(opening: WorkerOpening, cut: WindowBounds, shares: Shares, number: int) -> list[Group]:
    """What one task does. The share's rows stay columns; those of a few tables at a time become entries."""
    source, side = opening.sides()
    rows = pa.concat_tables(share_of(piece, shares, number) for piece in pieces(opening, cut.span))
    with ThreadPoolExecutor(READERS) as pool:
        return prepare_share(source, side, cut, tables_of(rows, shares.links), pool)


def share_of(rows: pa.Table, shares: Shares, number: int) -> pa.Table:
    """The rows of tables that fall to this share; linked ones fall to one."""
    places, indices = places_of(rows, shares.links)
    is_in_share = [shares.numbers[place] == number for place in places]
    return rows.filter(pa.array(is_in_share, pa.bool_()).take(indices))


def tables_of(rows: pa.Table, links: Mapping[TableName, TableName]) -> Sequence[pa.Table]:
    """The rows of each table, or of those that are linked, in the order of their events."""
    places, indices = places_of(rows, links)
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
    numbered = pa.array([numbers[place] for place in places], pa.int32()).take(indices)
    keys = pa.table({"table": numbered, "event_id": rows["event_id"]})
    order = pc.sort_indices(keys, sort_keys=[("table", "ascending"), ("event_id", "ascending")])
    ends = pc.run_end_encode(numbered.take(order)).run_ends.to_pylist()
    ordered = rows.take(order)
    return [ordered.slice(start, end - start) for start, end in pairwise([0, *ends])]


def places_of(rows: pa.Table, links: Mapping[TableName, TableName]) -> tuple[Sequence[TableName], pa.Array]:
    """The names that decide the shares of the rows' tables; for each row which of them is its table's."""
    names = pc.binary_join_element_wise(rows["key_database"], rows["key_table"], "\n").combine_chunks()
    encoded = names.dictionary_encode()
    tables = [TableName(*name.split("\n")) for name in encoded.dictionary.to_pylist()]
    return [links.get(table, table) for table in tables], encoded.indices
