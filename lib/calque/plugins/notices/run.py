"""A channel of notices, on a thread of its own: a broker that is slow or away holds back nothing else."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from tenacity import wait_exponential

from calque.config import Config
from calque.control.status_records import tell
from calque.errors import Broken, CalqueError
from calque.model.names import EventId
from calque.plugins.marks.wiring import judge_at
from calque.plugins.notices.config import channels_of
from calque.plugins.notices.ports import NoticeBroker
from calque.plugins.notices.wiring import ChannelWiring, Feed, channels
from calque.serve.metrics import ChannelLook
from calque.streams.kinds import PublisherKind, PublisherSetup
from calque.streams.shared import Bell, RunForParts, SourceStream
from calque.streams.supervisor import Attempts, StatusRecord, Supervisor, Work

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
"""Between two looks without a bell: marks, and what other processes did, come without one."""
ATTEMPTS = Attempts(unanswered=wait_exponential(multiplier=0.25, max=5), first=60.0, longest=60.0, never=(Broken,))
"""A broker that refuses is tried again, too: somebody may have mended it."""


def part_name(channel: str) -> str:
    return f"notices {channel}"


def setups(config: Config) -> Mapping[str, PublisherSetup]:
    """By the names of the parts of channels."""
    return {part_name(name): PublisherSetup(plug.at, plug) for name, plug in channels_of(config).items()}


def begun(run: RunForParts, name: str) -> NoticePart:
    """The part of that name, which has not begun."""
    channel = next(one for one in channels(run.wiring).values() if part_name(one.plug.name) == name)
    return NoticePart(run, run.streams[channel.plug.source], channel)


class NoticePart:
    """Its feed reads the journal, or a ledger, at its own pace: nothing waits for it, and it holds one batch. Nothing
    that goes wrong here ends the process; the broker is asked by what is sent alone."""

    def __init__(self, run: RunForParts, stream: SourceStream, channel: ChannelWiring) -> None:
        self.run, self.stream, self.channel = run, stream, channel
        self.wiring, self.name = run.wiring, part_name(channel.plug.name)
        record = channel.places.status_record
        work = Work(
            once=self.once,
            close=self.close,
            failed=self.failed,
            unanswered=self.look_at_lag,
            cut=self.cut,
            status=StatusRecord(self.tell_state, partial(self.wiring.control.remove, record)),
        )
        self.supervisor = Supervisor(run, self.name, work, ATTEMPTS, {"source": stream.name})
        self.bell = Bell() if channel.target is None else run.bell(channel.plug.at)
        self.broker: NoticeBroker | None = None
        self.feed: Feed | None = None
        self.lag: int | None = None

    def cut(self) -> None:
        if self.broker is not None:
            self.broker.close()

    def once(self) -> None:
        if self.channel.target is None and self.bell not in self.stream.bells:
            self.stream.bells.append(self.bell)
        while not self.supervisor.stopped():
            self.supervisor.retry(self.send)

    def send(self) -> None:
        """Send what there is, or wait for more."""
        heard = self.bell.wait(-1, 0)
        feed = self.feed = self.feed or self.opened()
        went_on = feed.send()
        self.run.meters.notices.labels(self.channel.plug.name).inc(feed.sender.taken())
        self.supervisor.goes_on("running")
        self.lag = feed.lag()
        if not went_on:
            self.bell.wait(heard, LOOK_SECONDS)

    def opened(self) -> Feed:
        target = self.channel.target
        marks = judge_at(self.wiring, target) if target is not None else None
        self.broker = self.broker or self.channel.broker()
        feed = self.channel.feed(self.broker, self.stream.begin.first(), marks)
        feed.open()
        return feed

    def failed(self, error: CalqueError) -> None:
        LOG.warning("%s failed: %s", self.name, error)
        self.look_at_lag(error)

    def look_at_lag(self, _error: CalqueError) -> None:
        with suppress(CalqueError):
            self.lag = self.feed.lag() if self.feed is not None else None

    def has_sent(self, event_id: EventId) -> bool:
        """Whether all notices up to the event, which the place shows, are sent. A channel that gets no further is not
        waited for."""
        feed = self.feed
        if self.supervisor.last_error is not None or not self.supervisor.thread.is_alive():
            return True
        if feed is None:
            return False
        try:
            return feed.lag() == 0 or (self.channel.target is None and feed.position.event_id >= event_id)
        except CalqueError:
            return True

    def look(self) -> ChannelLook:
        return ChannelLook(self.channel.plug.name, self.supervisor.state, self.supervisor.last_error, self.lag)

    def tell_state(self) -> None:
        state, error = self.supervisor.state, self.supervisor.last_error
        tell(self.wiring.control, self.channel.places.status_record, state, error, lag_events=self.lag)

    def close(self) -> None:
        if self.bell in self.stream.bells:
            self.stream.bells.remove(self.bell)
        if self.broker is not None:
            self.broker.close()
            self.broker = None


PUBLISHER = PublisherKind(setups=setups, make=begun)
