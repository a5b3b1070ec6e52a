"""`core.events.decode` and `core.events.keys` on every object and on broken messages."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.core.events import decode
from calque.core.events.decode import Undecodable, thrift_object
from calque.core.events.kept_names import is_lowered
from calque.core.events.keys import keys_of
from calque.core.events.rows import entries_of, table_of
from calque.model.hive import (
    FIELDS,
    Column,
    Database,
    Function,
    Kind,
    ListOf,
    MapOf,
    Partition,
    Resource,
    SerDe,
    Skew,
    SortColumn,
    Storage,
    Table,
)
from calque.model.journal import Entry, Event, EventKind, TableShape
from support.places import GOLDEN
from support.sources.tjson import event, gzipped, recorded, tjson

EVENTS = GOLDEN / "events"
RECORDED = [recorded(line) for path in sorted(EVENTS.glob("*.jsonl")) for line in path.read_text().splitlines()]
CLASSES = (Column, SortColumn, SerDe, Skew, Storage, Table, Partition, Database, Resource, Function)
ACCESSORS: tuple[Callable[[Event], object], ...] = (
    decode.fields,
    decode.table_after,
    decode.table_before,
    decode.partitions_after,
    decode.partition_before,
    decode.database_after,
    decode.database_before,
    decode.function_of,
    decode.insert_of,
    decode.table_files,
    decode.partition_files,
)
PRINTED = settings(print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case "string":
            return st.text(max_size=12)
        case "bool":
            return st.booleans()
        case "i32":
            return st.integers(-(2**31), 2**31 - 1)
        case "i64":
            return st.integers(-(2**63), 2**63 - 1)
        case ListOf(item):
            return st.lists(values_of(item), max_size=3).map(tuple)
        case MapOf(key, item):
            return st.dictionaries(values_of(key), values_of(item), max_size=3)
        case type():
            return objects_of(kind)
        case _:
            raise AssertionError(kind)


def objects_of(cls: type) -> st.SearchStrategy[Any]:
    """Names are those that a server keeps."""
    optional = {field.name: field.default is None for field in dataclasses.fields(cls)}
    values = {
        name: values_of(kind).map(str.lower) if is_lowered(cls, name) else values_of(kind)
        for _, name, kind in FIELDS[cls]
    }
    return st.builds(cls, **{name: st.none() | one if optional[name] else one for name, one in values.items()})


@pytest.mark.parametrize("cls", CLASSES)
def test_every_object_survives_tjson(cls: type) -> None:
    @PRINTED
    @given(objects_of(cls))
    def survives(thing: object) -> None:
        assert thrift_object(cls, tjson(thing)) == thing

    survives()


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)


@PRINTED
@given(table=objects_of(Table), name=NAMES, database=NAMES, columns=st.lists(NAMES, max_size=2, unique=True))
def test_keys_agree_with_the_decoded_table(table: Table, name: str, database: str, columns: list[str]) -> None:
    keyed_by = tuple(Column(column, "string") for column in columns)
    table = dataclasses.replace(table, name=name, database=database, partition_keys=keyed_by, type="MANAGED_TABLE")
    created = event("CREATE_TABLE", {"tableObjJson": tjson(table)})
    keys = keys_of(created)
    assert keys == keys_of(gzipped(created))
    kept_keys = tuple(Column(column.lower(), "string") for column in columns)
    kept = dataclasses.replace(table, name=name.lower(), database=database.lower(), partition_keys=kept_keys)
    assert decode.table_after(created) == kept
    assert keys.table == (database.lower(), name.lower())
    assert keys.shape is (TableShape.PARTITIONED if columns else TableShape.PLAIN)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def cut(draw: st.DrawFn) -> Event:
    """A recorded event whose message ends early, or has characters lost, changed or put in (lone surrogates too)."""
    one = draw(st.sampled_from(RECORDED))
    at = draw(st.integers(0, len(one.message)))
    lost = draw(st.integers(0, 3) | st.just(len(one.message)))
    new = draw(st.text(st.characters(), max_size=3) | st.sampled_from(["\ud800", "\\ud800", "{[", "]:", "\x00", "\\"]))
    return dataclasses.replace(one, message=one.message[:at] + new + one.message[at + lost :])


@st.composite
def changed(draw: st.DrawFn) -> Event:
    """A recorded event with one value, anywhere in the message or in an object inside it, of another type."""
    one = draw(st.sampled_from([one for one in RECORDED if one.message_format == "json-0.2"]))
    message = changed_somewhere(draw, json.loads(one.message))
    return dataclasses.replace(one, message=json.dumps(message))


def changed_somewhere(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, str) and value.startswith('{"') and draw(st.booleans()):
        return json.dumps(changed_somewhere(draw, json.loads(value)))
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 7)) == 0:
        return draw(JSON)
    places = list(value) if isinstance(value, dict) else range(len(value))
    place = draw(st.sampled_from(places))
    if draw(st.integers(0, 7)) == 0:
        return {key: item for key, item in value.items() if key != place} if isinstance(value, dict) else value[:place]
    copy = value.copy()
    copy[place] = changed_somewhere(draw, value[place])
    return copy


@settings(PRINTED, max_examples=300)
@given(cut() | changed())
def test_a_broken_message_raises_nothing_but_undecodable(one: Event) -> None:
    for read in ACCESSORS:
        with contextlib.suppress(Undecodable):
            read(one)


@settings(PRINTED, max_examples=300)
@given(cut() | changed())
def test_a_broken_message_has_keys_that_can_be_stored(one: Event) -> None:
    keys = keys_of(one)
    assert (keys.kind is EventKind.UNKNOWN) == bool(keys.defect)
    assert list(entries_of(table_of([(one, keys)]))) == [Entry(one.event_id, one.event_time, one.event_type, keys)]


@settings(PRINTED, max_examples=300)
@given(cut() | changed())
def test_keys_that_can_be_folded_are_well_formed(one: Event) -> None:
    keys = keys_of(one)
    if keys.kind in (EventKind.UNKNOWN, EventKind.NOTHING):
        return
    assert keys.table is not None
    assert keys.table.database == keys.table.database.lower() != ""
    assert len(keys.others) in (0, len(keys.partitions))
    assert all(keys.locations)
    if keys.kind in (EventKind.ADD_PARTITIONS, EventKind.ALTER_PARTITIONS, EventKind.RENAME_PARTITION):
        assert len(keys.locations) == (0 if keys.shape is TableShape.VIEW else len(keys.partitions))
    assert (keys.other is not None) == (keys.kind is EventKind.RENAME_TABLE)


@pytest.mark.parametrize("event_type", sorted({one.event_type for one in RECORDED}))
def test_no_single_wrong_value_raises_anything_else(event_type: str) -> None:
    plain = [one for one in RECORDED if one.message_format == "json-0.2" and one.event_type == event_type]
    right = min(plain, key=lambda one: len(one.message))
    for message in wrong_somewhere(json.loads(right.message)):
        one = dataclasses.replace(right, message=json.dumps(message))
        keys = keys_of(one)
        assert (keys.kind is EventKind.UNKNOWN) == bool(keys.defect)
        for read in ACCESSORS:
            with contextlib.suppress(Undecodable):
                read(one)


def wrong_somewhere(value: Any) -> Iterator[Any]:
    """`value` with each of its nodes, also inside objects in strings, replaced by wrong ones in turn; of a list of
    equal things only the first."""
    yield from (None, 1, "x", [[]], {}, {"str": []}, {"lst": ["rec", 1, "x"]})
    if isinstance(value, str) and value.startswith('{"'):
        yield from (json.dumps(wrong) for wrong in wrong_somewhere(json.loads(value)))
    elif isinstance(value, list):
        yield value[:-1]
        for place, item in [*enumerate(value)][: 3 if len(value) > 4 else 4]:
            yield from ([*value[:place], wrong, *value[place + 1 :]] for wrong in wrong_somewhere(item))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            yield from ({**value, key: wrong} for wrong in wrong_somewhere(item))


@settings(PRINTED, max_examples=300)
@given(st.sampled_from(CLASSES), JSON)
def test_any_json_is_an_object_or_undecodable(cls: type, value: Any) -> None:
    with contextlib.suppress(Undecodable):
        thrift_object(cls, value)
