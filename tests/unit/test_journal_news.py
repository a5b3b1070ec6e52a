"""When a target's query asks the journal for news, and when it takes capture's word."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calque.adapters.memory.evidence import MemoryEvidence
from calque.adapters.memory.journal import MemoryJournal
from calque.adapters.spark.journal_source import UNTOLD, JournalReader, JournalStream
from calque.adapters.spark.watch import Offset, bump, touch
from calque.core.rows import rows_of_events
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
        self.wake, self.news = self.folder / "wake", self.folder / "news"
        stream = JournalStream(self.opened, 0, self.wake, self.news, poll=0.005, wait=0.05)
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


def test_the_journal_is_asked_once_for_each_word_of_capture(side: Side) -> None:
    began = time.monotonic()
    touch(side.news)
    side.latest()
    for number in range(1, 6):
        side.write()
        touch(side.news)
        assert side.latest()["event_id"] == number
    bump(side.wake)
    assert side.latest() == {"event_id": 5, "wake": 1}
    assert 6 <= side.asked <= 6 + (time.monotonic() - began) / UNTOLD


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
