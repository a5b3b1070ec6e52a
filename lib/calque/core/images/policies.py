"""Under which policy a replica was made: written down with it, and compared when it is taken up again."""

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
    return PolicyTerms(**{name: getattr(policy, name) for name in TERMS})


def policy_of(terms: PolicyTerms, now: Policy) -> Policy:
    """The policy with these terms; what they do not say it has in common with `now`."""
    return replace(now, **{name: term for name in TERMS if (term := getattr(terms, name)) is not None})


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
        return any(getattr(one.policy, key) != getattr(self.now.policy, key) for one in self.before for key in keys)

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
        """The same of a function, or whether its resources are to lie elsewhere."""
        return self.now.takes_function(name) and not all(
            one.takes_function(name) and one.copies(name) is self.now.copies(name) for one in self.before
        )

    def switches_data(self, name: TableName) -> bool:
        """Whether the table's files are to be copied now, and were not by each of the policies, or the other way."""
        return any(one.copies(name) is not self.now.copies(name) for one in self.before)

    def switches_format(self, name: TableName) -> bool:
        """Whether the table is to have another format now than under each of the policies."""
        return any(one.wanted_format(name) != self.now.wanted_format(name) for one in self.before)

    def switches_subset(self, name: TableName) -> bool:
        """Whether other partitions of the table are to be there than under each of the policies."""
        now = self.now.subset.predicate(name)
        return any(one.subset.predicate(name) != now for one in self.before)

    def concerns(self, target_name: TableName) -> bool:
        """Whether a table that stands at the target under this name may have to go, or to be written anew."""
        names = [one.source_of(target_name) for one in self.before]
        if not any(names):
            return False
        return (
            self.differs("properties")
            or self.renames
            or self.differs("where")
            or any(name != self.now.source_of(target_name) for name in names)
            or any(
                name and (self.switches_data(name) or self.switches_format(name) or self.switches_subset(name))
                for name in names
            )
        )

    def was_put(self, name: TableName, target_name: TableName) -> bool:
        """Whether one of the policies put the source's table there."""
        return any(one.takes(name) and one.name_at_target(name) == target_name for one in self.before)

    def was_made(self, database: str, target_database: str) -> bool:
        """Whether one of the policies had the target's database `target_database` made for the source's `database`."""
        return any(target_database in databases_of(one, database) for one in self.before)

    def is_elsewhere(self, database: str) -> bool:
        """Whether the database is taken now, and one of the policies called it by another name."""
        name = TableName(database)
        target_name = self.now.name_at_target(name)
        return self.now.takes(name) and any(one.name_at_target(name) != target_name for one in self.before)


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
