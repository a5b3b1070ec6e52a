"""Comparison of source and target: the differences between a target's objects and the policy's images of the source's.

Locations are no part of equality (but for `data = "none"`, where they are the data), nor are values that a metastore
sets by itself; marks and statistics are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from calque.core.formats.bounded import number_of
from calque.core.formats.layout import full_paths, place
from calque.core.formats.pointers import leading_back
from calque.core.images.image import (
    DROPPED,
    EVENT,
    INCARNATION,
    STATE,
    STATISTICS,
    ImageBuilder,
    Marks,
    canonical,
    is_ours,
)
from calque.core.images.table_layout import committed_format
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import (
    Database,
    Function,
    Partition,
    Table,
    is_partitioned,
    is_transactional,
    is_view,
    location_of,
)
from calque.model.names import EventId, Span, TableName

SHOWN = 3
"""The number of files that a difference names."""
WIDTH = 120
"""The number of characters of a value that a difference shows."""
TABLE, DATABASE, FUNCTION = "table", "database", "function"
"""Kinds of objects, as in the ledger's rows."""
FORMS = {EVENT: re.compile("([0-9]+)"), INCARNATION: re.compile("r?([0-9]+)")}
"""Marks whose value does not follow from the source's object, with the form that it must have."""
NO_MARKS = Marks(0, "")


class DifferenceKind(StrEnum):
    """The kind of a difference. `FOREIGN`: an object that is not calque's stands in the place of one of the source's.
    `FILES`: paths or sizes differ. `CONTENT`: checksums differ."""

    MISSING = "missing"
    EXTRA = "extra"
    DEFINITION = "definition"
    FILES = "files"
    CONTENT = "content"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between source and target. `table` is the source's name of the object, which is a table or view, a
    database or a function as `of` says; `partition` is empty for the object itself. `source` and `target` are short
    texts of the two sides; the source's is that of its image."""

    table: TableName
    partition: str
    kind: DifferenceKind
    what: str
    source: str | None = None
    target: str | None = None
    of: str = TABLE


@dataclass(frozen=True, slots=True)
class ComparedCounts:
    """The amount that was compared, counted at the source. Views are tables."""

    databases: int = 0
    tables: int = 0
    partitions: int = 0
    files: int = 0
    bytes: int = 0

    def __add__(self, other: ComparedCounts) -> ComparedCounts:
        return ComparedCounts(
            self.databases + other.databases,
            self.tables + other.tables,
            self.partitions + other.partitions,
            self.files + other.files,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class TableSide:
    """A table at one side. `listings` are by partition, `""` for a plain table's own, and empty when the files were not
    listed."""

    table: Table | None = None
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)


def compare_table(
    name: TableName, source: TableSide, target: TableSide, imaging: ImageBuilder, head: EventId
) -> tuple[ComparedCounts, list[Difference]]:
    """Compare a table of the source with the target's of its name: return the counts and the differences, of files by
    path and size where they were listed. No mark may name an event beyond `head`."""
    table, target_table = source.table, target.table
    if table is None:
        if (
            target_table is None
            or not is_ours(target_table.parameters, imaging.source)
            or imaging.admission.policy.drops == "keep"
        ):
            return ComparedCounts(), []
        return ComparedCounts(), [
            Difference(name, "", DifferenceKind.EXTRA, noun(target_table), None, called(target_table))
        ]
    counts = counted(source)
    if target_table is None:
        return counts, [Difference(name, "", DifferenceKind.MISSING, noun(table), called(table), None)]
    if not is_ours(target_table.parameters, imaging.source):
        return counts, [foreign(name, TABLE, called(table), called(target_table))]
    differences = compare_header(name, table, target_table, imaging, head)
    if not same_keys(table, target_table):
        return counts, differences
    for partition in sorted(source.partitions.keys() | target.partitions.keys()):
        differences += compare_partition(name, partition, source, target, imaging, head)
    if not is_view(table) and not is_partitioned(table):
        differences += compare_files(name, "", source.listings.get(""), target.listings.get(""))
    return counts, differences


def compare_header(
    name: TableName, table: Table, target_table: Table, imaging: ImageBuilder, head: EventId
) -> list[Difference]:
    """Return the differences of a table beside its partitions and files."""
    expected = imaging.table(table, NO_MARKS, location_of(target_table))
    differences = compare_definitions(name, "", expected, target_table, ignored=facets_of(target_table))
    differences += compare_marks(name, "", target_table.parameters, (EVENT, INCARNATION), head)
    differences += compare_pointers(name, "", table, target_table, imaging)
    if not imaging.admission.copies(name) and not is_view(table):
        differences += compare_locations(name, "", table, target_table)
    return differences


def compare_partition(
    name: TableName, partition: str, source: TableSide, target: TableSide, imaging: ImageBuilder, head: EventId
) -> list[Difference]:
    """Return the differences of one partition, which one of the sides may lack."""
    source_partition, target_partition = source.partitions.get(partition), target.partitions.get(partition)
    if target_partition is None:
        return [Difference(name, partition, DifferenceKind.MISSING, "partition", partition, None)]
    if source_partition is None:
        return [Difference(name, partition, DifferenceKind.EXTRA, "partition", None, partition)]
    expected = imaging.partition(source_partition, name, NO_MARKS, location_of(target_partition))
    ignored = facets_of(target.table) if target.table is not None else frozenset()
    differences = compare_definitions(name, partition, expected, target_partition, ignored=ignored)
    differences += compare_marks(name, partition, target_partition.parameters, (EVENT, INCARNATION), head)
    differences += compare_pointers(name, partition, source_partition, target_partition, imaging)
    if not imaging.admission.copies(name):
        differences += compare_locations(name, partition, source_partition, target_partition)
    return differences + compare_files(name, partition, source.listings.get(partition), target.listings.get(partition))


def compare_database(
    name: TableName, source: Database, target: Database, imaging: ImageBuilder, head: EventId
) -> list[Difference]:
    """Return the differences of a database that is calque's. An owner that only the target has is none, because Hive 4
    gives a database without an owner the user that makes it."""
    expected = imaging.database(source, 0, target.location)
    if not expected.owner:
        expected = replace(expected, owner=target.owner, owner_type=target.owner_type)
    differences = compare_definitions(name, "", expected, target) + compare_marks(
        name, "", target.parameters, (EVENT,), head
    )
    return [replace(difference, of=DATABASE) for difference in differences]


def compare_function(name: TableName, source: Function, target: Function, imaging: ImageBuilder) -> list[Difference]:
    """Return the differences of a function: class, type and resources. The owner is not compared, because an equal
    function that was there before keeps its own."""
    image = imaging.function(source)
    expected = replace(target, class_name=image.class_name, type=image.type, resources=image.resources)
    differences = compare_definitions(name, "", expected, target)
    return [replace(difference, what=f"function: {difference.what}", of=FUNCTION) for difference in differences]


def foreign(name: TableName, of: str, source: str, at_target: str) -> Difference:
    """Return the difference for an object at the target that is not calque's. `of` is the kind of the object, as in
    `Difference.of`; `source` and `at_target` say what each side has."""
    what = "what stands there is not ours: no matching calque.source"
    return Difference(name, "", DifferenceKind.FOREIGN, what, source, at_target, of)


# Definitions


def facets_of(target_table: Table) -> frozenset[str]:
    """Return the parameters of a target's table that need not be the source's: the log of a Delta table has statistics
    of its own, and an ACID table has none that a replication may write."""
    return STATISTICS if committed_format(target_table) or is_transactional(target_table) else frozenset()


def compare_definitions(
    name: TableName, partition: str, expected: object, actual: object, *, ignored: frozenset[str] = frozenset()
) -> list[Difference]:
    """Return one difference for each differing field. There is none exactly when `core.images.image.same_definition`
    holds, but for the marks of `FORMS`, `calque.state`, `calque.dropped` and the `ignored` parameters."""
    expected_values, actual_values = leaves(expected, ignored), leaves(actual, ignored)
    differences = []
    for what in sorted(expected_values.keys() | actual_values.keys()):
        if expected_values.get(what, ABSENT) != actual_values.get(what, ABSENT):
            source, target = shortened(text_of(what, expected_values), text_of(what, actual_values))
            differences.append(Difference(name, partition, DifferenceKind.DEFINITION, what, source, target))
    return differences


NESTED = frozenset({"storage", "serde", "skew"})
RECORDS = frozenset({"columns", "partition keys", "sort columns", "resources"})
ABSENT = object()


def leaves(thing: object, ignored: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the values of a definition's canonical form by the names of its fields: "owner", "columns", "partition
    keys", "parameters.k", "serde.parameters.k"."""
    values: dict[str, Any] = {}

    def gather(form: Any, above: tuple[str, ...]) -> None:
        for name, value in form or ():
            if name in NESTED:
                gather(value, (*above, name))
            elif name == "parameters":
                prefix = ".".join([*(above[-1:]), name])
                values.update({f"{prefix}.{key}": text for key, text in value})
            else:
                values[".".join([*(word for word in above[-1:] if word != "storage"), name.replace("_", " ")])] = value

    gather(canonical(thing, ignored | {STATE, DROPPED, INCARNATION}), ())
    return values


def text_of(what: str, values: Mapping[str, Any]) -> str | None:
    if what not in values:
        return None
    value = values[what]
    if what in RECORDS:
        return ", ".join(" ".join(plain_text(item) for _, item in record or ()) for record in value)
    return plain_text(value)


def plain_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(plain_text(item) for item in value)
    return "" if value is None else str(value)


def shortened(source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """Return both texts cut to `WIDTH` characters around the first place where they differ."""
    pairs = zip(source or "", target or "", strict=False)
    first_difference = next((index for index, (one, other) in enumerate(pairs) if one != other), 0)
    start = max(first_difference - WIDTH // 3, 0) if max(len(source or ""), len(target or "")) > WIDTH else 0

    def cut(text: str | None) -> str | None:
        if text is None:
            return None
        end = start + WIDTH
        return f"{'…' if start and text else ''}{text[start:end]}{'…' if text[end:] else ''}"

    return cut(source), cut(target)


def compare_marks(
    name: TableName, partition: str, parameters: Mapping[str, str] | None, keys: Iterable[str], head: EventId
) -> list[Difference]:
    """Return a difference for each mark of `keys` that is absent, not of its form in `FORMS`, or newer than `head`."""
    differences = []
    for key in keys:
        value = (parameters or {}).get(key)
        form = FORMS[key].fullmatch(value or "")
        if form is None or number_of(form[1], head + 1) > head:
            expected_form = f"an event id up to {head}"
            differences.append(
                Difference(name, partition, DifferenceKind.DEFINITION, f"parameters.{key}", expected_form, value)
            )
    return differences


def compare_pointers(
    name: TableName, partition: str, source: Table | Partition, target: Table | Partition, imaging: ImageBuilder
) -> list[Difference]:
    """Return the places by which an object leads its readers to the source although its files are copied."""
    if not imaging.admission.copies(name):
        return []
    return [
        Difference(
            name, partition, DifferenceKind.DEFINITION, f"{pointer.key}: leads to the source", None, pointer.value
        )
        for pointer in leading_back(source, target)
    ]


def compare_locations(
    name: TableName, partition: str, source: Table | Partition, target: Table | Partition
) -> list[Difference]:
    """Return the difference of the locations of an object whose files stay at the source, so that both must be one
    place."""
    if same_place(source, target):
        return []
    return [
        Difference(name, partition, DifferenceKind.DEFINITION, "location", location_of(source), location_of(target))
    ]


def same_place(source: Table | Partition, target: Table | Partition) -> bool:
    """Tell whether both definitions point at one directory."""
    source_location, target_location = location_of(source), location_of(target)
    return source_location == target_location or bool(
        source_location and target_location and place_or_text(source_location) == place_or_text(target_location)
    )


def place_or_text(location: str) -> object:
    try:
        return place(location)
    except Refused:
        return location


# Files


def compare_files(name: TableName, partition: str, source: Listing | None, target: Listing | None) -> list[Difference]:
    """Return the differences of paths and sizes; times are not compared. Files that were listed at neither side are not
    compared."""
    if source is None and target is None:
        return []
    source_sizes = {file.path: file.size for file in source.files} if source else {}
    target_sizes = {file.path: file.size for file in target.files} if target else {}
    changes = {
        "missing": sorted(source_sizes.keys() - target_sizes.keys()),
        "extra": sorted(target_sizes.keys() - source_sizes.keys()),
        "other size": sorted(
            path for path in source_sizes.keys() & target_sizes.keys() if source_sizes[path] != target_sizes[path]
        ),
    }
    what = "; ".join(f"{change}: {some(paths)}" for change, paths in changes.items() if paths)
    if not what:
        return []
    return [Difference(name, partition, DifferenceKind.FILES, what, amount(source_sizes), amount(target_sizes))]


def amount(sizes: Mapping[str, int]) -> str:
    return f"{len(sizes)} {'file' if len(sizes) == 1 else 'files'}, {sum(sizes.values())} bytes"


def some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more


@dataclass(frozen=True, slots=True)
class FilePair:
    """A file that both sides have in equal size, with the full path at each."""

    partition: str
    path: str
    source: str
    target: str


def file_pairs(source: TableSide, target: TableSide) -> list[FilePair]:
    """Return the files whose contents can be compared. Files of a combined directory are left out."""
    pairs = []
    for partition in sorted(source.listings.keys() & target.listings.keys()):
        source_listing, target_listing = source.listings[partition], target.listings[partition]
        if target_listing.combination is not None:
            continue
        sizes = {file.path: file.size for file in target_listing.files}
        paths, target_paths = full_paths(source_listing), full_paths(target_listing)
        pairs += [
            FilePair(partition, file.path, paths[file.path], target_paths[file.path])
            for file in source_listing.files
            if sizes.get(file.path) == file.size
        ]
    return pairs


def compare_contents(
    name: TableName, pairs: Sequence[FilePair], source: Mapping[str, str], target: Mapping[str, str]
) -> list[Difference]:
    """Return the differences of contents. `source` and `target` have checksums by full path; a file without one has
    vanished meanwhile."""
    differing: dict[str, list[FilePair]] = {}
    for pair in pairs:
        if source.get(pair.source) != target.get(pair.target):
            differing.setdefault(pair.partition, []).append(pair)
    return [
        Difference(
            name,
            partition,
            DifferenceKind.CONTENT,
            f"other content: {some([pair.path for pair in differing_pairs])}",
            source.get(differing_pairs[0].source),
            target.get(differing_pairs[0].target),
        )
        for partition, differing_pairs in differing.items()
    ]


# Places and event ids


def places_of(target: TableSide) -> list[tuple[str, str]]:
    """Return the directories of a target's table and its partitions (`""`: the table); none for a view."""
    if target.table is None or is_view(target.table):
        return []
    things: list[tuple[str, Table | Partition]] = [("", target.table), *target.partitions.items()]
    return [(partition, location) for partition, thing in things if (location := location_of(thing))]


def shared_places(places: Iterable[tuple[TableName, str, str]]) -> list[tuple[tuple[TableName, str], ...]]:
    """Return the objects (table, partition) that share a directory, each group sorted. `places` are triples of table,
    partition and location."""
    objects: dict[object, list[tuple[TableName, str]]] = {}
    for table, partition, location in places:
        objects.setdefault(place_or_text(location), []).append((table, partition))
    return [tuple(sorted(group)) for group in objects.values() if len(group) > 1]


def common_event(spans: Sequence[Span], newest: EventId) -> EventId:
    """Return the newest event id, at most `newest`, at which every comparison holds; where there is none, the newest at
    which one does. A span holds from its `after` to its `upto`, both included: 80..90 and 85..95 hold together up to
    90."""
    if not spans:
        return newest
    last = min(newest, min(span.upto for span in spans))
    return last if max(span.after for span in spans) <= last else min(newest, max(span.upto for span in spans))


# Words


def counted(source: TableSide) -> ComparedCounts:
    files = sum(len(listing.files) for listing in source.listings.values())
    return ComparedCounts(
        0, 1, len(source.partitions), files, sum(listing.size for listing in source.listings.values())
    )


def same_keys(table: Table, target_table: Table) -> bool:
    """Tell whether both tables have the same partition keys, and both are views or neither is."""
    keys = [[key.name.lower() for key in side.partition_keys or ()] for side in (table, target_table)]
    return keys[0] == keys[1] and is_view(table) == is_view(target_table)


def noun(table: Table) -> str:
    return "view" if is_view(table) else "table"


def called(table: Table) -> str:
    return f"{noun(table)} {table.database}.{table.name}".lower()
