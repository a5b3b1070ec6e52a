"""The record of a target's last sweep in the state folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calque.ports.records import Json

if TYPE_CHECKING:
    from calque.engine.sweep.sweep import SweepResult


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """The findings of a target's last sweep.

    `noted` are places that seemed to be needed by no one, each with the time since when (nanoseconds since 1970).
    `unknown` directories had neither a record nor an owner, and held `unknown_bytes`. `records` waited for their grace.
    `swept_ns` is when the sweep was; 0 for never.
    """

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
        """Return the record that the JSON object holds. Parts that are missing or malformed are empty, because a lost
        note only makes its place wait for its time again."""
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
