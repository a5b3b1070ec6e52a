"""`core.states.infer_contents`: what follows of a directory's content from listings around it and the messages
between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from calque.core.events.keys import keys_of
from calque.core.states.infer_contents import (
    DirectoryEvent,
    FileChange,
    FilesAdded,
    FilesKept,
    FilesListed,
    FilesReplaced,
    FilesUnknown,
    KeptUnder,
    changes_of,
    infer_contents,
)
from calque.core.states.moves import Move
from calque.model.files import File, Listing
from calque.model.hive import Partition, Table
from calque.model.journal import Event
from support.sources.logs import Log, part, partitioned, plain
from support.sources.tjson import tjson

SECOND = 1_000_000_000
OLD, LATE = 5 * SECOND, 2 * SECOND * 1000
PLACE = "file:/w/d1/t"


def listing(*names: str, size: int = 1, modified_ns: int = OLD) -> Listing:
    return Listing(PLACE, tuple(File(name, size, modified_ns) for name in sorted(names)))


def adds(*names: str) -> FilesAdded:
    return FilesAdded(frozenset(names))


def replaces(*names: str) -> FilesReplaced:
    return FilesReplaced(frozenset(names))


def contents(base: Listing | None, *changes: FileChange | tuple[FileChange, Listing | None]) -> dict[int, list[str]]:
    """The names that are inferred after each of the changes, which have the numbers 1, 2 and so on and came in second
    1000."""
    events = [
        DirectoryEvent(number, 1000, *(change if isinstance(change, tuple) else (change, None)))
        for number, change in enumerate(changes, start=1)
    ]
    return {
        event_id: [file.path for file in found.files] for event_id, found in infer_contents(PLACE, base, events).items()
    }


def test_what_later_events_added_was_not_there_before() -> None:
    found = contents(listing("a"), adds("b"), FilesKept(), adds("c", "d"), (adds("e"), listing(*"abcde")))
    assert found == {1: ["a", "b"], 2: ["a", "b"], 3: ["a", "b", "c", "d"]}


def test_what_the_metastore_counted_between_may_agree() -> None:
    assert contents(listing(), adds("a"), FilesKept((1, 1)), (adds("b"), listing("a", "b"))) == {1: ["a"], 2: ["a"]}


def test_an_event_that_names_all_files_needs_no_content_before_it() -> None:
    found = contents(None, FilesUnknown(), replaces("b"), (adds("c"), listing("b", "c")))
    assert found == {2: ["b"]}


def test_a_listing_between_is_a_content_to_go_on_from() -> None:
    found = contents(None, (FilesUnknown(), listing("a")), adds("b"), (FilesKept(), listing("a", "b")))
    assert found == {2: ["a", "b"]}


def test_equal_listings_tell_of_alterations_between_them() -> None:
    assert contents(listing("a"), FilesKept(), (FilesKept(), listing("a"))) == {1: ["a"]}


def test_where_there_was_no_file_and_the_metastore_counts_none_there_is_none() -> None:
    counted = FilesKept((0, 0))
    assert contents(listing(), counted, counted, FilesKept(), counted) == {1: [], 2: []}
    assert contents(None, (FilesUnknown(), listing()), counted, FilesKept((1, 0))) == {2: []}
    assert contents(listing("a"), counted) == contents(None, counted) == {}


def test_what_is_inferred_is_kept_where_the_later_listing_is() -> None:
    kept = replace(listing("a", "b"), pin="file:/pins/3")
    found = infer_contents(
        PLACE, listing(), [DirectoryEvent(1, 1000, adds("a")), DirectoryEvent(2, 1000, adds("b"), kept)]
    )
    assert found == {1: replace(listing("a"), pin="file:/pins/3")}


UNCERTAIN: dict[str, tuple[Listing | None, Sequence[FileChange], Listing | None]] = {
    "nothing is listed later": (listing(), [adds("a"), FilesKept()], None),
    "what was there before is not known": (None, [adds("a"), adds("b")], listing("a", "b")),
    "an event between may have done anything": (listing(), [adds("a"), FilesUnknown(), adds("b")], listing("a", "b")),
    "the listed event may have done anything": (listing(), [adds("a"), FilesUnknown()], listing("a")),
    "the listed event replaced everything": (listing(), [adds("a"), replaces("b")], listing("b")),
    "a name is used twice": (listing(), [adds("a"), adds("b"), adds("a")], listing("a", "b")),
    "a name was there before": (listing("a"), [adds("b"), adds("a")], listing("a", "b")),
    "a file that was there is gone": (listing("a"), [adds("b"), adds("c")], listing("b", "c")),
    "a file that was there is another": (listing("a", size=2), [adds("b"), adds("c")], listing("a", "b", "c")),
    "a file was dated anew": (listing("a", modified_ns=OLD + 1), [FilesKept(), FilesKept()], listing("a")),
    "a named file is gone": (listing(), [adds("a"), adds("b")], listing("b")),
    "a file is named by nobody": (listing(), [adds("a"), adds("b")], listing("a", "b", "c")),
    "the metastore counted others": (listing(), [adds("a"), FilesKept((2, 2)), adds("b")], listing("a", "b")),
    "a named file is younger than the event": (listing(), [adds("a"), FilesKept()], listing("a", modified_ns=LATE)),
}


@pytest.mark.parametrize("why", UNCERTAIN)
def test_nothing_is_inferred_where(why: str) -> None:
    base, (*changes, last), listed = UNCERTAIN[why]
    assert contents(base, *changes, (last, listed)) == {}


def test_a_file_of_the_event_s_own_second_is_old_enough() -> None:
    base, listed = listing(), listing("a", modified_ns=1001 * SECOND - 1)
    assert contents(base, adds("a"), (FilesKept(), listed)) == {1: ["a"]}
    younger = listing("a", modified_ns=1001 * SECOND)
    assert contents(base, adds("a"), (FilesKept(), younger)) == {}


# What messages say

T, P = plain(), partitioned()
ONE = part(P, "1")


def change(event: Event, location: str = PLACE, *moves: Move) -> FileChange:
    return changes_of(event, keys_of(event), moves).get(location, FilesUnknown())


def last(log: Log) -> Event:
    return log.events[-1]


def inserted(*files: str, replace: str = "false") -> Event:
    message = {"tableObjJson": tjson(T), "ptnObjJson": None, "replace": replace, "files": list(files)}
    return last(Log().on(T, "INSERT", message))


def with_parameters(table: Table, **parameters: str) -> Table:
    return replace(table, parameters={**(table.parameters or {}), **parameters})


def test_an_insert_names_files_below_its_directory_however_that_is_spelled() -> None:
    event = inserted(f"{PLACE}/000000_0###", "file:///w/d1/t/sub/b#00ff#hdfs://cm#", f"{PLACE}/_SUCCESS###")
    assert change(event) == replace(adds("000000_0", "sub/b"), kept={"sub/b": KeptUnder("00ff", "hdfs://cm")})
    assert change(inserted(f"{PLACE}/a###", replace="true")) == replaces("a")


@pytest.mark.parametrize("files", [[], [f"{PLACE}/_SUCCESS###"], ["file:/w/d1/other/a###"], [f"{PLACE}/a###delta_1_1"]])
def test_an_insert_that_names_no_data_or_files_elsewhere_says_nothing(files: list[str]) -> None:
    assert change(inserted(*files)) == FilesUnknown()
    assert change(inserted(*files, replace="true")) == FilesUnknown()


def test_an_alteration_of_the_definition_keeps_the_files() -> None:
    assert change(last(Log().alter(T, with_parameters(T, k="v")))) == FilesKept()
    assert (
        change(last(Log().alter_partition(P, ONE, replace(ONE, parameters={"k": "v"}))), f"{PLACE}/p=1") == FilesKept()
    )


@pytest.mark.parametrize(
    "after",
    [
        T,
        with_parameters(T, numRows="7"),
        with_parameters(T, transient_lastDdlTime="7"),
        with_parameters(T, k="v", numRows="7", numFiles="1", totalSize="7"),
        with_parameters(T, k="v", totalSize="7"),
        with_parameters(T, **{"spark.sql.statistics.totalSize": "7"}),
    ],
)
def test_an_alteration_of_statistics_may_be_a_writer_s(after: Table) -> None:
    assert change(last(Log().alter(T, after))) == FilesUnknown()


def test_an_alteration_of_the_definition_may_count_the_files() -> None:
    counted = with_parameters(T, k="v", numFiles="2", totalSize="7")
    assert change(last(Log().alter(T, counted))) == FilesKept((2, 7))
    assert change(last(Log().alter(T, replace(counted, name="u")))) == FilesKept()


def test_a_truncation_and_an_alteration_that_may_be_one_say_nothing() -> None:
    assert change(last(Log().alter(T, with_parameters(T, k="v"), truncate=True))) == FilesUnknown()
    assert change(last(Log().alter(T, with_parameters(T, k="v")).as_2_3())) == FilesUnknown()


def test_a_rename_keeps_the_files_where_they_are_or_moves_them_all() -> None:
    stays = last(Log().alter(T, replace(T, name="u")))
    assert change(stays) == FilesKept()
    assert change(last(Log().rename(T, "u").as_2_3())) == FilesKept()
    there = replace(T, name="u", storage=replace(T.storage, location="file:/w/d1/u") if T.storage else None)
    goes = last(Log().alter(T, there))
    assert change(goes, "file:/w/d1/u") == FilesUnknown()


def lists(*names: str) -> FilesListed:
    return FilesListed(frozenset(names))


def adding(*partitions: Partition, files: dict[str, list[str]]) -> Event:
    message = {
        "partitions": [{"p": one.values[0]} for one in partitions],
        "partitionListJson": [tjson(one) for one in partitions],
        "partitionFiles": [{"partitionName": name, "files": listed} for name, listed in files.items()],
    }
    return last(Log().on(P, "ADD_PARTITION", message))


def test_what_makes_an_object_says_which_files_the_metastore_listed() -> None:
    assert change(last(Log().on(T, "CREATE_TABLE", {"files": [f"{PLACE}/a###"]}))) == lists("a")
    added = adding(ONE, part(P, "2"), files={"p=2": [], "p=1": [f"{PLACE}/p=1/a###"]})
    assert change(added, f"{PLACE}/p=1") == lists("a")
    assert change(added, f"{PLACE}/p=2") == lists()


def test_an_external_table_s_empty_list_says_nothing() -> None:
    external = replace(T, type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    assert change(last(Log().create(replace(T, type="MANAGED_TABLE")))) == lists()
    assert change(last(Log().create(external))) == FilesUnknown()
    assert change(adding(ONE, files={}), f"{PLACE}/p=1") == FilesUnknown()


def test_what_makes_an_object_says_nothing_where_two_share_a_directory() -> None:
    shared = replace(part(P, "2"), storage=ONE.storage)
    added = adding(ONE, shared, files={"p=1": [f"{PLACE}/p=1/a###"], "p=2": []})
    assert change(added, f"{PLACE}/p=1") == FilesUnknown()


def test_an_alteration_without_the_image_before_it_says_nothing() -> None:
    assert change(last(Log().alter_partitions(P, ONE)), f"{PLACE}/p=1") == FilesUnknown()


def test_a_metastore_s_list_says_nothing_of_sub_directories() -> None:
    assert contents(None, lists("a"), (adds("b"), listing("a", "b"))) == {1: ["a"]}
    assert contents(None, lists(), (adds("b"), listing("b"))) == {1: []}
    assert contents(None, lists("a"), (adds("sub/b"), listing("a", "sub/b"))) == {}
