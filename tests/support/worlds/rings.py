"""Several metastores in memory, and calques between them: chains and rings. All share one storage and one clock."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.core.records.lifecycle import State
from calque.engine.capture.capture import Capture
from calque.engine.replica.replica import Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.verify.report import Verification
from calque.engine.verify.verify import verify
from calque.model.policy import Policy
from support.memory.gaps import MemoryGaps
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage
from support.sources.writers import OPERATIONS, RARER, Writer
from support.worlds.worlds import DeferredExecutor, Directories, InlineExecutor, WorldClock

UNLOGGED = {"make_acid", "add_constraint", "analyze", "analyze_partition", "forget_statistics"}
FOLLOWED = sorted({*RARER} - UNLOGGED)
"""What every metastore has events for, and so can be carried on from."""


class Metastores:
    """Metastores by their names, each with an id of its own and a writer for databases that only it writes to."""

    def __init__(self, seed: int, *names: str) -> None:
        self.rng = random.Random(seed)
        self.clock = WorldClock()
        self.storage = MemoryStorage(self.clock.now_ns)
        self.stores: dict[str, MemoryMetastore] = {}
        self.writers: dict[str, Writer] = {}
        self.links: list[Link] = []
        self.clock.asleep = lambda: [link.capture_all() for link in self.links] and None
        for name in names:
            self.stores[name] = MemoryMetastore(
                self.rng.choice([HIVE_3, HIVE_4]),
                f"file:/{name}",
                directories=Directories(self.storage),
                clock=lambda: self.clock.now / 1e9,
                identity=f"id of {name}",
            )
            databases = (f"{name}1", f"{name}2")
            self.writers[name] = Writer(self.stores[name], self.storage, self.rng, databases, f"file:/outside/{name}")

    def link(self, source: str, target: str, **policy: Any) -> Link:
        """A calque from one to the other, called as they are; not begun yet. Its appends raise events there, so that
        another one can follow."""
        place = f"file:/at_{target}/from_{source}"
        given = {
            "include": ("*.*",),
            "exclude": ("default.*",),
            "warehouse": place,
            "appends": "new_directory",
            **policy,
        }
        link = Link(self, source, target, Policy(target, source, **given))
        self.links.append(link)
        return link

    def write(self, steps: int, names: Iterable[str] = ()) -> None:
        for _ in range(steps):
            writer = self.writers[self.rng.choice(sorted(names) or sorted(self.writers))]
            writer.run(self.rng.choice([*OPERATIONS, *FOLLOWED]))

    def settle(self, rounds: int = 60) -> None:
        """Until every target shows all that its source has, and nothing comes any more."""
        for _ in range(rounds):
            heads = self.heads()
            for link in self.links:
                link.turn()
            if heads == self.heads() and all(link.is_settled() for link in self.links):
                return
            self.clock.now += 2_000_000_000
        raise AssertionError(f"it did not settle: {[(link.name, link.replica.tables.rows) for link in self.links]}")

    def heads(self) -> dict[str, int]:
        return {name: store.current() for name, store in self.stores.items()}

    def tables_of(self, name: str) -> set[str]:
        """All tables of a metastore but calque's own."""
        store = self.stores[name]
        databases = [database for database in store.databases() if not database.startswith("_calque")]
        return {f"{database}.{table}" for database in databases for table in store.tables(database)}


class Link:
    """A calque from one metastore to another."""

    def __init__(self, stores: Metastores, source: str, target: str, policy: Policy) -> None:
        self.stores, self.name = stores, f"{source} to {target}"
        self.store = stores.stores[source]
        self.journal, self.evidence, self.ledger = MemoryJournal(), MemoryEvidence(), MemoryLedger()
        self.source = SourceSide(
            source,
            MemoryLog(self.store),
            MemoryReader(self.store),
            self.journal,
            self.evidence,
            stores.storage,
            stores.clock,
            gaps=MemoryGaps(),
        )
        self.catalog = MemoryCatalog(stores.stores[target])
        self.side = TargetSide.of(policy, self.catalog, self.ledger, stores.storage)
        self.begin = self.store.current()
        self.gatherer = EvidenceGatherer(self.source, self.side.admission.takes)
        self.gatherer.resume(self.begin, self.begin)
        self.capture = Capture(self.source, self.begin, self.gatherer)
        self.background = DeferredExecutor()
        self.restart()

    def restart(self) -> None:
        """A process that died is replaced by another one, which knows what the ledger says."""
        self.background.waiting.clear()
        self.side = TargetSide.of(self.side.policy, self.catalog, self.ledger, self.stores.storage)
        self.replica = Replica(self.source, self.side, lambda: self.begin, lambda: None, self.pool)

    def pool(self, _: int, name: str) -> Executor:
        return self.background if name.startswith(("read", "copy")) else InlineExecutor()

    def capture_all(self) -> None:
        events = self.store.events(self.capture.reached())
        if events:
            self.capture.append(rows_of_events(events))
        self.gatherer.run_once()

    def turn(self) -> None:
        """Capture, background reads, and a window."""
        self.capture_all()
        self.background.run()
        self.window()

    def window(self) -> None:
        self.replica.window(self.capture.last())

    def is_settled(self) -> bool:
        out = self.replica.tables.in_state(*set(State) - {State.LIVE, State.QUARANTINED})
        return not out and not self.replica.tables.positions and self.replica.epochs.position() == self.store.current()

    def quarantined(self) -> Sequence[str]:
        return [str(name) for name in self.replica.tables.in_state(State.QUARANTINED)]

    def verify(self) -> Verification:
        return verify(self.source, self.side, (), "checksum", pool=lambda *_: InlineExecutor())
