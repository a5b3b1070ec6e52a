"""Is it the thing that fails, or the world? What goes on failing while all else works is set aside.

Nobody tells a table that a server can't take from a server that is ill, but that the server answers other calls: both
metastores are asked something, and a small file is written at the target and removed again.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

from calque.core.layout import COPYING, join
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import CallFailed, Refused, Unavailable, sentence
from calque.model.names import OURS

TRIES = 5
"""How often a call may fail in a row, by an answer that fits no other call."""
RELEASE = "It is not tried again: mend that, and release it."
PATIENCE_SECONDS = 30.0
"""How long something else that a thing needs, as its files, may be out of reach."""


class FaultIsolation:
    """One target's failures in a row, by the thing that was at hand (a table, a database, a function), with when they
    began; and whether the world is at fault instead. One thread reports failures, any asks about the world."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.failures: dict[Hashable, tuple[int, int]] = {}
        self.probing = Lock()
        self.storage: Refused | Unavailable | None = None
        """What the target's storage answered to the last probe."""
        self.storage_until_ns = 0
        """Until then the answer holds: for as long as the probe took."""

    def gives_up(self, thing: Hashable, error: Unavailable) -> bool:
        """Whether the thing is not waited for any more, now that it failed again."""
        if not self.world_answers():
            self.failures.pop(thing, None)
            return False
        now = self.source.clock.elapsed_ns()
        tries, since = self.failures.get(thing, (0, now))
        self.failures[thing] = tries + 1, since
        return tries + 1 >= TRIES if isinstance(error, CallFailed) else now - since > PATIENCE_SECONDS * 1e9

    def require_own_fault(self, thing: Hashable, error: Refused | Unavailable) -> None:
        """Return where the thing is to be set aside. Raises the error while it may be the world's."""
        if isinstance(error, Unavailable) and not self.gives_up(thing, error):
            raise error

    def succeeded(self, thing: Hashable) -> None:
        self.failures.pop(thing, None)

    def may_be_own_fault(self, error: Exception) -> bool:
        """Whether it may be the thing's: a service failed in this call, and answers others."""
        match error:
            case CallFailed():
                return self.world_answers()
            case Unavailable():
                return False
            case Refused():
                return self.storage_failure() is None
        return True

    def world_answers(self) -> bool:
        """Whether both metastores answer calls that need their databases, the target's storage takes files, and calque
        is not about to end."""
        try:
            self.source.log.current()
            self.side.catalog.database(OURS)
        except Unavailable:
            return False
        return self.storage_failure() is None

    def require_storage(self) -> None:
        """Raises what any file at the target meets, if it does: `Refused`, `Unavailable`."""
        error = self.storage_failure()
        if error is not None:
            raise error

    def storage_failure(self) -> Refused | Unavailable | None:
        """What any file at the target meets."""
        clock = self.source.clock
        with self.probing:
            began = clock.elapsed_ns()
            if began >= self.storage_until_ns:
                self.storage = self.probe_storage()
                self.storage_until_ns = 2 * clock.elapsed_ns() - began
                if self.storage is not None:
                    self.side.troubles.note("copy", self.storage)
            return self.storage

    def probe_storage(self) -> Refused | Unavailable | None:
        if not self.side.admission.copies_some:
            return None
        file = join(self.side.policy.warehouse, f"{COPYING}probe")
        try:
            self.side.storage.write(file, b"calque")
            self.side.storage.remove([file])
        except (Refused, Unavailable) as error:
            any_file = f"anything below {self.side.policy.warehouse}"
            return type(error)(error.what.replace(file, any_file), error.why, error.todo)
        return None


def facts(error: Unavailable) -> str:
    """What is wrong, and why; the rest is for who tries again."""
    return " ".join(sentence(part) for part in (error.what, error.why) if part)


def reason(error: Refused | Unavailable) -> str:
    """Why something is set aside, and what to do."""
    return f"{facts(error)} {RELEASE}" if isinstance(error, Unavailable) else str(error)
