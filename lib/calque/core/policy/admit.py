"""Admission: the objects that a target takes from the source, and their names at the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from calque.core.policy.pattern_set import PatternSet
from calque.core.policy.patterns import Pattern, covers, literal_name, matches, may_touch, parse_pattern
from calque.core.policy.subset import Subset
from calque.model.names import OURS, TableName, table_name
from calque.model.policy import Policy, SmallFilesRule

T = TypeVar("T")
DELTA = "delta"
"""The value of the policy's `acid` that is also the name of a format."""
PLAIN = "plain"
"""The value of the policy's `format` that leaves a replica in the source's format."""


def natively(policy: Policy) -> Policy:
    """Return the policy of a target that can have native replicas: "auto" is "native" there."""
    acid = policy.acid
    if isinstance(acid, str):
        return replace(policy, acid="native") if acid == "auto" else policy
    words = {pattern: "native" if word == "auto" else word for pattern, word in acid.items()}
    return replace(policy, acid=words)


class Admission:
    """The decisions of one `Policy`, with its patterns compiled; frozen like the policy. The constructor raises
    `Refused` when a text of the policy is no pattern.

    Methods take names in any case and answer in lower case. A `TableName` with an empty `table` is the database itself.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.include = tuple(parse_pattern(text) for text in policy.include)
        self.exclude = tuple(parse_pattern(text) for text in policy.exclude)
        self._included, self._excluded = PatternSet(self.include), PatternSet(self.exclude)
        renames = [(_split(old), _split(new)) for old, new in policy.rename.items()]
        self.subset = Subset(policy)
        self._small_files = rules_of(policy.compact)
        self.tables = {old: new for old, new in renames if old.table}
        self.databases = {old.database: new.database for old, new in renames if not old.table}
        self._tables_by_new_name: dict[TableName, list[TableName]] = {}
        for old, new in self.tables.items():
            self._tables_by_new_name.setdefault(new, []).append(old)
        self.data = _choices(policy.data, "copy")
        """Pairs of a pattern and whether the files of its tables are copied: the first pattern that matches decides."""
        self.copies_some = EVERY_TABLE not in _texts(policy.data) or any(copies for _, copies in self.data)
        """Whether files of some table may be copied."""
        self.leaves_some = not all(copies for _, copies in self.data)
        """Whether files of some table may stay at the source."""
        self._formats = tuple((pattern, "" if text == PLAIN else text) for pattern, text in _ordered(policy.format))
        self._acid = tuple(_ordered(policy.acid))
        self.has_formats = any(text for _, text in self._formats)
        """Whether some table may have another format than at the source."""

    def takes(self, name: TableName) -> bool:
        """Tell whether the table (or the database, for a name without a table) is replicated. `exclude` wins over
        `include`, and names that begin with `_calque` are never taken."""
        name = table_name(*name)
        if not name.table:
            return self.takes_database(name.database)
        return not _ours(name) and self._included.matches(name) and not self._excluded.matches(name)

    def taken(self, names: Iterable[TableName]) -> list[TableName]:
        """Return the names among `names` that the policy takes, sorted."""
        return sorted(filter(self.takes, names))

    def takes_database(self, database: str) -> bool:
        """Tell whether the database itself is replicated: an `include` pattern covers all of it, and no `exclude`
        pattern does."""
        database = database.lower()
        return (
            not _ours(TableName(database)) and self._included.covers(database) and not self._excluded.covers(database)
        )

    def touches_database(self, database: str) -> bool:
        """Tell whether a table of the database may be replicated. False is certain; True need not be."""
        database = database.lower()
        return (
            not _ours(TableName(database))
            and self._included.may_touch(database)
            and not self._excluded.covers(database)
        )

    def takes_function(self, name: TableName) -> bool:
        """Tell whether the function is replicated: with its database, unless an `exclude` pattern matches its name."""
        name = table_name(*name)
        return self.takes_database(name.database) and not _ours(name) and not self._excluded.matches(name)

    def copies(self, name: TableName) -> bool:
        """Tell whether the files of the table (or the resources of the function) are copied. Otherwise they stay at the
        source, and the definition alone is replicated."""
        if not self.leaves_some:
            return True
        return _chosen(self.data, name, True)

    def wanted_format(self, name: TableName) -> str:
        """Return the `TableFormat.name` that the replica of the table is to have, if its definition and files permit
        it. The empty text stands for the source's format, which every table has whose files stay at the source."""
        return _chosen(self._formats, name, "") if self.has_formats and self.copies(name) else ""

    def acid(self, name: TableName) -> str:
        """Return the policy's word for the table, if it is an ACID table (`Policy.acid`)."""
        return _chosen(self._acid, name, "skip") if self.copies(name) else "skip"

    def acid_format(self, name: TableName) -> str:
        """Return the `TableFormat.name` that the replica of the table is to have, if it is an ACID table; the empty
        text stands for none."""
        word = self.acid(name)
        return word if word == DELTA else ""

    @property
    def has_native(self) -> bool:
        """Tell whether some table may be an ACID table at the target."""
        return any(word == "native" for _, word in self._acid)

    @property
    def has_auto(self) -> bool:
        """Tell whether the target's ability decides what becomes of some ACID tables (`natively`)."""
        return any(word == "auto" for _, word in self._acid)

    @property
    def managed_location(self) -> str | None:
        """Return the managed location of databases at the target; None where none has ACID tables of calque's. A
        metastore of 4.x takes managed tables below it alone, and moves those that lie directly in it with their names,
        while readers look: no table of calque's does."""
        return self.policy.warehouse if self.has_native else None

    @property
    def takes_acid(self) -> bool:
        """Tell whether some ACID table may be replicated."""
        return any(word != "skip" for _, word in self._acid)

    def leaves_some_of(self, database: str) -> bool:
        """Tell whether files of a table of the database may stay at the source. False is certain; True need not be."""
        database = database.lower()
        for pattern, copies in self.data:
            if not copies and may_touch(pattern, database):
                return True
            if copies and covers(pattern, database):
                return False
        return False

    def name_at_target(self, name: TableName) -> TableName:
        """Return the object's name at the target, whether the policy takes it or not. A table's own rename wins over
        its database's."""
        name = table_name(*name)
        return self.tables.get(name) or TableName(self.databases.get(name.database, name.database), name.table)

    def small_files(self, name: TableName) -> SmallFilesRule | None:
        """Return the rule for small files of the table's new partitions; None where they are not combined."""
        return self._small_files(table_name(*name))

    def source_of(self, target_name: TableName) -> TableName | None:
        """Return the source object that the policy writes under `target_name`; None when it writes none there.

        For a database's name: the source database that it stands for, taken as a whole or only in part
        (`touches_database`). Where several source objects share the name, the one with a rename of its own wins, then
        one of a renamed database.
        """
        normalized_name = table_name(*target_name)
        for name in self._candidates(normalized_name):
            admitted = self.takes(name) if name.table else self.touches_database(name.database)
            if admitted and self.name_at_target(name) == normalized_name:
                return name
        return None

    def collisions(self, names: Iterable[TableName]) -> list[tuple[TableName, TableName]]:
        """Return the admitted objects among `names` that share a name at the target, as pairs: the first in order, and
        a later one."""
        first: dict[TableName, TableName] = {}
        collisions = []
        for name in dict.fromkeys(table_name(*name) for name in names):
            if self.takes(name) and first.setdefault(self.name_at_target(name), name) != name:
                collisions.append((first[self.name_at_target(name)], name))
        return collisions

    def provable_collisions(self) -> list[tuple[TableName, TableName]]:
        """Return the collisions among the objects that the policy names without wildcards; a wildcard proves none."""
        return self.collisions(self.named())

    def named(self) -> list[TableName]:
        """Return the source objects that include patterns and renames name without wildcards."""
        literals = [name for name in map(literal_name, self.include) if name]
        return [*literals, *self.tables, *map(TableName, self.databases)]

    def _candidates(self, target_name: TableName) -> list[TableName]:
        by_table_rename = self._tables_by_new_name.get(target_name, [])
        by_database_rename = [
            TableName(old, target_name.table) for old, new in self.databases.items() if new == target_name.database
        ]
        return [*by_table_rename, *by_database_rename, target_name]


EVERY_TABLE = "*.*"
Choices = tuple[tuple[Pattern, bool], ...]


def _texts(setting: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the setting by pattern; a setting that is one text counts for every table."""
    return {EVERY_TABLE: setting} if isinstance(setting, str) else setting


def _choices(setting: str | Mapping[str, str], value: str) -> Choices:
    """Return each pattern, the longest first, with whether the setting has `value` for it."""
    return tuple((pattern, each == value) for pattern, each in _ordered(setting))


def _ordered(setting: str | Mapping[str, str]) -> list[tuple[Pattern, str]]:
    """Return each pattern with the setting's value for it, the longest pattern first."""
    ordered = sorted(_texts(setting).items(), key=lambda item: (-len(item[0]), item))
    return [(parse_pattern(text), each) for text, each in ordered]


def _chosen(choices: Sequence[tuple[Pattern, T]], name: TableName, otherwise: T) -> T:
    name = table_name(*name)
    return next((choice for pattern, choice in choices if matches(pattern, name)), otherwise)


def _split(text: str) -> TableName:
    database, _, table = text.partition(".")
    return table_name(database, table)


def _ours(name: TableName) -> bool:
    return name.database.startswith(OURS) or name.table.startswith(OURS)


def rules_of(compact: Mapping[str, SmallFilesRule]) -> Callable[[TableName], SmallFilesRule | None]:
    """Return a function from a table's name at the source to its rule for small files: of the patterns that match, the
    longest decides, and None means that no pattern matches."""
    rules = [(parse_pattern(text), compact[text]) for text in sorted(compact, key=len, reverse=True)]
    return lambda name: next((rule for pattern, rule in rules if matches(pattern, name)), None)
