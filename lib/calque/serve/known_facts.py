"""The facts that a process knows of problems beside its sample: objects that are set aside, late tables, pauses, gaps.

The caller of `problems.problems` looks them up, because some of them only the state folder has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from calque.model.names import EventId


@dataclass(frozen=True, kw_only=True, slots=True)
class AsideObject:
    """A table, database or function that a target has in quarantine. `is_held`: its drop waits for an operator.
    `pattern` is what its release takes. `since` is in seconds since 1970, None where it is not known."""

    target: str
    name: str
    kind: str
    reason: str
    since_event: EventId | None
    since: float | None
    pattern: str
    is_held: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LateTable:
    """A table that shows less than its target does, and that no operator holds back. `since` is when the first event
    beyond the one that it shows was seen, in seconds since 1970."""

    target: str
    table: str
    state: str
    shows: EventId
    since: float
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PausedPattern:
    """A pattern by which an operator holds tables of a target back. `tables` is how many are; None where that is not
    known. `since` is None for pauses of a version that wrote no times."""

    target: str
    pattern: str
    since: float | None
    tables: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LostEvents:
    """A gap in a source's log; with `target` a gap of that target alone."""

    source: str
    target: str
    first: EventId
    last: EventId
    state: str
    cause: str
    found_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFacts:
    """The facts that a process knows beside its sample, as they were looked up last.

    `aside` and `late` may be cut; `aside_counts` and `late_counts` are the whole numbers by target. `paused` has the
    targets that an operator paused, with the times. `unserved` are targets of the configuration that no process
    replicates to. `links_aside` are names of links with the reasons.
    """

    aside: Sequence[AsideObject] = ()
    aside_counts: Mapping[str, int] = field(default_factory=dict)
    late: Sequence[LateTable] = ()
    late_counts: Mapping[str, int] = field(default_factory=dict)
    paused: Mapping[str, float] = field(default_factory=dict)
    patterns: Sequence[PausedPattern] = ()
    gaps: Sequence[LostEvents] = ()
    unserved: Sequence[str] = ()
    links_aside: Sequence[tuple[str, str]] = ()
    links_aside_count: int = 0
    silent_clusters: Sequence[tuple[str, str]] = ()
