"""When a scan finds something, and when it waits."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.engine.capture.capture import Capture
from calque.engine.failpoints import FailpointGuard
from calque.engine.sides.sides import SourceSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.source.scanner import Scanner, ScanSelection
from calque.engine.source.unscanned_reloads import PAUSE_SECONDS, UnscannedReloads
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.scan import Memory
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from calque.ports.forwarding import ForwardingStorage
from support.faults.defects import Defect
from support.memory.journal import MemoryJournal
from support.memory.metastore import HIVE_4, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage
from support.worlds.disks import Death
from support.worlds.worlds import INPUT, OUTPUT, SERDE, WorldClock

T = TableName("d", "t")
PLAIN, PARTED = "file:/w/d.db/plain", "file:/w/d.db/t"
TEMPLATE = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))


@dataclass
class Case:
    """A source with a plain table and a partitioned one, its capture and its scanner."""

    clock: WorldClock = field(default_factory=WorldClock)
    found: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(self.clock.now_ns)
        self.source = MemoryMetastore(HIVE_4, "file:/w")
        self.scans = MemoryScans()
        self.looks: list[str] = []
        self.storage.before = lambda call, about: self.looks.append(about) if call == "list" else None
        self.clock.asleep = self.capture_all
        log, reader = MemoryLog(self.source), MemoryReader(self.source)
        self.side = SourceSide(
            "hq", log, reader, MemoryJournal(), MemoryEvidence(), self.storage, self.clock, self.scans
        )
        self.source.create_database(Database("d"))
        self.source.create_table(Table("plain", "d", storage=TEMPLATE, type="MANAGED_TABLE"))
        keys = (Column("p", "string"),)
        self.source.create_table(Table("t", "d", storage=TEMPLATE, partition_keys=keys, type="MANAGED_TABLE"))
        for location in (PLAIN, PARTED):
            self.storage.make_directories([location])
        for value in "ab":
            self.storage.write(f"{PARTED}/p={value}/f", b"1")
            self.add(value)
        self.storage.write(f"{PLAIN}/f", b"1")
        self.clock.now += 3600 * 10**9
        self.gatherer = EvidenceGatherer(self.side, lambda _: True)
        begun = self.source.current()
        self.capture = Capture(self.side, begun, self.gatherer)
        self.gatherer.resume(begun, begun)
        self.begun, self.begun_ns = begun, self.clock.now
        self.scanner = self.new_scanner()
        self.scan()

    def new_scanner(self) -> Scanner:
        chosen = ScanSelection(lambda _: 0.001, lambda _: True)
        count = self.found.append
        return Scanner(
            self.side, self.scans, chosen, self.gatherer.locations, self.begun, self.begun_ns, lambda: count(1)
        )

    def add(self, value: str) -> None:
        storage = replace(TEMPLATE, location=f"{PARTED}/p={value}")
        self.source.add_partitions(T, [Partition((value,), "d", "t", storage=storage)])

    def capture_all(self) -> None:
        events = self.source.events(self.capture.last())
        if events:
            self.capture.append(rows_of_events(events))

    def scan(self) -> list[tuple[str, dict[str, list[str]]]]:
        """What this scan found: tables, with the paths in their directories."""
        before = self.scans.last()
        self.clock.now += 10**9
        self.capture_all()
        self.gatherer.run_once()
        self.scanner.run_once()
        return [
            (str(scan.table), {part: [file.path for file in found.files] for part, found in scan.listings.items()})
            for number, scan in self.scans._scans.items()
            if number > before
        ]


@pytest.fixture
def case() -> Case:
    return Case()


def test_what_was_there_before_the_journal_began_is_nothing_new(case: Case) -> None:
    assert case.scans.last() == 0
    assert case.scan() == []
    assert case.found == []


def test_directories_of_one_table_that_changed_are_one_entry_after_the_event_that_was_current(case: Case) -> None:
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    case.storage.delete(f"{PARTED}/p=b/f")
    case.storage.write(f"{PLAIN}/sub/g", b"2")
    assert case.scan() == [("d.plain", {"": ["f", "sub/g"]}), ("d.t", {"p=a": ["f", "g"], "p=b": []})]
    assert {entry.event_id for entry in case.scans.entries(0)} == {case.source.current()}
    assert case.found == [1]
    assert case.scan() == []
    case.storage.write(f"{PLAIN}/sub/h", b"2")
    assert case.scan() == [("d.plain", {"": ["f", "sub/g", "sub/h"]})]


def test_where_no_directory_changed_nothing_is_listed_but_in_every_tenth_scan(case: Case) -> None:
    case.scan()
    listed = []
    for _ in range(20):
        case.looks.clear()
        assert case.scan() == []
        listed.append(bool(case.looks))
    assert listed.count(True) == 2


def test_a_file_written_in_place_is_found_by_a_full_scan(case: Case) -> None:
    stored = case.storage._files[f"{PLAIN}/f"]
    case.storage._files[f"{PLAIN}/f"] = type(stored)(b"22", stored.modified_ns + 5)
    assert [found for _ in range(10) if (found := case.scan())] == [[("d.plain", {"": ["f"]})]]


def test_what_an_event_explains_is_no_entry(case: Case) -> None:
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    case.source.insert(T, [f"{PARTED}/p=a/g"], values=("a",))
    case.storage.write(f"{PARTED}/p=c/f", b"2")
    case.add("c")
    assert case.scan() == []
    assert case.scan() == []
    case.storage.write(f"{PARTED}/p=c/g", b"2")
    assert case.scan() == [("d.t", {"p=c": ["f", "g"]})]


def test_what_an_event_touches_while_it_is_looked_at_is_left_to_the_next_scan(case: Case) -> None:
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    case.storage.write(f"{PARTED}/p=b/g", b"2")
    once: list[int] = []

    def asleep() -> None:
        if not once:
            once.append(1)
            case.source.insert(T, [f"{PARTED}/p=a/g"], values=("a",))
        case.capture_all()

    case.clock.asleep = asleep
    assert case.scan() == [("d.t", {"p=b": ["f", "g"]})]
    assert case.scan() == []


def test_files_that_grow_wait_until_they_stay_as_they_are(case: Case) -> None:
    case.storage.write(f"{PLAIN}/g", b"2")

    def grow() -> None:
        case.capture_all()
        case.storage.append(f"{PLAIN}/g", b"2")

    case.clock.asleep = grow
    assert [case.scan() for _ in range(3)] == [[], [], []]
    case.clock.asleep = case.capture_all
    assert case.scan() == [("d.plain", {"": ["f", "g"]})]


@pytest.mark.parametrize("draft", ["g.inprogress", "g.inprogress.1", "g._COPYING_", "sub/g.tmp"])
def test_a_file_under_a_name_of_unfinished_ones_is_waited_for_until_it_is_abandoned(case: Case, draft: str) -> None:
    case.storage.write(f"{PLAIN}/{draft}", b"2")
    assert case.scan() == []
    case.clock.now += 599 * 10**9
    assert [name for name, _ in case.scan()] == ["d.plain"]


@pytest.mark.parametrize(
    "place", [f"{PARTED}/p=a/_temporary/0/t/f", f"{PARTED}/_temporary/0/f", f"{PARTED}/.hive-staging_1/f"]
)
def test_no_directory_shows_while_a_job_gathers_its_output_there(case: Case, place: str) -> None:
    case.storage.write(place, b"2")
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    assert [case.scan() for _ in range(3)] == [[], [], []]
    case.storage.remove([place.partition("/0")[0].removesuffix("/f")])
    assert case.scan() == [("d.t", {"p=a": ["f", "g"]})]


def test_a_job_that_left_its_directory_behind_does_not_hold_up_for_ever(case: Case) -> None:
    case.storage.write(f"{PARTED}/_temporary/0/f", b"2")
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    assert case.scan() == []
    case.clock.now += 601 * 10**9
    assert case.scan() == [("d.t", {"p=a": ["f", "g"]})]


def test_a_directory_that_was_removed_is_empty_but_not_when_all_above_it_is_gone(case: Case) -> None:
    case.storage.remove([f"{PARTED}/p=a"])
    assert case.scan() == [("d.t", {"p=a": []})]
    case.storage.remove(["file:/w"])
    assert [case.scan() for _ in range(3)] == [[], [], []]


def test_a_dropped_table_is_not_looked_at_any_more_and_a_new_one_is(case: Case) -> None:
    case.source.drop_table(TableName("d", "plain"))
    case.source.create_table(Table("new", "d", storage=TEMPLATE, type="MANAGED_TABLE"))
    case.storage.make_directories(["file:/w/d.db/new"])
    assert case.scan() == []
    case.storage.write(f"{PLAIN}/g", b"2")
    case.storage.write("file:/w/d.db/new/g", b"2")
    assert case.scan() == [("d.new", {"": ["g"]})]


def test_a_scanner_that_starts_again_compares_with_what_it_remembered(case: Case) -> None:
    case.storage.write(f"{PLAIN}/g", b"2")
    case.scan()
    case.scanner.remember(always=True)
    case.storage.write(f"{PARTED}/p=b/g", b"2")
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    case.source.insert(T, [f"{PARTED}/p=a/g"], values=("a",))
    case.capture_all()
    case.gatherer.run_once()
    case.scanner = case.new_scanner()
    assert case.scan() == [("d.t", {"p=b": ["f", "g"]})]


def test_what_a_scanner_found_right_before_its_death_is_nothing_new_to_the_next(case: Case) -> None:
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    case.storage.write(f"{PARTED}/p=b/g", b"2")
    assert case.scan() == [("d.t", {"p=a": ["f", "g"], "p=b": ["f", "g"]})]
    case.storage.write(f"{PARTED}/p=a/h", b"3")
    case.source.insert(T, [f"{PARTED}/p=a/h"], values=("a",))
    case.capture_all()
    case.gatherer.run_once()
    case.scanner = case.new_scanner()
    assert case.scan() == []
    case.storage.write(f"{PARTED}/p=b/h", b"3")
    assert case.scan() == [("d.t", {"p=b": ["f", "g", "h"]})]


def test_what_a_scanner_stored_without_hearing_of_it_is_nothing_new_to_it(case: Case) -> None:
    case.scanner.scans = FailpointGuard(Death("scans.append.lost")).scans(case.scans)
    case.storage.write(f"{PLAIN}/g", b"2")
    with pytest.raises(Unavailable):
        case.scan()
    assert (case.scan(), case.scans.last()) == ([], 1)


def test_a_memory_that_is_lost_with_all_scans_makes_what_is_younger_than_the_journal_new_again(case: Case) -> None:
    case.storage.write(f"{PLAIN}/g", b"2")
    assert len(case.scan()) == 1
    case.scans.remember(Memory())
    case.scans.forget(case.scans.last())
    case.scanner = case.new_scanner()
    assert case.scan() == [("d.plain", {"": ["f", "g"]})]


def test_a_directory_that_can_not_be_listed_costs_no_other_table_its_scan(case: Case) -> None:
    case.storage.remove([PLAIN])
    case.storage.write(PLAIN, b"no directory")
    case.storage.write(f"{PARTED}/p=a/g", b"2")
    assert case.scan() == [("d.t", {"p=a": ["f", "g"]})]


class Rounds(threading.Event):
    """Is set after so many rounds."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002
        self.rounds -= 1
        return self.rounds < 0


def test_a_scanner_whose_next_events_the_journal_let_go_of_begins_anew(case: Case) -> None:
    case.storage.write(f"{PARTED}/p=c/f", b"1")
    case.add("c")
    case.capture_all()
    case.gatherer.run_once()
    case.side.journal.forget(case.source.current())
    case.scanner.run(Rounds(1))
    assert case.scanner.seen_event is None
    case.scanner.run(Rounds(1))
    assert case.scanner.seen_event == case.source.current()
    case.storage.write(f"{PLAIN}/g", b"2")
    assert case.scan() == [("d.plain", {"": ["f", "g"]})]


@pytest.mark.parametrize("error", [Unavailable("The storage does not answer"), KeyError("list")])
@pytest.mark.parametrize("method", ["list", "modified"])
def test_a_scan_goes_on_after_what_may_happen_and_after_what_nobody_expects(method: str, error: Exception) -> None:
    case, stopping = Case(), threading.Event()
    defect = Defect(method, error, on=True)
    case.side = replace(case.side, storage=ForwardingStorage(case.storage, defect))
    scanner = case.new_scanner()
    scanning = threading.Thread(target=scanner.run, args=(stopping,))
    scanning.start()
    scanning.join(0.5)
    assert scanning.is_alive()
    stopping.set()
    scanning.join(30)
    assert not scanning.is_alive()


def test_a_reload_has_its_table_looked_at_at_once_with_its_files(case: Case) -> None:
    """Also where neither the interval is over nor a directory's time moved."""
    case.scanner.chosen = ScanSelection(lambda _: 3600.0, lambda _: True)
    case.scan()
    case.scan()
    stored = case.storage._files[f"{PLAIN}/f"]
    case.storage._files[f"{PLAIN}/f"] = type(stored)(b"22", stored.modified_ns + 5)
    assert case.scan() == []
    case.source.reload(TableName("d", "plain"))
    assert case.scan() == [("d.plain", {"": ["f"]})]
    assert case.scan() == []


def test_a_table_that_is_not_scanned_is_compared_after_a_reload_and_not_too_often(case: Case) -> None:
    scanned, admitted = {"t"}, {"t", "plain"}
    asked: list[list[str]] = []
    reloads = UnscannedReloads(
        lambda name: name.table in admitted,
        lambda name: 30.0 if name.table in scanned else None,
        lambda names: asked.append([name.table for name in names]),
        case.clock,
    )
    case.capture.note_entries = reloads.note_entries
    case.source.create_table(Table("foreign", "d", storage=TEMPLATE, type="MANAGED_TABLE"))

    def reload(*names: str) -> list[list[str]]:
        asked.clear()
        for name in names:
            case.source.reload(TableName("d", name))
        case.capture_all()
        reloads.look()
        return asked

    assert reload("t", "foreign") == []
    assert reload("plain", "foreign", "plain") == [["plain"]]
    assert reload("plain", "t") == []
    case.clock.now += int((PAUSE_SECONDS - 1) * 1e9)
    assert reload() == []
    case.clock.now += 10**9
    assert reload() == [["plain"]]
    assert reload() == []
    case.clock.now += int(PAUSE_SECONDS * 1e9)
    full = Unavailable("the disk is full")

    def refuse(_: object) -> None:
        raise full

    ask, reloads.ask = reloads.ask, refuse
    with pytest.raises(Unavailable):
        reload("plain")
    reloads.ask = ask
    assert reload() == [["plain"]]
