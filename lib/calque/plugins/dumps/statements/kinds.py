"""What the statements of dumps say."""

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
