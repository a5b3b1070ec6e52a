"""Does somebody still write in a directory? What is half-written is waited for, and never shown.

Names that writers give to what is not finished do not change what is data: a reader of the source reads such files too
(unless `_` or `.` hides them). They only make a scan wait, until they are gone or left alone for `ABANDONED_SECONDS`.
"""

from __future__ import annotations

import re

from calque.core.formats.layout import join
from calque.model.files import Listing
from calque.ports import Storage

ABANDONED_SECONDS = 600
WORKPLACE = re.compile(r"_temporary|\.hive-staging.*|\.spark-staging.*|_task_tmp\..*")
"""Directories in which jobs gather their output before they move it."""
DRAFT = re.compile(r".*(\.inprogress(\..*)?|\._COPYING_|\.tmp)")
"""Files that get another name when they are complete: Flink's, `hdfs dfs -put`'s, Flume's."""


def has_drafts(listing: Listing, now_ns: int) -> bool:
    """Whether a file is there under a name of unfinished ones, and not abandoned."""
    young = now_ns - ABANDONED_SECONDS * 10**9
    return any(DRAFT.fullmatch(file.path) and file.modified_ns > young for file in listing.files)


def has_workplace(storage: Storage, location: str, now_ns: int) -> bool:
    """Whether a job's directory is there, and something in it changed lately."""
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
