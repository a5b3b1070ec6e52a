"""A batch of Spark's that takes the events that come soon after its own; and targets that follow the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import Unavailable
from calque.model.hive import Database
from calque.model.names import EventId
from calque.streams import batch_extension
from calque.streams.batch_extension import BatchExtension
from calque.streams.capture import SourceCapture
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.target import TargetReplication
from support.memory.gaps import MemoryGaps
from support.memory.metastore import MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.heavy import CountingJournal, HeavyLog, heavy_events
from support.worlds.parts import create_tables, open_world, part_of, wiring_of
from support.worlds.worlds import World


@pytest.fixture
def world() -> World:
    return open_world()


@pytest.fixture(autouse=True)
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch stays until a test ends it, however slow the machine is."""
    monkeypatch.setattr(batch_extension, "STAY_SECONDS", 3600.0)
    monkeypatch.setattr(batch_extension, "LONGEST_SECONDS", 3600.0)


@pytest.fixture
def extension() -> BatchExtension:
    return BatchExtension(lambda: False)


def test_it_ends_as_soon_as_there_is_more(extension: BatchExtension) -> None:
    looks = iter([4, 4, 7])
    assert extension.next(4, lambda: next(looks), 0.001) == 7


def test_it_ends_some_time_after_the_last_event(extension: BatchExtension, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_extension, "STAY_SECONDS", 0.05)
    began = time.monotonic()
    assert extension.next(4, lambda: 4, 0.01) is None
    assert time.monotonic() - began >= 0.05


def test_many_events_are_left_to_a_batch_of_their_own(extension: BatchExtension) -> None:
    assert extension.next(4, lambda: 5 + batch_extension.MOST_EVENTS, 0.001) is None


def test_it_looks_for_nothing_when_it_has_lasted_long_or_is_to_end(extension: BatchExtension) -> None:
    extension.ends_at = time.monotonic()
    assert extension.next(4, lambda: 7, 0.001) is None
    assert BatchExtension(lambda: True).next(4, lambda: 7, 0.001) is None


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@dataclass
class Following:
    """A target's part that follows the journal of its world, on a thread of its own."""

    world: World
    part: TargetReplication
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.part.open_replica = lambda: None  # type: ignore[method-assign]
        self.part.look_at_databases = lambda: None  # type: ignore[method-assign]
        self.part.stream.signals.append(self.part.current.signal)
        self.thread = threading.Thread(target=self.part.replicate, args=(0,), daemon=True)
        self.thread.start()

    def shows_all(self) -> bool:
        return self.world.replica.cursor == self.world.source.current()


@pytest.fixture
def following(world: World, tmp_path: Path) -> Iterator[Following]:
    create_tables(world, 1)
    found = Following(world, part_of(world, tmp_path, 100))
    yield found
    found.part.run.stopping.set()
    found.part.current.signal.send()
    found.thread.join(60)
    assert not found.thread.is_alive()


def test_a_target_takes_each_event_when_its_signal_is_sent(following: Following) -> None:
    world = following.world
    wait_until(following.shows_all)
    for number in range(3):
        world.source.create_database(Database(f"d1more{number}"))
        world.capture_all()
        following.part.stream.wake()
        wait_until(following.shows_all)
    last = world.source.current()
    assert [epoch.event_id for epoch in world.ledger.epochs()][-3:] == [last - 2, last - 1, last]


def test_a_target_that_is_held_back_delays_nobody_and_reads_what_it_missed_from_the_journal(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, is_paused = following.world, True
    wait_until(following.shows_all)
    monkeypatch.setattr(following.part.current, "is_paused", lambda: is_paused)
    before = world.replica.cursor
    for number in range(5):
        world.source.create_database(Database(f"d1more{number}"))
        world.capture_all()
        following.part.stream.wake()
    assert world.replica.cursor == before
    is_paused = False
    wait_until(following.shows_all)


class Growing(HeavyLog):
    """A log that has `step` events more at each look, and at last does not answer."""

    def __init__(self, step: int, count: int) -> None:
        super().__init__(heavy_events(count, 10))
        self.there, self.step = 1, step

    def current(self) -> EventId:
        self.there += self.step
        if self.there > len(self.events):
            raise Unavailable("No")
        return self.there


@dataclass
class Capturing:
    """A batch of capture that has taken the first event of this log."""

    part: SourceCapture
    log: Growing
    journal: CountingJournal = field(default_factory=CountingJournal)

    def __post_init__(self) -> None:
        source = SourceSide(
            "hq", self.log, MemoryCatalog(MemoryMetastore()), self.journal, MemoryEvidence(), MemoryStorage()
        )
        source = replace(source, gaps=MemoryGaps())
        self.part.log = self.log  # type: ignore[assignment]
        self.capture = Capture(source, 0, EvidenceGatherer(source, lambda _: True), Continuity(source, 0))
        self.capture.read_on(1)

    def take_early(self) -> None:
        self.part.take_early(self.capture, BatchExtension(lambda: False))

    def take_batch(self, upto: EventId) -> None:
        self.part.take_batch(self.capture, rows_of_events(self.log.events[:upto]))


def capturing(folder: Path, log: Growing, of_source: str = "") -> Capturing:
    run = ReplicatorProcess(wiring_of(folder, "", of_source), ["dr"])
    return Capturing(SourceCapture(run, run.streams["hq"]), log)


def test_capture_takes_what_comes_and_leaves_a_log_that_does_not_answer_to_the_query(tmp_path: Path) -> None:
    site = capturing(tmp_path, Growing(1, 4))
    site.take_early()
    assert (len(site.journal.appended) > 2, site.journal.last()) == (True, 4)


def test_capture_leaves_many_events_to_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_extension, "MOST_EVENTS", 10)
    site = capturing(tmp_path, Growing(20, 30))
    site.take_early()
    assert site.journal.appended == [(1, 1)]


def test_what_a_batch_took_early_comes_again_as_rows_and_is_passed_over(tmp_path: Path) -> None:
    site = capturing(tmp_path, Growing(1, 6))
    site.take_batch(1)
    early = site.journal.last()
    assert early == 6
    site.take_batch(6)
    assert (site.journal.last(), site.part.committed, site.part.last) == (6, 0, 6)
    assert [span for span in site.journal.appended if span[0] == 1] == [(1, 1)]


def test_nothing_is_taken_early_where_the_configuration_says_so(tmp_path: Path) -> None:
    site = capturing(tmp_path, Growing(1, 6), "early = false")
    site.take_batch(1)
    assert site.journal.last() == 1


def test_the_next_batch_takes_up_what_was_appended_early_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = capturing(tmp_path, Growing(1, 20))
    append = site.journal.append

    def lose_answer(rows: pa.Table) -> None:
        append(rows)
        raise Unavailable("No answer")

    with monkeypatch.context() as patch:
        patch.setattr(site.journal, "append", lose_answer)
        site.take_early()
    appended = site.journal.last()
    assert appended is not None
    assert site.capture.gatherer.upto == 1 < appended
    monkeypatch.setattr(site.part, "halted", lambda: True)
    site.take_batch(appended)
    assert site.capture.gatherer.upto == appended
