"""What may go wrong with a table, or with the world around it.

Any other exception is a defect of calque. It ends the target: nobody knows what the target shows then. It is never a
reason to set a table aside.
"""

from __future__ import annotations

from calque.core.decode import Undecodable
from calque.core.fold import Unfoldable
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
)
"""The same, to catch them. `Broken` is none of them."""
