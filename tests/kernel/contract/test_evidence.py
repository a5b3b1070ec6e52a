"""Every evidence store behaves like this: in memory, as a Delta table on disk and in a real S3 server, on Kafka."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.adapters.delta.evidence import DeltaEvidence
from calque.adapters.held_evidence import MemoryEvidence
from calque.model.files import Evidence, File, Listing
from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
from calque.ports import EvidenceStore

Open = Callable[[], EvidenceStore]


KINDS = ("memory", "delta", "delta-s3", "kafka")
ALL = pytest.mark.parametrize("open_store", KINDS, indirect=True)
"""Of tests that any run has in the S3 server too, where commits are made otherwise. What reads and forgets is the same
code as on a disk: proofs have the rest there."""


@pytest.fixture(params=["memory", "delta", pytest.param("delta-s3", marks=pytest.mark.prove), "kafka"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call gives another holder of one store."""
    if request.param == "memory":
        store = MemoryEvidence()
        return lambda: store
    if request.param == "delta-s3":
        folder, options = request.getfixturevalue("tables")
        return lambda: DeltaEvidence(f"{folder}/evidence", options)
    if request.param == "kafka":
        topic = request.getfixturevalue("topic")
        return lambda: KafkaEvidence(topic)
    return lambda: DeltaEvidence(str(tmp_path / "evidence"))


@pytest.fixture
def store(open_store: Open) -> EvidenceStore:
    return open_store()


def listing(location: str, *paths: str, size: int = 10) -> Listing:
    return Listing(location, tuple(File(path, size, 1_700_000_000_123_456_789) for path in paths))


def test_an_empty_store_has_considered_nothing(store: EvidenceStore) -> None:
    assert store.considered() == 0
    assert store.evidence([1, 2]) == {}
    assert store.forget(10) == 0


@ALL
def test_listings_come_back_as_they_were(store: EvidenceStore) -> None:
    plain = listing("hdfs://nn/w/sales.db/t", "a", "ü/b 1", "日本/🐘")
    checked = Listing("s3://b/x", (File("f", 2**40, 1, "0af"),))
    empty, missing = Listing("file:///e", ()), Listing("file:///m", (), missing=True)
    store.append([Evidence(4, plain), Evidence(4, checked), Evidence(5, empty), Evidence(6, missing)], considered=6)
    assert store.evidence([4, 6, 7]) == {
        (4, plain.location): plain,
        (4, "s3://b/x"): checked,
        (6, "file:///m"): missing,
    }
    assert store.evidence([5]) == {(5, "file:///e"): empty}


def test_considering_without_evidence_is_remembered(open_store: Open) -> None:
    first, second = open_store(), open_store()
    first.append([], considered=7)
    assert second.considered() == 7
    first.append([Evidence(9, listing("/t", "a"))], considered=9)
    assert second.considered() == 9


def test_what_was_considered_never_goes_back(store: EvidenceStore) -> None:
    store.append([], considered=7)
    store.append([Evidence(3, listing("/t", "a"))], considered=3)
    assert store.considered() == 7
    assert store.evidence([3]) == {(3, "/t"): listing("/t", "a")}


def test_of_two_listings_for_one_state_the_later_one_counts(open_store: Open) -> None:
    store, other = open_store(), open_store()
    store.append([Evidence(3, listing("/t", "a")), Evidence(3, listing("/u", "a"))], considered=3)
    assert other.evidence([3]) == {(3, "/t"): listing("/t", "a"), (3, "/u"): listing("/u", "a")}
    other.append([Evidence(3, listing("/t", "a", "b"))], considered=3)
    assert store.evidence([3]) == {(3, "/t"): listing("/t", "a", "b"), (3, "/u"): listing("/u", "a")}


@ALL
def test_forgetting_removes_what_belongs_to_old_events_and_no_more(open_store: Open) -> None:
    store, reader = open_store(), open_store()
    if isinstance(store, KafkaEvidence):
        pytest.skip(
            "how long records stay is the topic's to say (tests/plugins/kafka/integration/test_kafka_topics.py)"
        )
    store.append([Evidence(number, listing("/t", f"f{number}")) for number in (1, 3, 5)], considered=5)
    store.append([Evidence(number, listing("/t", f"f{number}")) for number in (4, 6)], considered=6)
    assert len(reader.evidence(range(10))) == 5
    assert store.forget(4) == 3
    assert reader.evidence(range(10)) == {(5, "/t"): listing("/t", "f5"), (6, "/t"): listing("/t", "f6")}
    assert reader.considered() == 6


def test_a_reader_that_lags_behind_merges_and_log_clean_up_sees_every_listing(open_store: Open) -> None:
    writer, reader = open_store(), open_store()
    expected = {}
    for number in range(1, 131):
        writer.append([Evidence(number % 40, listing("/t", f"f{number}"))], considered=number)
        expected[(number % 40, "/t")] = listing("/t", f"f{number}")
        if number == 2:
            assert reader.considered() == 2
    assert reader.considered() == 130
    assert reader.evidence(range(40)) == expected


@ALL
def test_writers_in_several_threads_lose_nothing(open_store: Open) -> None:
    def write(store: EvidenceStore, first: int) -> None:
        for number in range(first, 40, 2):
            store.append([Evidence(number, listing("/t", f"f{number}"))], considered=number)

    threads = [threading.Thread(target=write, args=(open_store(), first)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert open_store().evidence(range(40)) == {(number, "/t"): listing("/t", f"f{number}") for number in range(40)}
    assert open_store().considered() == 39


def test_a_listing_of_many_files_comes_back_whole(store: EvidenceStore) -> None:
    large = listing("/big", *(f"part-{number:06}" for number in range(50_000)))
    store.append([Evidence(1, large), Evidence(2, listing("/small", "a"))], considered=2)
    assert store.evidence([1]) == {(1, "/big"): large}
    assert store.evidence([2]) == {(2, "/small"): listing("/small", "a")}


def test_a_handle_on_a_delta_table_survives_pickling(tmp_path: Path) -> None:
    store = DeltaEvidence(str(tmp_path))
    store.append([Evidence(1, listing("/t", "a"))], considered=1)
    copy: DeltaEvidence = pickle.loads(pickle.dumps(store))
    assert (copy.considered(), copy.evidence([1])) == (1, {(1, "/t"): listing("/t", "a")})


@pytest.mark.parametrize("at", [100, 3])
def test_evidence_restarts_where_the_journal_does_and_no_old_listing_serves_an_id_that_comes_again(
    open_store: Open, at: int
) -> None:
    store, reader = open_store(), open_store()
    store.append([Evidence(number, listing("/t", "a")) for number in (2, 7)], 9)
    store.restart(at)
    assert (reader.considered(), reader.evidence([2, 7])) == (at, {})
    store.append([Evidence(at + 1, listing("/t", "b"))], at + 1)
    assert (reader.considered(), reader.evidence([at + 1])) == (at + 1, {(at + 1, "/t"): listing("/t", "b")})
