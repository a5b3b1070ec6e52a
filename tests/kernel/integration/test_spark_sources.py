"""The streaming source of events and the queries over it, on a real Spark.

The log and the journal are files of JSON lines, so that the processes that Spark starts read what the test writes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from calque.adapters.held_evidence import MemoryEvidence
from calque.adapters.spark import query
from calque.adapters.spark.archive import make_archive
from calque.adapters.spark.contiguous import HoleInLog
from calque.adapters.spark.event_source import EventStream
from calque.adapters.spark.journal_stream import SCHEMA, journal_stream
from calque.adapters.spark.log_stream import log_stream
from calque.adapters.spark.query import Apply, CheckpointUnusable, Query, discard
from calque.adapters.spark.session import session
from calque.core.events import rows
from calque.core.events.keys import entry_of, keys_of
from calque.errors import Refused, Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.resources import cache_folder
from calque.sandbox import spark_jars
from support.runs.proofs import one_a_day
from support.runs.seeds import seed

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session("tests", spark_jars(), tmp_path_factory.mktemp("spark"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def running(spark: SparkSession, world: World) -> Iterator[Callable[..., Query]]:
    """Starts queries over the world, and stops them in the end."""
    queries: list[Query] = []

    def start(stream: EventStream, apply: Apply) -> Query:
        checkpoint = str(world.folder / "checkpoint")
        started = query.start(spark, stream, apply, name=f"q{id(apply)}", checkpoint=checkpoint)
        queries.append(started)
        return started

    yield start
    for started in queries:
        started.stop()


def event(event_id: EventId, size: int = 0) -> Event:
    return Event(event_id, 1_700_000_000, "OPEN_TXN", "hive", "", "", "json-2.0", "x" * size)


FORKS = """
import os, sys
from pathlib import Path
from calque.adapters.spark.session import session
os.register_at_fork(before=lambda: print("forked"))
session("forks", (), Path(sys.argv[1]))
print("started")
"""


@pytest.mark.prove
def test_a_session_starts_without_code_in_a_forked_child(tmp_path: Path) -> None:
    """Python runs its hooks where it has to run code between fork and exec, which hangs beside other threads' locks."""
    ran = subprocess.run([sys.executable, "-c", FORKS, tmp_path], capture_output=True, text=True, timeout=120)
    assert (ran.stdout.split(), ran.returncode) == (["started"], 0), ran.stderr


class World:
    """A log, and a journal of the same events, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log_file = folder, folder / "log"

    def write(self, ids: Iterable[EventId], size: int = 0) -> None:
        lines = "".join(json.dumps([event_id, size]) + "\n" for event_id in ids)
        with self.log_file.open("a") as file:
            file.write(lines)

    def log(self, starting: EventId = 0, **settings: object) -> EventStream:
        stream = log_stream(partial(FileLog, self.log_file), starting, 0.01)
        return replace(stream, **settings)  # type: ignore[arg-type]

    def journal(self, starting: EventId = 0) -> EventStream:
        return journal_stream(partial(journal_of, self.log_file), starting, 0.01)


class FileLog:
    """An `EventLog` in a file of `[event id, message size]` lines. A file that says `down` does not answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = (-1, -1)
        self._events: list[Event] = []

    def current(self) -> EventId:
        (self._path.parent / f"asked-{os.getpid()}").touch()
        events = self._load()
        return events[-1].event_id if events else 0

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        return [event for event in self._load() if event.event_id > after][:limit]

    def _load(self) -> list[Event]:
        status = self._path.stat() if self._path.exists() else None
        version = (status.st_size, status.st_mtime_ns) if status else (0, 0)
        if version != self._read:
            text = self._path.read_text() if status else ""
            if text.startswith("down"):
                raise Unavailable("The log does not answer", "It is down", "Wait")
            self._events = [event(*json.loads(line)) for line in text.splitlines()]
            self._read = version
        return self._events


class FileJournal:
    """A `Journal` over the same file."""

    def __init__(self, path: Path) -> None:
        self._log = FileLog(path)

    def last(self) -> EventId | None:
        return self._log.current() or None

    def oldest(self) -> EventId | None:
        return None

    def append(self, rows: pa.Table) -> None:
        raise NotImplementedError

    def entries(self, span: Span) -> Sequence[Entry]:
        return [entry_of(event) for event in self._log.read(span.after, span.upto - span.after)]

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        raise NotImplementedError

    def forget(self, upto: EventId) -> int:
        raise NotImplementedError


def journal_of(log: Path) -> tuple[FileJournal, MemoryEvidence]:
    return FileJournal(log), MemoryEvidence()


class Seen:
    """The rows that a query's function was called with, and when."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.times: list[float] = []
        self._changed = threading.Condition()

    def __call__(self, rows_of_batch: pa.Table) -> None:
        with self._changed:
            self.tables.append(rows_of_batch)
            self.times.append(time.monotonic())
            self._changed.notify_all()

    @property
    def batches(self) -> list[list[EventId]]:
        """The events of each batch that had some."""
        return [ids for table in self.tables if (ids := table["event_id"].to_pylist())]

    def until(self, condition: Callable[[Seen], bool], seconds: float = 60) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), seconds), self.batches

    def until_event(self, event_id: EventId) -> None:
        self.until(lambda seen: bool(seen.batches) and seen.batches[-1][-1] >= event_id)


def span(first: EventId, last: EventId) -> list[EventId]:
    return list(range(first, last + 1))


def committed(world: World) -> None:
    """Wait until Spark has committed each batch whose offset it has written."""
    folders = [world.folder / "checkpoint" / name for name in ("offsets", "commits")]
    deadline = time.monotonic() + 60
    while len({frozenset(file.name for file in folder.glob("[0-9]*")) for folder in folders}) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(world: World, start: Callable[..., Query], upto: EventId, stream: EventStream) -> Seen:
    """What a query over the stream saw until it was stopped at that event, with its batch committed."""
    seen = Seen()
    ran = start(stream, seen)
    seen.until_event(upto)
    committed(world)
    ran.stop()
    return seen


def test_each_batch_has_the_rows_of_its_offsets_and_spark_counts_them(
    spark: SparkSession, world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 101), size=50)
    seen = Seen()
    running(world.log(max_events=40), seen)
    seen.until_event(100)
    committed(world)
    [active] = spark.streams.active
    told = [
        (json.loads(of.startOffset) or {"event_id": 0}, json.loads(of.endOffset), of.numInputRows)
        for progress in active.recentProgress
        for of in progress.sources
        if of.numInputRows
    ]
    assert seen.batches == [span(1, 40), span(41, 80), span(81, 100)]
    ends = [0, 40, 80, 100]
    assert told == [({"event_id": a}, {"event_id": b}, b - a) for a, b in pairwise(ends)][: len(told)]
    expected = rows.table_of((event(number, 50), keys_of(event(number, 50))) for number in range(1, 101))
    assert pa.concat_tables([table for table in seen.tables if table.num_rows]).cast(rows.SCHEMA).equals(expected)


def test_news_arrives_within_the_long_poll(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    running(world.log(), seen)
    delays = []
    for event_id in range(1, 16):
        time.sleep(0.1)
        written = time.monotonic()
        world.write([event_id])
        seen.until_event(event_id)
        delays.append(seen.times[-1] - written)
    assert sorted(delays)[7] < 1.0, delays
    assert seen.batches == [[number] for number in range(1, 16)]


def test_a_restarted_query_goes_on_where_it_was(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 11))
    assert read(world, running, 10, world.log()).batches == [span(1, 10)]
    world.write(range(11, 16))
    assert read(world, running, 15, world.log(starting=12)).batches == [span(11, 15)]


@pytest.mark.parametrize("before", one_a_day([0, 10], seed()))
def test_a_batch_that_failed_comes_again_with_the_same_rows(
    world: World, running: Callable[..., Query], before: int
) -> None:
    """The first one, and a later one."""
    if before:
        world.write(range(1, before + 1))
        read(world, running, before, world.log())
    world.write(range(before + 1, before + 6))
    failing = Seen()

    def fail(rows_of_batch: pa.Table) -> None:
        failing(rows_of_batch)
        raise Refused("No", "Not today", "Come back")

    with pytest.raises(Refused):
        running(world.log(), fail).join(60)
    world.write(range(before + 6, before + 9))
    again = read(world, running, before + 8, world.log())
    assert failing.batches == [span(before + 1, before + 5)]
    assert again.batches == [span(before + 1, before + 5), span(before + 6, before + 8)]


def test_without_its_checkpoint_a_query_starts_where_the_caller_says(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    read(world, running, 10, world.log())
    (world.folder / "checkpoint").rename(world.folder / "gone")
    assert read(world, running, 10, world.log(starting=8)).batches == [[9, 10]]


@pytest.mark.parametrize("file", one_a_day(["metadata", "offsets/0", "commits/0"], seed()))
def test_a_checkpoint_that_can_not_be_used_is_told_before_any_batch_and_made_anew(
    spark: SparkSession, world: World, running: Callable[..., Query], file: str
) -> None:
    world.write(range(1, 11))
    read(world, running, 10, world.log())
    checkpoint = world.folder / "checkpoint"
    (checkpoint / file).write_bytes(b"")
    with pytest.raises(CheckpointUnusable):
        running(world.log(starting=8), Seen()).join(60)
    discard(spark, str(checkpoint))
    assert read(world, running, 10, world.log(starting=8)).batches == [[9, 10]]


def test_a_query_that_died_while_it_wrote_its_first_offset_starts_again(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    offsets = world.folder / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.2f1c7c5e.tmp").write_text("v1\n{")
    assert read(world, running, 10, world.log(starting=8)).batches == [[9, 10]]


def test_what_the_source_raises_ends_the_query_as_it_was_raised(world: World, running: Callable[..., Query]) -> None:
    world.write([*range(1, 21), *range(25, 40)])
    with pytest.raises(HoleInLog) as raised:
        running(world.log(), Seen()).join(60)
    assert str(raised.value).startswith("The log has a gap: events 21 to 24 are missing")
    assert str(raised.value).count(". ") >= 2


def test_what_the_function_raises_is_what_join_raises(world: World, running: Callable[..., Query]) -> None:
    world.write([1])
    raised = Refused("No", "Not today", "Come back")

    def fail(*_: object) -> None:
        raise raised

    with pytest.raises(Refused) as caught:
        running(world.log(), fail).join(60)
    assert caught.value is raised


def test_stopping_lets_the_batch_in_hand_finish_and_begins_no_other(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    entered, finished = threading.Event(), Seen()

    def slow(rows_of_batch: pa.Table) -> None:
        entered.set()
        time.sleep(1)
        finished(rows_of_batch)

    ran = running(world.log(max_events=5), slow)
    assert entered.wait(60)
    ran.stop()
    assert finished.batches == [span(1, 5)]
    assert ran.join(1)
    assert not ran.active


def test_a_source_that_was_killed_or_hangs_ends_the_query_which_is_tried_again(
    world: World, running: Callable[..., Query]
) -> None:
    world.write([1])
    seen = Seen()
    killed = running(world.log(), seen)
    seen.until_event(1)
    [source] = [int(file.name.removeprefix("asked-")) for file in world.folder.glob("asked-*")]
    os.kill(source, signal.SIGKILL)
    with pytest.raises(Unavailable, match="A worker process of Spark's is gone"):
        killed.join(60)
    hanging = running(world.log(stuck=1.0), seen)
    while sources_in(world) == 0:
        time.sleep(0.05)
    world.log_file.unlink()
    os.mkfifo(world.log_file)
    with pytest.raises(Unavailable, match="A worker process of Spark's is gone"):
        hanging.join(60)


def test_an_idle_query_stops_at_once_and_leaves_no_process(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    world.write([1])
    ran = running(world.log(wait=30.0), seen)
    seen.until_event(1)
    time.sleep(0.5)
    waiting = sources_in(world)
    began = time.monotonic()
    ran.stop()
    took = time.monotonic() - began
    assert waiting == 1
    assert took < 2
    until = time.monotonic() + 10
    while sources_in(world) and time.monotonic() < until:
        time.sleep(0.1)
    assert sources_in(world) == 0


@pytest.mark.prove
def test_an_idle_query_costs_little(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    world.write([1])
    running(world.log(poll=0.25), seen)
    seen.until_event(1)
    time.sleep(2)
    began, spent = time.monotonic(), processor_seconds()
    time.sleep(4)
    share = (processor_seconds() - spent) / (time.monotonic() - began)
    print(f"idle: {share:.1%} of a core")
    assert share < 0.5


def test_a_query_begins_though_nothing_is_new(world: World, running: Callable[..., Query]) -> None:
    world.write([1])
    read(world, running, 1, world.log())
    ran, deadline = running(world.log(), Seen()), time.monotonic() + 60
    while not ran.has_begun():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_rows_of_the_journal_are_its_entries(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 101), size=50)
    seen = read(world, running, 100, world.journal(starting=10))
    assert seen.batches == [span(11, 100)]
    assert seen.tables[-1].schema.names == SCHEMA.names
    assert list(rows.entries_of(seen.tables[-1])) == [
        Entry(number, event(number).event_time, event(number).event_type, keys_of(event(number)))
        for number in range(11, 101)
    ]


def test_a_session_maps_the_archive_that_was_made_for_it(tmp_path: Path) -> None:
    """With the jars that `make install` makes it for."""
    made = make_archive(cache_folder(), spark_jars())
    script = (
        "import sys; from pathlib import Path; from calque.adapters.spark.session import session;"
        "from calque.sandbox import spark_jars;"
        "spark = session('archived', spark_jars(), Path(sys.argv[1]), archive=Path(sys.argv[2]));"
        "print(spark.sparkContext._gateway.proc.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "local"), str(made)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        java = process.stdout.readline().strip()
        mapped = str(made.resolve()) in Path("/proc", java, "maps").read_text()
        process.stdin.close()
    assert mapped
    assert make_archive(cache_folder(), spark_jars()) == made


def test_processes_that_spark_starts_have_pyspark_from_where_it_is_compiled(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: pyspark.__file__).collect() == [pyspark.__file__]


def sources_in(world: World) -> int:
    """How many of the processes that asked the world's log for its newest event still live."""
    return sum(Path("/proc", file.name.removeprefix("asked-")).exists() for file in world.folder.glob("asked-*"))


def processor_seconds() -> float:
    """What the processes below this one have used so far."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(status.parent.name)
        parents[process] = int(fields[1])
        spent[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    while True:
        more = {process for process, parent in parents.items() if parent in below} - below
        if not more:
            return sum(spent[process] for process in below if process in spent)
        below |= more
