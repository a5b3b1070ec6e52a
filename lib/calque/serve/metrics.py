"""What Prometheus is told: counters that windows add to, and gauges that are looked up in memory when it asks.

A scrape asks nobody: neither a metastore nor the ledger. Names follow Prometheus' conventions; `target` is a label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from calque.engine.exact_reads.progress import ReadTotals
from calque.engine.sides.copy_progress import Progress
from calque.engine.window.result import Window
from calque.model.ledger import Bridge, Parts, count_rereads, new_bridges, new_parts
from calque.model.names import EventId

STATES = ("starting", "bootstrapping", "running", "paused", "stopped", "failed")
TARGET = ("target",)
BUCKETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class TargetLook:
    """A target as its process has it in memory. `tables` counts them by state."""

    name: str
    state: str
    problem: str | None
    reachable: bool
    position: EventId | None = None
    epoch: int | None = None
    lag_events: int = 0
    lag_seconds: float = 0.0
    tables: Mapping[str, int] = field(default_factory=dict)
    copying: Progress | None = None
    reading: ReadTotals | None = None


@dataclass(frozen=True, slots=True)
class CaptureLook:
    """`head` is the source's newest event id, `last` the journal's; None where they are not known yet."""

    state: str
    problem: str | None
    reachable: bool
    head: EventId | None
    last: EventId | None


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process. `capture` is None where another one captures; `silent` names parts that do not turn any more."""

    source: str
    capture: CaptureLook | None
    targets: tuple[TargetLook, ...]
    gaps: int = 0
    silent: tuple[str, ...] = ()


class Meters(Collector):
    """The registry of one process. `look` tells how it is, without asking anybody."""

    def __init__(self, look: Callable[[], ProcessView]) -> None:
        self.look = look
        self.registry = CollectorRegistry()
        self.windows = Histogram(
            "calque_window_seconds", "How long windows took.", TARGET, buckets=BUCKETS, registry=self.registry
        )
        self.events = self.counter("events", "Events that went through windows.")
        self.epochs = self.counter("epochs", "Epochs published.")
        self.hops = self.counter("hops", "Atomic operations applied.")
        self.calls = self.counter("calls", "Calls to the target's metastore that changed something.")
        self.files = self.counter("files", "Files copied.")
        self.bytes = self.counter("bytes", "Bytes copied.")
        self.bridges = self.counter("bridges", "Bridges, see Limits.")
        self.newest_bridges: dict[str, dict[str, Bridge]] = {}
        """By target and table, the newest one."""
        self.parts = self.counter("parts", "Operations made in parts, see Limits.")
        self.newest_parts: dict[str, dict[str, Parts]] = {}
        self.rereads = Counter(
            "calque_rereads_total", "Tables read again, by cause.", ("target", "cause"), registry=self.registry
        )
        self.disarmed = self.counter("disarmed", "Users' changes taken back that endangered the source's files.")
        self.retries = self.counter("retries", "Times that something did not answer and was tried again.", "part")
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.registry.register(self)

    def counter(self, name: str, text: str, label: str = "target") -> Counter:
        return Counter(f"calque_{name}_total", text, (label,), registry=self.registry)

    def window(self, target: str, window: Window, seconds: float) -> None:
        """Count one window."""
        self.windows.labels(target).observe(seconds)
        self.events.labels(target).inc(window.events)
        self.hops.labels(target).inc(window.hops)
        self.calls.labels(target).inc(window.applied.calls)
        self.files.labels(target).inc(window.applied.files)
        self.bytes.labels(target).inc(window.applied.bytes)
        if window.epoch is not None:
            self.epochs.labels(target).inc()
            newest = self.newest_bridges.setdefault(target, {})
            self.bridges.labels(target).inc(len(new_bridges(window.epoch, newest)))
            newest_parts = self.newest_parts.setdefault(target, {})
            self.parts.labels(target).inc(len(new_parts(window.epoch, newest_parts)))
            for cause, count in count_rereads([window.epoch]).items():
                self.rereads.labels(target, cause).inc(count)
            self.disarmed.labels(target).inc(len(window.epoch.disarmed))

    def text(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self.registry)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        look = self.look()
        yield gauge("calque_info", "The source that is replicated.", ("source",), [((look.source,), 1)])
        yield gauge("calque_gaps", "Gaps of the log found so far.", (), [((), look.gaps)])
        if look.capture is not None:
            yield from of_capture(look.capture)
        yield from of_targets(look.targets)


def of_capture(look: CaptureLook) -> Iterator[Metric]:
    yield gauge("calque_source_reachable", "Whether the source answers.", (), [((), look.reachable)])
    yield gauge("calque_source_head_event_id", "The source's newest event.", (), with_value(((), look.head)))
    yield gauge("calque_journal_last_event_id", "The newest event captured.", (), with_value(((), look.last)))
    states = [((state,), look.state == state) for state in STATES]
    yield gauge("calque_capture_state", "1 for the state that capture is in.", ("state",), states)
    yield gauge("calque_capture_failing", "Whether capture gets no further now.", (), [((), look.problem is not None)])


def of_targets(looks: Iterable[TargetLook]) -> Iterator[Metric]:
    looks = tuple(looks)

    def each(name: str, text: str, values: Iterable[tuple[str, float | None]]) -> Metric:
        return gauge(
            f"calque_target_{name}", text, TARGET, with_value(*(((target,), value) for target, value in values))
        )

    states = [((look.name, state), look.state == state) for look in looks for state in STATES]
    yield gauge("calque_target_state", "1 for the state that the target is in.", ("target", "state"), states)
    yield each("failing", "Whether it gets no further now.", ((one.name, one.problem is not None) for one in looks))
    yield each("reachable", "Whether its metastore answers.", ((one.name, one.reachable) for one in looks))
    yield each("position_event_id", "The event that every live table shows.", ((o.name, o.position) for o in looks))
    yield each("epoch", "The newest epoch's number.", ((one.name, one.epoch) for one in looks))
    yield each("lag_events", "Events that it does not show yet.", ((one.name, one.lag_events) for one in looks))
    yield each("lag_seconds", "How long the oldest of them has been there.", ((o.name, o.lag_seconds) for o in looks))
    tables = [((look.name, state), count) for look in looks for state, count in look.tables.items()]
    yield gauge("calque_target_tables", "Tables by state.", ("target", "state"), tables)
    copies = [(look.name, look.copying) for look in looks if look.copying is not None]
    yield each("copying_bytes", "Bytes of the copies under way.", ((name, totals.bytes) for name, totals in copies))
    yield each("copied_bytes", "How many of them are done.", ((name, totals.bytes_done) for name, totals in copies))
    reads = [(look.name, look.reading) for look in looks if look.reading is not None]
    yield each("reading_tables", "Tables being read exactly.", ((name, totals.tables) for name, totals in reads))
    yield each("read_tables", "How many of them are done.", ((name, totals.tables_done) for name, totals in reads))


Sample = tuple[tuple[str, ...], float]


def with_value(*samples: tuple[tuple[str, ...], float | None]) -> list[Sample]:
    return [(labels, value) for labels, value in samples if value is not None]


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        metric.add_metric(values, float(value))
    return metric
