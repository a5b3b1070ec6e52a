"""Under which policy a replica was made: written down with it, and compared when it is taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.core.admit import Admission
from calque.core.image import source_mark
from calque.model.names import TableName, table_name
from calque.model.policy import Policy

LISTS = ("include", "exclude")
MAPPINGS = ("rename", "properties", "locations")
WORDS = ("data", "consistency", "warehouse", "external_base", "strict_locations")
Steps = list[tuple[TableName, TableName]]


def written(policies: Sequence[Policy]) -> str:
    """The policies in one text that `policies_of` reads."""
    return json.dumps([recorded(policy) for policy in policies], sort_keys=True)


def recorded(policy: Policy) -> dict[str, Any]:
    """What of the policy can be seen at the target."""
    found: dict[str, Any] = {key: list(getattr(policy, key)) for key in LISTS}
    found |= {key: dict(getattr(policy, key)) for key in MAPPINGS}
    return found | {key: getattr(policy, key) for key in WORDS}


def policies_of(text: str, now: Policy) -> tuple[Policy, ...]:
    """The policies in the text; what it does not say they have in common with `now`."""
    return tuple(policy_of(found, now) for found in json.loads(text))


def policy_of(found: Mapping[str, Any], now: Policy) -> Policy:
    known: dict[str, Any] = {key: found[key] for key in (*MAPPINGS, *WORDS) if key in found}
    known |= {key: tuple(found[key]) for key in LISTS if key in found}
    return replace(now, **known)


@dataclass(frozen=True, slots=True)
class Change:
    """From the policies under which a target may have been written (`before`: several where a change was not finished)
    to the one that it has `now`."""

    before: tuple[Admission, ...]
    now: Admission

    @staticmethod
    def of(before: Sequence[Policy], now: Admission) -> Change:
        return Change(tuple(map(Admission, before)), now)

    def differs(self, *keys: str) -> bool:
        """Whether one of the policies had another value for one of the keys."""
        wanted = [recorded(self.now.policy)[key] for key in keys]
        return any([recorded(one.policy)[key] for key in keys] != wanted for one in self.before)

    @property
    def admits_others(self) -> bool:
        return self.differs("include", "exclude")

    @property
    def renames(self) -> bool:
        return self.differs("rename")

    def is_new(self, name: TableName) -> bool:
        """Whether the table (or database) is taken now, and was not by each of the policies."""
        return self.now.takes(name) and not all(one.takes(name) for one in self.before)

    def is_new_function(self, name: TableName) -> bool:
        return self.now.takes_function(name) and not all(one.takes_function(name) for one in self.before)

    def concerns(self, at: TableName) -> bool:
        """Whether a table that stands at the target under this name may have to go, or to be written anew."""
        names = [one.source_of(at) for one in self.before]
        if not any(names):
            return False
        return self.differs("properties") or self.renames or any(name != self.now.source_of(at) for name in names)

    def was_put(self, name: TableName, at: TableName) -> bool:
        """Whether one of the policies put the source's table there."""
        return any(one.takes(name) and one.name_at_target(name) == at for one in self.before)

    def was_made(self, database: str, at: str) -> bool:
        """Whether one of the policies had the target's database `at` made for the source's `database`."""
        return any(at in databases_of(one, database) for one in self.before)

    def is_elsewhere(self, database: str) -> bool:
        """Whether the database is taken now, and one of the policies called it by another name."""
        name = TableName(database)
        at = self.now.name_at_target(name)
        return self.now.takes(name) and any(one.name_at_target(name) != at for one in self.before)


def databases_of(admission: Admission, database: str) -> set[str]:
    """Databases at the target that the policy puts tables of the source's `database` into."""
    if not admission.touches_database(database):
        return set()
    apart = {new.database for old, new in admission.tables.items() if old.database == database and admission.takes(old)}
    return apart | {admission.name_at_target(TableName(database)).database}


def marked(mark: str, source: str) -> TableName | None:
    """The table or database of `source` that a mark names; None for a mark of another source, or none."""
    name = table_name(*mark.removeprefix(f"{source}:").partition(".")[::2])
    return name if name.database and mark == source_mark(source, name) else None


def ordered(moves: Mapping[TableName, TableName], aside: Callable[[TableName], TableName]) -> Steps:
    """The moves one after the other, none onto a name that is still to be left. A ring is opened by moving one of its
    tables aside first."""
    left, steps = dict(moves), Steps()
    while left:
        free = sorted(was for was, to in left.items() if to not in left)
        steps += [(was, left.pop(was)) for was in free]
        if not free:
            was = min(left)
            hidden, to = aside(was), left.pop(was)
            steps.append((was, hidden))
            left[hidden] = to
    return steps
