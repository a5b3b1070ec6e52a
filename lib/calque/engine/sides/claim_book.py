"""Which directories this process has claimed at a target, and what became of them until an epoch tells of it."""

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
    """What a claimed directory is at the moment."""

    HELD = "held"
    """Files are being copied into it, or it waits for the call that shows it."""
    FREE = "free"
    """The attempt that made it ended before any call could show it."""
    USED = "used"
    """A call may have shown it."""
    LEFT = "left"
    """The object that it may be shown of has another name since, or another directory, or was dropped."""


@dataclass(slots=True)
class ClaimedDirectory:
    """`table` and `partition` are the names at the target that it was claimed for."""

    location: str
    table: TableName
    partition: str
    incarnation: str
    use: Use = Use.HELD


@dataclass(slots=True)
class ClaimBook:
    """The claims of one process at one target. `writer` is its name, which no other process has; `source` and `target`
    are those of the deployment."""

    ledger: Ledger
    source: str
    target: str
    writer: str = field(default_factory=lambda: token_hex(16))
    _claimed: dict[str, ClaimedDirectory] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _identity: LedgerIdentity | None = None
    _told: frozenset[str] | None = None

    def ledger_name(self) -> str:
        """The ledger's own, given to it when it has none: for whoever has the lease. Raises `Unavailable`."""
        with self._lock:
            if self._identity is None:
                self._identity = identity_of(self.ledger)
                if self._identity is None:
                    last = self.ledger.last_epoch()
                    self._identity = LedgerIdentity(token_hex(16), since=last.epoch if last is not None else 0)
                    self.ledger.put_records([self._identity])
            return self._identity.ledger

    def deployment(self) -> str:
        """From which metastore calque copies to which: what another ledger of the same one has made is not another
        deployment's. Names stand for ids that nobody knows."""
        identity = self._identity or identity_of(self.ledger) or LedgerIdentity("")
        return f"{self.source} {identity.source_id or '-'} to {identity.target_id or self.target}"

    def next_epoch(self) -> int:
        """The first that can tell of a claim that is made now. Looks at the ledger: once for many claims."""
        last = self.ledger.last_epoch()
        return last.epoch + 1 if last is not None else 1

    def new_claim(
        self, table: str, partition: str, incarnation: str, *, removal: bool = False, epoch: int | None = None
    ) -> Claim:
        """One that nobody has made yet; `epoch` is the `next_epoch` where it was just asked for."""
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
        """Whether an epoch that was there when this was first asked tells of the claim, or of the directory. Processes
        before this one made no epoch since."""
        with self._lock:
            if self._told is None:
                rows = (text for row in self.ledger.places() for text in (row.claim, row.location))
                abandoned = (one.claim for epoch in self.ledger.epochs() for one in epoch.abandoned)
                self._told = frozenset((*rows, *abandoned))
            return number in self._told or location in self._told

    def hold(self, number: str, directory: ClaimedDirectory) -> None:
        """Before the claim is made: who does not hear that it was made finds it by its number."""
        with self._lock:
            self._claimed[number] = directory

    def hold_again(self, number: str, table: TableName, partition: str, incarnation: str) -> None:
        """Another attempt goes on in the directory."""
        with self._lock:
            location = self._claimed[number].location
            self._claimed[number] = ClaimedDirectory(location, table, partition, incarnation)

    def find(self, number: str) -> ClaimedDirectory | None:
        with self._lock:
            return self._claimed.get(number)

    def free(self, numbers: Iterable[str]) -> None:
        """The attempts that hold them ended, and no call was made."""
        self._become(numbers, {Use.HELD}, Use.FREE)

    def use(self, numbers: Iterable[str]) -> None:
        """Before the call that may show them."""
        self._become(numbers, {Use.HELD, Use.FREE}, Use.USED)

    def leave(self, table: TableName, partitions: Collection[str] | None = None) -> None:
        """Before the call after which the table of that name at the target, or some of its partitions, may lie
        elsewhere, be called otherwise, or be gone: nobody takes its directories for free any more."""
        with self._lock:
            for directory in self._claimed.values():
                is_meant = directory.table == table and (partitions is None or directory.partition in partitions)
                if is_meant and directory.use is Use.USED:
                    directory.use = Use.LEFT

    def abandoned(self, told: Collection[tuple[TableName, str]]) -> list[AbandonedDirectory]:
        """Those that were made for objects of which an epoch tells now, by their names at the target, and that nobody
        needs: these were shown from elsewhere, or not at all."""
        with self._lock:
            return [
                AbandonedDirectory(directory.location, number)
                for number, directory in self._claimed.items()
                if directory.use is Use.FREE and (directory.table, directory.partition) in told
            ]

    def forget(self, numbers: Iterable[str]) -> None:
        """An epoch tells of them."""
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
