"""The errors of calque, sorted by what to do about them.

    CalqueError
    ├── Refused               tell the user, do not retry            exit 65
    │   ├── AlterationRefused     by a metastore, of a definition
    │   ├── EventsForgotten       the journal had them once
    │   ├── WrittenElsewhere      another state folder writes to the target
    │   └── StatementSyntaxError                                     exit 64
    ├── AccessRefused         as Refused, but for every request      exit 65
    ├── StateUnusable         as Refused, of calque's own state      exit 65
    ├── Unavailable           retry with back-off                    exit 75
    │   └── CallFailed            answered, and may concern this call alone
    ├── StateFolderGone       stop, and start anew                   exit 75
    ├── WrongUsage            of a command                           exit 64
    ├── Interrupted           by Ctrl-C                              exit 130
    └── Broken                an invariant fell: stop, call a person exit 70

A command that Ctrl-C ended has the code 130 (`Interrupted`). Every text has three parts: what is wrong, why, what to
do. Each part ends with a full stop.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

NEAR = 0.6
"""The ratio of common letters from which a word counts as near to another one (`difflib`)."""
SHOWN = 40
"""The number of known words that an error names where none is near."""


@dataclass(frozen=True, slots=True)
class Where:
    """The place of an error in a file. `key` is the key's path with dots."""

    file: str
    line: int | None = None
    key: str | None = None


class CalqueError(Exception):
    """The base of all errors of calque, which is never raised itself. `what` is wrong, because of `why`, and the user
    is to do `todo`. `where` is the place in a file where the error stands in one."""

    exit_code = 70
    kind = "broken"

    def __init__(self, what: str, why: str = "", todo: str = "", where: Where | None = None) -> None:
        self.what, self.why, self.todo, self.where = what, why, todo, where
        super().__init__(" ".join(sentence(part) for part in (what, why, todo) if part))

    def document(self) -> dict[str, Any]:
        """Return the error as a command with `--json` prints it."""
        where = None if self.where is None else asdict(self.where)
        texts = {"what": self.what, "why": self.why, "do": self.todo}
        return {"error": {"code": self.exit_code, "kind": self.kind, **texts, "where": where}}


class Refused(CalqueError):
    """A refusal: the input, the configuration or the state of the world asks calque to do what it does not do. A retry
    does not help."""

    exit_code = 65
    kind = "refused"


class AlterationRefused(Refused):
    """A metastore's refusal to let a definition become another one. It may still take that other one for an object that
    is made anew."""


class AccessRefused(CalqueError):
    """A service's refusal of calque itself, or calque's of a service that it may not trust: a wrong password, a
    certificate, a missing privilege.

    It is no `Refused`, because no table is at fault, and none is set aside for it. A call that could lock an account is
    not repeated.
    """

    exit_code = 65
    kind = "refused"


class StateUnusable(CalqueError):
    """The error of a part of the state folder that is damaged, or may not be read or written, and stays so until a
    person mends it. It is no `Refused`, because no table is at fault, and none is set aside for it."""

    exit_code = 65
    kind = "refused"


class StateFolderGone(CalqueError):
    """The error of a state folder that was there, and is not there any more. What the process holds in it is worth
    nothing then. The next process makes another one."""

    exit_code = 75
    kind = "unavailable"


class EventsForgotten(Refused):
    """The error of a journal that does not have the events any more. A reader that needs them has to begin behind
    them."""


class WrittenElsewhere(Refused):
    """A refusal because the target was last written from another state folder. No call may begin there, for any of its
    tables."""


class StatementSyntaxError(Refused):
    """The error of a statement that can't be parsed. `excerpt` is its line, and below that a mark under the place."""

    exit_code = 64
    kind = "usage"

    def __init__(self, what: str, why: str, todo: str, excerpt: str) -> None:
        super().__init__(what, why, todo)
        self.excerpt = excerpt


class Unavailable(CalqueError):
    """The error of a service that calque needs and that does not answer now. The same call may succeed later."""

    exit_code = 75
    kind = "unavailable"


class CallFailed(Unavailable):
    """The error of a service that has failed in one call, and may answer others: the cause may be the one object that
    the call is about."""


class WrongUsage(CalqueError):
    """The error of a command line that can't be understood."""

    exit_code = 64
    kind = "usage"


class Interrupted(CalqueError):
    """The error of a command that Ctrl-C ended."""

    exit_code = 130
    kind = "interrupted"


class Broken(CalqueError):
    """The error of an invariant that does not hold. Going on could damage the replica."""

    exit_code = 70


def sentence(text: str) -> str:
    """Return the text on one line, with a full stop at its end unless it has a closing mark."""
    line = printable(" ".join(text.split()))
    return line if line.endswith((".", "!", "?")) else line + "."


def printable(text: str) -> str:
    """Return the text for a terminal or a log. Characters that steer a terminal (control characters, line ends, marks
    of direction) become escapes, such as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def print_error(*parts: str) -> None:
    """Print `calque: WHAT. WHY. TODO.` on stderr, in one line; empty parts are left out."""
    print("calque: " + " ".join(sentence(part) for part in parts if part), file=sys.stderr)


def print_calque_error(error: CalqueError) -> None:
    """Print the error's line on stderr, and below it the place in a statement where the error has one."""
    print_error(str(error))
    if isinstance(error, StatementSyntaxError):
        print(error.excerpt, file=sys.stderr)


def nearest(word: str, known_words: Iterable[str]) -> str:
    """Return "The nearest is X" where a known word is near, else a list of some that are known; empty where nothing is
    known. Upper and lower case count as equal."""
    names = {name.lower(): name for name in known_words}
    matches = get_close_matches(word.lower(), names, n=1, cutoff=NEAR)
    if matches:
        return f"The nearest is {names[matches[0]]}"
    shown = ", ".join(list(names.values())[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"Known: {shown}{more}" if names else ""
