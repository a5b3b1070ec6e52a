"""Configuration → world: the only place that knows which plug sits in which socket."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING
from uuid import uuid4

from calque.adapters.control import ControlGaps, ControlStore, locked, unavailable
from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.delta.scans import DeltaScans
from calque.adapters.files.attempt import Terms
from calque.adapters.files.options import delta_options
from calque.adapters.files.pins import StoredPins
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.system import Own, Systems
from calque.adapters.kafka.topic import Topic
from calque.adapters.metastore.catalog import HiveCatalog, HiveReader
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.spark.watch import bump
from calque.config import Config
from calque.config.keys import revealed
from calque.core.lease import renewed_after
from calque.engine.failpoints import Guard, Hit, from_environment
from calque.engine.lease.fence import Deputy, Fence, FencedStorage
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.lease import Writer
from calque.model.policy import Abilities
from calque.ports import EventLog, EvidenceStore, Gaps, Journal, Leases, Pins, Scans, Storage
from calque.wiring.journal_location import Place, place
from calque.wiring.spark_windows import Opening, SparkSpread
from calque.wiring.worker_openers import REGISTRY_OPTIONS, TOPIC_OPTIONS, hand_down, open_journal, open_log, open_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from calque.adapters.kafka.journal import KafkaJournal


@dataclass(slots=True)
class Wiring:
    """Everything that a configuration names, made when it is first asked for. Nothing connects before it is used.

    With `session` long copies and listings are spread over Spark.
    """

    config: Config
    session: Callable[[], SparkSession] | None = None
    hit: Hit = field(default_factory=from_environment)
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when Spark is to give up what it does for the source."""
    _source: SourceSide | None = None
    _targets: dict[str, TargetSide] = field(default_factory=dict)
    _leases: dict[str, Lease] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return Path(self.config.state.path)

    @property
    def tables(self) -> str:
        """The folder of the journal, the evidence and the ledgers: a path or URI."""
        return self.config.tables()

    @property
    def table_options(self) -> dict[str, str]:
        """delta-rs's options for them."""
        return delta_options(self.tables, revealed(self.config.state.storage))

    def place(self) -> Place:
        """Where the journal is."""
        return place(self.config, self.control)

    def topic(self, at: Place) -> Topic:
        """The topic of a journal on Kafka; how it is reached stands in the configuration."""
        journal = self.config.journal
        return Topic(
            at.brokers or journal.brokers,
            at.topic,
            revealed(journal.options),
            journal.retention,
            journal.registry,
            revealed(journal.registry_options),
        )

    @property
    def control(self) -> ControlStore:
        return ControlStore(self.state / "control", self.guard.records())

    @property
    def guard(self) -> Guard:
        """What every effect passes."""
        return Guard(self.hit)

    def wake_file(self, name: str) -> Path:
        """The counter that wakes a query: `capture`, or `query_of` a target."""
        return self.state / "wake" / name

    @property
    def news_file(self) -> Path:
        """Touched by whoever writes the journal."""
        return self.state / "wake" / "news"

    def wake(self, target: str) -> None:
        """Let a target's query run a window, an empty one if there are no events."""
        bump(self.wake_file(query_of(target)))

    def checkpoint(self, name: str, gap: int = 0) -> str:
        """Of a query behind that gap: with each the offsets begin anew, and they may go back."""
        return f"{self.config.state.checkpoints}/{name}" + (f".{gap}" if gap else "")

    def gaps(self) -> Gaps:
        return self.guard.gaps(ControlGaps(ControlStore(self.state / "control")))

    def open_log(self) -> Callable[[], EventLog]:
        """Makes the source's log, also in other processes."""
        return partial(open_log, ",".join(self.config.source.metastore))

    def open_journal(self, at: Place | None = None) -> Callable[[], tuple[Journal, EvidenceStore]]:
        """Makes the journal (that one, or the one there is) and its evidence, also in processes that are started after
        this."""
        at = at or self.place()
        if at.format == "kafka":
            topic = self.topic(at)
            hand_down(topic.options, TOPIC_OPTIONS)
            hand_down(topic.registry_options, REGISTRY_OPTIONS)
            return partial(open_topic, replace(topic, options={}, registry_options={}))
        hand_down(self.table_options)
        return partial(open_journal, self.tables)

    def source(self) -> SourceSide:
        if self._source is None:
            uris, connections = ",".join(self.config.source.metastore), self.config.source.connections
            client = Client(uris, connections=connections)
            journal, evidence = self.open_journal()()
            self._source = SourceSide(
                self.config.source.name,
                HiveLog(client),
                HiveReader(client),
                self.guard.journal(journal),
                self.guard.evidence(evidence),
                self.storage(Systems(revealed(self.config.source.storage)), ended=self.ending.is_set),
                scans=self.scans(),
                pins=self.pins(),
                gaps=self.gaps(),
            )
        return self._source

    def pins(self) -> Pins | None:
        """None where the configuration keeps no files at the source."""
        source = self.config.source
        if source.pin == "none":
            return None
        root = source.pins or f"{self.config.state.path}/pins"
        storage = self.storage(Systems(revealed(source.storage)))
        return self.guard.pins(StoredPins(storage, root, links=source.pin == "hardlink"))

    def scans(self) -> Scans | None:
        """None where the configuration scans nothing."""
        if not self.config.source.scans_some():
            return None
        return self.guard.scans(DeltaScans(str(self.state / "scans")))

    def target(self, name: str) -> TargetSide:
        """Written to by whoever has the lease on it."""
        if name not in self._targets:
            self._targets[name] = self.target_behind(self.lease(name), name)
        return self._targets[name]

    def target_behind(self, fence: Fence, name: str) -> TargetSide:
        """Written to as the fence permits."""
        client = Client(",".join(self.config.target(name).metastore), permit=fence.permit)
        stopping = threading.Event()
        leaves = 1 if len(self.config.targets) > 1 else 0
        storage = self.storage(self.systems(name), self.terms(name), stopping.is_set, query_of(name), leaves)
        return TargetSide.of(
            self.config.policy(name),
            self.guard.catalog(HiveCatalog(client, Abilities())),
            self.guard.ledger(self.ledger(name)),
            self.guard.storage(FencedStorage(storage, fence)),
            stopping,
        )

    def lease(self, name: str) -> Lease:
        """That on a target; it has to be taken."""
        if name not in self._leases:
            self._leases[name] = Lease(self.leases(name), name, self.config.target(name).lease)
        return self._leases[name]

    def writer(self, proof: str) -> Writer:
        """A new one, in this process."""
        return Writer(uuid4().hex, gethostname(), os.getpid(), self.identity(), proof)

    def deputy(self, name: str) -> Deputy:
        """What a command needs that writes beside `run`."""
        return Deputy(self.leases(name), name, self.identity(), self.config.target(name).lease)

    def leases(self, name: str) -> Leases:
        """Through a connection of its own, so that no long call holds up a renewal."""
        target = self.config.target(name)
        seconds = renewed_after(target.lease)
        client = Client(
            ",".join(target.metastore), connect_timeout=min(10.0, seconds), call_timeout=seconds, connections=1
        )
        catalog = HiveCatalog(client, Abilities())
        return self.guard.leases(CatalogLeases(catalog, self.config.source.name, name, target.warehouse))

    def identity(self) -> str:
        """The state folder's own name, made when it is first asked for."""
        with unavailable("identity"), locked(self.state / "locks" / "identity.lock"):
            record = self.control.read("identity")
            if record is None:
                record = {"id": uuid4().hex}
                self.control.put("identity", record)
        return str(record["id"])

    def spread(self, target: str) -> SparkSpread | None:
        """Prepares a target's large windows in Spark's tasks; None without `session`."""
        if self.session is None:
            return None
        return SparkSpread(self.session, Opening(partial(sides, self.config, target), self.journal().rows))

    def journal(self) -> DeltaJournal | KafkaJournal:
        """Opened anew."""
        at = self.place()
        if at.format == "kafka":
            from calque.adapters.kafka.journal import KafkaJournal

            return KafkaJournal(self.topic(at))
        return DeltaJournal(f"{self.tables}/journal", self.table_options)

    def client(self, target: str) -> Client:
        """A connection to a target's metastore."""
        return Client(",".join(self.config.target(target).metastore))

    def ledger(self, target: str) -> DeltaLedger:
        return DeltaLedger(f"{self.tables}/ledgers/{target}", self.table_options)

    def systems(self, name: str) -> Systems:
        """What a target's storage opens: its own locations by its own options, all others by the source's."""
        target = self.config.target(name)
        places = tuple(place for place in (target.warehouse, target.external_base, *target.locations.values()) if place)
        own = Own(places, revealed(target.storage)) if target.data == "copy" else Own()
        return Systems(revealed(self.config.source.storage), own=own)

    def terms(self, name: str) -> Terms:
        """On which a target's files are copied."""
        target = self.config.target(name)
        return Terms(bandwidth=target.bandwidth, parallel=target.parallel_copies)

    def storage(
        self,
        systems: Systems,
        terms: Terms | None = None,
        ended: Callable[[], bool] = lambda: False,
        pool: str = "source",
        leaves: int = 0,
    ) -> Storage:
        """Spark does what takes long in the fair scheduler's `pool`, and leaves so many cores to others."""
        files = FileStorage(systems, terms=terms)
        if self.session is None:
            return files
        from calque.adapters.files.spark import SparkStorage, Spread

        return SparkStorage(files, self.session, Spread(pool=pool, leaves=leaves), ended=ended)


def sides(config: Config, target: str) -> tuple[SourceSide, TargetSide]:
    """The world of one target, opened anew, also in other processes."""
    wiring = Wiring(config)
    return wiring.source(), wiring.target(target)


def query_of(target: str) -> str:
    """The name of a target's query, of its checkpoint and its wake file."""
    return f"target.{target}"
