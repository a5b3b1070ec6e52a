"""The lease on a part's target, which the part takes and keeps, with the identity of the target: `LeaseHolder`."""

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
    """The check, for a part's target, that the same metastore and directories answer as its ledger remembers."""

    def begin(self) -> None:
        """Look at what answers, before the lease is taken. Raises `Refused` where it is not what the ledger
        remembers."""

    def settle(self, lease: Lease) -> str:
        """Write down what answers, once the lease is taken. Return the id of the ledger."""


class LeaseHolder:
    """The lease of a part on its target: no other process writes to the target from `take` to `release`."""

    def __init__(self, target: TargetWiring, supervisor: Supervisor) -> None:
        self.target, self.supervisor, self.name = target, supervisor, supervisor.name
        self.lease = target.lease()
        self.identity: IdentityOfPart = RunIdentity(target)
        self.writer: Writer | None = None
        """The writer as which this part has the lease, the same at each attempt; None before the first."""
        self.ledger_id = ""
        """The id of the target's ledger, by which claims on directories name it; empty before the identity was
        settled."""

    def take(self) -> None:
        """Take the lease, and keep it renewed; wait for a holder that may be dead. Return without the lease when the
        part is to stop.

        Does nothing where the lease is kept already. Raises `LeaseHeldByOther` where another writer has the lease and
        lives, and `Refused` where another metastore answers than the target's ledger remembers.
        """
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
        """Have renewals of the lease tell that `epoch` is the newest one of the ledger."""
        self.lease.shown = self.ledger_id, epoch

    def release(self) -> None:
        self.lease.release()
