"""By which clock events, pins and marks of a source are let go of for their age."""

from __future__ import annotations

from dataclasses import replace

from calque.engine.sides.clocks import BelievedClock, Reading, metastore_clock, storage_clock
from calque.engine.sides.sides import SourceSide
from calque.wiring.wiring import Wiring

ASKED = 2
"""Targets whose metastores are asked for the time."""


def with_believed_clock(wiring: Wiring, source: str, side: SourceSide) -> SourceSide:
    """The source's side, for what lets go of things by their age. The storage of the state, and metastores of targets
    that follow the source, are asked for the time: nothing is written at a source."""
    readings: list[Reading] = [storage_clock(wiring.folder.storage(), wiring.folder.section.table_folder())]
    for name in wiring.config.targets_of(source)[:ASKED]:
        readings.append(metastore_clock(wiring.target(name).catalog_for_statements()))
    return replace(side, clock=BelievedClock(side.clock, readings))
