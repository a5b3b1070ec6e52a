"""What one process does: it keeps up a set of captures and replicas, takes over a new configuration, and ends them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from calque.control.process_locks import Roles, roles
from calque.control.processes import Answer, ProcessPresence
from calque.core.standing import Standing
from calque.errors import CalqueError, Refused
from calque.model.names import EventId
from calque.model.state_places import TargetPlaces
from calque.serve.metrics import Meters, ProcessView
from calque.streams.beginning import beginning_of
from calque.streams.capture import CapturePart
from calque.streams.part import Part
from calque.streams.reload import ConfigurationReader, difference, require_reloadable
from calque.streams.shared import SourceStream
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

    def __post_init__(self, held_roles: Roles | None) -> None:
        self.roles = held_roles or Roles(self.wiring.state)
        self.wiring.runtime.session = self.spark
        self.presence = ProcessPresence(self.wiring.control)
        self.streams = {name: SourceStream(name, beginning_of(self.wiring, name)) for name in self.wiring.sources}
        self.meters = Meters(self.look)

    def spark(self) -> SparkSession:
        return own_session(self.wiring.state)

    def start(self) -> None:
        """Start every part on a thread of its own; whoever needs Spark first waits for it, while the others open what
        they need. Returns at once."""
        self.presence.begin(self.targets)
        if not self.capture:
            for stream in self.streams.values():
                stream.looked.set()
        self.begin_parts(self.wiring.sources if self.capture else (), self.targets)

    def begin_parts(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Captures first: they know what targets admit before these list it, so that no evidence is missed."""
        for name in sources:
            self.begin_part(CapturePart(self, self.streams[name]))
        for name in targets:
            self.begin_part(TargetPart(self, self.streams[self.wiring.config.source_of(name).name], name))

    def begin_part(self, part: Part) -> None:
        self.parts.append(part)
        part.start()

    def stop(self, cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
        """Finish the windows in hand if that takes no time, else the calls in hand; record, end. False where a call is
        not answered: what runs then is left to end with the process, like after a crash. Idempotent."""
        self.stopping.set()
        ended = end(self.parts, cut, leave)
        self.presence.end()
        return ended

    def look(self) -> ProcessView:
        """How the process is, without asking anybody."""
        parts = list(self.parts)
        capture = next((part.look() for part in parts if isinstance(part, CapturePart)), None)
        targets = tuple(part.look() for part in parts if isinstance(part, TargetPart))
        silent = () if self.stopping.is_set() else tuple(part.name for part in parts if not part.turns())
        source = self.wiring.config.only_source().name
        return ProcessView(source, capture, targets, self.streams[source].gaps, silent)

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

    def take_over(self, config: Config, targets: Sequence[str]) -> None:
        """End what has another configuration now, then begin it anew; the rest is not disturbed."""
        require_reloadable(self.wiring.config, config)
        changes = difference(self.wiring.config, config, self.targets, targets)
        if not self.roles.take(roles(config, (), changes.added), self.stopping):
            return
        self.wiring = Wiring(config, Runtime(self.spark, self.wiring.runtime.hit))
        captures = changes.captures if self.capture else ()
        ending = {*changes.ended_targets, *(self.wiring.sources[name].places.role for name in captures)}
        self.end_parts([part for part in self.parts if part.name in ending])
        for name in changes.removed:
            self.roles.give_back(TargetPlaces(name).role)
        self.targets = tuple(targets)
        self.begin_parts(captures, changes.begun_targets)

    def end_parts(self, parts: Sequence[Part], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> None:
        end(parts, cut, leave)
        self.parts = [part for part in self.parts if part not in parts]

    def fail(self, error: CalqueError) -> None:
        """Nothing can go on: the process ends with its error."""
        self.failure = self.failure or error
        self.stopping.set()

    def wait(self, until: EventId | None, seconds: float = float("inf")) -> Standing:
        """Until stopped, or every target shows `until`. WITHOUT: tables that are set aside are missing for good.
        Raises what ended capture, or all targets that do not show it."""
        deadline = time.monotonic() + seconds
        while not self.stopping.wait(0.05):
            if self.roles.lost is not None:
                raise self.roles.lost
            if self.presence.reload_requested.is_set():
                self.reload()
            targets = [part for part in self.parts if isinstance(part, TargetPart)]
            failures = [part.failure for part in targets if part.failure is not None]
            if failures and len(failures) == len(targets):
                raise failures[0]
            if until is not None:
                standings = [part.standing(until) for part in targets if part.failure is None]
                if all(item is not Standing.GOING for item in standings):
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
