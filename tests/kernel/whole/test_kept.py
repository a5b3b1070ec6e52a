"""Files that the source's change manager keeps, in databases that are a source of Hive's own replication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.core.formats.layout import join
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import TableName
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.sources.keeping import KeepingDirectories
from support.worlds.histories import differences
from support.worlds.worlds import World

DAYS, PLAIN = TableName("d1", "days"), TableName("d1", "plain")
COLUMNS = (Column("x", "int"),)
EXTERNAL = {"EXTERNAL": "TRUE"}


class KeepingWorld(World):
    """Two live tables, one with two partitions, in a database whose files the source keeps, or does not."""

    def __init__(self, habits: ServerHabits = HIVE_3, *, keeps: bool = True, external: bool = False) -> None:
        super().__init__(1, habits)
        self.directories = KeepingDirectories(self.storage, lambda _: keeps and not external)
        self.source.directories = self.directories
        self.open()
        self.source.create_database(Database("d1"))
        parameters, kind = (EXTERNAL, "EXTERNAL_TABLE") if external else ({}, "MANAGED_TABLE")
        days = Table("days", "d1", storage=Storage(COLUMNS), partition_keys=(Column("day", "string"),))
        plain = Table("plain", "d1", storage=Storage(COLUMNS))
        for table in (days, plain):
            self.source.create_table(replace(table, parameters=parameters, type=kind))
            self.note()
        partitions = [Partition((day,), *DAYS, storage=Storage(COLUMNS)) for day in ("1", "2", "3")]
        self.source.add_partitions(DAYS, partitions)
        self.note()
        self.settle()

    def location(self, name: TableName, day: str | None = None) -> str:
        stored = self.source.the_table(name)
        return location_of(stored.table if day is None else stored.partitions[day,]) or ""

    def insert(
        self, name: TableName, file: str, content: bytes, day: str | None = None, *, replaces: bool = False
    ) -> None:
        self.clock.now += 10_000_000
        location = self.location(name, day)
        if replaces:
            self.directories.remove(location)
        path = join(location, file)
        self.storage.write(path, content)
        values = [day] if day is not None else None
        self.source.insert(name, [self.directories.logged(path)], values=values, replace=replaces)
        self.note()

    def drop(self, day: str) -> None:
        self.source.drop_partitions(DAYS, [f"day={day}"])
        self.note()

    def rename(self, name: TableName, new_name: str) -> None:
        self.source.alter_table(name, replace(self.source.the_table(name).table, name=new_name))
        self.note()

    def shown_by_one_window(self) -> tuple[int, bool]:
        """How many hops a window over all that was captured takes, and whether one of them is a bridge."""
        known = len(self.windows)
        self.work()
        assert self.problems == []
        hops = [hop for window in self.windows[known:] for plan in window.plans for hop in plan.hops]
        return len(hops), any(hop.bridge for hop in hops)


def overwrite_between_two_changes(world: KeepingWorld, *, listed: bool = False) -> None:
    """Partition 1 has one content after another under one name while others go: the first one is listed or not."""
    world.insert(DAYS, "000000_0", b"first", "1")
    if listed:
        world.capture_all()
    world.drop("2")
    world.insert(DAYS, "000000_0", b"second", "1", replaces=True)
    world.drop("3")
    world.capture_all()


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4])
def test_a_content_that_was_replaced_is_shown_from_what_hive_kept(habits: ServerHabits, listed: bool) -> None:
    world = KeepingWorld(habits)
    overwrite_between_two_changes(world, listed=listed)
    assert world.shown_by_one_window() == (4, False)
    assert differences(world) == []
    assert world.reread == set()


@pytest.mark.parametrize(
    "make", [lambda: KeepingWorld(keeps=False), lambda: KeepingWorld(external=True)], ids=["not kept", "external"]
)
def test_where_hive_keeps_nothing_such_a_content_is_passed_over(make: Callable[[], KeepingWorld]) -> None:
    world = make()
    overwrite_between_two_changes(world)
    assert world.shown_by_one_window() == (1, True)
    assert differences(world) == []


def lose_by_overwriting(world: KeepingWorld) -> None:
    world.insert(PLAIN, "000000_0", b"later", replaces=True)


def lose_by_truncating(world: KeepingWorld) -> None:
    world.source.truncate_table(PLAIN)
    world.note()


def lose_by_dropping(world: KeepingWorld) -> None:
    world.source.drop_table(PLAIN)
    world.note()


def lose_by_renaming(world: KeepingWorld) -> None:
    world.rename(PLAIN, "other")


LOSSES = [lose_by_overwriting, lose_by_truncating, lose_by_dropping, lose_by_renaming]


@pytest.mark.parametrize("lose", LOSSES)
def test_files_that_went_after_they_were_listed_are_copied_from_what_hive_kept(
    lose: Callable[[KeepingWorld], None],
) -> None:
    world = KeepingWorld()
    world.insert(PLAIN, "000000_0", b"first")
    world.insert(PLAIN, "000000_0_copy_1", b"second")
    state = world.source_states()[PLAIN]
    world.capture_all()
    lose(world)
    assert world.shown_by_one_window() == (1, False)
    assert world.target_states()[PLAIN] == state
    world.settle()
    assert differences(world) == []
    assert world.reread == set()


def test_a_file_that_hive_dated_anew_when_it_renamed_the_table_is_copied_from_its_new_place() -> None:
    world = KeepingWorld()
    world.insert(PLAIN, "000000_0", b"first")
    world.capture_all()
    world.rename(PLAIN, "other")
    world.capture_all()
    copied: list[str] = []
    world.storage.before = lambda call, about: copied.append(about) if call == "copy" else None
    world.settle()
    assert differences(world) == []
    assert world.reread == set()
    place = world.location(TableName("d1", "other"))
    assert copied[-1] == join(place, "000000_0")


def test_what_hive_has_removed_from_where_it_keeps_files_is_lost() -> None:
    world = KeepingWorld()
    overwrite_between_two_changes(world)
    world.storage.remove([world.directories.root])
    assert world.shown_by_one_window() == (1, True)
    assert differences(world) == []


@pytest.mark.parametrize("listed", [True, False])
def test_what_is_removed_while_it_is_copied_is_lost(listed: bool) -> None:
    world = KeepingWorld()
    overwrite_between_two_changes(world, listed=listed)

    def remove(call: str, about: str) -> None:
        if call == "copy" and about.startswith(world.directories.root):
            world.storage.remove([world.directories.root])

    world.storage.before = remove
    assert world.shown_by_one_window() == (1, True)
    assert differences(world) == []


def test_nothing_is_written_where_hive_keeps_files() -> None:
    world = KeepingWorld()
    overwrite_between_two_changes(world)
    before = world.storage.tree(world.directories.root)
    world.shown_by_one_window()
    world.settle()
    assert world.storage.tree(world.directories.root) == before
    assert len(before) == 1
