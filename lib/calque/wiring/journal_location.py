"""The place of a source's journal: where capture began it, or where an operator has moved it: `JournalLocation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.config.plugs import Source
from calque.errors import Refused
from calque.model.names import EventId
from calque.ports.records import Records


@dataclass(frozen=True, slots=True)
class JournalAddress:
    """The format of a journal, and the topic where it is one of Kafka's. Where a Delta table lies the rest of the
    configuration says."""

    format: str
    brokers: str = ""
    topic: str = ""

    def __str__(self) -> str:
        return "the Delta table" if self.format == "delta" else f"topic {self.topic} on {self.brokers}"

    def same(self, other: JournalAddress) -> bool:
        """Tell whether both addresses name one journal. Two lists of brokers are of one cluster where they share a
        broker."""
        if self.format == "delta" or other.format == "delta":
            return self.format == other.format
        return self.topic == other.topic and bool(set(self.brokers.split(",")) & set(other.brokers.split(",")))

    def record(self) -> dict[str, str]:
        return {"format": self.format, "brokers": self.brokers, "topic": self.topic}


@dataclass(frozen=True, slots=True)
class FormerJournal:
    """A journal that was left for another one, when event `last` was its newest; None where it had no event."""

    place: JournalAddress
    last: EventId | None


@dataclass(frozen=True, slots=True)
class JournalLocation:
    """The place of a source's journal, as the configuration names it and as the state folder records it."""

    source: Source
    records: Records

    @property
    def record(self) -> str:
        """The name of the record."""
        return self.source.places.journal_record

    def configured(self) -> JournalAddress:
        journal = self.source.journal
        if journal.format == "delta":
            return JournalAddress("delta")
        return JournalAddress(journal.format, journal.brokers, self.source.topic())

    def recorded(self) -> JournalAddress | None:
        """Return the place in the record; None before the first capture."""
        record = self.records.read(self.record)
        return None if record is None else place_of(record)

    def place(self) -> JournalAddress:
        """Return the place of the journal that exists; before the first capture the place where it is going to be."""
        recorded, configured = self.recorded(), self.configured()
        return configured if recorded is None or recorded.same(configured) else recorded

    def former(self) -> FormerJournal | None:
        """Return the journal that the newest move left behind; None where there was no move."""
        record: Any = self.records.read(self.record) or {}
        before = record.get("left")
        return None if before is None else FormerJournal(place_of(before), before["last"])

    def require(self) -> None:
        """Raise `Refused` where a journal exists and the configuration names another one."""
        recorded, configured = self.recorded(), self.configured()
        if recorded is None or recorded.same(configured):
            return
        moved_brokers = recorded.topic == configured.topic and configured.format == "kafka"
        raise Refused(
            f"[journal] names {configured}, and what was captured is in {recorded}",
            "Targets would have to go on without what they still need",
            "Take it along by `calque journal move`, or put [journal] back"
            + (", or name one of the old brokers too if they are of the same cluster" if moved_brokers else ""),
        )

    def agree(self) -> None:
        """Check the place as `require` does, and record the configuration's brokers, by which the journal is reached
        from now on. Raises `Refused` as `require` does."""
        self.require()
        recorded, configured = self.recorded(), self.configured()
        if recorded is not None and recorded != configured:
            self.records.put(self.record, {**(self.records.read(self.record) or {}), **configured.record()})

    def move(self, to: JournalAddress, last: EventId | None) -> None:
        """Record that the journal is at `to` now. `last` is the newest event of the journal that it came from."""
        record = self.records.read(self.record) or {}
        left_journal = {**place_of(record).record(), "last": last}
        self.records.put(self.record, {**record, **to.record(), "left": left_journal})


def place_of(record: Mapping[str, Any]) -> JournalAddress:
    """Return the place that a record names. A record without a format, as early versions wrote it, names the Delta
    table."""
    return JournalAddress(
        str(record.get("format", "delta")), str(record.get("brokers", "")), str(record.get("topic", ""))
    )
