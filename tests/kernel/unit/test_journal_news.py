"""When a target's query asks the journal for news, takes capture's word, and waits for what capture announced."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calque.adapters.spark.journal_source import JournalReader, JournalStream
from calque.adapters.spark.log_source import LogReader, LogStream
from calque.adapters.spark.watch import UNTOLD, Offset, announce, announced, bump, touch
from calque.core.events.rows import rows_of_events
from calque.model.journal import Event
from calque.plugins.dumps.adapters.held_evidence import MemoryEvidence
from calque.streams.arrivals import SECONDS, Arrivals
from support.memory.journal import MemoryJournal
from support.sources.logs import Log, plain


@dataclass
class Side:
    """A journal that counts how often it is asked where it ends, and a reader of it that waits for 50 ms at most."""

    folder: Path
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    evidence: MemoryEvidence = field(default_factory=MemoryEvidence)
    log: Log = field(default_factory=Log)
    asked: int = 0

    def __post_init__(self) -> None:
        self.wake, self.news = self.folder / "targets" / "wake", self.folder / "news"
        self.coming = self.folder / "coming"
        stream = JournalStream(self.opened, 0, self.wake, self.news, self.coming, poll=0.005, wait=0.05)
        self.reader = JournalReader(stream)
        self.at = self.reader.initialOffset()

    def opened(self) -> tuple[Side, MemoryEvidence]:
        return self, self.evidence

    def last(self) -> int | None:
        self.asked += 1
        return self.journal.last()

    def write(self) -> None:
        self.log.create(plain(f"t{len(self.log.events)}"))
        event = self.log.events[-1]
        self.journal.append(rows_of_events([event]))

    def latest(self) -> Offset:
        self.at = self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        return self.at


@pytest.fixture
def side(tmp_path: Path) -> Side:
    return Side(tmp_path)


def test_the_journal_is_asked_once_for_each_word(side: Side) -> None:
    began = time.monotonic()
    touch(side.news)
    side.latest()
    for number in range(1, 6):
        side.write()
        touch(side.news)
        assert side.latest()["event_id"] == number
    bump(side.wake)
    assert side.latest() == {"event_id": 5, "wake": 1}
    assert 7 <= side.asked <= 7 + (time.monotonic() - began) / UNTOLD


def test_a_word_in_a_folder_that_is_another_user_s_is_heard(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(side.news)
    side.latest()
    set_time = os.utime

    def refuse(path: Path, ns: tuple[int, int] | None = None) -> None:
        if ns is not None:
            raise PermissionError(path)
        set_time(path)

    time.sleep(0.02)
    monkeypatch.setattr(os, "utime", refuse)
    bump(side.wake)
    assert side.latest()["wake"] == 1


def test_what_was_written_without_a_word_is_found_all_the_same(side: Side) -> None:
    touch(side.news)
    side.latest()
    side.write()
    began = time.monotonic()
    while side.latest()["event_id"] != 1:
        assert time.monotonic() - began < 20 * UNTOLD
    assert side.asked <= 2 + (time.monotonic() - began) / UNTOLD


def test_where_no_capture_writes_the_journal_is_asked_each_time(side: Side) -> None:
    side.latest()
    side.write()
    assert side.latest()["event_id"] == 1


def test_what_is_announced_runs_a_batch_before_the_journal_has_it(side: Side) -> None:
    touch(side.news)
    first = side.latest()
    announce(side.coming, 3)
    woken = side.latest()
    assert (woken["event_id"], woken["wake"] - first["wake"]) == (0, 3)
    assert side.latest() == woken


class Ahead:
    """An `EventLog` whose newest event is known before it is read."""

    def current(self) -> int:
        return 7

    def read(self, after: int, limit: int) -> Sequence[Event]:
        raise NotImplementedError


def test_capture_s_source_announces_what_its_batch_will_bring(tmp_path: Path) -> None:
    coming = tmp_path / "wake" / "coming"
    reader = LogReader(LogStream(Ahead, 5, tmp_path / "wake" / "capture", coming, poll=0.005, wait=0.05))
    assert announced(coming) == 0
    reached = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert (reached["event_id"], announced(coming)) == (7, 7)


def test_a_batch_waits_until_what_was_announced_arrives(side: Side) -> None:
    arrivals = Arrivals(side.coming)
    assert arrivals.wait(side, 0, lambda: False) == 0  # type: ignore[arg-type]
    announce(side.coming, 1)
    writing = threading.Timer(0.05, side.write)
    writing.start()
    assert arrivals.wait(side, 0, lambda: False) == 1  # type: ignore[arg-type]
    writing.join()
    assert arrivals.wait(side, 1, lambda: False) == 1  # type: ignore[arg-type]


def test_an_announcement_that_capture_did_not_keep_is_waited_for_once(side: Side) -> None:
    announce(side.coming, 1)
    arrivals, began = Arrivals(side.coming), time.monotonic()
    assert arrivals.wait(side, 0, lambda: False) == 0  # type: ignore[arg-type]
    assert time.monotonic() - began >= SECONDS
    asked = side.asked
    assert arrivals.wait(side, 0, lambda: False) == 0  # type: ignore[arg-type]
    assert side.asked == asked
    announce(side.coming, 2)
    assert arrivals.wait(side, 0, lambda: True) == 0  # type: ignore[arg-type]
