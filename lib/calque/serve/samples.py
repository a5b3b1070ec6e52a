"""The state of one process and of its parts, from memory: the values that its status records, its page, its metrics and
its readiness all say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.engine.exact_reads.progress import ReadTotals
from calque.engine.sides.copy_progress import Progress
from calque.model.names import EventId
from calque.model.part_states import Failing
from calque.serve.table_lag import TableLag


@dataclass(frozen=True, slots=True)
class VerifiedSample:
    """The newest comparison of a target with its source: when it ended (seconds since 1970), at which event, and how
    many differences it found. `is_whole` is False where it was asked for some tables only."""

    at: float
    event_id: EventId
    differences: int
    is_whole: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetSample:
    """A target as its process has it in memory. `tables` counts its tables by state."""

    name: str
    state: str
    problem: str | None
    reachable: bool
    failing: Failing | None = None
    position: EventId | None = None
    epoch: int | None = None
    published_at: str | None = None
    """When the newest epoch was published (ISO 8601); None before the first one."""
    lag_events: int = 0
    lag_seconds: float = 0.0
    events_per_second: float | None = None
    """The events a second by which the position moved in the last minute; None while that is not known."""
    catches_up_at: float | None = None
    """When the target may have caught up, in seconds since 1970, if source and target go on as in the last minute;
    None where it lags by nothing, or gets no nearer."""
    tables: Mapping[str, int] = field(default_factory=dict)
    busy: Mapping[str, str] = field(default_factory=dict)
    """The tables that are being read or copied, each with its state."""
    copying: Progress | None = None
    reading: ReadTotals | None = None
    lagging: tuple[TableLag, ...] = ()
    """The tables that show less than the position, the farthest behind first, a few at most."""
    paused_tables: int = 0
    """The number of tables that an operator holds back."""
    window: str | None = None
    """The name of the newest window, as log lines have it."""
    verified: VerifiedSample | None = None
    """The newest comparison; None where there was none."""
    free_bytes: int | None = None
    """Bytes that are free where the target's warehouse lies; None where this host does not know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureSample:
    """The capture of a source as its process has it in memory. `head` is the source's newest event id, `last` the
    journal's; None where they are not known yet."""

    state: str
    problem: str | None
    reachable: bool
    head: EventId | None
    last: EventId | None
    failing: Failing | None = None
    lag_seconds: float = 0.0
    """Age in seconds of the oldest event that the journal lacks; 0 where it lacks none."""
    newest_at: float | None = None
    """When the source's newest event was first seen, in seconds since 1970; None before any was."""
    pinned_bytes: int | None = None
    """Bytes of the source's files that are kept until every target has them; None while that is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelSample:
    """A channel of notices as its process has it in memory. `lag_events` is None while it is not known."""

    name: str
    state: str
    problem: str | None
    lag_events: int | None = None
    failing: Failing | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSample:
    """A source as a process has it in memory. `capture` is None where another process captures it. `gaps` is how many
    gaps in its log were found so far."""

    name: str
    capture: CaptureSample | None
    gaps: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSample:
    """The state of one process, from memory. `silent` names the parts whose threads do not turn any more. `free_bytes`
    is what is free where the state folder lies, None while that is not known."""

    sources: tuple[SourceSample, ...]
    targets: tuple[TargetSample, ...]
    silent: tuple[str, ...] = ()
    channels: tuple[ChannelSample, ...] = ()
    free_bytes: int | None = None
