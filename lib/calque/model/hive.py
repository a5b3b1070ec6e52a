"""The metastore's objects, and the numbers of their Thrift fields.

One table of fields serves both wire forms: TJSON inside notification messages (`core.events.decode`) and the binary
protocol (`adapters.metastore`). Fields that calque neither compares nor writes are left out; both readers skip what
they do not know. Lists are tuples. Mappings are never mutated.

Source of the numbers: Hive's `hive_metastore.thrift`; they are the same in 2.3, 3.1 and 4.x for every field used here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Column:
    name: str = ""
    type: str = ""
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class SortColumn:
    column: str = ""
    order: int = 1


@dataclass(frozen=True, slots=True)
class SerDe:
    name: str | None = None
    class_name: str | None = None
    parameters: Mapping[str, str] | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Skew:
    columns: tuple[str, ...] | None = None
    values: tuple[tuple[str, ...], ...] | None = None
    locations: Mapping[tuple[str, ...], str] | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    columns: tuple[Column, ...] | None = None
    location: str | None = None
    input_format: str | None = None
    output_format: str | None = None
    compressed: bool | None = None
    buckets: int | None = None
    serde: SerDe | None = None
    bucket_columns: tuple[str, ...] | None = None
    sort_columns: tuple[SortColumn, ...] | None = None
    parameters: Mapping[str, str] | None = None
    skew: Skew | None = None
    sub_directories: bool | None = None


@dataclass(frozen=True, slots=True)
class Table:
    name: str = ""
    database: str = ""
    owner: str | None = None
    create_time: int | None = None
    last_access_time: int | None = None
    retention: int | None = None
    storage: Storage | None = None
    partition_keys: tuple[Column, ...] | None = None
    parameters: Mapping[str, str] | None = None
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    type: str | None = None
    temporary: bool | None = None
    rewrite_enabled: bool | None = None
    catalog: str | None = None
    owner_type: int | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    values: tuple[str, ...] = ()
    database: str = ""
    table: str = ""
    create_time: int | None = None
    last_access_time: int | None = None
    storage: Storage | None = None
    parameters: Mapping[str, str] | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class Database:
    name: str = ""
    description: str | None = None
    location: str | None = None
    parameters: Mapping[str, str] | None = None
    owner: str | None = None
    owner_type: int | None = None
    catalog: str | None = None
    managed_location: str | None = None
    database_type: int | None = None
    connector: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    type: int | None = None
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class Function:
    name: str = ""
    database: str = ""
    class_name: str | None = None
    owner: str | None = None
    owner_type: int | None = None
    create_time: int | None = None
    type: int | None = None
    resources: tuple[Resource, ...] | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Kind


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Kind
    value: Kind


Kind = str | ListOf | MapOf | type
"""A field's type: `"string"`, `"binary"`, `"i16"`, `"i32"`, `"i64"`, `"dbl"`, `"bool"`, a list, a map, or a class."""

TEXT_MAP = MapOf("string", "string")

FIELDS: Mapping[type, tuple[tuple[int, str, Kind], ...]] = MappingProxyType(
    {
        Column: ((1, "name", "string"), (2, "type", "string"), (3, "comment", "string")),
        SortColumn: ((1, "column", "string"), (2, "order", "i32")),
        SerDe: (
            (1, "name", "string"),
            (2, "class_name", "string"),
            (3, "parameters", TEXT_MAP),
            (4, "description", "string"),
        ),
        Skew: (
            (1, "columns", ListOf("string")),
            (2, "values", ListOf(ListOf("string"))),
            (3, "locations", MapOf(ListOf("string"), "string")),
        ),
        Storage: (
            (1, "columns", ListOf(Column)),
            (2, "location", "string"),
            (3, "input_format", "string"),
            (4, "output_format", "string"),
            (5, "compressed", "bool"),
            (6, "buckets", "i32"),
            (7, "serde", SerDe),
            (8, "bucket_columns", ListOf("string")),
            (9, "sort_columns", ListOf(SortColumn)),
            (10, "parameters", TEXT_MAP),
            (11, "skew", Skew),
            (12, "sub_directories", "bool"),
        ),
        Table: (
            (1, "name", "string"),
            (2, "database", "string"),
            (3, "owner", "string"),
            (4, "create_time", "i32"),
            (5, "last_access_time", "i32"),
            (6, "retention", "i32"),
            (7, "storage", Storage),
            (8, "partition_keys", ListOf(Column)),
            (9, "parameters", TEXT_MAP),
            (10, "view_original_text", "string"),
            (11, "view_expanded_text", "string"),
            (12, "type", "string"),
            (14, "temporary", "bool"),
            (15, "rewrite_enabled", "bool"),
            (17, "catalog", "string"),
            (18, "owner_type", "i32"),
            (25, "id", "i64"),
        ),
        Partition: (
            (1, "values", ListOf("string")),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "create_time", "i32"),
            (5, "last_access_time", "i32"),
            (6, "storage", Storage),
            (7, "parameters", TEXT_MAP),
            (9, "catalog", "string"),
        ),
        Database: (
            (1, "name", "string"),
            (2, "description", "string"),
            (3, "location", "string"),
            (4, "parameters", TEXT_MAP),
            (6, "owner", "string"),
            (7, "owner_type", "i32"),
            (8, "catalog", "string"),
            (10, "managed_location", "string"),
            (11, "database_type", "i32"),
            (12, "connector", "string"),
        ),
        Resource: ((1, "type", "i32"), (2, "uri", "string")),
        Function: (
            (1, "name", "string"),
            (2, "database", "string"),
            (3, "class_name", "string"),
            (4, "owner", "string"),
            (5, "owner_type", "i32"),
            (6, "create_time", "i32"),
            (7, "type", "i32"),
            (8, "resources", ListOf(Resource)),
            (9, "catalog", "string"),
        ),
    }
)

HIVE_POSITION = "repl.last.id"
"""The parameter in which Hive's own replication says which event of the source an object shows."""
OWN_POSITION_AT_HIVE = "repl.target.last.id"
"""The parameter with the target's own event at which `repl.last.id` changed. A metastore of Hive 4 sets it by itself
(hive-replication §7)."""

VIEW_TYPES = frozenset({"VIRTUAL_VIEW", "MATERIALIZED_VIEW"})

BASIC_STATISTICS = frozenset(
    {
        "numRows",
        "numFiles",
        "numFilesErasureCoded",
        "totalSize",
        "rawDataSize",
        "COLUMN_STATS_ACCURATE",
        "transient_lastDdlTime",
    }
)
"""Parameters that the metastore or a writer's statistics task sets: facets (docs/glossary.md)."""
VOLATILE = frozenset(
    {"transient_lastDdlTime", "numFilesErasureCoded", "bucketing_version", "last_modified_by", "last_modified_time"}
    | {"STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK", "DO_NOT_UPDATE_STATS"}
)
"""Parameters that a metastore sets by itself."""


def is_view(table: Table) -> bool:
    """Return whether `table` is a view or a materialized view."""
    return table.type in VIEW_TYPES


PROVIDER = "spark.sql.sources.provider"
PROJECTION = "projection.enabled"
DELTA_HANDLER = "io.delta.hive.DeltaStorageHandler"
PLACEHOLDER = "-__PLACEHOLDER__"
"""The end of the location that Spark gives to external tables of formats that Hive can't read. Their real location is
the SerDe's parameter `path`."""


INSERT_ONLY = "insert_only"
"""The parameter `transactional_properties` of ACID tables whose rows have no ids."""


def is_transactional(table: Table) -> bool:
    """Tell whether the table is an ACID table. Hive itself looks for the parameter in lower, then in upper case."""
    parameters = table.parameters or {}
    return (parameters.get("transactional") or parameters.get("TRANSACTIONAL") or "").lower() == "true"


def is_insert_only(table: Table) -> bool:
    """Tell whether rows of the ACID table are only added, and replaced all at once: they carry no row ids then."""
    properties = (table.parameters or {}).get("transactional_properties") or ""
    return is_transactional(table) and properties.lower() == INSERT_ONLY


def is_full_acid(table: Table) -> bool:
    """Tell whether the rows of a transactional table have ids of their own, so that they can be deleted one by one.
    Rows of an insert-only table have none."""
    return is_transactional(table) and not is_insert_only(table)


def is_delta(table: Table) -> bool:
    """Return whether the table's states are versions of a Delta log. The columns and partitions that the metastore has
    of such a table are placeholders, or what they were before the table was converted."""
    return says_delta(table.parameters or {})


def says_delta(parameters: Mapping[str, object]) -> bool:
    """Return whether a table's parameters say that it is a Delta table, by Spark's provider or by the storage handler
    of Hive."""
    for key, value in parameters.items():
        if type(value) is not str:
            continue
        low = key.lower()
        if (low == PROVIDER and value.lower() == "delta") or (low == "storage_handler" and value == DELTA_HANDLER):
            return True
    return False


def projects_partitions(table: Table) -> bool:
    """Return whether query engines make up the table's partitions from its parameters (Athena's and Trino's partition
    projection). Its content is all files below its location, and no metastore lists them by partition."""
    return bool(table.partition_keys) and says_projection(table.parameters or {}) and not is_delta(table)


def says_projection(parameters: Mapping[str, object]) -> bool:
    """Return whether a table's parameters turn partition projection on."""
    return any(
        type(value) is str and key.lower() == PROJECTION and value.strip().lower() == "true"
        for key, value in parameters.items()
    )


def is_partitioned(table: Table) -> bool:
    """Return whether the table's content is that of partitions in the metastore: it has partition keys, and is neither
    a Delta table nor one with partition projection."""
    parameters = table.parameters or {}
    return bool(table.partition_keys) and not (says_delta(parameters) or says_projection(parameters))


BY_PARAMETER = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE"})


def type_of(parameters: Mapping[str, str] | None) -> str:
    """Return the type, one of `BY_PARAMETER`, of a table with these parameters: `EXTERNAL` set to TRUE makes it
    external."""
    return "EXTERNAL_TABLE" if (parameters or {}).get("EXTERNAL", "").upper() == "TRUE" else "MANAGED_TABLE"


def location_of(thing: Table | Partition) -> str | None:
    """Return the location of a table's or partition's rows, None where it has none. `core.formats.pointers` has all
    other places that a definition names."""
    if thing.storage is None:
        return None
    if type(thing) is Table and (parameters := thing.parameters) and says_provider(parameters):
        serde_parameters = (thing.storage.serde.parameters if thing.storage.serde else None) or {}
        return root_of(thing.type or "", thing.storage.location or "", serde_parameters, parameters, thing.name) or None
    return thing.storage.location


def says_provider(parameters: Mapping[str, object]) -> bool:
    """Return whether a table's parameters say that Spark reads it by a data source of its own, or that it is a Delta
    table. Its place is the SerDe's parameter `path` then (Spark's `HiveExternalCatalog.restoreDataSourceTable`)."""
    return provider_of(parameters) not in ("", "hive") or says_delta(parameters)


def provider_of(parameters: Mapping[str, object]) -> str:
    """Return the data source by which Spark reads a table, in lower case; empty where the parameters say none."""
    for key, value in parameters.items():
        if type(value) is str and key.lower() == PROVIDER:
            return value.strip().lower()
    return ""


def is_path(key: str) -> bool:
    """Return whether `key` is Spark's SerDe parameter for the place, `path`, in any case, as Spark looks for it."""
    return key.lower() == "path"


def root_of(
    table_type: str, location: str, serde_parameters: Mapping[str, object], parameters: Mapping[str, object], name: str
) -> str:
    """Return the location of a table for which `says_provider` holds; empty where there is none.

    A metastore moves the directory of a managed table with its name, also of one that it made external by itself, and
    leaves the parameter `path` behind. So the own location counts there. For other tables, and beside a placeholder,
    readers use `path`.
    """
    path = next((value for key, value in serde_parameters.items() if is_path(key) and type(value) is str), "")
    own_location = "" if location.endswith(PLACEHOLDER) else location
    if says_delta(parameters):
        return own_location or path if table_type == "MANAGED_TABLE" else path or own_location
    translated = parameters.get("translated_to_external")
    moves = table_type == "MANAGED_TABLE" or (type(translated) is str and translated.lower() == "true")
    is_named = own_location.rstrip("/").rpartition("/")[2].lower() == name.lower()
    return own_location if own_location and moves and is_named else path or own_location
