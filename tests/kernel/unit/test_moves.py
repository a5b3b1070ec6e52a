"""Which renames keep what lies in a directory, and where it is after them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.states.moves import Move, move_of, places
from calque.model.hive import Column, Partition, Storage, Table
from support.sources.logs import Log


def table(name: str, location: str) -> Table:
    storage = Storage((Column("v", "int"),), location=location)
    return Table(name, "d1", storage=storage, partition_keys=(), parameters={}, type="MANAGED_TABLE")


@pytest.mark.parametrize(
    ("before", "after", "goes"),
    [
        ("file:/w/d1.db/t", "file:/w/d1.db/u", ("file:/w/d1.db/t", "file:/w/d1.db/u")),
        ("file:/w/d1.db/t/", "file:/w/d2.db/U", ("file:/w/d1.db/t", "file:/w/d2.db/U")),
        ("file:/outside/x", "file:/outside/x", ("file:/outside/x", "file:/outside/x")),
        ("file:/outside/x", "file:/outside/y", None),
        ("file:/w/d1.db/t", "file:/outside/y", None),
        ("file:/outside/x", "file:/w/d1.db/u", None),
    ],
)
def test_a_table_s_directory_goes_along_with_its_name_or_stays(
    before: str, after: str, goes: tuple[str, str] | None
) -> None:
    move = move_of(Log().alter(table("t", before), table("u", after)).events[0])
    assert (move and (move.old, move.new)) == goes


def test_a_partition_s_directory_goes_to_where_the_event_says() -> None:
    owner = replace(table("t", "file:/w/d1.db/t"), partition_keys=(Column("p", "string"),))
    one, two = (
        Partition((value,), "d1", "t", storage=replace(owner.storage, location=f"file:/w/d1.db/t/p={value}"))
        for value in "12"
    )
    move = move_of(Log().alter_partition(owner, one, two).events[0])
    assert move is not None
    assert (move.old, move.new) == ("file:/w/d1.db/t/p=1", "file:/w/d1.db/t/p=2")


def test_a_directory_is_followed_through_a_swap() -> None:
    swap = [Move(5, "/w/a", "/w/tmp"), Move(6, "/w/b", "/w/a"), Move(7, "/w/tmp", "/w/b")]
    assert places(4, "/w/a", swap) == ["/w/a", "/w/tmp", "/w/b"]
    assert places(4, "/w/b/p=1", swap) == ["/w/b/p=1", "/w/a/p=1"]
    assert places(6, "/w/a", swap) == ["/w/a"]
    assert places(4, "/w/ab", swap) == ["/w/ab"]
