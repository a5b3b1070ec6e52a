"""Is it the thing that fails, or the world? What goes on failing while both metastores answer is set aside.

Nobody tells a table that a server can't take from a server that is ill, but that the server answers other calls.
"""

from __future__ import annotations

from collections.abc import Hashable

from calque.engine.world import SourceSide, TargetSide
from calque.errors import Failing, Refused, Unavailable, sentence
from calque.model.names import OURS

TRIES = 5
"""How often a call may fail in a row, by an answer that fits no other call."""
RELEASE = "It is not tried again: mend that, and release it."
PATIENCE_SECONDS = 30.0
"""How long something else that a thing needs, as its files, may be out of reach."""


class Blame:
    """Failures in a row, by the thing that was at hand, with when they began. One thread asks at a time."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.failures: dict[Hashable, tuple[int, int]] = {}

    def gives_up(self, thing: Hashable, error: Unavailable) -> bool:
        """Whether the thing is not waited for any more, now that it failed again."""
        if not self.others_work():
            self.failures.pop(thing, None)
            return False
        now = self.source.clock.elapsed_ns()
        tries, since = self.failures.get(thing, (0, now))
        self.failures[thing] = tries + 1, since
        return tries + 1 >= TRIES if isinstance(error, Failing) else now - since > PATIENCE_SECONDS * 1e9

    def take(self, thing: Hashable, error: Refused | Unavailable) -> None:
        """Return where the thing is to be set aside. Raises the error while it may be the world's."""
        if isinstance(error, Unavailable) and not self.gives_up(thing, error):
            raise error

    def succeeded(self, thing: Hashable) -> None:
        self.failures.pop(thing, None)

    def is_to_blame(self, error: Exception) -> bool:
        """Whether it may be the thing: a service failed in this call, and answers others."""
        return not isinstance(error, Unavailable) or (isinstance(error, Failing) and self.others_work())

    def others_work(self) -> bool:
        """Whether both metastores answer calls that need their databases, and calque is not about to end."""
        try:
            self.source.log.current()
            self.side.catalog.database(OURS)
        except Unavailable:
            return False
        return True


def facts(error: Unavailable) -> str:
    """What is wrong, and why; the rest is for who tries again."""
    return " ".join(sentence(part) for part in (error.what, error.why) if part)


def reason(error: Refused | Unavailable) -> str:
    """Why something is set aside, and what to do."""
    return f"{facts(error)} {RELEASE}" if isinstance(error, Unavailable) else str(error)
