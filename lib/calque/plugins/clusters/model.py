"""Who has which table: what resolution of a statement's cluster decides from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.model.names import TableName
from calque.model.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Replica:
    """A table at a secondary cluster. `partitions` are those that are whole there; an unpartitioned table is there
    whole. `lag_seconds` None: nobody knows. `absent` says why it counts as absent whatever it has; empty where it does
    not. `local_name` is its name there, where that is another one."""

    partitions: frozenset[str] = frozenset()
    lag_seconds: float | None = 0.0
    absent: str = ""
    local_name: TableName | None = None


@dataclass(frozen=True, slots=True)
class ClusteredTable:
    """A table of some cluster. `primaries` is one cluster, or several where originals of one name exist. `keys` are the
    partition keys with their types; `partitions` all that the primary has. `view` is the text of a view."""

    primaries: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    partitions: frozenset[str] = frozenset()
    replicas: Mapping[str, Replica] = field(default_factory=dict)
    view: str = ""


@dataclass(frozen=True, slots=True)
class Clusters:
    """All clusters in the order of the configuration, and how statements choose among them. `max_lag` in seconds."""

    names: tuple[str, ...]
    default: str
    use_default: bool = False
    enabled: bool = True
    max_lag: float = 300.0


@dataclass(frozen=True, slots=True)
class Input:
    """A table that a statement reads: only partitions that the predicate is true of, where there is one. `via` is the
    view that reads it."""

    name: TableName
    predicate: Predicate | None = None
    via: TableName | None = None


@dataclass(frozen=True, slots=True)
class StatementTables:
    """Inputs in the order of their appearance, outputs as they are written; the latter may be new."""

    inputs: tuple[Input, ...] = ()
    outputs: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class Considered:
    """A cluster that was looked at. `reason` says why it was chosen, or why not."""

    cluster: str
    chosen: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """`considered` in the order in which clusters were looked at; `refusal` says why none was chosen."""

    cluster: str | None
    considered: tuple[Considered, ...] = ()
    refusal: str = ""
