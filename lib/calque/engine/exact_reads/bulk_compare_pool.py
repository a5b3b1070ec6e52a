"""The comparisons beside the windows: batches of tables on the pool of readers, which count first what the target would
lose.

Nothing is dropped before all batches are through: tables that would lose objects wait until it is known how much all of
them would lose.
"""

from __future__ import annotations

import logging
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from calque.core.defects import traceback_of, work_on
from calque.core.plan.limits import batches
from calque.engine.apply import AppliedChanges
from calque.engine.exact_reads.bulk_compare import BATCH, BulkComparison, JournaledDrops, compare_in_bulk, other_facets
from calque.engine.exact_reads.pool import ExactReadPool, ReadOutcome
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.advance import GroupOutcome
from calque.engine.window.failures import FAILURES, Failure
from calque.model.names import EventId, TableName
from calque.model.plan import GroupPlan

LOG = logging.getLogger(__name__)
LEAST = 10
"""The least number of drops that may be too many; fewer do not wait for an operator because of their number."""
FACETED, PAGES = 20, 2
"""Tables whose facets are compared in one go, and how many such pages at a time: there are many calls for each, and
tables that must be read are not to wait for them."""
SMALLEST, SHARES = 10, 16
"""The size of the smallest batch, and the number of batches that tables are divided into where the batches are neither
smaller than that nor larger than `BATCH`: so all readers have work."""
TRIES = 4
"""The number of failures after which a batch is halved; one table alone is read without being counted."""


@dataclass(frozen=True, slots=True)
class PendingDrops:
    """The losses that a whole comparison found: `loss_counts` has the objects that each table would lose by difference,
    and `objects` is the number of all at the target."""

    loss_counts: dict[TableName, int]
    objects: int
    gone: frozenset[TableName] = frozenset()
    """Tables of which the source has nothing."""

    @property
    def total(self) -> int:
        return sum(self.loss_counts.values())

    def are_too_many(self, share: float) -> bool:
        """Tell whether the losses wait for an operator: there are at least `LEAST`, and more than `share` of all
        objects."""
        return self.total >= LEAST and self.total > share * self.objects

    def whole_databases(self, shown: Iterable[TableName]) -> frozenset[str]:
        """Return the databases of which no table that is `shown` would be left."""
        left = {name.database for name in shown if name not in self.gone}
        return frozenset(name.database for name in self.gone if name.database not in left)


@dataclass(frozen=True, slots=True)
class FacetComparison:
    """Tables whose facets were compared, and those of them that differ."""

    names: tuple[TableName, ...]
    others: tuple[TableName, ...] = ()


@dataclass(slots=True)
class BulkComparePool:
    """The comparisons of one target that go on beside its windows. `wake` is called after each batch. Readers' threads
    call `run` and `run_facets`, and what these call; all else is for one thread."""

    source: SourceSide
    side: TargetSide
    reading: ExactReadPool
    begin: Callable[[], EventId]
    wake: Callable[[], None]
    results: queue.Queue[BulkComparison] = field(default_factory=queue.Queue)
    names: frozenset[TableName] = frozenset()
    """The tables that the last call of `start` began to compare."""
    remaining: set[TableName] = field(default_factory=set)
    """Tables whose batch has not been compared to its end."""
    loss_counts: dict[TableName, int] = field(default_factory=dict)
    objects: int = 0
    gone: set[TableName] = field(default_factory=set)
    """Tables in `loss_counts` of which the source has nothing."""
    dropped: JournaledDrops | None = None
    exactly: frozenset[TableName] = frozenset()
    equal: list[TableName] = field(default_factory=list)
    facets: queue.Queue[FacetComparison] = field(default_factory=queue.Queue)
    faceting: set[TableName] = field(default_factory=set)
    """Tables whose statistics and constraints are still to be compared."""
    pages: deque[Sequence[TableName]] = field(default_factory=deque)
    """Pages of the tables whose facets are to be compared, which no reader has begun with."""

    def start(self, names: Sequence[TableName], exactly: Sequence[TableName] = ()) -> None:
        """Begin to compare the tables. Those of `exactly` are compared only to count what they would lose, and are read
        even where they are equal."""
        todo = sorted({*names, *exactly})
        self.names, self.remaining, self.exactly = frozenset(todo), {*todo}, frozenset(exactly)
        self.loss_counts, self.objects, self.equal, self.gone = {}, 0, [], set()
        self.dropped = JournaledDrops(self.source.journal, self.begin())
        for batch in batches(todo, min(BATCH, max(SMALLEST, len(todo) // SHARES))):
            self.submit(batch, 0)

    def is_under_way(self) -> bool:
        return bool(self.remaining)

    def is_busy(self) -> bool:
        """Tell whether tables or their facets are still to be compared."""
        return bool(self.remaining or self.faceting)

    def submit(self, batch: Sequence[TableName], tries: int) -> None:
        self.reading.begin(self.run, batch, tries)

    def run(self, batch: Sequence[TableName], tries: int) -> None:
        """Compare a batch, on a reader's thread. A batch that fails is tried again, in the end table by table."""
        assert self.dropped is not None
        if self.reading.stopping.wait(min(0.2 * 2**tries, 30.0) if tries else 0.0):
            return
        try:
            with work_on(comparison_of(batch), *FAILURES):
                reader = self.reading.target_reader
                comparison = compare_in_bulk(self.source, self.side, batch, self.dropped, reader)
            self.results.put(comparison)
        except FAILURES as error:
            self.failed(batch, tries + 1, error)
        self.wake()

    def failed(self, batch: Sequence[TableName], tries: int, error: Failure) -> None:
        text = "%s: comparing %d tables failed: %s"
        LOG.info(text, self.side.policy.target, len(batch), error, exc_info=traceback_of(error))
        if tries < TRIES:
            self.submit(batch, tries)
        elif len(batch) > 1:
            middle = len(batch) // 2
            self.submit(batch[:middle], 1)
            self.submit(batch[middle:], 1)
        else:
            self.results.put(BulkComparison(0, (), tuple(batch)))

    def drain(self) -> Iterator[TableName]:
        """Take the results so far: tables that are equal join the finished reads; those of the others that lose nothing
        are yielded, to be read."""
        while True:
            try:
                comparison = self.results.get_nowait()
            except queue.Empty:
                return
            self.remaining -= {*comparison.equal, *comparison.others}
            self.loss_counts |= comparison.loss_counts
            self.objects += comparison.objects
            self.gone |= comparison.gone
            for name in comparison.equal:
                if name in self.exactly:
                    yield name
                else:
                    self.equal.append(name)
                    self.reading.finished.put(as_read(name, comparison.event_id))
            yield from (name for name in comparison.others if name not in comparison.loss_counts)

    def pending_drops(self) -> PendingDrops:
        """Return what the tables would lose. The answer is complete once the last batch is through (`is_counted`)."""
        return PendingDrops(dict(self.loss_counts), self.objects, frozenset(self.gone))

    def settle(self) -> None:
        """Forget the losses, which have been dealt with."""
        self.loss_counts, self.dropped = {}, None

    def has_news(self) -> bool:
        return not self.results.empty() or not self.facets.empty() or self.is_counted()

    def start_facets(self, names: Sequence[TableName]) -> None:
        """Begin to compare column statistics and constraints of tables that are live. The comparison in bulk does not
        look at them, because both cost many calls for a table."""
        self.equal = []
        self.faceting |= {*names}
        self.pages.extend(batches(names, FACETED))
        for _ in range(PAGES):
            self.next_facets()

    def next_facets(self) -> None:
        try:
            page = self.pages.popleft()
        except IndexError:
            return
        self.submit_facets(page, 0)

    def submit_facets(self, page: Sequence[TableName], tries: int) -> None:
        self.reading.begin(self.run_facets, page, tries)

    def run_facets(self, page: Sequence[TableName], tries: int) -> None:
        """Compare the facets of a page of tables, on a reader's thread. Facets that can't be compared in `TRIES`
        attempts are left as they are; `verify` reports them where they differ."""
        if self.reading.stopping.wait(0.2 * 2**tries if tries else 0.0):
            return
        try:
            with work_on(comparison_of(page), *FAILURES):
                others = tuple(other_facets(self.source, self.side, page))
            self.facets.put(FacetComparison(tuple(page), others))
        except FAILURES as error:
            text = "%s: comparing facets failed: %s"
            LOG.warning(text, self.side.policy.target, error, exc_info=traceback_of(error))
            if tries + 1 < TRIES:
                self.submit_facets(page, tries + 1)
                return
            self.facets.put(FacetComparison(tuple(page)))
        self.next_facets()
        self.wake()

    def drain_facets(self) -> Iterator[TableName]:
        """Yield the tables whose facets were found to differ since the last call."""
        while True:
            try:
                comparison = self.facets.get_nowait()
            except queue.Empty:
                return
            self.faceting -= {*comparison.names}
            yield from comparison.others

    def is_counted(self) -> bool:
        """Tell whether the last batch is through and the losses have not been dealt with."""
        return self.dropped is not None and not self.remaining


def comparison_of(names: Sequence[TableName]) -> str:
    """Return the name of the work of comparing these tables."""
    return f"comparison of {len(names)} tables from {names[0]} on"


def as_read(name: TableName, event_id: EventId) -> ReadOutcome:
    """Return an equal table as the outcome of a read that had nothing to do."""
    return ReadOutcome(
        name, event_id, GroupOutcome((name,), GroupPlan((), 0), True, event_id, frozenset({name}), AppliedChanges())
    )
