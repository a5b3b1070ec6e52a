"""Sets of patterns that answer as one. Patterns without wildcards are looked up by name, the others are tried one by
one."""

from __future__ import annotations

from collections.abc import Iterable

from calque.core.policy.patterns import Glob, Pattern, covers, literal_name, matches, may_touch
from calque.model.names import TableName


class PatternSet:
    """A set of patterns, each of which means what `core.policy.patterns` says. Names are lower-case. Ten thousand
    patterns without wildcards cost no more than one."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.tables: set[TableName] = set()
        self.databases: set[str] = set()
        """Databases that a pattern such as `sales.*` chooses as a whole."""
        self.others: list[Pattern] = []
        for pattern in patterns:
            name = literal_name(pattern)
            if name is None:
                self.others.append(pattern)
            elif name.table:
                self.tables.add(name)
            else:
                assert isinstance(pattern, Glob)
                self.databases.add(name.database)
        self.touched = self.databases | {name.database for name in self.tables}

    def matches(self, name: TableName) -> bool:
        """Tell whether a pattern of the set matches the table's name."""
        return (
            name in self.tables
            or name.database in self.databases
            or any(matches(pattern, name) for pattern in self.others)
        )

    def covers(self, database: str) -> bool:
        """Tell whether a pattern of the set covers the database (`patterns.covers`)."""
        return database in self.databases or any(covers(pattern, database) for pattern in self.others)

    def may_touch(self, database: str) -> bool:
        """Tell whether a pattern of the set may match a table of the database. False is certain, True is not."""
        return database in self.touched or any(may_touch(pattern, database) for pattern in self.others)
