"""The rows of a metastore's tables, ACID or plain, as texts that Hive prints of them; and what readers of them saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calque.adapters.files.storage import FileStorage
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.transactions import HiveTransactionReader
from calque.core.acid.directories import HistoryGone
from calque.core.formats.layout import is_data, join
from calque.model.hive import Column, Table, is_full_acid, is_partitioned, is_transactional, location_of
from calque.model.names import TableName
from calque.ports import CatalogReader
from calque.ports.transactions import TransactionReader
from support.judges.acid_rows import TableRow, rows_read
from support.judges.proof import Found, read_tables
from support.sources.acid_files import FORMATS, content_of
from support.storages import any_storage
from support.worlds.worlds import History

Lines = tuple[str, ...]
"""The rows of a table as Hive prints them, sorted; those of a full ACID table begin with their ids."""


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads tables of a database at once: the metastore's transactions, then its valid write ids, then files."""

    database: str
    catalog: CatalogReader
    transactions: TransactionReader
    storage: FileStorage

    @staticmethod
    def at(uri: str, database: str) -> TableReader:
        client = Client(uri)
        return TableReader(database, HiveReader(client), HiveTransactionReader(client), any_storage())

    def tables(self) -> Mapping[str, Found]:
        return read_tables(self.catalog, self.database)

    def read(self) -> Mapping[str, Lines] | None:
        """The rows of all tables. None where definitions or partitions changed meanwhile, or files went. A table that
        is being renamed has no write ids for a moment, and Hive refuses to read one with a base then, too."""
        found = self.tables()
        try:
            lines = self.rows(found)
        except (FileNotFoundError, HistoryGone):
            return None
        return lines if shapes(found) == shapes(self.tables()) else None

    def rows(self, found: Mapping[str, Found]) -> Mapping[str, Lines]:
        """The rows by table."""
        is_committed = self.transactions.open_transactions().is_committed
        valid = self.transactions.valid_write_ids([TableName(self.database, name) for name in found])

        def rows_of(table: Table, location: str) -> Sequence[TableRow]:
            layout = layout_of(table)
            if not is_transactional(table):
                return self.plain_rows(location, layout)
            ids = valid[TableName(self.database, table.name)]
            full = is_full_acid(table)
            return rows_read(self.storage, location, ids, layout, is_full=full, is_committed=is_committed)

        return {name: lines_of(one, rows_of) for name, one in found.items()}

    def plain_rows(self, location: str, layout: tuple[Sequence[Column], str]) -> list[TableRow]:
        names, rows = [column.name for column in layout[0]], list[TableRow]()
        for file in filter(is_data, self.storage.children(location)):
            content = self.storage.read(join(location, file))
            if content is None:
                raise FileNotFoundError(file)
            rows += [((), *(row.get(name) for name in names)) for row in content_of(content, *layout).to_pylist()]
        return rows


def shapes(found: Mapping[str, Found]) -> Mapping[str, object]:
    """What must not change while rows are read: which tables and partitions there are, and where."""
    return {name: shape(one) for name, one in found.items()}


def shape(found: Found) -> object:
    columns = found.table.storage.columns if found.table.storage is not None else ()
    places = {part.values: location_of(part) for part in found.partitions}
    return found.table.id, found.table.type, columns, location_of(found.table), places


def layout_of(table: Table) -> tuple[Sequence[Column], str]:
    assert table.storage is not None
    [name] = [name for name, one in FORMATS.items() if one.input_format == table.storage.input_format]
    return table.storage.columns or (), name


def lines_of(found: Found, rows_of: Callable[[Table, str], Sequence[TableRow]]) -> Lines:
    things = found.partitions if is_partitioned(found.table) else [found.table]
    lines = []
    for thing in things:
        values = () if isinstance(thing, Table) else thing.values
        for row_id, *row in rows_of(found.table, location_of(thing) or ""):
            cells = ["NULL" if cell is None else str(cell) for cell in (*row, *values)]
            lines.append("\t".join([printed_id(row_id), *cells] if row_id else cells))
    return tuple(sorted(lines))


def printed_id(row_id: object) -> str:
    write_id, bucket, row = row_id  # type: ignore[misc]
    return f'{{"writeid":{write_id},"bucketid":{bucket},"rowid":{row}}}'


@dataclass(frozen=True, slots=True)
class SeenLines:
    """What differed from what was seen of the table before; `at` is the time in seconds since the epoch."""

    at: float
    name: TableName
    lines: Lines


@dataclass(slots=True)
class Reads:
    """What one reader saw of tables, in its order. `count` has each read of a table."""

    count: int = 0
    seen: list[SeenLines] = field(default_factory=list)
    last: dict[TableName, Lines] = field(default_factory=dict)

    def see(self, at: float, name: TableName, lines: Lines) -> None:
        self.count += 1
        if self.last.get(name) != lines:
            self.last[name] = lines
            self.seen.append(SeenLines(at, name, lines))

    def problems(self, history: History, is_bridged: Callable[[TableName, float], bool]) -> list[str]:
        """What the reader must not have seen: rows that the source's table never had, or earlier ones than before.
        Excepted are tables of which a bridge is announced at the time."""
        judge = History(history.states)
        seen = [one for one in self.seen if not is_bridged(one.name, one.at)]
        return [problem for one in seen if (problem := judge.judge(one.name, one.lines))]
