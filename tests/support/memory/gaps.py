"""Gaps in memory: the port `Gaps` for tests."""

from __future__ import annotations

from collections.abc import Sequence

from calque.core.records.continuity import next_gap, settled_by
from calque.model.gaps import Gap


class MemoryGaps:
    """Nothing outlives it."""

    def __init__(self) -> None:
        self._gaps: list[Gap] = []
        self._settled = 0

    def recorded(self) -> Sequence[Gap]:
        return list(self._gaps)

    def add(self, gap: Gap) -> None:
        if next_gap(self._gaps, gap):
            self._gaps.append(gap)

    def settled(self) -> int:
        return self._settled

    def settle(self, number: int) -> None:
        self._settled = settled_by(self._gaps, self._settled, number)
