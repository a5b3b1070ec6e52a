"""Takes and keeps the lease on the target of a part, and its identity with it: `LeaseHolder`."""

from __future__ import annotations

import logging
from typing import Protocol

from calque.control.identity import RunIdentity
from calque.engine.lease.keeper import Lease
from calque.model.lease import Writer
from calque.model.state_places import TargetPlaces
from calque.streams.supervisor import Supervisor
from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)


class IdentityOfPart(Protocol):
    """Who is who, for one target of a process."""

    def begin(self) -> None:
        """Before the lease is taken. Raises `Refused` where another metastore answers than the ledger remembers."""

    def settle(self, lease: Lease) -> str:
        """Once it is taken: what answers is written down. The ledger's id."""


class LeaseHolder:
    """Nobody else writes to the target from `take` to `release`."""

    def __init__(self, target: TargetWiring, supervisor: Supervisor) -> None:
        self.target, self.supervisor, self.name = target, supervisor, supervisor.name
        self.lease = target.lease()
        self.identity: IdentityOfPart = RunIdentity(target)
        self.writer: Writer | None = None
        self.ledger_id = ""
        """That of the ledger, by which claims name it; empty before the lease was taken."""

    def take(self) -> None:
        """Wait until nobody else has it. Raises `LeaseHeldByOther`; `Refused` where another metastore answers than the
        target's ledger remembers."""
        lease, supervisor = self.lease, self.supervisor
        if lease.keeper is not None:
            return
        self.identity.begin()
        self.writer = self.writer or self.target.writer(supervisor.run.roles.proof(TargetPlaces(self.name).role))
        while not supervisor.stopped():
            watched = lease.attempt(self.writer)
            if watched is None:
                supervisor.last_error = str(supervisor.failure) if supervisor.failure is not None else None
                lease.keep(supervisor.fail)
                return
            waiting = f"The lease on {self.name} is of {watched.holder.writer}, and taken over if that is dead"
            if supervisor.last_error != waiting:
                LOG.warning("%s: %s, after %g s without a sign of it", self.name, waiting, watched.holder.seconds)
                supervisor.last_error = waiting
            supervisor.sleep(lease.pause())

    def settle_identity(self) -> None:
        """Write down, once with each lease, which metastores and directories the target is of."""
        if not self.ledger_id and self.lease.mine is not None:
            self.ledger_id = self.identity.settle(self.lease)

    def note_epoch(self, epoch: int) -> None:
        """Have renewals tell of the ledger's newest epoch."""
        self.lease.shown = self.ledger_id, epoch

    def release(self) -> None:
        self.lease.release()
