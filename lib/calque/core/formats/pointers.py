"""Pointers: every place from which a definition has engines read rows. A place is followed, or has the object set
aside.

`hive.location_of` says where the rows of a table or partition lie. Every other naming of a place is a `Pointer` here.
Followed places go along with the object: `relocated` rewrites all of them for another place. docs/files.md has the
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from calque.core.formats import attached
from calque.core.formats.embedded_places import END, OWN_PLACE, anchor_of, holds, lies_in, replaced
from calque.core.formats.iceberg import METADATA, PLACES, PREVIOUS, calls_iceberg
from calque.core.formats.layout import Place, is_data, place
from calque.core.formats.symlinks import is_symlinks
from calque.errors import Refused
from calque.model.hive import (
    Partition,
    Storage,
    Table,
    is_delta,
    is_path,
    is_view,
    location_of,
    provider_of,
    says_provider,
)

Thing = TypeVar("Thing", Table, Partition)
LOGIN = re.compile(r"//[^/]*@")
PARAMETERS_OF_URI = re.compile("[?;#]")
SKEW = "storage.skew.locations"
NOTES = frozenset(
    {"comment", "columns.comments", "avro.schema.literal", "COLUMN_STATS_ACCURATE", "transient_lastDdlTime"}
)
"""Keys of parameters whose values name no place: texts for people, by which no engine reads rows, and statistics."""
METADATA_FILES = frozenset({METADATA, PREVIOUS})
ICEBERG_PLACES = frozenset(f"parameters.{key}" for key in PLACES)
"""Parameters with places for writers' new files. Places outside of the table's own are left out at a target."""
DIGITS = 20
"""Digits of a value that is taken for a number; a longer one may be hexadecimal text, and may name a place."""
SHORTEST = 4
"""Characters of a place, `/d/t`."""
BEGINNINGS_OF_NOTES = ("calque.", "spark.sql.sources.schema", "spark.sql.statistics.")
"""Beginnings of further keys whose values name no place: calque's marks, Spark's columns with their comments, Spark's
statistics."""


class PointerKind(StrEnum):
    """The kind of parameter or field that names a place."""

    LOCATION = "location"
    PATH = "Spark's path"
    SCHEMA = "schema file"
    VALUE = "value of a parameter"
    SYMLINKS = "symlink files"
    PROJECTION = "partition projection"
    FLINK = "Flink's own table"
    ARCHIVE = "archived partition"
    SOURCE = "Spark's data source"
    UNLISTED = "partitions that the metastore does not have"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place that a definition names under `key`. `refusal` says why the object is set aside; it is empty where the
    place is followed."""

    kind: PointerKind
    key: str
    value: str
    refusal: str = ""


PROJECTION = "their template names a place that is not below the table's own"
FLINK = "Flink alone reads them, from the place that its own parameters name"
ARCHIVE = "it goes on naming the place that its rows had before"
NO_FILES = "their rows are in another system"
UNLISTED = "Spark finds their partitions by looking at directories"
NO_PLACE = "their location is a placeholder of Spark's, and the SerDe has no path"
ELSEWHERE = "a parameter names a place of its database that is not the object's own"
NOT_COPIED = "a parameter names a hidden place below its own, which is not copied"
ENCODED = "a parameter names a place of its own in a form in which it is not rewritten"

WITHOUT_FILES = ("jdbc", "kafka", "mongodb", "cassandra", "hbase", "org.apache.spark.sql.cassandra", "com.mongodb")
"""Beginnings of names and classes of Spark's data sources that read no files."""


def pointers_of(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield all places that the definition names. A view names none. The files of an Iceberg table are not among them,
    because its metadata name them and are rewritten for the new place (`core.formats.iceberg`)."""
    if isinstance(thing, Table) and is_view(thing):
        return
    if location := location_of(thing):
        yield Pointer(PointerKind.LOCATION, "location", location)
    if is_symlinks(thing):
        yield Pointer(PointerKind.SYMLINKS, "input format", (thing.storage or Storage()).input_format or "")
    for name, values in parameters_of(thing):
        for key, value in values.items():
            if (pointer := known_pointer(name, key, value)) is not None:
                yield pointer
    yield from other_pointers(thing)


def other_pointers(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield the places, of an object that is no view, that have no rule of their own by which they are followed."""
    yield from refused_pointers(thing)
    yield from value_pointers(thing)


def refusals(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield the places because of which the object is set aside; none for a view."""
    if not (isinstance(thing, Table) and is_view(thing)):
        yield from (pointer for pointer in other_pointers(thing) if pointer.refusal)


def parameters_of(thing: Table | Partition) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each non-empty map of parameters with the name that `verify` gives it. The locations of skewed values are
    one of them, because Hive reads those values by them."""
    storage = thing.storage
    serde = storage.serde if storage is not None else None
    for name, values in (
        ("parameters", thing.parameters),
        ("storage.parameters", storage.parameters if storage is not None else None),
        ("serde.parameters", serde.parameters if serde is not None else None),
    ):
        if values:
            yield name, values
    if storage is not None and storage.skew is not None and storage.skew.locations:
        yield SKEW, {",".join(key): value for key, value in storage.skew.locations.items()}


def known_pointer(name: str, key: str, value: str) -> Pointer | None:
    """Return the place that a parameter names by its key alone: an Avro schema's file, or Spark's path. None for other
    keys."""
    if key == attached.KEY:
        return Pointer(PointerKind.SCHEMA, f"{name}.{key}", value)
    if name == "serde.parameters" and is_path(key):
        return Pointer(PointerKind.PATH, f"{name}.{key}", value)
    return None


def refused_pointers(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield the places that no rewriting can follow: archived partitions, partition projection elsewhere, Flink's own
    tables, data sources of Spark without a place."""
    parameters = {key.lower(): value for key, value in (thing.parameters or {}).items()}
    if isinstance(thing, Partition):
        if (original := parameters.get("original_location")) or is_true(parameters.get("is_archived")):
            yield Pointer(PointerKind.ARCHIVE, "parameters.original_location", original or "", ARCHIVE)
        return
    if is_delta(thing) or calls_iceberg(parameters):
        return
    template = parameters.get("storage.location.template", "")
    if template and not put_below(template, own_places(thing), OWN_PLACE).startswith(OWN_PLACE):
        yield Pointer(PointerKind.PROJECTION, "parameters.storage.location.template", template, PROJECTION)
    if is_true(parameters.get("is_generic")) or "flink.path" in parameters or "flink.connector" in parameters:
        yield Pointer(PointerKind.FLINK, "parameters.flink.path", parameters.get("flink.path", ""), FLINK)
    if says_provider(parameters):
        yield from refused_sources(thing, parameters)


def refused_sources(table: Table, parameters: Mapping[str, str]) -> Iterator[Pointer]:
    """Yield the refusal, if any, of a table that Spark reads by a data source of its own. `parameters` have lower-case
    keys."""
    key, provider = "parameters.spark.sql.sources.provider", provider_of(parameters)
    if provider.startswith(WITHOUT_FILES):
        yield Pointer(PointerKind.SOURCE, key, provider, NO_FILES)
    elif table.partition_keys and parameters.get("spark.sql.partitionprovider", "").lower() == "filesystem":
        yield Pointer(PointerKind.UNLISTED, key, provider, UNLISTED)
    elif not location_of(table) and (table.storage or Storage()).location:
        yield Pointer(PointerKind.SOURCE, key, provider, NO_PLACE)


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() == "true"


# Values that name a place of the object's


def value_pointers(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield the parameters that are none of the known pointers, and whose value is, or contains, a place of the object
    or of its database."""
    values = values_for_places(thing)
    if not values:
        return
    own_roots, other_roots = own_places(thing), other_places(thing)
    shortest = min((len(anchor_of(root)) for root in (*own_roots, *other_roots)), default=0)
    left_out = ICEBERG_PLACES if calls_iceberg(thing.parameters) else frozenset()
    for key, value in values:
        refusal = refusal_of(value, own_roots, other_roots) if len(value) >= shortest else None
        if refusal is not None and not (refusal and key in left_out):
            yield Pointer(PointerKind.VALUE, key, value, refusal)


def refusal_of(value: str, own_roots: list[Place], other_roots: list[Place]) -> str | None:
    """Return the reason why a value of a parameter can't be rewritten for the object's place at the target; an empty
    text where it can, and None for a value that names no place of the object and stays as it is."""
    elsewhere = put_below(value, own_roots, OWN_PLACE)
    if holds(elsewhere, [*own_roots, *other_roots]):
        return ENCODED if holds(elsewhere, own_roots) else ELSEWHERE
    if elsewhere == value:
        return None
    return "" if all(map(is_data, names_below(elsewhere))) else NOT_COPIED


def names_below(text: str) -> Iterator[str]:
    """Yield each path that a text names below the object's own place, which is written as `OWN_PLACE` there."""
    first, *places = text.split(OWN_PLACE)
    for rest in places:
        yield (END.split(rest, maxsplit=1)[0] if first or len(places) > 1 else rest).strip("/")


def values_for_places(thing: Table | Partition) -> list[tuple[str, str]]:
    """Return the keys and values of parameters that may name a place and are none of the known pointers. Numbers and
    short texts are left out, which most parameters are."""
    metadata = METADATA_FILES if calls_iceberg(thing.parameters) else frozenset()
    return [
        (f"{name}.{key}", value)
        for name, values in parameters_of(thing)
        for key, value in values.items()
        if may_name_places(key, value) and key not in metadata and known_pointer(name, key, value) is None
    ]


def may_name_places(key: str, value: str) -> bool:
    is_short = len(value) <= DIGITS and (len(value) < SHORTEST or value.isdigit())
    return not (is_short or key in NOTES or key.startswith(BEGINNINGS_OF_NOTES))


def notes(thing: Table | Partition) -> Iterator[Pointer]:
    """Yield the other places that parameters name, for instance the page of a wiki; they stay as they are."""
    if isinstance(thing, Table) and is_view(thing):
        return
    pointing = {pointer.key for pointer in pointers_of(thing)}
    known = METADATA_FILES.union(PLACES) if calls_iceberg(thing.parameters) else frozenset()
    for name, values in parameters_of(thing):
        for key, value in values.items():
            is_note = "://" in value and key not in known and not key.startswith("calque.")
            if is_note and f"{name}.{key}" not in pointing:
                yield Pointer(PointerKind.VALUE, f"{name}.{key}", without_login(value))


def without_login(value: str) -> str:
    """Return a URI as it may be shown: without a user's name, a password, and the text behind the path."""
    return LOGIN.sub("//", PARAMETERS_OF_URI.split(value, maxsplit=1)[0])


def own_places(thing: Table | Partition) -> list[Place]:
    """Return the places that are the object's own: its location, and the metastore's where that is another."""
    locations = dict.fromkeys((location_of(thing), thing.storage.location if thing.storage is not None else None))
    return [found for location in locations if (found := place_or_none(location or "")) is not None]


def other_places(thing: Table | Partition) -> list[Place]:
    """Return the directories of the object's database and, for a partition, of its table, as far as the location tells
    them."""
    location = (thing.storage.location if thing.storage is not None else None) or ""
    names = location.rstrip("/").split("/")
    directories = []
    database = f"{thing.database.lower()}.db"
    above = next((index for index in range(len(names) - 2, 0, -1) if names[index].lower() == database), None)
    if above is not None:
        directories.append(names[: above + 1])
    if isinstance(thing, Partition) and (depth := len(thing.values)) and all("=" in name for name in names[-depth:]):
        directories.append(names[:-depth])
    return [found for one in directories if (found := place_or_none("/".join(one))) is not None and found.path != "/"]


def place_or_none(location: str) -> Place | None:
    try:
        return place(location)
    except Refused:
        return None


# Going along


def moved(storage: Storage | None, location: str | None) -> Storage | None:
    """Return `storage` at another location, `serdeInfo.parameters.path` with it; None for an object without storage."""
    if storage is None:
        return None
    serde = storage.serde
    if serde is not None and serde.parameters and location and any(map(is_path, serde.parameters)):
        values = {key: location if is_path(key) else value for key, value in serde.parameters.items()}
        serde = replace(serde, parameters=values)
    return replace(storage, location=location, serde=serde)


def relocated(thing: Thing, location: str | None) -> Thing:
    """Return the object at another place, with all that it names below its own. `location` is None for a place that is
    not said: `OWN_PLACE` stands for it."""
    elsewhere = with_values_below(thing, location or OWN_PLACE)
    return replace(elsewhere, storage=moved(elsewhere.storage, location))


def with_values_below(thing: Thing, location: str) -> Thing:
    """Return the object with the paths that its parameters name below its own place put below `location`; its storage's
    location stays."""
    if isinstance(thing, Table) and is_view(thing):
        return thing
    values = values_for_places(thing)
    if not values:
        return thing
    roots = own_places(thing)
    if place_or_none(location) in roots:
        return thing
    texts = {key: text for key, value in values if (text := put_below(value, roots, location)) != value}

    def put(name: str, values: Mapping[str, str] | None) -> Mapping[str, str] | None:
        return values and {key: texts.get(f"{name}.{key}", value) for key, value in values.items()}

    if not texts:
        return thing
    storage = thing.storage
    if storage is not None:
        serde = storage.serde
        if serde is not None:
            serde = replace(serde, parameters=put("serde.parameters", serde.parameters))
        skew = storage.skew
        if skew is not None and skew.locations:
            locations = {key: put_below(value, roots, location) for key, value in skew.locations.items()}
            skew = replace(skew, locations=locations)
        storage = replace(storage, serde=serde, skew=skew, parameters=put("storage.parameters", storage.parameters))
    return replace(thing, parameters=put("parameters", thing.parameters), storage=storage)


def placeless(thing: Table | Partition) -> Table | Partition:
    """Return the object with `OWN_PLACE` for its own place in parameters, so that objects that differ only in place are
    equal."""
    match thing:
        case Table():
            return with_values_below(thing, OWN_PLACE)
        case Partition():
            return with_values_below(thing, OWN_PLACE)


def put_below(value: str, roots: list[Place], location: str) -> str:
    """Return the value with each of the places `roots` that stands in it plainly replaced by `location`."""
    found = place_or_none(value) if value[:1] == "/" or ":/" in value else None
    root = next((root for root in roots if lies_in(value, found, root)), None) if found is not None else None
    if found is not None and root is not None:
        rest = found.path[len(root.path.rstrip("/")) :]
        if ":/" not in rest and not holds(f"{OWN_PLACE}{rest}", roots):
            end = "/" if rest and value.endswith("/") else ""
            return f"{location.rstrip('/')}{rest}{end}"
    return replaced(value, roots, location)


def leading_back(source: Table | Partition, target: Table | Partition) -> Iterator[Pointer]:
    """Yield the places of the source's object, or of its database, that the object at a target names: reads by them
    would reach the source's files."""
    if isinstance(target, Table) and is_view(target):
        return
    own_roots, roots = own_places(target), own_places(source)
    if location := location_of(target):
        found = place_or_none(location)
        if found is not None and any(root.contains(found) for root in roots):
            yield Pointer(PointerKind.LOCATION, "location", location)
            return
    roots += other_places(source)
    for name, values in parameters_of(target):
        for key, value in values.items():
            if may_name_places(key, value) and holds(put_below(value, own_roots, OWN_PLACE), roots):
                yield Pointer(PointerKind.VALUE, f"{name}.{key}", value)
