"""Layout of files at a target: the directory of each object, and the names below a directory that are data.

Locations are Hive's: a plain absolute path, `file:/a/b`, `file:///a/b`, or `scheme://authority/path`. They are never
URL-decoded: `ds=a%2Fb` is the name of a directory. A directory at the target belongs to one incarnation for ever
(docs/how-hops-work.md), so replaced content gets a directory of its own. Such directories lie below
`<database>.db/_calque`, beside the tables and not below them, where neither a reader of a live directory nor MSCK
REPAIR comes by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.files import Listing
from calque.model.names import OURS, EventId

VERSIONS = OURS
"""The directory below a database's that holds its versioned directories."""
ACID_VERSIONS = "calque.versions"
"""The same of ACID tables: Hive 4 sees no rows of theirs below a directory whose name begins with an underscore
(FileUtils.HIDDEN_FILES_FULL_PATH_FILTER). No table can have this name."""
STAGE = f"{OURS}_stage"
"""The directory below an object's that holds files copied but not yet published."""
COPYING = ".calque-copy-"
"""The beginning of the name of a file that is being written. A file that no process writes any more is litter."""

OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "abfs", "abfss", "wasb", "wasbs", "memory"})
"""Schemes whose authority is a container of files (a bucket) and no server, and that have no directories."""

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*|$)", re.DOTALL)
_SLASHES = re.compile("/{2,}")
_UPWARDS = re.compile(r"(?:^|/)\.\.(?:/|\Z)|\0")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A location in its parts. `path` begins with `/` and does not end with it, but for the root itself. Two spellings
    of one location are equal: a plain path is a `file` one, repeated slashes are one."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        if self.authority or self.scheme != "file":
            return f"{self.scheme}://{self.authority}{self.path}"
        return f"file:{self.path}"

    def contains(self, other: Place) -> bool:
        """Tell whether `other` is this place or lies below it."""
        return (
            other.path.startswith(self.path)
            and (self.path == "/" or other.path[len(self.path) : len(self.path) + 1] in ("", "/"))
            and (self.scheme, self.authority) == (other.scheme, other.authority)
        )


def place(location: str) -> Place:
    """Take a location apart. Raises `Refused` when the location is neither an absolute path nor a URI with one, and
    when it steps upwards: `/a/../b` begins with `/a` and does not lie below it."""
    if location.startswith("/"):
        return Place("file", "", _path(location))
    match = _URI.fullmatch(location)
    if match and (match[2] or match[3]):
        scheme, authority, path = match.groups()
        local = scheme.lower() == "file" and authority in (None, "localhost")
        return Place(scheme.lower(), "" if local else authority or "", _path(path))
    raise Refused(
        f"{location!r} is no location",
        "It is neither an absolute path nor a URI",
        "Write it like /a/b, file:/a/b or s3a://bucket/a/b",
    )


def join(location: str, relative: str) -> str:
    """Return `relative` below `location`, in the location's own spelling; an empty `relative` is the location
    itself."""
    return f"{location.rstrip('/')}/{relative}" if relative else location


def full_paths(listing: Listing) -> dict[str, str]:
    """Return the full paths at which the listed files lie, by their paths in the listing."""
    within = listing.pin or listing.location
    kept = {file.path: file.source for file in listing.kept}
    return {file.path: kept.get(file.path) or join(within, file.path) for file in listing.files}


def is_data(relative: str) -> bool:
    """Tell whether a relative path is data: none of its names is hidden, that is, begins with `_` or `.`."""
    return not any(name.startswith(("_", ".")) for name in relative.split("/"))


def natural_location(warehouse: str, database: str, table: str = "", partition: str | None = None) -> str:
    """Return `<warehouse>/<database>.db[/<table>[/<partition>]]`, with the partition's Hive name. Raises `Refused` for
    a name that can't be that of a directory directly there."""
    location = join(warehouse, f"{directory_name(database)}.db")
    return join(join(location, directory_name(table)), partition or "")


def directory_name(name: str) -> str:
    """Return the name where it can be that of a directory. Raises `Refused` where a path with it would lead
    elsewhere."""
    if "/" in name or "\0" in name or name in (".", ".."):
        todo = "Rename the object at the source, or exclude it"
        raise Refused(f"{name!r} can't be the name of a directory", "It would be another object's, or none", todo)
    return name


def versioned_location(
    warehouse: str,
    database: str,
    table: str,
    incarnation: str,
    event_id: EventId,
    partition: str | None = None,
    *,
    is_acid: bool = False,
) -> str:
    """Return a directory that no other object, incarnation or event has:
    `<warehouse>/<database>.db/_calque/<table>.<incarnation>/<partition, or "data">/<event id>`, and below
    `calque.versions` in place of `_calque` for an ACID table.

    No partition is called `data` (their names hold `=`), so tables and their partitions never meet. `table` is the name
    when the directory is made; a rename doesn't move it. `incarnation` is the table's.
    """
    below = f"{directory_name(table)}.{incarnation}/{partition or 'data'}/{event_id}"
    return join(natural_location(warehouse, database), f"{ACID_VERSIONS if is_acid else VERSIONS}/{below}")


def staged_name(directory: str, relative: str, event_id: EventId, scan: int = 0) -> str:
    """Return the path at which a copied file waits, unseen and on the same file system, until it is published as
    `relative` below `directory` at `event_id`, or as scan number `scan` found it: `<directory>/_calque_stage/<event
    id>[.<number of the scan>]/<relative>`."""
    number = f"{event_id}.{scan}" if scan else str(event_id)
    return join(directory, f"{STAGE}/{number}/{relative}")


def external_location(location: str, external_base: str, locations: Mapping[str, str]) -> str | None:
    """Return the location at the target for a source's external location: by the longest prefix in `locations`, else
    below `external_base`. None when neither says one (then the natural location is meant, or `strict_locations` refuses
    it)."""
    mapped = mapped_location(location, locations)
    if mapped is not None or not external_base:
        return mapped
    source = place(location)
    container = source.authority if source.scheme in OBJECT_STORES else ""
    return join(external_base, f"{container}{source.path}".strip("/"))


def mapped_location(location: str, locations: Mapping[str, str]) -> str | None:
    """Return `location` with its longest prefix in `locations` replaced; prefixes end where a name ends. None where no
    prefix fits."""
    source = place(location)
    prefixes = [(place(prefix), replacement) for prefix, replacement in locations.items()]
    fitting = [(prefix, replacement) for prefix, replacement in prefixes if prefix.contains(source)]
    if not fitting:
        return None
    prefix, replacement = max(fitting, key=lambda pair: len(pair[0].path))
    return join(replacement, source.path.removeprefix(prefix.path).lstrip("/"))


def _path(path: str) -> str:
    if (".." in path or "\0" in path) and _UPWARDS.search(path):
        raise Refused(f"{path!r} is no path", "It steps upwards, or has a NUL in it", "Write the location without that")
    return (_SLASHES.sub("/", path) if "//" in path else path).rstrip("/") or "/"
