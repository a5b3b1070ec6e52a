"""The parts that statements share, and the statement that is for an engine. Every other statement's class stands in a
module `kinds`.

Names of databases and tables are lower-case. Names of targets and clusters are as they were written. None stands where
the text leaves a part out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QualifiedTable:
    """A table as a statement names it. Where `database` is None the table is in the session's."""

    database: str | None
    table: str


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """The policy of a dump, `database.include.exclude`, the last two as regular expressions over table names. No
    `include` means all tables."""

    database: str
    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class EngineStatement:
    """A statement that is not one of calque's own, and is for a cluster's engine to understand. `parameters` are the
    values of its `?`."""

    text: str
    parameters: tuple[str | int, ...] = ()
