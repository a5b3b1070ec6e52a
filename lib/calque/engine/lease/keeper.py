"""The keeper of a target's lease, so that there is one writer at a target: it takes the lease, renews it, and lets
calls begin only while it is sure of it.

See docs/operations.md. The promise: a writer that lost its lease begins no call at the target. `core.records.lease`
says who may take the lease. The generations are in the target's own metastore, so that every writer meets them,
whichever state folder it has.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from calque.core.records.lease import (
    FirstObservation,
    LeaseLost,
    LiveHolder,
    ObservedLease,
    TakeGeneration,
    next_step,
    renewed_after,
    usable,
)
from calque.errors import Broken, CalqueError, Unavailable
from calque.logs.fields import beside_windows
from calque.model.lease import Generation, Writer
from calque.ports import Conflict, Leases

LOG = logging.getLogger(__name__)
MOST_SECONDS = 1.0
PATIENCE = 2.0
"""Seconds for which `release` waits for a renewal that is under way."""


class LeaseHeldByOther(Unavailable):
    """Raised where another writer, which lives, has the lease; waiting for it would not help."""


def elapsed() -> float:
    """Return seconds by a clock that can't be set and, where the machine has such a clock, goes on while the machine
    sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """One writer's part in a target's lease. One thread takes it, another renews it after each `every` seconds (at most
    a third of `seconds`), and all ask it. A role in a state folder has a lease, too, which `ends_when_out`: it ends as
    soon as it can't be renewed and has run out. Any other lease is taken again when that is possible."""

    def __init__(
        self,
        leases: Leases,
        target: str,
        seconds: float,
        clock: Callable[[], float] = elapsed,
        every: float = float("inf"),
        ends_when_out: bool = False,
    ) -> None:
        self.leases, self.target, self.seconds, self.clock = leases, target, seconds, clock
        self.every = min(every, renewed_after(seconds))
        self.ends_when_out = ends_when_out
        self.mine: Generation | None = None
        """The last generation that this writer had. Only until `until` is it certain that no other writer has taken the
        next one."""
        self.previous: Generation | None = None
        """The generation of another writer that was the newest when this writer made its first."""
        self.shown: tuple[str, int] = "", 0
        """The id of the writer's ledger, and its newest epoch: each renewal tells of them."""
        self.until = float("-inf")
        self.lost: CalqueError | None = None
        self.first: FirstObservation | None = None
        self.ended = threading.Event()
        self.keeper: threading.Thread | None = None
        self.woken = threading.Event()
        """Set when a thread waits for what the keeper does."""
        self.changed = threading.Condition()

    def permit(self) -> None:
        """Return if a call may begin now. If the lease was not renewed in time, wait for that, for a third of its
        seconds at most. Raises `Broken` where another writer has the lease, and `Unavailable` where that is not known,
        or the lease was not taken yet."""
        if self.clock() >= self.until and self.keeper is not None:
            self.woken.set()
            with self.changed:
                self.changed.wait_for(self.is_settled, renewed_after(self.seconds))
        if self.lost is not None:
            raise self.lost
        if self.clock() >= self.until:
            raise Unavailable(
                f"The lease on {self.target} has run out",
                "It was not renewed in time",
                "It is taken again as soon as that is possible, unless another writer was faster",
            )

    def is_settled(self) -> bool:
        """Tell whether a thread need not wait for a renewal any longer: the lease is sure again, lost or ended."""
        return self.lost is not None or self.ended.is_set() or self.clock() < self.until

    # Taking

    def attempt(self, writer: Writer) -> ObservedLease | None:
        """Take the lease for `writer` if that is allowed, and return None. Otherwise return what stands in the way and
        may vanish with time; ask again after `pause`. Raises `LeaseHeldByOther`; `Broken` where the lease was this
        writer's and is another's; `Unavailable`."""
        began = self.clock()
        newest = self.leases.newest()
        held_number = self.mine.number if self.mine is not None else 0
        step = next_step(writer, held_number, newest, self.first, began)
        match step:
            case TakeGeneration(number):
                if not self.take(number, writer):
                    return self.attempt(writer)
                if newest is None or newest.writer.id != writer.id:
                    self.previous = newest
                return None
            case ObservedLease(holder):
                if self.first is None:
                    self.first = FirstObservation(holder, self.clock())
                return step
            case LiveHolder(holder):
                raise LeaseHeldByOther(
                    f"Another writer holds the lease on {self.target}",
                    f"It is {holder.writer}, which lives",
                    "Stop it first; a replica of something else needs another name for its target",
                )
            case LeaseLost(by):
                self.lost = Broken(
                    f"The lease on {self.target} is lost",
                    f"It was taken by {by.writer}" if by is not None else "Its record was removed",
                    "See to it that one process writes there, and start that one",
                )
                raise self.lost

    def take(self, number: int, writer: Writer) -> bool:
        """Make the generation `number`, and return whether it was made and is the newest. A process that is late may
        make a generation that others have passed."""
        sent = self.clock()
        ledger, epoch = self.shown
        generation = Generation(number, writer, self.seconds, ledger=ledger, epoch=epoch)
        try:
            self.leases.take(generation)
        except Conflict:
            return False
        newest = self.leases.newest()
        if newest is None or newest.number != number:
            if newest is not None:
                self.leases.forget(newest.number)
            return False
        self.mine, self.until = generation, sent + usable(self.seconds)
        LOG.info("%s: generation %d of the lease is taken", self.target, number)
        # Those that stay are found by the next taking.
        with suppress(Unavailable):
            self.leases.forget(number)
        return True

    def pause(self) -> float:
        """Return the seconds to wait before the next look at what stands in the way."""
        seconds = self.first.generation.seconds if self.first is not None else self.seconds
        return min(MOST_SECONDS, seconds / 10)

    # Keeping

    def keep(self, ended: Callable[[CalqueError], None]) -> None:
        """Renew the lease on a thread of its own until `release`. `ended` is called with the error that makes renewal
        impossible."""
        self.keeper = threading.Thread(
            target=beside_windows(self.run), args=(ended,), name=f"lease-{self.target}", daemon=True
        )
        self.keeper.start()

    def run(self, ended: Callable[[CalqueError], None]) -> None:
        wait = self.every
        is_renewed, has_run_out = True, False
        while not self.is_over(wait):
            wait = self.every
            try:
                self.renew()
                self.tell()
                is_renewed, has_run_out = True, False
            except Unavailable as error:
                if self.ends_when_out and self.clock() >= self.until:
                    self.fail(error, ended)
                    return
                if is_renewed:
                    LOG.warning("%s: the lease is not renewed, which is tried again: %s", self.target, error)
                if not has_run_out and self.clock() >= self.until:
                    LOG.warning("%s: the lease has run out: no call begins before it is renewed", self.target)
                is_renewed, has_run_out = False, self.clock() >= self.until
                self.ended.wait(min(MOST_SECONDS, self.seconds / 10))
                wait = 0.0
            except CalqueError as error:
                self.fail(error, ended)
                return
            except Exception as error:
                LOG.exception("%s: the lease", self.target)
                what = f"The lease on {self.target} ended with {type(error).__name__}"
                self.fail(Broken(what, str(error), "See the log"), ended)
                return

    def is_over(self, wait: float) -> bool:
        """Wait for `wait` seconds, or until a thread wakes the keeper, and return whether the lease has ended."""
        self.woken.wait(wait)
        self.woken.clear()
        return self.ended.is_set()

    def fail(self, error: CalqueError, ended: Callable[[CalqueError], None]) -> None:
        self.lost = error
        self.tell()
        if not self.ended.is_set():
            ended(error)

    def tell(self) -> None:
        """Wake the threads that wait for a renewal."""
        with self.changed:
            self.changed.notify_all()

    def renew(self) -> None:
        """Renew the lease, or take it again if it has run out. A renewal counts only if its answer came before the
        lease ran out: another writer's last look, which begins later, sees it then. Raises as `attempt` does."""
        assert self.mine is not None
        sent = self.clock()
        if sent >= self.until:
            self.attempt(self.mine.writer)
            return
        self.mine = self.renewed(self.mine)
        try:
            self.leases.renew(self.mine)
        except Conflict:
            self.until = float("-inf")
            self.attempt(self.mine.writer)
            return
        if self.clock() < self.until:
            self.until = sent + usable(self.seconds)

    def renewed(self, generation: Generation) -> Generation:
        ledger, epoch = self.shown
        return replace(generation, renewals=generation.renewals + 1, ledger=ledger, epoch=epoch)

    def release(self) -> None:
        """Give the lease back, so that the next writer need not wait. The caller does this after all calls have ended.
        A lease that has run out, or is being renewed by a metastore that does not answer, ends by itself."""
        self.ended.set()
        self.woken.set()
        self.tell()
        if self.keeper is not None:
            self.keeper.join(PATIENCE)
        busy = self.keeper is not None and self.keeper.is_alive()
        sure, self.until = self.clock() < self.until, float("-inf")
        if self.mine is None or self.lost is not None or busy or not sure:
            return
        try:
            self.leases.renew(replace(self.renewed(self.mine), released=True))
        except (CalqueError, Conflict) as error:
            LOG.warning("%s: the lease is not given back, and ends by itself: %s", self.target, error)
