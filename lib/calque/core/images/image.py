"""Images: the form in which a target shows the source's objects, marks included (contract: "What a target's objects
carry"), and the test whether two definitions are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache

from calque.core.formats import attached
from calque.core.formats.iceberg import calls_iceberg, comparable, is_iceberg, without_places_elsewhere
from calque.core.formats.pointers import placeless, relocated
from calque.core.images.own_parameters import without_link
from calque.core.images.view_engines import current_database, require_rewritable, with_databases_at_target
from calque.core.policy.admit import Admission
from calque.model.hive import (
    BASIC_STATISTICS,
    HIVE_POSITION,
    OWN_POSITION_AT_HIVE,
    VOLATILE,
    Database,
    Function,
    Partition,
    Table,
    is_transactional,
    is_view,
    location_of,
)
from calque.model.names import EventId, TableName, table_name

SOURCE, EVENT, INCARNATION, TYPE, ORIGIN = (
    "calque.source",
    "calque.event",
    "calque.incarnation",
    "calque.type",
    "calque.origin",
)
STATE = "calque.state"
DROPPED = "calque.dropped"
FORMAT = "calque.format"
"""The mark of a table that was to be a Delta table at the target: `delta` where it is one, else `plain: ` and the
reason."""
ROWS = "calque.rows"
"""The mark of an ACID table whose rows lie at the target in files that are none of the source's: `full` where the rows
have ids, else `insert_only`."""
MARKS = frozenset({SOURCE, EVENT, INCARNATION, TYPE, ORIGIN, STATE, DROPPED, FORMAT, ROWS})
PARKED = frozenset(
    {
        "translated_to_external",
        "external.table.purge",
        "auto.purge",
        "discover.partitions",
        "partition.retention.period",
        "transactional",
        "transactional_properties",
    }
)
TRANSACTIONAL = frozenset({"transactional", "transactional_properties"})
STATISTICS = BASIC_STATISTICS
"""Parameters that are facets (docs/glossary.md)."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that an object at the target carries: the event that it shows, and its incarnation."""

    event: EventId
    incarnation: str


def is_parked(key: str) -> bool:
    """Tell whether a parameter would make the target's metastore act by itself, so that an image parks it."""
    low = key.lower()
    return low in PARKED or low.startswith(("repl.", "hive.repl."))


def parked(parameters: Mapping[str, str] | None) -> dict[str, str]:
    """Return the parameters of a source's object for an image: without marks of another calque, and dangerous ones
    under `calque.source.`. A link's parameters are left out, because the target would connect by them."""
    parked_parameters: dict[str, str] = {}
    for key, value in without_link(parameters or {}).items():
        if key not in MARKS and key != attached.PARKED:
            parked_parameters[f"{SOURCE}.{key}" if is_parked(key) else key] = value
    return parked_parameters


COMMIT_MARK = "_meta_calque.event"
"""The parameter of an ACID table that a commit of calque's sets: the event whose rows it shows."""
OF_ACID_TABLES = {"no_auto_compaction": "true"}


def of_acid_table(said: Mapping[str, str] | None, parameters: Mapping[str, str], marks: Marks) -> dict[str, str]:
    """Return the parameters of a table that is an ACID table at the target, too, from those of the source's table and
    the parked ones. It has no basic statistics, because its metastore permits them with a write id alone."""
    own = {key: value for key, value in (said or {}).items() if key.lower() in TRANSACTIONAL}
    kept = {
        key: value
        for key, value in parameters.items()
        if key not in STATISTICS and key.removeprefix(f"{SOURCE}.").lower() not in TRANSACTIONAL
    }
    return {**kept, **own, **OF_ACID_TABLES, COMMIT_MARK: str(marks.event)}


def as_in(table: Table, partition: Partition) -> Partition:
    """Return the image of a partition as the target's `table` has it: that of an ACID table has no basic statistics."""
    if not is_transactional(table):
        return partition
    parameters = {key: value for key, value in (partition.parameters or {}).items() if key not in STATISTICS}
    return replace(partition, parameters=parameters)


def origin_of(parameters: Mapping[str, str] | None, source: str) -> str:
    """Return the sources that an object came through, oldest first, comma-separated, ending with `source`."""
    before = (parameters or {}).get(ORIGIN, "")
    return f"{before},{source}" if before else source


def source_mark(source: str, name: TableName) -> str:
    return f"{source}:{name}"


def is_ours(parameters: Mapping[str, str] | None, source: str) -> bool:
    """Tell whether the mark in the parameters says that the object is a replica from `source`."""
    return (parameters or {}).get(SOURCE, "").startswith(f"{source}:")


@dataclass(frozen=True, slots=True)
class ImageBuilder:
    """The images of a source's objects under one target's policy."""

    admission: Admission

    @property
    def source(self) -> str:
        return self.admission.policy.source

    def table(self, table: Table, marks: Marks, location: str | None) -> Table:
        """Return the image of a table or view. `location` is the directory of its data at the target, None for a view.
        Raises `Refused` for a view that the policy's renames need rewritten and that can't be.

        A table without partition keys gets an empty list of them where a message has none, because Hive 4 refuses to
        alter an empty list to an absent one.
        """
        name = table_name(table.database, table.name)
        to = self.admission.name_at_target(name)
        parameters = parked(table.parameters)
        view, native = is_view(table), is_transactional(table) and self.admission.acid(name) == "native"
        if native:
            parameters = of_acid_table(table.parameters, parameters, marks)
        elif not view:
            parameters["EXTERNAL"] = "TRUE"
            if is_iceberg(table) and self.admission.copies(name) and (place_at_source := location_of(table)):
                parameters = without_places_elsewhere(parameters, place_at_source)
        elif self.admission.policy.rename:
            require_rewritable(table)
            parameters = with_databases_at_target(parameters, self.admission.name_at_target)
        for key, value in self.admission.policy.properties.items():
            if value:
                parameters[key] = value
            else:
                parameters.pop(key, None)
        parameters |= {
            SOURCE: source_mark(self.source, name),
            EVENT: str(marks.event),
            INCARNATION: marks.incarnation,
            TYPE: (table.parameters or {}).get(TYPE) or table.type or "",
            ORIGIN: origin_of(table.parameters, self.source),
        }
        image = replace(
            table,
            database=to.database,
            name=to.table,
            type=table.type if view else "MANAGED_TABLE" if native else "EXTERNAL_TABLE",
            partition_keys=table.partition_keys or (),
            parameters=parameters,
            storage=attached.changed_storage(table.storage, attached.without),
            view_original_text=self.view_text(table, table.view_original_text),
            view_expanded_text=self.view_text(table, table.view_expanded_text),
            temporary=False,
            catalog=None,
            id=None,
        )
        return relocated(image, location)

    def partition(self, partition: Partition, table: TableName, marks: Marks, location: str | None) -> Partition:
        """Return the image of a partition of the source's table `table`."""
        to = self.admission.name_at_target(table)
        parameters = parked(partition.parameters) | {EVENT: str(marks.event), INCARNATION: marks.incarnation}
        image = replace(
            partition,
            database=to.database,
            table=to.table,
            parameters=parameters,
            storage=attached.changed_storage(partition.storage, attached.without),
            catalog=None,
        )
        return relocated(image, location)

    def database(self, database: Database, event: EventId, location: str | None) -> Database:
        """Return the image of a database, with `location` at the target and the event `event` as its mark."""
        name = table_name(database.name)
        parameters = parked(database.parameters) | {
            SOURCE: source_mark(self.source, name),
            EVENT: str(event),
            ORIGIN: origin_of(database.parameters, self.source),
        }
        return replace(
            database,
            name=self.admission.name_at_target(name).database,
            parameters=parameters,
            location=location,
            managed_location=self.admission.managed_location,
            catalog=None,
            database_type=None,
            connector=None,
        )

    def function(self, function: Function) -> Function:
        to = self.admission.name_at_target(table_name(function.database, function.name))
        return replace(function, database=to.database, name=to.table, catalog=None)

    def view_text(self, table: Table, text: str | None) -> str | None:
        """Return a view's text with the names that tables have at the target. A missing or empty text stays as it
        is."""
        if not text or not self.admission.policy.rename:
            return text
        from calque.core.images.views import rewrite_names

        return rewrite_names(text, current_database(table), self.admission.name_at_target)


def canonical(thing: object, ignore: frozenset[str] = frozenset()) -> object:
    """Return a form in which equal definitions are equal. Absent, empty and false are one. Volatile parameters, times,
    marks of position and locations are left out, and so are the parameters `ignore`."""
    if thing is None or isinstance(thing, (str, int)):
        return thing or None
    if isinstance(thing, Table | Partition):
        thing = placeless(thing)
    if names := _compared(type(thing)):  # type: ignore[arg-type]  # mypy: no type is hashable
        named_forms = []
        for name in names:
            value = getattr(thing, name)
            form = canonical(_cleaned(value, ignore) if name == "parameters" else value, ignore)
            if form is not None:
                named_forms.append((name, form))
        return tuple(named_forms) or None
    if isinstance(thing, Mapping):
        return tuple(sorted((key, canonical(value)) for key, value in thing.items())) or None
    if isinstance(thing, tuple | list):
        return tuple(canonical(item, ignore) for item in thing) or None
    return thing or None


_LEFT_OUT = frozenset(
    {"location", "managed_location", "create_time", "last_access_time", "catalog", "id", "temporary", "retention"}
    | {"database_type", "connector"}
)


@cache
def _compared(kind: type) -> Sequence[str]:
    """Return the fields of a dataclass that count in a comparison; none for another type."""
    return [item.name for item in fields(kind) if item.name not in _LEFT_OUT] if is_dataclass(kind) else []


def _cleaned(value: object, ignore: frozenset[str]) -> object:
    if not isinstance(value, Mapping):
        return value
    value = attached.comparable(value)
    if calls_iceberg(value):
        value = comparable(value)
    dropped = _dropped(ignore)
    return {key: item for key, item in value.items() if key not in dropped}


@cache
def _dropped(ignore: frozenset[str]) -> frozenset[str]:
    return VOLATILE | ignore | {EVENT, FORMAT, ROWS, COMMIT_MARK, HIVE_POSITION, OWN_POSITION_AT_HIVE, "path"}


def same_definition(one: object, other: object, *, facets: bool = True) -> bool:
    """Tell whether two objects at the target mean the same; without `facets`, statistics do not count."""
    ignore = frozenset() if facets else STATISTICS
    return canonical(one, ignore) == canonical(other, ignore)
