"""What an operator asks of a target: kept in the state folder until a `run` takes it up, now or at its next start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calque.wiring import Wiring


class Action(StrEnum):
    """Each makes tables UNKNOWN: they are read again, exactly, while the stream goes on."""

    BOOTSTRAP = "bootstrap"
    RELEASE = "release"
    REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class Request:
    """`tables` are patterns; none means all that the action concerns."""

    name: str
    action: Action
    tables: tuple[str, ...]


def ask(wiring: Wiring, target: str, action: Action, tables: Sequence[str]) -> None:
    """Leave a request for the target and wake it."""
    name = f"requests/{target}/{time.time_ns()}-{uuid.uuid4().hex[:8]}"
    wiring.control.put(name, {"action": action.value, "tables": list(tables)})
    wiring.wake(target)


def asked(wiring: Wiring, target: str) -> list[Request]:
    """Requests that nobody has done yet, oldest first."""
    found = []
    for name in wiring.control.names(f"requests/{target}/"):
        record = wiring.control.read(name)
        if record is not None:
            tables = record.get("tables")
            patterns = tuple(str(item) for item in tables) if isinstance(tables, list) else ()
            found.append(Request(name, Action(str(record["action"])), patterns))
    return found


def done(wiring: Wiring, request: Request) -> None:
    wiring.control.remove(request.name)
