"""The failures that a table, or the world around it, may cause in the work on it.

Any other exception is a defect of calque, and becomes `ObjectDefect` where it is met (`core.defects`). What the target
shows of the table then is observed before the work is tried again, as after a death. `Broken` is not among the
failures, because it ends the target.
"""

from __future__ import annotations

from calque.core.defects import ObjectDefect
from calque.core.events.decode import Undecodable
from calque.core.states.fold import Unfoldable
from calque.engine.files.copies import ContentLost
from calque.engine.source.exact_read import TableIsTooBusy
from calque.engine.target.observe import NotOurReplica
from calque.engine.window.prepare import Unreachable
from calque.errors import Refused, Unavailable
from calque.ports import Conflict

Failure = (
    Refused
    | Unavailable
    | Conflict
    | Undecodable
    | Unfoldable
    | Unreachable
    | NotOurReplica
    | ContentLost
    | TableIsTooBusy
    | ObjectDefect
)
FAILURES = (
    Refused,
    Unavailable,
    Conflict,
    Undecodable,
    Unfoldable,
    Unreachable,
    NotOurReplica,
    ContentLost,
    TableIsTooBusy,
    ObjectDefect,
)
"""The members of `Failure` as a tuple, for `except`."""
