"""The message keys of tables: a table's key is its incarnation at the source, as the journal tells it.

A table that was created in the journal has the event of its CREATE for a key. Any other table has the name under which
the journal met it first, in lower case. A rename takes the key along. So the key follows from the journal alone, and
every channel of the journal gives the same one. Brokers keep messages of one topic and key in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName, table_name

Change = tuple[EventId, str]
"""An event and a key: from that event on the name means the table of that key. An empty key says that no table has the
name."""


class TableKeys:
    """The keys of all tables by name and event. `upto` is the last event of the journal that is taken into account."""

    def __init__(self, upto: EventId = 0) -> None:
        self.upto = upto
        self._changes: dict[TableName, list[Change]] = {}

    def copy(self) -> TableKeys:
        other = TableKeys(self.upto)
        other._changes = {name: list(changes) for name, changes in self._changes.items()}
        return other

    def take(self, entry: Entry) -> None:
        """Take the journal's next entry into account. An entry up to `upto` changes nothing."""
        keys = entry.keys
        if entry.event_id <= self.upto:
            return
        self.upto = entry.event_id
        if keys.table is None:
            return
        if keys.kind is EventKind.CREATE_TABLE:
            self._change(keys.table, entry.event_id, str(entry.event_id))
        elif keys.kind is EventKind.DROP_TABLE:
            self._change(keys.table, entry.event_id, "")
        elif keys.kind is EventKind.RENAME_TABLE and keys.other is not None:
            key = self.key(keys.other, entry.event_id)
            self._change(keys.other, entry.event_id, "")
            self._change(keys.table, entry.event_id, key)

    def pass_over(self, upto: EventId) -> None:
        """Move `upto` to this event, because the events up to it concern the name of no table. It never moves back."""
        self.upto = max(self.upto, upto)

    def key(self, name: TableName, event_id: EventId) -> str:
        """Return the key of the table that had the name at the event; where no table had it then, the key of the last
        one before. A name that the journal never told of is its own key."""
        changes = self._changes.get(name)
        if changes is None:
            return str(name)
        place = bisect_right(changes, event_id, key=lambda change: change[0])
        for _, key in reversed(changes[:place]):
            if key:
                return key
        return str(name)

    def key_before(self, name: TableName, event_id: EventId) -> str:
        """Return the key of the table that had the name just before the event, for example before its DROP."""
        return self.key(name, event_id - 1)

    def forget(self, floor: EventId) -> None:
        """Drop what no question about events from `floor` on needs. Questions about earlier events may be answered
        wrongly afterwards."""
        for name, changes in list(self._changes.items()):
            place = bisect_right(changes, floor, key=lambda change: change[0])
            kept = changes[place:]
            before = next((change for change in reversed(changes[:place]) if change[1]), None)
            is_default = before is None or before[1] == str(name)
            if kept:
                self._changes[name] = kept if is_default or before is None else [before, *kept]
            elif is_default or before is None or not changes[-1][1]:
                del self._changes[name]
            else:
                self._changes[name] = [before]

    def record(self) -> dict[str, Any]:
        """Return the keys as a JSON document, from which `restored` makes them again."""
        changes = {str(name): [list(change) for change in changes] for name, changes in self._changes.items()}
        return {"upto": self.upto, "changes": changes}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> TableKeys:
        keys = cls(int(record["upto"]))
        for text, changes in record["changes"].items():
            name = table_name(*text.partition(".")[::2])
            keys._changes[name] = [(int(event_id), str(key)) for event_id, key in changes]
        return keys

    @classmethod
    def of(cls, after: EventId, entries: Iterable[Entry]) -> TableKeys:
        keys = cls(after)
        for entry in entries:
            keys.take(entry)
        return keys

    def _change(self, name: TableName, event_id: EventId, key: str) -> None:
        self._changes.setdefault(name, []).append((event_id, key))
