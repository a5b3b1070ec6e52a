"""An exception that nobody expected in the work of one object: what of it may be caught, and where that is decided.

One table, function or database whose definition, statistics or files calque does not get along with must not stop the
others. `work_on` surrounds the work of one object, and turns what nobody expected into `ObjectDefect`. It is the only
place that says what that may be:

- an error of calque's own tree (`errors.py`) has a meaning, and passes: `Broken` ends the target, whatever was at hand;
- so does what the work is known to raise, which whoever began it deals with;
- so does what is the machine's: no memory, no space, no descriptors. Other objects would meet it, too;
- all else is a defect of calque, and is the object's own.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from calque.errors import CalqueError

ATTEMPTS = 3
"""How often the same work of one object is tried that meets a defect."""
OF_THE_MACHINE = frozenset(
    {errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EAGAIN}
)
DEFECT = "a defect of calque"
LONGEST = 300
"""Characters of what the exception itself says."""


class ObjectDefect(Exception):
    """The work on one object met what nobody expected; `__cause__` has the traceback. `what` names the work."""

    def __init__(self, what: str, error: Exception) -> None:
        self.what = what
        super().__init__(f"{what} met {DEFECT}: {described(error)}")


@contextmanager
def work_on(what: str, *expected: type[Exception]) -> Iterator[None]:
    """Work on one object, named for people; `expected` is what it may raise beside calque's own errors. Raises
    `ObjectDefect` for what nobody expected."""
    try:
        yield
    except Exception as error:
        if isinstance(error, expected) or not is_defect(error):
            raise
        raise ObjectDefect(what, error) from error


def is_defect(error: Exception) -> bool:
    """Whether one object alone may be set aside for the exception."""
    match error:
        case CalqueError() | ObjectDefect() | MemoryError():
            return False
        case OSError():
            return error.errno not in OF_THE_MACHINE
    return True


def traceback_of(error: BaseException) -> BaseException | None:
    """What a line of the log shows the traceback of: only a defect has one that is of use."""
    return (error.__cause__ or error) if isinstance(error, ObjectDefect) else None


def described(error: Exception) -> str:
    """The exception's class, where it was raised, and what it says, on one line."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())[:LONGEST]
    return f"{type(error).__name__}{place}{f': {text}' if text else ''}"
