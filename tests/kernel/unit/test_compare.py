"""`core.images.compare`: what differs, in which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xxhash import xxh3_128_hexdigest

from calque.adapters.files import FileStorage
from calque.core.images.compare import (
    ComparedCounts,
    Difference,
    DifferenceKind,
    TableSide,
    common_event,
    compare_contents,
    compare_definitions,
    compare_files,
    compare_marks,
    compare_table,
    file_pairs,
    shared_places,
    shortened,
)
from calque.core.images.image import EVENT, INCARNATION, ImageBuilder, Marks, same_definition
from calque.core.policy.admit import Admission
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Column, Partition, SerDe, Skew, SortColumn, Storage, Table
from calque.model.names import Span, TableName
from calque.model.policy import Policy
from support.memory.storage import MemoryStorage

NAME = TableName("sales", "orders")
TABLE = Table(
    "orders",
    "sales",
    owner="me",
    storage=Storage(
        (Column("x", "int", "number"), Column("y", "string")),
        "file:/source/orders",
        "in",
        "out",
        buckets=4,
        serde=SerDe("s", "lib", {"sep": ","}),
        bucket_columns=("x",),
        sort_columns=(SortColumn("y", 0),),
        parameters={"stored": "1"},
        skew=Skew(("x",), (("1",),)),
    ),
    partition_keys=(Column("p", "string"),),
    parameters={"k": "1", "numRows": "3", "transient_lastDdlTime": "5"},
    type="MANAGED_TABLE",
)
PART = Partition(("1",), "sales", "orders", storage=Storage(location="file:/source/orders/p=1"), parameters={"w": "1"})


def imaging(**policy: str) -> ImageBuilder:
    return ImageBuilder(Admission(Policy("dr", "hq", rename={"sales": "sales_dr"}, **policy)))  # type: ignore[arg-type]


def listing(location: str, **sizes: int) -> Listing:
    return Listing(location, tuple(File(path, size, 1) for path, size in sorted(sizes.items())))


def at_target(seen: TableSide, under: ImageBuilder) -> TableSide:
    assert seen.table is not None
    marks = Marks(3, "r3")
    parts = {name: under.partition(part, NAME, marks, "file:/t/p") for name, part in seen.partitions.items()}
    return TableSide(under.table(seen.table, marks, "file:/t"), parts, seen.listings)


def whats(one: object, other: object) -> list[tuple[str, str | None, str | None]]:
    return [(found.what, found.source, found.target) for found in compare_definitions(NAME, "", one, other)]


# Definitions


def with_storage(**changes: object) -> Table:
    assert TABLE.storage is not None
    return replace(TABLE, storage=replace(TABLE.storage, **changes))  # type: ignore[arg-type]


CHANGES: dict[str, tuple[Table, list[tuple[str, str | None, str | None]]]] = {
    "owner": (replace(TABLE, owner="you"), [("owner", "me", "you")]),
    "an absent owner": (replace(TABLE, owner=None), [("owner", "me", None)]),
    "keys": (
        replace(TABLE, partition_keys=(Column("p", "int"),)),
        [("partition keys", "p string", "p int")],
    ),
    "columns": (
        with_storage(columns=(Column("x", "int"),)),
        [("columns", "x int number, y string", "x int")],
    ),
    "a parameter": (
        replace(TABLE, parameters={"k": "2", "numRows": "3"}),
        [("parameters.k", "1", "2")],
    ),
    "statistics": (
        replace(TABLE, parameters={"k": "1"}),
        [("parameters.numRows", "3", None)],
    ),
    "an empty parameter": (
        replace(TABLE, parameters={"k": "1", "numRows": "3", "e": ""}),
        [("parameters.e", None, "")],
    ),
    "serde": (
        with_storage(serde=SerDe("s", "other", {"sep": "|"})),
        [("serde.class name", "lib", "other"), ("serde.parameters.sep", ",", "|")],
    ),
    "storage": (
        with_storage(parameters={"stored": "2"}, buckets=5, sort_columns=(SortColumn("y", 1),)),
        [("buckets", "4", "5"), ("sort columns", "y", "y 1"), ("storage.parameters.stored", "1", "2")],
    ),
    "skew": (
        with_storage(skew=Skew()),
        [("skew.columns", "x", None), ("skew.values", "1", None)],
    ),
    "nothing": (replace(TABLE, parameters={"k": "1", "numRows": "3"}, create_time=9, retention=1), []),
    "a place": (with_storage(location="file:/elsewhere"), []),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_differing_field_is_named_with_its_two_values(change: str) -> None:
    other, expected = CHANGES[change]
    assert whats(TABLE, other) == expected


@pytest.mark.parametrize("change", CHANGES)
def test_fields_differ_exactly_when_definitions_do(change: str) -> None:
    other, _ = CHANGES[change]
    assert same_definition(TABLE, other) == (not whats(TABLE, other))


def test_long_values_are_cut_around_the_place_where_they_differ() -> None:
    one, other = shortened("a" * 500 + "b" + "c" * 500, "a" * 500 + "d" + "c" * 500)
    assert one is not None
    assert other is not None
    assert len(one) == len(other) == 122
    assert (one.index("b"), other.index("d")) == (41, 41)


def test_short_values_are_shown_whole() -> None:
    assert shortened("abc", "abd") == ("abc", "abd")
    assert shortened(None, "x") == (None, "x")


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({EVENT: "7", INCARNATION: "3"}, []),
        ({EVENT: "8", INCARNATION: "r8"}, []),
        ({EVENT: "9", INCARNATION: "r8"}, [(f"parameters.{EVENT}", "9")]),
        ({EVENT: "8", INCARNATION: "r9"}, [(f"parameters.{INCARNATION}", "r9")]),
        ({EVENT: "r8", INCARNATION: ""}, [(f"parameters.{EVENT}", "r8"), (f"parameters.{INCARNATION}", "")]),
        (None, [(f"parameters.{EVENT}", None), (f"parameters.{INCARNATION}", None)]),
    ],
)
def test_marks_are_there_well_formed_and_not_newer_than_the_source(
    parameters: dict[str, str] | None, found: list[tuple[str, str | None]]
) -> None:
    differences = compare_marks(NAME, "", parameters, (EVENT, INCARNATION), 8)
    assert [(difference.what, difference.target) for difference in differences] == found


# Tables


SOURCE = TableSide(TABLE, {"p=1": PART}, {"p=1": listing("file:/source/orders/p=1", a=1, b=2)})


def test_a_table_equals_its_image() -> None:
    under = imaging()
    assert compare_table(NAME, SOURCE, at_target(SOURCE, under), under, 9) == (ComparedCounts(0, 1, 1, 2, 3), [])


def test_what_the_source_lacks_is_extra_only_when_it_is_ours_and_drops_are_followed() -> None:
    under = imaging()
    ours = at_target(SOURCE, under)
    extra = Difference(NAME, "", DifferenceKind.EXTRA, "table", None, "table sales_dr.orders")
    assert compare_table(NAME, TableSide(), ours, under, 9) == (ComparedCounts(), [extra])
    assert compare_table(NAME, TableSide(), ours, imaging(drops="keep"), 9) == (ComparedCounts(), [])
    assert compare_table(NAME, TableSide(), TableSide(TABLE), under, 9) == (ComparedCounts(), [])
    assert compare_table(NAME, TableSide(), TableSide(), under, 9) == (ComparedCounts(), [])


def test_partitions_are_not_compared_under_other_keys() -> None:
    under = imaging()
    there = at_target(SOURCE, under)
    assert there.table is not None
    other = replace(there.table, partition_keys=(Column("q", "string"),))
    _, found = compare_table(NAME, SOURCE, replace(there, table=other), under, 9)
    assert [difference.what for difference in found] == ["partition keys"]


def test_a_view_in_a_tables_place_is_a_difference_of_definition() -> None:
    under = imaging()
    there = at_target(SOURCE, under)
    assert there.table is not None
    _, found = compare_table(NAME, SOURCE, replace(there, table=replace(there.table, type="VIRTUAL_VIEW")), under, 9)
    assert [(difference.what, difference.source, difference.target) for difference in found] == [
        ("type", "EXTERNAL_TABLE", "VIRTUAL_VIEW")
    ]


def test_two_spellings_of_one_location_are_equal_where_locations_count() -> None:
    under = imaging(data="none")
    there = at_target(SOURCE, under)
    table = replace(TABLE.storage or Storage(), location="file:///source//orders")
    assert there.table is not None
    spelled = TableSide(
        replace(there.table, storage=table),
        {"p=1": replace(there.partitions["p=1"], storage=Storage(location="/source/orders/p=2"))},
    )
    _, found = compare_table(NAME, replace(SOURCE, listings={}), spelled, under, 9)
    assert [(one.partition, one.what, one.source, one.target) for one in found] == [
        ("p=1", "location", "file:/source/orders/p=1", "/source/orders/p=2")
    ]


# Files


def test_files_differ_by_path_and_size_and_not_by_time() -> None:
    here = listing("a", same=1, other=2, gone=3)
    there = Listing("b", (File("new", 4, 1), File("other", 9, 1), File("same", 1, 99)))
    assert compare_files(NAME, "p=1", here, there) == [
        Difference(
            NAME,
            "p=1",
            DifferenceKind.FILES,
            "missing: gone; extra: new; other size: other",
            "3 files, 6 bytes",
            "3 files, 14 bytes",
        )
    ]


def test_a_difference_names_few_files_of_many() -> None:
    (found,) = compare_files(NAME, "", listing("a", **{f"f{number}": 1 for number in range(9)}), None)
    assert (found.what, found.target) == ("missing: f0, f1, f2 and 6 more", "0 files, 0 bytes")


def test_directories_that_were_not_listed_are_not_compared() -> None:
    assert compare_files(NAME, "", None, None) == []


def test_only_files_of_equal_size_are_compared_by_content() -> None:
    pairs = file_pairs(
        TableSide(listings={"": listing("a", x=1, y=2, z=3)}), TableSide(listings={"": listing("b", x=1, y=3, z=3)})
    )
    assert [(pair.source, pair.target) for pair in pairs] == [("a/x", "b/x"), ("a/z", "b/z")]
    assert compare_contents(NAME, pairs, {"a/x": "1", "a/z": "2"}, {"b/x": "1", "b/z": "3"}) == [
        Difference(NAME, "", DifferenceKind.CONTENT, "other content: z", "2", "3")
    ]


# Places and event ids


def test_objects_of_one_directory_are_grouped_however_it_is_spelled() -> None:
    other = TableName("sales", "other")
    places = [(other, "", "file:///t/o"), (NAME, "p=1", "/t/o"), (NAME, "", "/t")]
    assert shared_places(places) == [((NAME, "p=1"), (other, ""))]


@pytest.mark.parametrize(
    ("spans", "newest", "event"),
    [
        ([], 9, 9),
        ([Span(3, 9), Span(5, 9)], 9, 9),
        ([Span(3, 6), Span(5, 9)], 9, 6),
        ([Span(3, 4), Span(5, 8)], 9, 8),
        ([Span(3, 9), Span(5, 9)], 7, 7),
    ],
)
def test_the_event_is_the_newest_at_which_all_comparisons_hold(spans: list[Span], newest: int, event: int) -> None:
    assert common_event(spans, newest) == event


# Checksums


def test_memory_and_files_give_the_checksums_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    memory, paths = MemoryStorage(), [f"{tmp_path}/a b", f"file:{tmp_path}/empty", f"{tmp_path}/none", str(tmp_path)]
    memory.write(paths[0], b"abc")
    memory.write(paths[1], b"")
    expected = {paths[0]: xxh3_128_hexdigest(b"abc"), paths[1]: xxh3_128_hexdigest(b"")}
    assert FileStorage().checksums(paths) == expected
    assert memory.checksums(paths) == expected
    assert FileStorage().checksums([]) == memory.checksums([]) == {}


def test_checksums_of_what_may_not_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        FileStorage().checksums([f"file://elsewhere{tmp_path}/x"])
