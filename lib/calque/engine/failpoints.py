"""Failpoints: named places before and after every effect that is persistent or visible.

`FailpointGuard(hit)` wraps adapters: each of their effects calls `hit("name.method.before")` and
`hit("name.method.after")`; so do changes of the state folder's records. The caller decides what a hit does: nothing,
raise where the process has lost its roles (`engine.lease.fence`), or kill the process. `CALQUE_FAILPOINT=NAME[@N]` in
the environment kills the process at the N-th hit (default the first), as `kill -9` would. With `lost` in place of
`after` the process lives, and is told that the effect, which happened, is `Unavailable`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from calque.errors import Unavailable
from calque.ports import Catalog, Commits, EvidenceStore, Gaps, Journal, Leases, Ledger, Pins, Scans, Storage
from calque.ports.forwarding import (
    ForwardingCatalog,
    ForwardingCommits,
    ForwardingEvidenceStore,
    ForwardingGaps,
    ForwardingJournal,
    ForwardingLeases,
    ForwardingLedger,
    ForwardingPins,
    ForwardingReplicatedTransactions,
    ForwardingScans,
    ForwardingStorage,
    Interceptor,
    direct,
)
from calque.ports.transactions import ReplicatedTransactions

EFFECTS = {
    "catalog": (
        "create_database",
        "alter_database",
        "drop_database",
        "create_table",
        "alter_table",
        "drop_table",
        "add_partitions",
        "alter_partitions",
        "rename_partition",
        "drop_partitions",
        "commit_table",
        "add_constraints",
        "drop_constraint",
        "put_statistics",
        "drop_statistics",
        "create_function",
        "drop_function",
    ),
    "lease": ("take", "renew", "forget"),
    "journal": ("append", "forget", "restart"),
    "gaps": ("add", "settle"),
    "evidence": ("append", "forget", "restart"),
    "pins": ("keep", "release"),
    "scans": ("append", "forget", "remember"),
    "commits": ("append", "forget", "restart", "remember"),
    "transactions": ("open", "allocate", "commit"),
    "marks": ("add", "follow", "forget"),
    "partition_events": ("mark_done",),
    "privileges": ("grant", "revoke", "create_role"),
    "ledger": ("publish", "put_tables", "remove_tables", "put_records", "remove_records", "forget"),
    "storage": (
        "copy",
        "combine",
        "publish",
        "make_directories",
        "date",
        "write",
        "create",
        "set_aside",
        "remove",
        "set_permissions",
    ),
}
"""The methods of each port that leave a persistent or visible effect behind."""
BROKER = {"broker": ("publish",)}
"""The effects of brokers of notices, which a run has only where its configuration names some."""
RECORDS = {
    "journal": ("put",),
    "identity": ("put",),
    "source-identity": ("put",),
    "windows": ("put",),
    "requests": ("put", "remove"),
    "paused": ("put", "remove"),
    "paused-tables": ("put", "remove"),
    "reload": ("put",),
    "sweep": ("put",),
    "verified": ("put",),
    "marks-told": ("put",),
    "processes": ("put", "remove"),
    "running": ("put", "remove"),
    "capturing": ("put", "remove"),
    "notices": ("put",),
    "notice-keys": ("put",),
    "sending": ("put", "remove"),
}
"""The records of the state folder, by the first word of their names, and the changes that are made to them. The records
of gaps belong to a port. Locks are none of them: they decide nothing, because they end with their process."""
CHANGES = ("put", "remove")

AFTER, LOST = "after", "lost"
EFFECT_NAMES = tuple(
    f"{port}.{method}"
    for port, methods in (EFFECTS | BROKER | {f"record.{word}": done for word, done in RECORDS.items()}).items()
    for method in methods
)
NAMES = tuple(f"{effect}.{side}" for effect in EFFECT_NAMES for side in ("before", AFTER))
Hit = Callable[[str], None]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
U = TypeVar("U")


def passing(name: str) -> None:
    """Do nothing at a hit."""


def from_environment() -> Hit:
    """Return the hit that `CALQUE_FAILPOINT` asks for: `passing` where the variable is unset or empty. A name that
    is no failpoint (`is_known`) gives a hit that never kills. Raises `ValueError` where the text behind `@` is no
    number."""
    failpoint = os.environ.get("CALQUE_FAILPOINT", "")
    if not failpoint:
        return passing
    name, _, count = failpoint.partition("@")
    effect, _, side = name.rpartition(".")
    return Lose(effect, int(count or 1)) if side == LOST else Kill(name, int(count or 1))


def is_known(name: str) -> bool:
    """Tell whether `CALQUE_FAILPOINT` may have this name, without a count."""
    effect, _, side = name.rpartition(".")
    return name in NAMES or (side == LOST and effect in EFFECT_NAMES)


class Countdown:
    """A counter of hits of `name`: `is_over` is true at the `count`-th hit, once. Safe from several threads."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.remaining, self.lock = name, count, threading.Lock()

    def is_over(self, name: str) -> bool:
        if name != self.name:
            return False
        with self.lock:
            self.remaining -= 1
            return self.remaining == 0


class Kill:
    """A hit that kills the process at the `count`-th hit of `name`."""

    def __init__(self, name: str, count: int) -> None:
        self.countdown = Countdown(name, count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            os.kill(os.getpid(), signal.SIGKILL)


class Lose:
    """A hit that raises `Unavailable` after the `count`-th time that `effect` happened, so that its caller does not
    learn that it did."""

    def __init__(self, effect: str, count: int) -> None:
        self.countdown = Countdown(f"{effect}.{AFTER}", count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            raise Unavailable(f"The answer at {name} is lost", "CALQUE_FAILPOINT wants it", "It is tried again")


@dataclass(frozen=True, slots=True)
class FailpointGuard:
    """A wrapper that makes the effects of ports pass failpoints and leaves all else as it is. With the hit that does
    nothing it returns the ports themselves."""

    hit: Hit

    def catalog(self, catalog: Catalog) -> Catalog:
        return ForwardingCatalog(catalog, self._of("catalog")) if self._is_on() else catalog

    def leases(self, leases: Leases) -> Leases:
        return ForwardingLeases(leases, self._of("lease")) if self._is_on() else leases

    def journal(self, journal: Journal) -> Journal:
        return ForwardingJournal(journal, self._of("journal")) if self._is_on() else journal

    def gaps(self, gaps: Gaps) -> Gaps:
        return ForwardingGaps(gaps, self._of("gaps")) if self._is_on() else gaps

    def evidence(self, evidence: EvidenceStore) -> EvidenceStore:
        return ForwardingEvidenceStore(evidence, self._of("evidence")) if self._is_on() else evidence

    def pins(self, pins: Pins) -> Pins:
        return ForwardingPins(pins, self._of("pins")) if self._is_on() else pins

    def scans(self, scans: Scans) -> Scans:
        return ForwardingScans(scans, self._of("scans")) if self._is_on() else scans

    def commits(self, commits: Commits) -> Commits:
        return ForwardingCommits(commits, self._of("commits")) if self._is_on() else commits

    def transactions(self, transactions: ReplicatedTransactions) -> ReplicatedTransactions:
        wrapped = self._of("transactions")
        return ForwardingReplicatedTransactions(transactions, wrapped) if self._is_on() else transactions

    def ledger(self, ledger: Ledger) -> Ledger:
        return ForwardingLedger(ledger, self._of("ledger")) if self._is_on() else ledger

    def storage(self, storage: Storage) -> Storage:
        return ForwardingStorage(storage, self._of("storage")) if self._is_on() else storage

    def wrapped(self, port: str, adapter: T, forwarding: Callable[[T, Interceptor], U]) -> T | U:
        """Wrap the adapter of a plugin's port, whose effects have the name `port`."""
        return forwarding(adapter, self._of(port)) if self._is_on() else adapter

    def records(self) -> Interceptor:
        """Return the interceptor through which the state folder's records are changed."""
        return RecordFailpoints(self.hit) if self._is_on() else direct

    def _is_on(self) -> bool:
        return self.hit is not passing

    def _of(self, port: str) -> Interceptor:
        return Failpoints(port, (EFFECTS | BROKER)[port], self.hit)


@dataclass(frozen=True, slots=True)
class Failpoints:
    """An interceptor with the failpoints of one port."""

    port: str
    effects: Collection[str]
    hit: Hit

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if method not in self.effects:
            return call(*arguments, **named)
        self.hit(f"{self.port}.{method}.before")
        result = call(*arguments, **named)
        self.hit(f"{self.port}.{method}.{AFTER}")
        return result


@dataclass(frozen=True, slots=True)
class RecordFailpoints:
    """An interceptor with the failpoints of records, by the first word of a record's name, which is a change's first
    argument."""

    hit: Hit

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        word = str(arguments[0]).partition("/")[0]
        return Failpoints(f"record.{word}", CHANGES, self.hit)(method, call, *arguments, **named)
