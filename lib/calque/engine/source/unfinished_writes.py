"""The signs that a writer is still at work in a directory. A scan waits for what is half-written; a target never shows
it.

The names that writers give to unfinished files do not change what is data: a reader of the source reads such files too,
unless `_` or `.` hides them. They only make a scan wait until they are gone, or have not changed for
`ABANDONED_SECONDS`.
"""

from __future__ import annotations

import re

from calque.core.formats.layout import join
from calque.model.files import Listing
from calque.ports import Storage

ABANDONED_SECONDS = 600
WORKPLACE = re.compile(r"_temporary|\.hive-staging.*|\.spark-staging.*|_task_tmp\..*")
"""Names of directories in which jobs gather their output before they move it."""
DRAFT = re.compile(r".*(\.inprogress(\..*)?|\._COPYING_|\.tmp)")
"""Names of files that get another name when they are complete: those of Flink, `hdfs dfs -put` and Flume."""


def has_drafts(listing: Listing, now_ns: int) -> bool:
    """Tell whether the listing has an unfinished file, by its name, that changed within `ABANDONED_SECONDS`."""
    young = now_ns - ABANDONED_SECONDS * 10**9
    return any(DRAFT.fullmatch(file.path) and file.modified_ns > young for file in listing.files)


def has_workplace(storage: Storage, location: str, now_ns: int) -> bool:
    """Tell whether the working directory of a job lies directly in `location`, and a file or directory in it changed
    within `ABANDONED_SECONDS`."""
    young = now_ns - ABANDONED_SECONDS * 10**9
    names = [name for name in storage.children(location) if WORKPLACE.fullmatch(name)]
    places = [join(location, name) for name in names]
    times = storage.modified(places)
    return any(times.get(place, 0) > young or is_young(storage, place, young) for place in places)


def is_young(storage: Storage, directory: str, young_ns: int) -> bool:
    entries = storage.entries(directory)
    if any(entry.modified_ns > young_ns for entry in entries):
        return True
    return any(is_young(storage, join(directory, entry.name), young_ns) for entry in entries if entry.directory)
