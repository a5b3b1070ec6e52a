"""The rule that says which unexpected exceptions of the work on one object may be caught; `work_on` applies it.

One table, function or database whose definition, statistics or files calque cannot handle must not stop the others.
`work_on` surrounds the work on one object and turns an unexpected exception into `ObjectDefect`. The rule stands in
this module alone:

- an error of calque's own tree (`errors.py`) has a meaning, and passes: `Broken` ends the target, whichever object was
  being worked on;
- an exception that the caller names as expected passes, because the caller deals with it;
- an error of the machine passes: no memory, no space, no descriptors. Other objects would meet it, too;
- every other exception is a defect of calque, and concerns that object alone.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from calque.errors import CalqueError

ATTEMPTS = 3
"""Times that the same work on one object is tried when it meets a defect."""
OF_THE_MACHINE = frozenset(
    {errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EAGAIN}
)
DEFECT = "a defect of calque"
LONGEST = 300
"""Characters of the exception's own text that an `ObjectDefect` repeats."""


class ObjectDefect(Exception):
    """An unexpected exception in the work on one object. `what` names the work, and `__cause__` has the exception with
    its traceback."""

    def __init__(self, what: str, error: Exception) -> None:
        self.what = what
        super().__init__(f"{what} met {DEFECT}: {described(error)}")


@contextmanager
def work_on(what: str, *expected: type[Exception]) -> Iterator[None]:
    """Run the body as the work on one object, which `what` names for people. Exceptions of the types `expected` pass,
    and so do calque's own errors and errors of the machine. Raises `ObjectDefect` in place of every other exception."""
    try:
        yield
    except Exception as error:
        if isinstance(error, expected) or not is_defect(error):
            raise
        raise ObjectDefect(what, error) from error


def is_defect(error: Exception) -> bool:
    """Tell whether the exception is a defect of calque, for which the one object that met it may be set aside."""
    match error:
        case CalqueError() | ObjectDefect() | MemoryError():
            return False
        case OSError():
            return error.errno not in OF_THE_MACHINE
    return True


def traceback_of(error: BaseException) -> BaseException | None:
    """Return the exception whose traceback a line of the log shows: the cause of an `ObjectDefect`, None for every
    other error, whose traceback is of no use."""
    return (error.__cause__ or error) if isinstance(error, ObjectDefect) else None


def described(error: Exception) -> str:
    """Return one line with the exception's class, the file and line that raised it, and up to `LONGEST` characters of
    its text."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())[:LONGEST]
    return f"{type(error).__name__}{place}{f': {text}' if text else ''}"
