"""The journal's topics when brokers die, records vanish, and several write: on real brokers."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from calque.core.events.rows import table_of
from calque.engine.failpoints import FailpointGuard, Hit, Kill, passing
from calque.errors import Broken, Refused, Unavailable
from calque.model.files import Evidence, File, Listing
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import Span, TableName
from calque.plugins.kafka.adapters.client.partition import Sender
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo, Record, cut
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.sandbox import Broker, Cluster
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.kafkas import delete_records, delete_topics, ends

T = TypeVar("T")
POINTS = ("", "journal.append.before@3", "journal.append.after@3", "evidence.append.after@2")
"""Where a writer dies; without a name anywhere, as it happens."""
KEYS = Keys(EventKind.ALTER_TABLE, TableName("s", "t"))


@pytest.fixture
def topic(broker: Broker) -> Topic:
    return Topic(broker.address, f"{uuid4().hex}.events")


def event(number: int, message: str = "{}") -> Event:
    return Event(number, 1_700_000_000 + number, "ALTER_TABLE", "hive", "s", "t", "json-0.2", message)


def rows(first: int, upto: int, message: str = "{}") -> pa.Table:
    return table_of((event(number, message), KEYS) for number in range(first, upto + 1))


def ids(journal: KafkaJournal, span: Span) -> list[int]:
    return [entry.event_id for entry in journal.entries(span)]


def listing(*paths: str) -> Listing:
    return Listing("/t", tuple(File(path, 1, 2) for path in paths))


def test_a_message_of_20_megabytes_comes_back_whole_between_others(topic: Topic) -> None:
    large = random.Random(7).randbytes(10 << 20).hex()
    writer = KafkaJournal(topic)
    writer.append(table_of([(event(1), KEYS), (event(2, large), KEYS), (event(3), KEYS)]))
    cold = KafkaJournal(topic)
    assert (cold.oldest(), cold.last()) == (1, 3)
    assert cold.events([2, 3]) == {2: event(2, large), 3: event(3)}
    assert writer.events([2]) == {2: event(2, large)}
    begin, end = ends(topic, topic.name)
    assert end - begin > 10


def test_parts_that_a_dead_writer_left_are_passed_over(topic: Topic) -> None:
    journal = KafkaJournal(topic)
    journal.append(rows(1, 3))
    text = random.Random(7).randbytes(2 << 20).hex()
    half = list(cut(Record(0, 4, CountedUpTo(0, 3, 3), text.encode(), (4, 4)), 900_000, b"dead"))[:-1]
    Sender(topic, topic.name).send(half)
    assert journal.last() == KafkaJournal(topic).last() == 3
    journal.append(rows(4, 5))
    assert ids(KafkaJournal(topic), Span(0, 5)) == [1, 2, 3, 4, 5]


def test_what_two_writers_wrote_twice_is_read_once_in_order(topic: Topic) -> None:
    journal = KafkaJournal(topic)
    journal.append(rows(1, 3))
    late = Sender(topic, topic.name)
    late.send([again(number, CountedUpTo(0, 1, 1)) for number in (2, 3)])
    journal.append(rows(4, 6))
    late.send([again(number, CountedUpTo(0, 5, 3)) for number in (4, 5, 6, 7)])
    journal.append(rows(8, 9))
    cold = KafkaJournal(topic)
    assert (cold.oldest(), cold.last()) == (1, 9)
    assert ids(cold, Span(0, 9)) == ids(journal, Span(0, 9)) == list(range(1, 10))
    assert ids(KafkaJournal(topic), Span(5, 7)) == [6, 7]
    assert KafkaJournal(topic).events([7])[7].message == "again"


def again(number: int, known: CountedUpTo) -> Record:
    from calque.plugins.kafka.adapters.journal.codec import codec

    (row,) = rows(number, number, "again").to_pylist()
    return Record(0, number, known, codec("journal-event").encode({**row, "key_database": "s"}), (number, number))


def test_what_a_writer_wrote_before_the_journal_began_anew_and_came_late_does_not_count(topic: Topic) -> None:
    journal, reader = KafkaJournal(topic), KafkaJournal(topic)
    journal.append(rows(1, 5))
    assert reader.last() == 5
    journal.restart(3)
    Sender(topic, topic.name).send([again(4, CountedUpTo(0, 5, 3))])
    assert (reader.oldest(), reader.last()) == (None, 3)
    journal.append(rows(4, 6))
    assert reader.events([4]) == KafkaJournal(topic).events([4]) == {4: event(4)}
    assert KafkaJournal(topic).oldest() == 4


def test_a_record_without_calque_s_headers_is_an_error_that_names_it(topic: Topic) -> None:
    from calque.plugins.kafka.adapters.client.partition import producer_of

    journal = KafkaJournal(topic)
    journal.append(rows(1, 2))
    producer = producer_of(topic.connection, 1_000_000)
    producer.produce(topic.name, b"hello")
    producer.flush(60)
    for found in (journal, KafkaJournal(topic)):
        with pytest.raises(Broken, match=r"record at offset 2 of topic .+ is not calque's\. .+ Give calque a topic of"):
            found.last()


def test_a_reader_whose_rows_retention_took_away_says_where_it_can_begin(topic: Topic) -> None:
    writer, reader = KafkaJournal(topic), KafkaJournal(topic)
    writer.append(rows(1, 30))
    assert ids(reader, Span(0, 5)) == [1, 2, 3, 4, 5]
    delete_records(topic, topic.name, 20)
    with pytest.raises(Refused, match=r"Events 6 to 10 are not in the journal any more.+ is 21"):
        reader.entries(Span(5, 10))
    assert ids(reader, Span(20, 30)) == ids(KafkaJournal(topic), Span(20, 30)) == list(range(21, 31))
    delete_records(topic, topic.name, 30)
    writer.append(rows(31, 31))
    assert (reader.oldest(), reader.last()) == (31, 31)


def test_the_topic_made_anew_is_an_empty_journal(topic: Topic) -> None:
    journal, reader = KafkaJournal(topic), KafkaJournal(topic)
    journal.append(rows(1, 9))
    assert reader.last() == 9
    delete_topics(topic, topic.name)
    assert (reader.last(), reader.oldest()) == (None, None)
    journal.append(rows(100, 102))
    assert (reader.oldest(), reader.last()) == (100, 102)
    assert KafkaJournal(topic).last() == 102


def test_a_topic_that_lost_its_end_is_read_anew_and_written_on_from_where_it_ends(topic: Topic) -> None:
    journal, reader = KafkaJournal(topic), KafkaJournal(topic)
    journal.append(rows(1, 9))
    assert (reader.last(), ids(reader, Span(0, 9))) == (9, list(range(1, 10)))
    delete_topics(topic, topic.name)
    KafkaJournal(topic).append(rows(1, 6))
    assert reader.last() == 6
    with pytest.raises(Refused, match="Events 7 to 9 are not in the journal yet"):
        reader.entries(Span(0, 9))
    with pytest.raises(Broken, match="ends at event 6 and can't be continued at event 10"):
        journal.append(rows(10, 10))
    journal.append(rows(7, 10))
    assert ids(reader, Span(0, 10)) == list(range(1, 11))


def test_any_event_of_a_long_journal_is_found_without_reading_it(topic: Topic) -> None:
    writer = KafkaJournal(topic)
    for first in range(1, 20_001, 4_000):
        writer.append(rows(first, first + 3_999))
    for number in (1, 2, 9_999, 19_998, 20_000):
        cold = KafkaJournal(topic)
        assert cold.events([number]) == {number: event(number)}
        assert ids(cold, Span(max(number - 5, 0), number)) == list(range(max(number - 4, 1), number + 1))
    scattered = (3, 5, 900, 12_000, 12_001, 19_999)
    assert KafkaJournal(topic).events(scattered) == {number: event(number) for number in scattered}
    assert ids(KafkaJournal(topic), Span(3_998, 8_003)) == list(range(3_999, 8_004))


@pytest.mark.prove
def test_while_brokers_are_away_calls_say_so_and_the_same_journal_works_when_they_are_back(tmp_path: Path) -> None:
    with Broker.start(tmp_path) as broker:
        topic = Topic(broker.address, "hq.events")
        journal, reader, evidence = KafkaJournal(topic), KafkaJournal(topic), KafkaEvidence(topic)
        journal.append(rows(1, 3))
        evidence.append([], 2)
        assert reader.last() == 3
        broker.kill()
        for call in (lambda: journal.append(rows(4, 4)), evidence.considered, KafkaJournal(topic).last):
            begun = time.monotonic()
            with pytest.raises(Unavailable, match=r"Kafka at 127.+ does not let .+\. .+ it is tried again\."):
                call()
            assert time.monotonic() - begun < 20
        broker.restart()
        journal.append(rows((journal.last() or 0) + 1, 6))
        assert ids(reader, Span(0, 6)) == [1, 2, 3, 4, 5, 6]
        assert evidence.considered() == 2


@pytest.mark.prove
def test_brokers_that_die_and_come_back_under_a_writer_lose_and_double_nothing(tmp_path: Path) -> None:
    with Broker.start(tmp_path) as broker:
        topic = Topic(broker.address, "hq.events")
        journal, reader = KafkaJournal(topic), KafkaJournal(topic)
        done = threading.Event()

        def write() -> None:
            while not done.is_set():
                try:
                    last = journal.last() or 0
                    journal.append(rows(last + 1, last + 20))
                except Unavailable:
                    pass

        writer = threading.Thread(target=write)
        writer.start()
        try:
            reached(reader, 100)
            for _ in range(2):
                broker.kill()
                broker.restart()
                reached(reader, 100 + (last_of(reader) or 0))
        finally:
            done.set()
            writer.join(60)
        last = journal.last() or 0
        assert ids(reader, Span(0, last)) == ids(KafkaJournal(topic), Span(0, last)) == list(range(1, last + 1))


@pytest.mark.prove
def test_when_the_leader_dies_writer_and_reader_go_on_with_the_other_broker(tmp_path: Path) -> None:
    with Cluster.start(tmp_path) as cluster:
        topic = Topic(cluster.address, "hq.events")
        journal, reader = KafkaJournal(topic), KafkaJournal(topic)
        journal.append(rows(1, 3))
        assert reader.last() == 3
        for broker in cluster.brokers:
            broker.kill()
            patiently(lambda: journal.append(rows((journal.last() or 0) + 1, (journal.last() or 0) + 5)))
            last = patiently(journal.last) or 0
            reached(reader, last)
            broker.restart()
            reached_in_sync(topic)
        assert ids(reader, Span(0, last)) == ids(KafkaJournal(topic), Span(0, last)) == list(range(1, last + 1))


def patiently(call: Callable[[], T]) -> T:
    """Again while a leader is chosen."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return call()
        except Unavailable:
            assert time.monotonic() < deadline


def reached_in_sync(topic: Topic) -> None:
    """Both brokers have all of the topic."""
    admin, deadline = AdminClient(topic.settings()), time.monotonic() + 60
    while len(admin.list_topics(topic.name, 5).topics[topic.name].partitions[0].isrs) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def last_of(journal: KafkaJournal) -> int | None:
    try:
        return journal.last()
    except Unavailable:
        return None


def reached(journal: KafkaJournal, number: int) -> None:
    deadline = time.monotonic() + 60
    while (last_of(journal) or 0) < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_journals_let_go_of_threads_and_files(topic: Topic) -> None:
    KafkaJournal(topic).append(rows(1, 3))
    before = footprint()
    for _ in range(3):
        journal, evidence = KafkaJournal(topic), KafkaEvidence(topic)
        journal.append(rows((journal.last() or 0) + 1, (journal.last() or 0) + 1))
        assert journal.oldest() == 1
        evidence.append([Evidence(1, listing("a"))], 1)
        journal.close()
        del journal, evidence
    deadline = time.monotonic() + 20
    while any(now > then for now, then in zip(footprint(), before, strict=True)):
        assert time.monotonic() < deadline, (footprint(), before)
        time.sleep(0.05)


def footprint() -> tuple[int, int]:
    """Threads and open files of this process."""
    return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))


def test_handles_survive_pickling(topic: Topic) -> None:
    journal, evidence = KafkaJournal(topic), KafkaEvidence(topic)
    journal.append(rows(1, 3))
    evidence.append([Evidence(1, listing("a"))], 1)
    assert ids(pickle.loads(pickle.dumps(journal)), Span(0, 3)) == [1, 2, 3]
    assert pickle.loads(pickle.dumps(evidence)).evidence([1]) == {(1, "/t"): listing("a")}


@pytest.mark.prove
def test_two_processes_that_write_the_same_events_lose_and_double_none(topic: Topic) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        won = pool.map(write_all, [topic] * 2, chunksize=1)
    assert sorted(won[0] + won[1]) == list(range(1, 41))
    assert ids(KafkaJournal(topic), Span(0, 40)) == list(range(1, 41))


def write_all(topic: Topic) -> list[int]:
    """Try to append each event up to 40; those that this process got through."""
    journal, won = KafkaJournal(topic), []
    for number in range(1, 41):
        try:
            journal.append(rows(number, number))
            won.append(number)
        except Broken:
            while (journal.last() or 0) < number:
                pass
    return won


@pytest.mark.parametrize("point", one_a_day(POINTS, seed()))
def test_a_writer_killed_at_any_point_or_in_the_middle_of_an_append_goes_on_where_the_log_ends(
    topic: Topic, point: str
) -> None:
    context = multiprocessing.get_context("spawn")
    for death in (point, ""):
        writer = context.Process(target=write_on, args=(topic, death))
        writer.start()
        if point:
            writer.join(60 if death else 0)
        goal = (KafkaJournal(topic).last() or 0) + (100 if not death else 0)
        reached(KafkaJournal(topic), goal)
        writer.kill()
        writer.join(60)
        assert writer.exitcode == -signal.SIGKILL
    journal, evidence = KafkaJournal(topic), KafkaEvidence(topic)
    last, considered = journal.last() or 0, evidence.considered()
    assert last >= considered >= 2
    assert ids(journal, Span(0, last)) == list(range(1, last + 1))
    assert {event_id for event_id, _ in evidence.evidence(range(last + 1))} >= {considered}


def write_on(topic: Topic, death: str) -> None:
    """As capture does: go on where the journal ends, until killed."""
    hit: Hit = Kill(death.partition("@")[0], int(death.partition("@")[2])) if death else passing
    journal = FailpointGuard(hit).journal(KafkaJournal(topic))
    evidence = FailpointGuard(hit).evidence(KafkaEvidence(topic))
    while True:
        last = journal.last() or 0
        journal.append(rows(last + 1, last + 40, "x" * 5_000))
        evidence.append([Evidence(last + 40, listing("a"))], last + 40)


def test_evidence_that_retention_took_away_is_missing_and_the_rest_is_there(topic: Topic) -> None:
    store, reader = KafkaEvidence(topic), KafkaEvidence(topic)
    for number in range(1, 6):
        store.append([Evidence(number, listing(f"f{number}"))], considered=number)
    assert len(reader.evidence(range(10))) == 5
    delete_records(topic, topic.evidence, 3)
    for found in (store, reader, KafkaEvidence(topic)):
        assert found.evidence(range(10)) == {(4, "/t"): listing("f4"), (5, "/t"): listing("f5")}
    delete_records(topic, topic.evidence, 5)
    for found in (store, reader, KafkaEvidence(topic)):
        assert (found.considered(), found.evidence(range(10))) == (5, {})


def test_a_cold_reader_finds_evidence_of_any_event(topic: Topic) -> None:
    store = KafkaEvidence(topic)
    for number in range(1, 601):
        store.append([Evidence(number - 1, listing(f"f{number}"))] if number % 3 else [], considered=number)
    store.append([Evidence(7, listing("late"))], 600)
    for number in (1, 300, 598):
        assert KafkaEvidence(topic).evidence([number]) == {(number, "/t"): listing(f"f{number + 1}")}
    cold = KafkaEvidence(topic)
    assert cold.evidence([599]) == {}
    assert cold.evidence([7, 300]) == {(7, "/t"): listing("late"), (300, "/t"): listing("f301")}
