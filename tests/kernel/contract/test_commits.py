"""Every store of commits of transactions behaves like this, in memory and as a Delta table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from calque.adapters.delta.commits import DeltaCommits
from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.core.acid.transaction_states import TransactionStates
from calque.core.acid.write_ids import TableWriteIds
from calque.model.journal import EventKind, TableShape
from calque.model.names import Span, TableName
from calque.ports import Commits
from support.memory.commits import MemoryCommits

Open = Callable[[], Commits]
T, U = TableName("sales", "t"), TableName("sales", "ü")
PLAIN = AcidCommit(5, 1_700_000_000, T, TableShape.PLAIN, {"": "file:///t"})
PARTED = AcidCommit(7, 1_700_000_001, U, TableShape.PARTITIONED, {"p=b": "file:///u/p=b", "p=a": "file:///u/p=a"})
UNKNOWN = AcidCommit(7, 1_700_000_001, T)


@pytest.fixture(params=["memory", "delta"])
def open_commits(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call gives another holder of one store."""
    if request.param == "memory":
        commits = MemoryCommits()
        return lambda: commits
    return lambda: DeltaCommits(str(tmp_path / "commits"))


def test_an_empty_store_has_nothing(open_commits: Open) -> None:
    commits = open_commits()
    assert (commits.upto(), list(commits.commits(Span(0, 100))), commits.forget(5)) == (0, [], 0)
    assert commits.remembered() is None


def test_commits_come_back_in_the_order_of_events_and_tables(open_commits: Open) -> None:
    first, second = open_commits(), open_commits()
    first.append([PLAIN], 6)
    second.append([PARTED, UNKNOWN], 8)
    assert first.upto() == 8
    assert list(first.commits(Span(0, 8))) == [PLAIN, UNKNOWN, PARTED]
    assert list(first.commits(Span(5, 7))) == [UNKNOWN, PARTED]
    entries = [commit.entry() for commit in first.commits(Span(0, 8))]
    assert [entry.keys.kind for entry in entries] == [EventKind.COMMIT, EventKind.UNKNOWN, EventKind.COMMIT]
    assert [entry.keys.partitions for entry in entries] == [(), (), ("p=a", "p=b")]
    assert [entry.keys.locations for entry in entries] == [("file:///t",), (), ("file:///u/p=a", "file:///u/p=b")]


def test_what_is_there_is_not_written_again(open_commits: Open) -> None:
    commits = open_commits()
    commits.append([PLAIN], 6)
    commits.append([PLAIN, PARTED], 7)
    commits.append([UNKNOWN], 7)
    assert list(commits.commits(Span(0, 8))) == [PLAIN, PARTED]


def test_the_end_is_known_of_events_that_changed_nothing_and_of_forgotten_ones(open_commits: Open) -> None:
    commits = open_commits()
    commits.append([PLAIN], 6)
    commits.append([], 9)
    assert (commits.upto(), commits.forget(6), commits.upto()) == (9, 1, 9)
    assert list(commits.commits(Span(0, 9))) == []


def test_after_a_restart_there_are_no_commits_up_to_an_earlier_event(open_commits: Open) -> None:
    commits = open_commits()
    commits.append([PLAIN, PARTED], 9)
    commits.restart(4)
    assert (commits.upto(), list(commits.commits(Span(0, 9)))) == (4, [])
    commits.append([PLAIN], 5)
    assert list(commits.commits(Span(0, 9))) == [PLAIN]


def test_the_memory_is_the_one_that_was_written_last(open_commits: Open) -> None:
    states = TransactionStates(9, {8}, {3, 4})
    tables = {T: TableWriteIds(4, {4: 8}, frozenset({2})), U: TableWriteIds(1)}
    first, second = open_commits(), open_commits()
    first.remember(TransactionMemory(1, 0))
    first.remember(TransactionMemory(9, 7, 2, states, tables, 1))
    assert second.remembered() == TransactionMemory(9, 7, 2, states, tables, 1)


def test_a_memory_that_is_lost_is_none(tmp_path: Path) -> None:
    commits = DeltaCommits(str(tmp_path))
    commits.remember(TransactionMemory(1, 0))
    file = tmp_path / "memory.parquet"
    file.write_bytes(file.read_bytes()[:-5])
    assert commits.remembered() is None
