"""The permissions of directories and files at a target: those of their sources, where the policy asks for that.

A copied file gets its permissions with the copy (`ports.CopyTask`). The functions here are for directories, which the
storage makes when the first file is put there, and for files that lay at the target before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename, dirname

from calque.core.formats.layout import join
from calque.engine.files.stage import StageRequest
from calque.engine.sides.sides import TargetSide
from calque.model.files import Listing
from calque.model.permissions import Permissions

Pair = tuple[str, str]
"""A file or directory, and another one that is to get its permissions: both full paths or URIs."""


def keeps_permissions(side: TargetSide) -> bool:
    return side.policy.permissions == "keep"


def keep(side: TargetSide, pairs: Iterable[Pair]) -> None:
    """Give the second of each pair the permissions of the first, where both exist. Does nothing where the policy does
    not keep permissions. Raises `Unavailable` and `Refused` as the ports do."""
    if not keeps_permissions(side):
        return
    wanted_permissions = {
        target: wanted for _, target, wanted, current in permissions_of(side, pairs) if wanted != current
    }
    if wanted_permissions:
        side.storage.set_permissions(wanted_permissions)


def permissions_of(side: TargetSide, pairs: Iterable[Pair]) -> list[tuple[str, str, Permissions, Permissions]]:
    """Return, for each pair of which both exist, the two locations and the permissions of each."""
    unique_pairs = list(dict.fromkeys(pairs))
    permissions = side.storage.permissions([location for pair in unique_pairs for location in pair])
    return [
        (source, target, permissions[source], permissions[target])
        for source, target in unique_pairs
        if source in permissions and target in permissions
    ]


def directories_below(source_listing: Listing, target: str) -> list[Pair]:
    """Return the source's listed directory, and those on the way to its files, each with its counterpart at the
    target."""
    names = {name for file in source_listing.files for name in above(file.path)}
    return [(join(source_listing.location, name), join(target, name)) for name in ("", *sorted(names))]


def files_of(source_listing: Listing, target_listing: Listing) -> list[Pair]:
    """Return the files that lie at the target, each after the source's file that it is the copy of. A combined file is
    paired with the first of the files whose rows it has."""
    if target_listing.combination is not None:
        combined = {each.file.path: each.sources[0] for each in target_listing.combination.files}
    else:
        source_paths = {file.path for file in source_listing.files}
        combined = {file.path: file.path for file in target_listing.files if file.path in source_paths}
    return [
        (join(source_listing.location, source), join(target_listing.location, target))
        for target, source in combined.items()
    ]


def contents_of(source_listings: Mapping[str, Listing], target_listings: Mapping[str, Listing]) -> list[Pair]:
    """Return pairs of the directories and files that were listed at both sides, by partition."""
    return [
        pair
        for key, source_listing in source_listings.items()
        if (target_listing := target_listings.get(key)) is not None
        for pair in (
            *directories_below(source_listing, target_listing.location),
            *files_of(source_listing, target_listing),
        )
    ]


def directories_above(request: StageRequest, location: str, root: str) -> list[Pair]:
    """Return pairs for the directories between `location`, where the request's files lie, and the directory of the
    table. A versioned directory lies outside the table's own directory, below a directory of the table's incarnation.
    That one gets the permissions of `root`, so that it keeps out the users whom the table's own directory keeps out."""
    source, is_versioned = request.listing.location, location != request.natural
    levels, pairs = request.partition.split("/")[1:], []
    if is_versioned:
        location = dirname(location)
        pairs.append((source, location))
    for name in reversed(levels):
        if basename(location) != name:
            return pairs
        source, location = dirname(source) if basename(source) == name else source, dirname(location)
        pairs.append((source, location))
    if is_versioned and root:
        pairs.append((root, dirname(location)))
    return pairs


def above(path: str) -> Sequence[str]:
    """Return the directories on the way to the file `path`, by their relative paths, from the top down."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
