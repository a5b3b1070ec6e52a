"""Requests, answers and calls of the metastore's Thrift service that calque uses, as data.

Source of the numbers: Hive's `hive_metastore.thrift` of 4.x; where 2.3 or 3.1 differ, it is said. Arguments of calls
and declared exceptions are numbered from 1 without gaps in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from types import MappingProxyType

from calque.model import facets, hive
from calque.model.facets import (
    CONSTRAINTS,
    AnalyzedColumns,
    Check,
    ColumnStatistics,
    DefaultValue,
    ForeignKey,
    NotNull,
    PrimaryKey,
    UniqueKey,
)
from calque.model.hive import TEXT_MAP, Database, Function, Kind, ListOf, MapOf, Partition, Table
from calque.model.journal import Event

TEXTS = ListOf("string")

PROCESSOR = "calque"
CAPABILITIES = (
    "MANAGE_RAW_METADATA",
    "ACCEPTS_UNMODIFIED_METADATA",
    "EXTREAD",
    "EXTWRITE",
    "HIVEBUCKET2",
    "HIVECACHEINVALIDATE",
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "HIVEMANAGESTATS",
    "HIVEMQT",
    "HIVESQL",
    "CONNECTORREAD",
    "CONNECTORWRITE",
)
"""The capabilities that calque declares to a Hive 4 metastore, so that its metadata transformer passes objects on as
they are stored."""

INSERT_ONLY_TABLES = 2
"""A `ClientCapability` without which a Hive 3 server refuses to give insert-only transactional tables."""


class Fault(Exception):
    """An exception that the service declares. `kind` is its name without `Exception`."""

    def __init__(self, kind: str, text: str | None = None) -> None:
        self.kind, self.text = kind, text or ""
        super().__init__(f"{kind}: {self.text}")


class CallUnknown(Exception):
    """The server does not have the call; the connection stays usable."""


@dataclass(frozen=True, slots=True)
class Call:
    """One remote procedure. `reads` says that it changes nothing, so that it may be sent again after a lost
    connection."""

    name: str
    arguments: tuple[Kind, ...] = ()
    result: Kind | None = None
    faults: tuple[str, ...] = ()
    reads: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredException:
    """The wire form of all the exceptions that the service declares: each has a text alone."""

    text: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Thrift's `EnvironmentContext`. 3.1 fails on one without properties, so they are always sent, if empty."""

    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Thrift's `HiveObjectRef`; `kind` is one of `HiveObjectType`."""

    kind: int
    database: str | None
    table: str | None = None
    values: tuple[str, ...] | None = None
    column: str | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class PrivilegeInfo:
    """Thrift's `PrivilegeGrantInfo`."""

    privilege: str
    created: int = 0
    grantor: str | None = None
    grantor_kind: int = 0
    grant_option: bool = False


@dataclass(frozen=True, slots=True)
class ObjectPrivilege:
    """Thrift's `HiveObjectPrivilege`; `authorizer` is new in 3.1."""

    object: ObjectReference
    principal: str
    kind: int
    info: PrivilegeInfo
    authorizer: str | None = None


@dataclass(frozen=True, slots=True)
class PrivilegeBag:
    privileges: tuple[ObjectPrivilege, ...]


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """Thrift's `GrantRevokePrivilegeRequest`."""

    kind: int
    bag: PrivilegeBag
    option_alone: bool


@dataclass(frozen=True, slots=True)
class GrantResult:
    success: bool | None = None


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    created: int
    owner: str | None


@dataclass(frozen=True, slots=True)
class ClientCapabilities:
    values: tuple[int, ...] = (INSERT_ONLY_TABLES,)


@dataclass(frozen=True, slots=True)
class TableRequest:
    database: str
    table: str
    client: ClientCapabilities = ClientCapabilities()
    processor_capabilities: tuple[str, ...] = CAPABILITIES
    processor: str = PROCESSOR


@dataclass(frozen=True, slots=True)
class TableResult:
    table: Table


@dataclass(frozen=True, slots=True)
class TablesRequest:
    database: str
    tables: tuple[str, ...]
    client: ClientCapabilities = ClientCapabilities()
    processor_capabilities: tuple[str, ...] = CAPABILITIES
    processor: str = PROCESSOR


@dataclass(frozen=True, slots=True)
class TablesResult:
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTableRequest:
    table: Table
    context: Context | None = None
    processor_capabilities: tuple[str, ...] = CAPABILITIES
    processor: str = PROCESSOR


@dataclass(frozen=True, slots=True)
class AlterTableRequest:
    database: str
    name: str
    table: Table
    context: Context | None = None
    processor_capabilities: tuple[str, ...] = CAPABILITIES
    processor: str = PROCESSOR


@dataclass(frozen=True, slots=True)
class AlterTableResult:
    """The answer to `alter_table_req`, which is empty."""


@dataclass(frozen=True, slots=True)
class TruncateRequest:
    """Thrift's `TruncateTableRequest` of 4.x. `partitions` are names; None stands for the whole table."""

    database: str
    table: str
    partitions: tuple[str, ...] | None
    write_id: int
    valid_write_ids: str
    context: Context


@dataclass(frozen=True, slots=True)
class TruncateResult:
    """The answer to `truncate_table_req`, which is empty."""


@dataclass(frozen=True, slots=True)
class AddPartitionsRequest:
    database: str
    table: str
    partitions: tuple[Partition, ...]
    if_not_exists: bool = False
    need_result: bool = False


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    partitions: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartitionsByName:
    """Thrift's `RequestPartsSpec`, of which only names are used."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropPartitionsRequest:
    database: str
    table: str
    partitions: PartitionsByName
    delete_data: bool = False
    if_exists: bool = False
    context: Context | None = None
    need_result: bool = False


@dataclass(frozen=True, slots=True)
class ConstraintsRequest:
    """A request for a table's primary key, or for its constraints of all kinds at once."""

    database: str
    table: str
    catalog: str = "hive"


@dataclass(frozen=True, slots=True)
class ColumnConstraintsRequest:
    """A request for a table's constraints of one kind among UNIQUE, NOT NULL, DEFAULT and CHECK."""

    database: str
    table: str
    catalog: str = "hive"


@dataclass(frozen=True, slots=True)
class ForeignKeysRequest:
    """A request for the foreign keys of a child, or to a parent: one of the two tables is given."""

    parent_database: str | None = None
    parent_table: str | None = None
    database: str | None = None
    table: str | None = None
    catalog: str = "hive"


@dataclass(frozen=True, slots=True)
class DropConstraintRequest:
    database: str
    table: str
    constraint: str


ROWS: Mapping[type, type] = MappingProxyType(
    {kind: make_dataclass(f"{kind.__name__}Rows", ["rows"], frozen=True) for kind in CONSTRAINTS}
)
"""The structure of one list, `rows`, that calls for each kind of constraint take and give."""


@dataclass(frozen=True, slots=True)
class AllConstraints:
    primary_keys: tuple[PrimaryKey, ...] | None = None
    foreign_keys: tuple[ForeignKey, ...] | None = None
    unique_keys: tuple[UniqueKey, ...] | None = None
    not_null: tuple[NotNull, ...] | None = None
    default_values: tuple[DefaultValue, ...] | None = None
    checks: tuple[Check, ...] | None = None


@dataclass(frozen=True, slots=True)
class AllConstraintsResult:
    constraints: AllConstraints


@dataclass(frozen=True, slots=True)
class FunctionsResult:
    functions: tuple[Function, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableStatisticsRequest:
    database: str
    table: str
    columns: tuple[str, ...]
    engine: str = facets.ENGINE


@dataclass(frozen=True, slots=True)
class TableStatisticsResult:
    columns: tuple[ColumnStatistics, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionsStatisticsRequest:
    database: str
    table: str
    columns: tuple[str, ...]
    partitions: tuple[str, ...]
    engine: str = facets.ENGINE


@dataclass(frozen=True, slots=True)
class PartitionsStatisticsResult:
    partitions: Mapping[str, tuple[ColumnStatistics, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetStatisticsRequest:
    """A request to set column statistics of one table, or of several partitions of one table. Columns that are not
    named keep theirs."""

    objects: tuple[AnalyzedColumns, ...]
    merge: bool = False
    engine: str = facets.ENGINE


@dataclass(frozen=True, slots=True)
class EventRequest:
    after: int
    limit: int


@dataclass(frozen=True, slots=True)
class Events:
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class CurrentEventId:
    event_id: int = 0


@dataclass(frozen=True, slots=True)
class InsertEventData:
    """Thrift's `InsertEventRequestData` as it is from 3.0 on (2.3 has no `replace` and counts from the files)."""

    replace: bool
    files: tuple[str, ...]
    checksums: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FiredData:
    """A union: one field is set. `reloaded` is of servers of 4.x."""

    inserted: InsertEventData | None = None
    reloaded: bool | None = None


@dataclass(frozen=True, slots=True)
class FireRequest:
    successful: bool
    data: FiredData
    database: str
    table: str
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fired:
    """The answer to a fired event, of which calque reads no field."""


class EventMaker:
    """A maker of `Event` from the fields that the server sent: absent ones are empty.

    Thrift's codec calls a class that it takes for an immutable one with the fields as keywords, and it recognises such
    a class by its `__setattr__`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError(name)

    def __new__(  # type: ignore[misc]
        cls,
        event_id: int = 0,
        event_time: int = 0,
        event_type: str = "",
        database: str = "",
        table: str = "",
        message: str = "",
        message_format: str = "",
        catalog: str = "",
    ) -> Event:
        return Event(event_id, event_time, event_type, catalog, database, table, message_format, message)


MAKERS: Mapping[type, type] = MappingProxyType({Event: EventMaker})
"""The callables that make a structure from its fields where the class itself does not."""

FIELDS: Mapping[type, tuple[tuple[int, str, Kind], ...]] = MappingProxyType(
    {
        **hive.FIELDS,
        **facets.FIELDS,
        **{rows: ((1, "rows", ListOf(kind)),) for kind, rows in ROWS.items()},
        DeclaredException: ((1, "text", "string"),),
        Context: ((1, "properties", TEXT_MAP),),
        ClientCapabilities: ((1, "values", ListOf("i32")),),
        TableRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "client", ClientCapabilities),
            (8, "processor_capabilities", TEXTS),
            (9, "processor", "string"),
        ),
        TableResult: ((1, "table", Table),),
        TablesRequest: (
            (1, "database", "string"),
            (2, "tables", TEXTS),
            (3, "client", ClientCapabilities),
            (5, "processor_capabilities", TEXTS),
            (6, "processor", "string"),
        ),
        TablesResult: ((1, "tables", ListOf(Table)),),
        CreateTableRequest: (
            (1, "table", Table),
            (2, "context", Context),
            (9, "processor_capabilities", TEXTS),
            (10, "processor", "string"),
        ),
        AlterTableRequest: (
            (2, "database", "string"),
            (3, "name", "string"),
            (4, "table", Table),
            (5, "context", Context),
            (8, "processor_capabilities", TEXTS),
            (9, "processor", "string"),
        ),
        AlterTableResult: (),
        TruncateRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "partitions", TEXTS),
            (4, "write_id", "i64"),
            (5, "valid_write_ids", "string"),
            (6, "context", Context),
        ),
        TruncateResult: (),
        AddPartitionsRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "partitions", ListOf(Partition)),
            (4, "if_not_exists", "bool"),
            (5, "need_result", "bool"),
        ),
        PartitionsResult: ((1, "partitions", ListOf(Partition)),),
        PartitionsByName: ((1, "names", TEXTS),),
        DropPartitionsRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "partitions", PartitionsByName),
            (4, "delete_data", "bool"),
            (5, "if_exists", "bool"),
            (7, "context", Context),
            (8, "need_result", "bool"),
        ),
        ConstraintsRequest: ((1, "database", "string"), (2, "table", "string"), (3, "catalog", "string")),
        ColumnConstraintsRequest: ((1, "catalog", "string"), (2, "database", "string"), (3, "table", "string")),
        ForeignKeysRequest: (
            (1, "parent_database", "string"),
            (2, "parent_table", "string"),
            (3, "database", "string"),
            (4, "table", "string"),
            (5, "catalog", "string"),
        ),
        DropConstraintRequest: ((1, "database", "string"), (2, "table", "string"), (3, "constraint", "string")),
        AllConstraints: (
            (1, "primary_keys", ListOf(PrimaryKey)),
            (2, "foreign_keys", ListOf(ForeignKey)),
            (3, "unique_keys", ListOf(UniqueKey)),
            (4, "not_null", ListOf(NotNull)),
            (5, "default_values", ListOf(DefaultValue)),
            (6, "checks", ListOf(Check)),
        ),
        FunctionsResult: ((1, "functions", ListOf(Function)),),
        AllConstraintsResult: ((1, "constraints", AllConstraints),),
        TableStatisticsRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "columns", TEXTS),
            (6, "engine", "string"),
        ),
        TableStatisticsResult: ((1, "columns", ListOf(ColumnStatistics)),),
        PartitionsStatisticsRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "columns", TEXTS),
            (4, "partitions", TEXTS),
            (7, "engine", "string"),
        ),
        PartitionsStatisticsResult: ((1, "partitions", MapOf("string", ListOf(ColumnStatistics))),),
        SetStatisticsRequest: ((1, "objects", ListOf(AnalyzedColumns)), (2, "merge", "bool"), (5, "engine", "string")),
        EventRequest: ((1, "after", "i64"), (2, "limit", "i32")),
        Event: (
            (1, "event_id", "i64"),
            (2, "event_time", "i32"),
            (3, "event_type", "string"),
            (4, "database", "string"),
            (5, "table", "string"),
            (6, "message", "string"),
            (7, "message_format", "string"),
            (8, "catalog", "string"),
        ),
        Events: ((1, "events", ListOf(Event)),),
        CurrentEventId: ((1, "event_id", "i64"),),
        InsertEventData: ((1, "replace", "bool"), (2, "files", TEXTS), (3, "checksums", TEXTS)),
        FiredData: ((1, "inserted", InsertEventData), (3, "reloaded", "bool")),
        FireRequest: (
            (1, "successful", "bool"),
            (2, "data", FiredData),
            (3, "database", "string"),
            (4, "table", "string"),
            (5, "values", TEXTS),
        ),
        Fired: (),
        ObjectReference: (
            (1, "kind", "i32"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "values", TEXTS),
            (5, "column", "string"),
            (6, "catalog", "string"),
        ),
        PrivilegeInfo: (
            (1, "privilege", "string"),
            (2, "created", "i32"),
            (3, "grantor", "string"),
            (4, "grantor_kind", "i32"),
            (5, "grant_option", "bool"),
        ),
        ObjectPrivilege: (
            (1, "object", ObjectReference),
            (2, "principal", "string"),
            (3, "kind", "i32"),
            (4, "info", PrivilegeInfo),
            (5, "authorizer", "string"),
        ),
        PrivilegeBag: ((1, "privileges", ListOf(ObjectPrivilege)),),
        GrantRequest: ((1, "kind", "i32"), (2, "bag", PrivilegeBag), (3, "option_alone", "bool")),
        GrantResult: ((1, "success", "bool"),),
        Role: ((1, "name", "string"), (2, "created", "i32"), (3, "owner", "string")),
    }
)

GET_ALL_DATABASES = Call("get_all_databases", (), TEXTS, ("Meta",), reads=True)
GET_DATABASE = Call("get_database", ("string",), Database, ("NoSuchObject", "Meta"), reads=True)
GET_ALL_TABLES = Call("get_all_tables", ("string",), TEXTS, ("Meta",), reads=True)
GET_TABLE = Call("get_table_req", (TableRequest,), TableResult, ("Meta", "NoSuchObject"), reads=True)
GET_TABLES = Call(
    "get_table_objects_by_name_req",
    (TablesRequest,),
    TablesResult,
    ("Meta", "InvalidOperation", "UnknownDB"),
    reads=True,
)
GET_PARTITION_NAMES = Call(
    "get_partition_names", ("string", "string", "i16"), TEXTS, ("NoSuchObject", "Meta"), reads=True
)
GET_PARTITIONS = Call(
    "get_partitions", ("string", "string", "i16"), ListOf(Partition), ("NoSuchObject", "Meta"), reads=True
)
GET_PARTITIONS_BY_NAMES = Call(
    "get_partitions_by_names", ("string", "string", TEXTS), ListOf(Partition), ("Meta", "NoSuchObject"), reads=True
)
GET_FUNCTIONS = Call("get_functions", ("string", "string"), TEXTS, ("Meta",), reads=True)
GET_ALL_FUNCTIONS = Call("get_all_functions", (), FunctionsResult, ("Meta",), reads=True)
GET_FUNCTION = Call("get_function", ("string", "string"), Function, ("Meta", "NoSuchObject"), reads=True)

CREATE_DATABASE = Call("create_database", (Database,), None, ("AlreadyExists", "InvalidObject", "Meta"))
ALTER_DATABASE = Call("alter_database", ("string", Database), None, ("Meta", "NoSuchObject"))
DROP_DATABASE = Call("drop_database", ("string", "bool", "bool"), None, ("NoSuchObject", "InvalidOperation", "Meta"))

CREATED = ("AlreadyExists", "InvalidObject", "Meta", "NoSuchObject")
CREATE_TABLE = Call("create_table_with_environment_context", (Table, Context), None, CREATED)
CREATE_TABLE_REQUEST = Call("create_table_req", (CreateTableRequest,), None, CREATED)
ALTER_TABLE = Call(
    "alter_table_with_environment_context", ("string", "string", Table, Context), None, ("InvalidOperation", "Meta")
)
ALTER_TABLE_REQUEST = Call("alter_table_req", (AlterTableRequest,), AlterTableResult, ("InvalidOperation", "Meta"))
DROP_TABLE = Call(
    "drop_table_with_environment_context", ("string", "string", "bool", Context), None, ("NoSuchObject", "Meta")
)
TRUNCATE_TABLE = Call("truncate_table", ("string", "string", TEXTS), None, ("Meta",))
TRUNCATE_TABLE_REQUEST = Call("truncate_table_req", (TruncateRequest,), TruncateResult, ("Meta",))

ADDED = ("InvalidObject", "AlreadyExists", "Meta")
ADD_PARTITIONS = Call("add_partitions_req", (AddPartitionsRequest,), PartitionsResult, ADDED)
APPEND_PARTITION = Call("append_partition", ("string", "string", TEXTS), Partition, ADDED)
ALTER_PARTITION = Call(
    "alter_partition_with_environment_context",
    ("string", "string", Partition, Context),
    None,
    ("InvalidOperation", "Meta"),
)
ALTER_PARTITIONS = Call(
    "alter_partitions_with_environment_context",
    ("string", "string", ListOf(Partition), Context),
    None,
    ("InvalidOperation", "Meta"),
)
RENAME_PARTITION = Call("rename_partition", ("string", "string", TEXTS, Partition), None, ("InvalidOperation", "Meta"))
DROP_PARTITIONS = Call("drop_partitions_req", (DropPartitionsRequest,), PartitionsResult, ("NoSuchObject", "Meta"))
EXCHANGE_PARTITIONS = Call(
    "exchange_partitions",
    (TEXT_MAP, "string", "string", "string", "string"),
    ListOf(Partition),
    ("Meta", "NoSuchObject", "InvalidObject", "InvalidInput"),
)

MARKED = ("Meta", "NoSuchObject", "UnknownDB", "UnknownTable", "UnknownPartition", "InvalidPartition")
MARK_PARTITION = Call("markPartitionForEvent", ("string", "string", TEXT_MAP, "i32"), None, MARKED)
IS_PARTITION_MARKED = Call(
    "isPartitionMarkedForEvent", ("string", "string", TEXT_MAP, "i32"), "bool", MARKED, reads=True
)
LOAD_DONE = 1
"""The value of Thrift's `PartitionEventType` for a partition whose load is done."""

CREATE_FUNCTION = Call("create_function", (Function,), None, CREATED)
DROP_FUNCTION = Call("drop_function", ("string", "string"), None, ("NoSuchObject", "Meta"))

CONSTRAINED = ("NoSuchObject", "Meta")
ADD_CONSTRAINTS: Mapping[type, Call] = MappingProxyType(
    {
        kind: Call(f"add_{name}", (ROWS[kind],), None, CONSTRAINED)
        for kind, name in (
            (PrimaryKey, "primary_key"),
            (ForeignKey, "foreign_key"),
            (UniqueKey, "unique_constraint"),
            (NotNull, "not_null_constraint"),
            (DefaultValue, "default_constraint"),
            (Check, "check_constraint"),
        )
    }
)
DROP_CONSTRAINT = Call("drop_constraint", (DropConstraintRequest,), None, CONSTRAINED)
GET_ALL_CONSTRAINTS = Call(
    "get_all_table_constraints", (ConstraintsRequest,), AllConstraintsResult, ("Meta", "NoSuchObject"), reads=True
)
GET_CONSTRAINTS: Mapping[type, Call] = MappingProxyType(
    {
        kind: Call(name, (request,), ROWS[kind], ("Meta", "NoSuchObject"), reads=True)
        for kind, name, request in (
            (PrimaryKey, "get_primary_keys", ConstraintsRequest),
            (ForeignKey, "get_foreign_keys", ForeignKeysRequest),
            (UniqueKey, "get_unique_constraints", ColumnConstraintsRequest),
            (NotNull, "get_not_null_constraints", ColumnConstraintsRequest),
            (DefaultValue, "get_default_constraints", ColumnConstraintsRequest),
            (Check, "get_check_constraints", ColumnConstraintsRequest),
        )
    }
)
"""The calls that read a table's constraints, one for each kind, as 3.1 has them. `GET_ALL_CONSTRAINTS` is the one call
of 4.x for all kinds."""

GET_TABLE_STATISTICS = Call(
    "get_table_statistics_req", (TableStatisticsRequest,), TableStatisticsResult, ("NoSuchObject", "Meta"), reads=True
)
GET_PARTITIONS_STATISTICS = Call(
    "get_partitions_statistics_req",
    (PartitionsStatisticsRequest,),
    PartitionsStatisticsResult,
    ("NoSuchObject", "Meta"),
    reads=True,
)
ANALYZED = ("NoSuchObject", "InvalidObject", "Meta", "InvalidInput")
SET_STATISTICS = Call("set_aggr_stats_for", (SetStatisticsRequest,), "bool", ANALYZED)
UNANALYZED = ("NoSuchObject", "Meta", "InvalidObject", "InvalidInput")
DROP_TABLE_STATISTICS = Call(
    "delete_table_column_statistics", ("string", "string", "string", "string"), "bool", UNANALYZED
)
DROP_PARTITION_STATISTICS = Call(
    "delete_partition_column_statistics", ("string", "string", "string", "string", "string"), "bool", UNANALYZED
)
"""The last argument, the engine, is new in 4."""

LIST_PRIVILEGES = Call(
    "list_privileges", ("string", "i32", ObjectReference), ListOf(ObjectPrivilege), ("Meta",), reads=True
)
GRANT_REVOKE = Call("grant_revoke_privileges", (GrantRequest,), GrantResult, ("Meta",))
GET_ROLES = Call("get_role_names", (), TEXTS, ("Meta",), reads=True)
CREATE_ROLE = Call("create_role", (Role,), "bool", ("Meta",))

GET_NEXT_NOTIFICATION = Call("get_next_notification", (EventRequest,), Events, reads=True)
GET_CURRENT_EVENT_ID = Call("get_current_notificationEventId", (), CurrentEventId, reads=True)
FIRE_LISTENER_EVENT = Call("fire_listener_event", (FireRequest,), Fired)

GET_CONFIG_VALUE = Call("get_config_value", ("string", "string"), "string", ("ConfigValSecurity",), reads=True)
SET_META_CONF = Call("setMetaConf", ("string", "string"), None, ("Meta",), reads=True)
"""The call that sets a setting of the server for this connection alone."""
GET_ID = Call("get_metastore_db_uuid", (), "string", ("Meta",), reads=True)
GET_VERSION = Call("getVersion", (), "string", reads=True)
SET_USER = Call("set_ugi", ("string", TEXTS), TEXTS, ("Meta",), reads=True)
