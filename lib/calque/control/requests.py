"""What an operator asks of a target: kept in the state folder until a `run` takes it up, now or at its next start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from calque.core.patterns import chosen, covering
from calque.engine.replica.adopt import adopt
from calque.engine.replica.release import release
from calque.engine.replica.replay import replay
from calque.engine.replica.replica import Replica
from calque.engine.sides.read_requests import How
from calque.errors import Forgotten
from calque.model.ledger import TableState
from calque.model.names import EventId, TableName
from calque.wiring.wiring import Wiring

SETTLED = (TableState.LIVE, TableState.WAITING, TableState.QUARANTINED)


class Action(StrEnum):
    """Each makes tables UNKNOWN: they are read again, exactly, while the stream goes on. `RELEASE_DROPS` concerns those
    alone whose drops wait for an operator, and no other concerns these."""

    BOOTSTRAP = "bootstrap"
    RELEASE = "release"
    REPAIR = "repair"
    REPLAY = "replay"
    ADOPT = "adopt"
    RELEASE_DROPS = "release-drops"


@dataclass(frozen=True, slots=True)
class Request:
    """`tables` are patterns; none means all that the action concerns. `after` is the event of a replay."""

    name: str
    action: Action
    tables: tuple[str, ...]
    after: EventId = 0


def ask(wiring: Wiring, target: str, action: Action, tables: Sequence[str], after: EventId = 0) -> None:
    """Leave a request for the target and wake it."""
    name = f"requests/{target}/{time.time_ns()}-{uuid.uuid4().hex[:8]}"
    wiring.control.put(name, {"action": action.value, "tables": list(tables), "after": after})
    wiring.wake(target)


def asked(wiring: Wiring, target: str) -> list[Request]:
    """Requests that nobody has done yet, oldest first."""
    found = []
    for name in wiring.control.names(f"requests/{target}/"):
        record = wiring.control.read(name)
        if record is not None:
            tables = record.get("tables")
            patterns = tuple(str(item) for item in tables) if isinstance(tables, list) else ()
            found.append(Request(name, Action(str(record["action"])), patterns, int(str(record.get("after", 0)))))
    return found


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
            return replica.reread(takes, reason, SETTLED, How.LOOK)
        case Action.ADOPT:
            try:
                return adopt(replica, takes, covering(request.tables), reason)
            except Forgotten:
                return None
        case Action.REPLAY:
            return replay(replica, request.after, takes, reason)
    assert_never(request.action)


def done(wiring: Wiring, request: Request) -> None:
    wiring.control.remove(request.name)
