"""The writes to a target: its catalog, and the lease of its one writer."""

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
    """A change of one table in one step. The table `name` (None: a new one) becomes `table`; the partitions `put` are
    added or replaced, those named in `drop` vanish. With `cascade` the partitions that are not in `put` get the table's
    columns. `expected_event` is as in `Tables.alter_table`.

    `contents` has the new files of the table (`""`), and of those partitions of `put`, that get other files than they
    have, or their first; the files lie at the target. `shows` is the state of the source that the commit makes.

    The `contents` of an ACID table in a format with a log are the source's files, which the call reads: the log gets
    files of its own with their rows. `before` has for each of these contents the name under which the same partition
    (`""`: table) stood before, if it did.
    """

    name: TableName | None
    table: Table
    put: Sequence[Partition] = ()
    drop: Sequence[str] = ()
    cascade: bool = False
    expected_event: str = ""
    contents: Mapping[str, Listing] = field(default_factory=dict)
    shows: ShownState | None = None
    before: Mapping[str, str] = field(default_factory=dict)


class Databases(Protocol):
    """The databases of a target. The reads are as in `CatalogReader`."""

    def databases(self) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def create_database(self, database: Database) -> None: ...

    def alter_database(self, name: str, database: Database) -> None: ...

    def drop_database(self, name: str) -> None:
        """Drop an empty database. Never cascades: a database that is not empty raises `Conflict`."""


class Tables(Protocol):
    """The tables and views of a target. The reads are as in `CatalogReader`."""

    def tables(self, database: str) -> Sequence[str]: ...

    def table(self, name: TableName) -> Table | None: ...

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]: ...

    def create_table(self, table: Table) -> None: ...

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        """Replace the definition. A new name in `table` renames, also across databases. Where the server has
        compare-and-swap, `expected_event` is the value that the parameter `calque.event` must still have, else
        `Conflict`."""

    def drop_table(self, name: TableName) -> None: ...

    def commit_table(self, commit: TableCommit) -> None:
        """Make any difference of one table but its name, of any size, in one step. Raises `FormatMisfit` where the
        table's format has no such state, `FileGone` where a file of the source can't be read, and `Refused` for a table
        of which the catalog can't do it (`TargetCapabilities.any_difference`)."""

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        """Return the files of the table (`""`), or of each of its named partitions that exist. None where the catalog
        knows no files: the content is then what lies in the directories."""

    def settle(self, table: Table) -> None:
        """Finish the last change of `table` where a process died within it. Readers saw the change whole before. Costs
        no call in a catalog where each change is one call."""


class Partitions(Protocol):
    """The partitions of a target's tables. The reads are as in `CatalogReader`."""

    def partition_names(self, name: TableName) -> Sequence[str]: ...

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None: ...

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]: ...

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        """Rename the partition with `values`, and give it the definition `partition`. This is the one call that takes
        no `DO_NOT_UPDATE_STATS`: 4.2.0 counts the partition's files anew, 3.1.3 where the definition says other counts
        than are there. The server's counts are in the definition then, not those of `partition`."""

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None: ...


class Functions(Protocol):
    """The functions of a target. The reads are as in `CatalogReader`."""

    def functions(self, database: str) -> Sequence[str]: ...

    def function(self, name: TableName) -> Function | None: ...

    def create_function(self, function: Function) -> None: ...

    def drop_function(self, name: TableName) -> None: ...


class Facets(Protocol):
    """The constraints and column statistics of a target's tables. The reads are as in `CatalogReader`."""

    def constraints(self, name: TableName) -> Sequence[Constraint]: ...

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]: ...

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics: ...

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]: ...

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        """Add constraints of one kind to one table, which they name. Raises `Conflict` or `Refused` where a constraint
        of the name is there, or the key that a foreign key points to is not."""

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        """Drop the table's constraint of that name. A missing one raises `Conflict`."""

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        """Set column statistics of the table (`""` alone) or of partitions, in batches. Columns that are not named keep
        theirs. The server adds the columns to the object's parameter `COLUMN_STATS_ACCURATE`."""

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        """Drop the statistics of one column of the table (`""`) or of a partition. Missing statistics are fine, or
        raise `Conflict`."""


class Catalog(Databases, Tables, Partitions, Functions, Facets, Protocol):
    """A target's metastore. Each method is one call and one transaction there, all or nothing. Without
    `TargetCapabilities.atomic_lists` a list is written object by object, in its order, and ends at the first that
    fails.

    No method deletes data, whichever type the object has (`deleteData` is never true), and none but `rename_partition`
    lets the server compute statistics anew (`DO_NOT_UPDATE_STATS`). An object that exists already, or is missing,
    raises `Conflict`. A list of more objects than `TargetCapabilities.limits` says is `Refused` before anything is
    sent, and one that the server finds too large all the same raises `TooLarge`.
    """

    def identity(self) -> str:
        """Return the id that the metastore keeps of itself; empty where it has none (`CatalogReader.identity`)."""

    def abilities(self) -> TargetCapabilities:
        """Return the operations and limits of the catalog, as far as they are known: limits get smaller with each
        `TooLarge`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetParts:
    """A catalog part by part. A catalog that keeps some tables in another way replaces the parts that it changes
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
    """The catalog is not in the state that the call needs: an object exists already, is missing, or was changed by
    another writer. The caller observes again and decides; users never see the error itself."""


class FormatMisfit(Exception):
    """The state can't be one of a table of the format that the table has at the target. `reason` says why, as the end
    of a sentence. Nothing was changed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class FileGone(Exception):
    """A file of the source that a call was to read is not as it was listed, or not there. Nothing was changed."""

    def __init__(self, path: str, size: int, modified_ns: int) -> None:
        self.path, self.size, self.modified_ns = path, size, modified_ns
        super().__init__(f"{path} is gone")


class TooLarge(CallFailed):
    """The server does not take so many objects at once. From now on the limit of the operation is half of them: send
    the list again in parts. If only the answer was lost, the parts that were done all the same raise `Conflict`."""


class Leases(Protocol):
    """The generations of the lease on one target, kept where all processes that could write there see them. A read sees
    everything that was written before it."""

    def newest(self) -> Generation | None:
        """Return the generation with the greatest number; None before the first."""

    def take(self, generation: Generation) -> None:
        """Make the generation. Raises `Conflict` where one of its number is there: of several that try, one
        succeeds."""

    def renew(self, generation: Generation) -> None:
        """Write the generation in place of what it was. Raises `Conflict` where it is not there any more."""

    def forget(self, below: int) -> None:
        """Remove all generations with numbers below `below`. Call it only while a generation with no smaller number is
        there, because the greatest number must never be lost."""
