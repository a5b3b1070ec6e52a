"""Symlink tables at a target: copies of the files that their manifests name, manifests that name the copies, and the
comparison of both with the source.

At a target a directory of manifests counts as one of combined files (`core.small_files.combined_note`). Its note says
which of the source's manifests each manifest stands for, and is written last, when all files that they name are there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.formats.layout import join
from calque.core.formats.symlinks import TODO, Line, lines_of, moved, refused
from calque.core.small_files.combined_note import NOTE, combined_name, note_of
from calque.engine.files.copies import ContentLost, copied, copy_tasks
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused, Unavailable
from calque.model.bounds import MANIFESTS
from calque.model.files import Combination, CombinedFile, File, Listing, RowLayout
from calque.ports import CopyTask, Storage


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest: the file in its directory, the full path that its content is read from, and the files that it
    names."""

    file: File
    path: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class FollowedManifests:
    """The result of `follow` for one directory of manifests. `files` and `bytes` count what was really copied."""

    combination: Combination
    files: int
    bytes: int


def follow(side: TargetSide, listing: Listing, location: str) -> FollowedManifests:
    """Copy the files that the manifests of `listing` name, and write manifests that name the copies to the directory
    `location`, which has no readers yet. Raises `ContentLost`, and `Refused` for a manifest that can't be followed."""
    manifests = manifests_in(side.storage, listing)
    tasks = tasks_of(side.storage, manifests, location)
    try:
        results = copied(side, tasks)
    except ContentLost as lost:
        # A file that may not be read, as a link may lead anywhere, is so for good.
        require_each(manifests, {path for path, _, _ in lost.files}, lambda path: side.storage.tails([path], 1))
        raise
    names, written = {}, {}
    for number, manifest in enumerate(manifests, 1):
        name = names[manifest.file.path] = combined_name(listing.fingerprint(), number, RowLayout.TEXT)
        content = moved(manifest.lines, location)
        side.storage.write(join(location, name), content)
        written[name] = File(name, len(content), 0)
    found = {file.path: file for file in side.storage.list([location])[location].files}
    if found.keys() - written.keys():
        raise Unavailable(
            f"Other files lie at {location} than were made there", "Somebody else writes there", "It is tried again"
        )
    sources = tuple(sorted(replace(file, checksum=None) for file in listing.files))
    files = tuple(CombinedFile(found.get(name, written[name]), (path,)) for path, name in names.items())
    combination = Combination(None, sources, tuple(sorted(files, key=lambda each: each.file)))
    side.storage.write(join(location, NOTE), note_of(combination))
    moved_bytes = [result.bytes_moved for result in results.values()]
    return FollowedManifests(combination, sum(size > 0 for size in moved_bytes) + len(names), sum(moved_bytes))


def manifests_in(storage: Storage, listing: Listing) -> list[Manifest]:
    """Return the source's manifests with the content that they had when they were listed. Raises `ContentLost` for one
    that changed since or is gone, and `Refused` where their bytes are more than are read of one directory, where one
    lies in a directory below, or where a line names no file."""
    require_bound(listing)
    tasks = {task.target: task for task in copy_tasks(listing, ((file, file.path) for file in listing.files))}
    contents = {path: storage.read(task.source) for path, task in tasks.items()}
    found = storage.files([task.source for task in tasks.values()])
    manifests = []
    for file in sorted(listing.files):
        task, content = tasks[file.path], contents[file.path]
        now = found.get(task.source)
        if content is None or now is None or (now.size, now.modified_ns) != (file.size, task.expected_ns):
            raise ContentLost(task.source, "it is not as it was listed", file.size, task.expected_ns)
        manifests.append(Manifest(file, task.source, tuple(lines_of(join(listing.location, file.path), content))))
    return manifests


def require_bound(listing: Listing) -> None:
    """Raise `Refused` if the manifests have more bytes than are read of one directory, or one lies in a directory
    below."""
    size = 0
    for file in listing.files:
        size += file.size
        path = join(listing.location, file.path)
        if size > MANIFESTS:
            raise Refused(
                f"{path} is not read",
                f"It has {file.size} bytes, and {MANIFESTS} are read of the manifests of one directory at most",
                TODO,
            )
        if "/" in file.path:
            raise Refused(f"{path} is not read", "A symlink table's manifests lie in its directory itself", TODO)


def tasks_of(storage: Storage, manifests: Sequence[Manifest], location: str) -> list[CopyTask]:
    """Return a task for each file that the manifests name. Raises `Refused` for a line whose file does not exist or may
    not be read."""
    files = found_files(storage, manifests)
    tasks = {}
    for manifest in manifests:
        for line in manifest.lines:
            if (file := files.get(line.path)) is None:
                raise refused(manifest.path, line.number, f"{line.path} is not there, or is no file")
            tasks[line.copy] = CopyTask(
                line.path, join(location, line.copy), file.size, file.modified_ns, ours=True, lent=True
            )
    return list(tasks.values())


def found_files(storage: Storage, manifests: Sequence[Manifest]) -> Mapping[str, File]:
    """Return those of the files named by `manifests` that exist, by path. Raises `Refused`, with the manifest and the
    line, for a file that may not be read."""
    paths = dict.fromkeys(line.path for manifest in manifests for line in manifest.lines)
    try:
        return storage.files(list(paths))
    except Refused:
        require_each(manifests, paths, lambda path: storage.files([path]))
        raise


def require_each(manifests: Sequence[Manifest], paths: Collection[str], look: Callable[[str], object]) -> None:
    """Call `look` for each of `paths` that the manifests name. A `Refused` is raised again with the manifest and the
    line that names the path."""
    for manifest in manifests:
        for line in manifest.lines:
            if line.path not in paths:
                continue
            try:
                look(line.path)
            except Refused as error:
                raise refused(manifest.path, line.number, str(error)) from error


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that the source's manifests name: as they are there (`source`), and as they are at the target
    (`target`), both by their paths at the source. `copies` are the full paths of all copies, `manifests` the names at
    the target of the manifests that should name them."""

    source: Mapping[str, File]
    target: Mapping[str, File]
    copies: Mapping[str, str]
    manifests: Mapping[str, str]

    def listings(self) -> tuple[Listing, Listing]:
        """Return the files of the source and of the target as two listings that can be compared, both by the paths at
        the source."""
        first, second = (
            Listing("", tuple(File(path, file.size, 0) for path, file in sorted(files.items())))
            for files in (self.source, self.target)
        )
        return first, second

    def comparable(self) -> dict[str, str]:
        """Return the files that are at both sides with equal size, each with its copy's path: their content remains to
        be compared."""
        return {
            path: self.copies[path]
            for path, file in self.source.items()
            if path in self.target and self.target[path].size == file.size
        }


def named_files(source: Storage, target: Storage, source_listing: Listing, target_listing: Listing) -> NamedFiles:
    """Return the files that the manifests of `source_listing` name, with their copies where `follow` made
    `target_listing` of it. A manifest at the target that does not name the copies there counts as having none of them.
    Raises `ContentLost`, and `Refused` for manifests of the source that can't be followed."""
    combination, location = target_listing.combination, target_listing.location
    stored = {each.sources[0]: each.file.path for each in combination.files} if combination is not None else {}
    manifests = manifests_in(source, source_listing)
    source_files = found_files(source, manifests)
    copies: dict[str, str] = {}
    names: dict[str, str] = {}
    whole: set[str] = set()
    for manifest in manifests:
        name = stored.get(manifest.file.path, "")
        is_own = target.read(join(location, name)) == moved(manifest.lines, location)
        for line in manifest.lines:
            if line.path not in source_files:
                raise refused(manifest.path, line.number, f"{line.path} is not there, or is no file")
            copies[line.path], names[line.path] = join(location, line.copy), name
            if is_own:
                whole.add(line.path)
    found = target.files([copies[path] for path in sorted(whole)])
    target_files = {path: found[copies[path]] for path in sorted(whole) if copies[path] in found}
    return NamedFiles(source_files, target_files, copies, names)


def other_manifests(source: Storage, target: Storage, source_listing: Listing, target_listing: Listing) -> list[str]:
    """Return the names of those of the target's manifests for which a file that they should name does not exist, or has
    other content than at the source."""
    named = named_files(source, target, source_listing, target_listing)
    pairs = named.comparable()
    source_sums, target_sums = source.checksums(list(pairs)), target.checksums(list(pairs.values()))
    same = {path for path, copy in pairs.items() if source_sums.get(path, "") == target_sums.get(copy)}
    return sorted({named.manifests[path] for path in named.source if path not in same})


def lacks_named_files(storage: Storage, source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether a file that the target's manifests should name does not exist, or has another size than at the
    source. False for a directory that `follow` did not make, or made of other manifests than the source has. Raises
    `Refused` for manifests that can't be followed any more."""
    if not are_followed(source_listing, target_listing):
        return False
    named = named_files(storage, storage, source_listing, target_listing)
    return len(named.comparable()) < len(named.source)


def are_followed(source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether the source's manifests are those that were followed to the target's directory."""
    combination = target_listing.combination
    return (
        combination is not None
        and combination.layout is None
        and source_listing.fingerprint() == target_listing.fingerprint()
    )
