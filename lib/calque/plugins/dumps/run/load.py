"""The load of a dump into a target: windows over the dump's log until the target shows the dump's end.

It runs in the caller's thread and without Spark. A load that dies is finished by the next load of the dump, because the
ledger says how far the target has come.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar, assert_never

from calque.core.records.lifecycle import BEHIND, UNREAD, State
from calque.engine.replica.replica import Replica
from calque.engine.sides import told_states
from calque.engine.sides.sides import TargetSide, stoppable_source
from calque.engine.sides.subset_ports import subset_source
from calque.errors import Refused, Unavailable
from calque.model.ledger import DatabaseRow, FunctionRow, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.scan import Scan
from calque.plugins.dumps.core.load_slices import LoadPass, next_pass
from calque.plugins.dumps.wiring.dump_source import DumpSource
from calque.ports.forwarding import ForwardingStorage

LOG = logging.getLogger(__name__)
PATIENCE_SECONDS = 60.0
"""Seconds for which a metastore or a storage may not answer, or all tables may make no progress."""
PAUSE_SECONDS = 0.2
AGAIN, WHOLE = "the dump is loaded again", "the increment has it whole"
GONE = "it is gone at the target"
NOT_TAKEN = "the dump's policy does not take it any more"
TASKS, THREADS = 10_000, 8
"""Hive's defaults for the bounds of a load."""
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """The bounds of one pass of a load: at most `tasks` events and copies, of which `threads` - 1 may be copies while
    there are events (`plugins.dumps.core.load_slices`)."""

    tasks: int = TASKS
    threads: int = THREADS


@dataclass(slots=True)
class DumpLoad:
    """One load. `published` is called with the id of each event that the target has come to, `report` with texts that
    say how far the load is. `external` are external tables whose files are copied as they are now. `patience` is in
    seconds."""

    source: DumpSource
    side: TargetSide
    bounds: LoadBounds = field(default_factory=LoadBounds)
    external: Sequence[Scan] = ()
    published: Callable[[EventId], None] = lambda _: None
    report: Callable[[str], None] = lambda _: None
    stopping: threading.Event = field(default_factory=threading.Event)
    patience: float = PATIENCE_SECONDS
    pace: float = 0.0
    """Seconds in which tables that land are recorded together: each table by itself would cost two commits."""
    pool: Callable[[int, str], Executor] = ThreadPoolExecutor
    woken: threading.Event = field(default_factory=threading.Event)
    behind_events: dict[TableName, tuple[str, EventId]] = field(init=False, default_factory=dict)
    """The tables that have to be read under their names, by name: the reason, and the event by which the table that the
    target shows under the name leaves it in this increment. The read comes after that event, because the events of that
    table lead on under its new name."""

    def run(self) -> list[StateRow]:
        """Load the dump. Return the rows of the objects that are set aside in the end, or show less than the dump has.
        Raises `Unavailable` and `Refused` as the ports do; what the target shows by then are whole states of the
        source."""
        dump = self.source.dump
        replica = Replica(
            stoppable_source(subset_source(self.source.side, self.side.admission.subset), self.side.stopping),
            replace(self.side, storage=ForwardingStorage(self.side.storage, unless_refused)),
            lambda: dump.begin,
            self.woken.set,
            self.pool,
            pace=self.pace,
        )
        try:
            self.retry(replica.open)
            self.request_reads(replica)
            self.play(replica)
            return set_aside(replica)
        finally:
            replica.close()

    def request_reads(self, replica: Replica) -> None:
        """Have the tables read that the dump's events do not lead on: those that the dump has whole, those that came
        into its policy or left it, and, with a bootstrap, those that an earlier load set aside or that are gone at the
        target. With an increment, databases and functions are made again that were set aside at one of its events."""
        dump = self.source.dump
        if dump.metadata.is_bootstrap:
            self.retry(lambda: again(replica))
            if replica.epoch is not None and replica.cursor == dump.end:
                for name in self.source.lacked_by(replica.tables.rows):
                    replica.reads.need(name, "the dump's policy takes it now", dump.end)
                for name in gone_at_target(self.side, replica.tables.rows):
                    replica.reads.need(name, GONE, dump.end)
        else:
            self.retry(lambda: made_again(replica, frozenset(self.source.ids())))
        left_at = self.source.left_at()
        reasons = dict.fromkeys(filter(self.side.admission.takes, self.source.bootstrapped()), WHOLE)
        takes = dump.takes()
        reasons |= {name: NOT_TAKEN for name in replica.tables.rows if not takes(name)}
        for name, reason in reasons.items():
            if name in replica.tables.rows and left_at.get(name, 0) > replica.cursor:
                self.behind_events[name] = reason, left_at[name]
            else:
                replica.reads.need(name, reason, dump.end)

    def play(self, replica: Replica) -> None:
        """Play the dump pass by pass, until all events are played and all external tables are copied. Raises
        `Unavailable` where the target does not answer, or nothing changes for `patience` seconds; a later load goes on
        from the target's position."""
        ids = [event_id for event_id in self.source.ids() if event_id > replica.cursor]
        external = list(self.external)
        played = 0
        while played < len(ids) or external:
            step = next_pass(len(external), len(ids) - played, self.bounds.tasks, self.bounds.threads)
            self.begin(step, external)
            played += step.events
            self.window(replica, ids[played - 1] if 0 < played < len(ids) else self.source.dump.end)
            self.report(f"event {replica.cursor} of {self.source.dump.end}")
        self.window(replica, self.source.dump.end)
        self.settle(replica)

    def begin(self, step: LoadPass, external: list[Scan]) -> None:
        """Have the external tables of the next pass copied, and take them from `external`."""
        if step.copies:
            self.source.scans.append(external[: step.copies])
            del external[: step.copies]

    def window(self, replica: Replica, upto: EventId) -> None:
        for name, (reason, event_id) in sorted(self.behind_events.items(), key=lambda item: item[1][1]):
            if event_id <= upto:
                self.one_window(replica, event_id)
                del self.behind_events[name]
                if reason == WHOLE or name in replica.tables.rows:
                    replica.reads.need(name, reason, self.source.dump.end)
        self.one_window(replica, upto)

    def one_window(self, replica: Replica, upto: EventId) -> None:
        before = replica.epoch

        def play() -> None:
            replica.window(upto)

        self.retry(play)
        if replica.epoch is not None and replica.epoch != before:
            self.published(replica.epoch.event_id)

    def settle(self, replica: Replica) -> None:
        """Play windows until no table is read or copied any more. Raises `Unavailable` where nothing changes for
        `patience` seconds."""
        last, since = progress(replica), time.monotonic()
        while not self.stopping.is_set() and on_their_way(replica):
            self.woken.wait(PAUSE_SECONDS)
            self.woken.clear()
            self.window(replica, self.source.dump.end)
            now = progress(replica)
            if now != last:
                last, since = now, time.monotonic()
                self.report(f"{now[0]} tables of {len(replica.tables.rows)}")
            elif time.monotonic() - since > self.patience:
                raise stuck(replica)

    def retry(self, action: Callable[[], None]) -> None:
        """Call `action`, and call it again while it raises `Unavailable`, for at most `patience` seconds. Then its last
        error is raised."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                action()
            except Unavailable as error:
                if self.stopping.is_set() or time.monotonic() > deadline:
                    raise
                LOG.warning("%s is tried again: %s", self.side.policy.target, error)
                self.stopping.wait(PAUSE_SECONDS)
            else:
                return


def unless_refused(_method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
    """Call the target's storage, and raise `Unavailable` in place of its `Refused`. A refusal would set a table aside
    for good. With `Unavailable` the load ends, and finds all as it was when the statement is said again after the cause
    is mended."""
    try:
        return call(*arguments, **named)
    except Refused as error:
        raise Unavailable(error.what, error.why, error.todo) from error


def on_their_way(replica: Replica) -> bool:
    """Tell whether a table is still read, compared or copied, or the first epoch is not published yet."""
    tables = replica.tables
    busy = tables.in_state(*UNREAD - {State.PARKED})
    return (
        bool(busy or tables.copied or replica.copies.jobs) or replica.epoch is None or not replica.comparing.is_done()
    )


def again(replica: Replica) -> None:
    """Have all tables tried again that an earlier load set aside."""
    replica.requests.release.tables(lambda _: True, lambda _: True, AGAIN)


def made_again(replica: Replica, events: Container[EventId]) -> None:
    """Make the databases and functions again that were set aside at one of `events`, as the event has them. An object
    that was set aside at another event stays, because this increment has nothing new for it."""
    rows: list[DatabaseRow | FunctionRow] = [
        *replica.databases.quarantined_rows.values(),
        *replica.functions.owned.values(),
    ]
    for row in rows:
        is_aside = row.state is TableState.QUARANTINED
        if is_aside and row.since_event in events and (row.since_event or 0) <= replica.cursor:
            replica.requests.release.make(row)


def name_of(row: StateRow) -> str:
    """Return the name of the object in the row for people, such as `function sales.f`."""
    match row:
        case TableRow():
            return str(row.name)
        case FunctionRow():
            return f"function {row.name}"
        case DatabaseRow():
            return f"database {row.database}"
    assert_never(row)


def gone_at_target(side: TargetSide, names: Iterable[TableName]) -> list[TableName]:
    """Return those of the tables, by their names at the source, that are not at the target."""
    at_target = {name: side.admission.name_at_target(name) for name in names}
    present = {
        database: set(side.catalog.tables(database)) for database in {each.database for each in at_target.values()}
    }
    return [name for name, (database, table) in at_target.items() if table not in present[database]]


def progress(replica: Replica) -> tuple[int, EventId, int]:
    """Return the numbers that change as long as the load gets anywhere: tables that are live or set aside, the cursor,
    and copied bytes."""
    counts, copying = told_states.counts(replica.tables), replica.side.copying.look()
    return counts["live"] + counts["quarantined"], replica.cursor, copying.bytes_done if copying is not None else 0


def set_aside(replica: Replica) -> list[StateRow]:
    """Return the rows, with the reasons, of the objects that do not show the dump's end: tables that are behind, unread
    or in quarantine, and databases and functions in quarantine."""
    states = BEHIND | UNREAD | {State.QUARANTINED}
    others: list[StateRow] = [*replica.databases.quarantined_rows.values(), *replica.functions.owned.values()]
    return [
        *told_states.recorded(replica.tables, replica.tables.in_state(*states)),
        *(row for row in others if row.state is TableState.QUARANTINED),
    ]


def stuck(replica: Replica) -> Unavailable:
    rows = set_aside(replica)
    why = "; ".join(f"{name_of(row)}: {row.reason}" for row in rows[:3]) or "No epoch was published"
    return Unavailable("The load gets no further", why, "Say the statement again: it goes on where it is")
