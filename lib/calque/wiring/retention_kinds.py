"""The hooks by which plugins keep, or still need, what a journal and a ledger forget in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def keep_no_events(_source: SourceWiring, _side: SourceSide, _begin: EventId) -> None:
    pass


def keep_no_epochs(_target: TargetWiring, _before: int, _now_ns: int) -> None:
    pass


def sends_no_epochs(_wiring: Wiring, _target: str) -> int | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionKind:
    """Hooks of one plugin around what journals and ledgers forget.

    `before_events` is called before a source's journal forgets events. It gets the source's side, whose clock counts
    ages, and the event after which the journal began. `before_epochs` is called before a target's ledger forgets the
    epochs below a number; its last argument is the time in nanoseconds since 1970. `sent_epoch` returns the last epoch
    of a target that the plugin need not read again; None where the plugin reads none of its epochs.
    """

    before_events: Callable[[SourceWiring, SourceSide, EventId], None] = keep_no_events
    before_epochs: Callable[[TargetWiring, int, int], None] = keep_no_epochs
    sent_epoch: Callable[[Wiring, str], int | None] = sends_no_epochs
