"""From which event of a source a replica's lag counts."""

from __future__ import annotations

import pytest

from calque.core.events.rows import rows_of_events
from calque.model.names import Span, TableName
from calque.plugins.clusters.api.lag import found_on
from support.memory.journal import MemoryJournal
from support.sources.logs import Log, plain

LAST = 5_000
"""More than are looked at together."""


@pytest.fixture(scope="module")
def journal() -> MemoryJournal:
    """Events on a table: 1, 2,001 and 4,001; all others are on another one."""
    log, table, other = Log(), plain(), plain("other")
    for event_id in range(1, LAST + 1):
        log.create(table if event_id % 2_000 == 1 else other)
    made = MemoryJournal()
    made.append(rows_of_events(log.events))
    return made


@pytest.mark.parametrize(
    ("shows", "oldest", "newest"), [(0, 1, 4001), (1, 2001, 4001), (2001, 4001, 4001), (4001, None, None)]
)
def test_the_oldest_and_the_newest_event_on_a_table_that_a_replica_lacks_are_found(
    journal: MemoryJournal, shows: int, oldest: int | None, newest: int | None
) -> None:
    middle = 3_000
    for parts in ([(journal, Span(shows, LAST))], [(journal, Span(shows, middle)), (journal, Span(middle, LAST))]):
        if shows <= middle or len(parts) == 1:
            found = [found_on(parts, TableName("d1", "t"), newest=newest) for newest in (False, True)]
            assert [one.event_id if one is not None else None for one in found] == [oldest, newest]
