"""The objects that parts of one process share: the process, and for each source the stream that joins its capture and
its targets."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from calque.control.process_locks import Roles
from calque.errors import CalqueError
from calque.serve.lag_clock import HeadTimes
from calque.serve.metrics import Meters
from calque.streams.beginning import JournalBeginning
from calque.streams.followers import Follower
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WakeUpSignal:
    """A counter that wakes threads which wait for news. No signal is lost: a thread that was busy compares the count of
    sent signals with the one that it knows."""

    def __init__(self) -> None:
        self.changed, self.sent = threading.Condition(), 0

    def send(self) -> None:
        with self.changed:
            self.sent += 1
            self.changed.notify_all()

    def wait(self, seen: int, seconds: float) -> int:
        """Wait until more than `seen` signals were sent in all, at most `seconds`. Return how many were sent."""
        with self.changed:
            self.changed.wait_for(lambda: self.sent > seen, seconds)
            return self.sent


@dataclass(slots=True)
class SourceStream:
    """The state of one source that its capture and the targets that follow it share in one process."""

    name: str
    begin: JournalBeginning
    head_times: HeadTimes = field(default_factory=HeadTimes)
    continuity_checked: threading.Event = field(default_factory=threading.Event)
    """Set when capture has looked whether the log goes on where the journal ends, or could not look, or is in another
    process."""
    gaps: int = 0
    """The number of gaps in the log, as far as a part of this process has found them."""
    signals: list[WakeUpSignal] = field(default_factory=list)
    """The signals of parts that follow the journal in this process."""

    def wake(self) -> None:
        """Wake the parts that follow the source, because the journal has more events, or evidence or a scan came.

        Nothing else is handed over, so that no part waits for another: one that was busy reads from the journal what
        there is.
        """
        for signal in tuple(self.signals):
            signal.send()


class ProcessContext(Protocol):
    """The process as one of its parts sees it."""

    @property
    def wiring(self) -> Wiring: ...

    @property
    def streams(self) -> Mapping[str, SourceStream]:
        """The streams of all sources, by the names of the sources."""

    @property
    def roles(self) -> Roles: ...

    @property
    def meters(self) -> Meters: ...

    @property
    def followers(self) -> tuple[Follower, ...]:
        """Work of plugins beside each target's windows."""

    @property
    def retention(self) -> tuple[RetentionKind, ...]:
        """Work of plugins before journals and ledgers forget rows."""

    @property
    def stopping(self) -> threading.Event:
        """The event that is set when every part is to end."""

    @property
    def starting(self) -> threading.Lock:
        """A lock that a part holds while its query begins."""

    def epoch_signal(self, target: str) -> WakeUpSignal:
        """Return the signal that each epoch of `target` sends, the same one at each call."""

    def spark(self) -> SparkSession: ...

    def fail(self, error: CalqueError) -> None:
        """Have the process end with `error`, because nothing can go on."""
