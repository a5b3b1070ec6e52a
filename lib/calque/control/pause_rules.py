"""The pauses of operators: of a whole target, or of tables by patterns. The records lie in the state folder, where each
`run` looks at them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from calque.core.policy.patterns import matches, parse_pattern
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR
from calque.model.ledger import StateRow
from calque.model.names import TableName
from calque.model.state_places import TargetPlaces
from calque.ports.records import Json, Records, Stamp
from calque.wiring.wiring import Wiring


class PauseAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"


Rules = tuple[tuple[PauseAction, str], ...]
"""Patterns in the order in which they were given. The last one that matches a table decides."""


def is_paused(control: Records, target: str) -> bool:
    return control.read(TargetPlaces(target).pause_record) is not None


def paused_at(control: Records, target: str) -> float | None:
    """Return when an operator paused the whole target, in seconds since 1970; None where it is not paused."""
    record: Mapping[str, Any] | None = control.read(TargetPlaces(target).pause_record)
    return None if record is None else float(record.get("at", 0.0))


def rules_of(control: Records, target: str) -> Rules:
    record = control.read(TargetPlaces(target).pause_rules_record) or {}
    rows = record.get("rules")
    return tuple((PauseAction(rule), pattern) for rule, pattern in rows) if isinstance(rows, list) else ()


def rule_times(control: Records, target: str) -> Mapping[str, float]:
    """Return when the target's rules were given, in seconds since 1970, by their patterns. A rule of a version that
    wrote no times is left out."""
    record = control.read(TargetPlaces(target).pause_rules_record) or {}
    times = record.get("times")
    return {pattern: float(str(at)) for pattern, at in times.items()} if isinstance(times, dict) else {}


def stamp_of(control: Records, target: str) -> Stamp:
    """Return a stamp that changes with the record of the target's rules."""
    return control.stamp(TargetPlaces(target).pause_rules_record)


def chosen_by(rules: Rules) -> Callable[[TableName], bool]:
    """Return a function that tells whether a table is paused."""
    deciding = deciding_rule(rules)

    def takes(name: TableName) -> bool:
        rule = deciding(name)
        return rule is not None and rule[0] is PauseAction.PAUSE

    return takes


def deciding_rule(rules: Rules) -> Callable[[TableName], tuple[PauseAction, str] | None]:
    """Return a function that returns the rule that decides on a table; None where none matches it."""
    parsed = [(parse_pattern(rule[1]), rule) for rule in reversed(rules)]
    return lambda name: next((rule for pattern, rule in parsed if matches(pattern, name)), None)


def goes_on_soon(control: Records, target: str, rows: Iterable[StateRow]) -> bool:
    """Tell whether the ledger says of a table that an operator has paused it, though the rules do not any more: no
    window has taken the change up yet. `rows` are the ledger's."""
    takes = chosen_by(rules_of(control, target))
    return any(row.reason == PAUSED_BY_OPERATOR and not takes(row.name) for row in rows)


def with_rules(rules: Rules, rule: PauseAction, patterns: Sequence[str]) -> Rules:
    """Return `rules` with a `rule` for each of `patterns` at their end.

    Rules without an effect are left out: an earlier one for the same pattern, all before a pattern of every table, and
    those that let tables go on before any is paused.
    """
    for pattern in patterns:
        rules = () if pattern == "*.*" else tuple(one for one in rules if one[1] != pattern)
        rules = (*rules, (rule, pattern))
        while rules and rules[0][0] is PauseAction.RESUME:
            rules = rules[1:]
    return rules


def change(wiring: Wiring, target: str, rule: PauseAction, patterns: Sequence[str]) -> Rules:
    """Add rules for the target, which its process finds within a second. Return all rules that hold now."""
    control, places = wiring.control, TargetPlaces(target)
    record = places.pause_rules_record
    with wiring.folder.lock(places.pause_lock, record):
        before, times, now = rules_of(control, target), rule_times(control, target), time.time()
        rules = with_rules(before, rule, patterns)
        if rules:
            # A rule that is given once more holds since it was first given.
            new_times = {one[1]: now for one in rules if one not in before}
            kept_times = {one[1]: times[one[1]] for one in rules if one in before and one[1] in times}
            rows: Json = [[one.value, pattern] for one, pattern in rules]
            control.put(record, {"rules": rows, "times": {**kept_times, **new_times}})
        else:
            control.remove(record)
    return rules
