"""Is a set done: at the source, or at a target? Of all marks that speak of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import assert_never

from calque.engine.sides.sides import SourceSide
from calque.model.gaps import Gap
from calque.model.names import EventId, TableName
from calque.plugins.marks.core import (
    Done,
    NotDone,
    OutsidePolicy,
    TargetView,
    Verdict,
    at_source,
    at_target,
    best,
    covering,
    followed,
    lost_by,
)
from calque.plugins.marks.engine.follow_tables import EventsLost, extended, naming_entries
from calque.plugins.marks.model import Mark, Trail, condition_of
from calque.plugins.marks.ports import MarkStore

FEW = 2
"""Marks that are followed by one pass over the events."""


@dataclass(slots=True)
class MarkJudge:
    """Reads a source's marks, and remembers how far it followed their tables. `view` says what a target shows; without
    one the question is whether the source has the set."""

    source: SourceSide
    marks: MarkStore
    view: Callable[[], TargetView] | None = None
    _trails: dict[int, Trail] = field(default_factory=dict)
    _gaps: int = 0

    def verdict(self, name: TableName, partition: Mapping[str, str]) -> Verdict:
        """On all partitions of the table, as it is called at the source now, that match. Raises `Unavailable`."""
        candidates = covering(self.marks.after(0), partition, self.source.clock.now_ns())
        # Before the marks' tables are followed, so that these reach at least as far.
        view = self.view() if self.view is not None else None
        upto = self.upto(view)
        self.follow(candidates, upto)
        verdicts = [verdict for mark in candidates if (verdict := self.on_table(name, mark, view, upto)) is not None]
        unmarked = f"{condition_of(partition)} of {name} was not marked, nor a larger set"
        return best(verdicts) or NotDone("unmarked", unmarked)

    def of(self, marks: Iterable[Mark]) -> list[Verdict]:
        """On each of the marks."""
        return self.of_view(list(marks), self.view() if self.view is not None else None)

    def of_view(self, marks: Sequence[Mark], view: TargetView | None) -> list[Verdict]:
        upto = self.upto(view)
        self.follow(marks, upto)
        return [self.on(mark, view, upto) for mark in marks]

    def knows(self, name: TableName) -> bool:
        """Whether a table that was marked has the name, or had it."""
        upto, marks = self.upto(self.view() if self.view is not None else None), self.marks.after(0)
        self.follow(marks, upto)
        trails = (self.trail(mark, upto) or mark.trail for mark in marks)
        return any(name in {known_name for _, known_name in trail.names} for trail in trails)

    def judge(self, marks: Sequence[Mark]) -> Mapping[int, bool]:
        """By number: True for those that are done by now, False for those that never will be; the others are left
        out. A set of which the target has already written down what its next epoch shows waits for that epoch."""
        view = self.view() if self.view is not None else None
        known: dict[int, bool] = {}
        for mark, verdict in zip(marks, self.of_view(marks, view), strict=True):
            match verdict:
                case Done(shows=shows):
                    if view is None or shows <= (view.position or 0):
                        known[mark.number] = True
                case NotDone(state="ended" | "lost") | OutsidePolicy():
                    known[mark.number] = False
                case NotDone():
                    pass
                case other:
                    assert_never(other)
        return known

    def upto(self, view: TargetView | None) -> EventId:
        """How far tables are to be followed. At the source: to its newest event. At a target: to all that it may show;
        whether the source is there does not matter then."""
        if view is None:
            return self.source.log.current()
        # Behind a gap that the target has not dealt with, its position is of another history.
        position = 0 if view.behind_gap else view.position or 0
        return max(position, self.source.journal.last() or 0)

    def on_table(self, name: TableName, mark: Mark, view: TargetView | None, upto: EventId) -> Verdict | None:
        """On the mark, as one of the table of that name; None where it is another's."""
        trail = self.trail(mark, upto)
        if trail is None or trail.name == name:
            return self.on(mark, view, upto) if trail is not None or mark.table == name else None
        if name not in (old_name for _, old_name in trail.names):
            return None
        return NotDone("renamed", f"The table that was marked is called {trail.name} by now", mark)

    def on(self, mark: Mark, view: TargetView | None, upto: EventId) -> Verdict:
        trail = self.trail(mark, upto)
        if trail is None:
            reason = f"Events behind event {mark.event_id}, where {mark.table} was marked, are lost: mark it again"
            return NotDone("lost", reason, mark)
        return at_source(mark, trail) if view is None else at_target(mark, trail, view)

    def follow(self, marks: Sequence[Mark], upto: EventId) -> None:
        """Follow the tables of all of them by one pass over the events. Where some of these are lost, each mark is
        followed by itself when it is looked at."""
        self.take_up_gaps()
        trails = {mark.number: self.known(mark) for mark in marks}
        open_trails = {key: trail for key, trail in trails.items() if trail.ended_by is None and trail.upto < upto}
        if len(open_trails) < FEW:
            return
        with suppress(EventsLost):
            entries = list(naming_entries(self.source, min(trail.upto for trail in open_trails.values()), upto))
            self._trails |= {key: followed(trail, entries, upto) for key, trail in open_trails.items()}

    def known(self, mark: Mark) -> Trail:
        return max(self._trails.get(mark.number, mark.trail), mark.trail, key=lambda trail: trail.upto)

    def take_up_gaps(self) -> Sequence[Gap]:
        """What was followed before another gap may be of another history."""
        gaps = self.source.gaps.recorded() if self.source.gaps is not None else ()
        if len(gaps) != self._gaps:
            self._trails, self._gaps = {}, len(gaps)
        return gaps

    def trail(self, mark: Mark, upto: EventId) -> Trail | None:
        """What became of the mark's table; None where that is not to be known any more."""
        if lost_by(mark, self.take_up_gaps()) is not None:
            return None
        try:
            self._trails[mark.number] = trail = extended(self.source, self.known(mark), upto)
        except EventsLost:
            return None
        return trail
