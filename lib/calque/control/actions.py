"""Actions of operators on a target besides reading. Commands and the page go through this module, so that both leave
the same records."""

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


class OperatorAction(StrEnum):
    """An action on a target, under the name of its command."""

    PAUSE = "pause"
    RESUME = "resume"
    RELEASE = "release"
    RELEASE_DROPS = "release-drops"
    VERIFY = "verify"
    REPAIR = "repair"

    def takes_long(self) -> bool:
        return self in (OperatorAction.VERIFY, OperatorAction.REPAIR)


def action_of(name: str) -> OperatorAction:
    """Return the action called `name`. Raises `Refused` for a name that no action has."""
    if name not in list(OperatorAction):
        raise Refused(f'There is no action "{name}"', "", nearest(name, [action.value for action in OperatorAction]))
    return OperatorAction(name)


def require_possible(wiring: Wiring, target: str, tables: Sequence[str]) -> None:
    """Raise `Refused` where the target is not configured, or where one of `tables` is no pattern."""
    wiring.config.target(target)
    for pattern in tables:
        parse_pattern(pattern)


def do(
    wiring: Wiring, action: OperatorAction, target: str, tables: Sequence[str], kinds: Sequence[ComparisonKind]
) -> Mapping[str, Any]:
    """Do the action at a target, and return what its comparison found as a JSON document; an empty one for actions that
    compare nothing.

    `tables` are patterns; none stands for the whole target, or for all tables that the action concerns. An action that
    compares nothing leaves a record, which the target's process takes up by itself. `kinds` are the comparisons of
    plugins.
    """
    match action:
        case OperatorAction.PAUSE:
            pause(wiring, target, tables)
        case OperatorAction.RESUME:
            resume(wiring, target, tables)
        case OperatorAction.RELEASE:
            leave_request(wiring, target, Action.RELEASE, tables)
        case OperatorAction.RELEASE_DROPS:
            leave_request(wiring, target, Action.RELEASE_DROPS, tables)
        case OperatorAction.VERIFY:
            return document(wiring, compared(wiring, target, tables, kinds))
        case OperatorAction.REPAIR:
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
    """Let the tables that match `tables` go on; without any, the target itself. Tables that are paused by a pattern
    stay paused when the target goes on."""
    if tables:
        change(wiring, target, PauseAction.RESUME, tables)
    else:
        wiring.control.remove(TargetPlaces(target).pause_record)
