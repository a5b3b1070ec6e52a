"""Which journal a state folder has: where capture began it, or where it was moved to since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.adapters.control import ControlStore
from calque.config import Config
from calque.errors import Refused
from calque.model.names import EventId

RECORD = "journal"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a journal is; a Delta table's is for the rest of the configuration to say."""

    format: str
    brokers: str = ""
    topic: str = ""

    def __str__(self) -> str:
        return "the Delta table" if self.format == "delta" else f"topic {self.topic} on {self.brokers}"

    def same(self, other: Place) -> bool:
        """Whether both are one journal: lists of brokers that share one are of one cluster."""
        if self.format == "delta" or other.format == "delta":
            return self.format == other.format
        return self.topic == other.topic and bool(set(self.brokers.split(",")) & set(other.brokers.split(",")))

    def record(self) -> dict[str, str]:
        return {"format": self.format, "brokers": self.brokers, "topic": self.topic}


@dataclass(frozen=True, slots=True)
class Left:
    """A journal that was moved away from, when event `last` was its newest."""

    place: Place
    last: EventId | None


def configured(config: Config) -> Place:
    if config.journal.format == "delta":
        return Place("delta")
    return Place(config.journal.format, config.journal.brokers, config.topic())


def recorded(control: ControlStore) -> Place | None:
    """None before the first capture."""
    record = control.read(RECORD)
    return None if record is None else place_of(record)


def place(config: Config, control: ControlStore) -> Place:
    """The journal that there is; before the first capture the one that there will be."""
    found, wanted = recorded(control), configured(config)
    return wanted if found is None or found.same(wanted) else found


def left(control: ControlStore) -> Left | None:
    """What the newest move left behind."""
    record: Any = control.read(RECORD) or {}
    before = record.get("left")
    return None if before is None else Left(place_of(before), before["last"])


def require(config: Config, control: ControlStore) -> None:
    """`Refused` unless the configuration names the journal that there is, if there is one."""
    found, wanted = recorded(control), configured(config)
    if found is None or found.same(wanted):
        return
    moved_brokers = found.topic == wanted.topic and wanted.format == "kafka"
    raise Refused(
        f"[journal] names {wanted}, and what was captured is in {found}",
        "targets would have to go on without what they still need",
        "Take it along by `calque journal move`, or put [journal] back"
        + (", or name one of the old brokers too if they are of the same cluster" if moved_brokers else ""),
    )


def agree(config: Config, control: ControlStore) -> None:
    """The same, and the journal is found by the configuration's brokers from now on."""
    require(config, control)
    found, wanted = recorded(control), configured(config)
    if found is not None and found != wanted:
        control.put(RECORD, {**(control.read(RECORD) or {}), **wanted.record()})


def moved(control: ControlStore, to: Place, last: EventId | None) -> None:
    """Record that the journal is there now; `last` is the newest event of the one that it came from."""
    record = control.read(RECORD) or {}
    came_from = place_of(record)
    control.put(RECORD, {**record, **to.record(), "left": {**came_from.record(), "last": last}})


def place_of(record: Mapping[str, Any]) -> Place:
    """Records of versions that knew one format only do not say it."""
    return Place(str(record.get("format", "delta")), str(record.get("brokers", "")), str(record.get("topic", "")))
