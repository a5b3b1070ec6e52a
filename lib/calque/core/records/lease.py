"""Who may take the lease on a target, and when: decided by what is seen of its newest generation.

Clocks of different hosts are never compared. The holder begins calls for `usable` seconds after it *sent* what made or
renewed its generation; all others wait until they have seen that unchanged for the whole of its seconds, by a clock of
their own. What lies between the two is for calls in flight, and for clocks that differ in speed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from calque.core.formats.layout import place
from calque.model.lease import Generation, Writer


@dataclass(frozen=True, slots=True)
class TakeGeneration:
    """Make the generation of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Watch:
    """The holder may be dead: look again. `idle` seconds were without a sign of it."""

    holder: Generation
    idle: float


@dataclass(frozen=True, slots=True)
class Living:
    """The holder was seen to renew it."""

    holder: Generation


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """It was this writer's, and is another's now; None where somebody removed it."""

    by: Generation | None


Step = TakeGeneration | Watch | Living | LeaseLost


@dataclass(frozen=True, slots=True)
class FirstSight:
    """What was seen first, and when the look at it had ended."""

    generation: Generation
    seen_at: float


def next_step(me: Writer, held_number: int, newest: Generation | None, first: FirstSight | None, began: float) -> Step:
    """What a writer does that holds nothing just now. `held_number` is the last generation that it had, 0 for none;
    `newest` was found by a look that began at `began`."""
    if held_number and (newest is None or newest.writer.id != me.id):
        return LeaseLost(newest)
    if newest is None:
        return TakeGeneration(1)
    dead = bool(me.proof) and newest.writer.proof == me.proof
    if newest.released or dead or newest.writer.id == me.id:
        return TakeGeneration(newest.number + 1)
    if first is None:
        return Watch(newest, 0.0)
    if newest != first.generation:
        return Living(newest)
    idle = began - first.seen_at
    return TakeGeneration(newest.number + 1) if idle >= newest.seconds else Watch(newest, idle)


def lease_subject(source: str, target: str, warehouse: str) -> str:
    """What a lease is on: two deployments with one configuration mean the same, two replicas in one metastore differ in
    it. `warehouse` is the spelling under which the directory was marked first: whatever a configuration calls it, the
    lease is one."""
    return f"{source}/{target} in {place(warehouse)}"


def subject_digest(subject: str) -> str:
    """For names in the hidden database."""
    return hashlib.blake2b(subject.encode(), digest_size=8).hexdigest()


def usable(seconds: float) -> float:
    """How long its holder relies on it."""
    return seconds * 2 / 3


def renewed_after(seconds: float) -> float:
    return seconds / 3
