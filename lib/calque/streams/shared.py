"""What the parts of one process share: the process itself, and for each source what its capture tells its targets."""

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


class Bell:
    """Wakes whoever waits for news, and forgets no ring: `wait` says how often it has rung by then."""

    def __init__(self) -> None:
        self.changed, self.rings = threading.Condition(), 0

    def ring(self) -> None:
        with self.changed:
            self.rings += 1
            self.changed.notify_all()

    def wait(self, heard: int, seconds: float) -> int:
        """Until it has rung more often than `heard`, or for that long."""
        with self.changed:
            self.changed.wait_for(lambda: self.rings > heard, seconds)
            return self.rings


@dataclass(slots=True)
class SourceStream:
    """What the capture of a source, and the targets that follow it, share in one process."""

    name: str
    begin: JournalBeginning
    heads: HeadTimes = field(default_factory=HeadTimes)
    looked: threading.Event = field(default_factory=threading.Event)
    """Capture has looked whether the log goes on where the journal ends, or could not, or is in another process."""
    gaps: int = 0
    """Found so far, as far as a part knows."""
    bells: list[Bell] = field(default_factory=list)
    """Of those who follow the journal in this process."""

    def ring(self) -> None:
        """The journal has more, or evidence or a scan came. That is all that is handed over, so that nobody is waited
        for: whoever was busy meanwhile reads of the journal what there is."""
        for bell in tuple(self.bells):
            bell.ring()


class RunForParts(Protocol):
    """What a part needs of the process that it is of."""

    @property
    def wiring(self) -> Wiring: ...

    @property
    def streams(self) -> Mapping[str, SourceStream]:
        """By the names of the sources."""

    @property
    def roles(self) -> Roles: ...

    @property
    def meters(self) -> Meters: ...

    @property
    def followers(self) -> tuple[Follower, ...]:
        """What goes on beside each target's windows."""

    @property
    def retention(self) -> tuple[RetentionKind, ...]:
        """What is kept of what journals forget."""

    @property
    def stopping(self) -> threading.Event:
        """Set when every part is to end."""

    @property
    def starting(self) -> threading.Lock:
        """Held by the part whose query begins."""

    def bell(self, target: str) -> Bell:
        """Rung by an epoch of the target of that name: the same at each call."""

    def spark(self) -> SparkSession: ...

    def fail(self, error: CalqueError) -> None:
        """Nothing can go on: the process ends with the error."""
