"""The port through which epochs are read: a target's ledger, as far as a reader needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from calque.model.ledger import Epoch


class EpochLog(Protocol):
    """The epochs of one target, numbered one by one. Another process publishes and forgets epochs meanwhile. Every
    method may raise `Unavailable`, after which the same call may succeed, and `StateUnusable`."""

    def is_there(self) -> bool:
        """Tell whether there is a ledger. It may have no epoch yet."""

    def numbers(self) -> range:
        """Return the numbers of the epochs that are not forgotten; before the first epoch, the empty range that begins
        at 1. Cheap, because it is called many times a second."""

    def epochs(self) -> Sequence[Epoch]:
        """Return the epochs that are not forgotten, ascending."""

    def changes(self, numbers: range) -> tuple[Sequence[Epoch], pa.Table]:
        """Return the epochs with these numbers that are not forgotten, ascending, and the rows of objects with these
        numbers, in the order in which things were done. The columns are at least `epoch`, `database`, `table`,
        `partition`, `incarnation`, `event_id`, `change`, `location` and `delta_version`. Rows of epochs that are not
        published, or forgotten, may be among them: the caller leaves them out."""
