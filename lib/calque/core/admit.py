"""What a target takes from the source, and what it is called there."""

from __future__ import annotations

from collections.abc import Iterable

from calque.core.patterns import Pattern, covers, literal_name, matches, may_touch, parse_pattern
from calque.model.names import OURS, TableName, table_name
from calque.model.policy import Policy


class Admission:
    """A policy's names, ready to be asked; frozen like the policy. Raises `Refused` when a pattern is none.

    Names of any case may be asked; answers are lower-case. A name without a table is the database itself.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.include = tuple(parse_pattern(text) for text in policy.include)
        self.exclude = tuple(parse_pattern(text) for text in policy.exclude)
        renames = [(_split(old), _split(new)) for old, new in policy.rename.items()]
        self.tables = {old: new for old, new in renames if old.table}
        self.databases = {old.database: new.database for old, new in renames if not old.table}

    def takes(self, name: TableName) -> bool:
        """Whether the table (or the database, for a name without one) is replicated. Exclude wins; what is ours by its
        name never is."""
        name = table_name(*name)
        if not name.table:
            return self.takes_database(name.database)
        return not _ours(name) and _any(self.include, name) and not _any(self.exclude, name)

    def taken(self, names: Iterable[TableName]) -> list[TableName]:
        """Those that the policy takes, sorted."""
        return sorted(filter(self.takes, names))

    def takes_database(self, database: str) -> bool:
        """Whether the database itself is replicated: a pattern covers it all, and none excludes it all."""
        database = database.lower()
        return (
            not _ours(TableName(database))
            and any(covers(pattern, database) for pattern in self.include)
            and not any(covers(pattern, database) for pattern in self.exclude)
        )

    def touches_database(self, database: str) -> bool:
        """Whether some table of the database may be replicated. False is certain; True need not be."""
        database = database.lower()
        return (
            not _ours(TableName(database))
            and any(may_touch(pattern, database) for pattern in self.include)
            and not any(covers(pattern, database) for pattern in self.exclude)
        )

    def takes_function(self, name: TableName) -> bool:
        """Whether the function is replicated: with its database, unless a pattern excludes its name."""
        name = table_name(*name)
        return self.takes_database(name.database) and not _ours(name) and not _any(self.exclude, name)

    def name_at_target(self, name: TableName) -> TableName:
        """The name there, admitted or not: a table's own rename wins over its database's."""
        name = table_name(*name)
        return self.tables.get(name) or TableName(self.databases.get(name.database, name.database), name.table)

    def source_of(self, target_name: TableName) -> TableName | None:
        """The admitted object whose name there this is; None when the policy writes nothing under it.

        For a database's name: the database it stands for, taken itself or only touched. Of colliding sources the one
        renamed most directly.
        """
        normalized_name = table_name(*target_name)
        for name in self._candidates(normalized_name):
            admitted = self.takes(name) if name.table else self.touches_database(name.database)
            if admitted and self.name_at_target(name) == normalized_name:
                return name
        return None

    def collisions(self, names: Iterable[TableName]) -> list[tuple[TableName, TableName]]:
        """Admitted objects among `names` that share a name at the target: (the first in order, each later one)."""
        first: dict[TableName, TableName] = {}
        collisions = []
        for name in dict.fromkeys(table_name(*name) for name in names):
            if self.takes(name) and first.setdefault(self.name_at_target(name), name) != name:
                collisions.append((first[self.name_at_target(name)], name))
        return collisions

    def provable_collisions(self) -> list[tuple[TableName, TableName]]:
        """Collisions among the objects that the policy itself names; a wildcard proves nothing."""
        return self.collisions(self.named())

    def named(self) -> list[TableName]:
        """Source objects that include patterns and renames name without wildcards."""
        literals = [name for name in map(literal_name, self.include) if name]
        return [*literals, *self.tables, *map(TableName, self.databases)]

    def _candidates(self, target_name: TableName) -> list[TableName]:
        by_table_rename = [old for old, new in self.tables.items() if new == target_name]
        by_database_rename = [
            TableName(old, target_name.table) for old, new in self.databases.items() if new == target_name.database
        ]
        return [*by_table_rename, *by_database_rename, target_name]


def _split(text: str) -> TableName:
    database, _, table = text.partition(".")
    return table_name(database, table)


def _ours(name: TableName) -> bool:
    return name.database.startswith(OURS) or name.table.startswith(OURS)


def _any(patterns: tuple[Pattern, ...], name: TableName) -> bool:
    return any(matches(pattern, name) for pattern in patterns)
