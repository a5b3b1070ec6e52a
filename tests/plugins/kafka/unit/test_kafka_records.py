"""Records of Kafka's topics: bytes and back, versions of schemas, parts, and which records count."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.core.events.rows import SCHEMA
from calque.errors import Broken
from calque.plugins.kafka.adapters.journal.codec import Codec, codec, codec_of, self_contained
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo, Record, cut, record_of
from calque.plugins.kafka.adapters.journal.valid_records import Count, CountedValue, in_sequence, never_back
from calque.resources import schema_versions

NEW = CountedUpTo(0, 0, None)
ODD = 'Straße "quoted" \\ 日本語 🐘 \u2028 \x01\t\n'


def entry(offset: int, mark: int, known: CountedUpTo = NEW, value: bytes = b"v") -> Record:
    return Record(offset, mark, known, value, (mark, mark))


def counted(records: Iterable[Record], start: CountedUpTo = NEW) -> list[int]:
    count = Count(start, in_sequence)
    found = [count.take(record) for record in records]
    return [item.mark for item in found if item is not None]


def row(**changed: object) -> dict[str, object]:
    texts = dict.fromkeys(("event_type", "kind", "catalog", "database", "table", "shape", "defect"), ODD)
    lists = {name: [ODD, ""] for name in ("partitions", "others", "locations")}
    flags = dict.fromkeys(("replaces", "columns_changed", "facets_only", "transactional"), True)
    keys = {"key_database": ODD, "key_table": None, "other_database": None, "other_table": ""}
    whole = {
        "event_id": 2**62,
        "event_time": -1,
        **texts,
        **lists,
        **flags,
        **keys,
        "message_format": "",
        "message": ODD,
    }
    return {**whole, **changed}


def test_the_schema_of_events_has_the_journal_s_columns() -> None:
    (path,) = schema_versions("journal-event")
    assert [field["name"] for field in orjson.loads(path.read_bytes())["fields"]] == SCHEMA.names


def test_values_come_back_as_they_were() -> None:
    assert codec("journal-event").decode(codec("journal-event").encode(row())) == row()


def test_a_record_is_in_avro_s_single_object_encoding() -> None:
    data = codec("restart").encode({"event_id": 7})
    (path,) = schema_versions("restart")
    canonical = fastavro.schema.to_parsing_canonical_form(orjson.loads(path.read_bytes()))
    assert data[:2] == b"\xc3\x01"
    assert data[2:10].hex() == fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    assert data[10:] == b"\x0e"


def test_a_value_with_a_registry_s_id_is_the_same_record_behind_five_bytes() -> None:
    whole = codec("restart")
    data = whole.encode_registered({"event_id": 7}, 0x01020304)
    assert data == b"\x00\x01\x02\x03\x04\x0e"
    assert self_contained(data, whole.newest) == whole.encode({"event_id": 7})


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b"\xc3\x01\0\0\0\0\0\0\0\0"])
def test_a_value_that_should_have_an_id_and_has_none_is_an_error(value: bytes) -> None:
    with pytest.raises(Broken, match="and no schema's id"):
        self_contained(value, bytes(8))


def test_the_parts_of_a_value_say_all_of_what_the_whole_says() -> None:
    whole = codec("journal-event")
    value = whole.encode_registered(row(message=random.Random(7).randbytes(5_000).hex()), 7)
    before = replace(entry(0, 1, value=value), schema=whole.newest)
    read = [record_of(at, part.value, part.headers(), "t") for at, part in enumerate(cut(before, 1_000, b"g"))]
    count = Count(NEW, in_sequence)
    found = [taken for taken in map(count.take, read) if taken is not None]
    assert [whole.decode(item.value()) for item in found] == [whole.decode(self_contained(value, whole.newest))]
    assert len(read) > 2


@pytest.fixture
def versions() -> tuple[Codec, Codec]:
    """Of a calque that knows one version of a schema, and of the next one."""
    (path,) = schema_versions("restart")
    first = orjson.loads(path.read_bytes())
    second = {**first, "fields": [*first["fields"], {"name": "why", "type": "string", "default": "?"}]}
    return codec_of("restart", [first]), codec_of("restart", [first, second])


def test_a_reader_of_the_next_version_reads_what_the_last_one_wrote(versions: tuple[Codec, Codec]) -> None:
    old, new = versions
    assert new.decode(old.encode({"event_id": 7})) == {"event_id": 7, "why": "?"}


def test_a_reader_of_the_last_version_says_that_it_is_too_old(versions: tuple[Codec, Codec]) -> None:
    old, new = versions
    with pytest.raises(
        Broken, match=r"of the schema [0-9a-f]{16}, which is no known version of restart\. .+ Bring this"
    ):
        old.decode(new.encode({"event_id": 7, "why": "so"}))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x00\x00\x00\x00\x07x"])
def test_foreign_bytes_are_an_error_that_says_what_to_do(data: bytes) -> None:
    with pytest.raises(Broken, match=r"so it is no evidence record\. .+\. Give calque a topic of its own.+\."):
        codec("evidence").decode(data)


def test_a_damaged_record_is_an_error() -> None:
    with pytest.raises(Broken, match=r"can't be read\. It is damaged.+\. .+\."):
        codec("journal-event").decode(codec("journal-event").encode(row())[:40])


@pytest.mark.parametrize(
    "record",
    [
        entry(7, 5, CountedUpTo(0, 3, 2)),
        replace(entry(7, 5), events=None),
        replace(entry(7, 5), events=(2, 9)),
        replace(entry(7, 5, CountedUpTo(4, 4, 4)), events=None, restart=True),
        next(cut(entry(7, 5, value=random.Random(1).randbytes(300)), 100, b"g")),
    ],
)
def test_headers_say_all_of_a_record_but_its_value(record: Record) -> None:
    assert record_of(7, record.value, record.headers(), "t") == record


def test_a_value_that_fits_is_whole_one_that_fits_when_compressed_is_compressed_and_others_are_cut() -> None:
    small, dull, wild = b"x" * 100, b"x" * 10_000, random.Random(1).randbytes(1_000)
    for value, pieces in ((small, 1), (dull, 1), (wild, 11)):
        records = list(cut(entry(0, 1, value=value), 100, b"g"))
        assert (len(records), max(len(record.value) for record in records)) == (pieces, min(100, len(records[0].value)))
        (found,) = taken(records)
        assert found.value() == value


def taken(records: Iterable[Record]) -> list[CountedValue]:
    count = Count(NEW, never_back)
    found = [count.take(replace(record, offset=offset)) for offset, record in enumerate(records)]
    return [item for item in found if item is not None]


def test_parts_of_two_writers_between_each_other_are_two_values() -> None:
    first, second = (random.Random(seed).randbytes(300) for seed in (1, 2))
    pieces = zip(cut(entry(0, 1, value=first), 100, b"a"), cut(entry(0, 1, value=second), 100, b"b"), strict=True)
    assert [found.value() for found in taken([part for pair in pieces for part in pair])] == [first, second]


def test_events_count_once_and_in_order_whatever_else_was_written() -> None:
    marks = [5, 5, 6, 5, 8, 7, 8, 6, 9]
    assert counted(entry(offset, mark) for offset, mark in enumerate(marks)) == [5, 6, 7, 8, 9]


def test_behind_a_new_beginning_only_those_count_who_knew_of_it() -> None:
    restart = Record(2, 3, CountedUpTo(0, 2, 5), b"", None, restart=True)
    again = Record(3, 9, CountedUpTo(0, 2, 5), b"", None, restart=True)
    records = [
        entry(0, 4),
        entry(1, 5),
        restart,
        again,
        entry(4, 4, CountedUpTo(0, 2, 3)),
        entry(5, 4, CountedUpTo(3, 3, 3)),
    ]
    count = Count(NEW, in_sequence)
    assert [found.start for record in records if (found := count.take(record))] == [0, 1, 5]
    assert count.counted_up_to == CountedUpTo(3, 6, 4)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40))
def test_whoever_begins_where_a_record_says_that_all_is_known_counts_the_same(turns: list[tuple[int, bool]]) -> None:
    """Three writers look at the end at times, and write between each other what comes after what they saw."""
    log: list[Record] = []
    plans: dict[int, list[Record]] = {}
    for writer, looks in turns:
        if looks or not plans.get(writer):
            known = known_at_the_end(log)
            first = (known.mark or 0) + 1
            plans[writer] = [entry(0, mark, known) for mark in range(first, first + (1 if known.mark is None else 5))]
        log.append(replace(plans[writer].pop(0), offset=len(log)))
    whole = counted(log)
    assert whole == list(range(1, len(whole) + 1))
    for record in log:
        truth = record.truth()
        behind = counted(log[truth.offset :], truth)
        assert behind == [mark for mark in whole if mark > (truth.mark or 0)]


def known_at_the_end(log: Iterable[Record]) -> CountedUpTo:
    count = Count(NEW, in_sequence)
    for record in log:
        count.take(record)
    return count.clean
