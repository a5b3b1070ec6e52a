"""The two streaming sources and the queries over them, on a real Spark.

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
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from calque.adapters.spark import journal_source, query, watch
from calque.adapters.spark.archive import make_archive
from calque.adapters.spark.contiguous import EventRepeated, HoleInLog
from calque.adapters.spark.journal_source import JournalStream
from calque.adapters.spark.log_source import LogStream
from calque.adapters.spark.query import Apply, CheckpointUnusable, Query, Until, discard, rows_of
from calque.adapters.spark.session import session
from calque.core.events import rows
from calque.core.events.keys import entry_of, keys_of
from calque.errors import Broken, Refused, Unavailable
from calque.model.files import Evidence, Listing
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.resources import cache_folder
from calque.sandbox.spark import spark_jars

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

    def start(stream: query.Stream, apply: Apply, until: Until = Until.STOPPED) -> Query:
        started = query.start(
            spark, stream, apply, name=f"q{id(apply)}", checkpoint=world.folder / "checkpoint", until=until
        )
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


def test_a_session_starts_without_code_in_a_forked_child(tmp_path: Path) -> None:
    """Python runs its hooks where it has to run code between fork and exec, which hangs beside other threads' locks."""
    ran = subprocess.run([sys.executable, "-c", FORKS, tmp_path], capture_output=True, text=True, timeout=120)
    assert (ran.stdout.split(), ran.returncode) == (["started"], 0), ran.stderr


class World:
    """A log, a journal and a wake counter in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wake, self.news = folder / "wake", folder / "news"
        self.log_file = folder / "log"
        self.considered_file = folder / "considered"

    def write(self, ids: Iterable[EventId], size: int = 0) -> None:
        lines = "".join(json.dumps([event_id, size]) + "\n" for event_id in ids)
        with self.log_file.open("a") as file:
            file.write(lines)

    def consider(self, event_id: EventId) -> None:
        self.considered_file.write_text(str(event_id))

    def log(self, starting: EventId = 0, **settings: object) -> LogStream:
        return LogStream(
            partial(FileLog, self.log_file),
            starting,
            self.wake,
            **({"poll": 0.01} | settings),  # type: ignore[arg-type]
        )

    def journal(self, starting: EventId = 0, **settings: object) -> JournalStream:
        opened = partial(journal_of, self.log_file, self.considered_file)
        return JournalStream(opened, starting, self.wake, self.news, **({"poll": 0.01} | settings))  # type: ignore[arg-type]


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


class FileEvidence:
    """An `EvidenceStore` that knows nothing but how far it looked."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def considered(self) -> EventId:
        return int(self._path.read_text()) if self._path.exists() else 0

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        raise NotImplementedError

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        raise NotImplementedError

    def forget(self, upto: EventId) -> int:
        raise NotImplementedError


def journal_of(log: Path, considered: Path) -> tuple[FileJournal, FileEvidence]:
    return FileJournal(log), FileEvidence(considered)


class Seen:
    """What a query's function was called with, and when."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.batches: list[int] = []
        self.times: list[float] = []
        self.tables: list[pa.Table | None] = []
        self._changed = threading.Condition()

    def __call__(self, span: Span, frame: DataFrame | None, batch_id: int) -> None:
        now = time.monotonic()
        table = None if frame is None else rows_of(frame, span)
        with self._changed:
            self.spans.append(span)
            self.batches.append(batch_id)
            self.times.append(now)
            self.tables.append(table)
            self._changed.notify_all()

    def until(self, condition: Callable[[Seen], bool], seconds: float = 60) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), seconds), self.spans

    def until_event(self, event_id: EventId) -> None:
        self.until(lambda seen: bool(seen.spans) and seen.spans[-1].upto >= event_id)


def ids(table: pa.Table | None) -> list[EventId]:
    return [] if table is None else table.column("event_id").to_pylist()


def test_a_run_until_caught_up_reads_everything_that_was_there(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 101))
    seen = Seen()
    assert running(world.log(max_events=40, small=10), seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(0, 40), Span(40, 80), Span(80, 100)]
    assert [event_id for table in seen.tables for event_id in ids(table)] == list(range(1, 101))


def test_small_spans_carry_no_frame_and_run_no_task(
    spark: SparkSession, world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    seen = Seen()
    ran = running(world.log(small=10), seen, Until.CAUGHT_UP)
    assert ran.join(60)
    assert (seen.spans, seen.tables) == ([Span(0, 10)], [None])
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup(ran.run_id)) == []


def test_large_spans_arrive_whole_and_in_order(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 1001), size=50)
    seen = Seen()
    assert running(world.log(small=10, partition=130, page=50), seen, Until.CAUGHT_UP).join(60)
    expected = rows.table_of((event(number, 50), keys_of(event(number, 50))) for number in range(1, 1001))
    assert seen.spans == [Span(0, 1000)]
    assert seen.tables[0] is not None
    assert seen.tables[0].cast(rows.SCHEMA).equals(expected)


def test_tasks_of_a_heavy_span_bring_their_shares_alone(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 41), size=1 << 20)
    seen = Seen()
    stream = world.log(small=10, partition=20, page=2, share=5 << 20)
    assert running(stream, seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(0, 40)]
    assert ids(seen.tables[0]) == [*range(1, 7), *range(21, 27)]


def test_news_arrives_within_the_long_poll(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    running(world.log(), seen)
    seen.until(lambda seen: len(seen.spans) > 0)
    delays = []
    for event_id in range(1, 16):
        time.sleep(0.1)
        written = time.monotonic()
        world.write([event_id])
        seen.until_event(event_id)
        delays.append(seen.times[-1] - written)
    assert sorted(delays)[7] < 1.0, delays
    assert seen.spans == [Span(0, 0), *(Span(number - 1, number) for number in range(1, 16))]


def test_a_restarted_query_goes_on_where_it_was(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 11))
    first, second = Seen(), Seen()
    assert running(world.log(), first, Until.CAUGHT_UP).join(60)
    world.write(range(11, 16))
    assert running(world.log(starting=3), second, Until.CAUGHT_UP).join(60)
    assert (first.spans, second.spans) == ([Span(0, 10)], [Span(10, 15)])
    assert second.batches == [1]


@pytest.mark.parametrize("before", [0, 10], ids=["the first batch", "a later batch"])
def test_a_span_that_failed_is_applied_again(world: World, running: Callable[..., Query], before: int) -> None:
    if before:
        world.write(range(1, before + 1))
        assert running(world.log(), Seen(), Until.CAUGHT_UP).join(60)
    world.write(range(before + 1, before + 6))
    failing, again = Seen(), Seen()

    def fail(span: Span, frame: DataFrame | None, batch_id: int) -> None:
        failing(span, frame, batch_id)
        raise Refused("No", "Not today", "Come back")

    with pytest.raises(Refused):
        running(world.log(), fail, Until.CAUGHT_UP).join(60)
    world.write(range(before + 6, before + 9))
    assert running(world.log(), again, Until.CAUGHT_UP).join(60)
    assert failing.spans == [Span(before, before + 5)]
    assert again.spans == [Span(before, before + 5), Span(before + 5, before + 8)]
    assert again.batches[0] == failing.batches[0]


def test_a_first_span_that_failed_starts_where_the_caller_says_now(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 11))
    seen = Seen()

    def fail(*_: object) -> None:
        raise Refused("No")

    with pytest.raises(Refused):
        running(world.log(), fail, Until.CAUGHT_UP).join(60)
    assert running(world.log(starting=7), seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(7, 10)]


def test_without_its_checkpoint_a_query_starts_where_the_caller_says(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    assert running(world.log(), Seen(), Until.CAUGHT_UP).join(60)
    (world.folder / "checkpoint").rename(world.folder / "gone")
    seen = Seen()
    assert running(world.log(starting=8), seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(8, 10)]


@pytest.mark.parametrize("file", ["metadata", "offsets/0", "commits/0"])
def test_a_checkpoint_that_can_not_be_used_is_told_before_any_batch_and_made_anew(
    spark: SparkSession, world: World, running: Callable[..., Query], file: str
) -> None:
    world.write(range(1, 11))
    assert running(world.log(), Seen(), Until.CAUGHT_UP).join(60)
    checkpoint, seen = world.folder / "checkpoint", Seen()
    (checkpoint / file).write_bytes(b"")
    with pytest.raises(CheckpointUnusable):
        running(world.log(starting=8), seen, Until.CAUGHT_UP).join(60)
    discard(spark, str(checkpoint))
    assert running(world.log(starting=8), seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(8, 10)]


def test_a_query_that_died_while_it_wrote_its_first_offset_starts_again(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    offsets = world.folder / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.2f1c7c5e.tmp").write_text("v1\n{")
    seen = Seen()
    assert running(world.log(starting=8), seen, Until.CAUGHT_UP).join(60)
    assert seen.spans == [Span(8, 10)]


@pytest.mark.parametrize(
    ("written", "kind", "text"),
    [
        ([*range(1, 21), *range(25, 40)], HoleInLog, "The log has a gap: events 21 to 24 are missing"),
        (range(10, 40), HoleInLog, "The log has a gap: events 1 to 9 are missing"),
        ([*range(1, 20), 19, *range(20, 40)], EventRepeated, "The log gave event 19 after event 19."),
    ],
    ids=["a gap", "a purged log", "a duplicate"],
)
def test_a_log_that_does_not_go_on_one_by_one_ends_the_query(
    world: World, running: Callable[..., Query], written: Iterable[EventId], kind: type[Broken], text: str
) -> None:
    world.write(written)
    with pytest.raises(Broken) as raised:
        running(world.log(small=5), Seen(), Until.CAUGHT_UP).join(60)
    assert type(raised.value) is kind
    assert str(raised.value).startswith(text)
    assert str(raised.value).count(". ") >= 2


@pytest.mark.parametrize("until", Until)
def test_a_log_that_went_back_ends_the_query(world: World, running: Callable[..., Query], until: Until) -> None:
    world.write(range(1, 11))
    with pytest.raises(
        HoleInLog, match=r"The log went back: it ends at event 10, but event 50 was read already\. .+\. .+\."
    ):
        running(world.log(starting=50), Seen(), until).join(60)


def test_a_bumped_counter_brings_an_empty_span(world: World, running: Callable[..., Query]) -> None:
    world.write([1, 2])
    seen = Seen()
    running(world.log(), seen)
    seen.until_event(2)
    watch.bump(world.wake)
    seen.until(lambda seen: len(seen.spans) == 2)
    watch.bump(world.wake)
    world.write([3])
    seen.until_event(3)
    assert seen.spans[1] == Span(2, 2)
    assert [span for span in seen.spans if len(range(span.after, span.upto))] == [Span(0, 2), Span(2, 3)]


def test_a_log_that_does_not_answer_is_waited_for(world: World, running: Callable[..., Query]) -> None:
    world.write([1])
    seen = Seen()
    running(world.log(), seen)
    seen.until_event(1)
    world.log_file.write_text("down")
    time.sleep(0.3)
    world.log_file.write_text("")
    world.write([1, 2])
    seen.until_event(2)
    assert seen.spans == [Span(0, 1), Span(1, 2)]


def test_what_the_function_raises_is_what_join_raises(world: World, running: Callable[..., Query]) -> None:
    world.write([1])
    raised = Refused("No", "Not today", "Come back")

    def fail(*_: object) -> None:
        raise raised

    with pytest.raises(Refused) as caught:
        running(world.log(), fail).join(60)
    assert caught.value is raised


def test_stopping_lets_the_span_in_hand_finish_and_begins_no_other(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 11))
    entered, finished = threading.Event(), Seen()

    def slow(span: Span, frame: DataFrame | None, batch_id: int) -> None:
        entered.set()
        time.sleep(1)
        finished(span, frame, batch_id)

    ran = running(world.log(max_events=5), slow)
    assert entered.wait(60)
    ran.stop()
    assert finished.spans == [Span(0, 5)]
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
    ran = running(world.log(wait=30.0), seen)
    seen.until(lambda seen: len(seen.spans) > 0)
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


def test_an_idle_query_costs_little(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    running(world.log(poll=0.25), seen)
    seen.until(lambda seen: len(seen.spans) > 0)
    time.sleep(2)
    began, spent = time.monotonic(), processor_seconds()
    time.sleep(4)
    share = (processor_seconds() - spent) / (time.monotonic() - began)
    print(f"idle: {share:.1%} of a core")
    assert share < 0.5


def test_new_evidence_wakes_the_query_over_the_journal(world: World, running: Callable[..., Query]) -> None:
    world.write([1, 2])
    seen = Seen()
    running(world.journal(), seen)
    seen.until_event(2)
    world.consider(2)
    seen.until(lambda seen: len(seen.spans) == 2)
    watch.bump(world.wake)
    seen.until(lambda seen: len(seen.spans) == 3)
    assert seen.spans == [Span(0, 2), Span(2, 2), Span(2, 2)]


def test_large_spans_of_the_journal_arrive_as_entries(world: World, running: Callable[..., Query]) -> None:
    world.write(range(1, 101), size=50)
    seen = Seen()
    assert running(world.journal(starting=10, small=10, partition=30), seen, Until.CAUGHT_UP).join(60)
    table = seen.tables[0]
    assert seen.spans == [Span(10, 100)]
    assert table is not None
    assert table.schema.names == journal_source.SCHEMA.names
    assert list(rows.entries_of(table)) == [
        Entry(number, event(number).event_time, event(number).event_type, keys_of(event(number)))
        for number in range(11, 101)
    ]


def test_a_target_that_starts_ahead_of_the_journal_waits_for_it(world: World, running: Callable[..., Query]) -> None:
    seen = Seen()
    running(world.journal(starting=5), seen)
    seen.until(lambda seen: len(seen.spans) == 1)
    world.write(range(1, 4))
    time.sleep(0.5)
    world.write(range(4, 8))
    seen.until_event(7)
    assert seen.spans == [Span(5, 5), Span(5, 7)]


def test_a_journal_older_than_the_checkpoint_ends_the_query_which_is_tried_again(
    world: World, running: Callable[..., Query]
) -> None:
    world.write(range(1, 11))
    assert running(world.journal(), Seen(), Until.CAUGHT_UP).join(60)
    world.log_file.unlink()
    world.write(range(1, 4))
    with pytest.raises(
        Unavailable, match=r"The journal ends at event 3, but this target read event 10 of it already\."
    ):
        running(world.journal(), Seen(), Until.CAUGHT_UP).join(60)


def test_a_journal_with_a_hole_ends_the_query(world: World, running: Callable[..., Query]) -> None:
    world.write([*range(1, 21), *range(25, 40)])
    with pytest.raises(HoleInLog, match=r"events 21 to 24 are missing"):
        running(world.journal(small=5), Seen(), Until.CAUGHT_UP).join(60)


def test_a_session_maps_the_archive_that_was_made_for_it(tmp_path: Path) -> None:
    made = make_archive(cache_folder(), [])
    script = (
        "import sys; from pathlib import Path; from calque.adapters.spark.session import session;"
        "spark = session('archived', [], Path(sys.argv[1]), archive=Path(sys.argv[2]));"
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
    assert make_archive(cache_folder(), []) == made


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
