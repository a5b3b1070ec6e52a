"""The requests that operators leave for a target in the state folder. A `run` takes them up now, or at its next
start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from calque.model.names import EventId
from calque.model.requests import Action, Request
from calque.model.state_places import TargetPlaces
from calque.wiring.wiring import Wiring


def leave_request(wiring: Wiring, target: str, action: Action, tables: Sequence[str], after: EventId = 0) -> None:
    """Leave a request for the target, which its process finds within a second. `tables` are patterns; `after` is an
    event id, for a replay."""
    places = TargetPlaces(target)
    name = f"{places.requests}{time.time_ns()}-{uuid.uuid4().hex[:8]}"
    wiring.control.put(name, {"action": action.value, "tables": list(tables), "after": after})


def open_requests(wiring: Wiring, target: str) -> list[Request]:
    """Return the target's requests that no window has taken up yet, oldest first."""
    requests = []
    for name in wiring.control.names(TargetPlaces(target).requests):
        record = wiring.control.read(name)
        if record is not None:
            tables = record.get("tables")
            patterns = tuple(str(item) for item in tables) if isinstance(tables, list) else ()
            requests.append(Request(name, Action(str(record["action"])), patterns, int(str(record.get("after", 0)))))
    return requests


def remove_request(wiring: Wiring, request: Request) -> None:
    wiring.control.remove(request.name)
