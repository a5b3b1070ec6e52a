"""How far a channel has come, as records of the state folder keep it."""

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
"""After so many events the keys of tables are recorded again: a start reads no more of the journal than that."""


@dataclass(frozen=True, slots=True)
class Position:
    """Everything up to here is sent: behind that gap of the log the events up to `event_id`, of a target the epochs up
    to `epoch`, and the marks up to `mark` but for those that `pending` names."""

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
    """The keys of a channel's tables, as far as they were recorded: below `name` those of the channel itself, below
    `base` those of what the journal has let go of, which all channels share."""

    records: Records
    name: str
    base: str

    def keys(self, journal: Journal, gap: int, begin: EventId, upto: EventId) -> TableKeys:
        """Those of all tables up to the event; the journal begins after event `begin`."""
        keys = self.newest(gap, upto) or TableKeys(begin)
        keys.pass_over(min(reach(journal), upto))
        return follow(journal, keys, upto)

    def newest(self, gap: int, upto: EventId) -> TableKeys | None:
        """The recorded ones that know most, and nothing beyond the event."""
        found = [restored for name in (self.name, self.base) if (restored := self.read(name, gap)) is not None]
        usable = [keys for keys in found if keys.upto <= upto]
        return max(usable, key=lambda keys: keys.upto, default=None)

    def read(self, name: str, gap: int) -> TableKeys | None:
        record: Any = self.records.read(name)
        return TableKeys.restored(record) if record is not None and record["gap"] == gap else None

    def put(self, gap: int, keys: TableKeys) -> None:
        self.records.put(self.name, {"gap": gap, **keys.record()})


def follow(journal: Journal, keys: TableKeys, upto: EventId) -> TableKeys:
    """The keys brought up to the event, which the journal has."""
    while keys.upto < upto:
        page_end = min(keys.upto + PAGE, upto)
        for entry in journal.entries(Span(keys.upto, page_end)):
            keys.take(entry)
        keys.pass_over(page_end)
    return keys
