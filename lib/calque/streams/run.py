"""What one process does: it keeps up a set of captures and replicas, takes over a new configuration, and ends them."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from calque.config.plugs import AT_SOURCE
from calque.control.process_locks import Roles, roles
from calque.control.processes import Answer, ProcessPresence
from calque.core.records.standing import Standing
from calque.errors import CalqueError, Refused
from calque.logs.setup import set_level
from calque.model.names import EventId, TableName
from calque.model.state_places import TargetPlaces
from calque.serve.metrics import Meters, ProcessView, SourceLook
from calque.streams.beginning import beginning_of
from calque.streams.capture import CapturePart
from calque.streams.followers import Follower
from calque.streams.journal import JournalPart
from calque.streams.kinds import KERNEL_ALONE, ProcessKinds, Publisher, PublisherSetup, RunningPart, Watch
from calque.streams.reload import ConfigurationReader, difference, require_reloadable
from calque.streams.shared import Bell, SourceStream
from calque.streams.spark_session import own_session
from calque.streams.target import TargetPart
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.runtime import Runtime
from calque.wiring.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from calque.config import Config

LOG = logging.getLogger(__name__)
CUT_SECONDS, LEAVE_SECONDS = 2.0, 8.0
"""After a request to stop: how long windows in hand go on, and how long calls in hand are waited for."""


@dataclass(slots=True)
class Run:
    """One process: the named targets, and with `capture` all sources. Each target follows the stream of its source.
    `reread` is how the process reads its configuration again."""

    wiring: Wiring
    targets: Sequence[str]
    capture: bool = True
    held_roles: InitVar[Roles | None] = None
    reread: ConfigurationReader | None = None
    kinds: ProcessKinds = KERNEL_ALONE
    roles: Roles = field(init=False)
    presence: ProcessPresence = field(init=False)
    streams: Mapping[str, SourceStream] = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    failure: CalqueError | None = None
    parts: list[RunningPart] = field(default_factory=list)
    publishers: dict[str, tuple[PublisherSetup, Publisher]] = field(default_factory=dict)
    """Those of the parts that are publishers, by their names."""
    starting: threading.Lock = field(default_factory=threading.Lock)
    meters: Meters = field(init=False)
    bells: dict[str, Bell] = field(default_factory=lambda: defaultdict(Bell))
    watches: list[Watch] = field(default_factory=list)
    """Those whose roles the process has."""

    def __post_init__(self, held_roles: Roles | None) -> None:
        self.roles = held_roles or Roles(self.wiring.state)
        self.wiring.runtime.session = self.spark
        self.presence = ProcessPresence(self.wiring.control)
        self.streams = {}
        self.make_streams()
        self.meters = Meters(self.look)

    def make_streams(self) -> None:
        """Those of sources that are new."""
        new = {name: SourceStream(name, beginning_of(self.wiring, name)) for name in self.wiring.sources}
        self.streams = {**new, **{name: stream for name, stream in self.streams.items() if name in new}}

    def bell(self, target: str) -> Bell:
        return self.bells[target]

    def spark(self) -> SparkSession:
        return own_session(self.wiring.state)

    def start(self) -> None:
        """Start every part on a thread of its own; whoever needs Spark first waits for it, while the others open what
        they need. Returns at once."""
        self.presence.begin(self.targets)
        self.begin_parts(self.wiring.sources if self.capture else (), self.targets)
        self.begin_publishers()
        for kind in self.kinds.watches:
            roles_of_watch = kind.roles(self.wiring.config).keys()
            if roles_of_watch and roles_of_watch <= self.roles.held_roles.keys():
                self.watches.append(kind.make(self))
                self.watches[-1].begin()

    @property
    def followers(self) -> tuple[Follower, ...]:
        return self.kinds.followers

    @property
    def retention(self) -> tuple[RetentionKind, ...]:
        return self.kinds.retention

    @property
    def comparisons(self) -> tuple[ComparisonKind, ...]:
        return self.kinds.comparisons

    def begin_publishers(self) -> None:
        """Those of this process, at its targets and with capture at the source, that have not begun."""
        setups = self.publisher_setups()
        for kind in self.kinds.publishers:
            for name in kind.setups(self.wiring.config):
                if name in setups and name not in self.publishers:
                    part = kind.make(self, name)
                    self.publishers[name] = setups[name], part
                    self.begin_part(part)

    def target_parts(self) -> dict[str, TargetPart]:
        """By the names of the targets."""
        return {part.name: part for part in list(self.parts) if isinstance(part, TargetPart)}

    def begin_parts(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Captures first: they know what targets admit before these list it, so that no evidence is missed."""
        for name in sources:
            plug = self.wiring.config.sources[name]
            make = next((kind.make for kind in self.kinds.captures if kind.takes(plug)), CapturePart)
            self.begin_part(make(self, self.streams[name]))
        for name in targets:
            stream = self.streams[self.wiring.config.source_of(name).name]
            if not self.capture and not any(part.stream is stream for part in self.parts):
                self.begin_part(JournalPart(self, stream))
            self.begin_part(TargetPart(self, stream, name))

    def begin_part(self, part: RunningPart) -> None:
        self.parts.append(part)
        part.supervisor.start()

    def stop(self, cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
        """Finish the windows in hand if that takes no time, else the calls in hand; record, end. False where a call is
        not answered: what runs then is left to end with the process, like after a crash. Idempotent."""
        self.stopping.set()
        for watch in self.watches:
            watch.stop()
        ended = end(self.parts, cut, leave)
        self.presence.end()
        return ended

    def look(self) -> ProcessView:
        """How the process is, without asking anybody."""
        parts = list(self.parts)
        captures = {part.stream.name: part.look() for part in parts if isinstance(part, CapturePart)}
        sources = tuple(SourceLook(name, captures.get(name), stream.gaps) for name, stream in self.streams.items())
        targets = tuple(part.report.look() for part in parts if isinstance(part, TargetPart))
        channels = tuple(publisher.look() for _, publisher in list(self.publishers.values()))
        silent = () if self.stopping.is_set() else tuple(part.name for part in parts if not part.supervisor.turns())
        return ProcessView(sources, targets, silent, channels)

    def reload(self) -> None:
        """Read the configuration again, and take over what it says; all is as before where that is refused."""
        self.presence.reload_requested.clear()
        request = self.presence.request()
        try:
            if self.reread is None:
                raise Refused("This process can't read its configuration again", "", "Stop it, and start it again")
            config = self.reread.load()
            self.take_over(config, self.reread.targets(config))
        except CalqueError as error:
            LOG.warning("the configuration is not taken over: %s", error)
            self.presence.answer(Answer(request, error.exit_code, str(error)), self.targets)
        else:
            LOG.info("the configuration is taken over")
            self.presence.answer(Answer(request), self.targets)

    def take_news(self, watch: Watch) -> None:
        """Take over sources and targets that came, went or changed, as the watch found."""
        if not watch.has_news():
            return
        try:
            config = self.kinds.amended(self.wiring.config)
            if config != self.wiring.config or watch.is_owing():
                self.take_over(config, self.targets_of(config))
        except CalqueError as error:
            LOG.warning("%s are not taken over: %s", watch.name, error)
            watch.again()

    def targets_of(self, config: Config) -> Sequence[str]:
        """Those of this process."""
        return self.reread.targets(config) if self.reread is not None else tuple(config.targets)

    def take_over(self, config: Config, targets: Sequence[str]) -> None:
        """End what has another configuration now, then begin it anew; the rest is not disturbed."""
        wiring = Wiring(config, Runtime(self.spark, self.wiring.runtime.hit, kinds=self.wiring.runtime.kinds))
        config = wiring.config
        require_reloadable(self.wiring.config, config)
        changes = difference(self.wiring.config, config, self.targets, targets, self.kinds)
        added_captures = tuple(name for name in changes.captures if name not in self.wiring.sources and self.capture)
        if not self.roles.take(roles(config, added_captures, changes.added), self.stopping):
            return
        gone_captures = [self.wiring.sources[name].places.role for name in changes.ended_captures if self.capture]
        before = self.wiring.config
        set_level(config.log.level)
        self.wiring = wiring
        for watch in self.watches:
            watch.take_over(before, wiring)
        captures = changes.captures if self.capture else ()
        ending = {*changes.ended_targets, *(self.wiring.sources[name].places.role for name in captures), *gone_captures}
        self.targets = tuple(targets)
        setups = self.publisher_setups()
        for name, (setup, _) in list(self.publishers.items()):
            if captures or setup.at in changes.begun_targets or setup != setups.get(name):
                ending.add(name)
                del self.publishers[name]
        self.end_parts([part for part in self.parts if part.name in ending])
        for role in (*(TargetPlaces(name).role for name in changes.removed), *gone_captures):
            self.roles.give_back(role)
        self.make_streams()
        parts = self.target_parts().values()
        relinked = [part for part in parts if part.name in changes.relinked_targets]
        if not relinked and all(part.current.next_target is None for part in parts):
            self.settle()
        self.begin_parts(captures, changes.begun_targets)
        for part in relinked:
            names = [name for kind in self.kinds.watches for name in kind.names(before, part.name)]
            part.exchange(self.wiring.target(part.name), partial(self.settle_names, names))
        self.begin_publishers()

    def publisher_setups(self) -> Mapping[str, PublisherSetup]:
        """Of this process's publishers, by the names of their parts."""
        places = {*((AT_SOURCE,) if self.capture else ()), *self.targets}
        found = (kind.setups(self.wiring.config) for kind in self.kinds.publishers)
        return {name: setup for setups in found for name, setup in setups.items() if setup.at in places}

    def settle(self) -> None:
        for watch in self.watches:
            try:
                watch.settle()
            except CalqueError as error:
                LOG.warning("%s are not settled yet: %s", watch.name, error)
                watch.again()

    def settle_names(self, names: Collection[TableName]) -> None:
        """Of what no target writes any more."""
        for watch in self.watches:
            watch.settle(names)

    def end_parts(self, parts: Sequence[RunningPart], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> None:
        end(parts, cut, leave)
        self.parts = [part for part in self.parts if part not in parts]

    def fail(self, error: CalqueError) -> None:
        """Nothing can go on: the process ends with its error."""
        self.failure = self.failure or error
        self.stopping.set()

    def wait(self, until: Mapping[str, EventId] | None, seconds: float = float("inf")) -> Standing:
        """Until stopped, or every target shows the event that `until` has for its source. WITHOUT: tables that are set
        aside are missing for good. Raises what ended capture, or all targets that do not show it."""
        deadline = time.monotonic() + seconds
        while not self.stopping.wait(0.05):
            if self.roles.lost is not None:
                raise self.roles.lost
            if self.presence.reload_requested.is_set():
                self.reload()
            for watch in self.watches:
                self.take_news(watch)
            targets = list(self.target_parts().values())
            own = [part for part in targets if part.current.target.plug.links is None]
            own_failures = failures_of(own)
            if own_failures and len(own_failures) == len(own):
                raise own_failures[0]
            if until is not None:
                awaited = [part for part in targets if part.stream.name in until]
                failures = failures_of(awaited)
                going = (part for part in awaited if part.supervisor.failure is None)
                standings = [part.report.standing(until[part.stream.name]) for part in going]
                is_shown = all(item is not Standing.GOING for item in standings)
                if is_shown and all(part.has_sent(until[part.stream.name]) for _, part in self.publishers.values()):
                    if failures:
                        raise failures[0]
                    return Standing.WITHOUT if Standing.WITHOUT in standings else Standing.REACHED
            if time.monotonic() > deadline:
                return Standing.GOING
        if self.failure is not None:
            raise self.failure
        return Standing.GOING


def end(parts: Sequence[RunningPart], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
    """Stop the parts, and wait until they have ended; after `cut` seconds they make no further call. False where after
    `leave` seconds one is not answered: that part is left behind, and holds up nobody."""
    began = time.monotonic()
    for part in parts:
        part.supervisor.stop()
    while (remaining := running(parts)) and time.monotonic() < began + leave:
        if time.monotonic() > began + cut:
            for part in parts:
                part.supervisor.cut()
        remaining[0].join(0.1)
    for part in parts:
        if part.supervisor.thread.is_alive():
            LOG.warning("%s is left behind: a call of it is not answered", part.name)
    return not remaining


def failures_of(parts: Iterable[TargetPart]) -> list[CalqueError]:
    """Of those that get nowhere."""
    return [part.supervisor.failure for part in parts if part.supervisor.failure is not None]


def running(parts: Sequence[RunningPart]) -> list[threading.Thread]:
    return [thread for part in parts for thread in part.supervisor.threads() if thread.is_alive()]
