"""The position of a channel, and the keys of its tables, as records of the state folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.engine.sides.journal_reads import PAGE, reach
from calque.model.names import EventId, Span
from calque.plugins.notices.core.table_keys import TableKeys
from calque.ports import Journal
from calque.ports.records import Json, Records

SNAPSHOT_EVENTS = 20_000
"""The events after which the keys of tables are recorded again, so that a start reads no more of the journal than
that."""


@dataclass(frozen=True, slots=True)
class Position:
    """The place up to which a channel has sent everything. `gap` is the number of the log's gap behind which it is,
    `event_id` the last event that is sent, `epoch` the last epoch of a target, and `mark` the last mark; marks that
    `pending` names are not sent yet."""

    gap: int = 0
    event_id: EventId = 0
    mark: int = 0
    epoch: int = 0
    pending: tuple[int, ...] = ()

    def record(self) -> dict[str, Json]:
        return {
            "gap": self.gap,
            "event_id": self.event_id,
            "mark": self.mark,
            "epoch": self.epoch,
            "pending": list(self.pending),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Position:
        return cls(
            int(record["gap"]),
            int(record["event_id"]),
            int(record["mark"]),
            int(record["epoch"]),
            tuple(record["pending"]),
        )


@dataclass(frozen=True, slots=True)
class KeyRecords:
    """The recorded keys of a channel's tables. The record `name` is the channel's own; the record `base`, which all
    channels share, has the keys of what the journal has forgotten."""

    records: Records
    name: str
    base: str

    def keys(self, journal: Journal, gap: int, begin: EventId, upto: EventId) -> TableKeys:
        """Return the keys of all tables up to event `upto`: the newest recorded ones, brought up to date from the
        journal, which begins after event `begin`."""
        keys = self.newest(gap, upto) or TableKeys(begin)
        keys.pass_over(min(reach(journal), upto))
        return follow(journal, keys, upto)

    def newest(self, gap: int, upto: EventId) -> TableKeys | None:
        """Return the recorded keys that go farthest, but not beyond event `upto`; None where no record fits the gap and
        the event."""
        found = [restored for name in (self.name, self.base) if (restored := self.read(name, gap)) is not None]
        usable = [keys for keys in found if keys.upto <= upto]
        return max(usable, key=lambda keys: keys.upto, default=None)

    def read(self, name: str, gap: int) -> TableKeys | None:
        record: Any = self.records.read(name)
        return TableKeys.restored(record) if record is not None and record["gap"] == gap else None

    def put(self, gap: int, keys: TableKeys) -> None:
        self.records.put(self.name, {"gap": gap, **keys.record()})


def follow(journal: Journal, keys: TableKeys, upto: EventId) -> TableKeys:
    """Bring `keys` up to event `upto`, which the journal must have, and return the same object."""
    while keys.upto < upto:
        page_end = min(keys.upto + PAGE, upto)
        for entry in journal.entries(Span(keys.upto, page_end)):
            keys.take(entry)
        keys.pass_over(page_end)
    return keys
