"""Which events the versions of a Delta replica show."""

from __future__ import annotations

import pytest

from calque.errors import Refused
from calque.model.names import TableName
from calque.model.plan import ShownState
from calque.plugins.delta_replicas.core.log import ShownVersion
from calque.plugins.delta_replicas.core.versions import TableVersion, table_versions, version_showing

NAME = TableName("sales", "orders")


def commit(version: int, event_id: int, first_event: int) -> tuple[int, int, ShownVersion]:
    return version, version * 1000, ShownVersion(ShownState(event_id, first_event), 1)


COMMITS = [commit(0, 10, 10), commit(1, 30, 20), commit(2, 30, 31), commit(4, 50, 40)]


def spans(shows: int) -> list[tuple[int, int, int]]:
    return [(one.version, one.from_event, one.event_id) for one in table_versions(COMMITS, shows)]


def test_a_version_shows_all_events_until_the_first_that_changed_the_table() -> None:
    assert spans(60) == [(0, 10, 19), (1, 30, 39), (2, 30, 39), (4, 50, 60)]


def test_the_newest_version_shows_at_least_its_own_event() -> None:
    assert spans(45)[-1] == (4, 50, 50)


def test_a_version_says_when_it_was_committed() -> None:
    assert table_versions(COMMITS, 60)[1] == TableVersion(1, 30, 39, "1970-01-01T00:00:01.000+00:00")


@pytest.mark.parametrize(("event_id", "version"), [(10, 0), (19, 0), (30, 2), (39, 2), (50, 4), (60, 4)])
def test_the_newest_version_that_shows_an_event_is_found(event_id: int, version: int) -> None:
    assert version_showing(NAME, table_versions(COMMITS, 60), event_id).version == version


@pytest.mark.parametrize(
    ("event_id", "why"),
    [
        (5, "Version 0 shows events 10 to 19. Older versions are forgotten"),
        (20, "Version 0 shows events 10 to 19, version 1 shows events 30 to 39. The target went"),
        (61, "Version 4 shows events 50 to 60. Wait until"),
    ],
)
def test_an_event_without_a_version_is_refused_with_its_neighbours(event_id: int, why: str) -> None:
    with pytest.raises(Refused, match=f"No version of sales.orders shows event {event_id}. {why}"):
        version_showing(NAME, table_versions(COMMITS, 60), event_id)


def test_a_log_without_versions_of_calque_shows_no_event() -> None:
    with pytest.raises(Refused, match="Its log has no version of calque's"):
        version_showing(NAME, [], 1)
