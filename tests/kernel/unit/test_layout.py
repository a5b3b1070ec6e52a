"""`core.formats.layout`: locations, and where things go."""

from __future__ import annotations

import pytest

from calque.core.formats.layout import (
    external_location,
    is_data,
    join,
    mapped_location,
    natural_location,
    place,
    staged_name,
    versioned_location,
)
from calque.errors import Refused


@pytest.mark.parametrize(
    "spelling", ["/a/b", "file:/a/b", "file:///a/b", "FILE:/a//b/", "file://localhost/a/b", "///a/b"]
)
def test_spellings_of_one_local_directory_are_one_place(spelling: str) -> None:
    assert str(place(spelling)) == "file:/a/b"


@pytest.mark.parametrize(
    ("location", "parts"),
    [
        ("hdfs://nn:8020/w/t", ("hdfs", "nn:8020", "/w/t")),
        ("s3a://bucket", ("s3a", "bucket", "/")),
        ("s3a://bucket/", ("s3a", "bucket", "/")),
        ("hdfs:///w", ("hdfs", "", "/w")),
        ("/", ("file", "", "/")),
        ("abfss://box@account.example/x", ("abfss", "box@account.example", "/x")),
    ],
)
def test_a_location_comes_apart(location: str, parts: tuple[str, str, str]) -> None:
    found = place(location)
    assert (found.scheme, found.authority, found.path) == parts
    assert place(str(found)) == found


@pytest.mark.parametrize("name", ["ds=a%2Fb", "a b", "q?x#y", "t=10:30", "é=ü", "line\nbreak", "%25", "[*]"])
def test_names_are_taken_literally(name: str) -> None:
    assert place(f"file:///w/{name}").path == f"/w/{name}"
    assert place(f"/w/{name}") == place(f"file:/w/{name}")


@pytest.mark.parametrize("location", ["", "a/b", "ds=10:30/x", "file:", "s3a:", "file:a"])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(Refused, match="is no location"):
        place(location)


def test_a_place_contains_itself_and_what_is_below_but_no_neighbour() -> None:
    assert place("/a").contains(place("file:/a"))
    assert place("/a").contains(place("/a/b"))
    assert place("/").contains(place("/a"))
    assert not place("/a").contains(place("/ab"))
    assert not place("/a").contains(place("hdfs://nn/a/b"))


@pytest.mark.parametrize("root", ["/", "file:/", "file:///", "s3a://bucket", "s3a://bucket/", "hdfs:///"])
def test_joining_to_a_root_stays_in_it(root: str) -> None:
    found = place(join(root, "x"))
    assert (found.scheme, found.authority, found.path) == (place(root).scheme, place(root).authority, "/x")


@pytest.mark.parametrize(
    ("relative", "data"),
    [
        ("f", True),
        ("a/b", True),
        ("_SUCCESS", False),
        (".x.crc", False),
        ("_tmp/f", False),
        ("a/.b/f", False),
        ("a_b", True),
    ],
)
def test_hidden_names_are_no_data(relative: str, data: bool) -> None:
    assert is_data(relative) is data


def test_natural_locations() -> None:
    assert natural_location("file:///dr/", "sales") == "file:///dr/sales.db"
    assert natural_location("/dr", "sales", "orders") == "/dr/sales.db/orders"
    assert natural_location("/dr", "sales", "orders", "ds=a%2Fb/h=1") == "/dr/sales.db/orders/ds=a%2Fb/h=1"


def test_versioned_locations_differ_by_table_incarnation_partition_and_event() -> None:
    locations = {
        versioned_location("/dr", "sales", table, incarnation, event, partition)
        for table in ("orders", "order")
        for incarnation in ("10", "r10")
        for event in (20, 21)
        for partition in (None, "ds=1", "ds=2")
    }
    assert len(locations) == 24
    assert "/dr/sales.db/_calque/orders.10/data/20" in locations
    assert "/dr/sales.db/_calque/orders.r10/ds=1/21" in locations


def test_no_versioned_directory_lies_visibly_below_another_objects_directory() -> None:
    partitions = (None, "a=1", "a=2")
    objects = [natural_location("/dr", "d", table, partition) for table in ("t", "u") for partition in partitions]
    versions = [
        versioned_location("/dr", "d", table, "5", event, partition)
        for table in ("t", "u")
        for event in (1, 11)
        for partition in partitions
    ]
    everything = [place(location) for location in objects + versions]
    for version in versions:
        above = [other for other in everything if other.contains(place(version))]
        assert above == [place(version)]
    database = place(natural_location("/dr", "d"))
    assert not any(is_data(place(version).path.removeprefix(database.path + "/")) for version in versions)


def test_a_staged_file_is_below_its_directory_and_hidden() -> None:
    assert staged_name("file:/dr/d.db/t", "x/part-0", 7) == "file:/dr/d.db/t/_calque_stage/7/x/part-0"
    assert not is_data("_calque_stage/7/x/part-0")


def test_the_longest_prefix_wins_and_ends_where_a_name_ends() -> None:
    locations = {"hdfs://nn/data": "s3a://dr/data", "hdfs://nn/data/hot/": "s3a://hot", "file:///x": "/y"}
    assert mapped_location("hdfs://nn/data/a/b", locations) == "s3a://dr/data/a/b"
    assert mapped_location("hdfs://nn/data/hot/b", locations) == "s3a://hot/b"
    assert mapped_location("hdfs://nn/data/hot", locations) == "s3a://hot"
    assert mapped_location("hdfs://nn/data/hotter", locations) == "s3a://dr/data/hotter"
    assert mapped_location("hdfs://nn/database", locations) is None
    assert mapped_location("hdfs://other/data/a", locations) is None
    assert mapped_location("/x/ds=a%2Fb", locations) == "/y/ds=a%2Fb"
    assert mapped_location("s3a://b/k", {"s3a://b": "/copy", "s3a://b/": "/copy"}) == "/copy/k"


def test_external_locations_go_below_the_base_by_their_full_path() -> None:
    assert external_location("hdfs://nn:8020/ext/a", "file:///dr/ext", {}) == "file:///dr/ext/ext/a"
    assert external_location("file:/ext/a", "/dr", {"/ext": "/other"}) == "/other/a"
    assert external_location("/elsewhere", "", {"/ext": "/other"}) is None


def test_external_locations_of_two_buckets_do_not_meet() -> None:
    assert external_location("s3a://one/k", "/dr", {}) == "/dr/one/k"
    assert external_location("s3a://two/k", "/dr", {}) == "/dr/two/k"
