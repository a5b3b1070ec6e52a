"""The facts from which the cluster of a statement is chosen: which cluster has which table, and what the statement
reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.model.names import TableName
from calque.model.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Replica:
    """A table at a secondary cluster. `partitions` are those that are whole there; an unpartitioned table is there as a
    whole. `lag_seconds` is None where the lag is not known. `absent` says why the replica counts as absent, no matter
    what it has; empty where it does not. `local_name` is its name there, None where it has the primary's."""

    partitions: frozenset[str] = frozenset()
    lag_seconds: float | None = 0.0
    absent: str = ""
    local_name: TableName | None = None


@dataclass(frozen=True, slots=True)
class ClusteredTable:
    """A table and the clusters that have it. `primaries` is one cluster, or several where originals of one name exist.
    `keys` are the partition keys with their types, `partitions` the names of all partitions that the primary has,
    `replicas` the replicas by cluster. `view` is the text of a view, empty for a table."""

    primaries: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    partitions: frozenset[str] = frozenset()
    replicas: Mapping[str, Replica] = field(default_factory=dict)
    view: str = ""


@dataclass(frozen=True, slots=True)
class Clusters:
    """The names of all clusters, in the order of the configuration, and how statements choose among them. `max_lag` is
    in seconds."""

    names: tuple[str, ...]
    default: str
    use_default: bool = False
    enabled: bool = True
    max_lag: float = 300.0


@dataclass(frozen=True, slots=True)
class Input:
    """A table that a statement reads. With a `predicate` it reads only partitions of which that is true. `via` is the
    view that reads the table, None where the statement names it."""

    name: TableName
    predicate: Predicate | None = None
    via: TableName | None = None


@dataclass(frozen=True, slots=True)
class StatementTables:
    """The tables of a statement: inputs in the order of their appearance, outputs in the order in which they are
    written. An output may not exist yet."""

    inputs: tuple[Input, ...] = ()
    outputs: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class Considered:
    """A cluster that was considered for a statement. `reason` says why it was chosen, or why not."""

    cluster: str
    chosen: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """The cluster that was chosen for a statement. `considered` has the clusters in the order in which they were looked
    at; where none was chosen, `cluster` is None and `refusal` says why."""

    cluster: str | None
    considered: tuple[Considered, ...] = ()
    refusal: str = ""
