"""A whole small world in memory: a source that a random writer changes, calque, a target, and a reader that remembers
every state the source showed.

Nothing runs by itself: a test says when the source is written to, when capture looks, when reads happen and windows.

    world = World(seed=1)
    world.open()                    # calque starts
    world.write(200)                # the writer makes databases and tables, inserts, renames, drops …
    world.capture_all()             # the log into the journal, and a look at the files it names
    world.work()                    # exact reads in the background, then a window
    world.settle()                  # all of it, until the target has everything
    assert world.problems == []     # the reader looked after every call at the target
    assert differences(world) == [] # of `histories`: what the target has in the end

`between` is called before each call of calque's, so that others come between any two; `fate` and `deadliness` say where
calque dies, and `survive` starts it again. Capture, log, ledger, storage and catalogs are attributes: a test may ask
them. Worlds with more than that are beside: `disks` (real directories), `gapped`, `policies`, `restored`, `rings` ….
"""

from __future__ import annotations

import copy
import random
import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

from calque.adapters.files.pins import StoredPins
from calque.adapters.held_evidence import MemoryEvidence
from calque.core.acid.directories import directory_of
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.events.rows import rows_of_events
from calque.core.formats.layout import join
from calque.core.images.image import MARKS, STATE, STATISTICS, ImageBuilder, Marks, canonical
from calque.core.images.table_layout import committed_format
from calque.core.policy.admit import Admission
from calque.core.records import lifecycle
from calque.core.states.exact_state import is_ahead
from calque.engine.apply.context import EARLY
from calque.engine.capture.capture import Capture
from calque.engine.exact_reads.build_in_batches import BATCH
from calque.engine.failpoints import FailpointGuard
from calque.engine.replica.replica import Replica
from calque.engine.sides.claim_book import ClaimBook
from calque.engine.sides.committed_journal import with_commits
from calque.engine.sides.sides import SourceSide, TargetSide, TargetTransactions
from calque.engine.sides.subset_ports import subset_source
from calque.engine.source.commits import CommitFinder, is_followed
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.window.long_copies import PATIENCE
from calque.engine.window.play import ARRIVED
from calque.engine.window.prepare import COLUMNS_UNKNOWN, FILES_UNKNOWN
from calque.engine.window.result import WindowResult
from calque.errors import Unavailable
from calque.model.gaps import Gap, GapCause
from calque.model.hive import (
    Partition,
    Table,
    is_delta,
    is_partitioned,
    is_transactional,
    is_view,
    location_of,
)
from calque.model.journal import EventKind
from calque.model.names import OURS, EventId, Span, TableName, partition_name
from calque.model.policy import Policy
from calque.model.records import AnnouncedBridge, all_of
from calque.model.transactions import OpenTransactions
from calque.ports import Catalog, Scans, parts_of
from calque.ports.formats import TableFormat
from calque.ports.forwarding import ForwardingCatalog, ForwardingStorage
from support.memory.commits import MemoryCommits
from support.memory.gaps import MemoryGaps
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.memory.metastore import (
    HIVE_3,
    HIVE_4,
    MemoryCatalog,
    MemoryLog,
    MemoryMetastore,
    MemoryReader,
    MemoryReplicatedTransactions,
    MemoryTransactionReader,
    ServerHabits,
)
from support.memory.metastore.store import StoredTable
from support.memory.storage import MemoryStorage
from support.sources.writers import INPUT, OUTPUT, PARQUET, SERDE, TEXT, Directories, Noting, Writer
from support.worlds.delta_reader import DeltaTable, delta_table, snapshot

__all__ = ["INPUT", "OUTPUT", "SERDE", "Noting", "Writer"]

P = ParamSpec("P")
R = TypeVar("R")
State = Any
ABSENT: State = None
OPERATOR = "the test wants it"
"""Why tables are read that an operator would name."""
FILES, COLUMNS = (re.compile(rf"{begin} (\d+)") for begin in (FILES_UNKNOWN, COLUMNS_UNKNOWN))
UNFIT = "can't go on as a Delta table"
CHECKPOINT_EVERY, GRACE = 3, 4.0
"""Of Delta tables' logs: in how many versions there is a checkpoint, and how long what it stands for is kept."""
OF_QUARANTINED = ("it was dropped at the source", "it was renamed at the source")
"""Why tables are read that were quarantined."""


class Died(BaseException):
    """The process was killed."""


class InlineExecutor(Executor):
    """Runs everything at once, in the caller."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - as any executor: `Future.result` raises it
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass


class Unwaited(threading.Event):
    """Nobody waits for it: pauses before something is tried again cost a world nothing."""

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002
        return self.is_set()


class DeferredExecutor(InlineExecutor):
    """Keeps what is submitted until `run` is called, so that a test says when background work happens."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.run_with: list[tuple[Any, ...]] = []
        """The arguments of everything that was run."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        if cancel_futures:
            self.waiting.clear()

    def run(self, limit: int | None = None) -> None:
        """What waits, or the first `limit` of it."""
        waiting, self.waiting = self.waiting[:limit], self.waiting[len(self.waiting[:limit]) :]
        for future, fn, args in waiting:
            self.run_with.append(args)
            try:
                result = fn(*args)
            except Exception as error:  # noqa: BLE001 - as any executor: `Future.result` raises it
                future.set_exception(error)
            else:
                future.set_result(result)


def formats_of(policy: Policy) -> tuple[TableFormat, ...]:
    """Those of its targets: worlds of plain tables need no plugin."""
    if not has_logs(policy):
        return ()
    from calque.plugins.delta_replicas.wiring import DeltaFormat

    return (DeltaFormat(),)


def has_logs(policy: Policy) -> bool:
    """Whether some table may have a log of commits at the target."""
    return policy.format != "plain" or policy.acid == "delta"


class WorldClock:
    """Time that passes a little with every look; sleeping lets capture work. `set_by` is how far somebody set the
    machine's clock."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000_000
        self.set_by = 0
        self.asleep: Callable[[], None] = lambda: None

    def now_ns(self) -> int:
        return self.elapsed_ns() + self.set_by

    def elapsed_ns(self) -> int:
        self.now += 1_000_000
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)
        self.asleep()


def rows_of(contents: Iterable[bytes]) -> State:
    """The lines of text files, wherever they lie."""
    return tuple(sorted(line for content in contents for line in content.splitlines()))


def rows_seen(storage: Any, location: str, valid: ValidWriteIds, states: OpenTransactions) -> State:
    """The rows in a directory of an insert-only table for a reader with these write ids and transactions. Each begins
    with the write id of its insert. Hive 4 sees none below a hidden directory."""
    if any(name.startswith("_") for name in location.split("/")):
        return ()
    named = [one for name in storage.children(location) if (one := directory_of(name)) is not None]
    seen = [one for one in named if one.visibility is None or states.is_committed(one.visibility)]
    bases = [one for one in seen if one.low == 0 and one.high <= valid.high]
    bases = [one for one in bases if one.visibility is not None or valid.holds(one.high)]
    base = max(bases, key=lambda one: (one.high, one.visibility or 0), default=None)
    first = base.high if base is not None else 0
    read = [one for one in seen if one is base or (one.low > 0 and one.high > first)]
    lines = {
        line
        for one in read
        for _, content in storage.contents(f"{location}/{one.name}")
        for line in content.splitlines()
    }
    return rows_of(line + b"\n" for line in sorted(lines) if valid.holds(int(line.split(b":")[0])))


def nothing(_location: str) -> State:
    """Of content that is not looked at."""


Compute = Callable[[], State]


def computed(_thing: object, _as: Hashable, compute: Compute) -> State:
    return compute()


class Recall:
    """What was computed of a thing before; things are frozen, so one that is the same object is the same."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, Hashable], tuple[object, State]] = {}

    def __call__(self, thing: object, as_: Hashable, compute: Compute) -> State:
        key = (id(thing), as_)
        if key not in self.known:
            self.known[key] = (thing, compute())
        return self.known[key][1]


@dataclass(frozen=True)
class Looker:
    """What a reader sees of a table: definitions without marks and statistics, and the content of every file. Of tables
    whose files stay at the source no content, and not the partitions that are listed early unless `early`; with
    `of_places` their locations in place of content."""

    imaging: ImageBuilder
    content: Callable[[str], State]
    recall: Callable[[object, Hashable, Compute], State] = computed
    ignored: frozenset[str] = STATISTICS | MARKS
    """Parameters."""
    early: bool = False
    of_places: bool = False

    def stays(self, name: TableName) -> bool:
        return not self.imaging.admission.copies(name)

    def source(self, name: TableName, table: Table, partitions: list[Partition]) -> State:
        """The policy's image of a source's table."""
        image = self.recall(
            table, "source", lambda: self.definition(self.imaging.table(table, Marks(0, ""), location_of(table)))
        )
        return self.state(name, image, table, partitions)

    def target(self, name: TableName, table: Table, partitions: list[Partition]) -> State:
        if self.stays(name) and not self.early:
            partitions = [partition for partition in partitions if (partition.parameters or {}).get(STATE) != EARLY]
        return self.state(name, self.recall(table, "target", lambda: self.definition(table)), table, partitions)

    def state(self, name: TableName, image: State, table: Table, partitions: list[Partition]) -> State:
        rows = {
            partition.values: (
                self.recall(partition, name, lambda partition=partition: self.row(name, partition)),
                self.files(name, location_of(partition)),
            )
            for partition in partitions
        }
        has_files = not is_view(table) and ((self.of_places and self.stays(name)) or not is_partitioned(table))
        return (image, self.files(name, location_of(table)) if has_files else None, tuple(sorted(rows.items())))

    def row(self, name: TableName, partition: Partition) -> State:
        of_name = replace(partition, table=name.table, database=name.database)
        return self.definition(self.imaging.partition(of_name, name, Marks(0, ""), None))

    def definition(self, thing: object) -> State:
        return canonical(thing, self.ignored)

    def files(self, name: TableName, location: str | None) -> State:
        if self.stays(name):
            return location if self.of_places else None
        return None if location is None else self.content(location)


@dataclass
class History:
    """Every state that each table of the source was in, with the event id that it began at."""

    states: dict[TableName, list[tuple[int, State]]] = field(default_factory=dict)
    reached: dict[TableName, int] = field(default_factory=dict)
    noted: list[int] = field(default_factory=list)
    """The event ids at which the source was looked at."""

    def note(self, event_id: int, seen: Mapping[TableName, State]) -> None:
        self.noted.append(event_id)
        for name in seen.keys() | self.states.keys():
            rows = self.states.setdefault(name, [(0, ABSENT)])
            state = seen.get(name, ABSENT)
            if rows[-1][1] != state:
                rows.append((event_id, state))

    def at(self, name: TableName, event_id: int) -> list[State]:
        """The table's state at the event; where that is one of several of a call, those before and after the call."""
        place = bisect_left(self.noted, event_id)
        exact = place < len(self.noted) and self.noted[place] == event_id
        looks = self.noted[place : place + 1] if exact else self.noted[max(place - 1, 0) : place + 1]
        return [[state for since, state in self.states.get(name, [(0, ABSENT)]) if since <= look][-1] for look in looks]

    def check(self, seen: Mapping[TableName, State]) -> list[tuple[TableName, str]]:
        """What a reader must not see: a state that the source never had, or an older one than was seen before."""
        return [(name, problem) for name, state in seen.items() if (problem := self.judge(name, state))]

    def judge(self, name: TableName, state: State, known: int | None = None) -> str:
        """Why the table must not be seen in that state, empty when it may; `known` states there were at the time."""
        rows, at = self.states.get(name, [(0, ABSENT)]), self.reached.get(name, 0)
        found = next((i for i in range(at, len(rows[:known])) if rows[i][1] == state), None)
        if found is not None:
            self.reached[name] = found
            return ""
        before = [i for i, row in enumerate(rows) if row[1] == state]
        what = f"state {before} again, after {at}" if before else "no state of the source"
        return f"{name} shows {what}: {state}"


class Backup:
    """A copy of a metastore, its log included."""

    def __init__(self, metastore: MemoryMetastore) -> None:
        self.content = self.copied(metastore.__dict__)

    def restore(self, metastore: MemoryMetastore) -> None:
        metastore.__dict__.update(self.copied(self.content))

    def copied(self, content: Mapping[str, Any]) -> dict[str, Any]:
        kept = ("_last_id", "_tables_made", "_log", "_functions", "_tables", "_databases", "_database_grants")
        return {name: copy.deepcopy(content[name]) for name in kept}


@dataclass(frozen=True, slots=True)
class Look:
    """What a reader at the target saw of a table, the first time: in which window, after which call."""

    window: int
    method: str
    table: TableName
    state: State
    known: int
    """How many states the source had shown of the table by then."""
    bridged: bool
    """A bridge of the table was announced."""


class World:
    """Everything, wired. `seed` decides all of it. Another `storage` must have what `MemoryStorage` has; the source
    lies below `root`."""

    def __init__(
        self,
        seed: int,
        habits: ServerHabits | None = None,
        policy: Policy | None = None,
        patience: float = PATIENCE,
        storage: Any = None,
        root: str = "file:",
        scans: Scans | None = None,
        pins: bool = False,
        batch: int = BATCH,
    ) -> None:
        self.patience, self.batch = patience, batch
        self.rng = random.Random(seed)
        self.clock = WorldClock()
        self.clock.asleep = self.capture_all
        self.storage = storage or MemoryStorage(self.clock.now_ns)
        self.habits = habits or self.rng.choice([HIVE_3, HIVE_4])
        self.source = MemoryMetastore(
            self.habits, f"{root}/source", directories=Directories(self.storage), clock=self.seconds
        )
        self.target_store = MemoryMetastore(
            HIVE_4, "file:/managed", directories=Directories(self.storage), clock=self.seconds
        )
        self.policy = policy or Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target")
        file_format = TEXT if self.policy.format == "plain" else PARQUET
        noting = Noting(self.source, self.note)
        outside = f"{root}/outside"
        self.writer = Writer(noting, self.storage, self.rng, outside=outside, placed=self.note, file_format=file_format)
        self.history = History()
        self.journal, self.evidence = MemoryJournal(), MemoryEvidence()
        self.ledger = MemoryLedger(self.recorded)
        self.published: Callable[[], None] = lambda: None
        """Called after each epoch, before anybody does anything else."""
        self.between: Callable[[str], None] = lambda _: None
        self.looks: list[Look] = []
        self.seen: dict[TableName, tuple[State, bool]] = {}
        self.seen_at = (-1, -1)
        self.contents: dict[str, State] = {}
        self.contents_at = -1
        self.windows: list[WindowResult] = []
        self.busy = False
        self.gathering = False
        self.deadliness = 0.0
        """How likely calque dies before or after each call at the target and at the storage."""
        self.fate: Callable[[], bool] = lambda: self.rng.random() < self.deadliness
        """Whether calque dies at this point."""
        self.mortal = False
        self.deaths = 0
        self.reread: set[TableName] = set()
        """Tables that left the windows after they had been shown: their chains have holes."""
        self.first_reads: set[TableName] = set()
        """Those that renames brought."""
        self.read_again: set[tuple[TableName, str]] = set()
        """Those of them that were to be read, and why; but for what was quarantined, what an operator wanted, and what
        `unknown_states` has."""
        self.unknown_states: set[TableName] = set()
        """Those of them that were to be read because files of an event were gone, because nothing says what a change of
        columns did to partitions, or because they can't stay Delta tables."""
        log = MemoryLog(self.source, before=self.called)
        reader = MemoryReader(self.source, before=self.called)
        self.gaps = MemoryGaps()
        self.source_side = SourceSide(
            "hq", log, reader, self.journal, self.evidence, self.storage, self.clock, scans, gaps=self.gaps
        )
        if pins:
            kept = StoredPins(self.storage, "file:/pins")
            self.source_side = replace(self.source_side, pins=kept)
        self.acid = Admission(self.policy).takes_acid
        if self.acid:
            transactions = MemoryTransactionReader(self.source, before=self.called)
            self.source_side = replace(self.source_side, commits=MemoryCommits(), transactions=transactions)
        self.side = TargetSide.of(
            self.policy,
            self.target_catalog(),
            self.ledger,
            self.storage,
            formats=formats_of(self.policy),
            transactions=self.target_transactions(),
        )
        self.delta_tables: dict[Hashable, DeltaTable | str] = {}
        """What Delta readers saw, by roots, names at the metastore and the files of logs."""
        self.looker = Looker(self.side.imaging, self.content, Recall())
        self.begin = 0
        self.gatherer = EvidenceGatherer(self.source_side, self.has_files)
        self.capture = Capture(self.source_side, self.begin, self.gatherer)
        self.finder = self.new_finder()
        self.background = DeferredExecutor()
        self.replica = self.new_replica()

    def has_files(self, name: TableName) -> bool:
        """Whether the target copies the table's files."""
        return self.side.admission.takes(name) and self.side.admission.copies(name)

    def new_finder(self) -> CommitFinder | None:
        """Of the commits of transactions, where there are ACID tables."""
        source = self.source_side
        if source.commits is None or source.transactions is None:
            return None
        wants = partial(is_followed, [self.side.admission])
        finder = CommitFinder(source, source.commits, source.transactions, wants)
        finder.open()
        return finder

    def beginning(self) -> EventId:
        """The event that the journal begins after."""
        found = self.gaps.recorded()
        return found[-1].at if found else self.begin

    def target_catalog(self) -> Catalog:
        """As a new process has it."""
        catalog = MemoryCatalog(self.target_store, before=self.called, after=self.returned)
        if not has_logs(self.policy):
            return catalog
        from calque.plugins.delta_replicas.adapters.catalog import with_delta_replicas
        from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs

        storage = ForwardingStorage(self.storage, self.log_called)
        logs = ReplicaLogs(storage, GRACE, lambda: self.clock.now // 10**6, CHECKPOINT_EVERY)
        parts = with_delta_replicas(parts_of(catalog), self.storage, logs, self.next_epoch, lambda *_: {})
        return ForwardingCatalog(parts)

    def target_transactions(self) -> TargetTransactions | None:
        if not self.acid:
            return None
        writer = MemoryReplicatedTransactions(self.target_store, "calque.*", before=self.called, after=self.returned)
        guarded = FailpointGuard(self.failpoint).transactions(writer)
        return TargetTransactions(MemoryTransactionReader(self.target_store, before=self.called), guarded)

    def failpoint(self, name: str) -> None:
        """Passed before and after each of calque's transactions at the target."""

    def log_called(self, method: str, call: Callable[P, R], /, *args: P.args, **named: P.kwargs) -> R:
        """Around each call for a Delta table's log; others come between, and calque may die before and after it."""
        if method in ("read", "write"):
            self.called(method)
        result = call(*args, **named)
        if method in ("write", "publish", "remove"):
            self.returned(method)
        return result

    def next_epoch(self) -> int:
        last = self.ledger.last_epoch()
        return last.epoch + 1 if last is not None else 1

    def seconds(self) -> float:
        return self.clock.now / 1e9

    def new_replica(self) -> Replica:
        """As a new process has it: of claims it knows what they say themselves."""

        def pool(_: int, name: str) -> Executor:
            return self.background if name.startswith(("read", "copy")) else InlineExecutor()

        patience, batch = self.patience, self.batch
        self.side = replace(self.side, claims=ClaimBook(self.side.ledger, self.policy.source, self.policy.target))
        source = subset_source(with_commits(self.source_side, self.side.admission), self.side.admission.subset)
        replica = Replica(source, self.side, self.beginning, lambda: None, pool, patience=patience, batch=batch)
        replica.reading.stopping = Unwaited()
        return replica

    def returned(self, method: str) -> None:
        self.looked(method)
        self.perhaps_die()

    def recorded(self, failpoint: str) -> None:
        if failpoint == "ledger.epoch":
            with self.uninterrupted():
                self.published()
        self.perhaps_die()

    def perhaps_die(self) -> None:
        if self.mortal and self.fate():
            self.mortal = False
            self.deaths += 1
            raise Died

    def called(self, method: str) -> None:
        if self.busy:
            return
        self.perhaps_die()
        with self.uninterrupted():
            self.between(method)
        if self.gathering and method == "current":
            self.append_log()

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Nobody else comes between the calls that are made inside."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    def write(self, steps: int = 1) -> None:
        with self.uninterrupted():
            for _ in range(steps):
                self.writer.step()

    def note(self) -> None:
        self.history.note(self.source.current(), self.source_states())

    def append_log(self, limit: int | None = None) -> None:
        """Copy the log's next events into the journal: all, or `limit`."""
        events = self.source.events(self.capture.reached())
        if events:
            self.capture.append(rows_of_events(events[:limit]))

    def capture_all(self, limit: int | None = None) -> None:
        """Copy the log and look at the files that it names. What is done between the calls of that comes to here, too,
        but not into itself."""
        self.append_log(limit)
        if not self.gathering:
            self.gathering = True
            try:
                self.gatherer.run_once()
                while self.finder is not None and self.finder.run_once():
                    pass
            finally:
                self.gathering = False

    def work(self) -> None:
        """Background reads and a window."""
        self.read()
        self.window_alone()

    def read(self, limit: int | None = None) -> None:
        """Background reads: all, or the first `limit`."""
        self.survive(lambda: self.background.run(limit))

    def window_alone(self) -> None:
        self.survive(self.window)

    def survive(self, action: Callable[[], None]) -> None:
        """When calque dies it is started again."""
        self.mortal = True
        try:
            action()
        except Died:
            self.restart_replica(self.ledger)
        finally:
            self.mortal = False
        self.note_reread()

    def restart_replica(self, ledger: MemoryLedger) -> None:
        """Another process takes up what `ledger` says."""
        self.background.waiting.clear()
        self.ledger = ledger
        self.side = replace(self.side, ledger=ledger)
        if has_logs(self.policy):
            # What the process before knew of the tables' logs is gone.
            self.side = replace(self.side, catalog=self.target_catalog())
        self.replica = self.new_replica()
        self.open()

    def restart(self) -> None:
        """Everything of calque is started again."""
        begin = self.beginning()
        self.gatherer = EvidenceGatherer(self.source_side, self.has_files)
        self.capture = Capture(self.source_side, begin, self.gatherer)
        self.gatherer.resume(begin, self.capture.last())
        self.finder = self.new_finder()
        self.restart_replica(self.ledger)

    def lose(self, keep: int = 0) -> None:
        """The log's oldest events are purged, all but `keep`, whether capture has read them or not."""
        self.source.purge(self.source.current() - keep)
        after, at = self.capture.last(), self.source.current() - keep
        if at > after:
            self.find_gap(after, at, GapCause.PURGED)

    def forget(self, keep: int = 0) -> None:
        """The journal lets go of all but its `keep` newest events, whoever needs them."""
        upto = self.capture.last() - keep
        self.journal.forget(upto)
        self.evidence.forget(upto)

    def go_back(self, backup: Backup) -> None:
        """The source's metastore is as it was when the backup was made; its files are not. Capture has read all of the
        log by then: of files that an event brought which nobody read, nothing is left that tells."""
        self.capture_all()
        after = self.capture.last()
        backup.restore(self.source)
        self.note()
        at = self.source.current()
        if at < after:
            self.find_gap(after, at, GapCause.WENT_BACK)

    def find_gap(self, after: EventId, at: EventId, cause: GapCause) -> None:
        """What capture does when ids tell it of a gap."""
        self.gaps.add(Gap(len(self.gaps.recorded()) + 1, after, at, cause, ""))
        self.evidence.forget(max(after, at))
        self.journal.restart(at)
        self.gatherer = EvidenceGatherer(self.source_side, self.has_files)
        self.capture = Capture(self.source_side, at, self.gatherer)
        self.gatherer.resume(at, at)

    def note_reread(self) -> None:
        rows = self.replica.tables.rows.items()
        self.first_reads |= {name for name, row in rows if row.reason == ARRIVED}
        aside = {name: row for name, row in rows if row.state in lifecycle.ASIDE and row.shows is not None}
        self.reread |= aside.keys()
        for name, row in rows:
            if row.state not in lifecycle.UNREAD or row.reason in (OPERATOR, *OF_QUARANTINED):
                continue
            files, columns = FILES.search(row.reason), COLUMNS.search(row.reason)
            unknown = (files and self.is_lost(int(files[1]))) or (columns and self.changes_columns(int(columns[1])))
            if unknown or UNFIT in row.reason:
                self.unknown_states.add(name)
            elif name in aside:
                self.read_again.add((name, row.reason))

    def is_lost(self, event_id: EventId) -> bool:
        """Whether files of the event were never seen, are not where they were, or went along in an exchange of
        partitions, of which the log says nothing but an addition and a drop."""
        listings = self.evidence.evidence([event_id]).values()
        if not listings or any(
            self.storage.tree(listing.location).get(join(listing.location, file.path)) != (file.size, file.modified_ns)
            for listing in listings
            for file in listing.files
        ):
            return True
        entry, *_ = later = self.journal.entries(Span(event_id - 1, self.capture.last()))
        partitions = {*entry.keys.partitions}
        renames = (one for one in later if one.keys.kind is EventKind.RENAME_PARTITION)
        for rename in renames:
            partitions |= {*rename.keys.partitions} if partitions & {*rename.keys.others} else set()
        return any(
            (one.keys.kind, other.keys.kind) == (EventKind.ADD_PARTITIONS, EventKind.DROP_PARTITIONS)
            and one.keys.partitions == other.keys.partitions
            and partitions & {*one.keys.partitions}
            and one.keys.table != other.keys.table
            for one, other in pairwise(later)
        )

    def changes_columns(self, event_id: EventId) -> bool:
        (entry,) = self.journal.entries(Span(event_id - 1, event_id))
        return entry.keys.columns_changed

    def open(self) -> None:
        while True:
            try:
                self.replica.open()
            except Died:
                self.background.waiting.clear()
                self.replica = self.new_replica()
            else:
                return

    def window(self, upto: EventId | None = None) -> None:
        """A window to the journal's end, or to `upto`."""
        try:
            window = self.replica.window(self.known() if upto is None else upto)
        except Unavailable:
            return
        finally:
            self.looked("the window")
        if window is not None:
            self.windows.append(window)

    def known(self) -> EventId:
        """The last event of the journal of which everything is known."""
        return with_commits(self.source_side, self.side.admission).journal.last() or self.capture.last()

    def settle(self, rounds: int = 200) -> None:
        """Until the target shows the source's newest state, of all tables that are not quarantined."""
        for _ in range(rounds):
            self.capture_all()
            self.work()
            tables = self.replica.tables
            settling = set(lifecycle.State) - {lifecycle.State.LIVE, lifecycle.State.QUARANTINED}
            at_head = self.replica.epochs.position() == self.source.current()
            if at_head and not tables.in_state(*settling) and not tables.positions:
                return
            self.clock.now += 2_000_000_000
        raise AssertionError(f"it did not settle: {self.replica.tables.rows}")

    @property
    def problems(self) -> list[str]:
        """What readers saw and should not have. Excepted are tables of which a bridge is announced, and between the
        files that an exact read found new: which INSERT added each of them is not known."""
        return self.judged([look for look in self.looks if not look.bridged])

    def judged(self, looks: Iterable[Look]) -> list[str]:
        judge = History(self.history.states)
        found = []
        for look in looks:
            appending = look.method == "publish" and look.table in self.reread
            if not appending and (problem := judge.judge(look.table, look.state, look.known)):
                found.append(f"after {look.method} in window {look.window}, {problem}")
        return found

    def marks_ahead(self) -> list[str]:
        """Objects that the target shows and whose marks name events that the source has not had; hidden builds that a
        death left show nothing."""
        newest = self.source.current()
        return [
            f"{name} {key}: {thing.parameters}"
            for name, stored in self.stored_at_target()
            for key, thing in {(): stored.table, **stored.partitions}.items()
            if name.database != OURS and is_ahead(thing.parameters, newest)
        ]

    def stored_at_target(self) -> list[tuple[TableName, StoredTable]]:
        names = [
            TableName(database, table)
            for database in self.target_store.databases()
            for table in self.target_store.tables(database)
        ]
        return [(name, self.as_listed(name)) for name in names]

    def as_listed(self, name: TableName) -> StoredTable:
        """A table of the target: of a Delta table, what its log says is listed."""
        stored = self.target_store.the_table(name)
        if not committed_format(stored.table):
            return stored
        seen = self.delta_table(stored.table)
        assert not isinstance(seen, str), seen
        return replace(stored, table=seen.table, partitions=dict(seen.partitions))

    def is_delta(self, name: TableName) -> bool:
        """Whether the target has a Delta table for a plain one."""
        at_target = self.side.admission.name_at_target(name)
        if at_target.table not in self.target_store.tables(at_target.database):
            return False
        return bool(committed_format(self.target_store.the_table(at_target).table))

    def is_acid(self, name: TableName) -> bool:
        """Whether the target has an ACID table."""
        at_target = self.side.admission.name_at_target(name)
        if at_target.table not in self.target_store.tables(at_target.database):
            return False
        return is_transactional(self.target_store.the_table(at_target).table)

    def delta_table(self, at_metastore: Table) -> DeltaTable | str:
        """What a reader finds in the log at its root, or what is wrong there."""
        assert is_delta(at_metastore), "readers take it for another kind of table"
        root = location_of(at_metastore) or ""
        names = self.storage.children(f"{root}/_delta_log")
        key = (at_metastore.database, at_metastore.name, root, *names)
        if key not in self.delta_tables:
            try:
                self.delta_tables[key] = delta_table(snapshot(self.storage.read, names, root), root, at_metastore)
            except (AssertionError, KeyError) as error:
                self.delta_tables[key] = f"a log that nobody can read: {error!r}"
        return self.delta_tables[key]

    def delta_content(self, seen: DeltaTable, location: str) -> State:
        """The paths and contents of files that the log has of a partition."""
        return tuple((path, self.storage.read(f"{location}/{path}")) for path in seen.files[location])

    # What readers see

    def looked(self, method: str) -> None:
        """A reader at the target, after every call: what it sees that it did not see before."""
        now = (self.target_store.current(), self.storage.changes)
        if now == self.seen_at:
            return
        self.seen_at = now
        with self.uninterrupted():
            states = self.target_states()
        bridged = {one.table for one in all_of(self.side.announced.waiting(), AnnouncedBridge)}
        for name, state in states.items():
            if self.seen.get(name, (ABSENT, False)) != (state, name in bridged):
                self.seen[name] = (state, name in bridged)
                known = len(self.history.states.get(name, ()))
                self.looks.append(Look(len(self.windows), method, name, state, known, name in bridged))

    def source_states(self, looker: Looker | None = None) -> dict[TableName, State]:
        found, looker = {}, looker or self.looker
        subset = self.side.admission.subset
        for database in self.source.databases():
            for table in self.source.tables(database):
                name = TableName(database, table)
                if self.side.admission.takes(name):
                    stored = self.source.the_table(name)
                    if subset.has_table(stored.table):
                        keys = [column.name or "" for column in stored.table.partition_keys or ()]
                        rows = stored.partitions.items()
                        left = [
                            row
                            for values, row in rows
                            if not keys or subset.has_partition(name, partition_name(keys, values))
                        ]
                        is_acid = self.finder is not None and is_transactional(stored.table)
                        reader = replace(looker, content=partial(self.acid_rows, name)) if is_acid else looker
                        found[name] = reader.source(name, stored.table, left)
        return found

    def target_states(self, looker: Looker | None = None) -> dict[TableName, State]:
        found: dict[TableName, State] = dict.fromkeys(self.history.states, ABSENT)
        looker = looker or self.looker
        for database in self.target_store.databases():
            for table in self.target_store.tables(database):
                name = self.side.admission.source_of(TableName(database, table))
                if name is not None:
                    found[name] = self.target_state(looker, name, TableName(database, table))
        return found

    def target_state(self, looker: Looker, name: TableName, at_target: TableName) -> State:
        stored = self.target_store.the_table(at_target)
        if is_transactional(stored.table):
            looker = replace(looker, content=partial(self.rows_of_acid, self.target_store, at_target))
        if not committed_format(stored.table):
            return looker.target(name, stored.table, list(stored.partitions.values()))
        seen = self.delta_table(stored.table)
        if isinstance(seen, str):
            return seen
        looker = replace(looker, content=partial(self.delta_content, seen))
        return looker.target(name, seen.table, list(seen.partitions.values()))

    @property
    def by_rows(self) -> bool:
        """Whether a table's rows may come in other files than the source's."""
        return bool(self.policy.compact) or self.acid

    def acid_rows(self, name: TableName, location: str) -> State:
        """The rows that a reader of an ACID table sees in a directory."""
        return self.rows_of_acid(self.source, name, location)

    def rows_of_acid(self, metastore: MemoryMetastore, name: TableName, location: str) -> State:
        reader = MemoryTransactionReader(metastore)
        return rows_seen(self.storage, location, reader.valid_write_ids([name])[name], reader.open_transactions())

    def content(self, location: str) -> State:
        if self.contents_at != self.storage.changes:
            self.contents, self.contents_at = {}, self.storage.changes
        if location not in self.contents:
            found = tuple(self.storage.contents(location))
            self.contents[location] = rows_of(content for _, content in found) if self.by_rows else found
        return self.contents[location]
