"""Is it the thing that fails, or the world? What goes on failing while all else works is set aside.

Nobody tells a table that a server can't take from a server that is ill, but that the server answers other calls: both
metastores are asked something, and a small file is written at the target and removed again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from calque.core.defects import ATTEMPTS, DEFECT, ObjectDefect, traceback_of, work_on
from calque.core.formats.layout import COPYING, join
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import CallFailed, Refused, Unavailable, sentence
from calque.model.names import OURS, EventId
from calque.model.records import DefectiveWork, all_of, defect_key

LOG = logging.getLogger(__name__)
TRIES = 5
"""How often a call may fail in a row, by an answer that fits no other call."""
RELEASE = "It is not tried again: mend that, and release it."
REPORT = (
    f"It was tried {ATTEMPTS} times; the log has each traceback. Report it, and release the object when that is mended."
)
PATIENCE_SECONDS = 30.0
"""How long something else that a thing needs, as its files, may be out of reach."""


class FaultIsolation:
    """One target's failures in a row, by the work that was at hand (`table sales.orders`, `database sales`), with when
    they began; and whether the world is at fault instead. One thread reports failures, any asks about the world.

    Defects of calque are counted in the ledger: a target that is started again after each of them gives up the object
    after as many attempts as one that stayed up."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.failures: dict[str, tuple[int, int]] = {}
        self.defects: dict[str, int] | None = None
        """How often in a row work met a defect, as the ledger has it; None until that is asked."""
        self.probing = Lock()
        self.storage: Refused | Unavailable | None = None
        """What the target's storage answered to the last probe."""
        self.storage_until_ns = 0
        """Until then the answer holds: for as long as the probe took."""

    def gives_up(self, thing: str, error: Unavailable | ObjectDefect) -> bool:
        """Whether the thing is not waited for any more, now that it failed again."""
        if isinstance(error, ObjectDefect):
            return self.gives_up_defective(thing, error)
        if not self.world_answers():
            self.failures.pop(thing, None)
            return False
        now = self.source.clock.elapsed_ns()
        tries, since = self.failures.get(thing, (0, now))
        self.failures[thing] = tries + 1, since
        return tries + 1 >= TRIES if isinstance(error, CallFailed) else now - since > PATIENCE_SECONDS * 1e9

    def gives_up_defective(self, thing: str, error: ObjectDefect) -> bool:
        """Whether this was the last attempt at the work. The traceback is logged here, and nowhere else."""
        defects = self.known_defects()
        attempts = defects.get(thing, 0) + 1
        text = "%s: %s (attempt %d of %d)"
        LOG.error(text, self.side.policy.target, error, attempts, ATTEMPTS, exc_info=traceback_of(error))
        if attempts >= ATTEMPTS:
            self.forget_defects(thing)
            return True
        defects[thing] = attempts
        self.side.ledger.put_records([DefectiveWork(thing, attempts)])
        return False

    def known_defects(self) -> dict[str, int]:
        if self.defects is None:
            records = all_of(self.side.ledger.records(), DefectiveWork)
            self.defects = {record.work: record.attempts for record in records}
        return self.defects

    def forget_defects(self, thing: str) -> None:
        if self.known_defects().pop(thing, None) is not None:
            self.side.ledger.remove_records([defect_key(thing)])

    def require_own_fault(self, thing: str, error: Refused | Unavailable | ObjectDefect) -> None:
        """Return where the thing is to be set aside. Raises what is tried again while it may be the world's, or has
        met a defect less than `ATTEMPTS` times."""
        match error:
            case Unavailable() if not self.gives_up(thing, error):
                raise error
            case ObjectDefect() if not self.gives_up(thing, error):
                raise Unavailable(str(error), "The log has its traceback", "It is tried again") from error

    def attempt(self, thing: str, act: Callable[[], None], *expected: type[Exception]) -> ObjectDefect | None:
        """Work that no later window comes back to: done up to `ATTEMPTS` times in a row. Returns the defect that the
        last attempt met; `expected` is what `act` may raise, beside calque's own errors."""
        while True:
            try:
                with work_on(thing, *expected):
                    act()
            except ObjectDefect as error:
                if self.gives_up(thing, error):
                    return error
            else:
                self.succeeded(thing)
                return None

    def succeeded(self, thing: str) -> None:
        self.failures.pop(thing, None)
        self.forget_defects(thing)

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


def reason(error: Refused | Unavailable | ObjectDefect) -> str:
    """Why something is set aside, and what to do."""
    match error:
        case Unavailable():
            return f"{facts(error)} {RELEASE}"
        case ObjectDefect():
            return defect_reason(error)
    return str(error)


def is_same_defect(error: Exception, reason: str, set_aside_at: EventId | None, event_id: EventId) -> bool:
    """Whether what was set aside at that event for that reason meets a defect at the same event again: it had all of
    its attempts. Without this each of several that are tried together would have those of the others, too."""
    return isinstance(error, ObjectDefect) and DEFECT in reason and set_aside_at == event_id


def defect_reason(error: ObjectDefect) -> str:
    """Why what met a defect is set aside, and what to do."""
    return f"{sentence(str(error))} {REPORT}"
