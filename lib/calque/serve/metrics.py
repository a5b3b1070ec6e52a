"""The metrics of a process for Prometheus: counters that windows add to, and gauges that are read from memory at each
scrape.

A scrape asks nothing outside the process: neither a metastore nor the ledger. Names follow Prometheus' conventions;
`target` is a label.
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
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from calque.engine.exact_reads.progress import ReadTotals
from calque.engine.sides.copy_progress import Progress
from calque.engine.window.result import WindowResult
from calque.model.ledger import Bridge, Parts, count_rereads, new_bridges, new_parts
from calque.model.names import EventId
from calque.resources import package_versions
from calque.serve.table_lag import TableLag

STATES = ("starting", "bootstrapping", "running", "paused", "stopped", "failed")
SOURCE, TARGET = ("source",), ("target",)
BUCKETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class TargetSample:
    """A target as its process has it in memory. `tables` counts its tables by state."""

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
    lagging: tuple[TableLag, ...] = ()
    """The tables that show less than the position, the farthest behind first, a few at most."""
    paused_tables: int = 0
    """The number of tables that an operator holds back."""


@dataclass(frozen=True, slots=True)
class CaptureSample:
    """The capture of a source as its process has it in memory. `head` is the source's newest event id, `last` the
    journal's; None where they are not known yet."""

    state: str
    problem: str | None
    reachable: bool
    head: EventId | None
    last: EventId | None


@dataclass(frozen=True, slots=True)
class ChannelSample:
    """A channel of notices as its process has it in memory. `lag_events` is None while it is not known."""

    name: str
    state: str
    problem: str | None
    lag_events: int | None = None


@dataclass(frozen=True, slots=True)
class SourceSample:
    """A source as a process has it in memory. `capture` is None where another process captures it. `gaps` is how many
    gaps in its log were found so far."""

    name: str
    capture: CaptureSample | None
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class ProcessView:
    """The state of one process, from memory. `silent` names the parts whose threads do not turn any more."""

    sources: tuple[SourceSample, ...]
    targets: tuple[TargetSample, ...]
    silent: tuple[str, ...] = ()
    channels: tuple[ChannelSample, ...] = ()


class Meters(Collector):
    """The metrics of one process. `snapshot` returns its state from memory, at each scrape."""

    def __init__(self, snapshot: Callable[[], ProcessView]) -> None:
        self.snapshot = snapshot
        versions = package_versions()
        text = "The versions of the process; always 1."
        self.build = gauge("calque_build_info", text, tuple(versions), [(tuple(versions.values()), 1)])
        # A counter's time of creation is that of the process, which `process_start_time_seconds` has.
        without_created: Callable[[], None] = disable_created_metrics
        without_created()
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
        """The newest bridge that was counted, by target and table."""
        self.parts = self.counter("parts", "Operations made in parts, see Limits.")
        self.newest_parts: dict[str, dict[str, Parts]] = {}
        """The newest operation in parts that was counted, by target and table."""
        self.rereads = Counter(
            "calque_rereads_total", "Tables read again, by cause.", ("target", "cause"), registry=self.registry
        )
        self.disarmed = self.counter("disarmed", "Users' changes taken back that endangered the source's files.")
        self.retries = self.counter("retries", "Times that something did not answer and was tried again.", "part")
        self.notices = self.counter("notices", "Notices that a broker has taken.", "channel")
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.registry.register(self)

    def counter(self, name: str, text: str, label: str = "target") -> Counter:
        return Counter(f"calque_{name}_total", text, (label,), registry=self.registry)

    def window(self, target: str, window: WindowResult, seconds: float, window_id: str) -> None:
        """Count one window, which took `seconds`. A client that asks for OpenMetrics gets the name of the newest window
        of each bucket of durations."""
        self.windows.labels(target).observe(seconds, {"window": window_id})
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

    def text(self, accepted: str = "") -> tuple[bytes, str]:
        """Return the metrics and their media type: the format of Prometheus' that `accepted`, an Accept header, names,
        else the text format."""
        encode, media_type = choose_encoder(accepted)
        return encode(self.registry), media_type

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        view = self.snapshot()
        yield self.build
        yield from of_sources(view.sources)
        yield from of_targets(view.targets)
        yield from of_channels(view.channels)


def of_sources(sources: Iterable[SourceSample]) -> Iterator[Metric]:
    sources = tuple(sources)
    captures = [(one.name, one.capture) for one in sources if one.capture is not None]

    def each(name: str, text: str, values: Iterable[tuple[str, float | None]]) -> Metric:
        return gauge(f"calque_{name}", text, SOURCE, with_value(*(((source,), value) for source, value in values)))

    yield each("info", "The sources that are replicated.", ((one.name, 1) for one in sources))
    yield each("gaps", "Gaps of the log found so far.", ((one.name, one.gaps) for one in sources))
    yield each(
        "source_reachable",
        "1 while the source's metastore answers, else 0.",
        ((name, one.reachable) for name, one in captures),
    )
    yield each("source_head_event_id", "The source's newest event.", ((name, one.head) for name, one in captures))
    yield each(
        "journal_last_event_id",
        "The newest event that was captured into the journal.",
        ((name, one.last) for name, one in captures),
    )
    states = [((name, state), one.state == state) for name, one in captures for state in STATES]
    yield gauge("calque_capture_state", "1 for the state that capture is in.", ("source", "state"), states)
    failing = ((name, one.problem is not None) for name, one in captures)
    yield each("capture_failing", "1 while an error keeps capture from going on, else 0.", failing)


def of_targets(targets: Iterable[TargetSample]) -> Iterator[Metric]:
    targets = tuple(targets)

    def each(name: str, text: str, values: Iterable[tuple[str, float | None]]) -> Metric:
        return gauge(
            f"calque_target_{name}", text, TARGET, with_value(*(((target,), value) for target, value in values))
        )

    states = [((one.name, state), one.state == state) for one in targets for state in STATES]
    yield gauge("calque_target_state", "1 for the state that the target is in.", ("target", "state"), states)
    yield each(
        "failing",
        "1 while an error keeps the target from going on, else 0.",
        ((o.name, o.problem is not None) for o in targets),
    )
    yield each("reachable", "1 while the target's metastore answers, else 0.", ((o.name, o.reachable) for o in targets))
    yield each(
        "position_event_id",
        "The event that every live table of the target shows.",
        ((o.name, o.position) for o in targets),
    )
    yield each("epoch", "The number of the target's newest epoch.", ((one.name, one.epoch) for one in targets))
    yield each(
        "lag_events", "Events that the target does not show yet.", ((one.name, one.lag_events) for one in targets)
    )
    yield each(
        "lag_seconds",
        "Age in seconds of the oldest event that the target does not show.",
        ((o.name, o.lag_seconds) for o in targets),
    )
    tables = [((one.name, state), count) for one in targets for state, count in one.tables.items()]
    yield gauge("calque_target_tables", "Tables of the target by state.", ("target", "state"), tables)
    yield each("paused_tables", "Tables that an operator holds back.", ((o.name, o.paused_tables) for o in targets))
    copies = [(one.name, one.copying) for one in targets if one.copying is not None]
    yield each(
        "copying_bytes",
        "Bytes of the copies that are under way to the target.",
        ((name, totals.bytes) for name, totals in copies),
    )
    yield each(
        "copied_bytes",
        "Bytes done of the copies that are under way to the target.",
        ((name, totals.bytes_done) for name, totals in copies),
    )
    reads = [(one.name, one.reading) for one in targets if one.reading is not None]
    yield each(
        "reading_tables",
        "Tables that are being read exactly for the target.",
        ((name, totals.tables) for name, totals in reads),
    )
    lags = [((one.name, lag.table), lag) for one in targets for lag in one.lagging]
    yield gauge(
        "calque_table_lag_events",
        "Events since the one that the table shows, of the tables farthest behind.",
        ("target", "table"),
        [(labels, lag.events) for labels, lag in lags],
    )
    yield gauge(
        "calque_table_lag_seconds",
        "Age in seconds of the oldest event that the table does not show, of the tables farthest behind.",
        ("target", "table"),
        [(labels, lag.seconds) for labels, lag in lags],
    )
    yield each(
        "read_tables",
        "Tables done of those that are being read exactly for the target.",
        ((name, totals.tables_done) for name, totals in reads),
    )


def of_channels(channels: Iterable[ChannelSample]) -> Iterator[Metric]:
    channels, label = tuple(channels), ("channel",)
    failing = [((one.name,), one.problem is not None) for one in channels]
    yield gauge(
        "calque_channel_failing", "1 while an error keeps the channel of notices from going on, else 0.", label, failing
    )
    lags = with_value(*(((one.name,), one.lag_events) for one in channels))
    yield gauge("calque_channel_lag_events", "Events whose notices the channel has not sent yet.", label, lags)


LabelledValue = tuple[tuple[str, ...], float]


def with_value(*samples: tuple[tuple[str, ...], float | None]) -> list[LabelledValue]:
    return [(labels, value) for labels, value in samples if value is not None]


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Iterable[LabelledValue]) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        metric.add_metric(values, float(value))
    return metric
