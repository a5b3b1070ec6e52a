"""What the last sweep of a target found, as a record of the state folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calque.engine.sweep.sweep import SweepResult
from calque.ports.records import Json


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """`noted` is what nobody seemed to need, with the time since when (nanoseconds). Of directories with
    neither a record nor an owner there were so many, with so many bytes; `records` waited for their grace. `swept_ns`
    is when it was; 0 for never."""

    noted: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    unknown_bytes: int = 0
    records: int = 0
    swept_ns: int = 0

    @staticmethod
    def of(result: SweepResult, now_ns: int) -> SweepRecord:
        unknown_bytes = sum(directory.bytes for directory in result.unknown)
        return SweepRecord(result.noted, len(result.unknown), unknown_bytes, result.records, now_ns)

    @staticmethod
    def of_json(record: Mapping[str, Json] | None) -> SweepRecord:
        """What is no such record is none: what is noted is no loss."""
        values: Mapping[str, Any] = record or {}
        noted = values.get("noted")
        notes = noted if isinstance(noted, Mapping) else {}
        numbers = [values.get(name, 0) for name in ("unknown", "unknown_bytes", "records", "swept_ns")]
        return SweepRecord(
            {name: since for name, since in notes.items() if isinstance(since, int)},
            *(number if isinstance(number, int) else 0 for number in numbers),
        )

    def as_json(self) -> Mapping[str, Json]:
        return {
            "noted": dict(self.noted),
            "unknown": self.unknown,
            "unknown_bytes": self.unknown_bytes,
            "records": self.records,
            "swept_ns": self.swept_ns,
        }
