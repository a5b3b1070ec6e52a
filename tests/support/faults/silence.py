"""Servers and stores that do not answer for a while: any call, whether it reads or has an effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from calque.errors import Unavailable
from calque.model.policy import Policy
from calque.plugins.grants.ports import ForwardingPrivileges, Privileges
from calque.plugins.marks.ports import ForwardingMarkStore
from calque.ports.forwarding import (
    ForwardingCatalog,
    ForwardingCatalogReader,
    ForwardingEventLog,
    ForwardingEvidenceStore,
    ForwardingGaps,
    ForwardingJournal,
    ForwardingLedger,
    ForwardingPins,
    ForwardingScans,
    ForwardingStorage,
    Interceptor,
)
from support.faults.crashes import HISTORIES, Play
from support.worlds.disks import Death, DiskWorld

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Silence:
    """The call number `first` (from 0) and those after it, `calls` in all, are `Unavailable` and have no effect.
    `answered` is how many there were before; `unanswered` names those that failed, with their ports."""

    first: int
    calls: int
    answered: int = 0
    unanswered: list[str] = field(default_factory=list)

    def refuses(self, name: str) -> bool:
        if self.answered < self.first or len(self.unanswered) == self.calls:
            self.answered += 1
            return False
        self.unanswered.append(name)
        return True


class SilentWorld(DiskWorld):
    """What the source and those who only watch do is answered."""

    def __init__(self, root: Path, history: str, silence: Silence) -> None:
        self.silence = silence
        super().__init__(root, Death(), **HISTORIES[history].world)
        side = self.source_side
        self.source_side = replace(
            side,
            log=ForwardingEventLog(side.log, self.around("log")),
            catalog=ForwardingCatalogReader(side.catalog, self.around("source")),
            storage=ForwardingStorage(side.storage, self.around("source_storage")),
            journal=ForwardingJournal(side.journal, self.around("journal")),
            evidence=ForwardingEvidenceStore(side.evidence, self.around("evidence")),
            scans=ForwardingScans(side.scans, self.around("scans")) if side.scans is not None else None,
            gaps=ForwardingGaps(side.gaps, self.around("gaps")) if side.gaps is not None else None,
            pins=ForwardingPins(side.pins, self.around("pins")) if side.pins is not None else None,
        )

        self.mark_store = ForwardingMarkStore(self.mark_store, self.around("marks"))

    def follow(self, policy: Policy) -> None:
        super().follow(policy)
        side = self.side
        self.side = replace(
            side,
            catalog=ForwardingCatalog(side.catalog, self.around("target")),
            ledger=ForwardingLedger(side.ledger, self.around("ledger")),
            storage=ForwardingStorage(side.storage, self.around("target_storage")),
        )

    def privileges(self) -> tuple[Privileges, Privileges]:
        of_source, at_target = super().privileges()
        return (
            ForwardingPrivileges(of_source, self.around("source_privileges")),
            ForwardingPrivileges(at_target, self.around("target_privileges")),
        )

    def around(self, port: str) -> Interceptor:
        def call(method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
            if not self.busy and self.silence.refuses(f"{port}.{method}"):
                self.death.happened += 1
                raise Unavailable("No answer", f"{port}.{method} is silent")
            return call(*arguments, **named)

        return call


def played_in_silence(history: str, root: Path, silence: Silence) -> Play:
    play = Play(SilentWorld(root, history, silence))
    play.run(HISTORIES[history])
    return play
