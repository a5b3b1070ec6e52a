"""The comparison of an Iceberg table at the target with the files of the source's current snapshot, by size or by
checksum.

Older snapshots that both keep are not compared. Delete files that hold paths are others at the target by their nature:
of these only whether they are there, as their manifest says, is compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from calque.core.formats.iceberg import PathMapping, current_of, is_iceberg, metadata_of, name_of, parse_metadata
from calque.core.formats.manifests import ListedFile, files_in, manifests_in
from calque.core.images.compare import (
    ComparedCounts,
    Difference,
    DifferenceKind,
    FilePair,
    compare_contents,
    compare_files,
)
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Table, location_of
from calque.model.names import TableName
from calque.ports import Storage


def same_state(source: Table, target: Table) -> bool:
    """Tell whether both are Iceberg tables in one state."""
    if not is_iceberg(source) or not is_iceberg(target):
        return False
    return name_of(metadata_of(source)) == name_of(metadata_of(target))


def compare_lakes(
    source_storage: Storage, target_storage: Storage, name: TableName, source: Table, target: Table, *, checksums: bool
) -> tuple[ComparedCounts, list[Difference]]:
    """Return what was compared, counted at the source, and what differs. Both are empty where the definitions say
    already that the states differ. Raises `Refused` where the source lacks a file of its metadata."""
    if not same_state(source, target):
        return ComparedCounts(), []
    try:
        location, source_files = live_files(source_storage, metadata_of(source))
    except FileMissing as error:
        raise Refused(f"{name} can't be compared", f"The source has no {error}", "Repair the table there") from error
    paths = PathMapping.between(location, location_of(target) or "")
    try:
        target_files = {file.path: file for file in live_files(target_storage, metadata_of(target))[1]}
    except FileMissing as error:
        return ComparedCounts(), [Difference(name, "", DifferenceKind.FILES, f"missing: {error}", None, None)]
    expected = {paths.at_target(file.path): file for file in source_files}
    sizes = {
        path: target_files[path].size if file.rewritten and path in target_files else file.size
        for path, file in expected.items()
    }
    stored_files = target_storage.files(list(target_files))
    listings = [
        listing(paths.target, (File(path, size, 0) for path, size in sizes.items())),
        listing(
            paths.target, (File(path, stored_files[path].size, 0) for path in target_files if path in stored_files)
        ),
    ]
    differences = compare_files(name, "", *listings)
    if checksums:
        pairs = [
            FilePair("", path, file.path, path)
            for path, file in expected.items()
            if not file.rewritten and path in stored_files and stored_files[path].size == file.size
        ]
        source_sums = source_storage.checksums([pair.source for pair in pairs])
        differences += compare_contents(
            name, pairs, source_sums, target_storage.checksums([pair.target for pair in pairs])
        )
    return ComparedCounts(files=len(source_files), bytes=sum(file.size for file in source_files)), differences


class FileMissing(Exception):
    """A file that leads to a snapshot's files is not there; the message is its path."""


def live_files(storage: Storage, metadata_path: str) -> tuple[str, list[ListedFile]]:
    """Return the table's location, and the files of its current snapshot. Raises `FileMissing`."""
    metadata = parse_metadata(metadata_path, content_of(storage, metadata_path))
    current = current_of(metadata)
    if current is None:
        return metadata["location"], []
    rows = manifests_in(current["manifest-list"], content_of(storage, current["manifest-list"]))
    manifests = [row["manifest_path"] for row in rows]
    return metadata["location"], [file for path in manifests for file in files_in(path, content_of(storage, path))]


def content_of(storage: Storage, path: str) -> bytes:
    content = storage.read(path)
    if content is None:
        raise FileMissing(path)
    return content


def listing(location: str, files: Iterable[File]) -> Listing:
    below = (File(file.path.removeprefix(location).lstrip("/"), file.size, 0) for file in files)
    return Listing(location, tuple(sorted(below)))
