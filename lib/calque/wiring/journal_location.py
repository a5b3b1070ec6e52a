"""Which journal a source has: where capture began it, or where it was moved to since."""

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
    """Where a journal is; a Delta table's is for the rest of the configuration to say."""

    format: str
    brokers: str = ""
    topic: str = ""

    def __str__(self) -> str:
        return "the Delta table" if self.format == "delta" else f"topic {self.topic} on {self.brokers}"

    def same(self, other: JournalAddress) -> bool:
        """Whether both are one journal: lists of brokers that share one are of one cluster."""
        if self.format == "delta" or other.format == "delta":
            return self.format == other.format
        return self.topic == other.topic and bool(set(self.brokers.split(",")) & set(other.brokers.split(",")))

    def record(self) -> dict[str, str]:
        return {"format": self.format, "brokers": self.brokers, "topic": self.topic}


@dataclass(frozen=True, slots=True)
class FormerJournal:
    """A journal that was moved away from, when event `last` was its newest."""

    place: JournalAddress
    last: EventId | None


@dataclass(frozen=True, slots=True)
class JournalLocation:
    """What the configuration says of a source's journal, and what the state folder records."""

    source: Source
    records: Records

    @property
    def record(self) -> str:
        """The record's name."""
        return self.source.places.journal_record

    def configured(self) -> JournalAddress:
        journal = self.source.journal
        if journal.format == "delta":
            return JournalAddress("delta")
        return JournalAddress(journal.format, journal.brokers, self.source.topic())

    def recorded(self) -> JournalAddress | None:
        """None before the first capture."""
        record = self.records.read(self.record)
        return None if record is None else place_of(record)

    def place(self) -> JournalAddress:
        """The journal that there is; before the first capture the one that there will be."""
        recorded, configured = self.recorded(), self.configured()
        return configured if recorded is None or recorded.same(configured) else recorded

    def former(self) -> FormerJournal | None:
        """What the newest move left behind."""
        record: Any = self.records.read(self.record) or {}
        before = record.get("left")
        return None if before is None else FormerJournal(place_of(before), before["last"])

    def require(self) -> None:
        """`Refused` unless the configuration names the journal that there is, if there is one."""
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
        """The same, and the journal is reached by the configuration's brokers from now on."""
        self.require()
        recorded, configured = self.recorded(), self.configured()
        if recorded is not None and recorded != configured:
            self.records.put(self.record, {**(self.records.read(self.record) or {}), **configured.record()})

    def move(self, to: JournalAddress, last: EventId | None) -> None:
        """Record that the journal is there now; `last` is the newest event of the one that it came from."""
        record = self.records.read(self.record) or {}
        left_journal = {**place_of(record).record(), "last": last}
        self.records.put(self.record, {**record, **to.record(), "left": left_journal})


def place_of(record: Mapping[str, Any]) -> JournalAddress:
    """Records of versions that knew one format only do not say it."""
    return JournalAddress(
        str(record.get("format", "delta")), str(record.get("brokers", "")), str(record.get("topic", ""))
    )
