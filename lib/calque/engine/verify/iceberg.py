"""Does an Iceberg table at the target have the files of the source's current snapshot, by size or by checksum?

Older snapshots that both keep are not compared. Delete files that hold paths are others at the target by their nature:
of these only whether they are there, as their manifest says, is compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from calque.core.compare import ComparedCounts, Difference, DifferenceKind, FilePair, compare_contents, compare_files
from calque.core.iceberg import PathMapping, current_of, is_iceberg, metadata_of, name_of, parse_metadata
from calque.core.manifests import ListedFile, files_in, manifests_in
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Table, location_of
from calque.model.names import TableName
from calque.ports import Storage


def same_state(source: Table, there: Table) -> bool:
    """Whether both are Iceberg tables in one state."""
    if not is_iceberg(source) or not is_iceberg(there):
        return False
    return name_of(metadata_of(source)) == name_of(metadata_of(there))


def compare_lakes(
    here: Storage, at_target: Storage, name: TableName, source: Table, there: Table, *, checksums: bool
) -> tuple[ComparedCounts, list[Difference]]:
    """What was compared, counted at the source, and what differs; nothing where the definitions say already that the
    states do."""
    if not same_state(source, there):
        return ComparedCounts(), []
    try:
        location, wanted = live_files(here, metadata_of(source))
    except FileMissing as error:
        raise Refused(f"{name} can't be compared", f"the source has no {error}", "Repair the table there") from error
    paths = PathMapping.between(location, location_of(there) or "")
    try:
        found = {file.path: file for file in live_files(at_target, metadata_of(there))[1]}
    except FileMissing as error:
        return ComparedCounts(), [Difference(name, "", DifferenceKind.FILES, f"missing: {error}", None, None)]
    expected = {paths.at_target(file.path): file for file in wanted}
    sizes = {at: found[at].size if file.rewritten and at in found else file.size for at, file in expected.items()}
    lying = at_target.files(list(found))
    listings = [
        listing(paths.target, (File(at, size, 0) for at, size in sizes.items())),
        listing(paths.target, (File(at, lying[at].size, 0) for at in found if at in lying)),
    ]
    differences = compare_files(name, "", *listings)
    if checksums:
        pairs = [
            FilePair("", at, file.path, at)
            for at, file in expected.items()
            if not file.rewritten and at in lying and lying[at].size == file.size
        ]
        sums = here.checksums([pair.source for pair in pairs])
        differences += compare_contents(name, pairs, sums, at_target.checksums([pair.target for pair in pairs]))
    return ComparedCounts(files=len(wanted), bytes=sum(file.size for file in wanted)), differences


class FileMissing(Exception):
    """A file that leads to a snapshot's files is not there; says which."""


def live_files(storage: Storage, metadata_path: str) -> tuple[str, list[ListedFile]]:
    """The table's location, and the files of its current snapshot."""
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
