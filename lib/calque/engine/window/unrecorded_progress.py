"""The farthest events that windows of a target came to without an epoch that tells of them."""

from __future__ import annotations

from dataclasses import dataclass

from calque.model.names import EventId


@dataclass(slots=True)
class UnrecordedProgress:
    """The events up to which a target may show changes beyond its last epoch, because a window died, or failed
    half-way.

    `tried` is the farthest end of any window, of this process or of one before. No later window may end before it:

        80 is the position; a window to 95 applies `DROP TABLE t` (event 93) and dies before its epoch.
        A next window to 90 would find `t` missing, fold its CREATE and INSERTs up to 90, and show `t` again,
        which readers had seen go: what is dropped carries no mark that could tell. So the next window ends at 95.

    `unrecorded` is the last event up to which the target may show changes without a row in the ledger:

        A window to 95 adds partition `ds=1` to `u` (event 91), and fails at another table. Its epoch is never
        published. The window that comes next finds `ds=1` in place, makes no call, and would record nothing: for groups
        with events up to 95 it compares what is shown with the ledger, and records what is missing there.
    """

    tried: EventId = 0
    unrecorded: EventId = 0

    def try_to(self, upto: EventId) -> None:
        """Note that a window is about to be played to event `upto`."""
        self.tried = max(self.tried, upto)

    def fail_at(self, upto: EventId) -> None:
        """Note that a window to event `upto` left no epoch."""
        self.unrecorded = max(self.unrecorded, upto)
