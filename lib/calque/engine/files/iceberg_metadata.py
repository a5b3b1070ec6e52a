"""Make ready at a target what an Iceberg table's definition points to: data first, then what names them, upwards.

Every file has the name at the target that `core.iceberg.PathMapping` gives it, whatever was copied before, and none is
ever written again: a crash goes on where it was. The metadata file comes last; where it is there, all that it needs is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from calque.core.iceberg import (
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
from calque.core.manifests import (
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
from calque.engine.files.stage import ContentLost, StagedFiles
from calque.engine.sides.sides import TargetSide
from calque.model.files import File
from calque.model.hive import Table, location_of
from calque.ports import CopyTask, Storage

LOG = logging.getLogger(__name__)
T = TypeVar("T")
AT_ONCE = 16
"""Small files that are read or written side by side."""


def make_ready(side: TargetSide, source: Table, definition: Table, there: Table | None) -> tuple[Table, StagedFiles]:
    """`definition`, the image of `source`, with its own metadata file; and the files that were added for it. `there` is
    what the target shows of the table. Raises `Refused`, and `ContentLost` where files of the state are gone."""
    wanted = metadata_of(source)
    location = location_of(definition) or ""
    shown = shown_metadata(there, location)
    if shown is not None and there is not None and name_of(shown) == name_of(wanted):
        return pointing(definition, shown, (there.parameters or {}).get(PREVIOUS)), StagedFiles(location, ())
    content = side.storage.read(wanted)
    if content is None:
        raise ContentLost(wanted, "the table's metadata file is not there any more")
    metadata = parse_metadata(wanted, content)
    paths = PathMapping.between(metadata["location"], location)
    at, before = paths.at_target(wanted), (source.parameters or {}).get(PREVIOUS)
    older = paths.at_target(before) if before else at
    present = side.storage.files([at, older])
    placed = StagedFiles(location, ())
    if at not in present:
        placed = MetadataTransfer(side.storage, paths, metadata, wanted, known_at(side.storage, shown)).run(at)
    return pointing(definition, at, older if before and older in present else None), placed


def mend(side: TargetSide, source: Table, there: Table) -> StagedFiles | None:
    """Make again what is missing at the target of the state that it shows; None where it shows another one than the
    source has. What has the right size is taken for whole. Raises as `make_ready` does."""
    wanted, shown = metadata_of(source), (there.parameters or {}).get(METADATA, "")
    content = side.storage.read(wanted)
    if name_of(shown) != name_of(wanted) or content is None or is_displaced(there):
        return None
    metadata = parse_metadata(wanted, content)
    paths = PathMapping.between(metadata["location"], location_of(there) or "")
    kept = side.storage.read(shown)
    log = metadata_log(shown, parse_metadata(shown, kept)) if kept is not None else ()
    return MetadataTransfer(side.storage, paths, metadata, wanted, FilesAtTarget(log=frozenset(log)), mending=True).run(
        shown
    )


def shown_metadata(there: Table | None, location: str) -> str | None:
    """The metadata file that the target shows of the table, where that is to stay at its location."""
    if there is None or location_of(there) != location or is_displaced(there):
        return None
    return (there.parameters or {}).get(METADATA)


@dataclass(frozen=True, slots=True)
class FilesAtTarget:
    """What is at the target for sure: snapshots with all their files, by id and by manifest list; manifests of the
    current one with their lengths; metadata files."""

    snapshots: frozenset[int] = frozenset()
    lists: frozenset[str] = frozenset()
    manifests: Mapping[str, int] = field(default_factory=dict)
    log: frozenset[str] = frozenset()


def known_at(storage: Storage, shown: str | None) -> FilesAtTarget:
    content = storage.read(shown) if shown is not None else None
    if shown is None or content is None:
        return FilesAtTarget()
    metadata = parse_metadata(shown, content)
    snapshots, current = snapshots_of(metadata), current_of(metadata)
    listed = storage.read(current["manifest-list"]) if current is not None else None
    rows = manifests_in(shown, listed) if listed is not None else []
    return FilesAtTarget(
        frozenset(snapshot["snapshot-id"] for snapshot in snapshots),
        frozenset(snapshot["manifest-list"] for snapshot in snapshots),
        {row["manifest_path"]: row["manifest_length"] for row in rows},
        frozenset(metadata_log(shown, metadata)),
    )


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot whose manifest list is not at the target; `manifests` are paths at the source."""

    id: int
    path: str
    content: bytes
    manifests: tuple[str, ...]


@dataclass(slots=True)
class MetadataTransfer:
    """One metadata file on its way. `gone` are files of the source that could not be had, with the reason. With
    `mending` files at the target that have another size than at the source are taken away, and made again."""

    storage: Storage
    paths: PathMapping
    metadata: Json
    wanted: str
    known: FilesAtTarget
    mending: bool = False
    gone: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    """Of manifests at the target, by their paths at the source."""
    added: list[File] = field(default_factory=list)

    def run(self, at: str) -> StagedFiles:
        """Everything up to the metadata file, which is to lie `at` the target."""
        kept, new = self.snapshots()
        manifests = self.manifests(new)
        self.copy(manifests)
        new = [snapshot for snapshot in new if self.is_whole(snapshot, manifests)]
        needed = dict.fromkeys(path for snapshot in new for path in snapshot.manifests if path in manifests)
        side_by_side(lambda path: self.write_manifest(path, manifests[path]), needed)
        for snapshot in new:
            moved = moved_list(snapshot.path, snapshot.content, self.lengths, self.paths.at_target)
            self.write(self.paths.at_target(snapshot.path), moved)
        statistics = {self.paths.at_target(path) for path, _ in statistics_of(self.metadata) if path not in self.gone}
        ids = {*kept, *(snapshot.id for snapshot in new)}
        moved_to = moved_metadata(self.metadata, self.paths, ids, statistics, self.known.log)
        self.write(at, metadata_file(at, moved_to))
        size = sum(file.size for file in self.added)
        return StagedFiles(self.paths.target, tuple(sorted(self.added)), len(self.added), size)

    # What there is

    def snapshots(self) -> tuple[list[int], list[NewSnapshot]]:
        """Those that are at the target, and those that are to be made; the current one is among them."""
        kept, new = [], []
        lists = {snapshot["snapshot-id"]: snapshot["manifest-list"] for snapshot in snapshots_of(self.metadata)}
        unknown = [path for path in lists.values() if self.paths.at_target(path) not in self.known.lists]
        contents = side_by_side(self.storage.read, unknown)
        for identity, path in lists.items():
            if path not in contents:
                kept.append(identity)
            elif (content := contents[path]) is None:
                self.leave_out(identity, path, "it is not there any more")
            else:
                rows = manifests_in(path, content)
                self.note_lengths(rows)
                new.append(NewSnapshot(identity, path, content, tuple(row["manifest_path"] for row in rows)))
        return kept, new

    def note_lengths(self, rows: Iterable[Record]) -> None:
        """Of manifests that the target has."""
        for row in rows:
            length = self.known.manifests.get(self.paths.at_target(row["manifest_path"]))
            if length is not None:
                self.lengths[row["manifest_path"]] = length

    def manifests(self, new: Sequence[NewSnapshot]) -> dict[str, list[ListedFile]]:
        """The files of each manifest that the target does not have, by its path at the source."""
        wanted = dict.fromkeys(path for snapshot in new for path in snapshot.manifests if path not in self.lengths)
        found = side_by_side(self.manifest, wanted)
        self.gone |= {path: "it is not there any more" for path, files in found.items() if files is None}
        return {path: files for path, files in found.items() if files is not None}

    def manifest(self, path: str) -> list[ListedFile] | None:
        content = self.storage.read(path)
        return None if content is None else files_in(path, content)

    def is_whole(self, snapshot: NewSnapshot, manifests: Mapping[str, Sequence[ListedFile]]) -> bool:
        """Whether all files of the snapshot are at the target by now, those that hold paths aside."""
        for path in snapshot.manifests:
            lost = [path, *(file.path for file in manifests.get(path, ()))]
            if (missing := next((one for one in lost if one in self.gone), None)) is not None:
                self.leave_out(snapshot.id, missing, self.gone[missing])
                return False
        return True

    def leave_out(self, snapshot: int, path: str, problem: str) -> None:
        """Without a snapshot that is not current the state is still what readers see."""
        if snapshot == self.metadata.get("current-snapshot-id"):
            raise ContentLost(path, problem)
        LOG.info("%s: snapshot %d is left out: %s: %s", self.wanted, snapshot, path, problem)

    # Files without paths in them

    def copy(self, manifests: Mapping[str, Sequence[ListedFile]]) -> None:
        """Copy what the target does not have; what can't be copied is `gone`."""
        files = dict.fromkeys(file for listed in manifests.values() for file in listed if self.is_news(file))
        paths = dict.fromkeys(
            [*(file.path for file in files if not file.rewritten), *(path for path, _ in statistics_of(self.metadata))]
        )
        there = self.storage.files([self.paths.at_target(path) for path in paths])
        facts = self.storage.files([*paths, *(file.path for file in files if file.rewritten)])
        wanted = [file.path for file in files]
        self.gone |= {path: "it is not there any more" for path in [*wanted, *paths] if path not in facts}
        if self.mending:
            pairs = [(there.get(self.paths.at_target(path)), facts.get(path)) for path in paths]
            self.storage.remove([at.path for at, file in pairs if at and file and not same_size(at, file)])
        tasks = [
            CopyTask(path, at, facts[path].size, facts[path].modified_ns)
            for path in paths
            if path in facts and not same_size(there.get(at := self.paths.at_target(path)), facts[path])
        ]
        for result in self.storage.copy(tasks) if tasks else ():
            task = result.task
            if result.problem:
                self.gone[task.source] = result.problem
                continue
            self.add(File(task.target, task.size, task.modified_ns, result.checksum))

    def is_news(self, file: ListedFile) -> bool:
        """Whether the file may be missing at the target. What a snapshot added came with it."""
        return file.added_by not in self.known.snapshots

    # Files with paths in them

    def write_manifest(self, path: str, files: Iterable[ListedFile]) -> None:
        at = self.paths.at_target(path)
        there = self.storage.files([at])
        if at in there:
            self.lengths[path] = there[at].size
            if not self.mending:
                return
        deletes = {file.path: self.write_deletes(file) for file in files if file.rewritten}
        if at in there:
            return
        content = moved_manifest(path, self.source(path), deletes, self.paths.at_target)
        self.lengths[path] = len(content)
        self.write(at, content)

    def write_deletes(self, file: ListedFile) -> RewrittenDeleteFile:
        at = self.paths.at_target(file.path)
        content = self.storage.read(at)
        if content is None:
            content = moved_deletes(file, self.source(file.path), self.paths.at_target)
            self.write(at, content)
        return rewritten_as(replace(file, path=at), content)

    def source(self, path: str) -> bytes:
        content = self.storage.read(path)
        if content is None:
            raise ContentLost(path, "it is not there any more")
        return content

    def write(self, at: str, content: bytes) -> None:
        """Unless it is there: what readers may be reading is never replaced."""
        if self.storage.files([at]):
            return
        self.storage.write(at, content)
        self.add(File(at, len(content), 0))

    def add(self, file: File) -> None:
        self.added.append(replace(file, path=file.path.removeprefix(self.paths.target).lstrip("/")))


def side_by_side(work: Callable[[str], T], paths: Iterable[str]) -> dict[str, T]:
    """The results by path."""
    wanted = list(dict.fromkeys(paths))
    if len(wanted) < 2:
        return {path: work(path) for path in wanted}
    with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), thread_name_prefix="iceberg") as pool:
        return dict(zip(wanted, pool.map(work, wanted), strict=True))


def same_size(there: File | None, file: File) -> bool:
    """Whether the file was copied: it has its name only when it is whole."""
    return there is not None and there.size == file.size
