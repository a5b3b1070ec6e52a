"""The objects that a dump can't have, collected so that the dump ends with an error that names them.

A dump without such an object would be loaded as if the source did not have the object.
"""

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
    """The errors of the objects of one dump. `met` has them by the name of the object for people. All objects are tried
    before the dump ends, so that one answer names all of these. Safe from several threads."""

    met: dict[str, Refused | ObjectDefect] = field(default_factory=dict)

    @contextmanager
    def of(self, what: str, *expected: type[Exception]) -> Iterator[None]:
        """Keep a refusal or a defect of calque that the block, the work on the object `what`, raises, and end the
        block. All other errors pass, those of the types `expected` too."""
        try:
            with work_on(f"the dump of {what}", *expected):
                yield
        except (Refused, ObjectDefect) as error:
            if isinstance(error, ObjectDefect):
                LOG.error("%s", error, exc_info=traceback_of(error))
            self.met.setdefault(what, error)

    def require_none(self) -> None:
        """Raise an error that names the objects that can't be dumped, if there are any: `Unavailable` where the work on
        one of them met a defect of calque, else `Refused`."""
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
