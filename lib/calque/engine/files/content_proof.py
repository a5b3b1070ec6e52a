"""Is what lies at a target really what sizes and times say? What is proven equal gets its source's times and is known
from then on; what is another content loses them, and is replaced like everything that differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calque.core.layout import join, place
from calque.core.limits import batches
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused, Unavailable
from calque.model.files import File, Listing

AT_ONCE = 512
"""Files that are read between two looks at whether calque ends."""
NO_TIME = 0
"""The time of a file that is no copy of what it seems to be: no file of a source has it."""


@dataclass(frozen=True, slots=True)
class FilePairToProve:
    """A file of the source, and what may be its copy: equal in path and size."""

    location: str
    at_target: str
    file: File
    there: File

    @property
    def source(self) -> str:
        return join(self.location, self.file.path)

    @property
    def target(self) -> str:
        return join(self.at_target, self.there.path)

    @property
    def same_time(self) -> bool:
        return self.file.modified_ns == self.there.modified_ns


def prove(side: TargetSide, pairs: Iterable[tuple[Listing, Listing]], *, also_known: bool) -> dict[str, int]:
    """Compare directories of the source with what lies at the target, by checksum, and put times right there; those
    that were, by full path. With `also_known` files are read, too, whose time says that they are copies. A directory
    with a file that the source's does not have is replaced anyway, and is passed over. Raises `Unavailable` when calque
    ends."""
    changed: dict[str, int] = {}
    todo = [pair for wanted, there in pairs for pair in pairs_of(wanted, there) if also_known or not pair.same_time]
    for some in batches(todo, AT_ONCE):
        if side.stopping.is_set():
            raise Unavailable("Files were not all compared", "calque ends", "It is done again when it runs again")
        times = times_of(side, some)
        if times:
            side.storage.date(times)
            changed |= times
    return changed


def pairs_of(wanted: Listing, there: Listing) -> list[FilePairToProve]:
    """Empty where the target's directory can't stay; Delta tables are compared by their logs."""
    if wanted.version is not None or there.version is not None or is_shared(wanted, there):
        return []
    files = {(file.path, file.size): file for file in wanted.files}
    if any((file.path, file.size) not in files for file in there.files):
        return []
    return [
        FilePairToProve(wanted.pin or wanted.location, there.location, files[file.path, file.size], file)
        for file in there.files
    ]


def is_shared(wanted: Listing, there: Listing) -> bool:
    """Whether the target's directory is the source's own."""
    here, other = place(wanted.location), place(there.location)
    return here.contains(other) or other.contains(here)


def times_of(side: TargetSide, pairs: Sequence[FilePairToProve]) -> dict[str, int]:
    """The times that files at the target should have and do not have, by full path. A source's file that changed while
    it was read proves nothing."""
    sums = side.storage.checksums([pair.source for pair in pairs])
    now = side.storage.files([pair.source for pair in pairs])
    at_target = side.storage.checksums([pair.target for pair in pairs])
    found: dict[str, int] = {}
    for pair in pairs:
        if not is_as_listed(now, pair) or pair.source not in sums or pair.target not in at_target:
            continue
        equal = sums[pair.source] == at_target[pair.target]
        if equal and not pair.same_time:
            found[pair.target] = pair.file.modified_ns
        elif not equal and pair.same_time:
            found[pair.target] = NO_TIME
    return found


def same_files(side: TargetSide, here: Listing, there: Listing) -> bool:
    """Whether two listings have equal files, by path, size and checksum."""
    if {(file.path, file.size) for file in here.files} != {(file.path, file.size) for file in there.files}:
        return False
    for some in batches([FilePairToProve(here.location, there.location, file, file) for file in here.files], AT_ONCE):
        sums = side.storage.checksums([pair.source for pair in some])
        at_target = side.storage.checksums([pair.target for pair in some])
        if any(sums.get(pair.source) != at_target.get(pair.target) for pair in some):
            return False
    return True


def is_as_listed(now: Mapping[str, File], pair: FilePairToProve) -> bool:
    file = now.get(pair.source)
    return file is not None and (file.size, file.modified_ns) == (pair.file.size, pair.file.modified_ns)


def require_told(times: Mapping[str, int], listings: Iterable[Listing]) -> None:
    """`Refused` where a damaged file still has the time of a copy: nothing would replace it."""
    for listing in listings:
        for file in listing.files:
            path = join(listing.location, file.path)
            if times.get(path) == NO_TIME and file.modified_ns != NO_TIME:
                raise Refused(
                    f"{path} is damaged, and its time can't be changed",
                    "it belongs to another user",
                    "Remove it, or give it to the user that calque runs as",
                )
