"""A channel of notices, on a thread of its own: a broker that is slow or away holds back nothing else."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from calque.config import Config
from calque.control.status_records import tell
from calque.errors import Broken, CalqueError, Unavailable
from calque.model.names import EventId
from calque.plugins.marks.wiring import judge_at
from calque.plugins.notices.config import channels_of
from calque.plugins.notices.ports import NoticeBroker
from calque.plugins.notices.wiring import ChannelWiring, Feed, channels
from calque.serve.metrics import ChannelLook
from calque.streams.kinds import PublisherKind, PublisherSetup
from calque.streams.part import Part
from calque.streams.shared import Bell, RunForParts, SourceStream

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
"""Between two looks without a bell: marks, and what other processes did, come without one."""
AGAIN_SECONDS, LONGEST_SECONDS = 0.25, 5.0
"""After which a broker that does not answer is tried again: first, and in the end."""
REFUSED_SECONDS = 60.0
"""The same of one that refuses: somebody may have mended it."""


def part_name(channel: str) -> str:
    return f"notices {channel}"


def setups(config: Config) -> Mapping[str, PublisherSetup]:
    """By the names of the parts of channels."""
    return {part_name(name): PublisherSetup(plug.at, plug) for name, plug in channels_of(config).items()}


def begun(run: RunForParts, name: str) -> NoticePart:
    """The part of that name, which has not begun."""
    channel = next(one for one in channels(run.wiring).values() if part_name(one.plug.name) == name)
    return NoticePart(run, run.streams[channel.plug.source], channel)


class NoticePart(Part):
    """Its feed reads the journal, or a ledger, at its own pace: nothing waits for it, and it holds one batch."""

    def __init__(self, run: RunForParts, stream: SourceStream, channel: ChannelWiring) -> None:
        self.channel = channel
        name, places = channel.plug.name, channel.places
        role = channel.source.places.role if channel.target is None else channel.target.places.role
        super().__init__(run, stream, part_name(name), role)
        self.places = places
        self.bell = Bell() if channel.target is None else run.bell(channel.plug.at)
        self.broker: NoticeBroker | None = None
        self.feed: Feed | None = None
        self.lag: int | None = None

    def start(self) -> None:
        """The broker is asked by what is sent alone."""
        if self.channel.target is None:
            self.stream.bells.append(self.bell)
        self.thread.start()
        self.reported.start()

    def cut(self) -> None:
        super().cut()
        if self.broker is not None:
            self.broker.close()

    def ask(self) -> EventId:
        return 0

    def keep_up(self) -> None:
        """Nothing that goes wrong here ends the process."""
        delay = AGAIN_SECONDS
        try:
            while not self.stopped():
                try:
                    self.once_more()
                except Broken as error:
                    self.failed(error)
                    return
                except Unavailable as error:
                    self.note(error)
                    self.sleep(delay)
                    delay = min(2 * delay, LONGEST_SECONDS)
                except CalqueError as error:
                    self.failed(error)
                    self.sleep(REFUSED_SECONDS)
                else:
                    delay = AGAIN_SECONDS
        except Exception as error:
            LOG.exception("%s ended", self.name)
            self.failed(Broken(f"{self.name} ended with {type(error).__name__}", str(error), "See the log"))
        finally:
            self.close()

    def once_more(self) -> None:
        """Send what there is, or wait for more."""
        heard = self.bell.wait(-1, 0)
        feed = self.feed = self.feed or self.opened()
        went_on = feed.send()
        self.run.meters.notices.labels(self.channel.plug.name).inc(feed.sender.taken())
        self.state, self.last_error = "running", None
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

    def note(self, error: CalqueError) -> None:
        if self.last_error is None:
            LOG.warning("%s is tried again: %s", self.name, error)
        self.run.meters.retries.labels(self.name).inc()
        self.last_error = str(error)
        self.look_at_lag()

    def failed(self, error: CalqueError) -> None:
        """The others go on."""
        if not self.stopped():
            LOG.warning("%s failed: %s", self.name, error)
            self.state, self.last_error = "failed", str(error)
            self.look_at_lag()

    def look_at_lag(self) -> None:
        with suppress(CalqueError):
            self.lag = self.feed.lag() if self.feed is not None else None

    def has_sent(self, event_id: EventId) -> bool:
        """Whether all notices up to the event, which the place shows, are sent. A channel that gets no further is not
        waited for."""
        feed = self.feed
        if self.last_error is not None or not self.thread.is_alive():
            return True
        if feed is None:
            return False
        try:
            return feed.lag() == 0 or (self.channel.target is None and feed.position.event_id >= event_id)
        except CalqueError:
            return True

    def turns(self) -> bool:
        """A broker may take a while for one batch: its silence is the channel's own trouble."""
        return self.state == "failed" or (self.thread.is_alive() and time.monotonic() - self.told_at < 30.0)

    def look(self) -> ChannelLook:
        return ChannelLook(self.channel.plug.name, self.state, self.last_error, self.lag)

    def tell_state(self) -> None:
        tell(self.wiring.control, self.places.status_record, self.state, self.last_error, lag_events=self.lag)

    def take_back(self) -> None:
        self.wiring.control.remove(self.places.status_record)

    def close(self) -> None:
        if self.bell in self.stream.bells:
            self.stream.bells.remove(self.bell)
        if self.broker is not None:
            self.broker.close()
            self.broker = None


PUBLISHER = PublisherKind(setups=setups, make=begun)
