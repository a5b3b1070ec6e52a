"""The parts of one process: it starts and keeps captures and replicas, takes over other configurations, and ends the
parts: `ReplicatorProcess`."""

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
from calque.core.records.reached_state import ReachedState
from calque.errors import CalqueError, Refused
from calque.logs.setup import set_level
from calque.model.names import EventId, TableName
from calque.model.state_places import TargetPlaces
from calque.serve.metrics import Meters
from calque.serve.samples import ProcessSample, SourceSample
from calque.streams.beginning import beginning_of
from calque.streams.capture import SourceCapture
from calque.streams.followers import Follower
from calque.streams.journal import JournalPoller
from calque.streams.kinds import KERNEL_ALONE, ProcessKinds, Publisher, PublisherSetup, SupervisedPart, Watch
from calque.streams.reload import ConfigurationReader, configuration_change, require_reloadable
from calque.streams.shared import SourceStream, WakeUpSignal
from calque.streams.spark_session import own_session
from calque.streams.target import TargetReplication
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.runtime import Runtime
from calque.wiring.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from calque.config import Config

LOG = logging.getLogger(__name__)
CANCEL_SECONDS, LEAVE_SECONDS = 2.0, 8.0
"""Seconds after a request to stop for which windows in hand go on, and for which calls in hand are waited for."""


@dataclass(slots=True)
class ReplicatorProcess:
    """The parts of one process: a replica for each of `targets`, and with `capture` the capture of every source.

    A target follows the stream of its source. `reread` reads the configuration again; None where the process can't.
    `held_roles` are the roles that the process has taken already. Parts begin with `start`.
    """

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
    parts: list[SupervisedPart] = field(default_factory=list)
    publishers: dict[str, tuple[PublisherSetup, Publisher]] = field(default_factory=dict)
    """The parts that are publishers with the setups that they were made from, by the names of the parts."""
    starting: threading.Lock = field(default_factory=threading.Lock)
    meters: Meters = field(init=False)
    epoch_signals: dict[str, WakeUpSignal] = field(default_factory=lambda: defaultdict(WakeUpSignal))
    watches: list[Watch] = field(default_factory=list)
    """The watches whose roles this process has."""
    asked: tuple[Wiring, Wiring] | None = None
    """The wiring of the parts, and the one for questions that was made of it."""
    digest: str = ""
    """The digest of the configuration that holds, by which commands know whether it is theirs; empty where the process
    can't tell."""

    def __post_init__(self, held_roles: Roles | None) -> None:
        self.roles = held_roles or Roles(self.wiring.state)
        self.wiring.runtime.session = self.spark
        self.presence = ProcessPresence(self.wiring.control, self.wiring.state)
        self.streams = {}
        self.digest = self.reread.digest if self.reread is not None else ""
        self.make_streams()
        self.meters = Meters(self.snapshot)

    def make_streams(self) -> None:
        """Make a stream for each new source, keep those of sources that remain, and forget the others."""
        new = {name: SourceStream(name, beginning_of(self.wiring, name)) for name in self.wiring.sources}
        self.streams = {**new, **{name: stream for name, stream in self.streams.items() if name in new}}

    def epoch_signal(self, target: str) -> WakeUpSignal:
        return self.epoch_signals[target]

    def wiring_for_questions(self) -> Wiring:
        """Return the configuration's wiring for questions of commands: its objects are others than those of the parts,
        and the same ones until another configuration holds."""
        wiring, asked = self.wiring, self.asked
        if asked is None or asked[0] is not wiring:
            asked = self.asked = (wiring, wiring.afresh())
        return asked[1]

    def spark(self) -> SparkSession:
        return own_session(self.wiring.state)

    def start(self) -> None:
        """Start every part on a thread of its own, and return at once. The first part that needs Spark waits for its
        session, while the others open what they need."""
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
        """Start the publishers of this process that have not begun: those at its targets, and with `capture` those at
        the source."""
        setups = self.publisher_setups()
        for kind in self.kinds.publishers:
            for name in kind.setups(self.wiring.config):
                if name in setups and name not in self.publishers:
                    part = kind.make(self, name)
                    self.publishers[name] = setups[name], part
                    self.begin_part(part)

    def target_parts(self) -> dict[str, TargetReplication]:
        """Return the parts of all targets that run now, by the names of the targets."""
        return {part.name: part for part in list(self.parts) if isinstance(part, TargetReplication)}

    def begin_parts(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Start the captures of `sources`, then the replicas of `targets`. Captures go first, because capture has to
        know what targets admit before these list it: else evidence would be missed."""
        for name in sources:
            plug = self.wiring.config.sources[name]
            make = next((kind.make for kind in self.kinds.captures if kind.takes(plug)), SourceCapture)
            self.begin_part(make(self, self.streams[name]))
        for name in targets:
            stream = self.streams[self.wiring.config.source_of(name).name]
            if not self.capture and not any(part.stream is stream for part in self.parts):
                self.begin_part(JournalPoller(self, stream))
            self.begin_part(TargetReplication(self, stream, name))

    def begin_part(self, part: SupervisedPart) -> None:
        self.parts.append(part)
        part.supervisor.start()

    def stop(self, cancel_after: float = CANCEL_SECONDS, leave_after: float = LEAVE_SECONDS) -> bool:
        """Stop all parts, and return whether they have ended.

        A window in hand is finished if that takes less than `cancel_after` seconds, else only the calls in hand are;
        what was done is recorded. False where a call is not answered within `leave_after` seconds: its thread is left
        to end with the process, as in a crash. May be called again."""
        self.stopping.set()
        for watch in self.watches:
            watch.stop()
        ended = end(self.parts, cancel_after, leave_after)
        self.presence.end()
        return ended

    def snapshot(self) -> ProcessSample:
        """Return the state of the process from memory, without a call to a metastore or a ledger."""
        parts = list(self.parts)
        captures = {part.stream.name: part.snapshot() for part in parts if isinstance(part, SourceCapture)}
        sources = tuple(
            SourceSample(name=name, capture=captures.get(name), gaps=stream.gaps)
            for name, stream in self.streams.items()
        )
        targets = tuple(part.report.snapshot() for part in parts if isinstance(part, TargetReplication))
        channels = tuple(publisher.snapshot() for _, publisher in list(self.publishers.values()))
        silent = () if self.stopping.is_set() else tuple(part.name for part in parts if not part.supervisor.is_alive())
        return ProcessSample(
            sources=sources, targets=targets, silent=silent, channels=channels, free_bytes=self.presence.free_bytes
        )

    def reload(self) -> None:
        """Read the configuration again, take it over, and answer those who asked. A configuration that is refused
        changes nothing."""
        self.presence.reload_requested.clear()
        request = self.presence.request()
        try:
            if self.reread is None:
                raise Refused("This process can't read its configuration again", "", "Stop it, and start it again")
            config = self.reread.load()
            self.take_over(config, self.reread.targets(config))
            self.digest = self.reread.digest
        except CalqueError as error:
            LOG.warning("the configuration is not taken over: %s", error)
            self.presence.answer(Answer(request, error.exit_code, str(error)), self.targets)
        else:
            LOG.info("the configuration is taken over")
            self.presence.answer(Answer(request), self.targets)

    def take_news(self, watch: Watch) -> None:
        """Take over sources and targets that came, went or changed, where the watch has news. An error is logged, and
        the watch is asked again later."""
        if not watch.has_news():
            return
        try:
            config = self.kinds.amended(self.wiring.config)
            if config != self.wiring.config or watch.is_owing():
                self.take_over(config, self.targets_of(config))
        except CalqueError as error:
            LOG.warning("%s are not taken over: %s", watch.name, error)
            watch.retry_later()

    def targets_of(self, config: Config) -> Sequence[str]:
        """Return the targets of the configuration that are this process's."""
        return self.reread.targets(config) if self.reread is not None else tuple(config.targets)

    def take_over(self, config: Config, targets: Sequence[str]) -> None:
        """End the parts that `config` changes, and begin them anew for `targets`; no other part is disturbed.

        Returns without a change when the process is to stop while it waits for roles. Raises `Refused` for a
        configuration that can't be taken over, and `Unavailable` where another process has a role that is needed.
        """
        wiring = Wiring(config, Runtime(self.spark, self.wiring.runtime.hit, kinds=self.wiring.runtime.kinds))
        config = wiring.config
        require_reloadable(self.wiring.config, config)
        changes = configuration_change(self.wiring.config, config, self.targets, targets, self.kinds)
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
        """Return the setups of this process's publishers in the configuration, by the names of their parts."""
        places = {*((AT_SOURCE,) if self.capture else ()), *self.targets}
        found = (kind.setups(self.wiring.config) for kind in self.kinds.publishers)
        return {name: setup for setups in found for name, setup in setups.items() if setup.at in places}

    def settle(self) -> None:
        """Have all watches put right the objects that no part writes any more. An error is logged, and the watch is
        asked again later."""
        for watch in self.watches:
            try:
                watch.settle()
            except CalqueError as error:
                LOG.warning("%s are not settled yet: %s", watch.name, error)
                watch.retry_later()

    def settle_names(self, names: Collection[TableName]) -> None:
        """Have all watches put right the objects of these names, which no target writes any more. Raises
        `Unavailable`."""
        for watch in self.watches:
            watch.settle(names)

    def end_parts(
        self, parts: Sequence[SupervisedPart], cancel_after: float = CANCEL_SECONDS, leave_after: float = LEAVE_SECONDS
    ) -> None:
        end(parts, cancel_after, leave_after)
        self.parts = [part for part in self.parts if part not in parts]

    def fail(self, error: CalqueError) -> None:
        """Have the process end with `error`, the first one where there are several. Called by parts without which
        nothing can go on."""
        self.failure = self.failure or error
        self.stopping.set()

    def wait(self, until: Mapping[str, EventId] | None, seconds: float = float("inf")) -> ReachedState:
        """Take over news and reloads until the process is to stop, or until every target shows the event that `until`
        has for its source.

        Return `REACHED` when all do and all notices of these events are sent; `WITHOUT` when they do but for tables
        that are set aside, which never come of themselves; `GOING` after `seconds` or a request to stop. Raises the
        error that ended capture or took a role away, the first target's error where all targets have failed, and that
        of a failed target where the others show the event.
        """
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
                states = [part.report.reached_state(until[part.stream.name]) for part in going]
                is_shown = all(item is not ReachedState.GOING for item in states)
                if is_shown and all(part.has_sent(until[part.stream.name]) for _, part in self.publishers.values()):
                    if failures:
                        raise failures[0]
                    return ReachedState.WITHOUT if ReachedState.WITHOUT in states else ReachedState.REACHED
            if time.monotonic() > deadline:
                return ReachedState.GOING
        if self.failure is not None:
            raise self.failure
        return ReachedState.GOING


def end(
    parts: Sequence[SupervisedPart], cancel_after: float = CANCEL_SECONDS, leave_after: float = LEAVE_SECONDS
) -> bool:
    """Stop the parts, wait until their threads have ended, and return whether all have. After `cancel_after` seconds
    the parts make no further call. A part with a call that is not answered within `leave_after` seconds is left behind,
    and holds up no other."""
    began = time.monotonic()
    for part in parts:
        part.supervisor.stop()
    while (remaining := running(parts)) and time.monotonic() < began + leave_after:
        if time.monotonic() > began + cancel_after:
            for part in parts:
                part.supervisor.cancel_calls()
        remaining[0].join(0.1)
    for part in parts:
        if part.supervisor.thread.is_alive():
            LOG.warning("%s is left behind: a call of it is not answered", part.name)
    return not remaining


def failures_of(parts: Iterable[TargetReplication]) -> list[CalqueError]:
    """Return the errors of those parts that have failed and get no further."""
    return [part.supervisor.failure for part in parts if part.supervisor.failure is not None]


def running(parts: Sequence[SupervisedPart]) -> list[threading.Thread]:
    return [thread for part in parts for thread in part.supervisor.threads() if thread.is_alive()]
