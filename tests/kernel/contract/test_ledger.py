"""Every ledger behaves like this, in memory and as Delta tables, on disk and in a real S3 server."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from calque.adapters.delta import keyed
from calque.adapters.delta.columns import EPOCHS, INTERNAL, OBJECTS, TABLES, epoch_record, object_record, state_row
from calque.adapters.delta.latest import FRESH, LatestEpochs, RecentRows
from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.delta.snapshot import SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.core.records.contents import contents, line_of
from calque.core.records.digest import is_intact, sealed
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.errors import Broken, Refused
from calque.model.files import File
from calque.model.ledger import (
    Bridge,
    DatabaseRow,
    Epoch,
    FunctionRow,
    NotLiveReason,
    ObjectRow,
    Parts,
    Reread,
    RereadCause,
    StateKey,
    StateRow,
    TableRow,
    TableState,
    state_key,
)
from calque.model.names import TableName
from calque.model.records import (
    AdmittedObject,
    AnnouncedBridge,
    AnnouncedParts,
    BootstrapBeginning,
    DefectiveWork,
    DropReview,
    ForgottenSpan,
    GapRecovery,
    LedgerIdentity,
    LeftDirectory,
    OriginNames,
    PolicyTerms,
    ReadMode,
    ReadRequest,
    Record,
    RecordKind,
    RetainedReplica,
    ScanProgress,
    SweepProgress,
    TargetPolicies,
    record_key,
)
from calque.ports import Ledger
from support.memory.ledger import MemoryLedger

EARLIER = "6ff7972e12c2bd0c90638c4c0d2b7b278fe9d59d51e0d99f20608f1c42d40311"


class Died(Exception):
    """The process ended at a failpoint."""


class World:
    """One ledger and any number of holders of it."""

    def __init__(self, folder: str, options: Mapping[str, str] | None = None) -> None:
        self._folder, self._options = folder, options
        self._dies_at = ""
        self._memory = MemoryLedger(self._pass)

    def open(self) -> Ledger:
        return DeltaLedger(self._folder, self._options, failpoint=self._pass) if self._folder else self._memory

    def publish_and_die(self, at: str, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        self._dies_at = at
        with pytest.raises(Died):
            self.open().publish(epoch, objects, tables)
        self._dies_at = ""

    def _pass(self, failpoint: str) -> None:
        if failpoint == self._dies_at:
            raise Died


KINDS = ("memory", "delta", "delta-s3")
ALL = pytest.mark.parametrize("world", KINDS, indirect=True)
"""Of tests that any run has in the S3 server too, where commits are made otherwise. What reads and forgets is the same
code as on a disk: proofs have the rest there."""


@pytest.fixture(params=["memory", "delta", pytest.param("delta-s3", marks=pytest.mark.prove)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "delta-s3":
        folder, options = request.getfixturevalue("tables")
        return World(f"{folder}/ledger", options)
    return World("" if request.param == "memory" else str(tmp_path / "ledger"))


@pytest.fixture
def ledger(world: World) -> Ledger:
    return world.open()


def epoch(number: int, event_id: int | None = None, **more: object) -> Epoch:
    upto = number * 10 if event_id is None else event_id
    return replace(Epoch(number, upto, upto - 10, f"2024-05-01T10:00:{number % 60:02}Z", "window"), **more)  # type: ignore[arg-type]


def row(table: str, partition: str, event_id: int, *paths: str, **more: object) -> ObjectRow:
    files = tuple(File(path, 7, 123_456_789_012_345_678, "c0ffee") for path in paths)
    plain = ObjectRow("sales", table, partition, "7", event_id, "alter_partitions", f"/w/{table}/{partition}")
    return replace(plain, **{"files": files, "fingerprint": "f" if paths else "", **more})  # type: ignore[arg-type]


def state(table: str, what: TableState = TableState.READING, **more: object) -> TableRow:
    return replace(TableRow("sales", table, what), **more)  # type: ignore[arg-type]


def key(table: str) -> StateKey:
    return "table", "sales", table


T, ELSEWHERE = TableName("sales", "t"), TableName("sales_dr", "t_old")
TERMS = PolicyTerms(("sales.*",), (), {"sales": "sales_dr"}, {"k": ""}, {}, "copy", "table", "file:/dr", "", False)
RECORDS: tuple[Record, ...] = (
    BootstrapBeginning(7, 9),
    GapRecovery(2, (13, 17), 5, DropReview.HELD),
    ForgottenSpan(3, 8, "2026-01-03T00:00:00+00:00", 1),
    TargetPolicies((TERMS, PolicyTerms(include=("Straße 🐘.*",)))),
    AdmittedObject(TableName("hr"), 12),
    AdmittedObject(TableName("hr", "f"), 13),
    RetainedReplica(T, ELSEWHERE, 21, "its name at the target is taken"),
    OriginNames(("hq", "spoke")),
    ScanProgress(4),
    AnnouncedBridge(T, 5, 9),
    AnnouncedParts(T, 5, 9),
    LedgerIdentity("5f", "11", "22", generation=3, writer="w", directories={"9a": ("file:/dr", "s3a://b/dr")}),
    LeftDirectory("file:/dr/sales.db/t", "0b", 7, "replaced"),
    SweepProgress(7),
    DefectiveWork("table sales.orders", 2),
    *(ReadRequest(T, mode, 2, "asked for by repair") for mode in ReadMode),
)
"""Of each kind at least one."""


def chained(*published: tuple[Epoch, Sequence[ObjectRow]]) -> tuple[Epoch, ...]:
    """The epochs as a ledger keeps them."""
    done: list[Epoch] = []
    for each, objects in published:
        done.append(sealed(each, objects, done[-1] if done else None))
    return tuple(done)


def test_an_empty_ledger_has_nothing(ledger: Ledger) -> None:
    assert ledger.last_epoch() is None
    assert tuple(ledger.epochs()) == ()
    assert tuple(ledger.objects(1)) == ()
    assert ledger.tables() == {}
    assert tuple(ledger.records()) == ()
    assert ledger.latest_objects([("sales", "t", "")]) == {}
    assert ledger.forget(5) == 0


@ALL
def test_an_epoch_comes_back_as_it_was_published(world: World) -> None:
    full = epoch(
        1,
        kind="bootstrap",
        tables=3,
        events=9,
        hops=2,
        calls=4,
        files=5,
        bytes=2**40,
        quarantined=("sales.x", "sales.ü"),
        bridges=(Bridge("sales.t", 3, 9),),
        in_parts=("sales.big",),
        rebasing=("sales",),
        gap=(3, 8),
        set_aside=("sales.y",),
        parts=(Parts("sales.big", 3, 9),),
        disarmed=("sales.z",),
        together=(("sales.x", "sales.y"), ("sales.y", "sales.ü")),
        rereads=(Reread("sales.ü", 8, RereadCause.HOLE, "the files of event 8 stayed unknown"),),
    )
    objects = [row("t", "p=2", 9, "b", "ü/a"), row("t", "p=1", 8, delta_version=4), row("日本", "", 7)]
    world.open().publish(full, objects, [])
    reader = world.open()
    assert tuple(reader.epochs()) == chained((full, objects))
    assert reader.last_epoch() == reader.epochs()[0]
    assert tuple(reader.objects(1)) == (objects[1], objects[0], objects[2])


def test_epochs_are_chained_by_digests_that_cover_their_objects(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        ledger.publish(epoch(number), [row("t", "", number, f"f{number}")], [])
    first, second, third = ledger.epochs()
    assert (first.previous_digest, second.previous_digest, third.previous_digest) == ("", first.digest, second.digest)
    assert all(is_intact(each, ledger.objects(each.epoch)) for each in (first, second, third))
    assert not is_intact(second, ledger.objects(3))
    assert not is_intact(replace(second, hops=99), ledger.objects(2))


def test_an_epoch_without_changes_is_an_epoch(ledger: Ledger) -> None:
    ledger.publish(epoch(1), [], [])
    ledger.publish(epoch(2, event_id=10), [], [])
    assert tuple(ledger.epochs()) == chained((epoch(1), []), (epoch(2, event_id=10), []))


@pytest.mark.parametrize("at", ["ledger.objects", "ledger.tables"])
def test_rows_of_an_epoch_that_never_was_do_not_count(world: World, at: str) -> None:
    world.open().publish(epoch(1), [row("t", "", 1, "old")], [])
    world.publish_and_die(at, epoch(2), [row("t", "", 2, "new"), row("u", "", 2, "new")], [])
    ledger = world.open()
    assert ledger.last_epoch() == chained((epoch(1), [row("t", "", 1, "old")]))[0]
    assert tuple(ledger.objects(2)) == ()
    keys = [("sales", "t", ""), ("sales", "u", "")]
    assert ledger.latest_objects(keys) == {("sales", "t", ""): row("t", "", 1, "old")}


@pytest.mark.parametrize("at", ["ledger.objects", "ledger.tables"])
@pytest.mark.parametrize("objects", [[row("t", "", 2, "other")], []])
def test_publishing_a_number_again_replaces_what_did_not_count(world: World, at: str, objects: list[ObjectRow]) -> None:
    world.open().publish(epoch(1), [row("t", "", 1, "old")], [])
    world.publish_and_die(at, epoch(2), [row("t", "", 2, "new"), row("u", "", 2, "new")], [state("u")])
    ledger = world.open()
    ledger.publish(epoch(2, event_id=25), objects, [])
    assert tuple(ledger.objects(2)) == tuple(objects)
    assert tuple(world.open().epochs()) == chained(
        (epoch(1), [row("t", "", 1, "old")]), (epoch(2, event_id=25), objects)
    )
    newest = (objects or [row("t", "", 1, "old")])[0]
    for holder in (ledger, world.open()):
        found = holder.latest_objects([("sales", "t", ""), ("sales", "u", "")])
        assert found == {("sales", "t", ""): newest}


def test_an_epoch_that_counts_may_be_published_again_as_it_is(world: World) -> None:
    objects = [row("t", "", 1, "a")]
    world.publish_and_die("ledger.epoch", epoch(1), objects, [])
    world.open().publish(epoch(1, published_at="2025-01-01T00:00:00Z"), objects, [])
    assert tuple(world.open().epochs()) == chained((epoch(1), objects))
    assert tuple(world.open().objects(1)) == tuple(objects)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_epoch_that_does_not_follow_is_an_error(ledger: Ledger, number: int) -> None:
    ledger.publish(epoch(1), [], [])
    ledger.publish(epoch(2), [row("t", "", 1, "a")], [])
    with pytest.raises(Broken, match=rf"Epoch {number} can't be published after epoch 2\. .+\. .+\."):
        ledger.publish(epoch(number, event_id=77), [row("t", "", 2, "b")], [])
    assert len(ledger.epochs()) == 2
    assert ledger.latest_objects([("sales", "t", "")]) == {("sales", "t", ""): row("t", "", 1, "a")}


@ALL
def test_of_two_writers_of_one_number_one_loses(world: World) -> None:
    first, second = world.open(), world.open()
    first.publish(epoch(1), [], [])
    assert second.last_epoch() == first.last_epoch()
    first.publish(epoch(2), [row("t", "", 2, "a")], [])
    with pytest.raises(Broken):
        second.publish(epoch(2, event_id=21), [row("t", "", 2, "b")], [])
    assert tuple(second.objects(2)) == (row("t", "", 2, "a"),)


def test_the_newest_row_of_an_object_that_carries_files_is_its_latest(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.publish(epoch(1), [row("t", "p=1", 1, "a"), row("t", "p=2", 1, "a"), row("d", "", 1, delta_version=3)], [])
    assert other.latest_objects([("sales", "t", "p=1")]) == {("sales", "t", "p=1"): row("t", "p=1", 1, "a")}
    empty = row("t", "p=3", 2, fingerprint="nothing")
    ledger.publish(epoch(2), [row("t", "p=1", 2, "a", "b"), row("t", "p=2", 2), empty], [])
    expected = {
        ("sales", "t", "p=1"): row("t", "p=1", 2, "a", "b"),
        ("sales", "t", "p=2"): row("t", "p=2", 1, "a"),
        ("sales", "t", "p=3"): empty,
        ("sales", "d", ""): row("d", "", 1, delta_version=3),
    }
    for holder in (ledger, other, world.open()):
        assert holder.latest_objects([*expected, ("sales", "t", "p=4"), ("hr", "t", "p=1")]) == expected


def test_of_two_rows_of_an_object_in_one_epoch_the_later_event_counts(world: World) -> None:
    world.open().publish(epoch(1), [row("t", "", 5, "b"), row("t", "", 3, "a")], [])
    assert tuple(world.open().objects(1)) == (row("t", "", 3, "a"), row("t", "", 5, "b"))
    assert world.open().latest_objects([("sales", "t", "")]) == {("sales", "t", ""): row("t", "", 5, "b")}


def test_the_rows_of_tables_come_in_the_order_in_which_things_were_done(world: World) -> None:
    made = row("t", "", 5, change="create_table", definition="{}", step=0)
    first, second = row("t", "p=2", 5, "a", step=1), row("t", "p=1", 4, "b", step=2)
    away = row("t", "", 9, change="rename_away", step=0)
    there = row("u", "", 9, change="rename_table", definition="{}", step=1)
    ledger = world.open()
    ledger.publish(epoch(1), [made, first, second], [])
    ledger.publish(epoch(2), [away, there], [])
    reader = world.open()
    assert list(reader.headers(1)) == [made]
    assert list(reader.headers(2)) == [made, away, there]
    assert list(reader.rows_of({TableName("sales", "t")}, 2)) == [made, first, second, away]
    assert list(reader.rows_of({TableName("hr", "t")}, 2)) == []


def test_forgetting_epochs_keeps_what_tables_consist_of_and_nothing_of_what_is_gone(world: World) -> None:
    made = row("t", "", 5, change="create_table", definition="{}", step=0)
    one, two = row("t", "p=1", 5, "a", step=1), row("t", "p=2", 5, "b", step=2)
    gone = row("t", "p=1", 8, change="drop_partition", step=0)
    away = row("t", "", 9, change="rename_away", step=1)
    there = row("u", "", 9, change="rename_table", definition="{}", step=2)
    ledger = world.open()
    ledger.publish(epoch(1), [made, one, two], [])
    ledger.publish(epoch(2), [gone, away, there], [])
    ledger.publish(epoch(3), [], [])
    assert ledger.forget(3) == 2
    both = {TableName("sales", "t"), TableName("sales", "u")}
    for holder in (ledger, world.open()):
        rows = holder.rows_of(both, 3)
        assert {made, two, away, there} <= {*holder.headers(3), *rows}
        found = contents(line_of(index, each) for index, each in enumerate(rows))
        assert {name: [*content.partitions] for name, content in found.items()} == {TableName("sales", "u"): ["p=2"]}


def test_a_row_that_ended_an_object_stays_as_long_as_others_of_that_object(world: World) -> None:
    ledger = world.open()
    others = [row("t", f"p={number}", 5, "a", step=number) for number in range(1, 10)]
    ledger.publish(epoch(1), [row("t", "", 5, change="create_table", definition="{}"), *others], [])
    gone = row("t", "p=3", 8, change="drop_partition")
    more = [row("x", f"p={number}", 8, change="drop_partition", step=number) for number in range(1, 10)]
    ledger.publish(epoch(2), [gone, *more], [])
    ledger.publish(epoch(3), [], [])
    ledger.forget(3)
    rows = world.open().rows_of({TableName("sales", "t")}, 3)
    found = contents(line_of(index, each) for index, each in enumerate(rows))[TableName("sales", "t")]
    assert "p=3" not in found.partitions
    assert len(found.partitions) == 8


def test_the_newest_state_of_a_table_wins(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.put_tables([state("t"), state("u")])
    assert other.tables() == {key("t"): state("t"), key("u"): state("u")}
    waiting = state("t", TableState.WAITING, shows=4, reason="Straße 🐘", since_event=9)
    function = FunctionRow("sales", "f", TableState.LIVE, 3, "", 4, TableName("sales_dr", "f"))
    nowhere = FunctionRow("sales", "g", TableState.QUARANTINED, None, "it is not ours", 5)
    database = DatabaseRow("sales", TableState.QUARANTINED, "it is refused", 6)
    other.put_tables([waiting, function, nowhere, database])
    ledger.put_tables([])
    expected = {state_key(row): row for row in (waiting, state("u"), function, nowhere, database)}
    assert ledger.tables() == other.tables() == world.open().tables() == expected


def test_a_removed_state_is_gone_until_it_is_put_again(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.put_tables([state("t"), state("u")])
    assert len(other.tables()) == 2
    ledger.remove_tables([key("t"), key("never")])
    assert ledger.tables() == other.tables() == {key("u"): state("u")}
    other.put_tables([state("t", TableState.STAGING)])
    assert ledger.tables() == {key("t"): state("t", TableState.STAGING), key("u"): state("u")}


def test_states_published_with_an_epoch_are_there_with_it(world: World) -> None:
    ledger = world.open()
    ledger.put_tables([state("t")])
    ledger.publish(epoch(1), [], [state("t", TableState.LIVE), state("u", TableState.QUARANTINED, reason="why")])
    expected = {key("t"): state("t", TableState.LIVE), key("u"): state("u", TableState.QUARANTINED, reason="why")}
    assert ledger.tables() == world.open().tables() == expected


def test_a_reader_of_states_that_lags_behind_misses_no_removal(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.put_tables([state("t"), state("u")])
    assert len(other.tables()) == 2
    ledger.remove_tables([key("t")])
    for number in range(2 * keyed.MANY):
        ledger.put_tables([state("u", since_event=number)])
    assert other.tables() == ledger.tables() == {key("u"): state("u", since_event=2 * keyed.MANY - 1)}


@ALL
def test_every_record_comes_back_as_it_was_put(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.put_records(RECORDS)
    for holder in (ledger, other, world.open()):
        assert tuple(holder.records()) == RECORDS
    assert {record_key(record).kind for record in RECORDS} == set(RecordKind)


def test_the_newest_record_of_a_key_counts_until_it_is_removed(world: World) -> None:
    ledger, other = world.open(), world.open()
    bridge, parts = AnnouncedBridge(T, 5, 9), AnnouncedParts(T, 5, 9)
    ledger.put_records([bridge, parts, ScanProgress(1)])
    other.put_records([replace(bridge, to_event=12), ScanProgress(2)])
    ledger.put_records([])
    grown = {replace(bridge, to_event=12), parts, ScanProgress(2)}
    assert {*ledger.records()} == {*other.records()} == {*world.open().records()} == grown
    other.remove_records([record_key(bridge), record_key(OriginNames(()))])
    assert {*ledger.records()} == {*other.records()} == {*world.open().records()} == {parts, ScanProgress(2)}
    ledger.put_records([bridge])
    assert {*other.records()} == {bridge, parts, ScanProgress(2)}


def test_records_and_states_do_not_know_each_other(world: World) -> None:
    ledger = world.open()
    ledger.put_tables([state("t")])
    ledger.put_records([ScanProgress(1)])
    assert (world.open().tables(), tuple(world.open().records())) == ({key("t"): state("t")}, (ScanProgress(1),))
    ledger.remove_tables([key("t")])
    assert (world.open().tables(), tuple(world.open().records())) == ({}, (ScanProgress(1),))


def test_states_put_by_several_threads_are_all_there(world: World) -> None:
    def put(ledger: Ledger, name: str) -> None:
        for number in range(20):
            ledger.put_tables([state(f"{name}{number}")])

    threads = [threading.Thread(target=put, args=(world.open(), name)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(world.open().tables()) == {key(f"{name}{number}") for name in "abc" for number in range(20)}


@ALL
def test_forgetting_epochs_keeps_the_newest_row_of_each_object(world: World) -> None:
    ledger, other = world.open(), world.open()
    ledger.publish(epoch(1), [row("t", "", 1, "t1"), row("u", "", 1, "u1"), row("v", "", 1)], [])
    ledger.publish(epoch(2), [row("t", "", 2, "t2")], [])
    ledger.publish(epoch(3), [row("t", "", 3, "t3"), row("w", "", 3, "w3")], [])
    ledger.publish(epoch(4), [row("t", "", 4)], [])
    before = ledger.epochs()
    latest = {
        ("sales", "t", ""): row("t", "", 3, "t3"),
        ("sales", "u", ""): row("u", "", 1, "u1"),
        ("sales", "w", ""): row("w", "", 3, "w3"),
    }
    assert other.latest_objects(latest) == latest
    assert ledger.forget(4) == 3
    assert ledger.forget(4) == 0
    for holder in (ledger, other, world.open()):
        assert tuple(holder.epochs()) == tuple(before[3:])
        assert holder.last_epoch() == before[3]
        assert tuple(holder.objects(2)) == ()
        assert tuple(holder.objects(4)) == (row("t", "", 4),)
        assert holder.latest_objects([*latest, ("sales", "v", "")]) == latest
    world.open().publish(epoch(5), [row("u", "", 5, "u5")], [])
    assert world.open().latest_objects([("sales", "u", "")]) == {("sales", "u", ""): row("u", "", 5, "u5")}


def test_the_last_epoch_is_never_forgotten(world: World) -> None:
    ledger = world.open()
    ledger.publish(epoch(1), [row("t", "", 1, "a")], [])
    ledger.publish(epoch(2), [], [])
    assert ledger.forget(1000) == 1
    assert [each.epoch for each in world.open().epochs()] == [2]
    ledger.publish(epoch(3), [], [])
    assert [each.epoch for each in world.open().epochs()] == [2, 3]


def test_hundreds_of_epochs_are_read_by_a_handle_that_lagged_behind(world: World) -> None:
    ledger, other = world.open(), world.open()
    published = [(epoch(number), [row(f"t{number % 5}", "", number, f"f{number}")]) for number in range(1, 131)]
    for number, (each, objects) in enumerate(published):
        ledger.publish(each, objects, [])
        if number == 1:
            assert other.last_epoch() is not None
            assert len(other.latest_objects([("sales", "t1", "")])) == 1
    assert tuple(other.epochs()) == chained(*published)
    expected = {
        ("sales", f"t{number % 5}", ""): row(f"t{number % 5}", "", number, f"f{number}") for number in range(126, 131)
    }
    assert other.latest_objects(expected) == ledger.latest_objects(expected) == expected


class TestAsDeltaTables:
    """What only files and processes can show."""

    def test_the_tables_have_the_columns_of_the_contract(self, tmp_path: Path) -> None:
        DeltaLedger(str(tmp_path)).publish(epoch(1), [row("t", "", 1, "a")], [state("t")])
        columns = {
            name: pa.schema(DeltaTable(str(tmp_path / name)).schema()).names for name in ("epochs", "objects", "tables")
        }
        assert {"epoch", "event_id", "from_event_id", "published_at", "kind", "quarantined"} <= set(columns["epochs"])
        assert {"bridges", "in_parts", "rebasing", "digest", "previous_digest"} <= set(columns["epochs"])
        assert {"epoch", "incarnation", "event_id", "change", "location", "files", "delta_version"} <= set(
            columns["objects"]
        )
        assert {"database", "table", "state", "shows", "reason"} <= set(columns["tables"])

    def test_every_object_row_that_is_kept_has_an_epoch_row(self, tmp_path: Path) -> None:
        ledger = DeltaLedger(str(tmp_path))
        for number in range(1, 20):
            ledger.publish(
                epoch(number), [row(f"t{number % 3}", "", number, "a"), row(f"u{number}", "", number, "a")], []
            )
        ledger.forget(15)
        epochs = set(pa.table(DeltaTable(str(tmp_path / "epochs")).scan(["epoch"]))["epoch"].to_pylist())
        objects = set(pa.table(DeltaTable(str(tmp_path / "objects")).scan(["epoch"]))["epoch"].to_pylist())
        assert objects == epochs == set(range(1, 20))

    def test_forgetting_epochs_deletes_what_nobody_refers_to_in_every_table(self, tmp_path: Path) -> None:
        ledger = DeltaLedger(str(tmp_path))
        ledger.publish(epoch(1), [row("t", "", 1, "a")], [state("t")])
        ledger.put_records([ScanProgress(1)])
        litter = [tmp_path / table / "left.parquet" for table in ("epochs", "objects", "tables", "internal")]
        for file in litter:
            file.write_bytes(b"left by a crash")
            os.utime(file, (0, 0))
        ledger.forget(1)
        assert [file for file in litter if file.exists()] == []
        assert (len(ledger.epochs()), len(ledger.tables()), len(ledger.records())) == (1, 1, 1)

    @pytest.mark.parametrize(
        ("kind", "why"),
        [("scan_progress", "newest_scan: Field required"), ("dream", "'dream' is not a valid RecordKind")],
    )
    def test_a_record_that_can_not_be_read_is_not_guessed(self, kind: str, why: str, tmp_path: Path) -> None:
        table = RangedTable(f"{tmp_path}/internal", INTERNAL, ("sequence",), None, LEDGER_FORMAT)
        plain = {"sequence": 1, "kind": kind, "key": "", "format": 2, "payload": "{}", "removed": False}
        files = table.write([pa.Table.from_pylist([plain], schema=INTERNAL)])
        table.commit(lambda _: SnapshotChange(add=files, marks={"sequence": 1}))
        with pytest.raises(Broken, match=rf"record {kind} can't be read\. {why}\. Restore"):
            DeltaLedger(str(tmp_path)).records()

    def test_a_handle_survives_pickling(self, tmp_path: Path) -> None:
        ledger = DeltaLedger(str(tmp_path))
        ledger.publish(epoch(1), [row("t", "", 1, "a")], [state("t")])
        copy: DeltaLedger = pickle.loads(pickle.dumps(ledger))
        copy.publish(epoch(2), [], [])
        assert ledger.last_epoch() == copy.last_epoch()
        assert copy.tables() == ledger.tables()

    def test_two_processes_that_publish_the_same_numbers_leave_one_chain(self, tmp_path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        with context.Pool(2) as pool:
            won = pool.starmap(publish_all, [(str(tmp_path), 1), (str(tmp_path), 2)], chunksize=1)
        ledger = DeltaLedger(str(tmp_path))
        assert sorted(won[0] + won[1]) == list(range(1, 16))
        assert [each.epoch for each in ledger.epochs()] == list(range(1, 16))
        assert all(is_intact(each, ledger.objects(each.epoch)) for each in ledger.epochs())

    def test_a_writer_that_was_replaced_can_publish_no_more(self, tmp_path: Path) -> None:
        old, new = DeltaLedger(str(tmp_path)), DeltaLedger(str(tmp_path))
        old.publish(epoch(1), [], [])
        new.publish(epoch(2), [row("t", "", 2, "a")], [])
        with pytest.raises(Broken, match=r"can't be written any more\. Another process .+\. Make sure .+\."):
            old.publish(epoch(3), [row("t", "", 3, "b")], [])
        new.publish(epoch(3), [row("t", "", 3, "c")], [])
        assert tuple(old.objects(3)) == (row("t", "", 3, "c"),)

    def test_the_index_finds_the_newest_epoch_however_many_objects_there_are(self) -> None:
        latest = LatestEpochs()
        count = FRESH + 10
        latest.add((("d", "t", f"p={number}") for number in range(count)), 1)
        latest.add((("d", "t", f"p={number}") for number in range(0, count, 2)), 2)
        latest.add((("d", "t", f"p={number}") for number in range(0, count, 3)), 3)
        found = [latest.find(("d", "t", f"p={number}")) for number in range(count)]
        assert found == [3 if not number % 3 else 2 if not number % 2 else 1 for number in range(count)]
        assert latest.find(("d", "t", "p=x")) is None

    def test_the_cache_of_rows_is_bounded_by_their_files(self) -> None:
        recent = RecentRows()
        large = row("t", "", 1, *(f"f{number}" for number in range(60_000)))
        recent.put(1, large)
        assert recent.find(("sales", "t", ""), 1) == large
        assert recent.find(("sales", "t", ""), 2) is None
        recent.put(2, replace(large, table="u"))
        assert recent.find(("sales", "t", ""), 1) is None
        assert recent.find(("sales", "u", ""), 2) is not None


def test_a_ledger_without_the_column_for_gaps_goes_on_and_gets_it(tmp_path: Path) -> None:
    folder = str(tmp_path / "ledger")
    old_schema = pa.schema([field for field in EPOCHS if field.name != "gap"])
    old = RangedTable(f"{folder}/epochs", old_schema, ("epoch", "forgotten", "writer"))
    first = sealed(epoch(1, 5), (), None)
    record = {name: value for name, value in epoch_record(first).items() if name != "gap"}
    files = old.write([pa.Table.from_pylist([record], schema=old_schema)])
    old.commit(lambda _: SnapshotChange(add=files, marks={"epoch": 1, "writer": 1}))
    ledger = DeltaLedger(folder)
    assert ledger.epochs() == (first,)
    ledger.publish(epoch(2, 9, gap=(6, 8)), (), ())
    for reader in (ledger, DeltaLedger(folder)):
        assert [(one.epoch, one.gap) for one in reader.epochs()] == [(1, None), (2, (6, 8))]
        assert all(is_intact(one, ()) for one in reader.epochs())
    table = DeltaTable(f"{folder}/epochs").to_pyarrow_table().sort_by("epoch")
    assert table["gap"].to_pylist() == [None, {"from": 6, "to": 8}]
    found = RangedTable(f"{folder}/epochs", EPOCHS, ("epoch",), None, LEDGER_FORMAT)
    assert found.merge(found.snapshot().files) == 2
    assert [one.gap for one in DeltaLedger(folder).epochs()] == [None, (6, 8)]


def test_a_ledger_whose_rows_do_not_say_how_files_are_read_goes_on_and_knows_no_table_whole(tmp_path: Path) -> None:
    folder, lacking = str(tmp_path), ("definition", "step", "set_aside")
    before = [row("t", "", 5, change="create_table"), row("t", "p=1", 5, "a")]
    first = sealed(epoch(1, 5), before, None)
    for name, schema, marks, records in (
        ("epochs", EPOCHS, {"epoch": 1, "writer": 1}, [epoch_record(first)]),
        ("objects", OBJECTS, {"writer": 1}, [object_record(each, 1) for each in before]),
    ):
        old_schema = pa.schema([field for field in schema if field.name not in lacking])
        old = RangedTable(f"{folder}/{name}", old_schema, (*marks, "forgotten"))
        kept = [{key: value for key, value in record.items() if key not in lacking} for record in records]
        files = old.write([pa.Table.from_pylist(kept, schema=old_schema)])
        old.commit(lambda _, files=files, marks=marks: SnapshotChange(add=files, marks=marks))  # type: ignore[misc]
    ledger = DeltaLedger(folder)
    assert is_intact(ledger.epochs()[0], ledger.objects(1))
    after = row("t", "", 8, change="alter_table", definition="{}", step=1)
    ledger.publish(epoch(2, 9, set_aside=("sales.u",)), [after], ())
    for reader in (ledger, DeltaLedger(folder)):
        assert [one.set_aside for one in reader.epochs()] == [(), ("sales.u",)]
        rows = reader.rows_of({TableName("sales", "t")}, 2)
        assert sorted(rows, key=str) == sorted([*before, after], key=str)
        [content] = contents(line_of(index, each) for index, each in enumerate(rows)).values()
        assert not content.is_complete
    assert ledger.forget(2) == 1
    assert ledger.latest_objects([("sales", "t", "p=1")]) == {("sales", "t", "p=1"): before[1]}


def test_a_ledger_whose_rows_do_not_say_why_tables_are_not_live_goes_on_and_says_it(tmp_path: Path) -> None:
    old_schema = pa.schema([field for field in TABLES if field.name != "why"])
    reasons = {
        "a": "gap 2: the log went back",
        "b": "held: 12 of its objects",
        "c": "bootstrap",
        "d": "it waits",
        "e": "",
    }
    rows = [TableRow("d1", name, TableState.QUARANTINED, 7, reason) for name, reason in reasons.items()]
    records = [{**state_row(row, number), "why": None} for number, row in enumerate(rows, 1)]
    old = RangedTable(f"{tmp_path}/tables", old_schema, ("sequence",), None, LEDGER_FORMAT)
    files = old.write([pa.Table.from_pylist(records, schema=old_schema)])
    old.commit(lambda _: SnapshotChange(add=files, marks={"sequence": len(rows)}))
    ledger = DeltaLedger(str(tmp_path))
    whys = [NotLiveReason.GAP, NotLiveReason.HELD, NotLiveReason.ALL, NotLiveReason.OWN, NotLiveReason.OWN]
    assert list(ledger.tables().values()) == [replace(row, why=why) for row, why in zip(rows, whys, strict=True)]
    waits = replace(rows[3], why=NotLiveReason.HELD)
    ledger.put_tables([waits])
    for reader in (ledger, DeltaLedger(str(tmp_path))):
        assert reader.tables()["table", "d1", "d"] == waits
    assert "why" in DeltaTable(f"{tmp_path}/tables").to_pyarrow_table().column_names


@pytest.mark.parametrize(
    "ask",
    [
        DeltaLedger.tables,
        DeltaLedger.require_known_format,
        lambda ledger: ledger.put_tables([state("u")]),
        lambda ledger: ledger.publish(epoch(1), [], [state("u")]),
    ],
)
def test_a_ledger_of_format_one_is_refused_in_one_line(tmp_path: Path, ask: Callable[[DeltaLedger], object]) -> None:
    """It had its records in `tables`."""
    old = RangedTable(f"{tmp_path}/tables", TABLES, ("sequence",), None, 1)
    files = old.write([pa.Table.from_pylist([state_row(state("t"), 1)], schema=TABLES)])
    old.commit(lambda _: SnapshotChange(add=files, marks={"sequence": 1}))
    with pytest.raises(Refused, match=r"^The table .+/tables has format 1\. An older calque has written it; [^\n]+$"):
        ask(DeltaLedger(str(tmp_path)))


def test_the_digest_of_an_epoch_without_a_gap_is_what_it_was_before_there_were_any() -> None:
    assert sealed(epoch(1, 5), (), None).digest == EARLIER


def publish_all(folder: str, writer: int) -> list[int]:
    """Try to publish each epoch up to 15; those that this process got through."""
    ledger, won = DeltaLedger(folder), []
    for number in range(1, 16):
        try:
            ledger.publish(epoch(number), [row("t", f"w={writer}", number, f"w{writer}")], [state("t")])
            won.append(number)
        except Broken:
            while (last := ledger.last_epoch()) is None or last.epoch < number:
                pass
    return won
