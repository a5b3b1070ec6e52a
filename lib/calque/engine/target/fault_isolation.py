"""The decision whether one object fails or the world does. An object that goes on failing while all else works is set
aside.

The only sign that tells an object which a server can't take from a server that is down is that the server answers other
calls. So both metastores are asked a question, and a small file is written at the target and removed again.
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
"""The number of calls in a row that may fail by an answer that fits no other call."""
RELEASE = "It is not tried again: mend that, and release it."
REPORT = (
    f"It was tried {ATTEMPTS} times; the log has each traceback. Report it, and release the object when that is mended."
)
PATIENCE_SECONDS = 30.0
"""Seconds for which a thing may lack what it needs besides the servers, such as its files."""


class FaultIsolation:
    """The failures in a row of one target, by the work that failed (`table sales.orders`, `database sales`), with the
    time when they began; and the decision whether the world is at fault instead. One thread reports failures, any
    thread asks about the world.

    Defects of calque are counted in the ledger. So a target that is started again after each of them gives the object
    up after as many attempts as a target that stayed up.
    """

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.failures: dict[str, tuple[int, int]] = {}
        self.defects: dict[str, int] | None = None
        """The number of attempts in a row at each work that met a defect, as the ledger has them; None until the ledger
        is read."""
        self.probing = Lock()
        self.storage: Refused | Unavailable | None = None
        """The answer of the target's storage to the last probe; None: it took a file."""
        self.storage_until_ns = 0
        """The time until which that answer holds: for as long as the probe took."""

    def gives_up(self, thing: str, error: Unavailable | ObjectDefect) -> bool:
        """Count the failure `error` of the work `thing`, and return whether the work is to be given up. Failures while
        the world does not answer do not count."""
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
        """Count the defect that the work `thing` met, and return whether this was its last attempt. The traceback is
        logged here, and nowhere else."""
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
        """Return if the object is to be set aside for `error`. Raises `Unavailable` if the work is to be tried again:
        the fault may be the world's, or the work has met a defect less than `ATTEMPTS` times. A `Refused` always
        returns."""
        match error:
            case Unavailable() if not self.gives_up(thing, error):
                raise error
            case ObjectDefect() if not self.gives_up(thing, error):
                raise Unavailable(str(error), "The log has its traceback", "It is tried again") from error

    def attempt(self, thing: str, act: Callable[[], None], *expected: type[Exception]) -> ObjectDefect | None:
        """Call `act`, up to `ATTEMPTS` times in a row while it meets defects, and return the defect of the last
        attempt; None when it succeeds. It is for work that no later window repeats. Raises the `expected` exceptions of
        `act`, and calque's own errors."""
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
        """Tell whether the error may be the object's own: a service failed in this call and answers other calls, the
        object was refused while the storage takes files, or the error is a defect."""
        match error:
            case CallFailed():
                return self.world_answers()
            case Unavailable():
                return False
            case Refused():
                return self.storage_failure() is None
        return True

    def world_answers(self) -> bool:
        """Tell whether both metastores answer calls that need their databases, the target's storage takes files, and
        calque is not about to end."""
        try:
            self.source.log.current()
            self.side.catalog.database(OURS)
        except Unavailable:
            return False
        return self.storage_failure() is None

    def require_storage(self) -> None:
        """Raise the error that any file at the target would meet now (`Refused`, `Unavailable`), if there is one."""
        error = self.storage_failure()
        if error is not None:
            raise error

    def storage_failure(self) -> Refused | Unavailable | None:
        """Return the error that any file at the target would meet now; None if the storage takes files."""
        clock = self.source.clock
        with self.probing:
            began = clock.elapsed_ns()
            if began >= self.storage_until_ns:
                self.storage = self.probe_storage()
                self.storage_until_ns = 2 * clock.elapsed_ns() - began
                if self.storage is not None:
                    self.side.storage_failures.note("copy", self.storage)
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
    """Return what is wrong and why, as sentences, without the advice, which is for a user who tries again."""
    return " ".join(sentence(part) for part in (error.what, error.why) if part)


def reason(error: Refused | Unavailable | ObjectDefect) -> str:
    """Return the reason why an object is set aside, with what to do."""
    match error:
        case Unavailable():
            return f"{facts(error)} {RELEASE}"
        case ObjectDefect():
            return defect_reason(error)
    return str(error)


def is_same_defect(error: Exception, reason: str, set_aside_at: EventId | None, event_id: EventId) -> bool:
    """Tell whether the error is a defect that an object meets at the event `event_id`, at which it was set aside for
    a defect before. It had all of its attempts then. Without this test, each of several objects that are tried together
    would get the attempts of the others as well."""
    return isinstance(error, ObjectDefect) and DEFECT in reason and set_aside_at == event_id


def defect_reason(error: ObjectDefect) -> str:
    """Return the reason why an object that met a defect is set aside, with what to do."""
    return f"{sentence(str(error))} {REPORT}"
