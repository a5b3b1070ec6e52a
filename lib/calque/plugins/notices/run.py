"""The part of the process that runs a channel of notices, on a thread of its own. A broker that is slow or away holds
back nothing else."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from tenacity import wait_exponential

from calque.config import Config
from calque.control.status_records import failing_of, tell
from calque.errors import Broken, CalqueError
from calque.model.names import EventId
from calque.plugins.marks.wiring import judge_at
from calque.plugins.notices.config import channels_of
from calque.plugins.notices.ports import NoticeBroker
from calque.plugins.notices.wiring import ChannelWiring, Feed, channels
from calque.serve.samples import ChannelSample
from calque.streams.kinds import PublisherKind, PublisherSetup
from calque.streams.shared import ProcessContext, SourceStream, WakeUpSignal
from calque.streams.supervisor import AttemptSchedule, StatusRecord, SupervisedWork, Supervisor

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
"""Seconds between two looks for news without a signal, because marks, and the work of other processes, send none."""
ATTEMPTS = AttemptSchedule(
    unanswered=wait_exponential(multiplier=0.25, max=5), first=60.0, longest=60.0, never=(Broken,)
)
"""The pauses between attempts. A broker that refuses is tried again, too, because an operator may have mended it."""


def part_name(channel: str) -> str:
    return f"notices {channel}"


def setups(config: Config) -> Mapping[str, PublisherSetup]:
    """Return the setup of each channel's part, by the name of the part."""
    return {part_name(name): PublisherSetup(plug.at, plug) for name, plug in channels_of(config).items()}


def begun(run: ProcessContext, name: str) -> NoticePublisher:
    """Make the part of that name. Its thread has not begun."""
    channel = next(one for one in channels(run.wiring).values() if part_name(one.plug.name) == name)
    return NoticePublisher(run, run.streams[channel.plug.source], channel)


class NoticePublisher:
    """The part that sends one channel's notices. Its feed reads the journal or a ledger at its own pace, so that no
    other part waits for it, and holds a bounded number of messages. No error here ends the process. No call goes to the
    broker but those that send."""

    def __init__(self, run: ProcessContext, stream: SourceStream, channel: ChannelWiring) -> None:
        self.run, self.stream, self.channel = run, stream, channel
        self.wiring, self.name = run.wiring, part_name(channel.plug.name)
        record = channel.places.status_record
        work = SupervisedWork(
            run_attempt=self.run_attempt,
            close=self.close,
            failed=self.failed,
            unanswered=self.look_at_lag,
            cancel_calls=self.cancel_calls,
            status=StatusRecord(self.write_status, partial(self.wiring.control.remove, record)),
        )
        self.supervisor = Supervisor(run, self.name, work, ATTEMPTS, {"source": stream.name})
        self.signal = WakeUpSignal() if channel.target is None else run.epoch_signal(channel.plug.at)
        self.broker: NoticeBroker | None = None
        self.feed: Feed | None = None
        self.lag: int | None = None

    def cancel_calls(self) -> None:
        if self.broker is not None:
            self.broker.close()

    def run_attempt(self) -> None:
        if self.channel.target is None and self.signal not in self.stream.signals:
            self.stream.signals.append(self.signal)
        while not self.supervisor.stopped():
            self.supervisor.retry(self.send)

    def send(self) -> None:
        """Send the notices that are there; without any, wait for the signal or for `LOOK_SECONDS`."""
        seen = self.signal.wait(-1, 0)
        feed = self.feed = self.feed or self.opened()
        went_on = feed.send()
        self.run.meters.notices.labels(self.channel.plug.name).inc(feed.publisher.taken())
        self.supervisor.note_progress("running")
        self.lag = feed.lag()
        if not went_on:
            self.signal.wait(seen, LOOK_SECONDS)

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
        """Tell whether all notices up to the event, which the channel's place shows, are sent. True also for a channel
        that failed or ended, because the process does not wait for a channel that makes no progress."""
        feed = self.feed
        if self.supervisor.last_error is not None or not self.supervisor.thread.is_alive():
            return True
        if feed is None:
            return False
        try:
            return feed.lag() == 0 or (self.channel.target is None and feed.position.event_id >= event_id)
        except CalqueError:
            return True

    def snapshot(self) -> ChannelSample:
        supervisor = self.supervisor
        return ChannelSample(
            name=self.channel.plug.name,
            state=supervisor.shown_state(),
            problem=supervisor.last_error,
            lag_events=self.lag,
            failing=supervisor.failing(),
        )

    def write_status(self) -> None:
        sample = self.snapshot()
        details = {"lag_events": sample.lag_events, "failing": failing_of(sample.failing)}
        tell(self.wiring.control, self.channel.places.status_record, sample.state, sample.problem, **details)

    def close(self) -> None:
        if self.signal in self.stream.signals:
            self.stream.signals.remove(self.signal)
        if self.broker is not None:
            self.broker.close()
            self.broker = None


PUBLISHER = PublisherKind(setups=setups, make=begun)
