"""Iceberg tables: the files that their definitions and metadata files point to, and both rewritten for another
location.

A state of a table is the metadata file that `metadata_location` names. No file that it points to ever changes, so the
definition alone says which content a table has. Format: iceberg.apache.org/spec, versions 1 to 3.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from xxhash import xxh3_64_hexdigest

from calque.core.formats.bounded import gunzip, parse_json
from calque.core.formats.layout import join, place
from calque.errors import Refused
from calque.model.bounds import MESSAGE
from calque.model.hive import Table, location_of

METADATA, PREVIOUS = "metadata_location", "previous_metadata_location"
"""Parameters of a table's definition that name its metadata file, and the one before it."""
ELSEWHERE = "elsewhere"
"""The directory, below a table's location at a target, of files that lie outside of the location at the source."""
NEWEST_FORMAT = 3
PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
"""Properties that say where writers put new files."""

Json = dict[str, Any]


def calls_iceberg(parameters: Mapping[str, Any] | None) -> bool:
    """Tell whether a table's parameters say that it is an Iceberg table."""
    return str((parameters or {}).get("table_type", "")).upper() == "ICEBERG"


def is_iceberg(table: Table) -> bool:
    return calls_iceberg(table.parameters)


def metadata_of(table: Table) -> str:
    """Return the path of the table's metadata file. Raises `Refused` where the definition names none."""
    path = (table.parameters or {}).get(METADATA, "")
    if not path:
        raise Refused(
            f"{table.database}.{table.name} is no readable Iceberg table",
            f"Its definition has no {METADATA}",
            "Register it with its newest metadata file, or drop it",
        )
    return path


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def comparable(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of an Iceberg table in a form that is equal for one version at two places, and differs
    between versions: a metadata file keeps its name everywhere."""
    kept_parameters = {key: value for key, value in parameters.items() if key != PREVIOUS}
    if METADATA in kept_parameters:
        kept_parameters[METADATA] = name_of(kept_parameters[METADATA])
    return kept_parameters


def pointing(table: Table, metadata: str, previous: str | None) -> Table:
    """Return the definition with the metadata files `metadata` and `previous`; None for no previous one."""
    parameters = {key: value for key, value in (table.parameters or {}).items() if key != PREVIOUS}
    parameters[METADATA] = metadata
    if previous is not None:
        parameters[PREVIOUS] = previous
    return replace(table, parameters=parameters)


def is_displaced(table: Table) -> bool:
    """Tell whether an Iceberg table at a target names metadata outside of its own directory. Such a table was made by
    hand, because calque never writes there."""
    metadata, location = (table.parameters or {}).get(METADATA), location_of(table)
    return (
        is_iceberg(table) and bool(metadata and location) and not place(location or "").contains(place(metadata or ""))
    )


def without_places_elsewhere(parameters: Mapping[str, str], location: str) -> dict[str, str]:
    """Return the parameters without places for new files outside of the location, as `moved_properties` leaves them
    out."""
    base = place(location)
    return {key: value for key, value in parameters.items() if key not in PLACES or base.contains(place(value))}


@dataclass(frozen=True, slots=True)
class PathMapping:
    """A mapping of paths below a table's location at the source to paths at the target. Readers match the paths in
    position deletes with those of data files letter by letter, so a target's location has one spelling."""

    source: str
    target: str

    @staticmethod
    def between(source: str, target: str) -> PathMapping:
        """Return the mapping from location `source` to location `target`, in the one spelling of the target's."""
        return PathMapping(source, str(place(target)))

    def at_target(self, path: str) -> str:
        """Return the path at the target. A path outside of the source's location gets a directory of its own, below
        `ELSEWHERE`."""
        base, source_path = place(self.source), place(path)
        if base.contains(source_path):
            return join(self.target, source_path.path[len(base.path) :].lstrip("/"))
        directory, name = str(source_path).rsplit("/", 1)
        return join(self.target, f"{ELSEWHERE}/{xxh3_64_hexdigest(directory)}/{name}")


# Metadata files


def parse_metadata(path: str, content: bytes) -> Json:
    """Parse the content of the metadata file at `path`. Raises `Refused` for one that can't be read, of a format above
    `NEWEST_FORMAT`, or with snapshots without manifest lists."""
    try:
        metadata = parse_json(gunzip(content) if is_compressed(path) else content, MESSAGE)
        version, location = metadata["format-version"], metadata["location"]
        require_shape(metadata)
        has_lists = all("manifest-list" in snapshot for snapshot in snapshots_of(metadata))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(path, error) from error
    if version not in range(1, NEWEST_FORMAT + 1):
        raise Refused(f"{path} has Iceberg format {version}", f"calque knows 1 to {NEWEST_FORMAT}")
    if type(location) is not str or not has_lists:
        raise Refused(
            f"{path} has snapshots without manifest lists",
            "The first Iceberg writers made such",
            "Rewrite the table's metadata with a newer one",
        )
    return dict(metadata)


ENTRIES: Mapping[str, Mapping[str, type]] = {
    "snapshots": {"snapshot-id": int},
    "snapshot-log": {"snapshot-id": int},
    "metadata-log": {"metadata-file": str},
    "statistics": {"statistics-path": str, "snapshot-id": int},
    "partition-statistics": {"statistics-path": str, "snapshot-id": int},
}
"""Lists in a metadata file, with the members of their entries that are used here, and the types of these."""


def require_shape(metadata: Json) -> None:
    """Raise TypeError or KeyError unless each part of the metadata that is used here is there with its type."""
    for key, members in ENTRIES.items():
        for entry in of_type(list, metadata.get(key) or [], key):
            for name, kind in members.items():
                of_type(kind, of_type(dict, entry, key)[name], name)
            if "manifest-list" in entry:
                of_type(str, entry["manifest-list"], "manifest-list")
    for ref in of_type(dict, metadata.get("refs") or {}, "refs").values():
        of_type(int, of_type(dict, ref, "refs")["snapshot-id"], "snapshot-id")
    for value in of_type(dict, metadata.get("properties") or {}, "properties").values():
        of_type(str, value, "properties")
    of_type(int, metadata.get("current-snapshot-id") or 0, "current-snapshot-id")


def of_type(kind: type, value: Any, name: str) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{name} is no {kind.__name__}")
    return value


def metadata_file(path: str, metadata: Json) -> bytes:
    """Return the bytes of a metadata file with this path, compressed where the name says so. Equal metadata give equal
    bytes."""
    content = json.dumps(metadata, ensure_ascii=False).encode()
    return gzip.compress(content, mtime=0) if is_compressed(path) else content


def is_compressed(path: str) -> bool:
    name = name_of(path)
    return name.endswith((".gz.metadata.json", ".metadata.json.gz"))


def unreadable(path: str, error: Exception) -> Refused:
    return Refused(
        f"{path} can't be read as a file of an Iceberg table",
        f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
        "Repair the table at the source",
    )


def snapshots_of(metadata: Json) -> list[Json]:
    """Return the snapshots, the current one first, because without it the others are of no use."""
    current = metadata.get("current-snapshot-id")
    snapshots: list[Json] = list(metadata.get("snapshots") or ())
    return sorted(snapshots, key=lambda snapshot: snapshot["snapshot-id"] != current)


def current_of(metadata: Json) -> Json | None:
    """Return the current snapshot; None where there is none."""
    current = metadata.get("current-snapshot-id")
    return next((one for one in snapshots_of(metadata) if one["snapshot-id"] == current), None)


def statistics_of(metadata: Json) -> list[tuple[str, int]]:
    """Return the paths of files of statistics, each with the id of its snapshot."""
    entries = [*(metadata.get("statistics") or ()), *(metadata.get("partition-statistics") or ())]
    return [(entry["statistics-path"], entry["snapshot-id"]) for entry in entries]


def moved_metadata(
    metadata: Json, paths: PathMapping, snapshots: Collection[int], files: Collection[str], log: Collection[str]
) -> Json:
    """Return the metadata for the target, with the kept `snapshots` alone. `files` are the statistics that were copied,
    `log` the older metadata files that are at the target, both by their paths there."""
    target_metadata = dict(metadata)
    target_metadata["location"] = paths.target
    if "snapshots" in target_metadata:
        target_metadata["snapshots"] = [
            {**snapshot, "manifest-list": paths.at_target(snapshot["manifest-list"])}
            for snapshot in metadata["snapshots"] or ()
            if snapshot["snapshot-id"] in snapshots
        ]
    if metadata.get("refs"):
        target_metadata["refs"] = {
            name: ref for name, ref in metadata["refs"].items() if ref["snapshot-id"] in snapshots
        }
    if metadata.get("snapshot-log"):
        target_metadata["snapshot-log"] = unbroken(metadata["snapshot-log"], snapshots)
    if metadata.get("metadata-log"):
        entries = [
            {**entry, "metadata-file": paths.at_target(entry["metadata-file"])} for entry in metadata["metadata-log"]
        ]
        target_metadata["metadata-log"] = [entry for entry in entries if entry["metadata-file"] in log]
    for key in ("statistics", "partition-statistics"):
        if metadata.get(key):
            statistics = [{**one, "statistics-path": paths.at_target(one["statistics-path"])} for one in metadata[key]]
            target_metadata[key] = [
                one for one in statistics if one["statistics-path"] in files and one["snapshot-id"] in snapshots
            ]
    if metadata.get("properties"):
        target_metadata["properties"] = moved_properties(metadata["properties"], paths)
    return target_metadata


def unbroken(log: list[Json], snapshots: Collection[int]) -> list[Json]:
    """Return the log's newest entries, back to the last one whose snapshot is not there (as Iceberg itself expires
    entries)."""
    kept_entries: list[Json] = []
    for entry in log:
        kept_entries = [*kept_entries, entry] if entry["snapshot-id"] in snapshots else []
    return kept_entries


def moved_properties(properties: Mapping[str, str], paths: PathMapping) -> dict[str, str]:
    """Return the properties with places for new files moved below the new location; places outside of the old one are
    left out."""
    base = place(paths.source)
    target_properties = dict(properties)
    for key in PLACES:
        if key in target_properties:
            location = target_properties.pop(key)
            if base.contains(place(location)):
                target_properties[key] = paths.at_target(location)
    return target_properties


def metadata_log(path: str, metadata: Json) -> set[str]:
    """Return the paths of a metadata file and of the older ones that it names."""
    return {path, *(entry["metadata-file"] for entry in metadata.get("metadata-log") or ())}
