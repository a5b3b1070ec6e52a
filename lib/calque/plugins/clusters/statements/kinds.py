"""The parsed statements about clusters as values, and the columns of their rows."""

from __future__ import annotations

from dataclasses import dataclass

from calque.statements.statement import QualifiedTable

CLUSTER_COLUMNS = ("cluster", "metastore", "engine", "default", "reachable")
PLACEMENT_COLUMNS = (
    "cluster",
    "role",
    "partitions_present",
    "partitions",
    "event_id",
    "lag_seconds",
    "location",
)
EXPLAIN_COLUMNS = ("cluster", "chosen", "reason")


@dataclass(frozen=True, slots=True)
class UseCluster:
    """The statement `USE CLUSTER`. With `cluster` None each statement's cluster is resolved again."""

    cluster: str | None


@dataclass(frozen=True, slots=True)
class ShowClusters:
    pass


@dataclass(frozen=True, slots=True)
class ShowClustersOfTable:
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class ExplainCluster:
    """The statement `EXPLAIN CLUSTER`. `statement` is the text of the statement that it explains."""

    statement: str


@dataclass(frozen=True, slots=True)
class AddSecondaryCluster:
    """The statement `ALTER TABLE … ADD SECONDARY CLUSTER`. `predicate` is the text of a predicate over partition keys;
    None for all partitions."""

    table: QualifiedTable
    cluster: str
    predicate: str | None


@dataclass(frozen=True, slots=True)
class DropSecondaryCluster:
    table: QualifiedTable
    cluster: str
    predicate: str | None
