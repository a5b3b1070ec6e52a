"""A batch of Spark's that stays for the events that come soon after its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.spark.watch import announce, announced, bump
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import Unavailable
from calque.model.hive import Database
from calque.model.names import EventId, Span
from calque.plugins.dumps.adapters.held_evidence import MemoryEvidence
from calque.streams import batch_stay
from calque.streams.batch_stay import BatchStay
from calque.streams.capture import CapturePart
from calque.streams.run import Run
from calque.streams.target import TargetPart
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
    monkeypatch.setattr(batch_stay, "STAY_SECONDS", 3600.0)
    monkeypatch.setattr(batch_stay, "LONGEST_SECONDS", 3600.0)


@pytest.fixture
def stay(tmp_path: Path) -> BatchStay:
    return BatchStay(tmp_path / "wake", lambda: False)


def test_it_ends_as_soon_as_there_is_more(stay: BatchStay) -> None:
    looks = iter([4, 4, 7])
    assert stay.next(4, lambda: next(looks), 0.001) == 7


def test_it_ends_some_time_after_the_last_event(stay: BatchStay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_stay, "STAY_SECONDS", 0.05)
    began = time.monotonic()
    assert stay.next(4, lambda: 4, 0.01) is None
    assert time.monotonic() - began >= 0.05


def test_it_looks_for_nothing_when_something_else_woke_its_query(stay: BatchStay) -> None:
    bump(stay.wake)
    assert stay.next(4, lambda: 7, 0.001) is None


def test_it_looks_for_nothing_when_it_has_lasted_long_or_is_to_end(stay: BatchStay) -> None:
    stay.ends_at = time.monotonic()
    assert stay.next(4, lambda: 7, 0.001) is None
    assert BatchStay(stay.wake, lambda: True).next(4, lambda: 7, 0.001) is None


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Playing:
    """A batch of a target's, on a thread of its own."""

    def __init__(self, part: TargetPart, upto: EventId) -> None:
        self.part = part
        self.thread = threading.Thread(target=part.apply, args=(Span(0, upto), None, 0), daemon=True)
        self.thread.start()

    def ended(self) -> bool:
        return not self.thread.is_alive()


def test_a_target_takes_what_is_announced_until_its_batch_ends_for_what_is_no_event(
    world: World, tmp_path: Path
) -> None:
    create_tables(world, 1)
    part = part_of(world, tmp_path, 100)
    playing = Playing(part, world.source.current())
    for number in range(3):
        wait_until(lambda: world.replica.cursor == world.source.current())
        world.source.create_database(Database(f"d1more{number}"))
        world.capture_all()
        announce(part.source.coming_file, world.source.current())
    wait_until(lambda: world.replica.cursor == world.source.current())
    assert not playing.ended()
    bump(part.wake_file)
    wait_until(playing.ended)
    assert [epoch.event_id for epoch in world.ledger.epochs()][-4:] == list(
        range(world.source.current() - 3, world.source.current() + 1)
    )


def test_a_target_s_batch_ends_with_its_process(world: World, tmp_path: Path) -> None:
    create_tables(world, 1)
    part = part_of(world, tmp_path, 100)
    playing = Playing(part, world.source.current())
    wait_until(lambda: world.replica.cursor == world.source.current())
    assert not playing.ended()
    part.run.stopping.set()
    wait_until(playing.ended)


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

    part: CapturePart
    log: Growing
    stay: BatchStay
    journal: CountingJournal = field(default_factory=CountingJournal)

    def __post_init__(self) -> None:
        source = SourceSide(
            "hq", self.log, MemoryCatalog(MemoryMetastore()), self.journal, MemoryEvidence(), MemoryStorage()
        )
        source = replace(source, gaps=MemoryGaps())
        self.part.log = self.log  # type: ignore[assignment]
        self.capture = Capture(source, 0, EvidenceGatherer(source, lambda _: True), Continuity(source, 0))
        self.capture.read_on(1)

    def take_more(self, small: int) -> None:
        self.part.take_more(self.capture, self.stay, small)


def capturing(folder: Path, log: Growing) -> Capturing:
    run = Run(wiring_of(folder, ""), ["dr"])
    return Capturing(CapturePart(run, run.streams["hq"]), log, BatchStay(folder / "wake", lambda: False))


def test_capture_takes_what_comes_and_leaves_a_log_that_does_not_answer_to_the_query(tmp_path: Path) -> None:
    site = capturing(tmp_path, Growing(1, 4))
    site.take_more(small=10)
    assert (len(site.journal.appended) > 2, site.journal.last()) == (True, 4)
    assert announced(site.part.source.coming_file) == site.part.last


def test_capture_leaves_many_events_to_tasks(tmp_path: Path) -> None:
    site = capturing(tmp_path, Growing(20, 30))
    site.take_more(small=10)
    assert (site.journal.appended, announced(site.part.source.coming_file)) == ([(1, 1)], 0)


def test_the_query_s_next_batch_takes_up_what_was_appended_without_an_answer_while_the_last_one_stayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = capturing(tmp_path, Growing(1, 20))
    append = site.journal.append

    def lose_answer(rows: pa.Table) -> None:
        append(rows)
        raise Unavailable("No answer")

    with monkeypatch.context() as patch:
        patch.setattr(site.journal, "append", lose_answer)
        site.take_more(small=10)
    appended = site.journal.last()
    assert appended is not None
    assert site.capture.gatherer.upto == 1 < appended
    assert site.capture.take(appended) == 0
    assert site.capture.gatherer.upto == appended
