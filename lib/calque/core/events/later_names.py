"""Names that a table and its partitions have after later events.

A facet is read from the source after its table has been shown already, so under the names that its objects have by
then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from calque.model.journal import Entry, EventKind
from calque.model.names import TableName


@dataclass(frozen=True, slots=True)
class LaterNames:
    """The present names of a table and its partitions, by the names that they had at first. `table` is None when the
    table is gone. `partitions` has only partitions that are gone (None) or have another name."""

    table: TableName | None
    partitions: Mapping[str, str | None] = field(default_factory=dict)

    def partition(self, name: str) -> str | None:
        """Return the present name of the partition that had the name `name` at first; None when it is gone."""
        return self.partitions.get(name, name)

    def after(self, entries: Iterable[Entry]) -> LaterNames:
        """Return the names after the next events; entries of other tables are passed over."""
        names = self
        for entry in entries:
            if names.table is not None and names.table in (entry.keys.table, entry.keys.other):
                names = names.after_one(entry)
        return names

    def after_one(self, entry: Entry) -> LaterNames:
        """Return the names after one event of the table."""
        keys = entry.keys
        match keys.kind:
            case EventKind.RENAME_TABLE if keys.other == self.table:
                return replace(self, table=keys.table)
            case EventKind.DROP_TABLE | EventKind.CREATE_TABLE:
                return LaterNames(None)
            case EventKind.DROP_PARTITIONS:
                return self.renamed(dict.fromkeys(keys.partitions))
            case EventKind.RENAME_PARTITION:
                return self.renamed(dict(zip(keys.others, keys.partitions, strict=True)))
            case _:
                return self

    def renamed(self, names: Mapping[str, str | None]) -> LaterNames:
        """Return the names after partitions were renamed or dropped: `names` has the new name by the present one, None
        for a partition that is dropped."""
        first_names = {now: first for first, now in self.partitions.items() if now is not None}
        changed = {
            first_names.get(old, old): new
            for old, new in names.items()
            if old in first_names or old not in self.partitions
        }
        return replace(self, partitions={**self.partitions, **changed})
