"""Work that plugins do beside the windows of each target, from the moment that its replica is opened until the part
ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.streams.background import BackgroundWork
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


@dataclass(frozen=True, kw_only=True, slots=True)
class Follower:
    """Work of a plugin beside a target's windows.

    `work` returns what the thread of one target does, or None where the configuration wants no such thread. The thread
    is called `name` and the target's name. `ended` completes the log line "TARGET …" that says that a defect has ended
    the thread.
    """

    name: str
    ended: str
    work: Callable[[Wiring, TargetWiring], BackgroundWork | None]
