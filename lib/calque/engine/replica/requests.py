"""What operators asked of a target is taken up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from calque.core.patterns import chosen, covering
from calque.engine.replica.adopt import adopt
from calque.engine.replica.release import release
from calque.engine.replica.replay import replay
from calque.engine.replica.replica import Replica
from calque.errors import Forgotten
from calque.model.names import TableName
from calque.model.records import ReadMode
from calque.model.requests import SETTLED, Action, Request


def take_up(replica: Replica, request: Request) -> Sequence[TableName] | None:
    """Have the replica do what was asked for; which tables are read. None where that has to wait for the end of a
    survey, or until the replica has started again. Only between windows. Raises `Refused` where the journal does not
    reach back as far as a replay wants."""
    if not replica.opened:
        return None
    takes, reason = chosen(request.tables), f"asked for by {request.action.value}"
    match request.action:
        case Action.RELEASE:
            return release(replica, takes, covering(request.tables), reason)
        case Action.RELEASE_DROPS:
            return None if replica.comparing.is_under_way() else replica.release_drops(takes)
        case Action.BOOTSTRAP if not request.tables:
            return None if replica.comparing.is_under_way() else replica.read_all_again(reason)
        case Action.BOOTSTRAP:
            return replica.reread(takes, reason, SETTLED)
        case Action.REPAIR:
            return replica.reread(takes, reason, SETTLED, ReadMode.LOOK)
        case Action.ADOPT:
            try:
                return adopt(replica, takes, covering(request.tables), reason)
            except Forgotten:
                return None
        case Action.REPLAY:
            return replay(replica, request.after, takes, reason)
    assert_never(request.action)
