"""Does a target equal its source? Object by object, while the source is written to and the target follows.

What makes a comparison hold: the target's position is read first (event p), then the object at the source and at the
target, then the source's newest event id (e). When no event in (p, e] touches the object, the source had one state of
it in all that time, and the target, live at p, showed that state: whatever differs is a difference. Otherwise the
comparison is made again, a bounded number of times.

A difference is reported when it is found twice, `SETTLING` apart: writers place files first and log later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

from calque.core.compare import ComparedCounts, Difference, DifferenceKind, common_event, shared_places
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.origin_registry import WithoutReturned, learn
from calque.engine.verify.compare_object import ObjectComparer
from calque.engine.verify.log_journal import LogJournal
from calque.engine.verify.outcomes import TOO_FAST, NotYetComparable, ObjectComparison, Outcome, TargetSnapshot
from calque.engine.verify.report import SkippedObject, Verification, VerifiedObject
from calque.engine.verify.selection import Selection
from calque.engine.verify.touching_events import TouchingEvents
from calque.model.ledger import TableState
from calque.model.names import EventId, Span

READERS = 4
CHUNK = 64
"""How many objects are compared by one look at the ledger."""
PAUSE = 0.25
SETTLING = 3.0
"""Seconds between the two findings of a difference."""
PATIENCE = 10.0
"""Seconds without any change of the ledger after which nobody waits for the target."""
LONGEST = 60.0
"""Seconds after which an object is given up that changes, or is behind, at every look."""
LISTINGS = 3
"""How often objects are added that came to be while others were compared."""


def verify(
    source: SourceSide,
    side: TargetSide,
    tables: Sequence[str] = (),
    data: str = "size",
    *,
    patience: float = PATIENCE,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
) -> Verification:
    """Compare both ways what the target takes. `tables` are patterns over names at the source, none means all; `data`
    is "none", "size" or "checksum". `progress` is told how many objects of how many are done.

    Reads only, and asks nothing of capture: the log is read directly. Raises `Unavailable` when a whole side does not
    answer; an object that can't be read is set aside.
    """
    learn(source, side)
    source = replace(source, catalog=WithoutReturned(source.catalog, side.home), journal=LogJournal(source.log))
    comparing = ObjectComparer(source, side, data)
    with pool(READERS, f"verify-{side.policy.target}") as readers:
        return VerificationRun(comparing, Selection(side, tables), readers, patience, progress).run()


@dataclass(slots=True)
class PendingObject:
    """An object on its way. `since_ns` is when it was first put off, `event` the first that it waited for, `found` what
    differed, and when."""

    due_ns: int = 0
    since_ns: int = 0
    tries: int = 0
    event: EventId = 0
    found: tuple[Difference, ...] = ()
    found_ns: int = 0


@dataclass(slots=True)
class VerificationRun:
    comparing: ObjectComparer
    selection: Selection
    readers: Executor
    patience: float
    progress: Callable[[int, int], None]
    pending: dict[VerifiedObject, PendingObject] = field(default_factory=dict)
    settled: dict[VerifiedObject, ObjectComparison | SkippedObject] = field(default_factory=dict)
    last_word: tuple[object, ...] = ()
    moved_ns: int = 0

    def run(self) -> Verification:
        look = self.first_look()
        self.pending = {
            thing: PendingObject() for thing in self.selection.list(self.comparing.source, look.rows.values())
        }
        upto = look.head
        for _ in range(LISTINGS):
            self.settle()
            after, upto = upto, self.comparing.source.log.current()
            new = self.newcomers(Span(after, upto))
            if not new:
                break
            self.pending = {thing: PendingObject() for thing in new}
        else:
            upto = after
            self.pending.clear()
        return self.conclusion(upto)

    def first_look(self) -> TargetSnapshot:
        look = self.comparing.look()
        oldest = look.head if look.position is None else min(look.position, look.head)
        self.comparing.touches = TouchingEvents(self.comparing.source.log, oldest)
        self.note(look)
        return look

    def newcomers(self, span: Span) -> list[VerifiedObject]:
        touched = self.comparing.touches.things(span)
        return [thing for thing in touched if thing not in self.settled and self.selection.takes(thing)]

    def settle(self) -> None:
        """Compare what is pending, again and again, until each is compared or set aside."""
        clock = self.comparing.source.clock
        while self.pending:
            now = clock.elapsed_ns()
            ready = list(islice((thing for thing, pending in self.pending.items() if pending.due_ns <= now), CHUNK))
            if not ready:
                due = min(pending.due_ns for pending in self.pending.values())
                clock.sleep(max(due - now, 1_000_000) / 1e9)
                continue
            look = self.comparing.look()
            self.note(look)
            outcomes = self.readers.map(self.comparing.attempt, ready, repeat(look))
            for thing, outcome in zip(ready, outcomes, strict=True):
                self.judge(thing, outcome, clock.elapsed_ns())
            self.progress(len(self.settled), len(self.settled) + len(self.pending))

    def note(self, look: TargetSnapshot) -> None:
        """When the ledger last said something new."""
        word = (look.epoch, look.rows)
        if word != self.last_word:
            self.last_word, self.moved_ns = word, self.comparing.source.clock.elapsed_ns()

    def judge(self, thing: VerifiedObject, outcome: Outcome, now: int) -> None:
        pending = self.pending[thing]
        pending.since_ns = pending.since_ns or now
        waited = (now - pending.since_ns) / 1e9
        match outcome:
            case SkippedObject():
                self.close(thing, outcome)
            case ObjectComparison(differences=()):
                self.close(thing, outcome)
            case ObjectComparison() if (
                outcome.differences == pending.found and now - pending.found_ns >= SETTLING * 1e9
            ):
                self.close(thing, outcome)
            case ObjectComparison() if waited > LONGEST:
                self.close(thing, SkippedObject(thing.name, TableState.LIVE.value, None, TOO_FAST))
            case ObjectComparison():
                if outcome.differences != pending.found:
                    pending.found, pending.found_ns = outcome.differences, now
                pending.due_ns = pending.found_ns + int(SETTLING * 1e9)
            case NotYetComparable():
                quiet = (now - max(self.moved_ns, pending.since_ns)) / 1e9
                self.again(thing, outcome, now, waited > LONGEST or quiet > self.patience)

    def again(self, thing: VerifiedObject, outcome: NotYetComparable, now: int, enough: bool) -> None:
        pending = self.pending[thing]
        pending.tries += 1
        pending.event = pending.event or outcome.event
        if not enough:
            pending.due_ns = now + int(PAUSE * min(pending.tries, 8) * 1e9)
        elif outcome.event == pending.event:
            self.close(thing, outcome.aside)
        else:
            self.close(thing, replace(outcome.aside, reason=TOO_FAST))

    def close(self, thing: VerifiedObject, outcome: ObjectComparison | SkippedObject) -> None:
        self.settled[thing] = outcome
        del self.pending[thing]

    def conclusion(self, upto: EventId) -> Verification:
        compared = {thing: outcome for thing, outcome in self.settled.items() if isinstance(outcome, ObjectComparison)}
        asides = [outcome for outcome in self.settled.values() if isinstance(outcome, SkippedObject)]
        asides += [outcome.aside for outcome in compared.values() if outcome.aside is not None]
        differences = [difference for outcome in compared.values() for difference in outcome.differences]
        spans = [self.extended(thing, outcome.held, upto) for thing, outcome in compared.items() if outcome.held]
        return Verification(
            self.comparing.side.policy.target,
            common_event(spans, upto),
            sum((outcome.counts for outcome in compared.values()), ComparedCounts()),
            tuple(sorted([*differences, *self.shared(compared)], key=order)),
            tuple(sorted(asides, key=lambda aside: aside.table)),
        )

    def extended(self, thing: VerifiedObject, held: Span, upto: EventId) -> Span:
        """The event ids at which a comparison holds, on to the first event that touched the object after it."""
        if held.upto >= upto:
            return held
        event = self.comparing.touches.first(thing, Span(held.upto, upto))
        return Span(held.after, event - 1 if event is not None else upto)

    def shared(self, compared: Mapping[VerifiedObject, ObjectComparison]) -> list[Difference]:
        """Objects that have one directory, at one time: the first is read before and after each other."""
        places = (
            (thing.name, partition, location)
            for thing, outcome in compared.items()
            for partition, location in outcome.places
        )
        found = []
        for first, *others in shared_places(places):
            for other in others:
                before, between, after = (self.comparing.location(*one) for one in (first, other, first))
                if before is not None and before == between == after:
                    what = f"location, shared with {' '.join(filter(None, map(str, first)))}"
                    found.append(Difference(*other, DifferenceKind.DEFINITION, what, None, between))
        return found


def order(difference: Difference) -> tuple[object, ...]:
    return difference.table, difference.partition, difference.kind, difference.what
