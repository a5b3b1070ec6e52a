"""The rules of the lease on a target: a writer decides by the newest generation that it sees whether it may take it.

Clocks of different hosts are never compared. The holder begins calls for `usable` seconds after it *sent* the request
that made or renewed its generation. All others wait until they have seen the generation unchanged for the whole of its
seconds, by a clock of their own. The time between the two is for calls in flight, and for clocks that differ in speed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from calque.core.formats.layout import place
from calque.model.lease import Generation, Writer


@dataclass(frozen=True, slots=True)
class TakeGeneration:
    """The step to make the generation of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The step to look again, because the holder may be dead: it has given no sign of life for `idle` seconds."""

    holder: Generation
    idle: float


@dataclass(frozen=True, slots=True)
class LiveHolder:
    """The finding that another holder lives: it was seen to renew its generation."""

    holder: Generation


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The finding that the lease was this writer's and is another's now; `by` is None where the lease was removed."""

    by: Generation | None


Step = TakeGeneration | ObservedLease | LiveHolder | LeaseLost


@dataclass(frozen=True, slots=True)
class FirstObservation:
    """The generation that a waiting writer saw first, and the time at which that look had ended, in seconds of its own
    clock."""

    generation: Generation
    seen_at: float


def next_step(
    me: Writer, held_number: int, newest: Generation | None, first: FirstObservation | None, began: float
) -> Step:
    """Return the next step of a writer that holds no generation. `held_number` is the last one that it held, 0 for
    none; `newest` was found by a look that began at `began`, on the clock of `first.seen_at`."""
    if held_number and (newest is None or newest.writer.id != me.id):
        return LeaseLost(newest)
    if newest is None:
        return TakeGeneration(1)
    dead = bool(me.proof) and newest.writer.proof == me.proof
    if newest.released or dead or newest.writer.id == me.id:
        return TakeGeneration(newest.number + 1)
    if first is None:
        return ObservedLease(newest, 0.0)
    if newest != first.generation:
        return LiveHolder(newest)
    idle = began - first.seen_at
    return TakeGeneration(newest.number + 1) if idle >= newest.seconds else ObservedLease(newest, idle)


def lease_subject(source: str, target: str, warehouse: str) -> str:
    """Return the text that names the lease: two deployments with one configuration share it, two replicas in one
    metastore have different ones. `warehouse` is the spelling under which the directory was marked first, so that other
    spellings in a configuration name the same lease."""
    return f"{source}/{target} in {place(warehouse)}"


def subject_digest(subject: str) -> str:
    """Return 16 hexadecimal digits of a lease's subject, for names in the hidden database."""
    return hashlib.blake2b(subject.encode(), digest_size=8).hexdigest()


def usable(seconds: float) -> float:
    """Return for how many seconds the holder relies on a generation of `seconds`."""
    return seconds * 2 / 3


def renewed_after(seconds: float) -> float:
    return seconds / 3
