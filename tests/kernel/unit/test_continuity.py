"""Whether rows continue a journal: what a writer does not know of its own appends is no other writer's."""

from __future__ import annotations

import pytest

from calque.core.records.continuity import check_continues
from calque.errors import Broken, Unavailable


@pytest.mark.parametrize(("last", "first"), [(None, 1), (None, 50), (100, 101)])
def test_rows_that_begin_behind_the_end_continue_it(last: int | None, first: int) -> None:
    check_continues(last, first, "hq.events", given_up=120)


@pytest.mark.parametrize("last", [101, 120])
def test_what_arrives_after_its_append_was_given_up_is_looked_at_anew(last: int) -> None:
    with pytest.raises(Unavailable, match="An append that was given up has arrived after all"):
        check_continues(last, 101, "hq.events", given_up=120)


@pytest.mark.parametrize(
    ("last", "first", "given_up"), [(120, 101, 0), (121, 101, 120), (100, 102, 120), (100, 90, 99)]
)
def test_whatever_else_is_there_or_missing_is_another_process_s(last: int, first: int, given_up: int) -> None:
    with pytest.raises(Broken, match="Another process appended to it"):
        check_continues(last, first, "hq.events", given_up)
