"""The files that a state of an ACID table has in one directory, from one look into it: `content_at`.

A directory that is named by write ids never changes, so one look is proof for every state whose directories were still
there. A cleaner removes those that a base or a compacted delta has replaced, so what replaced them tells that a state
may have lost some (`is_whole`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter

from calque.core.acid.directories import (
    AcidDirectory,
    DirectoryKind,
    HistoryGone,
    ReadableDirectories,
    directory_of,
    readable,
)
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.formats.layout import join
from calque.model.files import File, KeptFile, Listing
from calque.model.transactions import TransactionId

IsCommitted = Callable[[TransactionId], bool]


@dataclass(frozen=True)
class AcidLook:
    """The content of a directory of an ACID table as one look found it. `listing` has all data files below it, `names`
    are the names directly in it, looked at after the files. `compacted_bases` is as in `directory_of`."""

    listing: Listing
    names: frozenset[str]
    compacted_bases: frozenset[str] = frozenset()

    @cached_property
    def directories(self) -> list[AcidDirectory]:
        known = (directory_of(name, self.compacted_bases) for name in sorted(self.names))
        return [directory for directory in known if directory is not None]

    @property
    def visibilities(self) -> Sequence[TransactionId]:
        """The transactions that show directories."""
        return [one.visibility for one in self.directories if one.visibility is not None]

    @cached_property
    def marked(self) -> Mapping[str, Sequence[File]]:
        """The files of each directory of write ids, with marked paths."""
        files: dict[str, list[File]] = {directory.name: [] for directory in self.directories}
        for file in self.listing.files:
            first, _, rest = file.path.partition("/")
            if rest and first in files:
                files[first].append(replace(file, path=f"{MARK}{file.path}"))
        return files

    @cached_property
    def originals(self) -> Sequence[File]:
        """The files in no directory of write ids, nor in one that a cleaner has removed since they were listed, without
        those that statements need while they run."""
        beside = (file for file in self.listing.files if directory_of(file.path.partition("/")[0]) is None)
        return [file for file in beside if not file.path.startswith(TEMPORARY)]


def content_at(
    look: AcidLook,
    valid: ValidWriteIds,
    latest: ValidWriteIds,
    is_committed: IsCommitted,
    is_committed_now: IsCommitted,
) -> Listing | None:
    """Return the files of the state in which the write ids `valid` are seen, those in directories of write ids with
    marked paths (`MARK`); None where the look does not prove them. A base without files, which hides all that is older,
    is a file without content whose path ends with the mark.

    `latest` are the write ids at an event after the look, and `is_committed_now` tells which transactions were
    committed by then, `is_committed` which were before the look. A compaction that was committed between them may have
    had directories removed before these were looked for.
    """
    if any(is_committed_now(one) and not is_committed(one) for one in look.visibilities):
        return None
    shown = [one for one in look.directories if one.visibility is None or is_committed(one.visibility)]
    try:
        chosen = readable(shown, valid)
    except HistoryGone:
        return None
    if not is_whole(shown, chosen, valid, latest):
        return None
    files = [file for directory in chosen.all() for file in look.marked[directory.name]]
    if chosen.reads_originals:
        files += look.originals
    elif chosen.base is not None and not look.marked[chosen.base.name]:
        files.append(File(f"{MARK}{chosen.base.name}{MARK}", 0, 0))
    return replace(look.listing, files=tuple(sorted(files, key=attrgetter("path"))))


def is_whole(
    shown: list[AcidDirectory],
    chosen: ReadableDirectories,
    valid: ValidWriteIds,
    latest: ValidWriteIds,
) -> bool:
    """Tell whether a cleaner can't have removed a directory of the state, and no directory of it is still growing.

    A cleaner removes what a base hides, or a compacted delta, once its rows are seen. So a base that the state does not
    read, and that later readers do, leaves the state doubtful. A directory of several write ids of which one is open
    belongs to a writer that goes on with it. One of which some ids are seen later than the state has rows of later
    states, which only readers of row ids tell apart.
    """
    for one in shown:
        if one.kind is DirectoryKind.BASE and latest.holds(one.high) and not hides_nothing_of(one, valid):
            return False
    for one in chosen.deltas:
        if one.low == one.high:
            continue
        if any(one.low <= write_id <= one.high for write_id in latest.open):
            return False
        if one.high > valid.high or any(one.low <= write_id <= one.high for write_id in valid.open):
            return False
    return True


def hides_nothing_of(base: AcidDirectory, valid: ValidWriteIds) -> bool:
    """Tell whether the state reads the base, or one that has the same rows and more."""
    return valid.holds_all(base.high) if base.is_compacted else valid.holds(base.high)


TEMPORARY = "-tmp."
"""So begins the name of a directory in which the tasks of a statement list what they write. Hive removes it at the end
of the statement (Utilities.getManifestDir of Hive 4)."""
VISIBILITY = re.compile(r"_v\d+$")
MARK = "/"
"""The beginning of the path of a file in a directory of write ids, in a listing of a state. No other path of a listing
begins so."""


def flattened(listing: Listing, *, with_bases: bool = False) -> Listing:
    """Return the listing of a state as that of a plain table: each file under a name of its own (`flat_name`), with the
    place where it lies. Bases without files are left out, unless `with_bases`. Any other listing is returned as it
    is."""
    if not any(file.path.startswith(MARK) for file in listing.files):
        return listing
    within = listing.pin or listing.location
    files, kept = [], []
    for file in listing.files:
        if file.path.endswith(MARK) and not with_bases:
            continue
        name = flat_name(file.path)
        files.append(replace(file, path=name))
        if name != file.path:
            kept.append(KeptFile(name, join(within, file.path.lstrip(MARK)), file.modified_ns))
    return replace(listing, files=tuple(sorted(files)), kept=tuple(sorted(kept, key=lambda one: one.path)))


def is_flattened(listing: Listing) -> bool:
    """Tell whether some file of the listing has a name that `flattened` made."""
    return any(directory_of(file.path.partition("~")[0]) is not None for file in listing.files)


@lru_cache(maxsize=1 << 16)
def flat_name(path: str) -> str:
    """Return a name without a directory for a marked path, another one for each path; any other path as it is.

    Example: `/delta_0000002_0000002_0000/000000_0` becomes `delta_0000002_0000002_0000~000000_0`, because files of two
    directories may have the same name. The transaction in the name of a directory is left out, because it is another
    one at a target.
    """
    if not path.startswith(MARK):
        return path
    directory, _, rest = path.lstrip(MARK).partition("/")
    name = f"{VISIBILITY.sub('', directory)}/{rest}"
    return name.replace("%", "%25").replace("~", "%7E").replace("/", "~")


def directory_in(name: str) -> AcidDirectory | None:
    """Return the directory of the file with that flat name; None for a file in no directory of write ids."""
    directory, separator, _ = name.partition("~")
    return directory_of(directory) if separator else None


def own_name(name: str) -> str:
    """Return the file's own name, without its directories, of its flat name."""
    return (name if directory_in(name) is None else name.replace("~", "/")).rpartition("/")[2]


def nested_path(name: str, transaction: TransactionId) -> str:
    """Return the path for a file with that flat name in a directory that the transaction shows; the name itself where
    `flat_name` has left it as it was. The path of a base without files ends with a slash."""
    directory, separator, rest = name.partition("~")
    if not separator or directory_of(directory) is None:
        return name
    path = rest.replace("~", "/").replace("%7E", "~").replace("%25", "%")
    return f"{directory}_v{transaction:07d}/{path}"
