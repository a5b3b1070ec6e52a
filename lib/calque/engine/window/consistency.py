"""The choice which tables share a chain, and what their databases say meanwhile (`consistency`; docs/how-hops-work.md).

With `"database"` all tables and views of a database go in one chain, in the order of its events. A table that shows
another event than the rest goes alone, until both meet at a window's end. From before the first call of such a table
until after that end its database says so by its parameter `calque.state`:

    The windows are at event 90, and `db.t` is read exactly at event 97. `db` says `rebasing` before the read changes
    `t`, and until a window has ended at 97 or later and its epoch is published.

With `"table"` each group of linked tables goes alone, and no database says anything.

With `transactions = "together"` native ACID tables that one transaction of the source wrote share a chain besides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from calque.core.states.fold import groups, groups_of_databases, names_in
from calque.engine.apply.databases import Databases
from calque.engine.sides.sides import TargetSide
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName

BOOTSTRAPPING, REBASING = "bootstrapping", "rebasing"


class Consistency:
    """The tables of one target that go through windows apart from the rest of their databases. `alone` names them; a
    database's name stands for all its tables. Without `consistency = "database"` all tables go alone, and `alone` stays
    empty."""

    def __init__(self, side: TargetSide, databases: Databases) -> None:
        self.side, self.databases = side, databases
        self.by_database = side.policy.consistency == "database"
        self.alone: set[TableName] = set()

    def open(self, ahead: Iterable[TableName], *, bootstrapping: bool) -> None:
        """Take up what databases say at the target when a process starts. Which of their tables went alone is not
        recorded, so all tables of a database that says a state go alone to a window's end, and so do tables `ahead` of
        the target's position. With `bootstrapping` databases that are made from now on say so."""
        if self.by_database:
            self.databases.adopt_states()
            self.databases.state_of_new = BOOTSTRAPPING if bootstrapping else ""
            self.alone = {*ahead, *map(TableName, self.databases.states)}

    def bootstrap(self, databases: Collection[str]) -> None:
        """Have `databases`, and all that are made later, say that they are bootstrapping. Called before anything is
        made at the target."""
        if self.by_database:
            self.databases.state_of_new = BOOTSTRAPPING
            for database in sorted(databases):
                self.databases.say(database, BOOTSTRAPPING)

    def goes_alone(self, names: Iterable[TableName]) -> bool:
        """Tell whether the tables `names`, which a rename links, share no chain with the rest of their databases."""
        return not self.by_database or any(
            name in self.alone or TableName(name.database) in self.alone for name in names
        )

    def chains(self, linked_groups: Sequence[list[Entry]]) -> list[list[Entry]]:
        """Return the groups that go through a window with a chain each: groups of linked tables that go alone as they
        are, all others joined by their databases, and by the transactions of native ACID tables (`goes_together`). A
        table that is linked to one that goes alone goes alone from now on, too."""
        if not self.by_database:
            return self.joined_by_transactions(linked_groups)
        alone = [group for group in linked_groups if self.goes_alone(names_in(group))]
        others = [group for group in linked_groups if not self.goes_alone(names_in(group))]
        for group in alone:
            self.let_alone(names_in(group))
        return alone + groups_of_databases(in_order(others), self.goes_together)

    def joined_by_transactions(self, linked_groups: Sequence[list[Entry]]) -> list[list[Entry]]:
        if self.side.policy.transactions == "apart" or not self.side.admission.has_native:
            return list(linked_groups)
        return groups(in_order(linked_groups), self.goes_together)

    def goes_together(self, entry: Entry) -> bool:
        """Tell whether the table of a commit changes at one moment with the others that the commit changed."""
        name = entry.keys.table
        if entry.keys.kind is not EventKind.COMMIT or name is None or self.side.policy.transactions == "apart":
            return False
        return self.side.admission.acid(name) == "native"

    def rebase(self, database: str) -> None:
        """Have `database` say `rebasing` before one of its tables shows another event than the rest. Does nothing with
        `consistency = "table"`, for a database that says a state already, or for one of which no table may be
        replicated."""
        states = self.databases.states
        if self.by_database and database not in states and self.side.admission.touches_database(database):
            self.databases.say(database, REBASING)

    def let_alone(self, names: Iterable[TableName]) -> None:
        """Let the tables `names` go alone from now on, after their databases say so."""
        if self.by_database:
            for name in names:
                self.rebase(name.database)
                self.alone.add(name)

    def parts(self, group: Sequence[Entry], culprit: TableName | None) -> list[list[Entry]]:
        """Return the parts in which a group that failed is tried again: the tables linked to the `culprit` go alone and
        the rest stays together; where the culprit is not known, each group of linked tables goes alone. The list is
        empty when the group has no parts. Databases whose tables are to share a chain say `rebasing` first."""
        linked_groups = groups(group)
        if len(linked_groups) == 1:
            return []
        databases = {TableName(name.database) for name in names_in(group)}
        if not self.by_database:
            culprits = [part for part in linked_groups if culprit in names_in(part)]
            rest = [part for part in linked_groups if part not in culprits]
            return [*culprits, *self.joined_by_transactions(rest)] if culprits else linked_groups
        linked_names = next((part for part in map(names_in, linked_groups) if culprit in part), databases)
        for database in databases:
            self.rebase(database.database)
        self.let_alone(linked_names)
        return self.chains(linked_groups)

    def meet(self, behind: Iterable[TableName]) -> None:
        """Let tables that went alone share a chain with their databases again, at a window's end, but for databases
        that have a table `behind`."""
        databases = {name.database for name in behind}
        self.alone = {name for name in self.alone if name.database in databases}

    def owes(self, aside: Iterable[TableName]) -> bool:
        """Tell whether some database still says a state although none of its tables is `aside`."""
        return bool(self.databases.states.keys() - {name.database for name in aside})

    def take_back(self, aside: Iterable[TableName]) -> None:
        """Remove the state that databases say, after a window's epoch; databases that have a table `aside` or one that
        goes alone say `rebasing`."""
        self.databases.state_of_new = ""
        broken = {name.database for name in (*aside, *self.alone)}
        for database, state in sorted(self.databases.states.items()):
            now = REBASING if database in broken else ""
            if now != state:
                self.databases.say(database, now)

    def rebasing(self) -> tuple[str, ...]:
        """Return the names of the databases that say `rebasing`, for the epoch to list."""
        states = self.databases.states
        return tuple(sorted(name for name in states if states[name] == REBASING))


def in_order(linked_groups: Iterable[Sequence[Entry]]) -> list[Entry]:
    return sorted(chain.from_iterable(linked_groups), key=order_of)


def order_of(entry: Entry) -> tuple[EventId, int]:
    return entry.order
