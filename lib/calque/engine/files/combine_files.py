"""Combination of the small files of directories on their way to a target, where no reader looks yet: `combine`.

The note that says which of the source's files each combined file stands for is written last, when all files were
verified. A process that dies before leaves combined files without a note: they count for nothing, and are made again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.formats.layout import join
from calque.core.small_files.combined_note import NOTE, combined_name, note_of
from calque.core.small_files.grouping import GroupedFiles
from calque.engine.files.copies import ContentLost, copied, copy_tasks
from calque.engine.sides.sides import TargetSide
from calque.errors import Unavailable
from calque.model.files import Combination, CombinedFile, File, Listing
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DirectoryToCombine:
    """A directory at the target into which small files are to be combined. All that may lie there yet is copies of the
    groups that have one file. `listing` is the source's directory, `location` the target's."""

    listing: Listing
    location: str
    grouped: GroupedFiles

    def large_groups(self) -> list[tuple[File, ...]]:
        """Return the groups of several files; each becomes one combined file."""
        return [group for group in self.grouped.groups if len(group) > 1]

    def tasks(self) -> list[CombineTask]:
        """Return one task for each group of several files."""
        fingerprint, tasks = self.listing.fingerprint(), []
        for number, group in enumerate(self.large_groups(), 1):
            target = join(self.location, combined_name(fingerprint, number, self.grouped.layout))
            sources = copy_tasks(self.listing, ((file, target) for file in group))
            tasks.append(CombineTask(tuple(sources), target, self.grouped.layout))
        return tasks

    def copies(self) -> dict[str, File]:
        """Return the files that are alone in their group, by the full paths of their copies."""
        return {join(self.location, group[0].path): group[0] for group in self.grouped.groups if len(group) == 1}

    def copy_tasks(self) -> list[CopyTask]:
        return copy_tasks(self.listing, ((file, path) for path, file in self.copies().items()))


def combine(side: TargetSide, directories: Sequence[DirectoryToCombine]) -> dict[str, Combination]:
    """Combine the files of `directories`, copy those that stay alone, and write the notes. Return each combination by
    its location. A directory whose files can't be combined is left out of the result, and nothing that was made for it
    stays. Raises `ContentLost`, `Unavailable`."""
    if not directories:
        return {}
    results = {
        result.task.target: result
        for result in side.storage.combine([task for directory in directories for task in directory.tasks()])
    }
    require_had(results.values())
    unfit = [directory for directory in directories if not is_fit(directory, results)]
    if litter := [
        task.target for directory in unfit for task in directory.tasks() if results[task.target].file is not None
    ]:
        side.storage.remove(litter)
    fit = [directory for directory in directories if directory not in unfit]
    copies = copied(side, [task for directory in fit for task in directory.copy_tasks()])
    listings = side.storage.list([directory.location for directory in fit]) if fit else {}
    combinations = {}
    for directory in fit:
        combination = combination_of(directory, results, copies, listings[directory.location])
        side.storage.write(join(directory.location, NOTE), note_of(combination))
        combinations[directory.location] = combination
    return combinations


def is_fit(directory: DirectoryToCombine, results: Mapping[str, CombinedRows]) -> bool:
    why = next((results[task.target].unfit for task in directory.tasks() if results[task.target].unfit), "")
    if why:
        LOG.info("the files of %s are copied as they are: %s", directory.listing.location, why)
    return not why


def require_had(results: Iterable[CombinedRows]) -> None:
    """Raise `ContentLost` if sources of a result could not be read as its task says."""
    lost = [result for result in results if result.problem]
    if lost:
        tasks = [task for result in lost for task in (result.lost or result.task.sources[:1])]
        first, others = tasks[0], ((task.source, task.size, task.expected_ns) for task in tasks[1:])
        raise ContentLost(first.source, lost[0].problem, first.size, first.expected_ns, others)


def combination_of(
    directory: DirectoryToCombine,
    results: Mapping[str, CombinedRows],
    copies: Mapping[str, CopiedFile],
    target_listing: Listing,
) -> Combination:
    """Return the combination that lies at `directory.location`, with the times that the target gave its files. Raises
    `Unavailable` where files lie there that were not made or copied for it."""
    files = []
    for group, task in zip(directory.large_groups(), directory.tasks(), strict=True):
        file = results[task.target].file
        assert file is not None
        digest = results[task.target].row_digest
        files.append(CombinedFile(file, tuple(source.path for source in group), digest))
    for path, file in directory.copies().items():
        copy = replace(file, path=path, checksum=copies[path].checksum or None)
        files.append(CombinedFile(copy, (file.path,)))
    present = {join(directory.location, file.path): file for file in target_listing.files}
    if {(each.file.path, each.file.size) for each in files} != {(path, file.size) for path, file in present.items()}:
        raise Unavailable(
            f"Other files lie at {directory.location} than were made there",
            "Somebody else writes there",
            "It is tried again",
        )
    there = [replace(each, file=replace(present[each.file.path], checksum=each.file.checksum)) for each in files]
    sources = tuple(sorted(replace(file, checksum=None) for file in directory.listing.files))
    return Combination(directory.grouped.layout, sources, tuple(sorted(there, key=lambda each: each.file)))
