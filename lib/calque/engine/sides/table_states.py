"""The states of one target's tables, between the ledger and memory: the only module that changes one.

What may follow what is `core.records.lifecycle`'s to say. Beside its state a table may have a position of its own: the
event that it shows, where that is not the one that the windows have come to (`cursor`). A table that is gone may have
one, too, until a window reaches it: `t` was dropped by a copy beside the windows that went up to event 90 while the
cursor stayed at 80; a window from 80 on must not take up what happened to `t` before 90.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from calque.core.records.lifecycle import ASIDE, BEHIND, RECORDED, UNREAD, Change, State, after
from calque.core.records.standing import PAUSED
from calque.model.ledger import NotLiveReason, Reread, RereadCause, StateKey, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName

TABLE = "table"
JOINS = "it was read, and joins the stream at that event"
PAUSED_BY_OPERATOR = f"{PAUSED} by an operator; `calque resume --tables` lets it go on"
CATCHES_UP = "it was paused, and catches up"


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table's state. `shows` is the event that the target shows of it, None for nothing; of a live table without a
    position of its own it may be older than the cursor, and counts for nothing."""

    state: State
    shows: EventId | None = None
    reason: str = ""
    since_event: EventId | None = None
    why: NotLiveReason = NotLiveReason.OWN
    files_unknown_since_ns: int | None = None
    """Since when a waiting table waits to know its files."""
    copied_with: TableName | None = None
    """Of a waiting table: the table whose group is copied beside the windows, which it is in, or waits for."""

    def row(self, name: TableName) -> TableRow:
        """What users and the ledger are told."""
        return TableRow(*name, RECORDED[self.state], self.shows, self.reason, self.since_event, why=self.why)


@dataclass(slots=True)
class TableStates:
    """By the source's names; a table that is not here is `State.OUT`. Changes are kept until `record` writes them;
    READING and STAGING are told to nobody but the status. `begin_reading` and `begin_copying` are safe
    beside the windows (as is `told_states`), all else is for one thread."""

    cursor: EventId = 0
    """The event that the windows have come to: live tables without a position of their own show it."""
    rows: dict[TableName, TableStatus] = field(default_factory=dict)
    positions: dict[TableName, EventId] = field(default_factory=dict)
    """Own positions of live, waiting and gone tables."""
    changed: set[TableName] = field(default_factory=set)
    not_live: set[TableName] = field(default_factory=set)
    """So that a window costs nothing that grows with all tables."""
    paused: set[TableName] = field(default_factory=set)
    copied: dict[TableName, TableName] = field(default_factory=dict)
    """Tables of groups that are copied beside the windows, and those that wait for them, each with the first table of
    its group."""
    waiting_for_files: dict[TableName, int] = field(default_factory=dict)
    """Since when, in nanoseconds of the clock."""
    rereads: list[Reread] = field(default_factory=list)
    """Tables that the target showed and that are to be read again, which no epoch has told of."""
    pauses: PausedTables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.pauses = PausedTables(self)

    # What is known

    def state(self, name: TableName) -> State:
        status = self.rows.get(name)
        return State.OUT if status is None else status.state

    def is_(self, name: TableName, states: Iterable[State]) -> bool:
        return self.state(name) in states

    def in_state(self, *states: State) -> list[TableName]:
        names = tuple(self.rows if State.LIVE in states else self.not_live)
        return sorted(name for name in names if self.is_(name, states))

    def shown(self, name: TableName) -> EventId:
        """The event that a table shows which is not to be read."""
        status = self.rows.get(name)
        if status is not None and status.state is State.PAUSED:
            return status.shows or 0
        return self.positions.get(name, self.cursor)

    def shown_or_none(self, name: TableName) -> EventId | None:
        """The event that the target shows of a table, whatever its state; None where it shows nothing of it."""
        status = self.rows.get(name)
        if status is None:
            return None
        return status.shows if status.state in ASIDE else self.shown(name)

    def passed_by(self) -> set[TableName]:
        """Tables that windows leave as they are for now, though they show a state of the source."""
        return self.copied.keys() | self.paused

    # Between the ledger and memory

    def load(self, rows: Iterable[StateRow], cursor: EventId) -> None:
        """Take the states up as the ledger has them, at a target whose windows have come to `cursor`. A waiting table
        that shows more is of an epoch that a death kept from being published: it goes on from the cursor, so that the
        next epoch has its rows."""
        self.cursor = cursor
        self.rows, self.positions = {}, {}
        for row in rows:
            if isinstance(row, TableRow):
                name, state = row.name, State(row.state.value)
                if state is State.WAITING and row.reason.startswith(PAUSED):
                    state = State.PAUSED
                self._put(name, TableStatus(state, row.shows, row.reason, row.since_event, row.why))
                if state is State.WAITING:
                    self.positions[name] = min(row.shows or 0, cursor)
                elif state is State.LIVE and (row.shows or 0) > cursor:
                    self.positions[name] = row.shows or 0

    def rejoin(self, *, nothing_was_published: bool) -> dict[TableName, EventId]:
        """At a start: tables that a process before this one has read, with the events that they show. Those beyond the
        cursor join the windows when one reaches that event; where no epoch was published all of them do."""
        for name in list(self.rows):
            status = self.rows[name]
            if status.state is State.LIVE and self.shown(name) > self.cursor and not nothing_was_published:
                self._put(name, landed_status(self.positions.pop(name)))
            elif nothing_was_published and status.state in (State.LIVE, State.WAITING, State.PAUSED):
                self.positions.pop(name, None)
                self._put(name, replace(status, state=State.STAGING))
        return {name: self.rows[name].shows or 0 for name in self.in_state(State.STAGING)}

    def record(self, write: Callable[[list[TableRow], list[StateKey]], None]) -> None:
        """Hand the rows to write and the keys to remove to `write`; they count as recorded when it returns."""
        names = set(self.changed)
        kept_rows = [as_recorded(self.rows[name].row(name)) for name in sorted(names) if name in self.rows]
        removed_keys: list[StateKey] = [(TABLE, *name) for name in sorted(names) if name not in self.rows]
        write(kept_rows, removed_keys)
        self.changed -= names

    # Reads

    def need_read(
        self,
        name: TableName,
        reason: str,
        event_id: EventId,
        why: NotLiveReason = NotLiveReason.OWN,
        cause: RereadCause = RereadCause.HOLE,
    ) -> None:
        """The table must be read exactly; it shows what it shows until then, if anything."""
        self.note_reread(name, reason, event_id, cause)
        shows = self.shown_or_none(name)
        self.positions.pop(name, None)
        self.change(name, Change.READ_IS_NEEDED, shows, reason, event_id, why)

    def note_reread(self, name: TableName, reason: str, event_id: EventId, cause: RereadCause) -> None:
        """The next epoch tells of it, unless the target shows nothing of the table yet."""
        before = self.rows.get(name)
        if before is not None and (before.state is State.LIVE or before.shows is not None):
            self.rereads.append(Reread(str(name), event_id, cause, reason))

    def begin_reading(self, name: TableName) -> None:
        """For the status; after a restart the table is UNKNOWN again."""
        self._note(name, Change.READ_BEGINS)

    def begin_copying(self, name: TableName) -> None:
        """The same, once its files are copied or built."""
        self._note(name, Change.COPY_BEGINS)

    def fail_read(self, name: TableName) -> None:
        """It is to be read once more."""
        self._note(name, Change.READ_FAILS)

    def land(self, name: TableName, exact_at: EventId, *, present: bool) -> None:
        """The table shows the event that its read is exact at, or is gone there."""
        if present:
            self.change(name, Change.READ_LANDS, exact_at)
        else:
            self.change(name, Change.IS_GONE)
        self.positions[name] = exact_at

    def explain(self, name: TableName, reason: str) -> None:
        """Another reason for the same state."""
        if self.rows[name].reason != reason:
            self._put(name, replace(self.rows[name], reason=reason))
            self.changed.add(name)

    # Windows

    def arrive(self, name: TableName, upto: EventId, *, present: bool) -> None:
        """The table shows the window's end, or is gone there."""
        self.positions.pop(name, None)
        if present:
            self.change(name, Change.WINDOW_ENDS, upto)
        else:
            self.change(name, Change.IS_GONE)

    def wait_for_files(self, name: TableName, shows: EventId, unknown_at: EventId, now_ns: int) -> None:
        """The table shows the last state whose files are known; those of event `unknown_at` are not."""
        before = self.rows.get(name)
        since = before.files_unknown_since_ns if before is not None else None
        self.change(name, Change.FALLS_BEHIND, shows, f"the files of event {unknown_at} are not known yet", unknown_at)
        self._put(name, replace(self.rows[name], files_unknown_since_ns=now_ns if since is None else since))
        self.positions[name] = shows

    def wait_for_copy(self, name: TableName, copied_with: TableName, reason: str, event_id: EventId) -> None:
        """The group of `copied_with` is copied beside the windows, and windows pass this table by until it is done."""
        self._fall_behind(name, self.shown(name), reason, event_id)
        self._put(name, replace(self.rows[name], copied_with=copied_with))

    def wait_for_base(self, name: TableName, reason: str) -> None:
        """A view waits for a table that it shows."""
        shows = self.shown(name)
        self._fall_behind(name, shows, reason, shows)

    def end_copy(self, first: TableName) -> None:
        """The group of that table is through, or failed: no window passes its tables by any more."""
        for name in [name for name, copied_with in self.copied.items() if copied_with == first]:
            self._put(name, replace(self.rows[name], copied_with=None))

    def show(self, name: TableName, event_id: EventId) -> None:
        """A live table, or one that is gone, shows that event: windows go on from there."""
        self.positions[name] = event_id

    def end_window(self, upto: EventId) -> None:
        """Tables whose own positions a window has reached share the cursor."""
        for name, shows in list(self.positions.items()):
            if shows <= upto and not self.is_(name, BEHIND):
                del self.positions[name]

    def quarantine(
        self, name: TableName, reason: str, event_id: EventId, why: NotLiveReason = NotLiveReason.OWN
    ) -> None:
        """Set the table aside; it shows what it showed."""
        shows = self.shown_or_none(name)
        self.positions.pop(name, None)
        self.change(name, Change.IS_QUARANTINED, shows, reason, event_id, why)

    # How a state changes

    def _fall_behind(self, name: TableName, shows: EventId, reason: str, event_id: EventId) -> None:
        self.change(name, Change.FALLS_BEHIND, shows, reason, event_id)
        self.positions[name] = shows

    def change(
        self,
        name: TableName,
        change: Change,
        shows: EventId | None = None,
        reason: str = "",
        since: EventId = 0,
        why: NotLiveReason = NotLiveReason.OWN,
    ) -> None:
        """Recorded at the next `record` where it is another status than before."""
        before, state = self.rows.get(name), after(self.state(name), change)
        if state is State.OUT:
            self.positions.pop(name, None)
            self._index(name, None)
            if self.rows.pop(name, None) is not None:
                self.changed.add(name)
            return
        status = TableStatus(state, shows, reason, since or None, why)
        self._put(name, status)
        if before is None or replace(before.row(name), shows=shows) != status.row(name):
            self.changed.add(name)

    def _note(self, name: TableName, change: Change) -> None:
        """A change of a table that is to be read, which nobody but the status is told of."""
        status = self.rows.get(name)
        if status is not None and status.state in UNREAD - {State.PARKED}:
            self.rows[name] = replace(status, state=after(status.state, change))

    def _put(self, name: TableName, status: TableStatus) -> None:
        self.rows[name] = status
        self._index(name, status)

    def _index(self, name: TableName, status: TableStatus | None) -> None:
        """So that nobody has to look through all tables."""
        state = State.LIVE if status is None else status.state
        (self.not_live.discard if state is State.LIVE else self.not_live.add)(name)
        (self.paused.add if state is State.PAUSED else self.paused.discard)(name)
        self.copied.pop(name, None)
        self.waiting_for_files.pop(name, None)
        if status is not None and status.copied_with is not None:
            self.copied[name] = status.copied_with
        if status is not None and status.files_unknown_since_ns is not None:
            self.waiting_for_files[name] = status.files_unknown_since_ns


class PausedTables:
    """Those of them that an operator holds back. With `are_looked_at` the next window looks at all that they have not
    shown, to find again who waits with whom: only then have they positions among the others."""

    def __init__(self, states: TableStates) -> None:
        self.states, self.are_looked_at = states, False

    def begin(self, name: TableName, reason: str = PAUSED_BY_OPERATOR) -> None:
        """Windows pass the table by; it keeps its position, so that it catches up from the journal."""
        shows = self.states.shown(name)
        self.states.change(name, Change.IS_PAUSED, shows, reason, shows)
        if self.are_looked_at:
            self.states.positions[name] = shows
        else:
            self.states.positions.pop(name, None)

    def park(self, name: TableName) -> None:
        """The table is to be read when it goes on. What it would lose by that is counted already where it is to be."""
        before = self.states.rows[name]
        self.states.change(name, Change.IS_PAUSED, before.shows, PAUSED_BY_OPERATOR, before.since_event or 0)

    def unpark(self, name: TableName) -> None:
        before = self.states.rows[name]
        reason = "it was paused before it was read"
        self.states.change(name, Change.IS_RESUMED, before.shows, reason, before.since_event or 0, before.why)

    def catch_up(self, name: TableName) -> None:
        """A paused table goes on from the event that it shows."""
        before = self.states.rows[name]
        # A table that waits for another one did so with a reason of its own: who waits with whom may be another now.
        self.are_looked_at = self.are_looked_at or before.reason != PAUSED_BY_OPERATOR
        shows = before.shows or 0
        self.states.change(name, Change.IS_RESUMED, shows, CATCHES_UP, shows)
        self.states.positions[name] = shows

    def end_window(self) -> None:
        """The window that looked at paused tables ends."""
        if self.are_looked_at:
            self.are_looked_at = False
            for name in self.states.paused:
                self.states.positions.pop(name, None)

    def caught_up(self, upto: EventId) -> list[TableName]:
        """Tables that were paused, and that a window to `upto` had nothing to bring to."""
        return [
            name
            for name, shows in self.states.positions.items()
            if shows <= upto and self.states.is_(name, {State.WAITING}) and self.states.rows[name].reason == CATCHES_UP
        ]


def landed_status(exact_at: EventId) -> TableStatus:
    """Of a table that shows an event which no window has reached."""
    return TableStatus(State.STAGING, exact_at, JOINS, exact_at)


def landed_row(name: TableName, exact_at: EventId) -> TableRow:
    return landed_status(exact_at).row(name)


def as_recorded(row: TableRow) -> TableRow:
    """READING and STAGING are one process's business."""
    busy = row.state in (TableState.READING, TableState.STAGING)
    return replace(row, state=TableState.UNKNOWN) if busy else row
