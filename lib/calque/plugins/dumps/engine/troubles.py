"""What can't be dumped ends a dump, named: one without it would be loaded as if the source had none of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.errors import Refused, Unavailable, sentence

LOG = logging.getLogger(__name__)
SHOWN = 10
REPORT = "The log has the traceback: report it, and leave the object out of the policy until that is mended"


@dataclass(slots=True)
class DumpTroubles:
    """What objects of one dump met, by their names for people: all are tried, so that one answer names each of them.
    Safe from several threads."""

    met: dict[str, Refused | ObjectDefect] = field(default_factory=dict)

    @contextmanager
    def of(self, what: str, *expected: type[Exception]) -> Iterator[None]:
        """Work on one object: a refusal and a defect are kept, and end the block. Raises all else, `expected` too."""
        try:
            with work_on(f"the dump of {what}", *expected):
                yield
        except (Refused, ObjectDefect) as error:
            if isinstance(error, ObjectDefect):
                LOG.error("%s", error, exc_info=traceback_of(error))
            self.met.setdefault(what, error)

    def require_none(self) -> None:
        """Raises `Refused` for what can't be dumped, `Unavailable` where something met a defect of calque."""
        if not self.met:
            return
        names = sorted(self.met)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        what = f"{', '.join(names[:SHOWN])}{more} can't be dumped"
        defects = [error for error in self.met.values() if isinstance(error, ObjectDefect)]
        if defects:
            raise Unavailable(what, str(defects[0]), REPORT)
        (first, *more_errors) = (error for error in self.met.values() if isinstance(error, Refused))
        if not more_errors and names[0] in first.what:
            raise first
        raise Refused(what, f"{sentence(first.what)} {first.why}", first.todo)
