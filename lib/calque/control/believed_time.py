"""The clock by which events, pins and marks of a source are let go of for their age."""

from __future__ import annotations

from dataclasses import replace

from calque.engine.sides.clocks import BelievedClock, Reading, metastore_clock, storage_clock
from calque.engine.sides.sides import SourceSide
from calque.wiring.wiring import Wiring

ASKED = 2
"""The number of targets whose metastores are asked for the time, at most."""


def with_believed_clock(wiring: Wiring, source: str, side: SourceSide) -> SourceSide:
    """Return the source's side with a clock for removals by age: the median of this machine's clock, the clock of the
    state's storage and those of the metastores of a few targets that follow the source. No clock is read at the source,
    because reading one writes there."""
    readings: list[Reading] = [storage_clock(wiring.folder.storage(), wiring.folder.section.table_folder())]
    for name in wiring.config.targets_of(source)[:ASKED]:
        readings.append(metastore_clock(wiring.target(name).catalog_for_statements()))
    return replace(side, clock=BelievedClock(side.clock, readings))
