"""The report on one target while it runs, for its status, its metrics and the page: `TargetReport`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from calque.control.free_space import free_at
from calque.control.status_records import copying_of, failing_of, iso, reading_of, rounded, tell
from calque.control.verify_record import newest_verification
from calque.core.records.gap_states import dealt_with
from calque.core.records.lifecycle import UNREAD, State
from calque.core.records.reached_state import ReachedState, is_paused, reached_state
from calque.engine.sides import told_states
from calque.model.ledger import DatabaseRow, FunctionRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.part_states import HELD_BACK
from calque.ports.records import Json
from calque.serve.known_facts import LateTable
from calque.serve.rates import PositionRates, PositionSample
from calque.serve.samples import TargetSample, VerifiedSample
from calque.serve.table_lag import TableLag, lagging_of, table_lags
from calque.streams.current_replica import CurrentReplica
from calque.streams.supervisor import Supervisor

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica

LOOK_SECONDS = 5.0
"""Seconds between two looks at the free space and at the newest comparison."""


class TargetReport:
    """The report on one target, for any thread. Windows go on meanwhile, so what it says of tables may be a moment
    old."""

    def __init__(self, current: CurrentReplica, supervisor: Supervisor) -> None:
        self.current, self.supervisor, self.name = current, supervisor, current.name
        self.control, self.head_times = current.wiring.control, current.stream.head_times
        self.mended_gap = 0
        """The number of the newest gap that the target's ledger has dealt with, as far as is known."""
        self.is_held = False
        """Whether an operator has paused the target, as its status record says."""
        self.rates = PositionRates()
        self.look_next = 0.0
        self.free_bytes: int | None = None
        self.verified: VerifiedSample | None = None
        record = self.control.read(current.places.status_record) or {}
        self.last_reported = {key: record[key] for key in ("position", "epoch") if key in record}

    # Where it stands

    def reached_state(self, event_id: EventId) -> ReachedState:
        """Tell how the target stands to `event_id`. A paused target that has not reached the event counts as `WITHOUT`,
        because it is not waited for."""
        state = self.reached_state_unless_paused(event_id)
        return ReachedState.WITHOUT if state is ReachedState.GOING and self.current.is_paused() else state

    def reached_state_unless_paused(self, event_id: EventId) -> ReachedState:
        current, replica = self.current, self.current.replica
        if replica is None or not replica.opened or not current.stream.continuity_checked.is_set():
            return ReachedState.GOING
        if current.is_behind() or not self.is_mended():
            return ReachedState.GOING
        if (
            not replica.comparing.is_done()
            or replica.tables.in_state(*UNREAD - {State.PARKED})
            or current.has_requests()
        ):
            return ReachedState.GOING
        return reached_state(replica.epochs.position(), told_states.recorded(replica.tables), event_id).state

    def is_mended(self) -> bool:
        """Tell whether the target has dealt with every gap in the log. Until then its position is an event id of
        another history."""
        if self.mended_gap < self.current.gap:
            self.mended_gap = dealt_with(self.current.target.ledger().records())
        return self.mended_gap >= self.current.gap

    def reached(self) -> Mapping[str, Json]:
        """Return the position and the newest epoch as keys of the status record; what was told last where no replica is
        open."""
        replica = self.current.replica
        if replica is not None and replica.opened and replica.epoch is not None:
            self.last_reported = {"position": replica.epochs.position(), "epoch": replica.epoch.epoch}
        return self.last_reported

    def last_known(self) -> tuple[EventId | None, int | None]:
        """Return the position and the number of the newest epoch as they were reported last, also by an earlier
        process; None for both where the target never had an epoch."""
        position, epoch = (self.last_reported.get(key) for key in ("position", "epoch"))
        return (position, epoch) if isinstance(position, int) and isinstance(epoch, int) else (None, None)

    def lag(self) -> tuple[float | None, int | None]:
        """Return the seconds and the events by which the target lags; None for both while that is not known."""
        replica, head = self.current.replica, self.head_times.newest()
        position = replica.epochs.position() if replica is not None and replica.opened else None
        if position is None or head is None:
            return None, None
        events = max(head - position, 0)
        return self.head_times.lag_seconds(position, time.time()) if events else 0.0, events

    # Status and metrics

    def write_status(self) -> None:
        """Write the target's status record. Raises `Unavailable`."""
        self.look_beside()
        sample = self.snapshot()
        if sample.position is not None and (head := self.head_times.newest()) is not None:
            self.rates.note(PositionSample(time.time(), sample.position, head))
        tell(
            self.control,
            self.current.places.status_record,
            self.supervisor.shown_state(),
            sample.problem,
            failing=failing_of(sample.failing),
            states=dict(sample.busy),
            window=sample.window,
            lagging=lagging_of(sample.lagging),
            **self.reached(),
            events_per_second=rounded(sample.events_per_second),
            catches_up_at=iso(sample.catches_up_at),
            free_bytes=sample.free_bytes,
            copying=copying_of(sample.copying),
            reading=reading_of(sample.reading, sample.copying),
        )
        self.is_held = self.current.is_paused()

    def look_beside(self) -> None:
        """Look every `LOOK_SECONDS` at what no other part keeps in memory: the free space where the warehouse lies, and
        the newest comparison. Called by the thread that writes the status."""
        if time.monotonic() < self.look_next:
            return
        self.look_next = time.monotonic() + LOOK_SECONDS
        self.free_bytes = free_at(self.current.target.plug.keys.warehouse)
        record = newest_verification(self.control, self.name)
        self.verified = verified_of(record) if record is not None else None

    def remove_status(self) -> None:
        """Remove the target's status record. Raises `Unavailable`."""
        self.control.remove(self.current.places.status_record)

    def snapshot(self) -> TargetSample:
        """Return what this process knows of the target, for its status record, its page and its metrics alike."""
        supervisor, replica = self.supervisor, self.current.replica
        state = supervisor.shown_state()
        known = TargetSample(
            name=self.name,
            state="paused" if state in HELD_BACK and self.is_held else state,
            problem=supervisor.problem(),
            reachable=supervisor.answers(),
            failing=supervisor.failing(),
            window=self.current.window_id,
            verified=self.verified,
            free_bytes=self.free_bytes,
            copying=self.current.target.side().copying.look(),
        )
        if replica is None:
            return known
        position, head = replica.epochs.position(), self.head_times.newest()
        is_behind = position is not None and head is not None and head > position
        return replace(
            known,
            position=position,
            epoch=replica.epoch.epoch if replica.epoch is not None else None,
            published_at=replica.epoch.published_at if replica.epoch is not None else None,
            lag_events=(head or 0) - (position or 0) if is_behind else 0,
            lag_seconds=self.head_times.lag_seconds(position or 0, time.time()) if is_behind else 0.0,
            events_per_second=self.rates.events_per_second(),
            catches_up_at=self.rates.catches_up_at() if is_behind else None,
            tables=told_states.counts(replica.tables),
            busy=self.busy_tables(replica),
            reading=replica.reading.reads.look(),
            lagging=self.table_lags(),
            paused_tables=len(replica.tables.paused),
        )

    def busy_tables(self, replica: Replica) -> Mapping[str, str]:
        """Return the states of the tables that are being read or copied, by their names."""
        rows = replica.tables.rows
        states = {str(name): rows[name].state.value for name in replica.tables.in_state(State.READING, State.STAGING)}
        copied_names = (name for job in list(replica.copies.jobs) for name in job.names)
        return states | {str(name): TableState.STAGING.value for name in copied_names}

    # Tables

    def table_lags(self) -> tuple[TableLag, ...]:
        """Return the lag of those tables that show less than the target does, the farthest behind first, a few at
        most."""
        replica = self.current.replica
        position = replica.epochs.position() if replica is not None else None
        if replica is None or position is None:
            return ()
        return table_lags(told_states.behind(replica.tables, position), self.head_times, time.time())

    def late_tables(self, seconds: float, most: int) -> tuple[int, list[LateTable]]:
        """Return how many tables lag `seconds` longer than the target itself, and the `most` that are farthest behind.
        Tables in quarantine and those that an operator holds back are left out."""
        replica = self.current.replica
        position = replica.epochs.position() if replica is not None else None
        if replica is None or position is None:
            return 0, []
        now, tables = time.time(), replica.tables
        late_below = self.head_times.newest_before(now - self.head_times.lag_seconds(position, now) - seconds) or 0
        shown = told_states.behind(tables, min(position, late_below))
        late = [(event, name, status.row(name)) for event, name in shown if (status := tables.rows.get(name))]
        late = [one for one in late if one[2].state is not TableState.QUARANTINED and not is_paused(one[2])]
        return len(late), [
            LateTable(
                target=self.name,
                table=str(name),
                state=row.state.value,
                shows=event,
                since=now - self.head_times.lag_seconds(event, now),
                reason=row.reason,
            )
            for event, name, row in nsmallest(most, late, key=lambda one: one[:2])
        ]

    def find_tables(
        self, takes: Callable[[TableName], bool], state: str, offset: int, limit: int
    ) -> tuple[int, list[TableRow]]:
        """Return how many tables `takes` wants, and `limit` of them behind the first `offset`, in the order of their
        names. An empty `state` stands for every state."""
        replica = self.current.replica
        if replica is None:
            return 0, []
        return told_states.find(replica.tables, takes, state, offset, limit)

    def find_all_tables(self, takes: Callable[[TableName], bool], state: str) -> list[TableRow]:
        """Return all tables that `find_tables` counts, in no order."""
        replica = self.current.replica
        return [] if replica is None else told_states.find_all(replica.tables, takes, state)

    def paused_names(self) -> list[TableName]:
        """Return the tables that an operator holds back, and those that wait for them."""
        replica = self.current.replica
        return [] if replica is None else replica.tables.in_state(State.PAUSED, State.PARKED)

    def find_table(self, name: TableName) -> TableRow | None:
        rows = self.find_tables(lambda one: one == name, "", 0, 1)[1]
        return rows[0] if rows else None

    def others_aside(self) -> list[DatabaseRow | FunctionRow]:
        """Return the rows of databases and functions that are set aside."""
        replica = self.current.replica
        if replica is None:
            return []
        functions = [row for row in list(replica.functions.owned.values()) if row.state is TableState.QUARANTINED]
        return [*replica.databases.quarantined_rows.values(), *functions]


def verified_of(record: Mapping[str, Any]) -> VerifiedSample:
    """Return the sample of a record of the newest comparison."""
    at = datetime.fromisoformat(record["at"]).timestamp()
    return VerifiedSample(at, record["event_id"], record["differences"], record["whole"])
