"""What goes on beside the windows of each target, from when its replica is opened until it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring

Work = Callable[[threading.Event], None]
"""What a thread does until the event is set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Follower:
    """`work` makes what the thread of one target does, None where the configuration wants none; the thread is called
    `name` and its target. `ended` says in the log, behind the target's name, that it ended by a defect."""

    name: str
    ended: str
    work: Callable[[Wiring, TargetWiring], Work | None]
