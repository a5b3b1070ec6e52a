"""Requests of operators to a target."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId


class Action(StrEnum):
    """The kind of a request. Each makes tables UNKNOWN: they are read again, exactly, while the stream goes on.
    `RELEASE_DROPS` concerns only tables whose drops wait for an operator, and the other actions do not concern these.
    Capture itself asks for `COMPARE`, which leaves quarantined tables alone."""

    BOOTSTRAP = "bootstrap"
    RELEASE = "release"
    REPAIR = "repair"
    COMPARE = "compare"
    REPLAY = "replay"
    ADOPT = "adopt"
    RELEASE_DROPS = "release-drops"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of an operator to a target. `tables` are patterns of tables; without any the request is for all tables
    that the action concerns. `after` is the event of a replay."""

    name: str
    action: Action
    tables: tuple[str, ...]
    after: EventId = 0
