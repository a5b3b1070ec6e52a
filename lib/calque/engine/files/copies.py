"""Copies of the files in a listing, and the exception for files that can't be copied any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calque.core.formats.layout import join
from calque.engine.sides.sides import TargetSide
from calque.model.files import File, Listing
from calque.ports import CopiedFile, CopyTask

Lost = tuple[str, int, int]
"""A file that can't be copied any more: its path at the source, its size in bytes and its modification time in
nanoseconds."""


class ContentLost(Exception):
    """Raised where files of a state could not be copied as evidence lists them, so that the state can't be a stop any
    more. `location`, `size` and `modified_ns` say the first of these files, `others` the rest; `files` has all of
    them."""

    def __init__(
        self, location: str, problem: str, size: int = 0, modified_ns: int = 0, others: Iterable[Lost] = ()
    ) -> None:
        self.files = frozenset({(location, size, modified_ns), *others})
        super().__init__(f"{location}: {problem}")


def copy_tasks(listing: Listing, targets: Iterable[tuple[File, str]]) -> list[CopyTask]:
    """Return a task for each file of `listing` in `targets`, which pairs it with its full path at the target. The copy
    is read from where the file is kept (`listing.kept`), else from the pin, else from the listing's location."""
    kept_files = {kept.path: kept for kept in listing.kept}
    tasks = []
    for file, target in targets:
        kept = kept_files.get(file.path)
        within = listing.pin or listing.location
        source = kept.source if kept is not None else join(within, file.path)
        source_ns = kept.modified_ns if kept is not None else 0
        tasks.append(
            CopyTask(source, target, file.size, file.modified_ns, ours=True, source_ns=source_ns, within=within)
        )
    return tasks


def copied(side: TargetSide, tasks: Sequence[CopyTask]) -> dict[str, CopiedFile]:
    """Copy by `tasks` and return the results by target path. Raises `ContentLost` where a file could not be copied."""
    results = {result.task.target: result for result in side.storage.copy(tasks)} if tasks else {}
    lost = [result for result in results.values() if result.problem]
    if lost:
        task, others = lost[0].task, ((one.task.source, one.task.size, one.task.expected_ns) for one in lost[1:])
        raise ContentLost(task.source, lost[0].problem, task.size, task.expected_ns, others)
    return results
