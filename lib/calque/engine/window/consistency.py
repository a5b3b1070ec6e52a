"""Which tables share a chain, and what their databases say meanwhile (`consistency`; docs/how-hops-work.md).

With `"database"` all tables and views of a database go in one chain, in the order of its events. A table that shows
another event than the rest goes alone, until both meet at a window's end; `calque.state` says so from before the first
such call until after that end. With `"table"` all go alone, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from calque.core.states.fold import groups, groups_of_databases, names_in
from calque.engine.apply.databases import Databases
from calque.engine.sides.sides import TargetSide
from calque.model.journal import Entry
from calque.model.names import EventId, TableName

BOOTSTRAPPING, REBASING = "bootstrapping", "rebasing"


class Consistency:
    """`alone` are the tables that go alone for now; a database's name stands for all its tables."""

    def __init__(self, side: TargetSide, databases: Databases) -> None:
        self.side, self.databases = side, databases
        self.by_database = side.policy.consistency == "database"
        self.alone: set[TableName] = set()

    def open(self, ahead: Iterable[TableName], *, bootstrapping: bool) -> None:
        """Take up what databases say. Which of their tables went alone is forgotten: all do, to a window's end, and so
        do tables `ahead` of the target's position."""
        if self.by_database:
            self.databases.adopt_states()
            self.databases.state_of_new = BOOTSTRAPPING if bootstrapping else ""
            self.alone = {*ahead, *map(TableName, self.databases.states)}

    def bootstrap(self, databases: Collection[str]) -> None:
        """Before anything is made at the target."""
        if self.by_database:
            self.databases.state_of_new = BOOTSTRAPPING
            for database in sorted(databases):
                self.databases.say(database, BOOTSTRAPPING)

    def goes_alone(self, names: Iterable[TableName]) -> bool:
        """Whether tables that a rename links share no chain with the rest of their databases."""
        return not self.by_database or any(
            name in self.alone or TableName(name.database) in self.alone for name in names
        )

    def chains(self, linked_groups: Sequence[list[Entry]]) -> list[list[Entry]]:
        """Groups of linked tables as they go through a window."""
        alone = [group for group in linked_groups if self.goes_alone(names_in(group))]
        others = [group for group in linked_groups if not self.goes_alone(names_in(group))]
        for group in alone:
            self.let_alone(names_in(group))
        return alone + groups_of_databases(sorted(chain.from_iterable(others), key=order_of))

    def rebase(self, database: str) -> None:
        """Say that the guarantee does not hold, before it is broken."""
        states = self.databases.states
        if self.by_database and database not in states and self.side.admission.touches_database(database):
            self.databases.say(database, REBASING)

    def let_alone(self, names: Iterable[TableName]) -> None:
        """From now on these go alone."""
        if self.by_database:
            for name in names:
                self.rebase(name.database)
                self.alone.add(name)

    def parts(self, group: Sequence[Entry], culprit: TableName | None) -> list[list[Entry]]:
        """How a group goes on that fails: the tables linked to the culprit alone, or where it is not known each of
        them. None when the group has no parts."""
        linked_groups = groups(group)
        if not self.by_database or len(linked_groups) == 1:
            return []
        databases = {TableName(name.database) for name in names_in(group)}
        linked_names = next((part for part in map(names_in, linked_groups) if culprit in part), databases)
        for database in databases:
            self.rebase(database.database)
        self.let_alone(linked_names)
        return self.chains(linked_groups)

    def meet(self, behind: Iterable[TableName]) -> None:
        """At a window's end: whoever goes alone joins the others, where no table of the database is `behind`."""
        databases = {name.database for name in behind}
        self.alone = {name for name in self.alone if name.database in databases}

    def owes(self, aside: Iterable[TableName]) -> bool:
        """Whether a database without tables that are `aside` says something still."""
        return bool(self.databases.states.keys() - {name.database for name in aside})

    def take_back(self, aside: Iterable[TableName]) -> None:
        """After a window's epoch: databases none of whose tables is `aside`, or goes alone, say nothing any more."""
        self.databases.state_of_new = ""
        broken = {name.database for name in (*aside, *self.alone)}
        for database, state in sorted(self.databases.states.items()):
            now = REBASING if database in broken else ""
            if now != state:
                self.databases.say(database, now)

    def rebasing(self) -> tuple[str, ...]:
        """For the epoch to list."""
        states = self.databases.states
        return tuple(sorted(name for name in states if states[name] == REBASING))


def order_of(entry: Entry) -> tuple[EventId, int]:
    return entry.order
