"""What may go wrong with a table, or with the world around it.

Any other exception is a defect of calque, and becomes `ObjectDefect` where it is met (`core.defects`). What the target
shows of the table then is observed before the work is tried again, as after a death. `Broken` is none of them: it ends
the target.
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
"""The same, to catch them."""
