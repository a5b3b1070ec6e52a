"""The states of a part of a running process (the capture of a source, the replication to a target, a channel), as users
are told them."""

from __future__ import annotations

from dataclasses import dataclass

FAILED = "failed"
FAILING = "failing"
"""The state of a part that an error keeps from going on, and that tries again."""
STATES = ("starting", "bootstrapping", "running", "paused", FAILING, "stopped", FAILED)
HELD_BACK = ("starting", "bootstrapping", "running", FAILING)
"""States of a running target that read "paused" where an operator has paused it."""
FAILING_ATTEMPTS = 2
"""Attempts that have to fail, one after the other, before a part counts as failing: a call that is not answered once is
no news."""


@dataclass(frozen=True, slots=True)
class Failing:
    """The time since when an error keeps a part from going on, in seconds since 1970, how many attempts have failed
    since, and when the next one begins; `next` is None while one is under way, and where none follows."""

    since: float
    attempts: int
    next: float | None
