"""`core.states.kept_files` and `engine.files.kept_files`: what events say by checksums, and where such files are to be
had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5

import pytest

from calque.core.states.infer_contents import (
    DirectoryEvent,
    FileChange,
    FilesAdded,
    FilesKept,
    FilesListed,
    FilesReplaced,
    FilesUnknown,
    KeptUnder,
)
from calque.core.states.kept_files import NamedFile, contents_by_checksum, name_of, named_files
from calque.engine.files.kept_files import find
from calque.errors import Refused
from calque.model.files import File, KeptFile, Listing
from support.memory.storage import MemoryStorage

PLACE, ROOT = "hdfs://n/w/d1.db/t", "hdfs://n/cm"
SECOND = 1_000_000_000
KNOWN_NS, FOUND_NS = 5 * SECOND, 7 * SECOND


def named(name: str) -> NamedFile:
    return NamedFile(f"{PLACE}/{name}", f"sum-{name}", ROOT)


def kept_under(names: Sequence[str]) -> Mapping[str, KeptUnder]:
    return {name: KeptUnder(f"sum-{name}", ROOT) for name in names}


def adds(*names: str, without_checksum: Sequence[str] = ()) -> FilesAdded:
    return FilesAdded(frozenset((*names, *without_checksum)), kept_under(names))


def replaces(*names: str) -> FilesReplaced:
    return FilesReplaced(frozenset(names), kept_under(names))


def listing(*names: str) -> Listing:
    return Listing(PLACE, tuple(File(name, 1, KNOWN_NS) for name in sorted(names)))


def contents(
    base: Listing | None, *changes: FileChange | tuple[FileChange, Listing], gone: Sequence[str] = ()
) -> dict[int, list[str]]:
    """The names that are known after each of the changes, which have the numbers 1, 2 and so on. All named files but
    those that are `gone` are kept by the source."""
    events = [
        DirectoryEvent(number, 1000, *(change if isinstance(change, tuple) else (change, None)))
        for number, change in enumerate(changes, start=1)
    ]
    files = {file for event in events for file in named_files(PLACE, event.change).values()}
    present = {file: File(file.kept_path, 1, FOUND_NS) for file in files if file.path.rpartition("/")[2] not in gone}
    known = contents_by_checksum(PLACE, base, events, present)
    return {event_id: [file.path for file in content.files] for event_id, content in known.items()}


def test_an_insert_after_a_known_content_adds_what_it_names() -> None:
    assert contents(listing("a"), adds("b"), FilesKept((2, 2)), adds("c")) == {
        1: ["a", "b"],
        2: ["a", "b"],
        3: ["a", "b", "c"],
    }


def test_an_insert_that_replaces_needs_no_content_before_it() -> None:
    assert contents(None, FilesUnknown(), replaces("b"), adds("c")) == {2: ["b"], 3: ["b", "c"]}


def test_a_listing_between_is_a_content_to_go_on_from() -> None:
    assert contents(None, (FilesUnknown(), listing("a")), adds("b")) == {2: ["a", "b"]}


def test_what_was_removed_after_it_is_no_hindrance() -> None:
    removals = (replaces("c"), FilesUnknown(), FilesListed(frozenset()))
    for removal in removals:
        assert contents(listing("a"), adds("b"), (removal, listing("c"))) == {1: ["a", "b"]}


def test_a_later_listing_that_nothing_was_removed_before_decides() -> None:
    assert contents(listing("a"), adds("b"), (adds("c"), listing("b", "c"))) == {}
    assert contents(None, replaces("a"), adds("b"), (FilesKept(), listing("b"))) == {}


def test_a_file_is_listed_with_where_it_is_and_the_time_that_it_has_there() -> None:
    base = Listing("hdfs://target/t", (File("a", 1, KNOWN_NS),))
    present = {named("b"): File(named("b").kept_path, 3, FOUND_NS)}
    assert contents_by_checksum(PLACE, base, [DirectoryEvent(1, 1000, adds("b"))], present) == {
        1: Listing(
            PLACE,
            (File("a", 1, KNOWN_NS), File("b", 3, FOUND_NS)),
            kept=(KeptFile("b", f"{ROOT}/b_sum-b", FOUND_NS),),
        )
    }


UNCERTAIN: dict[str, tuple[Listing | None, Sequence[FileChange], Sequence[str]]] = {
    "what was there before is not known": (None, [adds("a")], ()),
    "an event before may have done anything": (listing(), [FilesUnknown(), adds("a")], ()),
    "a file is nowhere": (listing(), [adds("a", "b")], ["b"]),
    "a file has no checksum": (listing(), [adds("a", without_checksum=["b"])], ()),
    "a name is used again": (listing("a"), [adds("a")], ()),
    "the metastore listed one level alone": (None, [FilesListed(frozenset({"a"}), kept_under(["a"]))], ()),
    "an alteration did not have the metastore count": (listing("a"), [FilesKept()], ()),
    "the metastore counted others": (listing("a"), [FilesKept((2, 2))], ()),
    "the table is Delta's": (Listing(PLACE, (File("_delta_log/0.json", 1, 1),)), [adds("a")], ()),
}


@pytest.mark.parametrize("why", UNCERTAIN)
def test_nothing_is_known_where(why: str) -> None:
    base, changes, gone = UNCERTAIN[why]
    assert contents(base, *changes, gone=gone) == {}


def test_what_follows_an_unknown_content_is_unknown_until_one_is_named_whole() -> None:
    assert contents(listing(), adds("a"), adds("b"), replaces("c"), gone=["a"]) == {3: ["c"]}


# Names


def test_hive_cuts_long_names_of_kept_files() -> None:
    assert NamedFile(f"{PLACE}/000000_0", "ab12", ROOT).kept_path == f"{ROOT}/000000_0_ab12"
    assert NamedFile(f"{PLACE}/{'n' * 250}", "ab12", ROOT).kept_path == f"{ROOT}/{'n' * 250}_ab1"


def test_a_file_has_the_name_that_the_newest_event_gave_it() -> None:
    events = [
        DirectoryEvent(1, 4, adds("a")),
        DirectoryEvent(2, 6, replaces("a", "b")),
        DirectoryEvent(3, 8, adds("c")),
    ]
    old = KeptUnder("old", ROOT)
    events[0] = DirectoryEvent(1, 4, FilesAdded(frozenset({"a"}), {"a": old}))
    assert name_of(File("a", 1, 7 * SECOND - 1), PLACE, events) == named("a")
    assert name_of(File("a", 1, 7 * SECOND), PLACE, events) is None
    assert name_of(File("d", 1, KNOWN_NS), PLACE, events) is None
    assert name_of(File("a", 1, KNOWN_NS - 1), PLACE, events[:1]) == NamedFile(f"{PLACE}/a", "old", ROOT)


# Where files are


def of(name: str, content: bytes) -> NamedFile:
    return NamedFile(f"{PLACE}/{name}", md5(content, usedforsecurity=False).hexdigest(), ROOT)


def test_a_file_is_taken_from_its_place_while_it_has_its_checksum_there() -> None:
    storage, file = MemoryStorage(), of("a", b"one")
    storage.write(file.path, b"one")
    storage.write(file.kept_path, b"one")
    storage.touch(file.path)
    assert find(storage, [file]) == {file: storage.files([file.path])[file.path]}


def test_a_file_that_is_gone_or_altered_is_taken_from_where_it_is_kept() -> None:
    storage, gone, altered = MemoryStorage(), of("a", b"one"), of("b", b"two")
    storage.write(altered.path, b"TWO")
    storage.write(gone.kept_path, b"one")
    storage.write(altered.kept_path, b"two")
    kept = storage.files([gone.kept_path, altered.kept_path])
    assert find(storage, [gone, altered]) == {gone: kept[gone.kept_path], altered: kept[altered.kept_path]}


def test_another_content_of_the_same_name_is_not_taken_for_it() -> None:
    storage, file, other = MemoryStorage(), of("a", b"one"), of("a", b"two")
    storage.write(other.kept_path, b"two")
    storage.write(file.path, b"two")
    assert find(storage, [file]) == {}


def test_a_kept_file_that_is_not_whole_is_not_taken() -> None:
    storage, file = MemoryStorage(), of("a", b"one")
    storage.write(file.kept_path, b"on")
    assert find(storage, [file]) == {}


def test_where_kept_files_may_not_be_read_those_at_their_places_count() -> None:
    storage, at_place, gone = MemoryStorage(), of("a", b"one"), of("b", b"two")
    storage.write(at_place.path, b"one")

    def before(call: str, about: str) -> None:
        if call == "files" and about.startswith(ROOT):
            raise Refused("Not permitted to look at it")

    storage.before = before
    assert list(find(storage, [at_place, gone])) == [at_place]
