"""The parsed statements of dumps: one class for each kind, with the words of the statement as fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.model.names import EventId
from calque.statements.statement import QualifiedTable, ReplicationPolicy


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
    """A `REPL LOAD … FROM`. Without `database` the dump goes into the database of the name that it was dumped under."""

    database: str | None
    directory: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplLoad:
    """A `REPL LOAD` of the newest dump of a policy. Without `database` the dump goes into the database of the name in
    the policy."""

    policy: ReplicationPolicy
    database: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplStatus:
    database: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """An EXPORT. An empty `partition` means the whole table."""

    table: QualifiedTable
    partition: Mapping[str, str]
    directory: str


@dataclass(frozen=True, slots=True)
class ImportTable:
    """An IMPORT. An empty `partition` means all that the directory holds."""

    is_external: bool
    table: QualifiedTable | None
    partition: Mapping[str, str]
    directory: str
    location: str | None
