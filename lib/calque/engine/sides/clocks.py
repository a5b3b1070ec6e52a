"""The time by which ages are counted when data are to be removed for their age. No clock is believed alone.

An age is counted up to the median of three clocks: the machine's own, that of the storage (the time of a file written
now) and that of a metastore (the time of an object written now). Of two the earlier one counts, so that what may be too
young stays. Within a process the machine's clock is not believed where it ran ahead of the monotonic clock, which
cannot be set.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from secrets import token_hex

from calque.core.formats.layout import join
from calque.engine.sides.calque_database import own_view
from calque.engine.sides.sides import TargetSide
from calque.errors import CalqueError
from calque.model.files import File
from calque.model.names import OURS, TableName
from calque.ports import Catalog, Clock, Conflict, Storage
from calque.ports.steady_clock import STEADY, SteadyClock

LOG = logging.getLogger(__name__)
CLOCK = TableName(OURS, f"{OURS}_clock")
DDL_TIME = "transient_lastDdlTime"
WRITTEN = "calque.clock.written"
FILE = f"{OURS}_clock"
TRIES = 3
TOLD_SECONDS = 60.0
"""Seconds by which the machine's clock may differ from the believed time before a warning is logged."""

Reading = Callable[[], int | None]
"""A function that returns the time of a clock in nanoseconds since the epoch; None where the clock does not answer."""


def believed_now_ns(wall_ns: int, others: Iterable[Reading] = ()) -> int:
    """Return the time by which ages are counted, in nanoseconds since the epoch: the median of the machine's clock and
    the others that answer; of an even number the earlier of the two in the middle."""
    readings = sorted([wall_ns, *(reading for clock in others if (reading := clock()) is not None)])
    believed = readings[(len(readings) - 1) // 2]
    if abs(wall_ns - believed) > TOLD_SECONDS * 1e9:
        LOG.warning("the machine's clock is %+.0f s from what others say", (wall_ns - believed) / 1e9)
    return believed


def storage_clock(storage: Storage, directory: str) -> Reading:
    """Return the clock of the storage that `directory` lies on: the time of a file that is written there now, and
    removed. The file has one name, so that the next reading removes what a dead process left. Where another process has
    just removed it, it is written again, `TRIES` times at most."""
    path = join(directory, FILE)

    def read() -> int | None:
        file: File | None = None
        try:
            for _ in range(TRIES):
                storage.write(path, b"now")
                file = storage.files([path]).get(path)
                storage.remove([path])
                if file is not None:
                    break
        except CalqueError as error:
            LOG.info("the clock of %s is not known: %s", directory, error)
            return None
        return file.modified_ns or None if file is not None else None

    return read


def metastore_clock(catalog: Catalog) -> Reading:
    """Return the clock of a metastore: the time, in whole seconds, that it gives to a view of calque's which is written
    now. The clock does not answer while calque's own database does not exist."""

    def read() -> int | None:
        # A parameter that differs each time: a server may pass over an alteration that changes nothing.
        view = own_view(CLOCK, {WRITTEN: token_hex(6)})
        try:
            if catalog.database(OURS) is None:
                return None
            if catalog.table(CLOCK) is None:
                with suppress(Conflict):
                    catalog.create_table(view)
            catalog.alter_table(CLOCK, view)
            written = catalog.table(CLOCK)
        except (CalqueError, Conflict) as error:
            LOG.info("the clock of the target's metastore is not known: %s", error)
            return None
        seconds = (written.parameters or {}).get(DDL_TIME, "") if written is not None else ""
        return int(seconds) * 10**9 if seconds.isdecimal() else None

    return read


def believed_now_at(side: TargetSide) -> int:
    """Return the time by which ages are counted at a target, in nanoseconds since the epoch. It asks the clocks of the
    target's metastore and storage, and so writes to both."""
    warehouse = side.policy.warehouse
    others = [metastore_clock(side.catalog)]
    if side.admission.copies_some:
        others.append(storage_clock(side.storage, warehouse))
    return believed_now_ns(STEADY.now_ns(), others)


class BelievedClock:
    """A clock for code that removes things by age: `clock`, corrected by the `others` at most once in `seconds`
    seconds."""

    def __init__(
        self, clock: Clock, others: Sequence[Reading], steady: SteadyClock = STEADY, seconds: float = 600.0
    ) -> None:
        self._clock, self._others, self._steady, self._seconds = clock, others, steady, seconds
        self._lock = threading.Lock()
        self._believed: tuple[int, int] | None = None
        """The time that was believed last, and when that was by the monotonic clock."""

    def now_ns(self) -> int:
        with self._lock:
            elapsed = self._clock.elapsed_ns()
            if self._believed is None or elapsed - self._believed[1] > self._seconds * 1e9:
                self._believed = believed_now_ns(self._steady.now_ns(), self._others), elapsed
            return self._believed[0] + elapsed - self._believed[1]

    def elapsed_ns(self) -> int:
        return self._clock.elapsed_ns()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
