"""What a reader of epochs needs of a target's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from calque.model.ledger import Epoch


class EpochLog(Protocol):
    """The epochs of one target, numbered one by one. Another process publishes and forgets them meanwhile. Every method
    may raise `Unavailable`, after which the same call may succeed, and `StateUnusable`."""

    def is_there(self) -> bool:
        """Whether there is a ledger, perhaps one without an epoch."""

    def numbers(self) -> range:
        """The numbers of the epochs that are not forgotten; the empty range that begins at 1 before the first epoch.
        Cheap: called many times a second."""

    def epochs(self) -> Sequence[Epoch]:
        """Those that are not forgotten, ascending."""

    def changes(self, numbers: range) -> tuple[Sequence[Epoch], pa.Table]:
        """The epochs of these numbers that are not forgotten, ascending, and rows of objects with these numbers in the
        order in which things were done. The columns are at least `epoch`, `database`, `table`, `partition`,
        `incarnation`, `event_id`, `change`, `location` and `delta_version`. There may be rows of epochs that are not
        published, or forgotten: they do not count."""
