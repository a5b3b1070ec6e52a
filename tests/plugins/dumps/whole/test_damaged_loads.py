"""Loads that something goes wrong with: files of the dump that are cut off, damaged or gone, a source that is no more,
a death at every call. Whoever reads the target sees states of the source alone, whatever happens, and a load that is
said again when all is mended comes to the dump's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from calque.core.formats.layout import join
from calque.errors import CalqueError, Refused
from calque.plugins.dumps.core.layout import DumpLayout
from calque.plugins.dumps.core.options import DUMP_KEYS, dump_options, known_options
from support.runs import seeds
from support.worlds.dumpworlds import DumpWorld

BEFORE = (
    "create_database",
    *["create_table"] * 4,
    *["add_partitions"] * 3,
    "insert_files",
    "create_view",
    "statistics",
)
BETWEEN = (
    "add_partitions",
    "insert_partition",
    "overwrite_partition",
    "alter_partitions",
    "alter_table",
    "rename_table",
    "create_table",
    "drop_partitions",
    "insert",
    "overwrite",
    "truncate_table",
    "drop_table",
    "alter_database",
)
DAMAGES: Mapping[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "cut off": lambda content: content[: len(content) // 2],
    "damaged": lambda content: content.replace(b"{", b"[", 1)[:-2] + b"\xff\x00",
}


EACH = 2
"""Of the files of a dump each day has one in so many, the next day others."""


class Loading:
    """A bootstrap, and an increment on it; the second is to be loaded where the first one was."""

    def __init__(self, folder: Path, layout: DumpLayout, *, increment: bool) -> None:
        self.world = DumpWorld(14, folder, BEFORE + BETWEEN)
        for operation in BEFORE:
            self.world.writer.run(operation)
        options = dump_options(known_options({"calque.repl.layout": layout.value}, DUMP_KEYS))
        self.dumped = self.world.dump(options=options)
        if increment:
            assert self.world.load(self.dumped) == []
            for operation in BETWEEN:
                self.world.writer.run(operation)
            self.dumped = self.world.dump(self.dumped.last_event, options=options)

    def files(self) -> list[str]:
        return sorted(files_below(self.world, self.dumped.directory.directory))

    def is_whole(self) -> bool:
        """Whether the target shows the dump's end, and never showed anything but states of the source."""
        assert not self.world.problems, self.world.problems[:2]
        return not self.world.wrong(self.dumped.last_event)


def loads(loading: Loading) -> bool:
    """Whether the dump, something of which is wrong, is loaded without a word; it is tried for a moment."""
    loading.world.load_patience = 2.0
    try:
        return loading.world.load(loading.dumped) == []
    except CalqueError:
        return False
    finally:
        loading.world.load_patience = 20.0


def files_below(world: DumpWorld, folder: str) -> Iterator[str]:
    for entry in world.storage.entries(folder):
        path = join(folder, entry.name)
        yield from files_below(world, path) if entry.directory else [path]


@pytest.mark.parametrize("damage", sorted(DAMAGES))
@pytest.mark.parametrize("increment", [False, True], ids=["bootstrap", "increment"])
@pytest.mark.parametrize("layout", list(DumpLayout))
def test_a_dump_with_a_file_that_is_damaged_shows_nothing_that_the_source_had_not(
    layout: DumpLayout, damage: str, tmp_path: Path, *, increment: bool
) -> None:
    paths = Loading(tmp_path / "first", layout, increment=increment).files()
    assert len(paths) > 10
    refused = 0
    for number in range(seeds.seed() % EACH, len(paths), EACH):
        loading = Loading(tmp_path / str(number), layout, increment=increment)
        storage, path = loading.world.storage, loading.files()[number]
        content = storage.read(path) or b""
        storage.remove([path])
        if (damaged := DAMAGES[damage](content)) is not None:
            storage.write(path, damaged)
        refused += not loads(loading)
        assert not loading.world.problems, (path, loading.world.problems[:2])
        storage.remove([path])
        storage.write(path, content)
        if loading.world.load(loading.dumped):
            # What an increment could not tell of a table, a bootstrap does.
            loading.dumped = loading.world.dump()
            assert loading.world.load(loading.dumped) == [], path
        assert loading.is_whole(), path
    assert refused


def test_a_load_that_dies_at_every_call_goes_on(tmp_path: Path) -> None:
    for increment in (False, True):
        deaths, number = 1, 0
        while deaths:
            loading = Loading(tmp_path / f"{increment}{number}", DumpLayout.HIVE_4, increment=increment)
            loading.world.fate = dying_at(number)
            assert loading.world.load(loading.dumped) == []
            assert loading.is_whole()
            deaths = loading.world.deaths
            number += 1
        assert number > 20


def dying_at(number: int) -> Callable[[], bool]:
    """A fate that comes once, at that call."""
    calls = count()
    return lambda: next(calls) == number


def test_a_load_needs_nothing_of_the_source_but_what_its_change_manager_kept(tmp_path: Path) -> None:
    for increment in (False, True):
        loading = Loading(tmp_path / str(increment), DumpLayout.HIVE_4, increment=increment)
        world = loading.world
        while tables := world.source.tables("d1"):
            world.writer.run("drop_table")
            assert len(world.source.tables("d1")) <= len(tables)
        assert not [path for path in files_below(world, "file:/source") if "/cmroot/" not in path]
        assert world.load(loading.dumped) == []
        assert loading.is_whole()


def test_an_increment_without_events_has_no_calls_made(tmp_path: Path) -> None:
    loading = Loading(tmp_path, DumpLayout.HIVE_4, increment=True)
    world = loading.world
    assert world.load(loading.dumped) == []
    before = world.target_store.current()
    nothing = world.dump(loading.dumped.last_event)
    assert nothing.last_event == loading.dumped.last_event
    assert world.load(nothing) == []
    assert world.target_store.current() == before
    assert loading.is_whole()


def test_a_load_makes_hardly_more_calls_than_a_run_of_the_same_window(tmp_path: Path) -> None:
    """Two more are for the database's mark. A run that had to read a table again did not play the window."""
    compared = 0
    for seed in range(12):
        loaded, followed = (DumpWorld(seed, tmp_path / f"{name}{seed}", BETWEEN * 3) for name in ("load", "run"))
        for world in (loaded, followed):
            for operation in BEFORE:
                world.writer.run(operation)
        first = loaded.dump()
        assert loaded.load(first) == []
        followed.open()
        followed.settle()
        for world in (loaded, followed):
            world.rng.seed(seed)
            for _ in range(25):
                world.write()
                world.capture_all()
        assert loaded.writer.done == followed.writer.done
        assert loaded.load(loaded.dump(first.last_event)) == []
        followed.settle()
        if not any(epoch.rereads for epoch in followed.ledger.epochs()[1:]):
            compared += 1
            assert calls_after_the_first(loaded) <= calls_after_the_first(followed) + 2
    assert compared > 5


def calls_after_the_first(world: DumpWorld) -> int:
    return sum(epoch.calls for epoch in world.ledger.epochs()[1:])


def test_a_load_that_is_not_permitted_to_write_says_so_and_goes_on_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for increment in (False, True):
        loading = Loading(tmp_path / str(increment), DumpLayout.HIVE_4, increment=increment)
        loading.world.load_patience = 0.5
        with monkeypatch.context() as patched:
            for method in ("copy", "make_directories"):
                patched.setattr(loading.world.storage, method, forbidden)
            with pytest.raises(CalqueError, match="Not permitted to write"):
                loading.world.load(loading.dumped)
        loading.world.load_patience = 20.0
        assert loading.world.load(loading.dumped) == []
        assert loading.is_whole()


def forbidden(*_: object) -> None:
    raise Refused("Not permitted to write file:/target", "PermissionError", "Give the user the right to it")
