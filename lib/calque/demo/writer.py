"""The writer of the demo, which keeps changing a source: one random change after the other, all that Hive's users do to
tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from calque.demo.changes import CHANGES, Changes
from calque.demo.source import Source


@dataclass(frozen=True, slots=True)
class Step:
    """A change that was made. `name` is the changed object's, after a rename the new one."""

    number: int
    change: str
    name: str


class Writer:
    """A writer that makes one of `changes` (names of `CHANGES`, by default all) to `source` at each `step`.

    Equal seeds at sources that began alike make equal changes. `counts` says how many of each were made.
    """

    def __init__(self, source: Source, seed: int = 0, changes: Iterable[str] = tuple(CHANGES)) -> None:
        self.source = source
        self.counts: Counter[str] = Counter()
        self._random = Random(seed)
        self._changes = Changes(source, self._random)
        self._names = tuple(changes)
        self._weights = tuple(CHANGES[name][0] for name in self._names)

    def step(self) -> Step:
        """Make one change, from its first file to its last event, and return it. An error of the metastore is
        raised."""
        while True:
            (change,) = self._random.choices(self._names, self._weights)
            _, make = CHANGES[change]
            name = make(self._changes)
            if name is not None:
                self.counts[change] += 1
                return Step(self.counts.total(), change, str(name))
