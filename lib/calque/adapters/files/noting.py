"""What a storage does besides for directories in stores: notes of times around copies, listings of many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from calque.adapters.files.objects import THREADS, ObjectSystem
from calque.adapters.files.system import BulkListing, FileSystemSet, trouble
from calque.core.layout import place
from calque.model.files import Listing
from calque.ports import CopyTask

Directory = tuple[ObjectSystem, str]
Item = TypeVar("Item")
Result = TypeVar("Result")


def announce(systems: FileSystemSet, tasks: Sequence[CopyTask]) -> None:
    """Note the times of files before they are copied."""
    wanted: dict[str, list[CopyTask]] = {}
    for task in tasks:
        if not task.target.startswith(("/", "file:")):
            wanted.setdefault(task.target.rpartition("/")[0], []).append(task)

    def note(directory: str) -> None:
        system, path = systems.at(directory)
        if isinstance(system, ObjectSystem) and system.noted:
            times = {(task.target.rpartition("/")[2], task.size): task.modified_ns for task in wanted[directory]}
            try:
                system.note(path, times)
            except OSError as error:
                raise trouble("write to", directory, error) from error

    each(note, list(wanted))


def note_times(systems: FileSystemSet, times: Mapping[str, int]) -> None:
    """Note other times of files that are there, by full path."""
    wanted: dict[str, dict[str, int]] = {}
    for path, modified_ns in times.items():
        if not path.startswith(("/", "file:")):
            directory, _, name = path.rpartition("/")
            wanted.setdefault(directory, {})[name] = modified_ns

    def note(directory: str) -> None:
        system, path = systems.at(directory)
        if isinstance(system, ObjectSystem) and system.noted:
            try:
                sizes = {entry.name: entry.size for entry in system.entries(path) if not entry.directory}
                found = {(name, sizes[name]): time for name, time in wanted[directory].items() if name in sizes}
                if found:
                    system.note(path, found)
            except OSError as error:
                raise trouble("write to", directory, error) from error

    each(note, list(wanted))


def carry_over(systems: FileSystemSet, renames: Sequence[tuple[str, str]]) -> Sequence[Directory]:
    """Note the times of staged files where they are going to be; the directories that they come from."""
    moves: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for staged, target in renames:
        if not staged.startswith(("/", "file:")):
            (above, _, name), (below, _, new_name) = staged.rpartition("/"), target.rpartition("/")
            moves.setdefault((above, below), []).append((name, new_name))
    found: list[Directory] = []
    for (above, below), names in moves.items():
        (system, path), (other, target_path) = systems.at(above), systems.at(below)
        if not isinstance(system, ObjectSystem) or not system.noted or system is not other:
            continue
        try:
            new_names = dict(names)
            times = system.noted_in(path)
            going = {(new_names[name], size): time for (name, size), time in times.items() if name in new_names}
            if going:
                system.note(target_path, going)
        except OSError as error:
            raise trouble("write to", below, error) from error
        found.append((system, path))
    return found


def forget(directories: Sequence[Directory]) -> None:
    """Remove the notes of directories whose files have gone."""
    for system, path in directories:
        try:
            system.forget_notes(path)
        except OSError as error:
            raise trouble("tidy", path, error) from error


def listed_together(
    systems: FileSystemSet, locations: Sequence[str], apart: Callable[[Sequence[str]], Mapping[str, Listing]]
) -> Mapping[str, Listing]:
    """The listings of many locations, those of one store or HDFS with fewer requests, others and missing ones by
    `apart`, which takes few."""
    groups: dict[tuple[str, str], list[str]] = {}
    for location in dict.fromkeys(locations):
        where = place(location)
        groups.setdefault((where.scheme, where.authority), []).append(location)
    found: dict[str, Listing] = {}
    for some in groups.values():
        shared: dict[tuple[int, str], list[str]] = {}
        opened: dict[int, BulkListing] = {}
        for location in some:
            system, path = systems.at(location)
            if isinstance(system, BulkListing):
                opened[id(system)] = system
                shared.setdefault((id(system), path), []).append(location)
        for number, bulk in opened.items():
            paths = [path for key, path in shared if key == number]
            try:
                listings = bulk.below_each(paths)
            except OSError as error:
                raise trouble("list", some[0], error) from error
            for path, files in listings.items():
                if files is not None:
                    found |= {location: Listing(location, tuple(files)) for location in shared[number, path]}
    rest = [location for location in dict.fromkeys(locations) if location not in found]

    def one(location: str) -> Listing:
        return apart([location])[location]

    found |= dict(zip(rest, each(one, rest), strict=True))
    return {location: found[location] for location in locations}


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
