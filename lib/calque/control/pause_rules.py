"""The pauses of operators: of a whole target, or of tables by patterns. The records lie in the state folder, where each
`run` looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from calque.core.policy.patterns import matches, parse_pattern
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR
from calque.model.ledger import StateRow
from calque.model.names import TableName
from calque.model.state_places import TargetPlaces
from calque.ports.records import Records, Stamp
from calque.wiring.wiring import Wiring


class PauseAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"


Rules = tuple[tuple[PauseAction, str], ...]
"""Patterns in the order in which they were given. The last one that matches a table decides."""


def is_paused(control: Records, target: str) -> bool:
    return control.read(TargetPlaces(target).pause_record) is not None


def rules_of(control: Records, target: str) -> Rules:
    record = control.read(TargetPlaces(target).pause_rules_record) or {}
    rows = record.get("rules")
    return tuple((PauseAction(rule), pattern) for rule, pattern in rows) if isinstance(rows, list) else ()


def stamp_of(control: Records, target: str) -> Stamp:
    """Return a stamp that changes with the record of the target's rules."""
    return control.stamp(TargetPlaces(target).pause_rules_record)


def chosen_by(rules: Rules) -> Callable[[TableName], bool]:
    """Return a function that tells whether a table is paused."""
    parsed = [(rule, parse_pattern(text)) for rule, text in reversed(rules)]

    def takes(name: TableName) -> bool:
        return next((rule is PauseAction.PAUSE for rule, pattern in parsed if matches(pattern, name)), False)

    return takes


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
        rules = with_rules(rules_of(control, target), rule, patterns)
        if rules:
            control.put(record, {"rules": [[one.value, pattern] for one, pattern in rules]})
        else:
            control.remove(record)
    return rules
