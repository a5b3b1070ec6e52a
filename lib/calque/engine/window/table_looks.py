"""The tables of a window's groups as the target has them, read for many groups by one call in place of one for each
table."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from calque.core.defects import ObjectDefect, work_on
from calque.core.images.table_layout import committed_format
from calque.core.states.fold import names_in
from calque.engine.sides.sides import TargetSide
from calque.engine.target.observe import LookedTables
from calque.engine.window.groups import Group
from calque.errors import Refused, Unavailable
from calque.model.hive import Table
from calque.model.journal import EventKind
from calque.model.names import EventId, TableName

AHEAD = 32
"""The number of groups whose tables are read together. They are begun at once or soon after, so a look is hardly older
than the one that a group with many hops would have taken itself."""


class TableLooks:
    """The tables of groups that are to be prepared, by the groups' first events, in the order in which the groups are
    begun. When the first group of a batch asks, its tables are read together with those of the `ahead` - 1 that follow.
    Safe from several threads."""

    def __init__(self, side: TargetSide, groups: Iterable[Group], ahead: int = AHEAD) -> None:
        self.side, self.ahead = side, ahead
        self.waiting = [group for group in groups if group.ready is None and bears_delay(side, group)]
        """Groups whose tables were not read yet, the next one first."""
        self.looks: dict[EventId, LookedTables] = {}
        self.looking = threading.Lock()

    def take(self, group: Group) -> LookedTables:
        """Return the group's tables, each look once. A group whose tables are missing here reads them itself: it asks
        again, bears no delay, or its tables could not be read with the others, or have a log of commits."""
        with self.looking:
            if any(one is group for one in self.waiting[: self.ahead]):
                batch, self.waiting = self.waiting[: self.ahead], self.waiting[self.ahead :]
                self.look(batch)
            return self.looks.pop(group.first, {})

    def look(self, groups: Iterable[Group]) -> None:
        names_by_group = {group.first: self.side.admission.taken(names_in(group.entries)) for group in groups}
        by_database: dict[str, set[TableName]] = {}
        for name in {name for names in names_by_group.values() for name in names}:
            by_database.setdefault(self.side.admission.name_at_target(name).database, set()).add(name)
        tables: dict[TableName, Table | None] = {}
        for database, names in by_database.items():
            at_target = {name: self.side.admission.name_at_target(name).table for name in sorted(names)}
            try:
                with work_on("tables of several groups"):
                    headers = self.side.catalog.headers(database, list(at_target.values()))
            except (Unavailable, Refused, ObjectDefect):
                # The group whose table it was meets the same again.
                continue
            tables |= {name: headers.get(table) for name, table in at_target.items()}
        plain = {name: table for name, table in tables.items() if table is None or not committed_format(table)}
        for first, own_names in names_by_group.items():
            self.looks[first] = {name: plain[name] for name in own_names if name in plain}


def bears_delay(side: TargetSide, group: Group) -> bool:
    """Tell whether the group's tables may be read somewhat before the work on it begins. Not where a table is dropped,
    because another one may have got its name meanwhile, and not where files stay at the source, because a table that
    was changed meanwhile could have calls reach them (`target.armed_tables`)."""
    drops = any(entry.keys.kind is EventKind.DROP_TABLE for entry in group.entries)
    return not drops and all(map(side.admission.copies, names_in(group.entries)))
