"""The proof, by checksums, that files at a target are copies of the source's files, where sizes and times do not
suffice. A file that is proven equal gets its source's time, and counts as a copy from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calque.core.formats.layout import full_paths, join, place
from calque.core.plan.limits import batches
from calque.engine.files.symlink_manifests import other_manifests
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused, Unavailable
from calque.model.files import File, Listing
from calque.ports import Storage

AT_ONCE = 512
"""Files that are read before the next look at whether calque ends."""
NO_TIME = 0
"""The time of a file that is no copy of the file that it seems to be: no file of a source has this time."""


@dataclass(frozen=True, slots=True)
class FilePairToProve:
    """A file of the source, and the target's file of equal path and size that may be its copy."""

    source: str
    """The full path of the source's file."""
    target_location: str
    source_file: File
    target_file: File

    @property
    def target(self) -> str:
        return join(self.target_location, self.target_file.path)

    @property
    def same_time(self) -> bool:
        return self.source_file.modified_ns == self.target_file.modified_ns


def prove(side: TargetSide, pairs: Iterable[tuple[Listing, Listing]], *, also_known: bool) -> dict[str, int]:
    """Compare directories of the source with those of the target by checksum, correct the times of the target's files,
    and return the times that were changed, by full path. With `also_known`, files are read too whose time says that
    they are copies. A directory with a file that the source's directory does not have is passed over, because it is
    replaced anyway. Raises `Unavailable` when calque ends."""
    changed_times: dict[str, int] = {}
    pairs = list(pairs)
    combined = [pair for pair in pairs if is_combined_copy(*pair)]
    pairs_to_prove = [
        pair
        for source_listing, target_listing in pairs
        for pair in pairs_of(source_listing, target_listing)
        if also_known or not pair.same_time
    ]
    for batch in batches(pairs_to_prove, AT_ONCE):
        if side.stopping.is_set():
            raise stopped()
        times = times_of(side, batch)
        if times:
            side.storage.date(times)
            changed_times |= times
    return changed_times | (prove_combined(side, combined) if also_known else {})


def stopped() -> Unavailable:
    return Unavailable("Files were not all compared", "calque ends", "It is done again when it runs again")


def is_combined_copy(source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether the combined files at the target stand for exactly the source's files."""
    return target_listing.combination is not None and source_listing.fingerprint() == target_listing.fingerprint()


def prove_combined(side: TargetSide, pairs: Sequence[tuple[Listing, Listing]]) -> dict[str, int]:
    """Compare combined directories by the digests of their rows, give files with other rows the time `NO_TIME`, and
    return these times by full path. The note of such a directory is not believed from then on, so its files stand for
    none of the source's. Raises `Unavailable` when calque ends."""
    times: dict[str, int] = {}
    for source_listing, target_listing in pairs:
        if side.stopping.is_set():
            raise stopped()
        others = other_rows(side.storage, side.storage, source_listing, target_listing)
        times |= {join(target_listing.location, path): NO_TIME for path in others}
    if times:
        side.storage.date(times)
    return times


def other_rows(source: Storage, target: Storage, source_listing: Listing, target_listing: Listing) -> list[str]:
    """Return files of a combined directory that have other rows than the source's files that they stand for, or are
    copies of other content, and manifests that do not lead to copies of the files that the source's manifests name.
    Both listings must have the same files: at the target, those that its combined files stand for."""
    combination = target_listing.combination
    if combination is None:
        return []
    if combination.layout is None:
        return other_manifests(source, target, source_listing, target_listing)
    layout, paths = combination.layout, full_paths(source_listing)
    others = []
    combined_files = [each for each in combination.files if each.row_digest]
    source_digests = source.row_digests(
        [(layout, tuple(paths[path] for path in each.sources)) for each in combined_files]
    )
    target_digests = target.row_digests(
        [(layout, (join(target_listing.location, each.file.path),)) for each in combined_files]
    )
    for each, source_digest, target_digest in zip(combined_files, source_digests, target_digests, strict=True):
        if not target_digest or source_digest != target_digest:
            others.append(each.file.path)
    copies = {each.file.path: each.sources[0] for each in combination.files if not each.row_digest}
    source_sums = source.checksums([paths[path] for path in copies.values()]) if copies else {}
    target_sums = target.checksums([join(target_listing.location, path) for path in copies]) if copies else {}
    return others + [
        path
        for path, source_path in copies.items()
        if source_sums.get(paths[source_path]) != target_sums.get(join(target_listing.location, path))
    ]


def pairs_of(source_listing: Listing, target_listing: Listing) -> list[FilePairToProve]:
    """Return the files of a target's directory, each with the source's file of its path and size. The result is empty
    where the target's directory can't stay (it has a file that the source's does not have), where both sides share one
    directory, and for combined files and Delta tables, which are compared by their rows and logs."""
    if (
        source_listing.version is not None
        or target_listing.version is not None
        or target_listing.combination is not None
        or is_shared(source_listing, target_listing)
    ):
        return []
    files = {(file.path, file.size): file for file in source_listing.files}
    if any((file.path, file.size) not in files for file in target_listing.files):
        return []
    paths = full_paths(source_listing)
    return [
        FilePairToProve(paths[file.path], target_listing.location, files[file.path, file.size], file)
        for file in target_listing.files
    ]


def is_shared(source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether the target's directory is the source's own, or one lies in the other."""
    source_place, target_place = place(source_listing.location), place(target_listing.location)
    return source_place.contains(target_place) or target_place.contains(source_place)


def times_of(side: TargetSide, pairs: Sequence[FilePairToProve]) -> dict[str, int]:
    """Return the times, in nanoseconds and by full path, that files at the target should have and do not have. A file
    of the source that changed while it was read proves nothing, and its copy keeps its time."""
    source_sums = side.storage.checksums([pair.source for pair in pairs])
    current_files = side.storage.files([pair.source for pair in pairs])
    target_sums = side.storage.checksums([pair.target for pair in pairs])
    times: dict[str, int] = {}
    for pair in pairs:
        if not is_as_listed(current_files, pair) or pair.source not in source_sums or pair.target not in target_sums:
            continue
        equal = source_sums[pair.source] == target_sums[pair.target]
        if equal and not pair.same_time:
            times[pair.target] = pair.source_file.modified_ns
        elif not equal and pair.same_time:
            times[pair.target] = NO_TIME
    return times


def same_files(side: TargetSide, source_listing: Listing, target_listing: Listing) -> bool:
    """Tell whether two listings have equal files, by path, size and checksum."""
    if {(file.path, file.size) for file in source_listing.files} != {
        (file.path, file.size) for file in target_listing.files
    }:
        return False
    paths = full_paths(source_listing)
    pairs = [FilePairToProve(paths[file.path], target_listing.location, file, file) for file in source_listing.files]
    for batch in batches(pairs, AT_ONCE):
        source_sums = side.storage.checksums([pair.source for pair in batch])
        target_sums = side.storage.checksums([pair.target for pair in batch])
        if any(source_sums.get(pair.source) != target_sums.get(pair.target) for pair in batch):
            return False
    return True


def is_as_listed(current_files: Mapping[str, File], pair: FilePairToProve) -> bool:
    file = current_files.get(pair.source)
    return file is not None and (file.size, file.modified_ns) == (pair.source_file.size, pair.source_file.modified_ns)


def require_told(times: Mapping[str, int], listings: Iterable[Listing]) -> None:
    """Raise `Refused` if a damaged file (`NO_TIME` in `times`) still has the time of a copy in its listing, because no
    later window would replace it."""
    for listing in listings:
        for file in listing.stored:
            path = join(listing.location, file.path)
            if times.get(path) == NO_TIME and file.modified_ns != NO_TIME:
                raise Refused(
                    f"{path} is damaged, and its time can't be changed",
                    "It belongs to another user",
                    "Remove it, or give it to the user that calque runs as",
                )
