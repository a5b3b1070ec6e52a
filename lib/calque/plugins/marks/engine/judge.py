"""The judge of whether a set is done, at the source or at a target, by all marks that speak of it."""

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
"""The fewest marks that are followed together, by one pass over the events."""


@dataclass(slots=True)
class MarkJudge:
    """A judge of a source's marks. It remembers how far it followed their tables. `view` reads what a target shows;
    with None the question is whether the source has the set."""

    source: SourceSide
    marks: MarkStore
    view: Callable[[], TargetView] | None = None
    _trails: dict[int, Trail] = field(default_factory=dict)
    _gaps: int = 0

    def verdict(self, name: TableName, partition: Mapping[str, str]) -> Verdict:
        """Return the verdict on all partitions that match, of the table that has the name at the source now. Raises
        `Unavailable`."""
        candidates = covering(self.marks.after(0), partition, self.source.clock.now_ns())
        unmarked = NotDone("unmarked", f"{condition_of(partition)} of {name} was not marked, nor a larger set")
        if not candidates:
            return unmarked
        # The view is read before the marks' tables are followed, so that the trails reach at least as far as it.
        view = self.view() if self.view is not None else None
        upto = self.upto(view)
        self.follow(candidates, upto)
        verdicts = [verdict for mark in candidates if (verdict := self.on_table(name, mark, view, upto)) is not None]
        return best(verdicts) or unmarked

    def of(self, marks: Iterable[Mark]) -> list[Verdict]:
        """Return the verdict on each of the marks, in their order."""
        return self.of_view(list(marks), self.view() if self.view is not None else None)

    def of_view(self, marks: Sequence[Mark], view: TargetView | None) -> list[Verdict]:
        upto = self.upto(view)
        self.follow(marks, upto)
        return [self.on(mark, view, upto) for mark in marks]

    def knows(self, name: TableName) -> bool:
        """Tell whether a table that was marked has the name, or had it."""
        upto, marks = self.upto(self.view() if self.view is not None else None), self.marks.after(0)
        self.follow(marks, upto)
        trails = (self.trail(mark, upto) or mark.trail for mark in marks)
        return any(name in {known_name for _, known_name in trail.names} for trail in trails)

    def judge(self, marks: Sequence[Mark]) -> Mapping[int, bool]:
        """Return, by the mark's number, True for a mark that is done by now and False for a mark that never will be.
        Others are left out. A set that the target already shows as its next epoch will have it waits for that epoch."""
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
        """Return the event to which tables have to be followed: at the source its newest one; at a target the last one
        that it may show, for which the source need not answer."""
        if view is None:
            return self.source.log.current()
        # Behind a gap that the target has not dealt with, its position is of another history.
        position = 0 if view.behind_gap else view.position or 0
        return max(position, self.source.journal.last() or 0)

    def on_table(self, name: TableName, mark: Mark, view: TargetView | None, upto: EventId) -> Verdict | None:
        """Return the verdict on the mark, for the table of that name; None where the mark is of another table."""
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
        """Follow the tables of all marks to event `upto` by one pass over the events. Where events are lost it changes
        nothing, and each mark is followed by itself when it is looked at."""
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
        """Return the gaps of the log. Where there is a new one, forget what was followed before, because it may be of
        another history."""
        gaps = self.source.gaps.recorded() if self.source.gaps is not None else ()
        if len(gaps) != self._gaps:
            self._trails, self._gaps = {}, len(gaps)
        return gaps

    def trail(self, mark: Mark, upto: EventId) -> Trail | None:
        """Return what became of the mark's table up to event `upto`; None where events that would tell it are lost."""
        if lost_by(mark, self.take_up_gaps()) is not None:
            return None
        try:
            self._trails[mark.number] = trail = extended(self.source, self.known(mark), upto)
        except EventsLost:
            return None
        return trail
