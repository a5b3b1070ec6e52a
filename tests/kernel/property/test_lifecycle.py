"""A table's life: what the transition table promises, and that the tables' states keep it whatever is asked of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.core.records.lifecycle import ASIDE, BEHIND, RECORDED, TRANSITIONS, UNREAD, State, Transition, after, arrows
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR, TableStates
from calque.errors import Broken
from calque.model.ledger import TableRow
from calque.model.names import TableName

NAMES = [TableName("d1", name) for name in ("a", "b", "c")]
CHANGES = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 15), st.integers(1, 40)), max_size=60)


def reachable(start: State) -> set[State]:
    found, todo = {start}, [start]
    while todo:
        for following in TRANSITIONS[todo.pop()].values():
            if following not in found:
                found.add(following)
                todo.append(following)
    return found


def test_every_state_is_reached_and_leads_back_to_live() -> None:
    assert reachable(State.OUT) == set(State)
    assert [state for state in State if State.LIVE not in reachable(state)] == []


def test_a_read_is_the_only_way_out_of_the_states_in_which_nothing_is_known() -> None:
    into_shown = {
        (state, change) for state, change, following in arrows() if state in UNREAD and following not in ASIDE
    }
    assert {change for _, change in into_shown} == {Transition.READ_LANDS, Transition.IS_GONE}


def test_a_quarantined_table_comes_back_by_a_read_alone() -> None:
    assert {change for change, to in TRANSITIONS[State.QUARANTINED].items() if to is not State.QUARANTINED} == {
        Transition.READ_IS_NEEDED
    }


def test_users_know_every_state_but_the_one_in_which_there_is_nothing() -> None:
    assert set(RECORDED) == set(State) - {State.OUT}


@pytest.mark.parametrize("state", State)
def test_a_change_that_is_not_in_the_table_is_a_defect(state: State) -> None:
    for change in set(Transition) - set(TRANSITIONS[state]):
        with pytest.raises(Broken, match=f'"{change.value}"'):
            after(state, change)


def ask(tables: TableStates, name: TableName, call: int, event: int) -> None:
    """One call that windows, reads or operators make of a table in its state, or none where they make no such call."""
    state = tables.state(name)
    shown, unread = state not in ASIDE, state in UNREAD
    match call:
        case 0 if not unread:
            tables.need_read(name, "an event", event)
        case 1:
            tables.begin_reading(name)
        case 2:
            tables.begin_copying(name)
        case 3:
            tables.fail_read(name)
        case 4 | 5 if unread and state is not State.PARKED:
            tables.land(name, event, present=call == 4)
        case 6 | 7 if shown and state is not State.PAUSED:
            tables.arrive(name, max(event, tables.cursor), present=call == 6)
        case 8 if shown and state is not State.PAUSED:
            tables.wait_for_files(name, event, event, 7)
        case 9 if shown and state is not State.PAUSED:
            tables.wait_for_copy(name, NAMES[0], "a copy", event)
        case 10 if shown and state is not State.PAUSED:
            tables.wait_for_base(name, "its base")
        case 11:
            tables.quarantine(name, "a reason", event)
        case 12 if shown:
            tables.pauses.begin(name, PAUSED_BY_OPERATOR if event % 2 else "paused with another")
        case 12 if unread:
            tables.pauses.park(name)
        case 13 if state is State.PAUSED:
            tables.pauses.catch_up(name)
        case 13 if state is State.PARKED:
            tables.pauses.unpark(name)
        case 14:
            tables.end_copy(NAMES[0])
        case 15:
            tables.cursor = max(tables.cursor, event)
            tables.end_window(tables.cursor)
            tables.pauses.end_window()


@given(CHANGES)
def test_what_is_kept_of_a_table_agrees_with_its_state(calls: list[tuple[TableName, int, int]]) -> None:
    tables = TableStates()
    for name, call, event in calls:
        ask(tables, name, call, event)
        for one in NAMES:
            status, state = tables.rows.get(one), tables.state(one)
            assert (status is None) == (state is State.OUT)
            assert (one in tables.not_live) == (state not in {State.OUT, State.LIVE})
            assert (one in tables.paused) == (state is State.PAUSED)
            assert tables.copied.get(one) == (status.copied_with if status is not None else None)
            assert tables.waiting_for_files.get(one) == (status.files_unknown_since_ns if status is not None else None)
            if one in tables.copied or one in tables.waiting_for_files:
                assert state is State.WAITING
            if state in ASIDE:
                assert one not in tables.positions
            if state in BEHIND:
                assert status is not None
                assert tables.shown(one) == status.shows
            assert state is not State.WAITING or one in tables.positions


@given(CHANGES)
def test_setting_a_table_aside_changes_nothing_of_what_it_shows(calls: list[tuple[TableName, int, int]]) -> None:
    tables = TableStates()
    shown: dict[TableName, int | None] = {}
    for name, call, event in calls:
        ask(tables, name, call, event)
        state, status = tables.state(name), tables.rows.get(name)
        if call in (0, 11) and status is not None and state in ASIDE:
            assert status.shows == shown.get(name)
        for one in NAMES:
            shown[one] = tables.shown_or_none(one)
            if tables.state(one) is State.LIVE:
                assert shown[one] == tables.positions.get(one, tables.cursor)


@given(CHANGES, st.integers(0, 40))
def test_a_new_process_knows_every_table_as_users_were_told_of_it(
    calls: list[tuple[TableName, int, int]], cursor: int
) -> None:
    tables, ledger = TableStates(), dict[TableName, TableRow]()

    def write(kept: list[TableRow], gone: list[tuple[str, str, str]]) -> None:
        ledger.update({TableName(row.database, row.table): row for row in kept})
        for _, database, table in gone:
            ledger.pop(TableName(database, table), None)

    for name, call, event in calls:
        ask(tables, name, call, event)
        if call == 15:
            tables.record(write)
    tables.record(write)
    again = TableStates()
    again.load(ledger.values(), cursor)
    for name in NAMES:
        before, now = tables.state(name), again.state(name)
        known = {State.PARKED: State.UNKNOWN, State.READING: State.UNKNOWN, State.STAGING: State.UNKNOWN}
        assert now is known.get(before, before)
        if now in BEHIND:
            assert again.rows[name].shows == tables.rows[name].shows
