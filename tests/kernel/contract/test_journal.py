"""Every journal behaves like this: in memory, as a Delta table on disk and in a real S3 server, on Kafka."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import random
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.snapshot import Snapshot
from calque.core.events.rows import table_of
from calque.errors import Broken, EventsForgotten, Refused
from calque.model.journal import Entry, Event, EventKind, Keys, TableShape
from calque.model.names import Span, TableName
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.ports import Journal
from support.memory.journal import MemoryJournal
from support.services.kafkas import delete_records, ends

Open = Callable[[], Journal]
ODD = 'Straße "quoted" \\ 日本語 🐘 \u2028 \x01\t\n'


KINDS = ("memory", "delta", "delta-s3", "kafka")
ALL = pytest.mark.parametrize("open_journal", KINDS, indirect=True)
"""Of tests that any run has in the S3 server too, where commits are made otherwise. What reads and forgets is the same
code as on a disk: proofs have the rest there."""


@pytest.fixture(params=["memory", "delta", pytest.param("delta-s3", marks=pytest.mark.prove), "kafka"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call gives another holder of one journal."""
    if request.param == "memory":
        journal = MemoryJournal()
        return lambda: journal
    if request.param == "delta-s3":
        folder, options = request.getfixturevalue("tables")
        return lambda: DeltaJournal(f"{folder}/journal", options)
    if request.param == "kafka":
        topic = request.getfixturevalue("topic")
        return lambda: KafkaJournal(topic)
    return lambda: DeltaJournal(str(tmp_path / "journal"))


@pytest.fixture
def journal(open_journal: Open) -> Journal:
    return open_journal()


Vanish = Callable[[Journal, int], None]


@pytest.fixture
def vanish(request: pytest.FixtureRequest) -> Vanish:
    """Lets the oldest rows go: the journal itself, or the topic's retention."""

    def forget(journal: Journal, upto: int) -> None:
        rows = 0 if journal.oldest() is None else upto - (journal.oldest() or 0) + 1
        if not isinstance(journal, KafkaJournal):
            assert journal.forget(upto) == rows
            assert journal.forget(upto) == 0
            return
        topic = request.getfixturevalue("topic")
        assert journal.forget(upto) == 0
        begin = ends(topic, topic.name)[0]
        delete_records(topic, topic.name, begin + rows)

    return forget


def event(number: int, message: str = "{}") -> Event:
    return Event(number, 1_700_000_000 + number, "ALTER_TABLE", "hive", "sales", f"t{number % 7}", "json-0.2", message)


def keys(number: int) -> Keys:
    name = TableName("sales", f"t{number % 7}")
    return Keys(
        EventKind.ALTER_TABLE,
        table=name,
        shape=TableShape.PARTITIONED,
        partitions=(f"p={number}",),
        columns_changed=number % 2 == 0,
    )


def rows(numbers: Iterable[int]) -> pa.Table:
    return table_of((event(number), keys(number)) for number in numbers)


def entries(numbers: Iterable[int]) -> tuple[Entry, ...]:
    return tuple(Entry(number, event(number).event_time, "ALTER_TABLE", keys(number)) for number in numbers)


def fill(journal: Journal, numbers: range, step: int = 1) -> None:
    for start in range(numbers.start, numbers.stop, step):
        journal.append(rows(range(start, min(start + step, numbers.stop))))


def test_a_journal_without_rows_has_neither_an_oldest_nor_a_last_event(journal: Journal) -> None:
    assert (journal.oldest(), journal.last()) == (None, None)
    assert tuple(journal.entries(Span(0, 0))) == ()
    assert journal.events([]) == {}
    with pytest.raises(Refused):
        journal.entries(Span(0, 1))


def test_a_journal_may_begin_at_any_event(journal: Journal) -> None:
    journal.append(rows(range(500, 503)))
    assert (journal.oldest(), journal.last()) == (500, 502)


@ALL
def test_appended_rows_come_back_as_they_were(journal: Journal) -> None:
    renamed = Keys(
        EventKind.RENAME_TABLE,
        table=TableName("sales", "new"),
        other=TableName("hr", "old"),
        shape=TableShape.PLAIN,
        locations=("hdfs://nn/a b", "s3://b/ü"),
        replaces=True,
        transactional=True,
    )
    broken = Keys(EventKind.UNKNOWN, table=TableName("sales"), defect=ODD)
    journal.append(table_of([(event(1, ODD), renamed), (event(2, ""), broken)]))
    time = event(1).event_time
    assert tuple(journal.entries(Span(0, 2))) == (
        Entry(1, time, "ALTER_TABLE", renamed),
        Entry(2, time + 1, "ALTER_TABLE", broken),
    )
    assert journal.events([2, 1]) == {1: event(1, ODD), 2: event(2, "")}


def test_messages_of_two_megabytes_come_back_whole(journal: Journal) -> None:
    text = random.Random(7).randbytes(1 << 20).hex()
    journal.append(table_of((event(number, f"{number}:{text}"), keys(number)) for number in range(1, 6)))
    assert journal.events([2, 5]) == {2: event(2, f"2:{text}"), 5: event(5, f"5:{text}")}
    assert tuple(journal.entries(Span(0, 5))) == entries(range(1, 6))


def test_messages_are_given_from_the_first_on_as_far_as_they_may_weigh(journal: Journal) -> None:
    size, wanted = 5 << 20, [1, 3, 4, 6]
    found = {number: event(number, f"{number}:" + "x" * size) for number in range(1, 7)}
    journal.append(table_of((one, keys(one.event_id)) for one in found.values()))
    journal.append(rows(range(7, 10)))
    given = {most: list(journal.events([*wanted, 8], most)) for most in (1, size + 1, 4 * size)}
    assert given == {1: [1], size + 1: [1], 4 * size: wanted}
    assert journal.events([*wanted, 8], 5 * size) == {number: found[number] for number in wanted} | {8: event(8)}
    assert journal.events([8, 3], 1) == {3: found[3]}
    with pytest.raises(Refused):
        journal.events([1, 99], 1)


def test_a_span_across_many_appends_is_read_in_order(journal: Journal) -> None:
    fill(journal, range(1, 241), step=3)
    assert tuple(journal.entries(Span(100, 201))) == entries(range(101, 202))
    assert tuple(journal.entries(Span(0, 240))) == entries(range(1, 241))
    assert journal.events([1, 77, 240]) == {number: event(number) for number in (1, 77, 240)}


def test_an_empty_append_changes_nothing(journal: Journal) -> None:
    journal.append(rows([]))
    assert journal.last() is None


@pytest.mark.parametrize("first", [3, 5, 1])
def test_rows_that_do_not_continue_the_journal_are_an_error(journal: Journal, first: int) -> None:
    journal.append(rows(range(1, 4)))
    with pytest.raises(Broken, match=rf"ends at event 3 and can't be continued at event {first}\. .+\. .+\."):
        journal.append(rows([first]))
    assert journal.last() == 3
    assert tuple(journal.entries(Span(0, 3))) == entries(range(1, 4))


def test_rows_with_a_hole_are_an_error(journal: Journal) -> None:
    with pytest.raises(Broken, match="jump from event 2 to 4"):
        journal.append(rows([1, 2, 4]))
    assert journal.last() is None


@ALL
def test_of_two_writers_with_the_same_rows_one_loses(open_journal: Open) -> None:
    first, second = open_journal(), open_journal()
    first.append(rows([1]))
    assert second.last() == 1
    first.append(rows([2]))
    with pytest.raises(Broken):
        second.append(rows([2]))
    second.append(rows([3]))
    assert tuple(first.entries(Span(0, 3))) == entries([1, 2, 3])


@ALL
def test_writers_racing_for_each_event_never_double_or_lose_one(open_journal: Open) -> None:
    outcomes: list[int] = []

    def race(journal: Journal) -> None:
        for number in range(1, 31):
            try:
                journal.append(rows([number]))
                outcomes.append(number)
            except Broken:
                while (journal.last() or 0) < number:
                    pass

    threads = [threading.Thread(target=race, args=(open_journal(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == list(range(1, 31))
    assert tuple(open_journal().entries(Span(0, 30))) == entries(range(1, 31))


def test_what_is_not_there_yet_is_refused_with_what_to_do(journal: Journal) -> None:
    fill(journal, range(1, 11), step=5)
    with pytest.raises(Refused, match=r"Events 11 to 12 are not in the journal yet\. Its last event is 10\. Ask.+\."):
        journal.entries(Span(5, 12))
    with pytest.raises(Refused, match="Event 11 is not in the journal yet"):
        journal.events([3, 11])


def test_what_is_no_longer_there_is_refused_with_what_to_do(journal: Journal, vanish: Vanish) -> None:
    fill(journal, range(1, 11), step=5)
    vanish(journal, 4)
    with pytest.raises(
        EventsForgotten, match=r"Events 3 to 4 are not in the journal any more\. .+ is 5.+ Begin at event 5"
    ):
        journal.entries(Span(2, 6))
    with pytest.raises(EventsForgotten, match="Event 4 is not in the journal any more"):
        journal.events([4, 5])


@ALL
def test_old_rows_go_and_no_others(open_journal: Open, vanish: Vanish) -> None:
    journal, reader = open_journal(), open_journal()
    fill(journal, range(1, 31), step=10)
    assert reader.last() == 30
    vanish(journal, 0)
    vanish(journal, 15)
    assert (reader.oldest(), reader.last()) == (16, 30)
    assert tuple(reader.entries(Span(15, 30))) == entries(range(16, 31))
    journal.append(rows([31]))
    assert reader.last() == 31


def test_a_journal_whose_rows_are_all_gone_still_knows_where_it_ends(open_journal: Open, vanish: Vanish) -> None:
    journal = open_journal()
    fill(journal, range(1, 11), step=5)
    vanish(journal, 10)
    assert (open_journal().oldest(), open_journal().last()) == (None, 10)
    with pytest.raises(Refused):
        journal.entries(Span(9, 10))
    with pytest.raises(Broken):
        journal.append(rows([1]))
    journal.append(rows([11]))
    assert (journal.oldest(), journal.last()) == (11, 11)


@pytest.mark.parametrize("at", [100, 3])
def test_a_journal_restarts_where_a_gap_or_a_restored_log_says(open_journal: Open, at: int) -> None:
    journal, reader = open_journal(), open_journal()
    fill(journal, range(1, 11), step=5)
    assert reader.last() == 10
    journal.restart(at)
    assert (reader.oldest(), reader.last()) == (None, at)
    with pytest.raises(Broken):
        journal.append(rows([11]))
    journal.append(rows([at + 1, at + 2]))
    assert tuple(reader.entries(Span(at, at + 2))) == entries([at + 1, at + 2])


def test_a_reader_that_lags_behind_merges_and_log_clean_up_sees_every_row(open_journal: Open) -> None:
    writer, reader = open_journal(), open_journal()
    fill(writer, range(1, 4))
    assert tuple(reader.entries(Span(0, 3))) == entries(range(1, 4))
    fill(writer, range(4, 261))
    assert reader.last() == 260
    assert tuple(reader.entries(Span(0, 260))) == entries(range(1, 261))
    assert tuple(writer.entries(Span(0, 260))) == entries(range(1, 261))


def test_a_reader_sees_each_append_at_once_and_whole(open_journal: Open) -> None:
    writer, reader = open_journal(), open_journal()
    problems: list[str] = []
    done = threading.Event()

    def follow() -> None:
        after = 0
        while not done.is_set() or after < (reader.last() or 0):
            upto = reader.last() or 0
            if tuple(reader.entries(Span(after, upto))) != entries(range(after + 1, upto + 1)):
                problems.append(f"({after}, {upto}]")
            after = upto

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        for number in range(1, 300, 2):
            writer.append(rows([number, number + 1]))
            assert reader.last() == number + 1
    finally:
        done.set()
        thread.join(60)
    assert problems == []


class TestAsADeltaTable:
    """What only files and processes can show."""

    def test_a_handle_survives_pickling(self, tmp_path: Path) -> None:
        journal = DeltaJournal(str(tmp_path))
        fill(journal, range(1, 4))
        copy: DeltaJournal = pickle.loads(pickle.dumps(journal))
        copy.append(rows([4]))
        assert tuple(journal.entries(Span(0, 4))) == entries(range(1, 5))

    def test_a_path_and_its_uri_are_the_same_journal(self, tmp_path: Path) -> None:
        DeltaJournal(str(tmp_path / "a b")).append(rows([1]))
        assert DeltaJournal((tmp_path / "a b").as_uri()).last() == 1

    def test_two_processes_that_write_the_same_events_lose_and_double_none(self, tmp_path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        with context.Pool(2) as pool:
            won = pool.map(write_all, [str(tmp_path)] * 2, chunksize=1)
        assert sorted(won[0] + won[1]) == list(range(1, 41))
        assert tuple(DeltaJournal(str(tmp_path)).entries(Span(0, 40))) == entries(range(1, 41))

    def test_files_stay_few_however_many_commits_there_were(self, tmp_path: Path) -> None:
        fill(DeltaJournal(str(tmp_path)), range(1, 351))
        table = DeltaJournal(str(tmp_path))._table
        assert len(table.snapshot().files) < 105

    def test_a_merge_that_loses_to_another_merge_changes_nothing(self, tmp_path: Path) -> None:
        journal, other = DeltaJournal(str(tmp_path)), DeltaJournal(str(tmp_path))
        fill(journal, range(1, 9))
        run = other._table.snapshot().files
        assert journal._table.merge(run) == 8
        assert other._table.merge(run) == 0
        journal.append(rows([9]))
        assert tuple(other.entries(Span(0, 9))) == entries(range(1, 10))

    def test_a_data_file_that_vanished_after_a_merge_is_no_error(self, tmp_path: Path) -> None:
        journal, reader = DeltaJournal(str(tmp_path)), DeltaJournal(str(tmp_path))
        fill(journal, range(1, 5))
        old = reader._table.snapshot()
        journal._table.merge(old.files)
        for file in old.files:
            (tmp_path / file.path).unlink()
        seen: list[Snapshot] = []

        def read(snapshot: Snapshot) -> pa.Table:
            seen.append(snapshot)
            return reader._table.files.read(snapshot.files if len(seen) > 1 else old.files)

        assert reader._table.consistently(read).num_rows == 4
        assert len(seen) == 2

    def test_old_data_files_go_after_a_while(self, tmp_path: Path) -> None:
        journal = DeltaJournal(str(tmp_path))
        fill(journal, range(1, 5))
        journal._table.merge(journal._table.snapshot().files)
        assert len(list(tmp_path.glob("*.parquet"))) == 5
        journal._table._log._merged_away = type(journal._table._log._merged_away)(
            (-math.inf, path) for _, path in journal._table._log._merged_away
        )
        journal.append(rows([5]))
        assert len(list(tmp_path.glob("*.parquet"))) == 2


def write_all(location: str) -> list[int]:
    """Try to append each event up to 40; those that this process got through."""
    journal, won = DeltaJournal(location), []
    for number in range(1, 41):
        try:
            journal.append(rows([number]))
            won.append(number)
        except Broken:
            while (journal.last() or 0) < number:
                pass
    return won
