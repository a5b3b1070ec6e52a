"""Copies of the files of a state, in directories where no reader looks yet: data before metadata, always."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.formats.layout import join, staged_name, versioned_location
from calque.core.images.table_layout import content_location
from calque.core.records.claims import claim_file, generations
from calque.core.small_files.combined_note import NOTE, leftovers
from calque.core.small_files.grouping import GroupedFiles
from calque.engine.files import delta_versions
from calque.engine.files.claims import make, may_take_up, new_claim, standing
from calque.engine.files.combine_files import DirectoryToCombine, combine
from calque.engine.files.copies import ContentLost, copied, copy_tasks
from calque.engine.files.path_ownership import comes_from_source, contested, lies_in_another
from calque.engine.files.symlink_manifests import FollowedManifests, follow
from calque.engine.sides.sides import TargetSide
from calque.model.claims import Claim
from calque.model.files import Combination, File, Listing
from calque.model.names import EventId, TableName
from calque.ports import CopiedFile, CopyTask


@dataclass(frozen=True, slots=True)
class StageRequest:
    """A request for a directory: its content at the source, and the natural path for it at the target (None: always a
    versioned path). `incarnation` is the table's; `object_incarnation` is that of the table or partition that the
    directory is for, if it differs. With `grows`, other files of the object may lie in the directory too. `shown`:
    readers look at the natural path."""

    listing: Listing
    natural: str | None
    at_target: TableName
    partition: str
    incarnation: str
    event_id: EventId
    object_incarnation: str = ""
    grows: bool = False
    shown: bool = False
    grouped: GroupedFiles | None = None
    """The groups of files that are to be combined; None: all are copied as they are."""
    root: str = ""
    """The directory that a versioned one is to lie below; empty for the place where the versioned directories of all
    tables lie."""
    symlinks: bool = False
    """True for manifests of a symlink table, which name the files with the rows."""
    is_acid: bool = False
    """True for a table that is an ACID table at the target, or a partition of one."""

    @property
    def names_files(self) -> bool:
        return self.symlinks and self.listing.version is None and bool(self.listing.files)


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """A directory at the target with the state's files, which nothing at the target refers to yet. With a
    `combination`, `files` are the source's files that combined ones stand for. `files_copied` and `bytes_moved` count
    files of the source. `claim` is the number of the claim that the directory was made with or taken up by; empty where
    it was there before."""

    location: str
    files: tuple[File, ...]
    files_copied: int = 0
    bytes_moved: int = 0
    combination: Combination | None = None
    claim: str = ""

    def listing(self) -> Listing:
        return Listing(self.location, tuple(sorted(self.files)), combination=self.combination, claim=self.claim)


@dataclass(frozen=True, slots=True)
class ChosenDirectory:
    """The directory into which the files of `request` are copied, the number of the claim on it, and its listing when
    it was chosen."""

    request: StageRequest
    location: str
    claim: str
    target_listing: Listing


def stage(side: TargetSide, requests: Sequence[StageRequest]) -> list[StagedFiles]:
    """Choose a directory for each request and copy its files there, in calls that all requests share. Raises
    `ContentLost`. After an exception the directories' claims are free for other attempts."""
    directories = choose(side, requests)
    try:
        return filled(side, directories)
    except BaseException:
        side.claims.free(directory.claim for directory in directories)
        raise


def filled(side: TargetSide, directories: Sequence[ChosenDirectory]) -> list[StagedFiles]:
    """Copy, combine or follow the files of each directory, and return the directories with their files. Raises
    `ContentLost`."""
    if litter := [path for directory in directories for path in half_made(directory)]:
        side.storage.remove(litter)
    made = combine(side, [to_combine for directory in directories if (to_combine := combining(directory)) is not None])
    made |= {
        directory.location: directory.target_listing.combination
        for directory in directories
        if directory.target_listing.combination is not None
    }
    followed = {
        directory.location: follow(side, directory.request.listing, directory.location)
        for directory in directories
        if directory.request.names_files and directory.location not in made
    }
    tasks = [
        task
        for directory in directories
        if directory.request.listing.version is None and directory.location not in {**made, **followed}
        for task in copies_of(directory)
    ]
    results = copied(side, tasks)
    return [
        replace(
            of_manifests(directory, followed[directory.location])
            if directory.location in followed
            else staged(side, directory, made.get(directory.location), results),
            claim=directory.claim,
        )
        for directory in directories
    ]


def of_manifests(directory: ChosenDirectory, followed: FollowedManifests) -> StagedFiles:
    files = directory.request.listing.files
    return StagedFiles(directory.location, files, followed.files, followed.bytes, followed.combination)


def copies_of(directory: ChosenDirectory) -> list[CopyTask]:
    listing = directory.request.listing
    return copy_tasks(listing, ((file, join(directory.location, file.path)) for file in listing.files))


def staged(
    side: TargetSide, directory: ChosenDirectory, combination: Combination | None, results: Mapping[str, CopiedFile]
) -> StagedFiles:
    listing = directory.request.listing
    if combination is not None:
        was_there = directory.target_listing.combination is not None
        files, size = (0, 0) if was_there else (len(listing.files), listing.size)
        return StagedFiles(directory.location, listing.files, files, size, combination)
    if listing.version is not None:
        return placed_version(side, listing, directory.location)
    return placed(listing.files, directory.location, results)


def half_made(directory: ChosenDirectory) -> list[str]:
    """Return the full paths of combined files that a dead process left in the directory without the note that makes
    them count."""
    return [join(directory.location, path) for path in strange(directory.target_listing, directory.request.listing)]


def strange(target_listing: Listing, source_listing: Listing) -> list[str]:
    """Return the paths of combined files at the target that are no files of the source."""
    source_paths = {file.path for file in source_listing.files}
    return [path for path in leftovers(target_listing) if path not in source_paths]


def combining(directory: ChosenDirectory) -> DirectoryToCombine | None:
    """Return how the files of the directory are combined; None where they are copied as they are, also because some of
    them were copied there already."""
    request, target_listing = directory.request, directory.target_listing
    if request.grouped is None or request.listing.version is not None:
        return None
    copied_files = {file.path for group in request.grouped.groups if len(group) == 1 for file in group}
    present = {file.path for file in target_listing.files} - {*strange(target_listing, request.listing)}
    if target_listing.combination is not None or not present <= copied_files:
        return None
    return DirectoryToCombine(request.listing, directory.location, request.grouped)


def placed_version(side: TargetSide, listing: Listing, location: str) -> StagedFiles:
    try:
        return brought(location, delta_versions.bring_whole(side.storage, listing, location))
    except delta_versions.VersionLost as lost:
        commit = listing.files[0]
        commit_path = join(listing.location, commit.path)
        raise ContentLost(commit_path, f"{lost.path} {lost.problem}", commit.size, commit.modified_ns) from lost


def brought(location: str, version: delta_versions.CopiedVersion) -> StagedFiles:
    return StagedFiles(location, (version.commit,), version.files, version.bytes)


def stage_version(side: TargetSide, target_listing: Listing, listing: Listing, event_id: EventId) -> StagedFiles | None:
    """Bring a live Delta table to a later version of its log, in place and visible at once. Return None where the
    version needs another directory. Raises `Refused` for a table that can't be copied."""
    version = delta_versions.advance(side.storage, target_listing, listing, event_id)
    return brought(target_listing.location, version) if version is not None else None


def placed(files: Iterable[File], location: str, results: Mapping[str, CopiedFile]) -> StagedFiles:
    done = [(file, results[join(location, file.path)]) for file in files]
    return StagedFiles(
        location,
        tuple(File(file.path, file.size, file.modified_ns, result.checksum or None) for file, result in done),
        sum(result.bytes_moved > 0 or file.size == 0 for file, result in done),
        sum(result.bytes_moved for _, result in done),
    )


def choose(side: TargetSide, requests: Sequence[StageRequest]) -> list[ChosenDirectory]:
    """Return for each request the first of its candidate directories that it can claim. A candidate can be claimed if
    it is free, or if a dead process or a failed attempt left it before a reader saw it, and only files that the request
    wants were copied into it. A directory that was shown belongs to one incarnation for ever."""
    chosen: list[ChosenDirectory | None] = [None] * len(requests)
    attempt = 0
    while None in chosen:
        candidates = {
            index: candidate(side, requests[index], attempt) for index, done in enumerate(chosen) if done is None
        }
        listings = side.storage.list(sorted(set(candidates.values())))
        # Of several that want one path the first may have it.
        first = {location: index for index, location in reversed(candidates.items())}
        wanted = {
            location: requests[index] for location, index in first.items() if may_lie(side, requests[index], location)
        }
        taken = take_free(side, {at: request for at, request in wanted.items() if listings[at].missing})
        taken |= claim_existing(side, {at: request for at, request in wanted.items() if not listings[at].missing})
        for location, (claim, listing) in taken.items():
            chosen[first[location]] = ChosenDirectory(wanted[location], location, claim, listing or listings[location])
        attempt += 1
    return [directory for directory in chosen if directory is not None]


def may_lie(side: TargetSide, request: StageRequest, location: str) -> bool:
    """Tell whether the object of `request` may lie at `location`, as far as paths say: a natural path that comes from
    the source may not lie in another object's directory."""
    return location != request.natural or not (is_given(side, request) and lies_in_another(side, location))


Taken = dict[str, tuple[str, Listing | None]]
"""The number of the claim on each directory, by location, and its listing where it was listed after the claim."""


def take_free(side: TargetSide, requests: Mapping[str, StageRequest]) -> Taken:
    """Claim directories that do not exist yet, and return those that no other process or object claimed in the same
    moment."""
    if not requests:
        return {}
    epoch = side.claims.next_epoch()
    made = make(side, {at: (1, claim_for(side, request, at, epoch)) for at, request in requests.items()})
    return {
        location: (claim.number, None)
        for location, claim in made.items()
        if not (
            location == requests[location].natural and is_given(side, requests[location]) and contested(side, location)
        )
    }


def claim_existing(side: TargetSide, requests: Mapping[str, StageRequest]) -> Taken:
    """Claim directories that exist, and return those in which the request may go on: no reader sees them, and no other
    object uses them."""
    taken: Taken = {}
    for location, request in requests.items():
        now = standing(side.storage, location)
        if now is None or not may_go_on(side, request, location, now.claim):
            continue
        assert now.claim is not None
        number = now.claim.number
        if side.claims.find(number) is None:
            successor = claim_for(side, request, location, side.claims.next_epoch())
            if not make(side, {location: (now.generation + 1, successor)}):
                continue
            number = successor.number
            if now.generation not in generations(side.storage.children(location)):
                # Whoever removes it was faster: this is another directory, with nothing in it.
                side.storage.remove([claim_file(location, now.generation + 1)])
                continue
        else:
            side.claims.hold_again(number, request.at_target, request.partition, owner_of(request))
        listing = side.storage.list([location])[location]
        if has_only_wanted(side, request, location, listing):
            taken[location] = number, listing
        else:
            side.claims.free([number])
    return taken


def may_go_on(side: TargetSide, request: StageRequest, location: str, claim: Claim | None) -> bool:
    is_natural = location == request.natural
    if is_natural and request.shown:
        return False
    owner = owner_of(request)
    return may_take_up(side, location, claim, request.at_target, request.partition, owner, is_natural=is_natural)


def has_only_wanted(side: TargetSide, request: StageRequest, location: str, target_listing: Listing) -> bool:
    """Tell whether all that was copied into the directory is what the request wants."""
    if location == request.natural and strange(target_listing, request.listing):
        # No reader looks there: what a death left half-made may go.
        target_listing = without_strange(target_listing, request.listing)
        if NOTE in side.storage.children(location):
            return False
    if target_listing.files and names_files(target_listing) != request.names_files:
        return False
    return request.grows or fits(side, target_listing, request.listing)


def names_files(target_listing: Listing) -> bool:
    """Tell whether followed manifests of a symlink table lie in the directory."""
    return target_listing.combination is not None and target_listing.combination.layout is None


def claim_for(side: TargetSide, request: StageRequest, location: str, epoch: int) -> Claim:
    return new_claim(side, location, request.at_target, request.partition, owner_of(request), epoch)


def owner_of(request: StageRequest) -> str:
    return request.object_incarnation or request.incarnation


def without_strange(target_listing: Listing, source_listing: Listing) -> Listing:
    strangers = {*strange(target_listing, source_listing)}
    return replace(target_listing, files=tuple(file for file in target_listing.files if file.path not in strangers))


def is_given(side: TargetSide, request: StageRequest) -> bool:
    """Tell whether the request is for a table whose natural path is made of the table's location at the source."""
    return (
        not request.partition
        and request.natural is not None
        and comes_from_source(side, request.natural, request.at_target)
    )


def candidate(side: TargetSide, request: StageRequest, attempt: int) -> str:
    if attempt == 0 and request.natural is not None:
        return request.natural
    scan = request.listing.scan
    version = (
        content_location(request.root, request.partition, request.event_id)
        if request.root
        else versioned_location(
            side.policy.warehouse,
            request.at_target.database,
            request.at_target.table,
            request.incarnation,
            request.event_id,
            request.partition or None,
            is_acid=request.is_acid,
        )
    )
    version += f".0.{scan}" if scan else ""
    return version if attempt <= 1 else f"{version}.{attempt}"


def fits(side: TargetSide, target_listing: Listing, source_listing: Listing) -> bool:
    """Tell whether every data file of `target_listing` is one of the source's; for combined files, whether they stand
    for exactly the source's; for a Delta table, whether its log is the source's or was not begun."""
    if source_listing.version is not None:
        if target_listing.version is None:
            return True
        return target_listing.version <= source_listing.version and delta_versions.same_log(
            side.storage, target_listing, source_listing.location
        )
    target_files, source_files = (
        {identity(file) for file in listing.files} for listing in (target_listing, source_listing)
    )
    return target_files == source_files if target_listing.combination is not None else target_files <= source_files


def identity(file: File) -> tuple[str, int, int]:
    return (file.path, file.size, file.modified_ns)


@dataclass(frozen=True, slots=True)
class Append:
    """New files, copied to hidden names in a live directory. `renames` publish them, in this order."""

    renames: tuple[tuple[str, str], ...]
    placed: StagedFiles


def stage_append(side: TargetSide, target_listing: Listing, source_listing: Listing, event_id: EventId) -> Append:
    """Copy the files that `source_listing` (the source's) has and `target_listing` (the target's live directory) does
    not have to hidden names in that directory. Raises `ContentLost`."""
    present = {file.path for file in target_listing.files}
    new_files = sorted(
        (file for file in source_listing.files if file.path not in present),
        key=lambda file: (file.modified_ns, file.path),
    )
    hidden = {
        file.path: staged_name(target_listing.location, file.path, event_id, source_listing.scan) for file in new_files
    }
    results = copied(side, copy_tasks(source_listing, ((file, hidden[file.path]) for file in new_files)))
    files = tuple(
        File(file.path, file.size, file.modified_ns, results[hidden[file.path]].checksum or None) for file in new_files
    )
    renames = tuple((hidden[file.path], join(target_listing.location, file.path)) for file in new_files)
    bytes_moved = sum(results[hidden[file.path]].bytes_moved for file in new_files)
    return Append(renames, StagedFiles(target_listing.location, files, len(new_files), bytes_moved))
