"""Rows of a ledger as changes: kinds of changes, renames, exceptions, and which rows count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from calque.adapters.delta.columns import OBJECTS, object_record
from calque.core.records.contents import BEGINNINGS, ENDINGS, FOUND, UNSURE
from calque.engine.apply.context import UNDEFINED
from calque.engine.sweep.target_position import KEEPING
from calque.model.ledger import Bridge, Epoch, ObjectRow, Parts
from calque.model.names import TableName
from calque.plugins.epoch_reader.core.changes import CHANGE_TYPES, SCHEMA, changes_of
from plugins.epoch_reader.ledgers import change, epoch
from support.places import ROOT

WORD = re.compile("[a-z]+(_[a-z]+)*")


def changes(
    rows: Sequence[tuple[int, ObjectRow]], epochs: Sequence[Epoch] = (epoch(1), epoch(2)), chosen: str = ""
) -> list[dict[str, Any]]:
    records = [object_record(row, number) for number, row in rows]
    made = changes_of(
        epochs,
        pa.Table.from_pylist(records, schema=OBJECTS),
        lambda name: not chosen or name == TableName("sales", chosen),
    )
    assert made.schema == SCHEMA
    found: list[dict[str, Any]] = made.to_pylist()
    return found


def types(*rows: ObjectRow, chosen: str = "") -> list[str]:
    return [each["_change_type"] for each in changes([(1, row) for row in rows], chosen=chosen)]


def test_a_row_has_what_the_ledger_and_its_epoch_say() -> None:
    row = change("append", "lines", "p=1", event_id=18, delta_version=4, incarnation="3")
    assert changes([(2, row)]) == [
        {
            "_change_type": "update",
            "epoch": 2,
            "published_at": datetime(2024, 5, 1, 10, 2, tzinfo=UTC),
            "event_id": 20,
            "object_event_id": 18,
            "kind": "window",
            "database": "sales",
            "table": "lines",
            "partition": "p=1",
            "incarnation": "3",
            "location": "file:/dr/lines",
            "delta_version": 4,
            "snapshot_id": None,
            "exception": None,
        }
    ]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("insert", "create_table add_partition rename_partition replace read adopt"),
        ("update", "alter_table alter_partition append rebuild commit_table rename_table found unsure"),
        ("delete", "drop_table drop_partition rename_away"),
        ("update", "word_of_a_later_version"),
    ],
)
def test_each_change_of_the_ledger_is_an_insert_an_update_or_a_delete(kind: str, words: str) -> None:
    for word in words.split():
        assert types(change(word, partition="p=1" if "partition" in word else "")) == [kind], word


def words_in(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if WORD.fullmatch(text):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*words_in(body), *words_in(orelse))
        case ast.Tuple(elts=parts):
            for part in parts:
                yield from words_in(part)


def recorded_words() -> Iterator[str]:
    """The words that the engine gives to what makes rows of a ledger, or calls `change`."""
    for file in (ROOT / "lib/calque/engine").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in (
                    "record",
                    "row",
                    "row_of",
                    "PartitionWrite",
                    "whole",
                ):
                    for argument in node.args:
                        yield from words_in(argument)
                case ast.Assign(targets=[ast.Name(id="change") | ast.Tuple(elts=[*_, ast.Name(id="change")])]):
                    yield from words_in(node.value)


def test_every_change_that_is_recorded_is_known() -> None:
    words = {*recorded_words(), *BEGINNINGS, *ENDINGS, *UNDEFINED, *KEEPING, FOUND, UNSURE}
    assert {"create_table", "rename_table", "rebuild", "add_partition", "drop_partition"} <= words
    assert words <= CHANGE_TYPES.keys()


def test_what_begins_a_table_anew_is_an_insert() -> None:
    assert {CHANGE_TYPES[word] for word in BEGINNINGS} == {"insert"}


@pytest.mark.parametrize("word", ["rename_table", "rebuild", "commit_table", "alter_table"])
def test_a_table_is_deleted_under_its_old_name_and_inserted_under_the_new_one(word: str) -> None:
    rows = change("rename_away", "old"), change(word, "new", step=1)
    assert types(*rows) == ["delete", "insert"]
    assert types(*rows, chosen="new") == ["insert"]


def test_a_table_that_was_renamed_before_or_moves_at_the_target_alone_is_updated() -> None:
    assert types(change("rename_table")) == ["update"]
    moved_before = change("rename_away", "old"), change("rename_table", "new", event_id=6)
    assert types(*moved_before) == ["delete", "update"]
    of_epochs = changes([(1, change("rename_away", "old")), (2, change("rename_table", "new"))])
    assert [each["_change_type"] for each in of_epochs] == ["delete", "update"]


def test_a_renamed_partition_makes_no_insert_of_its_table() -> None:
    rows = change("rename_away", partition="p=1"), change("rename_partition", partition="p=2"), change("alter_table")
    assert types(*rows) == ["delete", "insert", "update"]


def test_the_exception_is_the_one_that_the_row_s_own_epoch_has_for_its_table() -> None:
    first = epoch(
        1,
        bridges=(Bridge("sales.a", 0, 10),),
        in_parts=("sales.a", "sales.b"),
        parts=(Parts("sales.c", 0, 10),),
        quarantined=("sales.b", "hr"),
        set_aside=("sales.d",),
    )
    rows = [(number, change("append", table)) for number in (1, 2) for table in "abcde"]
    rows.append((1, change("append", "staff", database="hr")))
    found = {(each["epoch"], each["table"]): each["exception"] for each in changes(rows, [first, epoch(2)])}
    assert {key: word for key, word in found.items() if word} == {
        (1, "a"): "bridge",
        (1, "b"): "in_parts",
        (1, "c"): "in_parts",
        (1, "d"): "set_aside",
        (1, "staff"): "set_aside",
    }


def test_rows_of_an_epoch_that_is_not_among_those_that_are_read_do_not_count() -> None:
    rows = [(number, change("append", f"t{number}")) for number in (1, 2, 3)]
    assert [each["table"] for each in changes(rows)] == ["t1", "t2"]
    assert changes(rows, []) == []
    assert changes([]) == []
