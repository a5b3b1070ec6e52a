"""Additional work of a storage for directories in object stores: notes of times around copies, and listings of many at
once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from calque.adapters.files.objects import THREADS, ObjectSystem
from calque.adapters.files.system import BulkListing, trouble
from calque.adapters.files.systems import FileSystemSet
from calque.core.formats.layout import place
from calque.model.files import Listing
from calque.ports import CopyTask

Directory = tuple[ObjectSystem, str]
Item = TypeVar("Item")
Result = TypeVar("Result")


def announce(systems: FileSystemSet, tasks: Sequence[CopyTask]) -> None:
    """Note the times of files at their targets before they are copied."""
    tasks_by_directory: dict[str, list[CopyTask]] = {}
    for task in tasks:
        if not task.target.startswith(("/", "file:")):
            tasks_by_directory.setdefault(task.target.rpartition("/")[0], []).append(task)

    def note(directory: str) -> None:
        system, path = systems.at(directory)
        if isinstance(system, ObjectSystem) and system.noted:
            times = {
                (task.target.rpartition("/")[2], task.size): task.modified_ns for task in tasks_by_directory[directory]
            }
            try:
                system.note(path, times)
            except OSError as error:
                raise trouble("write to", directory, error) from error

    each(note, list(tasks_by_directory))


def note_times(systems: FileSystemSet, times: Mapping[str, int]) -> None:
    """Note the given times, by full path, for files that are there."""
    times_by_directory: dict[str, dict[str, int]] = {}
    for path, modified_ns in times.items():
        if not path.startswith(("/", "file:")):
            directory, _, name = path.rpartition("/")
            times_by_directory.setdefault(directory, {})[name] = modified_ns

    def note(directory: str) -> None:
        system, path = systems.at(directory)
        if isinstance(system, ObjectSystem) and system.noted:
            try:
                sizes = {entry.name: entry.size for entry in system.entries(path) if not entry.directory}
                existing_times = {
                    (name, sizes[name]): time for name, time in times_by_directory[directory].items() if name in sizes
                }
                if existing_times:
                    system.note(path, existing_times)
            except OSError as error:
                raise trouble("write to", directory, error) from error

    each(note, list(times_by_directory))


def carry_over(systems: FileSystemSet, renames: Sequence[tuple[str, str]]) -> Sequence[Directory]:
    """Note the times of staged files at the places to which they are renamed. Returns the directories that they come
    from."""
    moves: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for staged, target in renames:
        if not staged.startswith(("/", "file:")):
            (above, _, name), (below, _, new_name) = staged.rpartition("/"), target.rpartition("/")
            moves.setdefault((above, below), []).append((name, new_name))
    directories: list[Directory] = []
    for (above, below), names in moves.items():
        (system, path), (_, target_path) = systems.at(above), systems.at(below)
        if not isinstance(system, ObjectSystem) or not system.noted or not systems.share_system(above, below):
            continue
        try:
            new_names = dict(names)
            times = system.noted_in(path)
            target_times = {(new_names[name], size): time for (name, size), time in times.items() if name in new_names}
            if target_times:
                system.note(target_path, target_times)
        except OSError as error:
            raise trouble("write to", below, error) from error
        directories.append((system, path))
    return directories


def forget(directories: Sequence[Directory]) -> None:
    """Remove the notes of directories whose files have gone."""
    for system, path in directories:
        try:
            system.forget_notes(path)
        except OSError as error:
            raise trouble("tidy", path, error) from error


def listed_together(
    systems: FileSystemSet, locations: Sequence[str], list_apart: Callable[[Sequence[str]], Mapping[str, Listing]]
) -> Mapping[str, Listing]:
    """Return the listings of many locations. Those of one store or HDFS take fewer requests together; others and
    missing ones are listed by `list_apart`, which takes few locations at a time."""
    groups: dict[tuple[str, str], list[str]] = {}
    for location in dict.fromkeys(locations):
        location_place = place(location)
        groups.setdefault((location_place.scheme, location_place.authority), []).append(location)
    found_listings: dict[str, Listing] = {}
    for group in groups.values():
        locations_by_path: dict[tuple[int, str], list[str]] = {}
        opened: dict[int, BulkListing] = {}
        for location in group:
            system, path = systems.to_read(location)
            if isinstance(system, BulkListing):
                opened[id(system)] = system
                locations_by_path.setdefault((id(system), path), []).append(location)
        for number, bulk in opened.items():
            paths = [path for key, path in locations_by_path if key == number]
            try:
                listings = bulk.below_each(paths)
            except OSError as error:
                raise trouble("list", group[0], error) from error
            for path, files in listings.items():
                if files is not None:
                    found_listings |= {
                        location: Listing(location, tuple(files)) for location in locations_by_path[number, path]
                    }
    remaining = [location for location in dict.fromkeys(locations) if location not in found_listings]

    def one(location: str) -> Listing:
        return list_apart([location])[location]

    found_listings |= dict(zip(remaining, each(one, remaining), strict=True))
    return {location: found_listings[location] for location in locations}


def write_object(system: ObjectSystem, path: str, location: str, content: bytes) -> None:
    try:
        system.create(path, [memoryview(content)])
    except OSError as error:
        raise trouble("write", location, error) from error


def each(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(THREADS, len(items)), thread_name_prefix="objects") as pool:
        return list(pool.map(work, items))
