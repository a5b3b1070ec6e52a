"""What is written at a target: its catalog, and the lease of its one writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from calque.errors import CallFailed
from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.files import Listing
from calque.model.hive import Database, Function, Partition, Table
from calque.model.lease import Generation
from calque.model.names import TableName
from calque.model.plan import ShownState
from calque.model.policy import TargetCapabilities


@dataclass(frozen=True, slots=True)
class TableCommit:
    """The table `name` (None: a new one) becomes `table`; `put` are added or replaced, `drop` vanish. With `cascade`
    the partitions that are not in `put` get the table's columns. `expected_event` is as in `Tables.alter_table`.
    `contents` says the files of the table (`""`), and of those of `put`, that get other ones than they have, or their
    first; they lie at the target. `shows` is which state of the source this makes."""

    name: TableName | None
    table: Table
    put: Sequence[Partition] = ()
    drop: Sequence[str] = ()
    cascade: bool = False
    expected_event: str = ""
    contents: Mapping[str, Listing] = field(default_factory=dict)
    shows: ShownState | None = None


class Databases(Protocol):
    """The databases of a target; the reads as in `CatalogReader`."""

    def databases(self) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def create_database(self, database: Database) -> None: ...

    def alter_database(self, name: str, database: Database) -> None: ...

    def drop_database(self, name: str) -> None:
        """Never cascades: a database that is not empty raises `Conflict`."""


class Tables(Protocol):
    """The tables and views of a target; the reads as in `CatalogReader`."""

    def tables(self, database: str) -> Sequence[str]: ...

    def table(self, name: TableName) -> Table | None: ...

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]: ...

    def create_table(self, table: Table) -> None: ...

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        """Replace the definition; a new name in `table` renames, also across databases. Where the server has
        compare-and-swap, `expected_event` is what `calque.event` must still be, else `Conflict`."""

    def drop_table(self, name: TableName) -> None: ...

    def commit_table(self, commit: TableCommit) -> None:
        """Any difference of one table but its name, of any size, in one step. `FormatMisfit` where the table's format
        has no such state, `Refused` of a table of which the catalog can't (`TargetCapabilities.any_difference`)."""

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        """The files that a table of the catalog (`""`), or each of its named partitions that exists, has. None where
        the catalog knows no files: what lies in their directories is what they have."""

    def settle(self, table: Table) -> None:
        """Whatever a death left undone of the last change of a table of the catalog is done: it was shown whole before,
        to whoever reads. Costs no call where a change is one."""


class Partitions(Protocol):
    """The partitions of a target's tables; the reads as in `CatalogReader`."""

    def partition_names(self, name: TableName) -> Sequence[str]: ...

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None: ...

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]: ...

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        """The one call that takes no `DO_NOT_UPDATE_STATS`: 4.2.0 counts the partition's files anew, 3.1.3 where the
        definition says other counts than are there. What it finds is in the definition then, not what `partition`
        says."""

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None: ...


class Functions(Protocol):
    """The functions of a target; the reads as in `CatalogReader`."""

    def functions(self, database: str) -> Sequence[str]: ...

    def function(self, name: TableName) -> Function | None: ...

    def create_function(self, function: Function) -> None: ...

    def drop_function(self, name: TableName) -> None: ...


class Facets(Protocol):
    """The constraints and column statistics of a target's tables; the reads as in `CatalogReader`."""

    def constraints(self, name: TableName) -> Sequence[Constraint]: ...

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]: ...

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics: ...

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]: ...

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        """Add constraints of one kind to one table, which they name. `Conflict` or `Refused` where one of the name is
        there, or the key that a foreign key points to is not."""

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        """By its name; one that is missing is `Conflict`."""

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        """Set column statistics of the table (`""` alone) or of partitions, in batches; columns that are not named keep
        theirs. The server adds the columns to the object's parameter `COLUMN_STATS_ACCURATE`."""

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        """Those of one column of the table (`""`) or of a partition. They may be missing, or raise `Conflict`."""


class Catalog(Databases, Tables, Partitions, Functions, Facets, Protocol):
    """A target's metastore. Each method is one call and one transaction there, all or nothing; without
    `TargetCapabilities.atomic_lists` a list is written object by object, in its order, and ends where one of them
    fails.

    No method deletes data, whatever the object's type (`deleteData` is never true), and none but `rename_partition`
    lets the server compute statistics anew (`DO_NOT_UPDATE_STATS`). A table that exists already, or is missing, is
    `Conflict` below. A list of more objects than `TargetCapabilities.limits` says is `Refused` before anything is sent,
    and one that the server finds too large all the same raises `TooLarge`.
    """

    def identity(self) -> str:
        """As in `CatalogReader`."""

    def abilities(self) -> TargetCapabilities:
        """What it can do, as far as is known: limits get smaller with each `TooLarge`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetParts:
    """A catalog part by part: what keeps some tables in another way replaces the parts that it changes
    (`dataclasses.replace`), and `forwarding.ForwardingCatalog` makes one catalog of them again."""

    identity: Callable[[], str]
    abilities: Callable[[], TargetCapabilities]
    databases: Databases
    tables: Tables
    partitions: Partitions
    functions: Functions
    facets: Facets


def parts_of(catalog: Catalog) -> TargetParts:
    return TargetParts(
        identity=catalog.identity,
        abilities=catalog.abilities,
        databases=catalog,
        tables=catalog,
        partitions=catalog,
        functions=catalog,
        facets=catalog,
    )


class Conflict(Exception):
    """The catalog is not in the state that the call needs: exists already, is missing, or was changed by another.
    The caller observes again and decides; it is never shown to a user as it is."""


class FormatMisfit(Exception):
    """The state can't be one of a table of the format that it has at the target: `reason` says why, as the end of a
    sentence. Nothing was changed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class TooLarge(CallFailed):
    """The server does not take so many objects at once. The limit of the operation is half of them from then on: send
    the list again in parts. If an answer was lost, what was done all the same is a `Conflict` then."""


class Leases(Protocol):
    """The generations of the lease on one target, kept where all that could write there see them. Whoever reads sees
    what was written before."""

    def newest(self) -> Generation | None:
        """That of the greatest number; None before the first."""

    def take(self, generation: Generation) -> None:
        """Make it. `Conflict` where one of its number is there: of several that try, one succeeds."""

    def renew(self, generation: Generation) -> None:
        """Write it in place of what it was. `Conflict` where it is not there any more."""

    def forget(self, below: int) -> None:
        """Remove all of smaller numbers. Only where one is there that is not smaller."""
