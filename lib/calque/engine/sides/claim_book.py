"""A process's own list of the directories that it has claimed at a target, with their use, until an epoch tells of
them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from secrets import token_hex

from calque.model.claims import AbandonedDirectory, Claim
from calque.model.names import TableName
from calque.model.records import LedgerIdentity, one_of
from calque.ports import Ledger


class Use(Enum):
    """The use of a claimed directory at the moment."""

    HELD = "held"
    """Files are being copied into the directory, or the directory waits for the call that shows it."""
    FREE = "free"
    """The attempt that claimed the directory ended before any call could show it."""
    USED = "used"
    """A call may have shown the directory."""
    LEFT = "left"
    """The object that may be shown from the directory has another name or another directory since, or was dropped."""


@dataclass(slots=True)
class ClaimedDirectory:
    """A directory that this process has claimed. `table` and `partition` are the names at the target of the object that
    it was claimed for."""

    location: str
    table: TableName
    partition: str
    incarnation: str
    use: Use = Use.HELD


@dataclass(slots=True)
class ClaimBook:
    """The claims of one process at one target. `writer` is the name of this process, which no other process has;
    `source` and `target` are the names of the deployment's two sides."""

    ledger: Ledger
    source: str
    target: str
    writer: str = field(default_factory=lambda: token_hex(16))
    _claimed: dict[str, ClaimedDirectory] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _identity: LedgerIdentity | None = None
    _told: frozenset[str] = frozenset()
    _told_epoch: int | None = None

    def ledger_name(self) -> str:
        """Return the id of the ledger. A ledger without one gets one, so only the holder of the lease may call this
        first. Raises `Unavailable`."""
        with self._lock:
            if self._identity is None:
                identity = identity_of(self.ledger)
                if identity is None:
                    last = self.ledger.last_epoch()
                    identity = LedgerIdentity(token_hex(16), since=last.epoch if last is not None else 0)
                    # Only then is it kept: no claim may name an id that the ledger does not have.
                    self.ledger.put_records([identity])
                self._identity = identity
            return self._identity.ledger

    def deployment(self) -> str:
        """Return the text that says from which metastore calque copies to which one: it is the same for every ledger of
        the deployment, and differs from that of other deployments. Where a metastore's id is not known, its name alone
        stands for it."""
        identity = self._identity or identity_of(self.ledger) or LedgerIdentity("")
        return f"{self.source} {identity.source_id or '-'} to {identity.target_id or self.target}"

    def next_epoch(self) -> int:
        """Return the number of the first epoch that can tell of a claim made now. This reads the ledger, so callers ask
        once for many claims."""
        last = self.ledger.last_epoch()
        return last.epoch + 1 if last is not None else 1

    def new_claim(
        self, table: str, partition: str, incarnation: str, *, removal: bool = False, epoch: int | None = None
    ) -> Claim:
        """Return a claim with a new number on a directory of the table, partition and incarnation. It is not written
        yet. `removal` marks the claim of a sweep that removes the directory. `epoch` is the result of `next_epoch`, if
        the caller has just asked; None has the claim ask."""
        ledger_name = self.ledger_name()
        return Claim(
            token_hex(16),
            ledger_name,
            self.writer,
            epoch if epoch is not None else self.next_epoch(),
            self.deployment(),
            table,
            partition,
            incarnation,
            removal,
        )

    def is_told(self, number: str, location: str) -> bool:
        """Tell whether an epoch tells of the claim or of the directory. The question is about claims of earlier
        processes. An epoch of this process tells of one, too, where the earlier process showed the directory and died
        before its own epoch, so that the ledger is read again after each epoch."""
        last = self.ledger.last_epoch()
        epoch = last.epoch if last is not None else 0
        with self._lock:
            if self._told_epoch != epoch:
                rows = (text for row in self.ledger.places() for text in (row.claim, row.location))
                abandoned = (one.claim for each in self.ledger.epochs() for one in each.abandoned)
                self._told, self._told_epoch = frozenset((*rows, *abandoned)), epoch
            return number in self._told or location in self._told

    def hold(self, number: str, directory: ClaimedDirectory) -> None:
        """Enter a claim as held, before it is made: a caller that does not learn that it was made finds it by its
        number."""
        with self._lock:
            self._claimed[number] = directory

    def hold_again(self, number: str, table: TableName, partition: str, incarnation: str) -> None:
        """Enter that another attempt of this process goes on in the directory of the claim `number`, for the given
        object."""
        with self._lock:
            location = self._claimed[number].location
            self._claimed[number] = ClaimedDirectory(location, table, partition, incarnation)

    def find(self, number: str) -> ClaimedDirectory | None:
        with self._lock:
            return self._claimed.get(number)

    def free(self, numbers: Iterable[str]) -> None:
        """Mark claims as free: the attempts that hold them have ended, and made no call that could show the
        directories."""
        self._become(numbers, {Use.HELD}, Use.FREE)

    def use(self, numbers: Iterable[str]) -> None:
        """Mark claims as used, before the call that may show their directories."""
        self._become(numbers, {Use.HELD, Use.FREE}, Use.USED)

    def leave(self, table: TableName, partitions: Collection[str] | None = None) -> None:
        """Mark the used directories of the table (or of these partitions) as left. The caller does this before the call
        after which the objects may lie elsewhere, have another name, or be gone, so that no attempt takes their
        directories for free."""
        with self._lock:
            for directory in self._claimed.values():
                is_meant = directory.table == table and (partitions is None or directory.partition in partitions)
                if is_meant and directory.use is Use.USED:
                    directory.use = Use.LEFT

    def abandoned(self, told: Collection[tuple[TableName, str]]) -> list[AbandonedDirectory]:
        """Return the free directories that were claimed for the objects `told` (names at the target), of which an epoch
        tells now: these objects are shown from other directories, or not at all."""
        with self._lock:
            return [
                AbandonedDirectory(directory.location, number)
                for number, directory in self._claimed.items()
                if directory.use is Use.FREE and (directory.table, directory.partition) in told
            ]

    def forget(self, numbers: Iterable[str]) -> None:
        """Remove claims of which an epoch tells."""
        with self._lock:
            for number in numbers:
                self._claimed.pop(number, None)

    def _become(self, numbers: Iterable[str], before: set[Use], after: Use) -> None:
        with self._lock:
            for number in numbers:
                directory = self._claimed.get(number)
                if directory is not None and directory.use in before:
                    directory.use = after


def identity_of(ledger: Ledger) -> LedgerIdentity | None:
    return one_of(ledger.records(), LedgerIdentity)
