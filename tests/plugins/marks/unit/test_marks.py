"""When a mark is done at a target, and what is said where it is not: every state, on values alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.engine.sides.table_states import PAUSED_BY_OPERATOR
from calque.model.gaps import Gap, GapCause
from calque.model.journal import Entry, EventKind, Keys
from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName
from calque.plugins.marks.core import (
    Done,
    NotDone,
    OutsidePolicy,
    TargetView,
    at_source,
    at_target,
    best,
    covering,
    expired,
    followed,
    lost_by,
)
from calque.plugins.marks.model import Mark, Trail

T, U = TableName("sales", "t"), TableName("sales", "u")
DAY = 86_400 * 10**9


def mark(number: int = 1, event_id: int = 100, **partition: str) -> Mark:
    return Mark(number, T, f"r{event_id}", partition or {"ds": "1"}, event_id, 0, DAY)


def entry(event_id: int, kind: EventKind, table: TableName = T, other: TableName | None = None) -> Entry:
    return Entry(event_id, 0, kind.value.upper(), Keys(kind, table, other))


def row(state: TableState, shows: int | None, reason: str = "", name: TableName = T) -> TableRow:
    return TableRow(*name, state, shows, reason)


def view(
    *rows: TableRow,
    position: int | None = 110,
    takes: Callable[[TableName], bool] = lambda _: True,
    **others: object,
) -> TargetView:
    return TargetView("dr", position, {one.name: one for one in rows}, takes, **others)  # type: ignore[arg-type]


QUIET = Trail(((100, T),), 120)
LIVE = row(TableState.LIVE, 7)


def test_a_live_table_shows_the_position_and_has_what_was_marked_before_it() -> None:
    assert at_target(mark(), QUIET, view(LIVE)) == Done(mark(), T, 110)
    assert at_target(mark(event_id=110), Trail(((110, T),), 120), view(LIVE)) == Done(mark(event_id=110), T, 110)


def test_a_row_of_the_next_epoch_shows_more_than_the_position() -> None:
    assert at_target(mark(), QUIET, view(row(TableState.LIVE, 105), position=90)) == Done(mark(), T, 105)


def test_a_target_of_definitions_alone_says_so() -> None:
    assert at_target(mark(), QUIET, view(LIVE, definitions_only=lambda _: True)) == Done(
        mark(), T, 110, definitions_only=True
    )


def test_a_waiting_table_that_shows_the_mark_s_event_is_done() -> None:
    assert at_target(mark(), QUIET, view(row(TableState.WAITING, 100))) == Done(mark(), T, 100)


PAUSED = row(TableState.WAITING, 90, PAUSED_BY_OPERATOR)


@pytest.mark.parametrize(
    ("shown", "state", "reason"),
    [
        (view(LIVE, position=99), "behind", "dr shows event 99, the mark stands behind event 100"),
        (view(LIVE, position=99, is_paused=True), "paused", "An operator has paused dr at event 99, the mark"),
        (view(PAUSED), "paused", "sales.t at dr is paused by an operator"),
        (view(row(TableState.WAITING, 99, "why")), "waiting", "sales.t at dr is waiting, shows event 99: why"),
        (view(row(TableState.UNKNOWN, 110, "why")), "unknown", "sales.t at dr is unknown, shows event 110: why"),
        (view(row(TableState.READING, None)), "reading", "sales.t at dr is reading"),
        (view(row(TableState.STAGING, 110)), "staging", "sales.t at dr is staging, shows event 110"),
        (view(row(TableState.QUARANTINED, 110, "why")), "quarantined", "sales.t at dr is quarantined, shows event 110"),
        (view(), "missing", "dr has no table sales.t at event 110"),
        (view(position=None), "starting", "dr has no epoch yet"),
        (view(LIVE, position=None), "starting", "dr has no epoch yet"),
        (view(LIVE, behind_gap=True), "repairing", "dr is being repaired behind a gap in the log"),
        (view(LIVE, has_new_policy=lambda _: True), "policy", "The policy of dr was changed, and no run has taken"),
    ],
)
def test_what_keeps_a_mark_from_being_done_is_named(shown: TargetView, state: str, reason: str) -> None:
    verdict = at_target(mark(), QUIET, shown)
    assert isinstance(verdict, NotDone)
    assert (verdict.state, verdict.mark) == (state, mark())
    assert verdict.reason.startswith(reason)


def test_a_table_outside_the_policy_is_refused() -> None:
    assert at_target(mark(), QUIET, view(LIVE, takes=lambda _: False)) == OutsidePolicy(T, mark())


def test_a_renamed_table_is_done_under_its_new_name_when_the_target_shows_the_rename() -> None:
    trail = followed(mark().trail, [entry(105, EventKind.RENAME_TABLE, U, T)], 120)
    assert trail == Trail(((100, T), (105, U)), 120)
    assert (trail.name_at(104), trail.name_at(105), trail.name_at(121)) == (T, U, None)
    renamed = row(TableState.LIVE, 7, name=U)
    assert at_target(mark(), trail, view(renamed)) == Done(mark(), U, 110)
    before = at_target(mark(), trail, view(LIVE, position=104))
    assert isinstance(before, NotDone)
    assert (before.state, before.reason) == ("behind", "dr shows event 104, and event 105 renames to sales.u")
    assert at_source(mark(), trail) == Done(mark(), U, 100)


def test_a_table_that_came_back_to_its_name_is_done_when_the_target_shows_that() -> None:
    there_and_back = [entry(105, EventKind.RENAME_TABLE, U, T), entry(108, EventKind.RENAME_TABLE, T, U)]
    trail = followed(mark().trail, there_and_back, 120)
    assert at_target(mark(), trail, view(LIVE, position=108)) == Done(mark(), T, 108)
    before = at_target(mark(), trail, view(LIVE, position=104))
    assert isinstance(before, NotDone)
    assert before.state == "behind"


@pytest.mark.parametrize(
    "last",
    [
        entry(105, EventKind.DROP_TABLE),
        entry(105, EventKind.CREATE_TABLE),
        entry(105, EventKind.DROP_DATABASE, TableName("sales")),
        entry(105, EventKind.RENAME_TABLE, T, U),
        entry(105, EventKind.UNKNOWN),
        entry(105, EventKind.UNKNOWN, U, T),
    ],
)
def test_a_table_that_is_dropped_made_anew_or_not_to_be_known_ends_its_marks(last: Entry) -> None:
    others = [
        entry(90, EventKind.DROP_TABLE),
        entry(101, EventKind.INSERT),
        entry(102, EventKind.DROP_TABLE, U),
        entry(103, EventKind.RENAME_TABLE, TableName("x", "y"), U),
        entry(104, EventKind.DROP_DATABASE, TableName("hr")),
    ]
    trail = followed(mark().trail, [*others, last, entry(106, EventKind.CREATE_TABLE)], 120)
    assert trail == Trail(((100, T),), 120, ended_by=105)
    for verdict in (at_source(mark(), trail), at_target(mark(), trail, view(LIVE))):
        assert isinstance(verdict, NotDone)
        assert (verdict.state, verdict.reason) == ("ended", "sales.t was dropped or made anew by event 105")


def test_a_set_is_covered_by_a_larger_one_and_not_by_a_smaller_one() -> None:
    day, region, late = mark(1, ds="1"), mark(2, ds="1", region="us"), mark(3, ds="2")
    assert covering([day, region, late], {"ds": "1", "region": "us"}, 0) == [region, day]
    assert covering([day, region, late], {"ds": "1"}, 0) == [day]
    assert covering([day], {"ds": "1"}, DAY) == []
    assert expired([day, late], DAY) == [1, 3]
    assert expired([day], DAY - 1) == []


def test_of_several_marks_the_done_one_counts_then_what_can_be_waited_for() -> None:
    done, behind, gone = Done(mark(1), T, 110), NotDone("behind", ""), NotDone("ended", "")
    outside = OutsidePolicy(T, mark())
    assert best([behind, done, gone]) == done
    assert best([gone, outside, behind]) == behind
    assert best([gone, outside]) == outside
    assert best([]) is None


def test_a_log_that_went_back_behind_a_mark_takes_its_history_away() -> None:
    back, purged = Gap(1, 300, 90, GapCause.WENT_BACK, ""), Gap(2, 90, 400, GapCause.PURGED, "")
    later = Mark(2, T, "r100", {"ds": "1"}, 100, 0, DAY, after_gap=1)
    assert lost_by(mark(), [back, purged]) == back
    assert lost_by(later, [back, purged]) is None
    assert lost_by(mark(event_id=80), [back]) is None
