"""Policies under which replicas were made: they are recorded with a target, and compared with the present policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from calque.core.images.image import source_mark
from calque.core.policy.admit import Admission
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.model.records import PolicyTerms

TERMS = tuple(field.name for field in fields(PolicyTerms))
Steps = list[tuple[TableName, TableName]]


def terms_of(policy: Policy) -> PolicyTerms:
    """Return the terms of a policy that can be seen at its target."""
    return PolicyTerms(**{name: getattr(policy, name) for name in TERMS})


def policy_of(terms: PolicyTerms, now: Policy) -> Policy:
    """Return the policy with these terms; terms that are None are those of `now`."""
    return replace(now, **{name: term for name in TERMS if (term := getattr(terms, name)) is not None})


@dataclass(frozen=True, slots=True)
class PolicyTermChange:
    """A change of policy: from those under which the target may have been written (`before`: several where a change was
    not finished) to the present one (`now`)."""

    before: tuple[Admission, ...]
    now: Admission

    @staticmethod
    def of(before: Sequence[Policy], now: Admission) -> PolicyTermChange:
        return PolicyTermChange(tuple(map(Admission, before)), now)

    def differs(self, *keys: str) -> bool:
        """Tell whether a policy before had another value for one of the keys."""
        return any(getattr(one.policy, key) != getattr(self.now.policy, key) for one in self.before for key in keys)

    @property
    def admits_others(self) -> bool:
        return self.differs("include", "exclude")

    @property
    def renames(self) -> bool:
        return self.differs("rename")

    def is_new(self, name: TableName) -> bool:
        """Tell whether the table (or database) is taken now, and a policy before did not take it."""
        return self.now.takes(name) and not all(one.takes(name) for one in self.before)

    def is_new_function(self, name: TableName) -> bool:
        """Tell whether the function is taken now, and a policy before did not take it or left its resources
        elsewhere."""
        return self.now.takes_function(name) and not all(
            one.takes_function(name) and one.copies(name) is self.now.copies(name) for one in self.before
        )

    def switches_data(self, name: TableName) -> bool:
        """Tell whether a policy before decided otherwise on whether the table's files are copied."""
        return any(one.copies(name) is not self.now.copies(name) for one in self.before)

    def switches_format(self, name: TableName) -> bool:
        """Tell whether a policy before wanted another format for the table."""
        return any(one.wanted_format(name) != self.now.wanted_format(name) for one in self.before)

    def switches_acid(self, name: TableName) -> bool:
        """Tell whether a policy before had another word for the table, if it is an ACID table."""
        return any(one.acid(name) != self.now.acid(name) for one in self.before)

    def switches_subset(self, name: TableName) -> bool:
        """Tell whether a policy before chose the table's partitions by another predicate."""
        now = self.now.subset.predicate(name)
        return any(one.subset.predicate(name) != now for one in self.before)

    def concerns(self, target_name: TableName) -> bool:
        """Tell whether the table that stands at the target under this name may have to go, or to be written anew."""
        names = [one.source_of(target_name) for one in self.before]
        if not any(names):
            return False
        return (
            self.differs("properties")
            or self.renames
            or self.differs("where")
            or any(name != self.now.source_of(target_name) for name in names)
            or any(
                name
                and (
                    self.switches_data(name)
                    or self.switches_format(name)
                    or self.switches_acid(name)
                    or self.switches_subset(name)
                )
                for name in names
            )
        )

    def was_put(self, name: TableName, target_name: TableName) -> bool:
        """Tell whether a policy before gave the source's table `name` the name `target_name`."""
        return any(one.takes(name) and one.name_at_target(name) == target_name for one in self.before)

    def was_made(self, database: str, target_database: str) -> bool:
        """Tell whether a policy before had the target's database `target_database` made for the source's `database`."""
        return any(target_database in databases_of(one, database) for one in self.before)

    def is_elsewhere(self, database: str) -> bool:
        """Tell whether the database is taken now, and a policy before gave it another name at the target."""
        name = TableName(database)
        target_name = self.now.name_at_target(name)
        return self.now.takes(name) and any(one.name_at_target(name) != target_name for one in self.before)


def databases_of(admission: Admission, database: str) -> set[str]:
    """Return the databases at the target into which the policy puts tables of the source's `database`."""
    if not admission.touches_database(database):
        return set()
    apart = {new.database for old, new in admission.tables.items() if old.database == database and admission.takes(old)}
    return apart | {admission.name_at_target(TableName(database)).database}


def marked(mark: str, source: str) -> TableName | None:
    """Return the table or database of `source` that a mark names; None for an empty mark or one of another source."""
    name = table_name(*mark.removeprefix(f"{source}:").partition(".")[::2])
    return name if name.database and mark == source_mark(source, name) else None


def ordered(moves: Mapping[TableName, TableName], aside: Callable[[TableName], TableName]) -> Steps:
    """Return the moves as steps in an order in which none goes onto a name that a later step has to leave. A ring (`a`
    to `b`, `b` to `a`) is opened by a step that moves one of its tables to the name that `aside` gives."""
    remaining, steps = dict(moves), Steps()
    while remaining:
        free_names = sorted(was for was, to in remaining.items() if to not in remaining)
        steps += [(was, remaining.pop(was)) for was in free_names]
        if not free_names:
            was = min(remaining)
            hidden, to = aside(was), remaining.pop(was)
            steps.append((was, hidden))
            remaining[hidden] = to
    return steps
