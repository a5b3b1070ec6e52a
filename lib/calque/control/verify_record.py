"""The record of a target's newest comparison with its source in the state folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from calque.model.state_places import TargetPlaces
from calque.ports.records import Json, Records

if TYPE_CHECKING:
    from calque.engine.verify.report import Verification


def note_verification(control: Records, verification: Verification, *, is_whole: bool) -> None:
    """Write the record of a comparison that has just ended. `is_whole` is False where it was asked for some tables
    only."""
    record: dict[str, Json] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "event_id": verification.event_id,
        "differences": len(verification.differences),
        "set_aside": len(verification.set_aside),
        "whole": is_whole,
    }
    control.put(TargetPlaces(verification.target).verify_record, record)


def newest_verification(control: Records, target: str) -> Mapping[str, Json] | None:
    """Return the record of the target's newest comparison, as the status has it; None where there was none."""
    return control.read(TargetPlaces(target).verify_record)
