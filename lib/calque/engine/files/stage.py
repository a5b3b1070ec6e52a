"""Copy the files of a state to where no reader looks yet: data before metadata, always."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calque.core.layout import join, staged_name, versioned_location
from calque.engine.files import delta_versions
from calque.engine.files.path_ownership import OWNER, comes_from_source, contested, lies_in_another
from calque.engine.sides.sides import TargetSide
from calque.model.files import File, Listing
from calque.model.names import EventId, TableName
from calque.ports import CopiedFile, CopyTask

Lost = tuple[str, int, int]
"""A file that can't be had any more: its path at the source, its size and its time."""


class ContentLost(Exception):
    """Files of a state could not be copied as evidence lists them: the state is not visitable any more."""

    def __init__(self, location: str, problem: str, size: int = 0, modified_ns: int = 0) -> None:
        self.file = (location, size, modified_ns)
        super().__init__(f"{location}: {problem}")


@dataclass(frozen=True, slots=True)
class StageRequest:
    """A directory to make: its content at the source, and the natural path for it at the target (None: always a
    versioned one). `incarnation` is the table's; `claim` tells the object from every other that may want the path, but
    for one of the same second (`claim_of`). With `grows` other files of the object may lie there; where it is `shown`
    readers look at the natural path."""

    listing: Listing
    natural: str | None
    at_target: TableName
    partition: str
    incarnation: str
    event_id: EventId
    claim: str = ""
    grows: bool = False
    shown: bool = False


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """A directory at the target with the state's files, not yet referenced. Bytes moved is what was really copied."""

    location: str
    files: tuple[File, ...]
    files_copied: int = 0
    bytes_moved: int = 0


def stage(side: TargetSide, wanted: Sequence[StageRequest]) -> list[StagedFiles]:
    """Choose a directory for each and copy its files there, all in one go. Raises `ContentLost`."""
    if side.policy.data == "none":
        return [StagedFiles(item.listing.location, item.listing.files) for item in wanted]
    locations = choose(side, wanted)
    tasks = [
        CopyTask(origin(item.listing, file), join(location, file.path), file.size, file.modified_ns, ours=True)
        for item, location in zip(wanted, locations, strict=True)
        if item.listing.version is None
        for file in item.listing.files
    ]
    results = copied(side, tasks)
    side.storage.make_directories([at for item, at in zip(wanted, locations, strict=True) if not item.listing.files])
    return [
        placed(item.listing.files, location, results)
        if item.listing.version is None
        else placed_version(side, item.listing, location)
        for item, location in zip(wanted, locations, strict=True)
    ]


def placed_version(side: TargetSide, listing: Listing, location: str) -> StagedFiles:
    try:
        return brought(location, delta_versions.bring_whole(side.storage, listing, location))
    except delta_versions.VersionLost as lost:
        commit = listing.files[0]
        at = join(listing.location, commit.path)
        raise ContentLost(at, f"{lost.path} {lost.problem}", commit.size, commit.modified_ns) from lost


def brought(location: str, found: delta_versions.CopiedVersion) -> StagedFiles:
    return StagedFiles(location, (found.commit,), found.files, found.bytes)


def stage_version(side: TargetSide, there: Listing, listing: Listing, event_id: EventId) -> StagedFiles | None:
    """Take a live Delta table on to a version of its log, in place and visible at once. None where it needs another
    directory. Raises `Refused`."""
    if side.policy.data == "none":
        return None
    found = delta_versions.advance(side.storage, there, listing, event_id)
    return brought(there.location, found) if found is not None else None


def origin(listing: Listing, file: File) -> str:
    """Where the file is copied from."""
    return join(listing.pin or listing.location, file.path)


def placed(files: Iterable[File], location: str, results: Mapping[str, CopiedFile]) -> StagedFiles:
    done = [(file, results[join(location, file.path)]) for file in files]
    return StagedFiles(
        location,
        tuple(File(file.path, file.size, file.modified_ns, result.checksum or None) for file, result in done),
        sum(result.bytes_moved > 0 or file.size == 0 for file, result in done),
        sum(result.bytes_moved for _, result in done),
    )


def choose(side: TargetSide, wanted: Sequence[StageRequest]) -> list[str]:
    """For each the first of its candidates that is free, or that the same object claimed before a crash and into which
    nothing was copied but what it wants: a directory belongs to one incarnation for ever."""
    chosen: list[str | None] = [None] * len(wanted)
    attempt = 0
    while None in chosen:
        candidates = {i: candidate(side, wanted[i], attempt) for i, done in enumerate(chosen) if done is None}
        listings = side.storage.list(sorted(set(candidates.values())))
        free = {i for i, location in candidates.items() if may_take(side, wanted[i], location, listings[location])}
        claimed = [i for i in sorted(free) if candidates[i] == wanted[i].natural]
        side.storage.make_directories([join(candidates[i], mark_of(wanted[i])) for i in claimed])
        for i in free - {i for i in claimed if lost(side, wanted[i], listings[candidates[i]])}:
            chosen[i] = candidates[i]
        attempt += 1
    return [location for location in chosen if location is not None]


def may_take(side: TargetSide, item: StageRequest, location: str, there: Listing) -> bool:
    if location != item.natural:
        return there.missing or item.grows or fits(side, there, item.listing)
    if is_given(side, item) and lies_in_another(side, location):
        return False
    if item.shown and not is_whole(there, item.listing):
        return False
    return there.missing or (
        (item.grows or fits(side, there, item.listing)) and mark_of(item) in side.storage.children(location)
    )


def lost(side: TargetSide, item: StageRequest, there: Listing) -> bool:
    """Whether another object claimed the natural path as well, in the same moment."""
    return is_given(side, item) and contested(side, item.natural or "", mark_of(item), fresh=there.missing)


def is_given(side: TargetSide, item: StageRequest) -> bool:
    """Whether the natural path is that of a table where the source has it."""
    return not item.partition and item.natural is not None and comes_from_source(side, item.natural, item.at_target)


def mark_of(item: StageRequest) -> str:
    """The hidden directory that says whose a natural path is."""
    return f"{OWNER}{item.claim}"


def candidate(side: TargetSide, item: StageRequest, attempt: int) -> str:
    if attempt == 0 and item.natural is not None:
        return item.natural
    scan = item.listing.scan
    version = versioned_location(
        side.policy.warehouse,
        item.at_target.database,
        item.at_target.table,
        item.incarnation,
        item.event_id,
        item.partition or None,
    )
    version += f".0.{scan}" if scan else ""
    return version if attempt <= 1 else f"{version}.{attempt}"


def fits(side: TargetSide, there: Listing, wanted: Listing) -> bool:
    """Whether every data file that lies there is one of the wanted ones; of a Delta table, whether its log is the
    wanted one or was not begun."""
    if wanted.version is not None:
        if there.version is None:
            return True
        return there.version <= wanted.version and delta_versions.same_log(side.storage, there, wanted.location)
    return {identity(file) for file in there.files} <= {identity(file) for file in wanted.files}


def is_whole(there: Listing, wanted: Listing) -> bool:
    """Whether nothing needs to be copied."""
    return there.version == wanted.version and {*map(identity, wanted.files)} <= {*map(identity, there.files)}


def identity(file: File) -> tuple[str, int, int]:
    return (file.path, file.size, file.modified_ns)


@dataclass(frozen=True, slots=True)
class Append:
    """New files, copied to hidden names in a live directory; `renames` publish them in order."""

    renames: tuple[tuple[str, str], ...]
    placed: StagedFiles


def stage_append(side: TargetSide, there: Listing, listing: Listing, event_id: EventId) -> Append:
    """Copy what `listing` (the source's) has beyond `there` (the target's live directory). Raises `ContentLost`."""
    present = {file.path for file in there.files}
    new = sorted(
        (file for file in listing.files if file.path not in present), key=lambda file: (file.modified_ns, file.path)
    )
    hidden = {file.path: staged_name(there.location, file.path, event_id, listing.scan) for file in new}
    results = copied(
        side,
        [CopyTask(origin(listing, file), hidden[file.path], file.size, file.modified_ns, ours=True) for file in new],
    )
    done = tuple(
        File(file.path, file.size, file.modified_ns, results[hidden[file.path]].checksum or None) for file in new
    )
    renames = tuple((hidden[file.path], join(there.location, file.path)) for file in new)
    moved = sum(results[hidden[file.path]].bytes_moved for file in new)
    return Append(renames, StagedFiles(there.location, done, len(new), moved))


def copied(side: TargetSide, tasks: Sequence[CopyTask]) -> dict[str, CopiedFile]:
    """Results by target path."""
    results = {result.task.target: result for result in side.storage.copy(tasks)} if tasks else {}
    for result in results.values():
        if result.problem:
            raise ContentLost(result.task.source, result.problem, result.task.size, result.task.modified_ns)
    return results
