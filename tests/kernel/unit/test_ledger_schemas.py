"""The schemas of a ledger's promised tables say what the Delta tables have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from calque.adapters.delta.columns import EPOCHS, OBJECTS, TABLES
from calque.adapters.delta.ledger import DeltaLedger
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.model.files import File
from calque.model.ledger import Epoch, NotLiveReason, ObjectRow, TableRow, TableState
from calque.resources import schemas_folder

COLUMNS = {"epochs": EPOCHS, "objects": OBJECTS, "tables": TABLES}
SAYING = frozenset({"description", "enum"})


def schema(table: str) -> dict[str, Any]:
    text = (schemas_folder() / f"ledger-{table}-{LEDGER_FORMAT}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def types(column: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value without what only says what it means."""
    plain = {key: value for key, value in column.items() if key not in SAYING}
    if "items" in plain:
        plain["items"] = types(plain["items"])
    if "properties" in plain:
        plain["properties"] = {name: types(value) for name, value in plain["properties"].items()}
    return plain


def expected(kind: pa.DataType, *, nullable: bool = True) -> dict[str, Any]:
    """The schema of values of a column's type."""
    if pa.types.is_list(kind):
        return {"type": ["array", "null"], "items": expected(kind.value_type)}
    if pa.types.is_struct(kind):
        properties = {field.name: expected(field.type) for field in kind}
        more = {"required": list(properties), "additionalProperties": False}
        return {"type": ["object", "null"], "properties": properties, **more}
    word = {pa.int64(): "integer", pa.string(): "string", pa.bool_(): "boolean"}[kind]
    return {"type": [word, "null"] if nullable else word}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_schema_has_the_columns_of_the_table_in_their_order(table: str) -> None:
    found = {name: types(column) for name, column in schema(table)["properties"].items()}
    fields = {field.name: expected(field.type, nullable=field.nullable) for field in COLUMNS[table]}
    assert (list(found), found) == (list(fields), fields)
    assert schema(table)["required"] == list(fields)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_says_what_it_means(table: str) -> None:
    assert [name for name, column in schema(table)["properties"].items() if not column.get("description")] == []


def test_words_are_those_that_calque_writes() -> None:
    words = {name: set(column.get("enum", ())) - {None} for name, column in schema("tables")["properties"].items()}
    assert {name: found for name, found in words.items() if found} == {
        "kind": {"table", "database", "function"},
        "state": {state.value for state in TableState},
        "why": {why.value for why in NotLiveReason},
    }


def test_tables_on_the_disk_have_these_columns_and_types(tmp_path: Path) -> None:
    row = ObjectRow("d", "t", "", "7", 9, "create_table", files=(File("f", 1, 2, "c"),))
    epoch = Epoch(1, 9, 0, "2026-01-01T00:00:00Z", "bootstrap", gap=(1, 2))
    DeltaLedger(str(tmp_path)).publish(epoch, [row], [TableRow("d", "t", TableState.LIVE, 9)])
    for table, columns in COLUMNS.items():
        found = DeltaTable(str(tmp_path / table)).to_pyarrow_table().schema
        assert {field.name: field.type for field in found} == {field.name: field.type for field in columns}
