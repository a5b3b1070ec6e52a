"""The states of one target's tables, between the ledger and memory: the only module that changes one.

`core.records.lifecycle` says which state may follow which. Beside its state a table may have a position of its own: the
event that it shows, where this is not the one that the windows have come to (`cursor`). A table that is gone may have a
position, too, until a window reaches it:

    `t` was dropped by a copy beside the windows that went up to event 90 while the cursor stayed at 80. A window from
    80 on must not apply what happened to `t` before 90, so `t` has the position 90 until a window ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from calque.core.records.lifecycle import ASIDE, BEHIND, RECORDED, UNREAD, State, Transition, after
from calque.core.records.reached_state import PAUSED
from calque.model.ledger import NotLiveReason, Reread, RereadCause, StateKey, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName

TABLE = "table"
JOINS = "it was read, and joins the stream at that event"
PAUSED_BY_OPERATOR = f"{PAUSED} by an operator; `calque resume --tables` lets it go on"
CATCHES_UP = "it was paused, and catches up"


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table's state. `shows` is the event that the target shows of it, None for nothing. For a live table without a
    position of its own `shows` may be older than the cursor; the cursor counts then."""

    state: State
    shows: EventId | None = None
    reason: str = ""
    since_event: EventId | None = None
    why: NotLiveReason = NotLiveReason.OWN
    files_unknown_since_ns: int | None = None
    """The time since when a waiting table waits to know its files, in nanoseconds since the epoch; None for any other
    table."""
    copied_with: TableName | None = None
    """The table whose group is copied beside the windows, for a waiting table that is in that group or waits for it;
    None for any other table."""

    def row(self, name: TableName) -> TableRow:
        """Return the row by which the ledger and users know the table."""
        return TableRow(*name, RECORDED[self.state], self.shows, self.reason, self.since_event, why=self.why)


@dataclass(slots=True)
class TableStates:
    """The states of tables by their names at the source; a table that is not here is `State.OUT`. Changes are kept in
    memory until `record` writes them. The states READING and STAGING are not recorded; only the status shows them.
    `begin_reading` and `begin_copying` (and the functions of `told_states`) are safe beside the windows; all other
    methods are for one thread."""

    cursor: EventId = 0
    """The event that the windows have come to. Live tables without a position of their own show it."""
    rows: dict[TableName, TableStatus] = field(default_factory=dict)
    positions: dict[TableName, EventId] = field(default_factory=dict)
    """Positions of their own, of live, waiting and gone tables."""
    changed: set[TableName] = field(default_factory=set)
    not_live: set[TableName] = field(default_factory=set)
    """Tables that are not live: an index, so that a window has no cost that grows with all tables."""
    paused: set[TableName] = field(default_factory=set)
    copied: dict[TableName, TableName] = field(default_factory=dict)
    """Tables of groups that are copied beside the windows, and tables that wait for these, each with the first table of
    its group."""
    waiting_for_files: dict[TableName, int] = field(default_factory=dict)
    """Tables that wait to know their files, each with the time since when, in nanoseconds of the clock."""
    rereads: list[Reread] = field(default_factory=list)
    """Tables that the target showed and that are to be read again, of which no epoch has told yet."""
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
        """Return the event that a table shows which is not set aside (`ASIDE`)."""
        status = self.rows.get(name)
        if status is not None and status.state is State.PAUSED:
            return status.shows or 0
        return self.positions.get(name, self.cursor)

    def shown_or_none(self, name: TableName) -> EventId | None:
        """Return the event that the target shows of a table in any state; None where it shows nothing of it."""
        status = self.rows.get(name)
        if status is None:
            return None
        return status.shows if status.state in ASIDE else self.shown(name)

    def passed_by(self) -> set[TableName]:
        """Return the tables that show a state of the source and that windows leave as they are for now: paused ones,
        and those that are copied beside the windows."""
        return self.copied.keys() | self.paused

    # Between the ledger and memory

    def load(self, rows: Iterable[StateRow], cursor: EventId) -> None:
        """Take over the states that the ledger has, at a target whose windows have come to `cursor`. A waiting table
        that shows a later event belongs to an epoch that was not published, because its process died. It goes on from
        the cursor, so that the next epoch has its rows."""
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
        """Set the tables that an earlier process has read to STAGING, at a start, and return them with the events that
        they show. These are live tables beyond the cursor, which join the windows when one reaches their event. With
        `nothing_was_published` they are all tables that show a state of the source."""
        for name in list(self.rows):
            status = self.rows[name]
            if status.state is State.LIVE and self.shown(name) > self.cursor and not nothing_was_published:
                self._put(name, landed_status(self.positions.pop(name)))
            elif nothing_was_published and status.state in (State.LIVE, State.WAITING, State.PAUSED):
                self.positions.pop(name, None)
                self._put(name, replace(status, state=State.STAGING))
        return {name: self.rows[name].shows or 0 for name in self.in_state(State.STAGING)}

    def record(self, write: Callable[[list[TableRow], list[StateKey]], None]) -> None:
        """Call `write` with the rows to write and the keys to remove; the changes count as recorded when it returns."""
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
        """Set the table to UNKNOWN, so that it is read exactly. Until then the target goes on showing what it shows of
        the table. `event_id` is the event since which this is so."""
        self.note_reread(name, reason, event_id, cause)
        shows = self.shown_or_none(name)
        self.positions.pop(name, None)
        self.change(name, Transition.READ_IS_NEEDED, shows, reason, event_id, why)

    def note_reread(self, name: TableName, reason: str, event_id: EventId, cause: RereadCause) -> None:
        """Note for the next epoch that the table is to be read again, unless the target shows nothing of it yet."""
        before = self.rows.get(name)
        if before is not None and (before.state is State.LIVE or before.shows is not None):
            self.rereads.append(Reread(str(name), event_id, cause, reason))

    def begin_reading(self, name: TableName) -> None:
        """Set the table to READING, for the status alone; after a restart it is UNKNOWN again."""
        self._note(name, Transition.READ_BEGINS)

    def begin_copying(self, name: TableName) -> None:
        """Set the table to STAGING, for the status alone, once its files are copied or it is built."""
        self._note(name, Transition.COPY_BEGINS)

    def fail_read(self, name: TableName) -> None:
        """Set the table to UNKNOWN again after a read that failed; another read follows."""
        self._note(name, Transition.READ_FAILS)

    def land(self, name: TableName, exact_at: EventId, *, present: bool) -> None:
        """Set the table to LIVE at the event `exact_at` of its read; without `present` it was gone at the source then,
        and is OUT."""
        if present:
            self.change(name, Transition.READ_LANDS, exact_at)
        else:
            self.change(name, Transition.IS_GONE)
        self.positions[name] = exact_at

    def explain(self, name: TableName, reason: str) -> None:
        """Give the table another reason for the state that it has."""
        if self.rows[name].reason != reason:
            self._put(name, replace(self.rows[name], reason=reason))
            self.changed.add(name)

    # Windows

    def arrive(self, name: TableName, upto: EventId, *, present: bool) -> None:
        """Set the table to LIVE at the window's end `upto`; without `present` it is gone there, and is OUT."""
        self.positions.pop(name, None)
        if present:
            self.change(name, Transition.WINDOW_ENDS, upto)
        else:
            self.change(name, Transition.IS_GONE)

    def wait_for_files(self, name: TableName, shows: EventId, unknown_at: EventId, now_ns: int) -> None:
        """Set the table to WAITING: it shows `shows`, the last state whose files are known; those of event `unknown_at`
        are not."""
        before = self.rows.get(name)
        since = before.files_unknown_since_ns if before is not None else None
        self.change(
            name, Transition.FALLS_BEHIND, shows, f"the files of event {unknown_at} are not known yet", unknown_at
        )
        self._put(name, replace(self.rows[name], files_unknown_since_ns=now_ns if since is None else since))
        self.positions[name] = shows

    def wait_for_copy(self, name: TableName, copied_with: TableName, reason: str, event_id: EventId) -> None:
        """Set the table to WAITING for the group of `copied_with`, which is copied beside the windows. Windows pass the
        table by until `end_copy`."""
        self._fall_behind(name, self.shown(name), reason, event_id)
        self._put(name, replace(self.rows[name], copied_with=copied_with))

    def wait_for_base(self, name: TableName, reason: str) -> None:
        """Set the view to WAITING for a table that it shows."""
        shows = self.shown(name)
        self._fall_behind(name, shows, reason, shows)

    def end_copy(self, first: TableName) -> None:
        """End the copy of the group whose first table is `first`, which is done or has failed: windows take its tables
        on again."""
        for name in [name for name, copied_with in self.copied.items() if copied_with == first]:
            self._put(name, replace(self.rows[name], copied_with=None))

    def show(self, name: TableName, event_id: EventId) -> None:
        """Give a table that is live, waiting or gone the position `event_id`, from which windows go on."""
        self.positions[name] = event_id

    def end_window(self, upto: EventId) -> None:
        """Remove the positions of tables that a window has reached; they share the cursor from then on. Tables that
        wait or are paused keep theirs."""
        for name, shows in list(self.positions.items()):
            if shows <= upto and not self.is_(name, BEHIND):
                del self.positions[name]

    def quarantine(
        self, name: TableName, reason: str, event_id: EventId, why: NotLiveReason = NotLiveReason.OWN
    ) -> None:
        """Set the table to QUARANTINED; the target goes on showing what it shows of it."""
        shows = self.shown_or_none(name)
        self.positions.pop(name, None)
        self.change(name, Transition.IS_QUARANTINED, shows, reason, event_id, why)

    # How a state changes

    def _fall_behind(self, name: TableName, shows: EventId, reason: str, event_id: EventId) -> None:
        self.change(name, Transition.FALLS_BEHIND, shows, reason, event_id)
        self.positions[name] = shows

    def change(
        self,
        name: TableName,
        change: Transition,
        shows: EventId | None = None,
        reason: str = "",
        since: EventId = 0,
        why: NotLiveReason = NotLiveReason.OWN,
    ) -> None:
        """Make the `change` of the table's state. The next `record` writes it if the status differs in more than the
        shown event. Raises `Broken` for a change that the table's state does not have."""
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

    def _note(self, name: TableName, change: Transition) -> None:
        """Change the state of a table that is to be read, in memory alone. A table in another state, or a parked one,
        stays as it is."""
        status = self.rows.get(name)
        if status is not None and status.state in UNREAD - {State.PARKED}:
            self.rows[name] = replace(status, state=after(status.state, change))

    def _put(self, name: TableName, status: TableStatus) -> None:
        self.rows[name] = status
        self._index(name, status)

    def _index(self, name: TableName, status: TableStatus | None) -> None:
        """Keep the indexes over all tables up to date for one table."""
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
    """The tables that an operator holds back. With `are_looked_at` the next window looks at all events that they have
    not shown, to find again which tables wait for which. Only then have they positions among the other tables."""

    def __init__(self, states: TableStates) -> None:
        self.states, self.are_looked_at = states, False

    def begin(self, name: TableName, reason: str = PAUSED_BY_OPERATOR) -> None:
        """Set the table to PAUSED. Windows pass it by; it keeps the event that it shows, so that it can catch up from
        the journal."""
        shows = self.states.shown(name)
        self.states.change(name, Transition.IS_PAUSED, shows, reason, shows)
        if self.are_looked_at:
            self.states.positions[name] = shows
        else:
            self.states.positions.pop(name, None)

    def park(self, name: TableName) -> None:
        """Set a table that must be read exactly to PARKED, so that it is read when it is resumed. If the objects that
        the target would lose by the read are to be counted first, the caller has done that."""
        before = self.states.rows[name]
        self.states.change(name, Transition.IS_PAUSED, before.shows, PAUSED_BY_OPERATOR, before.since_event or 0)

    def unpark(self, name: TableName) -> None:
        before = self.states.rows[name]
        reason = "it was paused before it was read"
        self.states.change(name, Transition.IS_RESUMED, before.shows, reason, before.since_event or 0, before.why)

    def catch_up(self, name: TableName) -> None:
        """Set a paused table to WAITING, from the event that it shows."""
        before = self.states.rows[name]
        # A table that waits for another one did so with a reason of its own: who waits with whom may be another now.
        self.are_looked_at = self.are_looked_at or before.reason != PAUSED_BY_OPERATOR
        shows = before.shows or 0
        self.states.change(name, Transition.IS_RESUMED, shows, CATCHES_UP, shows)
        self.states.positions[name] = shows

    def end_window(self) -> None:
        """End the window that looked at paused tables, and take their positions away again."""
        if self.are_looked_at:
            self.are_looked_at = False
            for name in self.states.paused:
                self.states.positions.pop(name, None)

    def caught_up(self, upto: EventId) -> list[TableName]:
        """Return resumed tables that still wait, although a window to `upto` had nothing to bring to them."""
        return [
            name
            for name, shows in self.states.positions.items()
            if shows <= upto and self.states.is_(name, {State.WAITING}) and self.states.rows[name].reason == CATCHES_UP
        ]


def landed_status(exact_at: EventId) -> TableStatus:
    """Return the status of a table that shows the event `exact_at` of its read, which no window has reached."""
    return TableStatus(State.STAGING, exact_at, JOINS, exact_at)


def landed_row(name: TableName, exact_at: EventId) -> TableRow:
    return landed_status(exact_at).row(name)


def as_recorded(row: TableRow) -> TableRow:
    """Return the row as the ledger has it: READING and STAGING become UNKNOWN, because only this process knows of its
    reads."""
    busy = row.state in (TableState.READING, TableState.STAGING)
    return replace(row, state=TableState.UNKNOWN) if busy else row
