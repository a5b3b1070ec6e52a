"""Let go of files that were kept at the source: when every target has them, or too many are kept for too long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calque.engine.sweep import shown_by_all
from calque.errors import CalqueError
from calque.model.names import EventId
from calque.ports import Clock, Ledger, Pins

LOG = logging.getLogger(__name__)
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many bytes are kept, and for how many seconds, though a target still needs them."""

    size: int
    age: float


def release(pins: Pins, ledgers: Iterable[Ledger], limits: Limits, now_ns: int, gap: int = 0) -> Sequence[EventId]:
    """Let go of what no target needs any more, then, oldest first, of what is beyond the limits. Which events were.
    `gap` is the newest one in the log."""
    shown = min((shown_by_all(one.last_epoch(), list(one.tables().values()), gap) for one in ledgers), default=0)
    events = pins.events()
    gone = [event_id for event_id in events if event_id <= shown]
    held = {event_id: pins.held(event_id) for event_id in events if event_id > shown}
    size = sum(kept for kept, _ in held.values())
    for event_id, (kept, since) in held.items():
        if size > limits.size or (since and now_ns - since > limits.age * 1e9):
            LOG.warning(
                "the files pinned for event %d are let go: the limit is reached before all targets have them", event_id
            )
            gone.append(event_id)
            size -= kept
    pins.release(gone)
    return gone


def keep(
    pins: Pins, ledgers: Sequence[Ledger], limits: Limits, clock: Clock, gap: int, stopping: threading.Event
) -> None:
    """Let go at intervals, until `stopping`. `gap` is the newest one in the log."""
    while not stopping.wait(SECONDS):
        try:
            release(pins, ledgers, limits, clock.now_ns(), gap)
        except CalqueError as error:
            LOG.warning("pins: %s", error)
