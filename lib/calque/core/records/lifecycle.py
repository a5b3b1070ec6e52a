"""The life of a table at a target: its states, and the changes that lead from one state to another.

Every permitted change of a table's state stands in `TRANSITIONS`; `engine.sides.table_states` keeps the tables' states
and asks here for each change. The picture in `docs/architecture.md` is drawn from this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from calque.errors import Broken
from calque.model.ledger import TableState


class State(StrEnum):
    """The state of a table at a target, which decides what windows and reads do with it."""

    OUT = "out"
    """The target shows no such table, and none is expected there."""
    UNKNOWN = "unknown"
    """The table must be read exactly, and no read is under way."""
    PARKED = "parked"
    """The table must be read exactly when the operator who paused it lets it go on."""
    READING = "reading"
    """The table is being read exactly, or compared."""
    STAGING = "staging"
    """The table was read, and is copied or built, or waits for the window that reaches the event of its read."""
    LIVE = "live"
    """Windows bring the table to their end."""
    WAITING = "waiting"
    """The table shows an earlier event than the windows' end, and goes on from there."""
    PAUSED = "paused"
    """An operator holds the table back, or a table that renames link it to: windows pass it by."""
    QUARANTINED = "quarantined"
    """The table is set aside with a reason until an operator releases it."""


class Transition(StrEnum):
    """An occurrence that leads a table from one state to another."""

    READ_IS_NEEDED = "read is needed"
    READ_BEGINS = "read begins"
    COPY_BEGINS = "copy begins"
    READ_FAILS = "read fails"
    READ_LANDS = "read lands"
    WINDOW_ENDS = "window ends"
    FALLS_BEHIND = "falls behind"
    IS_PAUSED = "is paused"
    IS_RESUMED = "is resumed"
    IS_QUARANTINED = "is quarantined"
    IS_GONE = "is gone"


UNREAD = frozenset({State.UNKNOWN, State.PARKED, State.READING, State.STAGING})
"""States in which it is not known whether the target shows a state of the source: windows pass the table by."""
ASIDE = UNREAD | {State.QUARANTINED}
"""States in which no window may take a table on."""
BEHIND = frozenset({State.WAITING, State.PAUSED})
"""States in which a table shows a state of the source, but an earlier one."""
SHOWN = BEHIND | {State.LIVE}
"""States in which the target shows a state of the source."""

RECORDED: Mapping[State, TableState] = MappingProxyType(
    {
        State.UNKNOWN: TableState.UNKNOWN,
        State.PARKED: TableState.UNKNOWN,
        State.READING: TableState.READING,
        State.STAGING: TableState.STAGING,
        State.LIVE: TableState.LIVE,
        State.WAITING: TableState.WAITING,
        State.PAUSED: TableState.WAITING,
        State.QUARANTINED: TableState.QUARANTINED,
    }
)
"""The state by which `status` and the ledger tell users of each; only the reason says that a table is paused."""

_FROM_SHOWN: Mapping[Transition, State] = {
    Transition.READ_IS_NEEDED: State.UNKNOWN,
    Transition.WINDOW_ENDS: State.LIVE,
    Transition.FALLS_BEHIND: State.WAITING,
    Transition.IS_PAUSED: State.PAUSED,
    Transition.IS_QUARANTINED: State.QUARANTINED,
    Transition.IS_GONE: State.OUT,
}
_FROM_UNREAD: Mapping[Transition, State] = {
    Transition.READ_BEGINS: State.READING,
    Transition.COPY_BEGINS: State.STAGING,
    Transition.READ_FAILS: State.UNKNOWN,
    Transition.READ_LANDS: State.LIVE,
    Transition.IS_PAUSED: State.PARKED,
    Transition.IS_QUARANTINED: State.QUARANTINED,
    Transition.IS_GONE: State.OUT,
}
TRANSITIONS: Mapping[State, Mapping[Transition, State]] = MappingProxyType(
    {
        State.OUT: _FROM_SHOWN,
        State.UNKNOWN: _FROM_UNREAD,
        State.READING: _FROM_UNREAD,
        State.STAGING: _FROM_UNREAD,
        State.PARKED: {
            Transition.IS_PAUSED: State.PARKED,
            Transition.IS_RESUMED: State.UNKNOWN,
            Transition.IS_QUARANTINED: State.QUARANTINED,
        },
        State.LIVE: _FROM_SHOWN,
        State.WAITING: _FROM_SHOWN,
        State.PAUSED: {
            Transition.IS_PAUSED: State.PAUSED,
            Transition.IS_RESUMED: State.WAITING,
            Transition.READ_IS_NEEDED: State.UNKNOWN,
            Transition.IS_QUARANTINED: State.QUARANTINED,
        },
        State.QUARANTINED: {
            Transition.READ_IS_NEEDED: State.UNKNOWN,
            Transition.IS_QUARANTINED: State.QUARANTINED,
        },
    }
)


def after(state: State, change: Transition) -> State:
    """Return the state after the change. Raises `Broken` where `TRANSITIONS` has no such change of the state."""
    following = TRANSITIONS[state].get(change)
    if following is None:
        raise Broken(
            f'A table that is {state.value} met "{change.value}"',
            "No such change leads out of that state",
            "Report it with the log; a new start reads the table's state from the ledger",
        )
    return following


def arrows() -> Iterator[tuple[State, Transition, State]]:
    """Yield every transition that leads to another state, for the picture in the documentation."""
    for state, changes in TRANSITIONS.items():
        for change, following in changes.items():
            if following is not state:
                yield state, change, following
