"""Copy the files of a state to where no reader looks yet: data before metadata, always."""

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
    """A directory to make: its content at the source, and the natural path for it at the target (None: always a
    versioned one). `incarnation` is the table's, `object_incarnation` that of the table or partition that the directory
    is for, where it is another. With `grows` other files of the object may lie there; where it is `shown` readers look
    at the natural path."""

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
    """Which of the files are combined."""
    root: str = ""
    """Below which a versioned one lies; empty for the place where those of all tables do."""
    symlinks: bool = False
    """Whether the files are manifests, which name those with the rows."""

    @property
    def names_files(self) -> bool:
        return self.symlinks and self.listing.version is None and bool(self.listing.files)


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """A directory at the target with the state's files, not yet referenced; with a `combination` these are the source's
    that others stand for. What was copied and moved is counted at the source. `claim` is the number of the claim that
    it was made with, or taken up; empty where it was there before."""

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
    """Where a request's files come to lie, the number of the claim on it, and what lay there when it was chosen."""

    request: StageRequest
    location: str
    claim: str
    target_listing: Listing


def stage(side: TargetSide, requests: Sequence[StageRequest]) -> list[StagedFiles]:
    """Choose a directory for each and have its files there, all in one go. Raises `ContentLost`."""
    directories = choose(side, requests)
    try:
        return filled(side, directories)
    except BaseException:
        side.claims.free(directory.claim for directory in directories)
        raise


def filled(side: TargetSide, directories: Sequence[ChosenDirectory]) -> list[StagedFiles]:
    """The directories with their files. Raises `ContentLost`."""
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
    """Combined files that a death left where nobody looks: what they stand for is written last."""
    return [join(directory.location, path) for path in strange(directory.target_listing, directory.request.listing)]


def strange(target_listing: Listing, source_listing: Listing) -> list[str]:
    """Paths of combined files that are none of the source's."""
    source_paths = {file.path for file in source_listing.files}
    return [path for path in leftovers(target_listing) if path not in source_paths]


def combining(directory: ChosenDirectory) -> DirectoryToCombine | None:
    """None where files are copied as they are, also since some of them lie there already."""
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
    """Take a live Delta table on to a version of its log, in place and visible at once. None where it needs another
    directory. Raises `Refused`."""
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
    """For each the first of its candidates that it can claim: one that is free, or that a death or a failed attempt
    left without anybody having seen it, and into which nothing was copied but what it wants. A directory that was shown
    belongs to one incarnation for ever."""
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
        taken |= take_up(side, {at: request for at, request in wanted.items() if not listings[at].missing})
        for location, (claim, listing) in taken.items():
            chosen[first[location]] = ChosenDirectory(wanted[location], location, claim, listing or listings[location])
        attempt += 1
    return [directory for directory in chosen if directory is not None]


def may_lie(side: TargetSide, request: StageRequest, location: str) -> bool:
    """Whether the object may lie at the path as far as paths say."""
    return location != request.natural or not (is_given(side, request) and lies_in_another(side, location))


Taken = dict[str, tuple[str, Listing | None]]
"""By location the number of the claim on it, and what lies there where that was listed after the claim."""


def take_free(side: TargetSide, requests: Mapping[str, StageRequest]) -> Taken:
    """Claim directories that are not there; those that nobody else claimed in the same moment."""
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


def take_up(side: TargetSide, requests: Mapping[str, StageRequest]) -> Taken:
    """Go on in directories that are there, where that may be: nobody shows them, and no other object does."""
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
    """Whether nothing was copied into the directory but what the object wants."""
    if location == request.natural and strange(target_listing, request.listing):
        # No reader looks there: what a death left half-made may go.
        target_listing = without_strange(target_listing, request.listing)
        if NOTE in side.storage.children(location):
            return False
    if target_listing.files and names_files(target_listing) != request.names_files:
        return False
    return request.grows or fits(side, target_listing, request.listing)


def names_files(target_listing: Listing) -> bool:
    """Whether manifests that were followed lie there."""
    return target_listing.combination is not None and target_listing.combination.layout is None


def claim_for(side: TargetSide, request: StageRequest, location: str, epoch: int) -> Claim:
    return new_claim(side, location, request.at_target, request.partition, owner_of(request), epoch)


def owner_of(request: StageRequest) -> str:
    return request.object_incarnation or request.incarnation


def without_strange(target_listing: Listing, source_listing: Listing) -> Listing:
    strangers = {*strange(target_listing, source_listing)}
    return replace(target_listing, files=tuple(file for file in target_listing.files if file.path not in strangers))


def is_given(side: TargetSide, request: StageRequest) -> bool:
    """Whether the natural path is that of a table where the source has it."""
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
        )
    )
    version += f".0.{scan}" if scan else ""
    return version if attempt <= 1 else f"{version}.{attempt}"


def fits(side: TargetSide, target_listing: Listing, source_listing: Listing) -> bool:
    """Whether every data file that lies there is one of the wanted ones; of a Delta table, whether its log is the
    wanted one or was not begun."""
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
    """New files, copied to hidden names in a live directory; `renames` publish them in order."""

    renames: tuple[tuple[str, str], ...]
    placed: StagedFiles


def stage_append(side: TargetSide, target_listing: Listing, source_listing: Listing, event_id: EventId) -> Append:
    """Copy what `source_listing` (the source's) has beyond `target_listing` (the target's live directory). Raises
    `ContentLost`."""
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
