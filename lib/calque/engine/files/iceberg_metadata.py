"""Copies of the files that an Iceberg table's definition points to: data first, then, upwards, the files that name
them.

A file has the name at the target that `core.formats.iceberg.PathMapping` gives it, regardless of what was copied
before, and no file is ever written again: after a crash the next attempt goes on where the last one was. The metadata
file comes last; where it is there, all that it needs is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from calque.core.formats.iceberg import (
    METADATA,
    PREVIOUS,
    Json,
    PathMapping,
    current_of,
    is_displaced,
    metadata_file,
    metadata_log,
    metadata_of,
    moved_metadata,
    name_of,
    parse_metadata,
    pointing,
    snapshots_of,
    statistics_of,
)
from calque.core.formats.manifests import (
    ListedFile,
    Record,
    RewrittenDeleteFile,
    files_in,
    manifests_in,
    moved_deletes,
    moved_list,
    moved_manifest,
    rewritten_as,
)
from calque.engine.files.copies import ContentLost
from calque.engine.files.stage import StagedFiles
from calque.engine.sides.sides import TargetSide
from calque.model.files import File
from calque.model.hive import Table, location_of
from calque.ports import CopyTask, Storage

LOG = logging.getLogger(__name__)
T = TypeVar("T")
AT_ONCE = 16
"""Small files that are read or written at the same time."""


def make_ready(
    side: TargetSide, source: Table, definition: Table, target_table: Table | None
) -> tuple[Table, StagedFiles]:
    """Copy the files that the Iceberg table `source` needs, and return `definition`, which is the image of `source` at
    the target, with its own metadata file, and the files that were added. `target_table` is what the target shows of
    the table. Raises `Refused` for metadata that calque does not know or that is too large, and `ContentLost` where
    files of the state are gone."""
    source_path = metadata_of(source)
    location = location_of(definition) or ""
    shown_path = shown_metadata(target_table, location)
    if shown_path is not None and target_table is not None and name_of(shown_path) == name_of(source_path):
        definition = pointing(definition, shown_path, (target_table.parameters or {}).get(PREVIOUS))
        return definition, StagedFiles(location, ())
    content = side.storage.read(source_path)
    if content is None:
        raise ContentLost(source_path, "the table's metadata file is not there any more")
    metadata = parse_metadata(source_path, content)
    paths = PathMapping.between(metadata["location"], location)
    target_path, previous = paths.at_target(source_path), (source.parameters or {}).get(PREVIOUS)
    target_previous = paths.at_target(previous) if previous else target_path
    target_files = side.storage.files([target_path, target_previous])
    placed = StagedFiles(location, ())
    if target_path not in target_files:
        placed = MetadataTransfer(side.storage, paths, metadata, source_path, known_at(side.storage, shown_path)).run(
            target_path
        )
    return pointing(
        definition, target_path, target_previous if previous and target_previous in target_files else None
    ), placed


def mend(side: TargetSide, source: Table, target_table: Table) -> StagedFiles | None:
    """Copy again the files that are missing at the target, or have another size than at the source, of the state that
    the target shows; None where this state is not the source's. A file of the right size counts as whole. Raises as
    `make_ready` does."""
    source_path, shown_path = metadata_of(source), (target_table.parameters or {}).get(METADATA, "")
    content = side.storage.read(source_path)
    if name_of(shown_path) != name_of(source_path) or content is None or is_displaced(target_table):
        return None
    metadata = parse_metadata(source_path, content)
    paths = PathMapping.between(metadata["location"], location_of(target_table) or "")
    shown_content = side.storage.read(shown_path)
    log = metadata_log(shown_path, parse_metadata(shown_path, shown_content)) if shown_content is not None else ()
    return MetadataTransfer(
        side.storage, paths, metadata, source_path, FilesAtTarget(log=frozenset(log)), mending=True
    ).run(shown_path)


def shown_metadata(target_table: Table | None, location: str) -> str | None:
    """Return the metadata file that the target shows of the table, if the table is to stay at `location`; else None."""
    if target_table is None or location_of(target_table) != location or is_displaced(target_table):
        return None
    return (target_table.parameters or {}).get(METADATA)


@dataclass(frozen=True, slots=True)
class FilesAtTarget:
    """The files that are at the target for sure: snapshots with all their files, by id (`snapshots`) and by manifest
    list (`lists`); manifests of the current snapshot with their lengths in bytes; metadata files (`log`)."""

    snapshots: frozenset[int] = frozenset()
    lists: frozenset[str] = frozenset()
    manifests: Mapping[str, int] = field(default_factory=dict)
    log: frozenset[str] = frozenset()


def known_at(storage: Storage, shown_path: str | None) -> FilesAtTarget:
    content = storage.read(shown_path) if shown_path is not None else None
    if shown_path is None or content is None:
        return FilesAtTarget()
    metadata = parse_metadata(shown_path, content)
    snapshots, current = snapshots_of(metadata), current_of(metadata)
    manifest_list = storage.read(current["manifest-list"]) if current is not None else None
    rows = manifests_in(shown_path, manifest_list) if manifest_list is not None else []
    return FilesAtTarget(
        frozenset(snapshot["snapshot-id"] for snapshot in snapshots),
        frozenset(snapshot["manifest-list"] for snapshot in snapshots),
        {row["manifest_path"]: row["manifest_length"] for row in rows},
        frozenset(metadata_log(shown_path, metadata)),
    )


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot whose manifest list is not at the target. `path` and `manifests` are paths at the source, `content` is
    that of the manifest list."""

    id: int
    path: str
    content: bytes
    manifests: tuple[str, ...]


@dataclass(slots=True)
class MetadataTransfer:
    """The transfer of one metadata file to the target. `missing_files` are files of the source that could not be
    copied, with the reason. With `mending`, files at the target that have another size than at the source are removed
    and copied again."""

    storage: Storage
    paths: PathMapping
    metadata: Json
    source_path: str
    known_files: FilesAtTarget
    mending: bool = False
    missing_files: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    """Lengths in bytes of manifests at the target, by their paths at the source."""
    added: list[File] = field(default_factory=list)

    def run(self, target_path: str) -> StagedFiles:
        """Copy everything that the metadata file needs, write that file to `target_path`, and return the files that
        were added. Raises as `make_ready` does."""
        known_ids, new = self.snapshots()
        manifests = self.manifests(new)
        self.copy(manifests)
        new = [snapshot for snapshot in new if self.is_whole(snapshot, manifests)]
        needed = dict.fromkeys(path for snapshot in new for path in snapshot.manifests if path in manifests)
        side_by_side(lambda path: self.write_manifest(path, manifests[path]), needed)
        for snapshot in new:
            manifest_list = moved_list(snapshot.path, snapshot.content, self.lengths, self.paths.at_target)
            self.write(self.paths.at_target(snapshot.path), manifest_list)
        statistics = {
            self.paths.at_target(path) for path, _ in statistics_of(self.metadata) if path not in self.missing_files
        }
        ids = {*known_ids, *(snapshot.id for snapshot in new)}
        target_metadata = moved_metadata(self.metadata, self.paths, ids, statistics, self.known_files.log)
        self.write(target_path, metadata_file(target_path, target_metadata))
        size = sum(file.size for file in self.added)
        return StagedFiles(self.paths.target, tuple(sorted(self.added)), len(self.added), size)

    # What there is

    def snapshots(self) -> tuple[list[int], list[NewSnapshot]]:
        """Return the ids of snapshots that the target has, and the snapshots that are to be copied; the current one is
        in one of the two. Raises `ContentLost` if the current snapshot's manifest list is gone; others that are gone
        are left out."""
        known_ids, new = [], []
        lists = {snapshot["snapshot-id"]: snapshot["manifest-list"] for snapshot in snapshots_of(self.metadata)}
        unknown = [path for path in lists.values() if self.paths.at_target(path) not in self.known_files.lists]
        contents = side_by_side(self.storage.read, unknown)
        for identity, path in lists.items():
            if path not in contents:
                known_ids.append(identity)
            elif (content := contents[path]) is None:
                self.leave_out(identity, path, "it is not there any more")
            else:
                rows = manifests_in(path, content)
                self.note_lengths(rows)
                new.append(NewSnapshot(identity, path, content, tuple(row["manifest_path"] for row in rows)))
        return known_ids, new

    def note_lengths(self, rows: Iterable[Record]) -> None:
        """Enter the lengths of those manifests in `rows` (of a manifest list) that the target has."""
        for row in rows:
            length = self.known_files.manifests.get(self.paths.at_target(row["manifest_path"]))
            if length is not None:
                self.lengths[row["manifest_path"]] = length

    def manifests(self, new: Sequence[NewSnapshot]) -> dict[str, list[ListedFile]]:
        """Return the files of each manifest that the target does not have, by the manifest's path at the source. A
        manifest that is gone is added to `missing_files`."""
        paths = dict.fromkeys(path for snapshot in new for path in snapshot.manifests if path not in self.lengths)
        files_by_path = side_by_side(self.manifest, paths)
        self.missing_files |= {
            path: "it is not there any more" for path, files in files_by_path.items() if files is None
        }
        return {path: files for path, files in files_by_path.items() if files is not None}

    def manifest(self, path: str) -> list[ListedFile] | None:
        content = self.storage.read(path)
        return None if content is None else files_in(path, content)

    def is_whole(self, snapshot: NewSnapshot, manifests: Mapping[str, Sequence[ListedFile]]) -> bool:
        """Tell whether all files of the snapshot are at the target by now, except for those that hold paths and are
        written later. One that is not whole is left out (`leave_out`)."""
        for path in snapshot.manifests:
            needed_paths = [path, *(file.path for file in manifests.get(path, ()))]
            if (missing := next((one for one in needed_paths if one in self.missing_files), None)) is not None:
                self.leave_out(snapshot.id, missing, self.missing_files[missing])
                return False
        return True

    def leave_out(self, snapshot: int, path: str, problem: str) -> None:
        """Log that a snapshot is not copied, which changes nothing that readers see of the current state. Raises
        `ContentLost` where `snapshot` is the current one."""
        if snapshot == self.metadata.get("current-snapshot-id"):
            raise ContentLost(path, problem)
        LOG.info("%s: snapshot %d is left out: %s: %s", self.source_path, snapshot, path, problem)

    # Files without paths in them

    def copy(self, manifests: Mapping[str, Sequence[ListedFile]]) -> None:
        """Copy the files that the target does not have and that hold no paths; enter those that can't be copied in
        `missing_files`."""
        files = dict.fromkeys(file for listed in manifests.values() for file in listed if self.is_news(file))
        paths = dict.fromkeys(
            [*(file.path for file in files if not file.rewritten), *(path for path, _ in statistics_of(self.metadata))]
        )
        target_files = self.storage.files([self.paths.at_target(path) for path in paths])
        source_files = self.storage.files([*paths, *(file.path for file in files if file.rewritten)])
        listed_paths = [file.path for file in files]
        self.missing_files |= {
            path: "it is not there any more" for path in [*listed_paths, *paths] if path not in source_files
        }
        if self.mending:
            pairs = [(target_files.get(self.paths.at_target(path)), source_files.get(path)) for path in paths]
            self.storage.remove(
                [target.path for target, source in pairs if target and source and not same_size(target, source)]
            )
        tasks = [
            CopyTask(path, target_path, source_files[path].size, source_files[path].modified_ns)
            for path in paths
            if path in source_files
            and not same_size(target_files.get(target_path := self.paths.at_target(path)), source_files[path])
        ]
        for result in self.storage.copy(tasks) if tasks else ():
            task = result.task
            if result.problem:
                self.missing_files[task.source] = result.problem
                continue
            self.add(File(task.target, task.size, task.modified_ns, result.checksum))

    def is_news(self, file: ListedFile) -> bool:
        """Tell whether the file may be missing at the target. A file that a snapshot added came to the target with
        that snapshot."""
        return file.added_by not in self.known_files.snapshots

    # Files with paths in them

    def write_manifest(self, path: str, files: Iterable[ListedFile]) -> None:
        target_path = self.paths.at_target(path)
        target_files = self.storage.files([target_path])
        if target_path in target_files:
            self.lengths[path] = target_files[target_path].size
            if not self.mending:
                return
        deletes = {file.path: self.write_deletes(file) for file in files if file.rewritten}
        if target_path in target_files:
            return
        content = moved_manifest(path, self.source(path), deletes, self.paths.at_target)
        self.lengths[path] = len(content)
        self.write(target_path, content)

    def write_deletes(self, file: ListedFile) -> RewrittenDeleteFile:
        target_path = self.paths.at_target(file.path)
        content = self.storage.read(target_path)
        if content is None:
            content = moved_deletes(file, self.source(file.path), self.paths.at_target)
            self.write(target_path, content)
        return rewritten_as(replace(file, path=target_path), content)

    def source(self, path: str) -> bytes:
        content = self.storage.read(path)
        if content is None:
            raise ContentLost(path, "it is not there any more")
        return content

    def write(self, target_path: str, content: bytes) -> None:
        """Write `content` to `target_path` unless a file is there: a file that readers may be reading is never
        replaced."""
        if self.storage.files([target_path]):
            return
        self.storage.write(target_path, content)
        self.add(File(target_path, len(content), 0))

    def add(self, file: File) -> None:
        self.added.append(replace(file, path=file.path.removeprefix(self.paths.target).lstrip("/")))


def side_by_side(work: Callable[[str], T], paths: Iterable[str]) -> dict[str, T]:
    """Call `work` for each of `paths` on several threads, and return the results by path."""
    distinct_paths = list(dict.fromkeys(paths))
    if len(distinct_paths) < 2:
        return {path: work(path) for path in distinct_paths}
    with ThreadPoolExecutor(min(AT_ONCE, len(distinct_paths)), thread_name_prefix="iceberg") as pool:
        return dict(zip(distinct_paths, pool.map(work, distinct_paths), strict=True))


def same_size(target_file: File | None, source_file: File) -> bool:
    """Tell whether `target_file` is the whole copy of `source_file`: a copy gets its name only when it is whole."""
    return target_file is not None and target_file.size == source_file.size
