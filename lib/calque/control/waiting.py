"""Waiting until a target has reached an event: `EventWait`, for `calque wait` and for `/wait`."""

from __future__ import annotations

from dataclasses import dataclass

from calque.control.pause_rules import goes_on_soon, is_paused
from calque.control.requests import open_requests
from calque.control.status_records import position_of
from calque.core.records.gap_states import dealt_with
from calque.core.records.reached_state import ReachedState, TargetReachedState, reached_state
from calque.engine.sides.journal_reads import newest
from calque.errors import Unavailable
from calque.model.names import EventId
from calque.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of a look at the target. `has_reached` says whether the target shows the event. `position` is None
    before the first epoch. `is_mended` is False while the target is being repaired behind a gap in the log: its
    position is an event of another history then."""

    has_reached: bool
    position: EventId | None
    is_mended: bool


class EventWait:
    """The wait of one caller for one event at one target. Raises `Refused` for an unknown target."""

    def __init__(self, wiring: Wiring, target: str, event_id: EventId) -> None:
        target_wiring = wiring.target(target)
        self.wiring, self.target, self.event_id = wiring, target, event_id
        self.ledger, self.gaps = target_wiring.ledger(), target_wiring.source.gaps()

    def look(self) -> Waited:
        """Look whether the target shows the event. Raises `Unavailable` where it does not come by itself: an operator
        has paused the target, or tables that are set aside are missing."""
        wiring, target = self.wiring, self.target
        position = position_of(wiring, target, self.ledger.last_epoch())
        # Records first: behind a gap the rows of all tables are written before the record that it is dealt with.
        is_mended = dealt_with(self.ledger.records()) >= newest(self.gaps)
        # Many look again and again: what grows with the number of tables is read only where the answer depends on it.
        rows = self.ledger.tables().values() if position is not None and position >= self.event_id else ()
        reached = reached_state(position, rows, self.event_id) if is_mended else TargetReachedState(ReachedState.GOING)
        if reached.state is ReachedState.REACHED:
            return Waited(has_reached=True, position=position, is_mended=is_mended)
        is_without = reached.state is ReachedState.WITHOUT
        if is_without and not open_requests(wiring, target) and not goes_on_soon(wiring.control, target, rows):
            raise Unavailable(
                f"{target} shows event {self.event_id} without {', '.join(reached.missing)}",
                "These tables are set aside",
                "See `calque status`",
            )
        if is_paused(wiring.control, target):
            problem = f"{target} does not show event {self.event_id}"
            raise Unavailable(problem, "An operator has paused it", f"Let it go on: calque resume --target {target}")
        return Waited(has_reached=False, position=position, is_mended=is_mended)

    def late(self, waited: Waited, timeout: float) -> Unavailable:
        """Return the error that says that the target does not show the event after `timeout` seconds."""
        behind_gap = "" if waited.is_mended else ", and it is being repaired behind a gap in the log"
        return Unavailable(
            f"{self.target} does not show event {self.event_id} after {timeout:g} s",
            "It has no epoch yet" if waited.position is None else f"Its position is {waited.position}{behind_gap}",
            "Look at `calque status`, or wait longer",
        )
