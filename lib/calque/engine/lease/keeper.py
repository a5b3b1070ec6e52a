"""One writer at a target: takes the lease on it, renews it, and lets calls begin only as long as it is sure of it.

See docs/operations.md. What is promised: a writer that lost its lease begins no call at the target.
`core.records.lease` says who may take it; the generations are in the target's own metastore, so that every writer meets
them whatever its state folder.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from calque.core.records.lease import (
    FirstSight,
    LeaseLost,
    Living,
    TakeGeneration,
    Watch,
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
"""Seconds that an end waits for a renewal under way."""


class LeaseHeldByOther(Unavailable):
    """Another writer, which lives, has the lease: it is not waited for."""


def elapsed() -> float:
    """Seconds by a clock that is never set, and that goes on while the machine sleeps where there is such a one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """What one writer has of a target's lease. Taken by one thread, renewed by another after each `every` seconds, a
    third of it where nothing else is said, asked by all. A role in a state folder has one, too: one that
    `ends_when_out`, as soon as it can't be renewed and has run out. Any other is taken again when that is possible."""

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
        """The last one that was this writer's. Only until `until` is it certain that nobody has taken the next."""
        self.previous: Generation | None = None
        """Another writer's, which was the newest one when this writer made its first."""
        self.shown: tuple[str, int] = "", 0
        """The writer's ledger, by its id, and its newest epoch: each renewal tells of them."""
        self.until = float("-inf")
        self.lost: CalqueError | None = None
        self.first: FirstSight | None = None
        self.ended = threading.Event()
        self.keeper: threading.Thread | None = None
        self.woken = threading.Event()
        """Somebody waits for what the keeper does."""
        self.changed = threading.Condition()

    def permit(self) -> None:
        """Whether a call may begin now. A lease that was not renewed in time is waited for, for a third of it. Raises
        `Broken` where it is another's, and `Unavailable` where that is not known, or it was not taken yet."""
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
        """Whether waiting for it makes no difference."""
        return self.lost is not None or self.ended.is_set() or self.clock() < self.until

    # Taking

    def attempt(self, writer: Writer) -> Watch | None:
        """Take the lease for the writer where that may be; None when it has it. Else what stands in the way, and may
        vanish with time: ask again after `pause`. Raises `LeaseHeldByOther`; `Broken` where it was the writer's and is
        another's; `Unavailable`."""
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
            case Watch(holder):
                if self.first is None:
                    self.first = FirstSight(holder, self.clock())
                return step
            case Living(holder):
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
        """Whether the generation is made, and the newest. Whoever is late may make one that others have passed."""
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
        """Seconds between two looks at what stands in the way."""
        seconds = self.first.generation.seconds if self.first is not None else self.seconds
        return min(MOST_SECONDS, seconds / 10)

    # Keeping

    def keep(self, ended: Callable[[CalqueError], None]) -> None:
        """Renew it on a thread of its own until `release`. `ended` is told what makes that impossible."""
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
        """After so many seconds, or as soon as somebody waits, whether there is nothing more to renew."""
        self.woken.wait(wait)
        self.woken.clear()
        return self.ended.is_set()

    def fail(self, error: CalqueError, ended: Callable[[CalqueError], None]) -> None:
        self.lost = error
        self.tell()
        if not self.ended.is_set():
            ended(error)

    def tell(self) -> None:
        """Wake who waits for a renewal."""
        with self.changed:
            self.changed.notify_all()

    def renew(self) -> None:
        """Renew it, or take it again where it has run out. A renewal counts when its answer came before that: the
        others' last look, which begins later, then sees it. Raises as `attempt` does."""
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
        """Give it back, so that the next writer need not wait. Only after all calls have ended. What has run out, or
        is just being renewed by a metastore that does not answer, ends by itself."""
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
