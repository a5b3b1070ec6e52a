"""Parts of statements, and the statement that is for an engine. Every other class stands beside its executor.

Names of databases and tables are lower-case. Names of targets and clusters are as they were written. None stands where
the text leaves something out.
"""

from __future__ import annotations

from dataclasses import dataclass


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
class EngineStatement:
    """A statement that is none of calque's own, and is for a cluster's engine to understand. `parameters` are the
    values of its `?`."""

    text: str
    parameters: tuple[str | int, ...] = ()
