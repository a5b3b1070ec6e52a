"""The life of a table at a target: which states there are, and what leads from one to the other.

Everything that a table's state may do stands in `TRANSITIONS`; `engine.sides.table_states` keeps the tables' states and
asks here for each change. The picture in `docs/architecture.md` is drawn from this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from calque.errors import Broken
from calque.model.ledger import TableState


class State(StrEnum):
    """What windows and reads do with a table."""

    OUT = "out"
    """The target shows no such table, and none is expected there."""
    UNKNOWN = "unknown"
    """It must be read exactly; nothing is under way."""
    PARKED = "parked"
    """It must be read exactly when the operator who paused it lets it go on."""
    READING = "reading"
    """It is read exactly, or compared."""
    STAGING = "staging"
    """It was read, and is copied or built, or waits for the window that reaches the event of its read."""
    LIVE = "live"
    """Windows bring it to their end."""
    WAITING = "waiting"
    """It shows an earlier event than the windows' end, and goes on from there."""
    PAUSED = "paused"
    """An operator holds it back, or a table that it is linked to: windows pass it by."""
    QUARANTINED = "quarantined"
    """It is set aside with a reason."""


class Change(StrEnum):
    """What happens to a table."""

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
"""States in which what the target shows is not known to be the source's: windows pass the table by."""
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
"""How users are told of each: `status` and the ledger know no pauses, the reason does."""

_FROM_SHOWN: Mapping[Change, State] = {
    Change.READ_IS_NEEDED: State.UNKNOWN,
    Change.WINDOW_ENDS: State.LIVE,
    Change.FALLS_BEHIND: State.WAITING,
    Change.IS_PAUSED: State.PAUSED,
    Change.IS_QUARANTINED: State.QUARANTINED,
    Change.IS_GONE: State.OUT,
}
_FROM_UNREAD: Mapping[Change, State] = {
    Change.READ_BEGINS: State.READING,
    Change.COPY_BEGINS: State.STAGING,
    Change.READ_FAILS: State.UNKNOWN,
    Change.READ_LANDS: State.LIVE,
    Change.IS_PAUSED: State.PARKED,
    Change.IS_QUARANTINED: State.QUARANTINED,
    Change.IS_GONE: State.OUT,
}
TRANSITIONS: Mapping[State, Mapping[Change, State]] = MappingProxyType(
    {
        State.OUT: _FROM_SHOWN,
        State.UNKNOWN: _FROM_UNREAD,
        State.READING: _FROM_UNREAD,
        State.STAGING: _FROM_UNREAD,
        State.PARKED: {
            Change.IS_PAUSED: State.PARKED,
            Change.IS_RESUMED: State.UNKNOWN,
            Change.IS_QUARANTINED: State.QUARANTINED,
        },
        State.LIVE: _FROM_SHOWN,
        State.WAITING: _FROM_SHOWN,
        State.PAUSED: {
            Change.IS_PAUSED: State.PAUSED,
            Change.IS_RESUMED: State.WAITING,
            Change.READ_IS_NEEDED: State.UNKNOWN,
            Change.IS_QUARANTINED: State.QUARANTINED,
        },
        State.QUARANTINED: {
            Change.READ_IS_NEEDED: State.UNKNOWN,
            Change.IS_QUARANTINED: State.QUARANTINED,
        },
    }
)


def after(state: State, change: Change) -> State:
    """The state after the change. Raises `Broken` where the table of transitions has no such change."""
    following = TRANSITIONS[state].get(change)
    if following is None:
        raise Broken(
            f'A table that is {state.value} met "{change.value}"',
            "No such change leads out of that state",
            "Report it with the log; a new start reads the table's state from the ledger",
        )
    return following


def arrows() -> Iterator[tuple[State, Change, State]]:
    """Every transition that leads to another state, for the picture in the documentation."""
    for state, changes in TRANSITIONS.items():
        for change, following in changes.items():
            if following is not state:
                yield state, change, following
