"""Data files of Delta tables are read once for all that ask for the same rows, within bounds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.delta.data_files import DataFiles
from calque.adapters.delta.held_reads import HeldReads
from calque.adapters.delta.journal import DeltaJournal
from calque.core.events.rows import rows_of_events
from support.sources.heavy import heavy_events

SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("text", pa.string())])
ROWS = pa.table([[1, 2, 3], ["a", "b", "c"]], schema=SCHEMA)


def test_rows_of_a_file_that_was_read_by_keys_need_the_file_no_more(tmp_path: Path) -> None:
    files = DataFiles(str(tmp_path), SCHEMA, {}, held_bytes=1 << 20)
    (file,) = files.write([ROWS])
    assert files.read([file], [1, 3]).to_pydict() == {"key": [1, 3], "text": ["a", "c"]}
    (tmp_path / file.path).unlink()
    assert files.read([file], [2]).to_pydict() == {"key": [2], "text": ["b"]}
    with pytest.raises(FileNotFoundError):
        files.read([file], [2], ["key"])


def test_nothing_is_held_of_a_table_that_is_to_hold_nothing(tmp_path: Path) -> None:
    files = DataFiles(str(tmp_path), SCHEMA, {})
    (file,) = files.write([ROWS])
    files.read([file], [1])
    (tmp_path / file.path).unlink()
    with pytest.raises(FileNotFoundError):
        files.read([file], [1])


def test_what_was_used_longest_ago_goes_first_and_what_is_too_large_is_not_held() -> None:
    reads: list[str] = []
    held = HeldReads(10)

    def ask(key: str, weight: int) -> None:
        held.get(key, lambda: reads.append(key) or key, lambda _: weight)

    for key, weight in (("a", 5), ("b", 5), ("a", 5), ("c", 5), ("a", 5), ("b", 5), ("d", 11), ("d", 11), ("b", 5)):
        ask(key, weight)
    assert reads == ["a", "b", "c", "b", "d", "d"]


def test_a_read_that_fails_is_tried_again() -> None:
    held = HeldReads(10)
    with pytest.raises(OSError, match="gone"):
        held.get("a", fail, len)
    assert held.get("a", lambda: "text", len) == "text"


def fail() -> str:
    raise OSError("gone")


def test_a_journal_that_was_merged_and_forgot_in_part_gives_what_it_has(tmp_path: Path) -> None:
    journal = DeltaJournal(str(tmp_path))
    events = heavy_events(120, 100)
    for event in events:
        journal.append(rows_of_events([event]))
        assert journal.events([event.event_id]) == {event.event_id: event}
    journal.forget(7)
    assert journal.events(range(8, 121)) == {event.event_id: event for event in events[7:]}
