"""The parsed statements over links: one class for each kind, with the words of the statement as fields; and their
columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.statements.statement import QualifiedTable

REMOTE_COLUMNS = ("name", "connected_to", "via", "state", "event_id", "reason")
DESCRIBE_COLUMNS = ("col_name", "data_type", "comment")


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
    """An ALTER REMOTE TABLE SET DATA. `data` is "copy" or "none", as in a configuration."""

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
