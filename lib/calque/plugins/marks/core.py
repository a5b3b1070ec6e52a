"""The question whether what a mark speaks of is at a target, and the trail of a mark's table through the events after
it.

A mark stands behind an event. A target that shows its table at that event, or at a later one, has every partition that
matched at the source then, or has dropped it by an event that it shows, because what a target shows of a table is a
state of the source. So the question is which event the target shows of *that* table.

    A mark of `t` with `ds=1` stands behind event 80. A target that shows `t` at event 85 has every partition with
    `ds=1` that the source had at event 80, except those that events 81 to 85 dropped. Where event 82 dropped `t` and
    event 84 made another one, the trail ended at 82, and the new `t` proves nothing about the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from calque.core.events.effects import MAY_REBIND_NAMES
from calque.core.records.reached_state import is_paused
from calque.model.gaps import Gap, GapCause
from calque.model.journal import Entry, EventKind
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark, Trail

# What became of the table


def followed(trail: Trail, entries: Iterable[Entry], upto: EventId) -> Trail:
    """Return the trail continued up to event `upto`. `entries` are all events between the trail's end and `upto` that
    may concern names, ascending; other events may be among them."""
    names, ended_by = list(trail.names), trail.ended_by
    for entry in entries:
        if ended_by is not None or not trail.upto < entry.event_id <= upto:
            continue
        new_name = name_after(names[-1][1], entry)
        if new_name is None:
            ended_by = entry.event_id
        elif new_name != names[-1][1]:
            names.append((entry.event_id, new_name))
    return Trail(tuple(names), max(upto, trail.upto), ended_by)


def name_after(name: TableName, entry: Entry) -> TableName | None:
    """Return the name that the table of that name has after the event; None where the table is gone then, or may be
    another one."""
    keys = entry.keys
    if keys.kind is EventKind.DROP_DATABASE:
        return None if keys.table is not None and keys.table.database == name.database else name
    if keys.kind in (EventKind.RENAME_TABLE, EventKind.UNKNOWN) and keys.other == name:
        return keys.table if keys.kind is EventKind.RENAME_TABLE else None
    if keys.table != name:
        return name
    # A message that can't be read may be a rename. A name that another table takes must have been free before.
    return None if keys.kind in MAY_REBIND_NAMES else name


def says_more(trail: Trail, known: Trail) -> bool:
    """Tell whether the trail goes beyond what is known of the table."""
    return known.ended_by is None and (trail.upto, len(trail.names)) > (known.upto, len(known.names))


def lost_by(mark: Mark, gaps: Sequence[Gap]) -> Gap | None:
    """Return the gap that took the history in which the mark stands, or in which its table was followed, because the
    log went back; None for none."""
    went_back = (gap for gap in gaps if gap.cause is GapCause.WENT_BACK and gap.number > mark.after_gap)
    return next((gap for gap in went_back if gap.at < mark.trail.upto), None)


# What a target shows


@dataclass(frozen=True, slots=True)
class TargetView:
    """A target as it is known at one moment. `position` is the event that its live tables show, None where it has no
    epoch; it was read before `rows`, the ledger's rows of its tables by their names at the source. `takes` says whether
    its policy takes a name with all partitions. `has_new_policy` says whether that policy and one under which the
    target may have been written differ over the name. `behind_gap` says that events are lost that the target has not
    dealt with."""

    name: str
    position: EventId | None
    rows: Mapping[TableName, TableRow]
    takes: Callable[[TableName], bool]
    has_new_policy: Callable[[TableName], bool] = field(default=lambda _: False)
    is_paused: bool = False
    behind_gap: bool = False
    definitions_only: Callable[[TableName], bool] = field(default=lambda _: False)
    """The function that says whether the files of a table stay at the source."""

    def shows(self, name: TableName) -> EventId | None:
        """Return the event as of which the table is shown; None where it shows no state of the source, or that is not
        known."""
        row = self.rows.get(name)
        if row is None or self.position is None or row.state not in (TableState.LIVE, TableState.WAITING):
            return None
        # Rows may be those of the next epoch already: a live table of it shows more than the position.
        return max(row.shows or 0, self.position) if row.state is TableState.LIVE else row.shows


@dataclass(frozen=True, slots=True)
class Done:
    """The verdict that a set is done. `shows` is the event that the target shows of the table (at the source: the
    mark's own). `table` is the table's name at the source by now. With `definitions_only` the rows are those at the
    source's location, as they are now."""

    mark: Mark
    table: TableName
    shows: EventId
    definitions_only: bool = False


@dataclass(frozen=True, slots=True)
class NotDone:
    """The verdict that a set is not done. `state` is a word for programs: `unmarked`, `ended`, `lost`, `renamed`, a
    table's state, `paused`, `behind`, `missing`, `starting`, `repairing` or `policy`. `mark` is the newest that was
    looked at, if there is one."""

    state: str
    reason: str
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class OutsidePolicy:
    """The verdict that the target does not take the table, so that waiting does not help."""

    table: TableName
    mark: Mark


Verdict = Done | NotDone | OutsidePolicy


def at_source(mark: Mark, trail: Trail) -> Verdict:
    """Return the verdict on a mark at the source, where a mark is done from the moment it is made until its table
    ends."""
    return ended(mark, trail) or Done(mark, trail.name, mark.event_id)


def at_target(mark: Mark, trail: Trail, view: TargetView) -> Verdict:
    """Return the verdict whether all that the mark speaks of is at the target. `trail` must reach at least as far as
    the view's position."""
    if (end := ended(mark, trail)) is not None:
        return end
    if view.has_new_policy(trail.name):
        return NotDone("policy", f"The policy of {view.name} was changed, and no run has taken that up", mark)
    if view.behind_gap:
        return NotDone("repairing", f"{view.name} is being repaired behind a gap in the log", mark)
    # The target may already have made the call of a rename whose event it does not show yet: a reader finds the old
    # name, or the new one. So the newest rename must be shown, also one back to a name that the table had before.
    shows, since = view.shows(trail.name), trail.names[-1][0]
    if shows is not None and max(mark.event_id, since) <= shows <= trail.upto and view.takes(trail.name):
        return Done(mark, trail.name, shows, view.definitions_only(trail.name))
    if not view.takes(trail.name):
        return OutsidePolicy(trail.name, mark)
    return why_not(mark, trail, view)


def ended(mark: Mark, trail: Trail) -> NotDone | None:
    if trail.ended_by is None:
        return None
    return NotDone("ended", f"{trail.name} was dropped or made anew by event {trail.ended_by}", mark)


def why_not(mark: Mark, trail: Trail, view: TargetView) -> NotDone:
    """Say what keeps a table that the target takes from being done."""
    behind = f"the mark stands behind event {mark.event_id}"
    row = next((view.rows[name] for _, name in reversed(trail.names) if name in view.rows), None)
    if view.position is None and row is None:
        return NotDone("starting", f"{view.name} has no epoch yet", mark)
    if row is not None and is_paused(row):
        return NotDone(
            "paused", f"{row.name} at {view.name} is {row.reason}; it shows {event(row.shows)}, {behind}", mark
        )
    if row is not None and row.state is not TableState.LIVE:
        reason = f": {row.reason}" if row.reason else ""
        shown = f", shows {event(row.shows)}" if row.shows is not None else ""
        return NotDone(row.state.value, f"{row.name} at {view.name} is {row.state.value}{shown}{reason}", mark)
    if view.is_paused:
        return NotDone("paused", f"An operator has paused {view.name} at {event(view.position)}, {behind}", mark)
    if view.position is None:
        return NotDone("starting", f"{view.name} has no epoch yet", mark)
    since, name = trail.names[-1]
    if mark.event_id <= view.position < since:
        return NotDone("behind", f"{view.name} shows {event(view.position)}, and event {since} renames to {name}", mark)
    if view.position < mark.event_id:
        return NotDone("behind", f"{view.name} shows {event(view.position)}, {behind}", mark)
    return NotDone("missing", f"{view.name} has no table {trail.name} at {event(view.position)}", mark)


def event(event_id: EventId | None) -> str:
    return "nothing" if event_id is None else f"event {event_id}"


# Which mark


def covering(marks: Iterable[Mark], partition: Mapping[str, str], now_ns: int) -> list[Mark]:
    """Return the marks that have not expired at `now_ns` and speak of all partitions that match, newest first."""
    return sorted(
        (mark for mark in marks if mark.expires_at_ns > now_ns and mark.covers(partition)),
        key=lambda mark: -mark.number,
    )


def expired(marks: Iterable[Mark], now_ns: int) -> list[int]:
    """Return the numbers of the marks that have expired at `now_ns`."""
    return [mark.number for mark in marks if mark.expires_at_ns <= now_ns]


def best(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Choose among the verdicts on several marks that cover one question, given newest first: one that is done, else
    what the newest waits for. None for no verdicts. A verdict of a table that has ended counts least, because another
    table may have its name."""
    return min(verdicts, key=rank, default=None)


def rank(verdict: Verdict) -> int:
    match verdict:
        case Done():
            return 0
        case NotDone(state="ended" | "lost" | "renamed"):
            return 3
        case NotDone():
            return 1
        case OutsidePolicy():
            return 2
        case other:
            assert_never(other)
