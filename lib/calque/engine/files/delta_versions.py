"""Copies of versions of a Delta table: the files that a version needs first, the commit that shows it last.

A table that the target has goes on in its directory. The files of each commit go straight to their final names, where
no version needs them yet. Then the commits are renamed into place one by one, and each makes a version that the source
had. Where this is not possible, because the source's log begins later, is another log, or a file of a version between
was vacuumed, a version goes to a directory of its own, with its log from the last checkpoint on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from xxhash import xxh3_128_hexdigest

from calque.core.formats.deltalog import (
    LAST_CHECKPOINT,
    LOG,
    Actions,
    Checkpoint,
    checkpoint_actions,
    commit_actions,
    commit_path,
    log_of,
    replayed,
    starts_with,
)
from calque.core.formats.layout import join, staged_name
from calque.model.files import File, Listing
from calque.model.names import EventId
from calque.ports import CopiedFile, CopyTask, Storage

READERS = 16
T = TypeVar("T")


class VersionLost(Exception):
    """Raised where the file `path` of the source, which a version needs, is not there any more, or not as it was."""

    def __init__(self, path: str, problem: str = "it is not there any more") -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: {problem}")


@dataclass(slots=True)
class CopiedVersion:
    """The version that a target's directory has now. `commit` is the file of its newest commit; `files` and `bytes`
    count what this call really copied."""

    commit: File
    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _CopyRoute:
    """The way of a Delta table's files from the directory `source` to the directory `target`, on a storage that sees
    both."""

    storage: Storage
    source: str
    target: str
    done: list[CopiedFile] = field(default_factory=list)
    sums: dict[str, str] = field(default_factory=dict)
    """Checksums of the source's commits that were read, by path. A copy is compared with them, because the log of
    another table may come to lie at the same path."""

    def commits(self, versions: Iterable[int], newest: File) -> list[Actions]:
        """Read the source's commits `versions`, the last of which must be `newest`, and return the actions of each.
        Raises `VersionLost`."""
        paths = [commit_path(version) for version in versions]
        contents = _read(self.storage, self.source, paths, bytes)
        self.sums |= {path: xxh3_128_hexdigest(content) for path, content in zip(paths, contents, strict=True)}
        if paths and self.sums[newest.path] != newest.checksum:
            raise VersionLost(join(self.source, newest.path), "another log lies there now")
        return [commit_actions(content) for content in contents]

    def source_files(self, paths: Iterable[str]) -> Mapping[str, File]:
        """Return those of the source's files that are there, by their paths relative to the source's directory."""
        paths_by_location = {join(self.source, path): path for path in paths}
        return {
            paths_by_location[location]: file
            for location, file in self.storage.files(sorted(paths_by_location)).items()
        }

    def require(self, paths: Iterable[str]) -> Mapping[str, File]:
        """Return the source's files by `paths`. Raises `VersionLost` unless all are there."""
        required_paths = set(paths)
        files = self.source_files(required_paths)
        if missing := required_paths - files.keys():
            raise VersionLost(join(self.source, min(missing)))
        return files

    def copy(
        self, source_files: Mapping[str, File], is_needed: Callable[[str], bool], event_id: EventId | None = None
    ) -> None:
        """Copy files to their names at the target, or, with an `event_id`, to hidden names of that event. A file that
        is no commit is not copied again if one of equal size is there: a Delta table uses no name twice, and a copy
        gets its name only when it was verified. Raises `VersionLost` where a file that `is_needed` can't be copied, or
        a commit is another one than was read."""
        target_paths = {path: self.name(path, event_id) for path in source_files}
        target_files = self.storage.files(sorted(target_paths.values()))
        tasks = {
            path: CopyTask(join(self.source, path), target_paths[path], file.size, file.modified_ns, within=self.source)
            for path, file in sorted(source_files.items())
            if path in self.sums
            or target_paths[path] not in target_files
            or target_files[target_paths[path]].size != file.size
        }
        for path, copied in zip(tasks, self.storage.copy(list(tasks.values())) if tasks else (), strict=True):
            if not copied.problem and self.is_read(path, target_paths[path], copied.checksum):
                self.done.append(copied)
            elif not copied.problem:
                self.storage.remove([target_paths[path]])
                raise VersionLost(join(self.source, path), "another log lies there now")
            elif is_needed(path):
                raise VersionLost(join(self.source, path), copied.problem)

    def is_read(self, path: str, target_path: str, checksum: str) -> bool:
        """Tell whether the copy at `target_path` has the content of the commit `path` that was read; true for a path
        that is no commit. A store that copies inside itself gives no `checksum`, so the copy is read then."""
        if path not in self.sums:
            return True
        return (checksum or self.storage.checksums([target_path]).get(target_path)) == self.sums[path]

    def name(self, path: str, event_id: EventId | None) -> str:
        return join(self.target, path) if event_id is None else staged_name(self.target, path, event_id)

    def brought(self, commit: File) -> CopiedVersion:
        return CopiedVersion(commit, len(self.done), sum(copied.bytes_moved for copied in self.done))


def always(_path: str) -> bool:
    return True


def same_log(storage: Storage, target_listing: Listing, source: str) -> bool:
    """Tell whether the version that a target's directory shows is one of the log below `source`."""
    if target_listing.version is None:
        return False
    content = storage.read(join(source, commit_path(target_listing.version)))
    return content is not None and xxh3_128_hexdigest(content) == target_listing.files[0].checksum


def advance(
    storage: Storage, target_listing: Listing, source_listing: Listing, event_id: EventId
) -> CopiedVersion | None:
    """Bring the live directory `target_listing` to the version `source_listing` of the source, in place. Return None
    where that is not possible; nothing that readers see has changed then. Raises `Refused` for a table that can't be
    copied."""
    if (
        target_listing.version is None
        or source_listing.version is None
        or not same_log(storage, target_listing, source_listing.location)
    ):
        return None
    if target_listing.version >= source_listing.version:
        return (
            CopiedVersion(source_listing.files[0])
            if target_listing.files[0].checksum == source_listing.files[0].checksum
            else None
        )
    route = _CopyRoute(storage, source_listing.location, target_listing.location)
    versions = range(target_listing.version + 1, source_listing.version + 1)
    try:
        commits = route.commits(versions, source_listing.files[0])
        needed_files = route.require(path for actions in commits for path in actions.paths())
        changes = route.source_files(path for actions in commits for path in actions.changes)
        route.copy({**changes, **needed_files}, needed_files.__contains__)
        log = route.require(commit_path(version) for version in versions)
        route.copy(log, always, event_id)
    except VersionLost:
        return None
    paths = [commit_path(version) for version in versions]
    storage.publish([(route.name(path, event_id), route.name(path, None)) for path in paths])
    bring_checkpoint(route, source_listing.version)
    return route.brought(source_listing.files[0])


def bring_checkpoint(route: _CopyRoute, upto: int) -> None:
    """Copy the source's newest checkpoint of a version up to `upto`, if it is newer than the target's: readers of a
    long log begin there. A checkpoint that the source has lost is passed over, because readers can go through the
    commits instead."""
    source_checkpoint = log_of(route.storage.children(join(route.source, LOG))).checkpoint(upto)
    target_checkpoint = log_of(route.storage.children(join(route.target, LOG))).checkpoint(upto)
    if source_checkpoint is None or (
        target_checkpoint is not None and target_checkpoint.version >= source_checkpoint.version
    ):
        return
    try:
        _, sidecars = read_checkpoint(route.storage, route.source, source_checkpoint)
        copy_checkpoint(route, source_checkpoint, sidecars)
    except VersionLost:
        return


def copy_checkpoint(route: _CopyRoute, checkpoint: Checkpoint, sidecars: Sequence[str]) -> None:
    """Copy a checkpoint: first the files that it refers to, last the file and the pointer that make readers use it.
    Raises `VersionLost`."""
    *parts, last = checkpoint.files
    route.copy(route.require([*sidecars, *parts]), always)
    route.copy(route.require([last]), always)
    pointer = route.storage.read(join(route.source, LAST_CHECKPOINT))
    if pointer is not None and starts_with(pointer, checkpoint):
        route.storage.write(join(route.target, LAST_CHECKPOINT), pointer)


def read_checkpoint(storage: Storage, source: str, checkpoint: Checkpoint) -> tuple[list[Actions], list[str]]:
    """Return the actions of a checkpoint, those of its sidecars among them, and the sidecars' paths. Raises
    `VersionLost`."""
    actions = [
        _read(storage, source, [path], checkpoint_actions if path.endswith(".parquet") else commit_actions)[0]
        for path in checkpoint.files
    ]
    sidecars = [path for file_actions in actions for path in file_actions.sidecars]
    return [*actions, *_read(storage, source, sidecars, checkpoint_actions)], sidecars


def bring_whole(storage: Storage, source_listing: Listing, target: str) -> CopiedVersion:
    """Copy the version `source_listing` to the directory `target`, which has no readers yet. All files that the version
    needs are copied. Files of versions since the checkpoint that its log begins with are copied as far as they still
    exist, so that readers can go back as far as at the source. Raises `VersionLost` where a file that the version needs
    is gone, and `Refused` for a log that calque can't read."""
    assert source_listing.version is not None
    route = _CopyRoute(storage, source_listing.location, target)
    base, first, commits, sidecars = history(route, source_listing)
    live = {path for file in replayed(base, commits) for path in file.paths}
    past = {path for actions in (*base, *commits) for path in (*actions.paths(), *actions.changes)}
    needed = route.require(live)
    route.copy({**route.source_files(past - live), **needed}, needed.__contains__)
    start = -1 if first is None else first.version
    log = route.require(commit_path(version) for version in range(start + 1, source_listing.version + 1))
    newest = commit_path(source_listing.version)
    log = {**route.source_files([commit_path(start)] if first is not None else ()), **log}
    route.copy({path: file for path, file in log.items() if path != newest}, always)
    if first is not None:
        copy_checkpoint(route, first, sidecars)
    route.copy({newest: log[newest]}, always)
    return route.brought(source_listing.files[0])


def history(
    route: _CopyRoute, source_listing: Listing
) -> tuple[Sequence[Actions], Checkpoint | None, Sequence[Actions], Sequence[str]]:
    """Return the actions of the checkpoint that a version's log begins with, that checkpoint (None: the log begins with
    its first commit), the actions of the commits after it, and the checkpoint's sidecars. Raises `VersionLost`."""
    assert source_listing.version is not None
    first = log_of(route.storage.children(join(route.source, LOG))).checkpoint(source_listing.version)
    if first is not None and first.version == source_listing.version:
        route.commits([source_listing.version], source_listing.files[0])
    base, sidecars = ([], []) if first is None else read_checkpoint(route.storage, route.source, first)
    start = -1 if first is None else first.version
    commits = route.commits(range(start + 1, source_listing.version + 1), source_listing.files[0])
    return base, first, commits, sidecars


def live_files(storage: Storage, listing: Listing) -> Listing:
    """Return a Delta listing with its commit and all files of its version that exist; another listing is returned as it
    is. Raises `VersionLost` where the log does not say which files the version has."""
    if listing.version is None:
        return listing
    route = _CopyRoute(storage, listing.location, "")
    base, _, commits, _ = history(route, listing)
    live = {path for file in replayed(base, commits) for path in file.paths}
    live_files_by_path = route.source_files(live)
    files = [File(path, file.size, file.modified_ns) for path, file in live_files_by_path.items()]
    return Listing(listing.location, tuple(sorted([*listing.files, *files])))


def _read(storage: Storage, source: str, paths: Sequence[str], parse: Callable[[bytes], T]) -> list[T]:
    """Read the files `paths` below `source` side by side, and return the result of `parse` for each. Raises
    `VersionLost` for a file that is not there."""

    def one(path: str) -> T:
        content = storage.read(join(source, path))
        if content is None:
            raise VersionLost(join(source, path))
        return parse(content)

    if len(paths) < 2:
        return [one(path) for path in paths]
    with ThreadPoolExecutor(min(READERS, len(paths)), thread_name_prefix="delta-log") as pool:
        return list(pool.map(one, paths))
