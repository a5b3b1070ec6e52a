"""The verification that a target equals its source: object by object, while the source is written to and the target
follows.

A comparison holds because of the order of its reads: the target's position is read first (event p), then the object at
the source and at the target, then the source's newest event id (e). When no event in (p, e] touches the object, the
source had one state of it in all that time, and the target, live at p, showed that state: so all that differs is a
difference. Otherwise the comparison is made again, a bounded number of times.

A difference is reported when it is found twice, `SETTLING` apart: writers place files first and log later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

from calque.core.images.compare import ComparedCounts, Difference, DifferenceKind, common_event, shared_places
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.origin_registry import CatalogWithoutOwnTables, read_origins
from calque.engine.verify.compare_object import ObjectComparer
from calque.engine.verify.comparison import Comparison
from calque.engine.verify.log_journal import LogJournal
from calque.engine.verify.outcomes import TOO_FAST, NotYetComparable, ObjectComparison, Outcome, TargetSnapshot
from calque.engine.verify.report import SkippedObject, Verification, VerifiedObject
from calque.engine.verify.selection import Selection
from calque.engine.verify.touching_events import TouchingEvents
from calque.model.ledger import TableState
from calque.model.names import EventId, Span

READERS = 4
CHUNK = 64
"""The number of objects that are compared by one look at the ledger."""
PAUSE = 0.25
SETTLING = 3.0
"""Seconds between the two findings of a difference."""
PATIENCE = 10.0
"""Seconds without any change of the ledger after which the target is not waited for any more."""
LONGEST = 60.0
"""Seconds after which an object is given up that changes, or is behind, at every look."""
LISTINGS = 3
"""The number of times that objects are added which came to be while others were compared."""


def verify(
    source: SourceSide,
    side: TargetSide,
    tables: Sequence[str] = (),
    data: str = "size",
    *,
    others: Sequence[Comparison] = (),
    patience: float = PATIENCE,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
) -> Verification:
    """Compare both ways what the target takes. `tables` are patterns over names at the source, none means all; `data`
    is "none", "size" or "checksum"; `others` are compared besides. The target is waited for until its ledger has not
    changed for `patience` seconds. `progress` is told how many objects of how many are done.

    Reads only, and asks nothing of capture: the log is read directly. Raises `Unavailable` when a whole side does not
    answer; an object that can't be read is set aside.
    """
    read_origins(source, side)
    source = replace(
        source, catalog=CatalogWithoutOwnTables(source.catalog, side.origins), journal=LogJournal(source.log)
    )
    comparer = ObjectComparer(source, side, data, others)
    with pool(READERS, f"verify-{side.policy.target}") as readers:
        return VerificationRun(comparer, Selection(side, tables), readers, patience, progress).run()


@dataclass(slots=True)
class PendingObject:
    """An object that is not settled. `deferred_since_ns` is when it was first put off, `awaited_event` the first event
    that it waited for, `differences_since_ns` when it was first seen to have these differences."""

    due_ns: int = 0
    deferred_since_ns: int = 0
    tries: int = 0
    awaited_event: EventId = 0
    differences: tuple[Difference, ...] = ()
    differences_since_ns: int = 0


@dataclass(slots=True)
class VerificationRun:
    comparer: ObjectComparer
    selection: Selection
    readers: Executor
    patience: float
    progress: Callable[[int, int], None]
    pending: dict[VerifiedObject, PendingObject] = field(default_factory=dict)
    settled: dict[VerifiedObject, ObjectComparison | SkippedObject] = field(default_factory=dict)
    last_ledger_state: tuple[object, ...] = ()
    ledger_changed_ns: int = 0

    def run(self) -> Verification:
        snapshot = self.first_look()
        self.pending = {
            verified_object: PendingObject()
            for verified_object in self.selection.list(self.comparer.source, snapshot.rows.values())
        }
        upto = snapshot.head
        for _ in range(LISTINGS):
            self.settle()
            after, upto = upto, self.comparer.source.log.current()
            new_objects = self.newcomers(Span(after, upto))
            if not new_objects:
                break
            self.pending = {verified_object: PendingObject() for verified_object in new_objects}
        else:
            upto = after
            self.pending.clear()
        return self.conclusion(upto)

    def first_look(self) -> TargetSnapshot:
        snapshot = self.comparer.look()
        oldest = snapshot.head if snapshot.position is None else min(snapshot.position, snapshot.head)
        self.comparer.touching_events = TouchingEvents(self.comparer.source.log, oldest)
        self.note(snapshot)
        return snapshot

    def newcomers(self, span: Span) -> list[VerifiedObject]:
        touched_objects = self.comparer.touching_events.objects(span)
        return [
            verified_object
            for verified_object in touched_objects
            if verified_object not in self.settled and self.selection.takes(verified_object)
        ]

    def settle(self) -> None:
        """Compare what is pending, again and again, until each object is compared or set aside."""
        clock = self.comparer.source.clock
        while self.pending:
            now_ns = clock.elapsed_ns()
            due_objects = list(
                islice(
                    (verified_object for verified_object, pending in self.pending.items() if pending.due_ns <= now_ns),
                    CHUNK,
                )
            )
            if not due_objects:
                next_due_ns = min(pending.due_ns for pending in self.pending.values())
                clock.sleep(max(next_due_ns - now_ns, 1_000_000) / 1e9)
                continue
            snapshot = self.comparer.look()
            self.note(snapshot)
            outcomes = self.readers.map(self.comparer.attempt, due_objects, repeat(snapshot))
            for verified_object, outcome in zip(due_objects, outcomes, strict=True):
                self.judge(verified_object, outcome, clock.elapsed_ns())
            self.progress(len(self.settled), len(self.settled) + len(self.pending))

    def note(self, snapshot: TargetSnapshot) -> None:
        """Keep the time at which the ledger last said anything new."""
        ledger_state = (snapshot.epoch, snapshot.rows)
        if ledger_state != self.last_ledger_state:
            self.last_ledger_state, self.ledger_changed_ns = ledger_state, self.comparer.source.clock.elapsed_ns()

    def judge(self, verified_object: VerifiedObject, outcome: Outcome, now_ns: int) -> None:
        pending = self.pending[verified_object]
        pending.deferred_since_ns = pending.deferred_since_ns or now_ns
        waited_seconds = (now_ns - pending.deferred_since_ns) / 1e9
        match outcome:
            case SkippedObject():
                self.close(verified_object, outcome)
            case ObjectComparison(differences=()):
                self.close(verified_object, outcome)
            case ObjectComparison() if (
                outcome.differences == pending.differences and now_ns - pending.differences_since_ns >= SETTLING * 1e9
            ):
                self.close(verified_object, outcome)
            case ObjectComparison() if waited_seconds > LONGEST:
                self.close(verified_object, SkippedObject(verified_object.name, TableState.LIVE.value, None, TOO_FAST))
            case ObjectComparison():
                if outcome.differences != pending.differences:
                    pending.differences, pending.differences_since_ns = outcome.differences, now_ns
                pending.due_ns = pending.differences_since_ns + int(SETTLING * 1e9)
            case NotYetComparable():
                quiet_seconds = (now_ns - max(self.ledger_changed_ns, pending.deferred_since_ns)) / 1e9
                self.again(verified_object, outcome, now_ns, waited_seconds > LONGEST or quiet_seconds > self.patience)

    def again(self, verified_object: VerifiedObject, outcome: NotYetComparable, now_ns: int, gives_up: bool) -> None:
        pending = self.pending[verified_object]
        pending.tries += 1
        pending.awaited_event = pending.awaited_event or outcome.awaited_event
        if not gives_up:
            pending.due_ns = now_ns + int(PAUSE * min(pending.tries, 8) * 1e9)
        elif outcome.awaited_event == pending.awaited_event:
            self.close(verified_object, outcome.skipped)
        else:
            self.close(verified_object, replace(outcome.skipped, reason=TOO_FAST))

    def close(self, verified_object: VerifiedObject, outcome: ObjectComparison | SkippedObject) -> None:
        self.settled[verified_object] = outcome
        del self.pending[verified_object]

    def conclusion(self, upto: EventId) -> Verification:
        comparisons = {
            verified_object: outcome
            for verified_object, outcome in self.settled.items()
            if isinstance(outcome, ObjectComparison)
        }
        skipped_objects = [outcome for outcome in self.settled.values() if isinstance(outcome, SkippedObject)]
        skipped_objects += [outcome.skipped for outcome in comparisons.values() if outcome.skipped is not None]
        differences = [difference for outcome in comparisons.values() for difference in outcome.differences]
        spans = [
            self.extended(verified_object, outcome.valid_span, upto)
            for verified_object, outcome in comparisons.items()
            if outcome.valid_span
        ]
        return Verification(
            self.comparer.side.policy.target,
            common_event(spans, upto),
            sum((outcome.counts for outcome in comparisons.values()), ComparedCounts()),
            tuple(sorted([*differences, *self.shared(comparisons)], key=order)),
            tuple(sorted(skipped_objects, key=lambda skipped: skipped.table)),
            tuple((name, one.key, one.value) for name, noted in sorted(self.comparer.notes.items()) for one in noted),
        )

    def extended(self, verified_object: VerifiedObject, span: Span, upto: EventId) -> Span:
        """Return the event ids at which a comparison holds, on to the first event that touched the object after it."""
        if span.upto >= upto:
            return span
        event = self.comparer.touching_events.first(verified_object, Span(span.upto, upto))
        return Span(span.after, event - 1 if event is not None else upto)

    def shared(self, comparisons: Mapping[VerifiedObject, ObjectComparison]) -> list[Difference]:
        """Return a difference for each object that has the directory of another at one time: the first of them is read
        before and after each of the others."""
        places = (
            (verified_object.name, partition, location)
            for verified_object, outcome in comparisons.items()
            for partition, location in outcome.places
        )
        differences = []
        for first, *others in shared_places(places):
            for other in others:
                before, between, after = (self.comparer.location(*one) for one in (first, other, first))
                if before is not None and before == between == after:
                    what = f"location, shared with {' '.join(filter(None, map(str, first)))}"
                    differences.append(Difference(*other, DifferenceKind.DEFINITION, what, None, between))
        return differences


def order(difference: Difference) -> tuple[object, ...]:
    return difference.table, difference.partition, difference.kind, difference.what
