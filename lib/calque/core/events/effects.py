"""Effects of events: a row for each kind of event, a row for each type of the log, and the sets that are drawn from
them.

`EVENT_EFFECTS` says what an event of a kind does, under each metastore version's names for it; `LOGGED_TYPES` says of
which kinds the events of a logged type are. A module that treats some kinds alike asks one of the sets below and has no
list of its own. The name of a set says what its kinds are about, do or carry. With MAY in its name, a set has UNKNOWN
too, because such an event can have done anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from calque.model.journal import LOOKED, EventKind


class Subject(Enum):
    """The subject of an event: the kind of object that it is about."""

    DATABASE = "database"
    FUNCTION = "function"
    TABLE = "table"
    """A table's name and definition."""
    PARTITION = "partition"
    """Names and definitions of partitions of one table."""
    FILES = "files"
    """Files of a table or of partitions, whose definitions stay as they are."""
    FACET = "facet"
    """Column statistics or constraints of one table."""
    NOTHING = "nothing"
    """The event is about an object of a kind that calque does not replicate."""
    UNKNOWN = "unknown"
    """The event's type does not say which kind of object it is about."""


class Act(Enum):
    """The act of an event: what it does to its subject."""

    MAKES = "makes"
    ALTERS = "alters"
    RENAMES = "renames"
    """The definition may be another afterwards, too."""
    ENDS = "ends"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EventEffect:
    """The effect of events of one kind. `carries` names the parts of their messages: definitions as the event left them
    (with dropped partitions, the definition of their table), and files. A message may name no files all the same, and
    one of 2.3 may lack definitions."""

    subject: Subject
    act: Act
    carries: tuple[Subject, ...] = ()


EVENT_EFFECTS: Mapping[EventKind, EventEffect] = MappingProxyType(
    {
        EventKind.CREATE_DATABASE: EventEffect(Subject.DATABASE, Act.MAKES, (Subject.DATABASE,)),
        EventKind.ALTER_DATABASE: EventEffect(Subject.DATABASE, Act.ALTERS, (Subject.DATABASE,)),
        EventKind.DROP_DATABASE: EventEffect(Subject.DATABASE, Act.ENDS),
        EventKind.CREATE_TABLE: EventEffect(Subject.TABLE, Act.MAKES, (Subject.TABLE, Subject.FILES)),
        EventKind.ALTER_TABLE: EventEffect(Subject.TABLE, Act.ALTERS, (Subject.TABLE,)),
        EventKind.RENAME_TABLE: EventEffect(Subject.TABLE, Act.RENAMES, (Subject.TABLE,)),
        EventKind.DROP_TABLE: EventEffect(Subject.TABLE, Act.ENDS),
        EventKind.ADD_PARTITIONS: EventEffect(
            Subject.PARTITION, Act.MAKES, (Subject.TABLE, Subject.PARTITION, Subject.FILES)
        ),
        EventKind.ALTER_PARTITIONS: EventEffect(Subject.PARTITION, Act.ALTERS, (Subject.TABLE, Subject.PARTITION)),
        EventKind.RENAME_PARTITION: EventEffect(Subject.PARTITION, Act.RENAMES, (Subject.TABLE, Subject.PARTITION)),
        EventKind.DROP_PARTITIONS: EventEffect(Subject.PARTITION, Act.ENDS, (Subject.TABLE,)),
        EventKind.INSERT: EventEffect(Subject.FILES, Act.ALTERS, (Subject.TABLE, Subject.PARTITION, Subject.FILES)),
        EventKind.SCAN: EventEffect(Subject.FILES, Act.ALTERS),
        EventKind.COMMIT: EventEffect(Subject.FILES, Act.ALTERS),
        EventKind.CREATE_FUNCTION: EventEffect(Subject.FUNCTION, Act.MAKES, (Subject.FUNCTION,)),
        EventKind.DROP_FUNCTION: EventEffect(Subject.FUNCTION, Act.ENDS),
        EventKind.FACET: EventEffect(Subject.FACET, Act.ALTERS),
        EventKind.NOTHING: EventEffect(Subject.NOTHING, Act.NOTHING),
        EventKind.UNKNOWN: EventEffect(Subject.UNKNOWN, Act.UNKNOWN),
    }
)


def kinds(*subjects: Subject, acts: Collection[Act] = tuple(Act)) -> frozenset[EventKind]:
    """Return the kinds of events that are about one of the subjects, and do one of the acts to it."""
    return frozenset(
        kind for kind, effect in EVENT_EFFECTS.items() if effect.subject in subjects and effect.act in acts
    )


def kinds_carrying(carried: Subject) -> frozenset[EventKind]:
    """Return the kinds of events whose messages carry this subject's definitions, or files."""
    return frozenset(kind for kind, effect in EVENT_EFFECTS.items() if carried in effect.carries)


# What events are about

OF_DATABASES = kinds(Subject.DATABASE)
OF_FUNCTIONS = kinds(Subject.FUNCTION)
OF_PARTITIONS = kinds(Subject.PARTITION)
OF_FILES = kinds(Subject.FILES)
OF_PARTITIONS_OR_FILES = OF_PARTITIONS | OF_FILES
"""Kinds of events that change no partitions but those that they name."""
OF_NO_TABLE = kinds(Subject.DATABASE, Subject.FUNCTION, Subject.NOTHING)
MAY_BE_OF_DATABASE_OR_FUNCTION = kinds(Subject.DATABASE, Subject.FUNCTION, Subject.UNKNOWN)
MAY_BE_OF_DATABASE_OR_TABLE = kinds(Subject.DATABASE, Subject.TABLE, Subject.UNKNOWN)
KEEPS_COLUMNS_AND_LOCATIONS = kinds(Subject.FILES, Subject.FACET, Subject.NOTHING)
"""Kinds of events that leave the columns and the location of every table and partition as they are."""

# What events do

RENAMES = kinds(Subject.TABLE, Subject.PARTITION, acts=(Act.RENAMES,))
DEFINES_TABLE = kinds(Subject.TABLE, acts=(Act.MAKES, Act.ALTERS, Act.RENAMES))
ALTERS_OR_RENAMES_TABLE = kinds(Subject.TABLE, acts=(Act.ALTERS, Act.RENAMES))
"""Kinds of events with a table before and after them; their messages have both definitions."""
BRINGS_TABLE = kinds(Subject.TABLE, acts=(Act.MAKES, Act.RENAMES))
"""Kinds of events before which no table has the name that the event gives."""
MAKES_OR_ENDS_TABLE = kinds(Subject.TABLE, acts=(Act.MAKES, Act.ENDS))
"""Kinds of events after which the table that had the name before goes on under no other name."""
REBINDS_TABLE_NAME = kinds(Subject.TABLE, acts=(Act.MAKES, Act.RENAMES, Act.ENDS))
"""Kinds of events after which a table's name means another table, or none."""
MAY_REBIND_TABLE_NAME = REBINDS_TABLE_NAME | {EventKind.UNKNOWN}
MAY_REBIND_NAMES = MAY_REBIND_TABLE_NAME | kinds(Subject.DATABASE, acts=(Act.ENDS,))
"""Kinds after which a table's name may mean another table, or none; with those for all tables of a database."""
FREES_PARTITION_NAMES = kinds(Subject.PARTITION, acts=(Act.RENAMES, Act.ENDS))
"""Kinds of events after which partitions are no longer there under the names that they had."""
MAKES_TABLE_OR_PARTITIONS = kinds(Subject.TABLE, Subject.PARTITION, acts=(Act.MAKES,))
ALTERS_TABLE_OR_PARTITIONS = kinds(Subject.TABLE, Subject.PARTITION, acts=(Act.ALTERS,))
ENDS_TABLE_OR_PARTITIONS = kinds(Subject.TABLE, Subject.PARTITION, acts=(Act.ENDS,))
ENDS_TABLE_OR_FUNCTION = kinds(Subject.TABLE, Subject.FUNCTION, acts=(Act.ENDS,))

# What messages carry

CARRIES_TABLE = kinds_carrying(Subject.TABLE)
CARRIES_PARTITIONS = kinds_carrying(Subject.PARTITION)
CARRIES_FILES = kinds_carrying(Subject.FILES)
CARRIES_DEFINITION = DEFINES_TABLE | CARRIES_PARTITIONS
"""Kinds whose messages have the table, and the definition of each object that the event made, altered, renamed or
filled."""
LACKS_DEFINITION = kinds(Subject.TABLE, Subject.PARTITION, Subject.FILES, Subject.FACET) - CARRIES_DEFINITION
"""Kinds that are about a table or a part of it, and are not among `CARRIES_DEFINITION`."""

# Types of the log

RELOADED = "RELOAD"
"""The type by which an engine says that it looked at a table's files anew (REFRESH). The event changes no files; files
may have changed before it."""
PART_OF_LOOK = f"{LOOKED}_"
"""The prefix of the type of an event that is one of several of one look."""


@dataclass(frozen=True, slots=True)
class LoggedType:
    """A type of events in the log. `kinds` are those that an event of this type can be, as its message says. Under any
    type, an event of another catalog is NOTHING, and one whose message does not say what it did is UNKNOWN.

    `is_named_in_row`: the columns of the event's row name all that it touches. `comes_in_runs`: one call of the source
    may write several such events in a row (3.1: one for each partition of a bulk call; 4.1: one for each batch).
    """

    kinds: tuple[EventKind, ...]
    is_named_in_row: bool = False
    comes_in_runs: bool = False


NO_EFFECT = LoggedType((EventKind.NOTHING,))
CHANGED_FACET = LoggedType((EventKind.FACET,), is_named_in_row=True)

LOGGED_TYPES: Mapping[str, LoggedType] = MappingProxyType(
    {
        "CREATE_DATABASE": LoggedType((EventKind.CREATE_DATABASE,), is_named_in_row=True),
        "ALTER_DATABASE": LoggedType((EventKind.ALTER_DATABASE,), is_named_in_row=True),
        "DROP_DATABASE": LoggedType((EventKind.DROP_DATABASE,)),
        "CREATE_TABLE": LoggedType((EventKind.CREATE_TABLE,), is_named_in_row=True),
        "ALTER_TABLE": LoggedType((EventKind.ALTER_TABLE, EventKind.RENAME_TABLE)),
        "DROP_TABLE": LoggedType((EventKind.DROP_TABLE,), is_named_in_row=True),
        "ADD_PARTITION": LoggedType((EventKind.ADD_PARTITIONS,), is_named_in_row=True),
        "ALTER_PARTITION": LoggedType(
            (EventKind.ALTER_PARTITIONS, EventKind.RENAME_PARTITION), is_named_in_row=True, comes_in_runs=True
        ),
        "ALTER_PARTITIONS": LoggedType((EventKind.ALTER_PARTITIONS,), is_named_in_row=True, comes_in_runs=True),
        "DROP_PARTITION": LoggedType((EventKind.DROP_PARTITIONS,), is_named_in_row=True, comes_in_runs=True),
        "INSERT": LoggedType((EventKind.INSERT,), is_named_in_row=True),
        "CREATE_FUNCTION": LoggedType((EventKind.CREATE_FUNCTION,)),
        "DROP_FUNCTION": LoggedType((EventKind.DROP_FUNCTION,)),
        # Constraints; the row of a foreign key names the table that the key points to.
        "ADD_FOREIGNKEY": LoggedType((EventKind.FACET,)),
        **dict.fromkeys(("ADD_PRIMARYKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT"), CHANGED_FACET),
        **dict.fromkeys(("ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT"), CHANGED_FACET),
        # Column statistics
        **dict.fromkeys(("UPDATE_TBL_COL_STAT_EVENT", "DELETE_TBL_COL_STAT_EVENT"), CHANGED_FACET),
        **dict.fromkeys(("UPDATE_PART_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"), CHANGED_FACET),
        "UPDATE_PART_COL_STAT_EVENT_BATCH": CHANGED_FACET,
        # Transactions
        **dict.fromkeys(("OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID_EVENT"), NO_EFFECT),
        **dict.fromkeys(("ACID_WRITE_EVENT", "BATCH_ACID_WRITE_EVENT", "COMMIT_COMPACTION_EVENT"), NO_EFFECT),
        # The schema registry
        **dict.fromkeys(("CREATE_ISCHEMA", "ALTER_ISCHEMA", "DROP_ISCHEMA"), NO_EFFECT),
        **dict.fromkeys(("ADD_SCHEMA_VERSION", "ALTER_SCHEMA_VERSION", "DROP_SCHEMA_VERSION"), NO_EFFECT),
        # Other things than the default catalog's databases
        **dict.fromkeys(("CREATE_CATALOG", "ALTER_CATALOG", "DROP_CATALOG", "CONFIG_CHANGE_EVENT"), NO_EFFECT),
        **dict.fromkeys(("CREATE_DATACONNECTOR", "ALTER_DATACONNECTOR", "DROP_DATACONNECTOR"), NO_EFFECT),
        # Indexes, only in 2.3
        **dict.fromkeys(("CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX"), NO_EFFECT),
        RELOADED: NO_EFFECT,
        # Of catalogs that have no log
        LOOKED: LoggedType((EventKind.UNKNOWN,)),
    }
)
"""All types that Hive 2.3 to 4.2 can log, and our own. `PART_OF_LOOK` before one changes nothing of this; an event of
any other type is UNKNOWN."""

TYPES_WITHOUT_EFFECT = frozenset(name for name, logged in LOGGED_TYPES.items() if logged == NO_EFFECT) - {RELOADED}
"""Types of events without effect, for which not even the table that they name matters."""
TYPES_NAMED_IN_ROWS = frozenset(name for name, logged in LOGGED_TYPES.items() if logged.is_named_in_row)
TYPES_IN_RUNS = frozenset(name for name, logged in LOGGED_TYPES.items() if logged.comes_in_runs)
