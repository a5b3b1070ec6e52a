"""Groups whose files take long to copy: they leave the window, are applied beside it, and rejoin.

Such a group is applied whole by a thread of its own, up to the event at which its window ended. Meanwhile windows pass
its tables by, and those that a later rename links to them; each shows the event that it showed when it left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from calque.core.plan.cost import cells
from calque.engine.window.advance import GroupOutcome
from calque.engine.window.prepare import ReadyPlan
from calque.logs.fields import beside_windows
from calque.model.journal import Entry
from calque.model.names import EventId, TableName

STAGERS = 2
PATIENCE = 3.0
"""Seconds that a group's copies may hold up a window."""
BYTES_PER_SECOND, SECONDS_PER_FILE = 100 << 20, 0.001
"""The speed that copies are assumed to have; a target's bandwidth may be less."""


class CopyTakesLong(Exception):
    """The group's files take too long to copy for its window to wait for them."""

    def __init__(self, files: int, size: int) -> None:
        self.files, self.size = files, size
        super().__init__(f"{files} files with {size} bytes are to be copied")


@dataclass(frozen=True, slots=True)
class LongCopy:
    """A group on its way, beside the windows, to the state at event `upto`. `names` are its admitted tables."""

    names: tuple[TableName, ...]
    entries: Sequence[Entry]
    upto: EventId
    future: Future[GroupOutcome]


@dataclass(slots=True)
class LongCopies:
    """The groups that are applied beside the windows. The tables' states say which tables wait for them."""

    pool: Executor
    wake: Callable[[], None]
    bytes_per_second: float = BYTES_PER_SECOND
    patience: float = PATIENCE
    jobs: list[LongCopy] = field(default_factory=list)

    def require_short(self, ready: ReadyPlan) -> None:
        """Raise `CopyTakesLong` when what is left to do copies for longer than a window may be held up."""
        size = sum(hop.bytes for hop in ready.plan.hops)
        if not size:
            return
        datas = {data for hop in ready.plan.hops if hop.bytes for _, data in cells(hop.operation)}
        files = sum(len(ready.listings[data].files) for data in datas if data in ready.listings)
        if size / self.bytes_per_second + files * SECONDS_PER_FILE > self.patience:
            raise CopyTakesLong(files, size)

    def submit(
        self, names: Sequence[TableName], entries: Sequence[Entry], upto: EventId, work: Callable[[], GroupOutcome]
    ) -> None:
        """Do `work` on a thread beside the windows, and call `wake` when it is done. `names` are the tables of the
        group, `upto` is the event that it goes to."""
        future = self.pool.submit(beside_windows(work))
        self.jobs.append(LongCopy(tuple(names), entries, upto, future))
        future.add_done_callback(lambda _: self.wake())

    def finished(self) -> list[LongCopy]:
        """Return the groups whose work came through or failed; each is returned once."""
        ended_jobs = [job for job in self.jobs if job.future.done()]
        self.jobs = [job for job in self.jobs if job not in ended_jobs]
        return ended_jobs

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
