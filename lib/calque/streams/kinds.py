"""The kinds of parts that plugins add to a process beside captures and targets, and the page that it serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from calque.config import Config
from calque.config.plugs import Source
from calque.control.question import HttpQuestion, Question
from calque.control.status import StatusParts
from calque.errors import Refused
from calque.model.names import EventId, TableName
from calque.serve.front_page import FrontPage
from calque.serve.samples import ChannelSample, ProcessSample
from calque.streams.capture import SourceCapture
from calque.streams.followers import Follower
from calque.streams.shared import ProcessContext, SourceStream
from calque.streams.supervisor import Supervisor
from calque.streams.target import TargetReplication
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.wiring import Wiring


class RunningProcess(ProcessContext, Protocol):
    """The process as watches and the page see it, which work beside all parts."""

    def snapshot(self) -> ProcessSample: ...

    @property
    def comparisons(self) -> tuple[ComparisonKind, ...]:
        """The comparisons that plugins add when a person asks to verify a target."""

    def target_parts(self) -> Mapping[str, TargetReplication]:
        """Return the parts of all targets that run now, by the names of the targets."""


class SupervisedPart(Protocol):
    """A part that the process starts, and waits for at its end. `stream` is that of the source which the part is
    about."""

    @property
    def name(self) -> str: ...

    @property
    def stream(self) -> SourceStream: ...

    @property
    def supervisor(self) -> Supervisor: ...


class Publisher(SupervisedPart, Protocol):
    """A part that sends others notices of what a source or a target shows."""

    def snapshot(self) -> ChannelSample: ...

    def has_sent(self, event_id: EventId) -> bool:
        """Tell whether the publisher has sent all notices up to `event_id`, which its source or target shows. True of a
        publisher that gets no further, because nothing waits for it."""


class PublisherSetup(NamedTuple):
    """The settings of one publisher, and the place whose events it publishes: a target's name, or "source".

    A reload leaves a publisher alone when its setup is equal and the part of its place goes on.
    """

    at: str
    settings: object


@dataclass(frozen=True, kw_only=True, slots=True)
class PublisherKind:
    """Publishers of one plugin. `setups` returns those that a configuration has, by the names of their parts. `make`
    returns the part of that name, which has not begun."""

    setups: Callable[[Config], Mapping[str, PublisherSetup]]
    make: Callable[[ProcessContext, str], Publisher]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureKind:
    """Capture for those sources for which `takes` returns True. `make` returns the part, which has not begun. The first
    kind that takes a source captures it, and the kernel where none does."""

    takes: Callable[[Source], bool]
    make: Callable[[ProcessContext, SourceStream], SourceCapture]


class Watch(Protocol):
    """A thread of a plugin that finds, beside all parts, which sources and targets the configuration gets and loses
    while the process runs. The process calls all methods on the thread that starts and ends parts."""

    @property
    def name(self) -> str:
        """A plural noun for what the watch finds, as log lines have it: "links"."""

    def begin(self) -> None: ...

    def stop(self) -> None: ...

    def has_news(self) -> bool:
        """Tell whether the configuration may have changed since the last call. Raises `Unavailable`."""

    def is_owing(self) -> bool:
        """Tell whether objects are still to be put right, though the configuration is the same."""

    def retry_later(self) -> None:
        """Have `has_news` return True once more, after a while."""

    def take_over(self, before: Config, wiring: Wiring) -> None:
        """Go on under the configuration of `wiring`, which follows `before`."""

    def settle(self, names: Collection[TableName] | None = None) -> None:
        """Put right objects that no part writes any more: those of these names, or all where `names` is None. Raises
        `Unavailable`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchKind:
    """Watches of one plugin.

    `roles` returns what only one process at a time does, with the seconds of the leases; nothing where the
    configuration wants no watch. `prepare` is called once the roles are taken and before captures begin. It may raise
    `Unavailable`; `unprepared` is the log line that says what holds then. `make` returns the watch, which has not
    begun.

    `relinked` gets the configuration before, the one now, and names of targets that differ between the two. It returns
    those that differ in their links alone: such a target goes on with its other links, and is not begun anew. `names`
    returns the names of a target's links in a configuration.
    """

    roles: Callable[[Config], Mapping[str, float]]
    prepare: Callable[[Wiring], None]
    unprepared: str
    make: Callable[[RunningProcess], Watch]
    relinked: Callable[[Config, Config, Collection[str]], Collection[str]]
    names: Callable[[Config, str], Collection[TableName]]


class Page(Protocol):
    """The page that a process serves at `/`, from `begin` to `end`."""

    def front(self) -> FrontPage: ...

    def begin(self) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessKinds:
    """Everything that plugins add to a process.

    `amended` returns a configuration with what the state folder adds to it now. `missing_extras` returns a refusal for
    each distribution extra that a configuration needs and this host lacks. `questions` are those of commands that the
    process answers, by their names, and `http_questions` requests, by their paths. `page` gets the process, and whether
    requests may show a token that opens all pages; None for no page.
    """

    amended: Callable[[Config], Config]
    missing_extras: Callable[[Config], tuple[Refused, ...]]
    status: StatusParts
    questions: Mapping[str, Question]
    http_questions: Mapping[str, HttpQuestion]
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
    questions={},
    http_questions={},
    followers=(),
    retention=(),
    comparisons=(),
    captures=(),
    publishers=(),
    watches=(),
    page=None,
)
