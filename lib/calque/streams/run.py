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
from calque.control.requests import leave_request
from calque.core.records.standing import Standing
from calque.errors import CalqueError, Refused
from calque.logs.setup import set_level
from calque.model.ledger import TableState
from calque.model.names import EventId, TableName
from calque.model.requests import Action
from calque.model.state_places import TargetPlaces
from calque.plugins.notices.run import NoticePart, part_name
from calque.plugins.remotes.run.follow_links import LinkWatch
from calque.plugins.remotes.wiring.remotes import ROLE as LINKS
from calque.plugins.remotes.wiring.remotes import target_of, with_links
from calque.serve.metrics import Meters, ProcessView, SourceLook
from calque.streams.beginning import beginning_of
from calque.streams.capture import CapturePart, RemoteCapturePart
from calque.streams.journal import JournalPart
from calque.streams.part import Part
from calque.streams.reload import ConfigurationReader, difference, require_reloadable
from calque.streams.shared import Bell, SourceStream
from calque.streams.spark_session import own_session
from calque.streams.target import TargetPart
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
    roles: Roles = field(init=False)
    presence: ProcessPresence = field(init=False)
    streams: Mapping[str, SourceStream] = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    failure: CalqueError | None = None
    parts: list[Part] = field(default_factory=list)
    starting: threading.Lock = field(default_factory=threading.Lock)
    meters: Meters = field(init=False)
    bells: dict[str, Bell] = field(default_factory=lambda: defaultdict(Bell))
    links: LinkWatch | None = None
    """Follows the local catalog's links, in the process that has that role."""

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
        for name in self.channels():
            self.begin_channel(name)
        if LINKS in self.roles.held_roles:
            self.links = LinkWatch(self.wiring.remotes(), self.fail, self.note_room)
            self.links.begin()

    def channels(self) -> tuple[str, ...]:
        """The channels of notices that are this process's: those at its targets, and with capture those at the
        source."""
        places = (*((AT_SOURCE,) if self.capture else ()), *self.targets)
        return tuple(channel.name for place in places for channel in self.wiring.config.channels_at(place))

    def begin_channel(self, name: str) -> None:
        channel = self.wiring.channel(name)
        self.begin_part(NoticePart(self, self.streams[channel.plug.source], channel))

    def begin_parts(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Captures first: they know what targets admit before these list it, so that no evidence is missed."""
        for name in sources:
            kind = CapturePart if self.wiring.config.sources[name].endpoint is None else RemoteCapturePart
            self.begin_part(kind(self, self.streams[name]))
        for name in targets:
            stream = self.streams[self.wiring.config.source_of(name).name]
            if not self.capture and not any(part.stream is stream for part in self.parts):
                self.begin_part(JournalPart(self, stream))
            self.begin_part(TargetPart(self, stream, name))

    def begin_part(self, part: Part) -> None:
        self.parts.append(part)
        part.start()

    def stop(self, cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
        """Finish the windows in hand if that takes no time, else the calls in hand; record, end. False where a call is
        not answered: what runs then is left to end with the process, like after a crash. Idempotent."""
        self.stopping.set()
        if self.links is not None:
            self.links.stop()
        ended = end(self.parts, cut, leave)
        self.presence.end()
        return ended

    def look(self) -> ProcessView:
        """How the process is, without asking anybody."""
        parts = list(self.parts)
        captures = {part.stream.name: part.look() for part in parts if isinstance(part, CapturePart)}
        sources = tuple(SourceLook(name, captures.get(name), stream.gaps) for name, stream in self.streams.items())
        targets = tuple(part.look() for part in parts if isinstance(part, TargetPart))
        channels = tuple(part.look() for part in parts if isinstance(part, NoticePart))
        silent = () if self.stopping.is_set() else tuple(part.name for part in parts if not part.turns())
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

    def take_links(self) -> None:
        """Take over links that came, went or changed."""
        assert self.links is not None
        if not self.links.has_news():
            return
        try:
            config = with_links(self.wiring.config)
            if config != self.wiring.config or self.links.leaves():
                self.take_over(config, self.targets_of(config))
        except CalqueError as error:
            LOG.warning("links are not taken over: %s", error)
            self.links.again()

    def note_room(self, names: Sequence[TableName]) -> None:
        """Have tables tried again that were set aside because of a local object of their name, which has gone."""
        parts = {part.name: part for part in list(self.parts) if isinstance(part, TargetPart)}
        for name in names:
            target = target_of(self.wiring.config, name)
            part = parts.get(target.name) if target is not None else None
            remote = part.target.admission().source_of(name) if part is not None else None
            row = part.find_table(remote) if part is not None and remote is not None else None
            if part is not None and row is not None and row.state is TableState.QUARANTINED:
                leave_request(self.wiring, part.name, Action.RELEASE, [str(row.name)])

    def targets_of(self, config: Config) -> Sequence[str]:
        """Those of this process."""
        return self.reread.targets(config) if self.reread is not None else tuple(config.targets)

    def take_over(self, config: Config, targets: Sequence[str]) -> None:
        """End what has another configuration now, then begin it anew; the rest is not disturbed."""
        wiring = Wiring(config, Runtime(self.spark, self.wiring.runtime.hit))
        config = wiring.config
        require_reloadable(self.wiring.config, config)
        changes = difference(self.wiring.config, config, self.targets, targets)
        added_captures = tuple(name for name in changes.captures if name not in self.wiring.sources and self.capture)
        if not self.roles.take(roles(config, added_captures, changes.added), self.stopping):
            return
        gone_captures = [self.wiring.sources[name].places.role for name in changes.ended_captures if self.capture]
        old_links = {name: target.links or {} for name, target in self.wiring.config.targets.items()}
        old_channels = {name: self.wiring.config.channel(name) for name in self.channels()}
        set_level(config.log.level)
        has_other_rules = self.wiring.config.remotes != config.remotes
        self.wiring = wiring
        if self.links is not None and has_other_rules:
            self.links.take_keys(self.wiring.remotes())
        captures = changes.captures if self.capture else ()
        ending = {*changes.ended_targets, *(self.wiring.sources[name].places.role for name in captures), *gone_captures}
        self.targets = tuple(targets)
        kept_channels = {
            name
            for name in self.channels()
            if old_channels.get(name) == config.channel(name)
            and not captures
            and config.channel(name).at not in changes.begun_targets
        }
        ending |= {part_name(name) for name in old_channels if name not in kept_channels}
        self.end_parts([part for part in self.parts if part.name in ending])
        for role in (*(TargetPlaces(name).role for name in changes.removed), *gone_captures):
            self.roles.give_back(role)
        self.make_streams()
        parts = [part for part in self.parts if isinstance(part, TargetPart)]
        relinked = [part for part in parts if part.name in changes.relinked_targets]
        if self.links is not None and not relinked and all(part.next_target is None for part in parts):
            try:
                self.links.settle()
            except CalqueError as error:
                LOG.warning("links are not settled yet: %s", error)
                self.links.again()
        self.begin_parts(captures, changes.begun_targets)
        for part in relinked:
            part.exchange(self.wiring.target(part.name), partial(self.settle_links, old_links[part.name]))
        for name in self.channels():
            if name not in kept_channels:
                self.begin_channel(name)

    def settle_links(self, names: Collection[TableName]) -> None:
        """Of links that no projection writes any more."""
        if self.links is not None:
            self.links.settle(names)

    def end_parts(self, parts: Sequence[Part], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> None:
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
            if self.links is not None:
                self.take_links()
            targets = [part for part in self.parts if isinstance(part, TargetPart)]
            own = [part for part in targets if part.target.plug.links is None]
            own_failures = [part.failure for part in own if part.failure is not None]
            if own_failures and len(own_failures) == len(own):
                raise own_failures[0]
            if until is not None:
                awaited = [part for part in targets if part.stream.name in until]
                failures = [part.failure for part in awaited if part.failure is not None]
                standings = [part.standing(until[part.stream.name]) for part in awaited if part.failure is None]
                channels = [part for part in self.parts if isinstance(part, NoticePart)]
                is_shown = all(item is not Standing.GOING for item in standings)
                if is_shown and all(part.has_sent(until[part.stream.name]) for part in channels):
                    if failures:
                        raise failures[0]
                    return Standing.WITHOUT if Standing.WITHOUT in standings else Standing.REACHED
            if time.monotonic() > deadline:
                return Standing.GOING
        if self.failure is not None:
            raise self.failure
        return Standing.GOING


def end(parts: Sequence[Part], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
    """Stop the parts, and wait until they have ended; after `cut` seconds they make no further call. False where after
    `leave` seconds one is not answered: that part is left behind, and holds up nobody."""
    began = time.monotonic()
    for part in parts:
        part.stop()
    while (remaining := running(parts)) and time.monotonic() < began + leave:
        if time.monotonic() > began + cut:
            for part in parts:
                part.cut()
        remaining[0].join(0.1)
    for part in parts:
        if part.thread.is_alive():
            LOG.warning("%s is left behind: a call of it is not answered", part.name)
    return not remaining


def running(parts: Sequence[Part]) -> list[threading.Thread]:
    return [thread for part in parts for thread in part.threads() if thread.is_alive()]
