"""What can go wrong, sorted by what to do about it.

    CalqueError
    ├── Refused       tell the user, do not retry          exit 65
    │   ├── Forgotten     the journal had it once
    │   └── StatementSyntaxError                           exit 64
    ├── AccessRefused the same, whatever is asked for      exit 65
    ├── StateUnusable the same, of calque's own state      exit 65
    ├── Unavailable   retry with back-off                  exit 75
    │   └── Failing       answered, and may concern this call alone
    ├── StateFolderGone   stop, and start anew             exit 75
    └── Broken        an invariant fell: stop, call a person   exit 70

Every text has three parts: what is wrong, why, what to do. Each part ends with a full stop.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches


class CalqueError(Exception):
    """Base of the three; never raised itself."""

    exit_code = 70

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what, self.why, self.todo = what, why, todo
        super().__init__(" ".join(sentence(part) for part in (what, why, todo) if part))


class Refused(CalqueError):
    """The input, the configuration or the world's state asks for something that calque does not do."""

    exit_code = 65


class AlterationRefused(Refused):
    """A metastore does not let a definition become another one; the other may be one that it takes when it is made."""


class AccessRefused(CalqueError):
    """A service answers, and does not let calque in, or is none that calque may trust: a wrong password, a certificate,
    a missing privilege. No `Refused`, as no table is at fault and none is set aside for it; nothing is tried again that
    could lock an account."""

    exit_code = 65


class StateUnusable(CalqueError):
    """A part of the state folder is damaged, or may not be read or written, and stays so until somebody mends it. No
    `Refused`: no table is at fault, and none is set aside for it."""

    exit_code = 65


class StateFolderGone(CalqueError):
    """The state folder was there, and is not there any more: nothing that this process holds in it is worth anything.
    The next process makes another."""

    exit_code = 75


class EventsForgotten(Refused):
    """The journal does not have the events any more; who follows it has to begin behind them."""


class WrittenElsewhere(Refused):
    """The target was last written from another state folder: nothing may begin there, whatever it is about."""


class StatementSyntaxError(Refused):
    """A statement can't be parsed. `excerpt` is its line, and below that a mark under the place."""

    exit_code = 64

    def __init__(self, what: str, why: str, todo: str, excerpt: str) -> None:
        super().__init__(what, why, todo)
        self.excerpt = excerpt


class Unavailable(CalqueError):
    """Something that calque needs does not answer now; the same call may succeed later."""

    exit_code = 75


class CallFailed(Unavailable):
    """A service failed in one call, and may answer others: what the call is about may be what it can't do."""


class Broken(CalqueError):
    """An invariant fell. Going on could damage the replica."""

    exit_code = 70


def sentence(text: str) -> str:
    """`text` on one line, ending with a full stop."""
    line = printable(" ".join(text.split()))
    return line if line.endswith((".", "!", "?")) else line + "."


def printable(text: str) -> str:
    """The text for a terminal or a log: what steers one (control characters, line ends, marks of direction) is shown as
    an escape, as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def print_error(*parts: str) -> None:
    """`calque: WHAT. WHY. TODO.` on stderr, in one line; empty parts are left out."""
    print("calque: " + " ".join(sentence(part) for part in parts if part), file=sys.stderr)


def print_calque_error(error: CalqueError) -> None:
    """The error's line on stderr, below it the place in a statement where it has one."""
    print_error(str(error))
    if isinstance(error, StatementSyntaxError):
        print(error.excerpt, file=sys.stderr)


def nearest(word: str, known_words: Iterable[str]) -> str:
    """ "The nearest is X", else what is known at all; "" when nothing is. Upper and lower case count as equal."""
    names = {name.lower(): name for name in known_words}
    matches = get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    if matches:
        return f"The nearest is {names[matches[0]]}"
    return f"Known: {', '.join(names.values())}" if names else ""
