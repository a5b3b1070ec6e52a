"""ACID tables: the fold of transactions, the directories that a state reads, and its rows, as Hive and its metastore
had them in a recorded history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.files.storage import FileStorage
from calque.core.acid.contents import AcidLook, content_at
from calque.core.acid.directories import HistoryGone, directory_of, readable
from calque.core.acid.rows import rows_at
from calque.core.acid.transactions import Aborted, Allocated, Committed, Opened, transaction_event
from calque.core.acid.write_ids import CONVERTED, NONE, ValidWriteIds, WriteIdFold
from calque.core.events.decode import Undecodable
from calque.core.events.log_messages import logged, table_altered
from calque.model.files import File, Listing
from calque.model.hive import Table
from calque.model.names import TableName
from support.judges.acid_rows import files_read
from support.judges.recorded_acid import (
    RecordedState,
    events,
    is_there,
    partitions_of,
    place_of,
    states,
    unpack_warehouse,
)
from support.sources.tjson import event

F, G = TableName("w", "f"), TableName("w", "g")


def test_the_fold_has_the_metastores_own_valid_write_ids_in_every_recorded_state() -> None:
    recorded = {(state.after, state.table): state.valid for state in states() if state.valid is not None}
    fold, folded = WriteIdFold(), {}
    for one in events("hive-4.2-acid"):
        fold.take_event(one)
        for after, table in recorded:
            if after == one.event_id:
                folded[after, table] = fold.valid(table)
    assert len(recorded) > 40
    assert {key: (ids.high, ids.invalid) for key, ids in folded.items()} == {
        key: (ids.high, ids.invalid) for key, ids in recorded.items()
    }


def test_only_a_commit_shows_other_rows_and_those_of_all_tables_of_its_transaction() -> None:
    fold = WriteIdFold()
    shown = {one.event_id: tables for one in events("hive-4.2-acid") if (tables := fold.take_event(one))}
    kinds = {one.event_id: one.event_type for one in events("hive-4.2-acid")}
    assert {kinds[event_id] for event_id in shown} == {"COMMIT_TXN"}
    assert max(map(len, shown.values())) == 2


def test_most_commits_show_nothing_new() -> None:
    """They are those of SELECTs, of compactions, and of changes of definitions."""
    fold = WriteIdFold()
    shown = [fold.take_event(one) for one in events("hive-4.2-acid")]
    commits = sum(one.event_type == "COMMIT_TXN" for one in events("hive-4.2-acid"))
    assert 20 < sum(map(bool, shown)) < commits / 2


@pytest.mark.parametrize("name", ["hive-3.1-acid-calls", "hive-4.2-acid-calls"])
def test_events_of_both_versions_are_decoded(name: str) -> None:
    fold = WriteIdFold()
    found = [transaction_event(one) for one in events(name)]
    for one in events(name):
        fold.take_event(one)
    said = {type(one) for one in found if one is not None}
    assert {Opened, Allocated, Committed} <= said
    assert any(fold.valid(table) != NONE for one in found if isinstance(one, Allocated) for table in [one.table])


@pytest.mark.parametrize(
    ("event_type", "message"),
    [
        ("OPEN_TXN", {"fromTxnId": 1}),
        ("OPEN_TXN", {"fromTxnId": 1, "toTxnId": "2"}),
        ("COMMIT_TXN", {"txnid": None}),
        ("ABORT_TXN", {"txnid": True}),
        ("ALLOC_WRITE_ID_EVENT", {"dbName": "w", "tableName": "f", "txnIdList": [1, 2], "writeIdList": [1]}),
        ("ALLOC_WRITE_ID_EVENT", {"dbName": "w", "tableName": "f", "txnIdList": 1, "writeIdList": [1]}),
        ("ALLOC_WRITE_ID_EVENT", {"dbName": "w", "txnIdList": [1], "writeIdList": [1]}),
        ("COMMIT_COMPACTION_EVENT", {"txnid": 4, "dbname": "w", "tableName": "f"}),
    ],
)
def test_a_message_without_what_it_should_say_is_told_of(event_type: str, message: Mapping[str, Any]) -> None:
    with pytest.raises(Undecodable):
        transaction_event(event(event_type, message))


def test_write_ids_are_seen_from_their_commit_on_and_never_after_an_abort() -> None:
    fold = WriteIdFold()
    fold.take(Opened(7, 8))
    fold.take(Allocated(F, {4: 7}))
    fold.take(Allocated(G, {2: 7}))
    fold.take(Allocated(F, {5: 8}))
    assert (fold.valid(F), fold.valid(G)) == (ValidWriteIds(5, frozenset({4, 5})), ValidWriteIds(2, frozenset({2})))
    assert fold.written_by(7) == {F, G}
    assert fold.take(Aborted(8)) == frozenset()
    assert fold.take(Committed(7)) == {F, G}
    assert (fold.valid(F), fold.valid(G)) == (ValidWriteIds(5, aborted=frozenset({5})), ValidWriteIds(2))
    assert fold.take(Committed(9)) == frozenset()


def test_write_ids_follow_a_rename_and_end_with_their_table() -> None:
    fold = WriteIdFold()
    fold.take(Allocated(F, {1: 7}))
    fold.renamed(F, G)
    assert (fold.valid(F), fold.valid(G)) == (NONE, ValidWriteIds(1, frozenset({1})))
    assert fold.take(Committed(7)) == {G}
    fold.dropped(G)
    assert fold.valid(G) == NONE


def test_a_table_that_became_transactional_begins_above_what_it_had() -> None:
    fold = WriteIdFold()
    fold.converted(F)
    fold.take(Allocated(F, {CONVERTED + 1: 7}))
    assert fold.valid(F) == ValidWriteIds(CONVERTED + 1, frozenset({CONVERTED + 1}))


@pytest.mark.parametrize(
    ("properties", "high"), [({}, CONVERTED), ({"transactional_properties": "insert_only"}, 0)], ids=["full", "insert"]
)
def test_only_a_table_whose_rows_get_ids_begins_above_what_it_had(properties: Mapping[str, str], high: int) -> None:
    plain = Table("f", "w", parameters={})
    message = table_altered(plain, replace(plain, parameters={"transactional": "true", **properties}))
    fold = WriteIdFold()
    fold.take_event(logged(message, 1, 0))
    assert fold.valid(F) == ValidWriteIds(high)


def test_ids_that_no_transaction_was_given_count_as_committed() -> None:
    ids = ValidWriteIds(5, open=frozenset({3}), aborted=frozenset({2}))
    assert [ids.holds(number) for number in range(1, 7)] == [True, False, False, True, True, False]
    assert [ids.holds_any(*span) for span in ((2, 3), (2, 4), (5, 9), (6, 9))] == [False, True, True, False]
    assert [ids.holds_all(number) for number in (2, 3, 6)] == [True, False, False]


# Directories


def names_read(names: str, valid: ValidWriteIds, committed: frozenset[int] = frozenset()) -> list[str]:
    found = [one for name in names.split() if (one := directory_of(name)) is not None]
    return [one.name for one in readable(found, valid, committed.__contains__).all()]


@pytest.mark.parametrize(
    ("names", "high", "invalid", "committed", "read"),
    [
        ("delta_1_1 delta_2_2 delta_3_3", 3, (), (), "delta_1_1 delta_2_2 delta_3_3"),
        ("delta_1_1 delta_2_2 delta_3_3", 3, (2,), (), "delta_1_1 delta_3_3"),
        ("delta_1_1 delta_2_2 delta_3_3", 2, (), (), "delta_1_1 delta_2_2"),
        ("delta_1_1 delta_2_2 delta_1_2_v9 delta_3_3", 3, (), (9,), "delta_1_2_v9 delta_3_3"),
        ("delta_1_1 delta_2_2 delta_1_2_v9 delta_3_3", 3, (), (), "delta_1_1 delta_2_2 delta_3_3"),
        (
            "delta_4_4_0002 delta_4_4_0003 delete_delta_4_4_0000",
            4,
            (),
            (),
            "delete_delta_4_4_0000 delta_4_4_0002 delta_4_4_0003",
        ),
        ("delta_1_6_v41 delete_delta_1_6_v41 delta_6_6_0000", 6, (), (41,), "delete_delta_1_6_v41 delta_1_6_v41"),
        ("base_3 delta_1_1 delta_2_2 delta_4_4", 4, (), (), "base_3 delta_4_4"),
        ("base_3 delta_1_1 delta_2_2 delta_4_4", 4, (3,), (), "delta_1_1 delta_2_2 delta_4_4"),
        ("base_3 base_5 delta_4_4", 5, (), (), "base_5"),
        ("base_7_v49 delta_8_8", 8, (8,), (49,), "base_7_v49"),
        ("base_7_v49 delta_5_5 delta_8_8", 8, (), (), "delta_5_5 delta_8_8"),
        ("base_0000005 _tmp 000000_0 .hive delta_x_1 base_1_2", 5, (), (), "base_0000005"),
    ],
)
def test_a_state_reads_the_directories_that_hive_reads(
    names: str, high: int, invalid: tuple[int, ...], committed: tuple[int, ...], read: str
) -> None:
    assert names_read(names, ValidWriteIds(high, frozenset(invalid)), frozenset(committed)) == read.split()


def test_a_state_before_a_compacted_base_is_gone_and_one_before_an_overwrite_is_empty() -> None:
    compacted, overwritten = "base_7_v49 delta_8_8", "base_7 delta_8_8"
    with pytest.raises(HistoryGone):
        names_read(compacted, ValidWriteIds(6), frozenset({49}))
    with pytest.raises(HistoryGone):
        names_read(compacted, ValidWriteIds(8, open=frozenset({5})), frozenset({49}))
    assert names_read(compacted, ValidWriteIds(8, aborted=frozenset({5})), frozenset({49})) == compacted.split()
    assert names_read(overwritten, ValidWriteIds(6)) == []


def test_what_the_tasks_of_a_statement_list_while_it_runs_is_no_file_of_a_state() -> None:
    names = ("000000_0", "-tmp.delta_0000003_0000003_0002/000000_0.manifest", "delta_0000001_0000001_0000/bucket_00000")
    listing = Listing("file:/t", tuple(File(name, 1, 1) for name in names))
    look = AcidLook(listing, frozenset(name.partition("/")[0] for name in names))
    found = content_at(look, ValidWriteIds(1), ValidWriteIds(1), {}.__contains__, {}.__contains__)
    assert found is not None
    assert [file.path for file in found.files] == ["/delta_0000001_0000001_0000/bucket_00000", "000000_0"]


def test_what_hive_3_compacted_is_known_by_its_note() -> None:
    assert directory_of("base_7", frozenset({"base_7"})) != directory_of("base_7")


# Rows, as Hive read them


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_warehouse(tmp_path_factory.mktemp("acid"))


def printed(state: RecordedState, warehouse: Path) -> list[str]:
    """The rows of a full ACID table as Hive printed them, with their row ids; read from the files that were left."""
    assert state.valid is not None
    lines = []
    for partition in partitions_of(state):
        folder = place_of(state, warehouse) / partition
        files = list(files_read(FileStorage(), str(folder), state.valid, ((), "orc")))
        columns = max((file.content.column_names for file in files if file.directory is None), key=len, default=[])
        rows = rows_at(files, state.valid)
        columns = max([columns, *(list(row) for row in rows.values())], key=len)
        value = [partition.partition("=")[2]] if partition else []
        for (write_id, bucket, number), row in rows.items():
            row_id = f'{{"writeid":{write_id},"bucketid":{bucket},"rowid":{number}}}'
            cells = ["NULL" if row.get(name) is None else str(row[name]) for name in columns]
            lines.append("\t".join([row_id, *cells, *value]))
    return sorted(lines)


def test_rows_and_row_ids_are_those_that_hive_read(warehouse: Path) -> None:
    """Of every state of a full ACID table whose files were left at the end of the history."""
    compared = 0
    for state in states():
        is_full = state.parameters.get("transactional") == "true" and not state.is_insert_only
        if not is_full or state.rows is None or not is_there(state, warehouse):
            continue
        assert printed(state, warehouse) == sorted(state.rows), f"{state.table} after {state.after}"
        compared += 1
    assert compared == 7


def test_rows_of_an_insert_only_table_are_those_that_hive_read(warehouse: Path) -> None:
    """Of every state whose files were left at the end of the history: text files, whose rows have no ids."""
    compared = 0
    for state in states():
        if not state.is_insert_only or state.rows is None or state.valid is None or not is_there(state, warehouse):
            continue
        rows = []
        for partition in partitions_of(state):
            folder = place_of(state, warehouse) / partition
            value = [partition.partition("=")[2]] if partition else []
            found = [one for path in folder.iterdir() if (one := directory_of(path.name)) is not None]
            for one in readable(found, state.valid).all():
                for path in (folder / one.name).iterdir():
                    lines = path.read_text().splitlines() if not path.name.startswith("_") else []
                    rows += ["\t".join([*line.split("\x01"), *value]) for line in lines]
        assert sorted(rows) == sorted(state.rows), f"{state.table} after {state.after}"
        compared += 1
    assert compared == 8
