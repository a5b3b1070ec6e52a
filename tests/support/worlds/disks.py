"""A world on real directories, whose effects all pass failpoints. Calque dies there where it is told to, or is not told
that they happened."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from calque.adapters.files.pins import StoredPins
from calque.adapters.files.storage import FileStorage
from calque.core.events.rows import rows_of_events
from calque.core.formats.layout import join, place
from calque.core.records import lifecycle
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.exact_reads.build_in_batches import BATCH
from calque.engine.failpoints import LOST, FailpointGuard
from calque.engine.lease.fence import FencedStorage
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.engine.sides.sides import TargetSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.source.scanner import Scanner, ScanSelection
from calque.errors import Unavailable
from calque.model.files import Listing
from calque.model.hive import Partition, Table
from calque.model.lease import Writer
from calque.model.names import EventId, TableName
from calque.model.policy import Policy, TargetCapabilities
from calque.model.requests import Action, Request
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from calque.plugins.grants.engine.follow import GrantsFollower
from calque.plugins.grants.ports import ForwardingPrivileges, Privileges
from calque.plugins.marks.ports import ForwardingMarkStore
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask
from support.memory.commits import MemoryCommits
from support.memory.marks import MemoryMarks
from support.memory.metastore import HIVE_3, MemoryCatalog, ServerHabits
from support.memory.partition_events import MemoryPartitionEvents
from support.memory.privileges import MemoryPrivileges
from support.worlds.policies import Nameless
from support.worlds.subscribers import HeldRecords
from support.worlds.worlds import ABSENT, Died, Recall, State, World


class Disk(FileStorage):
    """Local directories with what a world's storage has besides. `between` is called after every file that was copied
    or published; `moved` counts bytes, by their source."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str, str], None] = lambda _call, _about: None
        self.between: Callable[[str], None] = lambda _: None
        self.changes = 0
        self.moved: list[tuple[str, int]] = []

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        results = []
        for task in tasks:
            [copied] = super().copy([task], progress)
            self.changes += 1
            if copied.bytes_moved:
                self.moved.append((task.source, copied.bytes_moved))
            results.append(copied)
            self.between("storage.copy.file")
        return results

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        results = []
        for task in tasks:
            results += super().combine([task], progress)
            self.between("storage.combine.file")
        return results

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for rename in renames:
            super().publish([rename])
            self.changes += 1
            self.between("storage.publish.file")

    def write(self, path: str, content: bytes) -> None:
        super().write(path, content)
        self.changes += 1

    def remove(self, locations: Sequence[str]) -> None:
        super().remove(locations)
        self.changes += 1

    def make(self, location: str) -> None:
        Path(place(location).path).mkdir(parents=True, exist_ok=True)

    def move(self, source: str, target: str) -> None:
        Path(place(target).path).parent.mkdir(parents=True, exist_ok=True)
        Path(place(source).path).rename(place(target).path)

    def contents(self, location: str) -> Sequence[tuple[str, bytes]]:
        found: Listing = self.list([location])[location]
        root = Path(place(location).path)
        return [(file.path, (root / file.path).read_bytes()) for file in found.files]

    @property
    def copied(self) -> int:
        return sum(size for _, size in self.moved)


def files_below(location: str) -> list[str]:
    """Every file, hidden ones too, by its full path."""
    return sorted(os.path.join(at, name) for at, _, names in os.walk(place(location).path) for name in names)


@dataclass
class Death:
    """At the hit number `skip` (from 0) of `name`, and at the next ones, `times` in all, it raises: `Died`, or for
    a name that ends with `lost` that the effect, which has happened, is `Unavailable`. `hits` are the names passed;
    `watch` is told of each."""

    name: str = ""
    skip: int = 0
    times: int = 1
    happened: int = 0
    hits: list[str] = field(default_factory=list)
    watch: Callable[[str], None] = lambda _: None

    def __call__(self, name: str) -> None:
        self.hits.append(name)
        self.watch(name)
        effect, _, side = self.name.rpartition(".")
        if name != (f"{effect}.after" if side == LOST else self.name):
            return
        self.skip -= 1
        if self.skip < 0 and self.happened < self.times:
            self.happened += 1
            raise Unavailable("No answer", "it is lost") if side == LOST else Died


class RowsOnly(Nameless):
    """What a reader sees who asks for rows: partitions that have none make no difference."""

    def state(self, name: TableName, image: State, table: Table, partitions: list[Partition]) -> State:
        shape, files, rows = super().state(name, image, table, partitions)
        return shape, files, tuple(row for row in rows if row[1][1])


class DiskWorld(World):
    """Metastores in memory, files on a disk, failpoints around every port, a lease, and a seam at which gaps are found.
    Source tables are external: nobody but the test moves files. What runs is a process: it is told to `go_on`, and is
    started again when it died."""

    def __init__(
        self,
        root: Path,
        death: Death,
        habits: ServerHabits = HIVE_3,
        abilities: TargetCapabilities | None = None,
        *,
        pinned: bool = False,
        scanned: bool = False,
        batch: int = BATCH,
        **policy: object,
    ) -> None:
        self.root, self.death = f"file:{root}", death
        self.disk = Disk()
        self.disk.between = death
        wanted = Policy("dr", "hq", include=("d*.*",), warehouse=f"{self.root}/target", grace=0.0)
        wanted = replace(wanted, **policy)  # type: ignore[arg-type]
        super().__init__(1, habits, wanted, storage=self.disk, root=self.root, batch=batch)
        self.clock.now = time.time_ns() + 10**12
        self.pins = StoredPins(self.disk, f"{self.root}/pins", links=True) if pinned else None
        self.scans = MemoryScans() if scanned else None
        self.commits = MemoryCommits() if self.acid else None
        self.marks = MemoryMarks()
        self.mark_store = FailpointGuard(death).wrapped("marks", self.marks, ForwardingMarkStore)
        """The same, in which it dies."""
        self.partition_events = MemoryPartitionEvents(self.target_store)
        self.records = HeldRecords()
        self.source_side = replace(
            self.source_side,
            journal=FailpointGuard(death).journal(self.journal),
            evidence=FailpointGuard(death).evidence(self.evidence),
            gaps=FailpointGuard(death).gaps(self.gaps),
            commits=FailpointGuard(death).commits(self.commits) if self.commits is not None else None,
            pins=FailpointGuard(death).pins(self.pins) if self.pins is not None else None,
            scans=FailpointGuard(death).scans(self.scans) if self.scans is not None else None,
        )
        self.catalog = MemoryCatalog(self.target_store, abilities, before=self.called, after=self.returned)
        self.leases = CatalogLeases(MemoryCatalog(self.target_store), "hq", "dr", self.policy.warehouse)
        self.requests: list[Request] = []
        self.clock.asleep = self.capture_meanwhile
        self.starts = 0
        self.moved = False
        """The policy has changed, and names with it."""
        self.farthest: EventId = 0
        self.went_back: list[str] = []
        self.follow(self.policy)

    def follow(self, policy: Policy) -> None:
        """From the next start on."""
        self.moved, self.policy = policy != self.policy, policy
        self.side = TargetSide.of(
            policy,
            FailpointGuard(self.death).catalog(self.catalog),
            FailpointGuard(self.death).ledger(self.ledger),
            FailpointGuard(self.death).storage(FencedStorage(self.disk, self)),
            transactions=self.target_transactions(),
        )
        looker = RowsOnly if policy.atomicity == "rows" else Nameless
        self.looker = looker(self.side.imaging, self.content, Recall())

    def permit(self) -> None:
        self.lease.permit()

    def failpoint(self, name: str) -> None:
        self.death(name)

    # A process

    def start(self) -> None:
        """A process, and another one where it dies at its start."""
        while not self.is_started():
            pass

    def is_started(self) -> bool:
        self.starts += 1
        self.lease = Lease(FailpointGuard(self.death).leases(self.leases), "dr", 30.0, lambda: 0.0)
        continuity = Continuity(self.source_side, self.begin)
        while True:
            try:
                self.begin_process(continuity)
            except Died:
                return False
            except Unavailable:
                continue
            return True

    def begin_process(self, continuity: Continuity) -> None:
        self.gathering = False
        self.background.waiting.clear()
        writer = Writer(str(self.starts), "host", self.starts, "state", proof="the lock of the state folder")
        assert self.lease.mine is not None or self.lease.attempt(writer) is None
        continuity.mend()
        begin = self.beginning()
        self.gatherer = EvidenceGatherer(self.source_side, self.has_files)
        self.capture = Capture(self.source_side, begin, self.gatherer)
        self.gatherer.resume(begin, self.capture.last())
        self.finder = self.new_finder()
        self.scanner = self.new_scanner(begin)
        self.replica = self.new_replica()
        self.replica.open()

    def new_scanner(self, begin: EventId) -> Scanner | None:
        source = self.source_side
        if source.scans is None:
            return None
        chosen = ScanSelection(lambda _: 0.001, lambda _: True)
        return Scanner(source, source.scans, chosen, self.gatherer.locations, begin, self.clock.now, lambda: None)

    def go_on(self) -> bool:
        """What a process does again and again. Whether all of it was done, by one process."""
        works = (
            lambda: self.lease.renew(),
            self.capture_all,
            self.scan,
            self.background.run,
            self.window,
            self.follow_grants,
        )
        done = [self.survived(work) for work in works]
        return all(done)

    def survived(self, work: Callable[[], object]) -> bool:
        """Whether it was done. What does not answer is tried again by whoever called; whoever dies, or meets a gap,
        starts again."""
        try:
            work()
        except Unavailable:
            return False
        except (Died, Interrupted):
            self.start()
            return False
        return True

    def finish(self, work: Callable[[], object]) -> None:
        """Until it is done."""
        while not self.survived(work):
            pass

    def follow_grants(self) -> None:
        if self.policy.grants == "follow":
            of_source, at_target = self.privileges()
            GrantsFollower(self.source_side, self.side, of_source, at_target).run_once()

    def privileges(self) -> tuple[Privileges, Privileges]:
        """Of the source and the target."""
        at_target = MemoryPrivileges(self.target_store)
        guarded = FailpointGuard(self.death).wrapped("privileges", at_target, ForwardingPrivileges)
        return MemoryPrivileges(self.source), guarded

    def scan(self) -> None:
        if self.scanner is not None:
            self.scanner.run_once()

    def append_log(self, limit: int | None = None) -> None:
        events = self.source.events(self.capture.reached())[:limit]
        if not events and self.source.current() != self.capture.last():
            raise Interrupted("The log has nothing behind the journal")
        if events:
            self.capture.append(rows_of_events(events))

    def capture_meanwhile(self) -> None:
        with suppress(Interrupted):
            self.capture_all()

    def ask(self, action: Action, *tables: str, after: EventId = 0) -> None:
        self.requests.append(Request(action.value, action, tables, after))

    def window(self, upto: EventId | None = None) -> None:
        for request in list(self.requests):
            if self.replica.take_request(request) is not None:
                self.replica.tables.record(self.replica.epochs.record_states)
                self.requests.remove(request)
        super().window(upto)
        position = self.replica.epochs.position() or 0
        if position < self.farthest:
            self.went_back.append(f"position {position} after {self.farthest}")
        self.farthest = position

    def settle(self, rounds: int = 60) -> None:
        """Until the target shows the source's newest state, of all tables."""
        for _ in range(rounds):
            self.go_on()
            out = self.replica.tables.in_state(*set(lifecycle.State) - {lifecycle.State.LIVE})
            busy = out or self.requests or self.replica.tables.positions
            if not busy and self.replica.epochs.position() == self.source.current():
                return
            self.clock.now += 2_000_000_000
        raise AssertionError(f"it did not settle: {self.replica.tables.rows}")

    @property
    def problems(self) -> list[str]:
        """Tables that are being moved to another name are not there for a moment."""
        return self.judged(look for look in self.looks if not (look.bridged or (self.moved and look.state is ABSENT)))

    def place(self, name: str) -> str:
        return join(self.root, f"data/{name}")
