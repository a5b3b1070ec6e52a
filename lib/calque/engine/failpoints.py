"""Every persistent or visible effect passes a named failpoint, before and after.

`Guard(hit)` wraps adapters: each of their effects calls `hit("name.method.before")`, `…after`; so do changes of the
state folder's records. What a hit does is set from outside: nothing, raise where the process has lost its roles
(`engine.lease.fence`), or kill the process. `CALQUE_FAILPOINT=NAME[@N]` in the environment kills the process at the
N-th hit (default the first), as `kill -9` would; with `lost` in place of `after` the process lives, and is told that
the effect, which happened, is `Unavailable`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from calque.errors import Unavailable
from calque.ports import Catalog, EvidenceStore, Gaps, Journal, Leases, Ledger, Pins, Scans, Storage
from calque.ports.forwarding import (
    ForwardingCatalog,
    ForwardingEvidenceStore,
    ForwardingGaps,
    ForwardingJournal,
    ForwardingLeases,
    ForwardingLedger,
    ForwardingPins,
    ForwardingScans,
    ForwardingStorage,
    Interceptor,
    direct,
)

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
"""The methods of each port that leave something behind."""
BROKER = {"broker": ("publish",)}
"""The same of brokers of notices, which a run has only where its configuration names some."""
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
    "marks-told": ("put",),
    "processes": ("put", "remove"),
    "running": ("put", "remove"),
    "capturing": ("put", "remove"),
    "notices": ("put",),
    "notice-keys": ("put",),
    "sending": ("put", "remove"),
}
"""The records of the state folder, by the first word of their names, and what is done to them. Those of gaps are a
port's. Locks decide nothing: they end with their process."""
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
    """The hit that does nothing."""


def from_environment() -> Hit:
    """The hit that `CALQUE_FAILPOINT` asks for."""
    failpoint = os.environ.get("CALQUE_FAILPOINT", "")
    if not failpoint:
        return passing
    name, _, count = failpoint.partition("@")
    effect, _, side = name.rpartition(".")
    return Lose(effect, int(count or 1)) if side == LOST else Kill(name, int(count or 1))


def is_known(name: str) -> bool:
    """Whether `CALQUE_FAILPOINT` may name it, without a count."""
    effect, _, side = name.rpartition(".")
    return name in NAMES or (side == LOST and effect in EFFECT_NAMES)


class Countdown:
    """True at the `count`-th time that it is asked of `name`, once. Safe from several threads."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.remaining, self.lock = name, count, threading.Lock()

    def is_over(self, name: str) -> bool:
        if name != self.name:
            return False
        with self.lock:
            self.remaining -= 1
            return self.remaining == 0


class Kill:
    """Kills the process at the `count`-th hit of `name`."""

    def __init__(self, name: str, count: int) -> None:
        self.countdown = Countdown(name, count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            os.kill(os.getpid(), signal.SIGKILL)


class Lose:
    """The caller of `effect` does not hear that it happened, the `count`-th time."""

    def __init__(self, effect: str, count: int) -> None:
        self.countdown = Countdown(f"{effect}.{AFTER}", count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            raise Unavailable(f"The answer at {name} is lost", "CALQUE_FAILPOINT wants it", "It is tried again")


@dataclass(frozen=True, slots=True)
class FailpointGuard:
    """Has the effects of ports pass failpoints, and leaves everything else as it is; without a hit the ports
    themselves."""

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

    def ledger(self, ledger: Ledger) -> Ledger:
        return ForwardingLedger(ledger, self._of("ledger")) if self._is_on() else ledger

    def storage(self, storage: Storage) -> Storage:
        return ForwardingStorage(storage, self._of("storage")) if self._is_on() else storage

    def wrapped(self, port: str, adapter: T, forwarding: Callable[[T, Interceptor], U]) -> T | U:
        """An adapter of a plugin's port, whose effects stand under this name."""
        return forwarding(adapter, self._of(port)) if self._is_on() else adapter

    def records(self) -> Interceptor:
        """What the state folder's records are changed through."""
        return RecordFailpoints(self.hit) if self._is_on() else direct

    def _is_on(self) -> bool:
        return self.hit is not passing

    def _of(self, port: str) -> Interceptor:
        return Failpoints(port, (EFFECTS | BROKER)[port], self.hit)


@dataclass(frozen=True, slots=True)
class Failpoints:
    """The failpoints of one port."""

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
    """The failpoints of records, by the first word of their names: a change's first argument is the name."""

    hit: Hit

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        word = str(arguments[0]).partition("/")[0]
        return Failpoints(f"record.{word}", CHANGES, self.hit)(method, call, *arguments, **named)
