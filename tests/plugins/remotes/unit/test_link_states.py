"""The states of links that `SHOW REMOTE TABLES` prints."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from calque.core.policy.admit import Admission
from calque.model.ledger import StateRow, TableRow, TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.remotes.run.link_states import ProjectionState, of_database, of_table

NAME = TableName("shop", "orders")
NOT_FOLLOWED = "No `calque run` follows links"


def row(state: TableState, shows: int | None = None) -> Mapping[TableName, StateRow]:
    return {NAME: TableRow(*NAME, state, shows, "why", 3)}


def projection(
    rows: Mapping[TableName, StateRow], *, position: int | None = None, followed: bool = True, state: str = ""
) -> ProjectionState:
    return ProjectionState(Admission(Policy("links", "far")), rows, position, state, "it is away", {}, followed)


@pytest.mark.parametrize(
    ("rows", "position", "following", "alone"),
    [
        ({}, None, ("reading", None, ""), ("waiting", None, NOT_FOLLOWED)),
        (row(TableState.READING, 4), 9, ("reading", 4, "why"), ("waiting", 4, NOT_FOLLOWED)),
        (row(TableState.UNKNOWN), 9, ("reading", None, "why"), ("waiting", None, NOT_FOLLOWED)),
        (row(TableState.LIVE), 9, ("live", 9, "why"), ("live", 9, "why")),
        (row(TableState.QUARANTINED, 4), 9, ("set_aside", 4, "why"), ("set_aside", 4, "why")),
    ],
)
def test_a_table_that_is_to_be_read_waits_where_no_process_follows_links(
    rows: Mapping[TableName, StateRow],
    position: int | None,
    following: tuple[str, int | None, str],
    alone: tuple[str, int | None, str],
) -> None:
    assert of_table(projection(rows, position=position), NAME) == following
    assert of_table(projection(rows, position=position, followed=False), NAME) == alone


def test_a_database_waits_likewise_until_it_has_a_position() -> None:
    assert of_database(projection({}), NAME) == ("reading", None, "")
    assert of_database(projection({}, followed=False), NAME) == ("waiting", None, NOT_FOLLOWED)
    assert of_database(projection({}, position=9, followed=False), NAME) == ("live", 9, "")


def test_trouble_with_the_remote_catalog_comes_before_all_else() -> None:
    away = projection({}, state="unreachable", followed=False)
    assert of_table(away, NAME) == of_database(away, NAME) == ("unreachable", None, "it is away")
