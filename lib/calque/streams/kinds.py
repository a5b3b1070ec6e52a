"""What plugins add to the process: parts beside captures and targets, and the page that it serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from calque.config import Config
from calque.config.plugs import Source
from calque.control.status import StatusParts
from calque.errors import Refused
from calque.model.names import EventId, TableName
from calque.serve.front_page import FrontPage
from calque.serve.metrics import ChannelLook, ProcessView
from calque.streams.capture import CapturePart
from calque.streams.followers import Follower
from calque.streams.shared import RunForParts, SourceStream
from calque.streams.supervisor import Supervisor
from calque.streams.target import TargetPart
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.wiring import Wiring


class RunningProcess(RunForParts, Protocol):
    """What works beside all parts needs of the process."""

    def look(self) -> ProcessView: ...

    @property
    def comparisons(self) -> tuple[ComparisonKind, ...]:
        """What is compared besides when a person asks for it."""

    def target_parts(self) -> Mapping[str, TargetPart]:
        """By the names of the targets."""


class RunningPart(Protocol):
    """What the process begins, and waits for at its end."""

    @property
    def name(self) -> str: ...

    @property
    def stream(self) -> SourceStream: ...

    @property
    def supervisor(self) -> Supervisor: ...


class Publisher(RunningPart, Protocol):
    """Tells others of what a source or a target shows."""

    def look(self) -> ChannelLook: ...

    def has_sent(self, event_id: EventId) -> bool:
        """Whether all up to the event, which the place shows, is told; true of one that gets no further."""


class PublisherSetup(NamedTuple):
    """`at` is a target, or `source`. A reload leaves a publisher alone whose setup is the same, and whose place goes
    on."""

    at: str
    settings: object


@dataclass(frozen=True, kw_only=True, slots=True)
class PublisherKind:
    """`setups` says, by the names of their parts, which publishers the configuration has."""

    setups: Callable[[Config], Mapping[str, PublisherSetup]]
    make: Callable[[RunForParts, str], Publisher]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureKind:
    """How sources are captured that `takes` knows."""

    takes: Callable[[Source], bool]
    make: Callable[[RunForParts, SourceStream], CapturePart]


class Watch(Protocol):
    """Finds, beside all parts, which sources and targets the configuration gets and loses while it runs. All methods
    are called by the thread that has the parts."""

    @property
    def name(self) -> str:
        """What it finds, in the plural."""

    def begin(self) -> None: ...

    def stop(self) -> None: ...

    def has_news(self) -> bool:
        """Whether the configuration may be another than at the last call. Raises `Unavailable`."""

    def is_owing(self) -> bool:
        """Whether something is to be put right though the configuration is the same."""

    def again(self) -> None:
        """Have `has_news` say so once more, in a while."""

    def take_over(self, before: Config, wiring: Wiring) -> None:
        """Go on as another configuration says."""

    def settle(self, names: Collection[TableName] | None = None) -> None:
        """Put right what no part writes any more: these names, or None for all. Raises `Unavailable`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchKind:
    """`roles` are what one process at a time does, with the seconds of their leases; none where the configuration wants
    no watch. `prepare` is called once they are taken, before captures begin; it may raise `Unavailable`, and
    `unprepared` says in the log what holds then. `relinked` are those of the targets that are begun with others of
    their names, and go on: only these differ between the two configurations. `names` are those of a target."""

    roles: Callable[[Config], Mapping[str, float]]
    prepare: Callable[[Wiring], None]
    unprepared: str
    make: Callable[[RunningProcess], Watch]
    relinked: Callable[[Config, Config, Collection[str]], Collection[str]]
    names: Callable[[Config, str], Collection[TableName]]


class Page(Protocol):
    """The page of a process."""

    def front(self) -> FrontPage: ...

    def begin(self) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessKinds:
    """All of them. `amended` is a configuration with what the state folder adds now, `missing_extras` what
    has to be installed for it first; `page` is given the process, and
    whether a request has shown a token that opens all pages."""

    amended: Callable[[Config], Config]
    missing_extras: Callable[[Config], tuple[Refused, ...]]
    status: StatusParts
    followers: tuple[Follower, ...]
    retention: tuple[RetentionKind, ...]
    comparisons: tuple[ComparisonKind, ...]
    captures: tuple[CaptureKind, ...]
    publishers: tuple[PublisherKind, ...]
    watches: tuple[WatchKind, ...]
    page: Callable[[RunningProcess, bool], Page] | None


def as_it_is(config: Config) -> Config:
    return config


def none_missing(_config: Config) -> tuple[Refused, ...]:
    return ()


KERNEL_ALONE = ProcessKinds(
    amended=as_it_is,
    missing_extras=none_missing,
    status={},
    followers=(),
    retention=(),
    comparisons=(),
    captures=(),
    publishers=(),
    watches=(),
    page=None,
)
