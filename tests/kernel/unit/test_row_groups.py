"""How much of a data file must be read for one row of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.parquet import GROUP_BYTES, row_groups
from calque.core.events.rows import rows_of_events
from calque.model.names import Span
from support.sources.heavy import MEGABYTE, heavy_events


def table(*sizes: int) -> pa.Table:
    return pa.table({"key": list(range(len(sizes))), "text": ["x" * size for size in sizes]})


@pytest.mark.parametrize(
    "sizes",
    [
        [100] * 5000,
        [*[100] * 3000, 10 * MEGABYTE, *[100] * 3000],
        [*[100] * 300, *[10 * MEGABYTE] * 3, *[100] * 300, 10 * MEGABYTE],
        [MEGABYTE, 100] * 20,
        [3 * GROUP_BYTES],
    ],
    ids=["small", "one large", "several large", "mixed", "alone"],
)
def test_a_row_group_holds_no_more_than_is_to_be_read_for_one_row(sizes: list[int]) -> None:
    rows = table(*sizes)
    groups = list(row_groups([rows.slice(0, 7), rows.slice(7)]))
    assert pa.concat_tables(groups).equals(rows)
    assert all(group.nbytes < 2 * GROUP_BYTES or group.num_rows == 1 for group in groups)
    assert len(groups) <= 2 + sum(size >= GROUP_BYTES for size in sizes) * 2 + sum(sizes) // (GROUP_BYTES // 2)


def test_small_rows_share_row_groups_as_large_as_they_may_be() -> None:
    rows = table(*[1000] * 20_000)
    assert len(list(row_groups([rows]))) <= rows.nbytes // GROUP_BYTES + 1


def test_forgetting_the_beginning_of_a_heavy_file_leaves_its_other_rows(tmp_path: Path) -> None:
    journal = DeltaJournal(str(tmp_path / "journal"))
    events = heavy_events(12, 2 * MEGABYTE)
    journal.append(rows_of_events(events))
    assert journal.forget(5) == 5
    assert journal.forget(5) == 0
    assert (journal.oldest(), journal.last()) == (6, 12)
    assert [entry.event_id for entry in journal.entries(Span(5, 12))] == list(range(6, 13))
    assert journal.events([6, 12]) == {6: events[5], 12: events[11]}
    assert (journal.forget(12), journal.oldest(), journal.last()) == (7, None, 12)
