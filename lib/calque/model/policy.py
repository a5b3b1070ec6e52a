"""The policy of one target: the objects that it takes from the source, and their names there. The functions over it are
in `core.policy.admit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SmallFilesRule:
    """A rule for combining small files. A new partition with at least `files` files that are smaller than `below` bytes
    has them combined into files of at most `below` bytes, counted by the sizes at the source."""

    files: int = 100
    below: int = 128 * 10**6


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one target. `include` and `exclude` are `database.table` globs or `/regular expressions/`. `rename`
    maps a database to a database, or `database.table` to `database.table`; names at the source are keys. `properties`
    are set on tables, `""` removes one. Durations are seconds."""

    target: str
    source: str
    include: tuple[str, ...] = ("*.*",)
    exclude: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    warehouse: str = ""
    external_base: str = ""
    functions_root: str = ""
    """The place to which resources of functions are copied; empty for one below the warehouse."""
    locations: Mapping[str, str] = field(default_factory=dict)
    strict_locations: bool = False
    start: int | None = None
    """An event id at which the target is known to equal the source; None bootstraps."""
    consistency: str = "table"
    atomicity: str = "listing"
    appends: str = "in_place"
    data: str | Mapping[str, str] = "copy"
    """The word "copy" or "none" for every table, or by pattern: the longest pattern that matches a table decides, and a
    table that none matches is copied."""
    format: str | Mapping[str, str] = "plain"
    """The word "plain" (as at the source) or "delta" (its Parquet files in a Delta table) for every table, or by
    pattern: the longest pattern that matches a table decides, and a table that none matches is plain."""
    acid: str | Mapping[str, str] = "skip"
    """The word "native" (as ACID tables), "external" (insert-only tables as external ones), "delta" (as Delta tables),
    "auto" ("native" where the target can: `core.policy.admit.natively`; else "external") or "skip" (set aside) for
    every ACID table, or by pattern: the longest pattern that matches a table decides, and a table that none matches is
    set aside."""
    transactions: str = "together"
    """The word "together" for native ACID tables that show what one transaction of the source wrote at one moment,
    "apart" for each at one of its own."""
    partitions: Mapping[str, str] = field(default_factory=dict)
    """Predicates over partition keys, by patterns of tables at the source; of those that match the longest decides."""
    where: str = ""
    """A predicate over tables' definitions at the source; empty for all."""
    drops: str = "follow"
    grace: float = 3600.0
    max_drop: float = 0.1
    lease: float = 30.0
    bandwidth: int = 0
    """Bytes a second that copies may take; 0 for any."""
    permissions: str = "target"
    """The word "keep" for directories and files with the permissions that they have at the source, "target" for those
    that the target's storage gives."""
    grants: str = "ignore"
    """The word "follow" for databases and tables with the privileges that they have at the source, "ignore" for the
    target's own."""
    compact: Mapping[str, SmallFilesRule] = field(default_factory=dict)
    """The rules for combining small files, by patterns of tables at the source; of those that match the longest
    decides."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The greatest numbers of objects that one call of each operation takes."""

    add_partitions: int = 5000
    alter_partitions: int = 5000
    drop_partitions: int = 1000


@dataclass(frozen=True, slots=True)
class TargetCapabilities:
    """The atomic operations that a target's catalog declares; the planner knows nothing else of it."""

    limits: Limits = field(default_factory=Limits)
    compare_and_swap: bool = False
    atomic_lists: bool = True
    """A call's list of partitions is written all or nothing; otherwise it is written one partition after the other."""
    any_difference: bool = False
    """The catalog makes any difference of one table and its partitions, but of its name, in one commit
    (`CommitTable`)."""
