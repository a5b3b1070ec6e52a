"""One target, window by window: what is live follows the journal; what is not is read exactly beside it.

The ledger is the truth: `open` reads it, `window` advances it. Nothing else is remembered between processes, and a
window that died half-way is simply done again: what the target already shows is observed, never assumed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from calque.core.decode import Undecodable
from calque.core.fold import Unfoldable, groups, same_run
from calque.core.kinds import ACID, REASONS
from calque.engine.apply import Applied
from calque.engine.cascade import cascaded
from calque.engine.databases import DATABASE_KINDS, Databases
from calque.engine.functions import Functions
from calque.engine.group import Advanced, Ahead, Unreachable, advance
from calque.engine.observe import NotOurs
from calque.engine.reading import Read, Reading
from calque.engine.tables import ASIDE, OUT, Tables
from calque.engine.world import SourceSide, TargetSide
from calque.errors import Refused, Unavailable
from calque.model.journal import Entry, Kind, Shape
from calque.model.ledger import Bridge, Epoch, ObjectRow, TableRow, TableState
from calque.model.names import EventId, Span, TableName
from calque.model.plan import GroupPlan

LOG = logging.getLogger(__name__)
APPLIERS = 4
WAITING_SECONDS = 30.0
EVIDENCE_SECONDS = 5.0
TRIES = 9
BEGIN = ("cursor", "*", "*")
"""The ledger's row for the event id at which a bootstrap began."""
NOT_TABLES = DATABASE_KINDS | {Kind.CREATE_FUNCTION, Kind.DROP_FUNCTION, Kind.NOTHING, Kind.FACET}


@dataclass(slots=True)
class Window:
    """What a window did. `epoch` is None when none was published."""

    span: Span
    events: int = 0
    plans: list[GroupPlan] = field(default_factory=list)
    applied: Applied = field(default_factory=Applied)
    landed: int = 0
    epoch: Epoch | None = None

    def add(self, advanced: Advanced) -> None:
        self.plans.append(advanced.plan)
        self.applied.objects += advanced.applied.objects
        self.applied.calls += advanced.applied.calls
        self.applied.files += advanced.applied.files
        self.applied.bytes += advanced.applied.bytes

    def bridges(self) -> tuple[Bridge, ...]:
        return tuple(
            Bridge(str(plan.tables[0]), self.span.after, hop.to_event)
            for plan in self.plans
            for hop in plan.hops
            if hop.bridge
        )

    def in_parts(self) -> tuple[str, ...]:
        return tuple(str(plan.tables[0]) for plan in self.plans for hop in plan.hops if hop.in_parts > 1)


class Replica:
    """A target. `begin` says where the journal begins; `wake` is called when a background read is finished."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        begin: Callable[[], EventId],
        wake: Callable[[], None],
        pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
    ) -> None:
        self.source, self.side, self.begin = source, side, begin
        self.databases = Databases(source, side)
        self.functions = Functions(source, side)
        self.tables = Tables()
        self.reading = Reading(
            source, side, self.databases, wake, lambda name: self.tables.busy(name, TableState.STAGING), pool
        )
        self.cursor: EventId = 0
        self.epoch: Epoch | None = None
        self.unpublished: list[ObjectRow] = []
        self.failures: dict[TableName, int] = {}
        self.waiting_since: dict[TableName, int] = {}
        self.pool = pool(APPLIERS, f"apply-{side.policy.target}")
        self.stopping = threading.Event()

    @property
    def name(self) -> str:
        return self.side.policy.target

    # Start and stop

    def open(self) -> None:
        """Take up where the ledger says. A target without epochs begins with a bootstrap, or at `start`."""
        rows = self.side.ledger.tables()
        self.epoch = self.side.ledger.last_epoch()
        self.functions.adopt(rows.values())
        if self.epoch is not None:
            self.cursor = self.epoch.event_id
        elif BEGIN in rows:
            self.cursor = rows[BEGIN].shows or 0
        elif self.side.policy.start is not None:
            self.cursor = self.side.policy.start
        else:
            self.bootstrap()
            rows = self.side.ledger.tables()
        self.tables.load(rows.values(), self.cursor)
        for name in self.tables.in_state(*OUT):
            self.submit(name)
        LOG.info("%s opens at event %d, epoch %s", self.name, self.cursor, self.epoch.epoch if self.epoch else "none")

    def bootstrap(self) -> None:
        """List the source; every admitted table becomes UNKNOWN and is read by itself."""
        low = max(self.source.log.current(), self.begin())
        found: list[TableName] = []
        for database in self.source.catalog.databases():
            if self.side.admission.touches_database(database):
                names = [TableName(database, table.lower()) for table in self.source.catalog.tables(database)]
                found += [name for name in names if self.side.admission.takes(name)]
        found += self.databases.left_over(set(found))
        self.databases.bootstrap(low)
        self.functions.bootstrap(low)
        rows = [TableRow(*name, TableState.UNKNOWN, None, "bootstrap", low) for name in found]
        kind, database, table = BEGIN
        self.side.ledger.put_tables([*rows, TableRow(database, table, TableState.LIVE, low, kind=kind)])
        self.cursor = low
        LOG.info("%s: bootstrap of %d tables from event %d", self.name, len(found), low)

    def close(self) -> None:
        """End the background work after the calls in hand."""
        self.stopping.set()
        self.reading.close()
        self.pool.shutdown(wait=True)

    def position(self) -> EventId | None:
        """The last event id that every live table shows; None before the first epoch."""
        return self.epoch.event_id if self.epoch is not None else None

    # Tables that leave the window

    def unknown(self, name: TableName, reason: str, event_id: EventId) -> None:
        """The table must be read again."""
        if self.tables.is_(name, OUT):
            return
        self.tables.put(name, TableState.UNKNOWN, self.tables.apart.pop(name, self.cursor), reason, event_id)
        self.submit(name)
        LOG.info("%s: %s is read again at event %d: %s", self.name, name, event_id, reason)

    def reread(
        self, takes: Callable[[TableName], bool], reason: str, states: Collection[TableState]
    ) -> list[TableName]:
        """Tables in one of `states` that are chosen must be read again; which ones. Only between windows."""
        found = [name for name in self.tables.in_state(*states) if takes(name)]
        for name in found:
            self.unknown(name, reason, self.cursor)
        return found

    def submit(self, name: TableName, delay: float = 0.0) -> None:
        self.tables.busy(name, TableState.READING)
        self.reading.submit(name, delay)

    def quarantine(self, name: TableName, reason: str, event_id: EventId) -> None:
        """Set the table aside with its reason; everything else goes on."""
        before = self.tables.rows.get(name)
        shows = self.tables.apart.pop(name, before.shows if before else None)
        self.tables.put(name, TableState.QUARANTINED, shows, reason, event_id)
        LOG.warning("%s: %s is quarantined at event %d: %s", self.name, name, event_id, reason)

    def land_finished(self, upto: EventId, window: Window) -> None:
        """Tables whose reads are finished, and exact at or before `upto`, rejoin."""
        for outcome in self.reading.drain():
            name = outcome.table
            if outcome.broken is not None:
                raise outcome.broken
            if not self.tables.is_(name, OUT):
                continue
            if outcome.problem:
                self.failed(outcome)
            elif outcome.exact_at > upto:
                self.reading.finished.put(outcome)
            elif outcome.advanced is not None:
                window.add(outcome.advanced)
                window.landed += 1
                self.failures.pop(name, None)
                if name in outcome.advanced.present:
                    self.tables.put(name, TableState.LIVE, outcome.exact_at)
                else:
                    self.tables.forget(name)
                self.tables.apart[name] = outcome.exact_at

    def failed(self, outcome: Read) -> None:
        name = outcome.table
        tries = self.failures[name] = self.failures.get(name, 0) + 1
        if outcome.retry and tries < TRIES:
            LOG.info("%s: reading %s failed and is tried again: %s", self.name, name, outcome.problem)
            self.submit(name, min(0.2 * 2**tries, 30.0))
        else:
            self.quarantine(name, outcome.problem, self.cursor)

    def expire_waiting(self) -> None:
        """Tables that waited too long for evidence are read exactly."""
        now = self.source.clock.now_ns()
        for name, since in list(self.waiting_since.items()):
            if now - since > WAITING_SECONDS * 1e9:
                del self.waiting_since[name]
                self.unknown(name, "its files stayed unknown", self.cursor)

    # Windows

    def window(self, upto: EventId) -> Window | None:
        """Take everything to `upto`; None when there was nothing to do. Raises `Unavailable` when the target or the
        source does not answer: the next call goes on."""
        self.expire_waiting()
        quiet = self.reading.finished.empty() and not self.tables.apart and not self.tables.changed
        if quiet and upto <= self.cursor and (self.epoch is not None or self.tables.in_state(*OUT)):
            return None
        upto = self.end_of_run(max(upto, self.cursor))
        while True:
            try:
                return self.through(upto)
            except Ahead as ahead:
                if ahead.event_id <= upto or ahead.event_id > (self.source.journal.last() or 0):
                    raise Unavailable(
                        f"{self.name} shows event {ahead.event_id}, which the journal does not have",
                        "capture is behind, or the state folder is older than the target",
                        "It is tried again",
                    ) from ahead
                upto = ahead.event_id

    def end_of_run(self, upto: EventId) -> EventId:
        """`upto`, or the end of the run of events that it would cut and that may be one call of the source."""
        last = self.source.journal.last() or 0
        while self.begin() < upto < last:
            pair = self.source.journal.entries(Span(upto - 1, upto + 1))
            if len(pair) != 2 or not same_run(pair[0], pair[1]):
                break
            upto += 1
        return upto

    def through(self, upto: EventId) -> Window:
        window = Window(Span(self.cursor, upto))
        self.land_finished(upto, window)
        entries = self.entries(upto)
        events = [entry for entry in entries if entry.event_id > self.cursor]
        window.events = len(events)
        found = self.live_groups(entries)
        self.databases.before(events, window.applied)
        self.advance_groups(found, upto, window)
        self.functions.apply(events, window.applied)
        self.databases.after(events, window.applied)
        self.publish(window, upto)
        return window

    def entries(self, upto: EventId) -> list[Entry]:
        """What the tables that are behind, and the window itself, have not shown yet."""
        low = max(min([self.cursor, *self.tables.apart.values()]), self.begin())
        return list(self.source.journal.entries(Span(low, upto))) if upto > low else []

    def live_groups(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Groups of live tables with what they have not shown yet; what can't stay live leaves."""
        wanted = [
            due
            for entry in entries
            if entry.keys.kind not in NOT_TABLES
            and any(self.side.admission.takes(name) for name in names_of(entry))
            and (due := self.due(entry)) is not None
        ]
        return [group for group in groups(wanted) if not self.leaves(group)]

    def due(self, entry: Entry) -> Entry | None:
        """The entry, or the half of a rename, that its tables have not shown yet."""
        keys = entry.keys
        assert keys.table is not None
        after = entry.event_id > self.shown(keys.table)
        if keys.other is None:
            return entry if after else None
        before = entry.event_id > self.shown(keys.other)
        if after and before:
            return entry
        if before:
            return replace(entry, keys=replace(keys, kind=Kind.DROP_TABLE, table=keys.other, other=None, locations=()))
        return replace(entry, keys=replace(keys, kind=Kind.UNKNOWN, other=None)) if after else None

    def shown(self, name: TableName) -> EventId:
        return self.tables.apart.get(name, self.cursor)

    def admitted(self, group: Sequence[Entry]) -> list[TableName]:
        return sorted({name for entry in group for name in names_of(entry) if self.side.admission.takes(name)})

    def leaves(self, group: Sequence[Entry]) -> bool:
        """Whether the group can't go through this window; its tables are set aside or read."""
        names = self.admitted(group)
        for entry in group:
            name, event_id = entry.keys.table, entry.event_id
            assert name is not None
            if self.tables.is_(name, {TableState.QUARANTINED}):
                if entry.keys.kind is Kind.DROP_TABLE:
                    self.unknown(name, "it was dropped at the source", event_id)
            elif name not in names or self.tables.is_(name, OUT):
                continue
            elif entry.keys.transactional and entry.keys.kind is not Kind.DROP_TABLE:
                self.quarantine(name, f"{ACID} are not replicated: {REASONS[ACID]}", event_id)
            elif entry.keys.kind is Kind.UNKNOWN and entry.keys.defect:
                self.quarantine(name, f"event {event_id} can't be read: {entry.keys.defect}", event_id)
            elif entry.keys.kind is Kind.UNKNOWN:
                self.unknown(name, f"event {event_id} ({entry.event_type}) can't be folded", event_id)
        if not any(self.tables.is_(name, ASIDE) for name in names):
            return False
        for name in names:
            if not self.tables.is_(name, ASIDE):
                self.unknown(name, "a rename links it to a table that is set aside", group[0].event_id)
        return True

    def advance_groups(self, found: Sequence[list[Entry]], upto: EventId, window: Window) -> None:
        """All groups side by side; views after the tables that they may show."""
        views = [group for group in found if any(entry.keys.shape is Shape.VIEW for entry in group)]
        unavailable: Unavailable | Ahead | None = None
        for wave in ([group for group in found if group not in views], views):
            for group, future in [(group, self.pool.submit(self.advance, group, upto)) for group in wave]:
                try:
                    self.settle(group, upto, window, future)
                except (Unavailable, Ahead) as error:
                    unavailable = error
        if unavailable is not None:
            raise unavailable
        for name, shows in list(self.tables.apart.items()):
            if shows <= upto and not self.tables.is_(name, {TableState.WAITING}):
                del self.tables.apart[name]

    def advance(self, group: Sequence[Entry], upto: EventId) -> Advanced:
        self.wait_for_evidence(group)
        for name in self.admitted(group):
            self.databases.ensure(name)
        cursor = min(self.shown(name) for entry in group for name in names_of(entry))
        changes = cascaded(self.source, self.side, group)
        return advance(self.source, self.side, group, cursor, upto, changes)

    def wait_for_evidence(self, group: Sequence[Entry]) -> None:
        """Until capture has looked at the files of the group's newest event that has some."""
        newest = max((entry.event_id for entry in group if entry.keys.locations), default=0)
        clock = self.source.clock
        deadline = clock.now_ns() + int(EVIDENCE_SECONDS * 1e9)
        while self.side.policy.data != "none" and self.source.evidence.considered() < newest:
            if clock.now_ns() > deadline or self.stopping.is_set():
                return
            clock.sleep(0.004)

    def settle(self, group: Sequence[Entry], upto: EventId, window: Window, future: Future[Advanced]) -> None:
        """What became of a group."""
        names, event_id = self.admitted(group), group[-1].event_id
        try:
            advanced = future.result()
        except (Unfoldable, Unreachable) as error:
            for name in names:
                self.unknown(name, str(error), event_id)
        except NotOurs as error:
            self.quarantine(error.table, str(error), event_id)
            for name in names:
                if name != error.table:
                    self.unknown(name, f"a rename links it to {error.table}", event_id)
        except (Undecodable, Refused) as error:
            for name in names:
                self.quarantine(name, str(error), event_id)
        else:
            window.add(advanced)
            for name in names:
                self.advanced(name, advanced, upto)

    def advanced(self, name: TableName, advanced: Advanced, upto: EventId) -> None:
        if not advanced.complete:
            self.tables.apart[name] = advanced.shows
            self.waiting_since.setdefault(name, self.source.clock.now_ns())
            reason = "which files its newest state has is not known yet"
            self.tables.put(name, TableState.WAITING, advanced.shows, reason, upto)
            return
        self.waiting_since.pop(name, None)
        self.tables.apart.pop(name, None)
        if name in advanced.present:
            self.tables.put(name, TableState.LIVE, upto)
        else:
            self.tables.forget(name)

    # Records

    def publish(self, window: Window, upto: EventId) -> None:
        """The epoch of the window; before the bootstrap is through, only the tables' states."""
        self.unpublished += window.applied.objects
        ledger = self.side.ledger
        bootstrapping = self.epoch is None and bool(self.tables.in_state(*OUT))
        news = upto != self.cursor or self.epoch is None or bool(self.unpublished)
        if not news and not self.tables.changed:
            return

        def write(kept: list[TableRow], gone: list[tuple[str, str, str]]) -> None:
            self.record_states([], gone)
            ledger.publish(self.next_epoch(window, upto), self.unpublished, kept)

        self.tables.record(self.record_states if bootstrapping else write)
        self.cursor = upto
        if not bootstrapping:
            self.unpublished = []
            self.epoch = window.epoch = ledger.last_epoch()

    def record_states(self, kept: list[TableRow], gone: list[tuple[str, str, str]]) -> None:
        """Write states of tables between epochs."""
        if gone:
            self.side.ledger.remove_tables(gone)
        if kept:
            self.side.ledger.put_tables(kept)

    def next_epoch(self, window: Window, upto: EventId) -> Epoch:
        return Epoch(
            epoch=self.epoch.epoch + 1 if self.epoch else 1,
            event_id=upto,
            from_event_id=self.epoch.event_id if self.epoch else window.span.after,
            published_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            kind="window" if self.epoch else "bootstrap",
            tables=len({table for plan in window.plans for table in plan.tables}),
            events=window.events,
            hops=sum(len(plan.hops) for plan in window.plans),
            calls=window.applied.calls,
            files=window.applied.files,
            bytes=window.applied.bytes,
            quarantined=tuple(str(name) for name in self.tables.in_state(TableState.QUARANTINED)),
            bridges=window.bridges(),
            in_parts=window.in_parts(),
        )


def names_of(entry: Entry) -> list[TableName]:
    return [name for name in (entry.keys.table, entry.keys.other) if name is not None]
