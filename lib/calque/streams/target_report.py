"""What is told of one target while it runs: its status, its metrics, its tables, where it stands: `TargetReport`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from calque.control.status_records import HELD_BACK, copying_of, reading_of, tell
from calque.core.records.gap_states import dealt_with
from calque.core.records.lifecycle import UNREAD, State
from calque.core.records.standing import Standing, standing
from calque.engine.sides import told_states
from calque.model.ledger import DatabaseRow, FunctionRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.ports.records import Json
from calque.serve.metrics import TargetLook
from calque.serve.table_lag import TableLag, lagging_of, table_lags
from calque.streams.current_replica import CurrentReplica
from calque.streams.supervisor import Supervisor


class TargetReport:
    """Read by any thread, beside the windows: what it tells of tables is of a moment ago."""

    def __init__(self, current: CurrentReplica, supervisor: Supervisor) -> None:
        self.current, self.supervisor, self.name = current, supervisor, current.name
        self.control, self.head_times = current.wiring.control, current.stream.heads
        self.mended_gap = 0
        """The newest gap that the target's ledger has dealt with, as far as is known."""
        self.is_held = False
        """Whether operators hold the target back, as its status has it."""
        record = self.control.read(current.places.status_record) or {}
        self.last_reported = {key: record[key] for key in ("position", "epoch") if key in record}

    # Where it stands

    def standing(self, event_id: EventId) -> Standing:
        """A target that is held back is not waited for."""
        standing = self.standing_unless_paused(event_id)
        return Standing.WITHOUT if standing is Standing.GOING and self.current.is_paused() else standing

    def standing_unless_paused(self, event_id: EventId) -> Standing:
        current, replica = self.current, self.current.replica
        if replica is None or not replica.opened or not current.stream.looked.is_set():
            return Standing.GOING
        if current.is_behind() or not self.is_mended():
            return Standing.GOING
        if not replica.comparing.is_done() or replica.tables.in_state(*UNREAD - {State.PARKED}) or current.is_told():
            return Standing.GOING
        return standing(replica.epochs.position(), told_states.recorded(replica.tables), event_id).standing

    def is_mended(self) -> bool:
        """Whether the target has dealt with every gap: until then its position is of another history."""
        if self.mended_gap < self.current.gap:
            self.mended_gap = dealt_with(self.current.target.ledger().records())
        return self.mended_gap >= self.current.gap

    def reached(self) -> Mapping[str, Json]:
        """The position, and the epoch that it goes on from; what was told last while that is not looked up."""
        replica = self.current.replica
        if replica is not None and replica.opened and replica.epoch is not None:
            self.last_reported = {"position": replica.epochs.position(), "epoch": replica.epoch.epoch}
        return self.last_reported

    def lag(self) -> tuple[float | None, int | None]:
        """Seconds and events that it lacks now; None while that is not known."""
        replica, head = self.current.replica, self.head_times.newest()
        position = replica.epochs.position() if replica is not None and replica.opened else None
        if position is None or head is None:
            return None, None
        events = max(head - position, 0)
        return self.head_times.lag_seconds(position, time.time()) if events else 0.0, events

    # Status and metrics

    def write_status(self) -> None:
        """Raises `Unavailable`."""
        current, replica = self.current, self.current.replica
        states: dict[str, Json] = {}
        if replica is not None:
            busy = replica.tables.in_state(State.READING, State.STAGING)
            states |= {str(name): replica.tables.rows[name].state.value for name in busy}
            copied_names = (name for job in list(replica.copies.jobs) for name in job.names)
            states |= {str(name): TableState.STAGING.value for name in copied_names}
        copying = current.target.side().copying.look()
        tell(
            self.control,
            current.places.status_record,
            self.supervisor.state,
            self.supervisor.problem(),
            states=states,
            window=current.window_id,
            lagging=lagging_of(self.table_lags()),
            **self.reached(),
            copying=copying_of(copying),
            reading=reading_of(replica.reading.reads.look() if replica is not None else None, copying),
        )
        self.is_held = current.is_paused()

    def remove_status(self) -> None:
        """Raises `Unavailable`."""
        self.control.remove(self.current.places.status_record)

    def look(self) -> TargetLook:
        supervisor, replica = self.supervisor, self.current.replica
        state = "paused" if supervisor.state in HELD_BACK and self.is_held else supervisor.state
        if replica is None:
            return TargetLook(self.name, state, supervisor.problem(), supervisor.answers())
        position, head = replica.epochs.position(), self.head_times.newest()
        is_behind = position is not None and head is not None and head > position
        return TargetLook(
            self.name,
            state,
            supervisor.problem(),
            supervisor.answers(),
            position,
            replica.epoch.epoch if replica.epoch is not None else None,
            (head or 0) - (position or 0) if is_behind else 0,
            self.head_times.lag_seconds(position or 0, time.time()) if is_behind else 0.0,
            told_states.counts(replica.tables),
            self.current.target.side().copying.look(),
            replica.reading.reads.look(),
            self.table_lags(),
        )

    # Tables

    def table_lags(self) -> tuple[TableLag, ...]:
        """Of tables that show less than the target does."""
        replica = self.current.replica
        position = replica.epochs.position() if replica is not None else None
        if replica is None or position is None:
            return ()
        return table_lags(told_states.behind(replica.tables, position), self.head_times, time.time())

    def find_tables(
        self, takes: Callable[[TableName], bool], state: str, offset: int, limit: int
    ) -> tuple[int, list[TableRow]]:
        """How many tables are wanted, in that state where one is named, and some of them in the order of their
        names."""
        replica = self.current.replica
        if replica is None:
            return 0, []
        return told_states.find(replica.tables, takes, state, offset, limit)

    def find_table(self, name: TableName) -> TableRow | None:
        rows = self.find_tables(lambda one: one == name, "", 0, 1)[1]
        return rows[0] if rows else None

    def others_aside(self) -> list[DatabaseRow | FunctionRow]:
        """Databases and functions that are set aside."""
        replica = self.current.replica
        if replica is None:
            return []
        functions = [row for row in list(replica.functions.owned.values()) if row.state is TableState.QUARANTINED]
        return [*replica.databases.quarantined_rows.values(), *functions]
