"""What operators do to a target beside reading: by commands, and on the page. Both leave the same records."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, assert_never

from calque.control.pause_rules import PauseAction, change
from calque.control.requests import leave_request
from calque.control.verification import ask_repair, document, verification
from calque.core.policy.patterns import parse_pattern
from calque.engine.verify.report import Verification
from calque.errors import Refused, nearest
from calque.model.requests import Action
from calque.model.state_places import TargetPlaces
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.wiring import Wiring


class Deed(StrEnum):
    """Named like the commands."""

    PAUSE = "pause"
    RESUME = "resume"
    RELEASE = "release"
    RELEASE_DROPS = "release-drops"
    VERIFY = "verify"
    REPAIR = "repair"

    def takes_long(self) -> bool:
        return self in (Deed.VERIFY, Deed.REPAIR)


def deed_of(name: str) -> Deed:
    """Raises `Refused` for one that there is not."""
    if name not in list(Deed):
        raise Refused(f'There is no action "{name}"', "", nearest(name, [deed.value for deed in Deed]))
    return Deed(name)


def require_possible(wiring: Wiring, target: str, tables: Sequence[str]) -> None:
    """Raises `Refused` for a target that is not configured, and for what is no pattern."""
    wiring.config.target(target)
    for pattern in tables:
        parse_pattern(pattern)


def do(
    wiring: Wiring, deed: Deed, target: str, tables: Sequence[str], kinds: Sequence[ComparisonKind]
) -> Mapping[str, Any]:
    """`tables` are patterns; none means the target itself, or all that the deed concerns. What a comparison says of it;
    nothing of the others, which the target's process takes up by itself."""
    match deed:
        case Deed.PAUSE:
            pause(wiring, target, tables)
        case Deed.RESUME:
            resume(wiring, target, tables)
        case Deed.RELEASE:
            leave_request(wiring, target, Action.RELEASE, tables)
        case Deed.RELEASE_DROPS:
            leave_request(wiring, target, Action.RELEASE_DROPS, tables)
        case Deed.VERIFY:
            return document(wiring, compared(wiring, target, tables, kinds))
        case Deed.REPAIR:
            return ask_repair(wiring, compared(wiring, target, tables, kinds))[0]
        case other:
            assert_never(other)
    return {}


def compared(wiring: Wiring, target: str, tables: Sequence[str], kinds: Sequence[ComparisonKind]) -> Verification:
    return verification(wiring, target, tables, "size", lambda _done, _all: None, kinds)


def pause(wiring: Wiring, target: str, tables: Sequence[str]) -> None:
    if tables:
        change(wiring, target, PauseAction.PAUSE, tables)
    else:
        wiring.control.put(TargetPlaces(target).pause_record, {"at": time.time()})


def resume(wiring: Wiring, target: str, tables: Sequence[str]) -> None:
    """Without `tables` those that are held back stay so."""
    if tables:
        change(wiring, target, PauseAction.RESUME, tables)
    else:
        wiring.control.remove(TargetPlaces(target).pause_record)
