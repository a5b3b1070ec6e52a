"""The preparation of large windows in Spark's tasks: the journal's rows are shuffled by the group that they belong to.

The root of a row is the table that its group goes by: its own, or the one to which renames link it. Rows of one root
come to one task, which folds, observes and plans as the driver does for small windows.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_FUNCTION
from calque.core.events.rows import entries_of
from calque.core.states.fold import links_of
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.groups import Group, WindowBounds, prepare_share
from calque.errors import Unavailable
from calque.model.journal import Entry, EventKind
from calque.model.names import Span, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READERS = 4
"""Threads of a task: most of what it waits for is the target's answers."""
SHARES_OF_CORE = 2
"""Shares for each core, so that a core with less work takes another share. Each share opens its own connections."""
GROUPS_OF_ROW = 1_000
"""Prepared groups that come back in one value."""
DESCRIPTION = "spark.job.description"
ON_DRIVER = sorted(kind.value for kind in {*MAY_BE_OF_DATABASE_OR_FUNCTION, EventKind.RENAME_TABLE})
ROOT, GROUPS = "root", "groups"


@dataclass(frozen=True, slots=True)
class WorkerOpening:
    """The functions by which a task of Spark's opens its source and its target. Both have to be functions of modules,
    or a `functools.partial` of such over small values. `rows` returns a span's rows of the journal without their
    messages."""

    sides: Callable[[], tuple[SourceSide, TargetSide]]
    rows: Callable[[Span], pa.Table]


@dataclass(frozen=True, slots=True)
class SparkSpread:
    """The port `engine.window.groups.GroupSpreader` over Spark: tasks prepare the groups of a large window. The driver
    alone reads the entries of renames, databases, functions and unknown kinds."""

    session: Callable[[], SparkSession]
    opening: WorkerOpening

    def __call__(self, cut: WindowBounds) -> tuple[Sequence[Entry], Sequence[Group]]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from calque.adapters.spark.journal_frame import journal_frame
        from calque.adapters.spark.query import rebuilt

        session = self.session()
        context = session.sparkContext
        outer = context.getLocalProperty(DESCRIPTION)
        context.setJobDescription(f"calque: prepare events {cut.span.after + 1} to {cut.span.upto}")
        try:
            frame = journal_frame(session, self.opening.rows, cut.span)
            entries = list(entries_of(frame.where(frame["kind"].isin(ON_DRIVER)).sort("event_id").toArrow()))
            links = links_of(entry for entry in entries if entry.keys.kind is EventKind.RENAME_TABLE)
            shares = SHARES_OF_CORE * context.defaultParallelism
            rooted = with_roots(frame, links).repartition(shares, ROOT)
            prepared = rooted.mapInArrow(TaskOfShare(self.opening, cut), f"{GROUPS} binary").toArrow()
        except (Py4JError, PySparkException) as error:
            raise rebuilt(str(error)) or Unavailable(
                "Spark could not prepare a window", str(error)[:500], "Look at Spark's log; it is tried again"
            ) from error
        finally:
            context.setLocalProperty(DESCRIPTION, outer)  # type: ignore[arg-type]
        driver_entries = [entry for entry in entries if entry.keys.kind in MAY_BE_OF_DATABASE_OR_FUNCTION]
        return driver_entries, in_order(pickle.loads(value) for value in prepared[GROUPS].to_pylist())


def with_roots(frame: DataFrame, links: Mapping[TableName, TableName]) -> DataFrame:
    """Return the rows of tables with the root of each as a column. `links` are the tables to which renames link
    others."""
    from pyspark.sql import functions

    name = functions.concat_ws("\n", "key_database", "key_table")
    rows = frame.where(frame["key_table"].isNotNull())
    if not links:
        return rows.withColumn(ROOT, name)
    pairs = pa.table({"linked": ["\n".join(table) for table in links], ROOT: ["\n".join(to) for to in links.values()]})
    linked = functions.broadcast(frame.sparkSession.createDataFrame(pairs))
    joined = rows.withColumn("own", name).join(linked, functions.col("own") == functions.col("linked"), "left")
    return joined.withColumn(ROOT, functions.coalesce(ROOT, "own")).drop("own", "linked")


@dataclass(frozen=True, slots=True)
class TaskOfShare:
    """The work of one task: it prepares the groups of its rows, which have a column with their roots. The rows stay
    columns; only those of a few roots at a time become entries."""

    opening: WorkerOpening
    cut: WindowBounds

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not (received := list(batches)):
            return
        source, side = self.opening.sides()
        with ThreadPoolExecutor(READERS) as pool:
            groups = prepare_share(source, side, self.cut, by_root(pa.Table.from_batches(received)), pool)
        for start in range(0, len(groups), GROUPS_OF_ROW):
            value = pickle.dumps(groups[start : start + GROUPS_OF_ROW])
            yield pa.record_batch({GROUPS: pa.array([value], pa.binary())})


def by_root(rows: pa.Table) -> Sequence[pa.Table]:
    """Return the rows of each root as a table, in the order of their events."""
    if not rows.num_rows:
        return ()
    numbers = rows[ROOT].combine_chunks().dictionary_encode().indices
    keys = pa.table({"number": numbers, "event_id": rows["event_id"]})
    order = pc.sort_indices(keys, sort_keys=[("number", "ascending"), ("event_id", "ascending")])
    ends = pc.run_end_encode(numbers.take(order)).run_ends.to_pylist()
    ordered = rows.drop_columns(ROOT).take(order)
    return [ordered.slice(start, end - start) for start, end in pairwise([0, *ends])]


def in_order(groups_of_shares: Iterable[Sequence[Group]]) -> Sequence[Group]:
    return sorted((group for share in groups_of_shares for group in share), key=lambda group: group.entries[0].event_id)
