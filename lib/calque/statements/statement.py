"""What a statement says: a closed union of frozen values, one class for each kind.

Names of databases and tables are lower-case. Names of targets and clusters are as they were written. None stands where
the text leaves something out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.model.names import EventId


@dataclass(frozen=True, slots=True)
class QualifiedTable:
    """A table as a statement names it; without `database` it is in the session's."""

    database: str | None
    table: str


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """`database.include.exclude` of a dump, the last two as regular expressions over table names. No `include` means
    all tables."""

    database: str
    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ReplDump:
    policy: ReplicationPolicy
    replaced_policy: ReplicationPolicy | None
    from_event: EventId | None
    to_event: EventId | None
    limit: int | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplLoadDirectory:
    """`REPL LOAD … FROM`: without `database` into the one that the dump names."""

    database: str | None
    directory: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplLoad:
    """Loads the newest dump of the policy; without `database` into the one of the policy's name."""

    policy: ReplicationPolicy
    database: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplStatus:
    database: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """An empty `partition` means the whole table."""

    table: QualifiedTable
    partition: Mapping[str, str]
    directory: str


@dataclass(frozen=True, slots=True)
class ImportTable:
    """An empty `partition` means all that the directory holds."""

    is_external: bool
    table: QualifiedTable | None
    partition: Mapping[str, str]
    directory: str
    location: str | None


@dataclass(frozen=True, slots=True)
class CreateRemoteTable:
    if_not_exists: bool
    table: QualifiedTable
    connected_to: QualifiedTable | None
    via: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateRemoteDatabase:
    if_not_exists: bool
    database: str
    connected_to: str | None
    via: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DropRemoteTable:
    if_exists: bool
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class DropRemoteDatabase:
    if_exists: bool
    database: str


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    table: QualifiedTable
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetDatabaseProperties:
    database: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetRemoteData:
    """`data` is "copy" or "none", as in a configuration."""

    table: QualifiedTable
    data: str


@dataclass(frozen=True, slots=True)
class ShowRemoteTables:
    database: str | None
    pattern: str | None


@dataclass(frozen=True, slots=True)
class ShowRemoteDatabases:
    pattern: str | None


@dataclass(frozen=True, slots=True)
class DescribeRemoteTable:
    is_extended: bool
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class DescribeRemoteDatabase:
    is_extended: bool
    database: str


@dataclass(frozen=True, slots=True)
class UseDatabase:
    database: str


@dataclass(frozen=True, slots=True)
class UseCluster:
    """Without `cluster` each statement's cluster is resolved again."""

    cluster: str | None


@dataclass(frozen=True, slots=True)
class ShowClusters:
    pass


@dataclass(frozen=True, slots=True)
class ShowClustersOfTable:
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class ExplainCluster:
    """`statement` is the text of another statement."""

    statement: str


@dataclass(frozen=True, slots=True)
class AddSecondaryCluster:
    """`predicate` is the text of one over partition keys."""

    table: QualifiedTable
    cluster: str
    predicate: str | None


@dataclass(frozen=True, slots=True)
class DropSecondaryCluster:
    table: QualifiedTable
    cluster: str
    predicate: str | None


@dataclass(frozen=True, slots=True)
class MarkSetDone:
    table: QualifiedTable
    partition: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShowSetsDone:
    table: QualifiedTable | None
    target: str | None


@dataclass(frozen=True, slots=True)
class ShowTargets:
    pass


@dataclass(frozen=True, slots=True)
class ShowTables:
    target: str
    pattern: str | None


@dataclass(frozen=True, slots=True)
class ShowEpochs:
    target: str | None


@dataclass(frozen=True, slots=True)
class ShowVersions:
    table: QualifiedTable
    target: str | None


@dataclass(frozen=True, slots=True)
class Help:
    """`topic` is how the statements begin that are meant."""

    topic: str | None


@dataclass(frozen=True, slots=True)
class EngineStatement:
    """A statement that is none of calque's own, and is for a cluster's engine to understand. `parameters` are the
    values of its `?`."""

    text: str
    parameters: tuple[str | int, ...] = ()


ReplStatement = ReplDump | ReplLoadDirectory | ReplLoad | ReplStatus | ExportTable | ImportTable
RemoteStatement = (
    CreateRemoteTable
    | CreateRemoteDatabase
    | DropRemoteTable
    | DropRemoteDatabase
    | SetTableProperties
    | SetDatabaseProperties
    | SetRemoteData
    | ShowRemoteTables
    | ShowRemoteDatabases
    | DescribeRemoteTable
    | DescribeRemoteDatabase
)
ClusterStatement = (
    UseCluster | ShowClusters | ShowClustersOfTable | ExplainCluster | AddSecondaryCluster | DropSecondaryCluster
)
MarkStatement = MarkSetDone | ShowSetsDone
TargetStatement = ShowTargets | ShowTables | ShowEpochs | ShowVersions
SessionStatement = UseDatabase | Help
OwnStatement = ReplStatement | RemoteStatement | ClusterStatement | MarkStatement | TargetStatement | SessionStatement
Statement = OwnStatement | EngineStatement
