"""Contents of tables at an epoch: the rows of a ledger, up to that epoch, put together.

Each row says what was done, and rows stand in the order of epoch and step. A table's content is known as a whole from a
row on that begins one (`BEGINNINGS`). A rename takes the content along under another name, without a row for each
partition. A content that is known only in part (of a target that was taken over as it was, or of a ledger that an
earlier version wrote) is not `is_complete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from calque.core.records.continuity import carries_files
from calque.model.ledger import ObjectRow
from calque.model.names import TableName

BEGINNINGS = frozenset({"create_table", "replace", "read", "adopt"})
"""Changes of a table after which its rows tell its whole content."""
ENDINGS = BEGINNINGS | {"drop_table", "drop_partition", "rename_away"}
"""Changes after which earlier rows may count no more."""
FOUND = "found"
"""The change in a row for an object that was seen at the target and had not been recorded."""
UNSURE = "unsure"
"""The change in a row for a table of which a part may not have been recorded."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A row of a ledger without its files and its definition. `index` is its place in the caller's list; `files` and
    `defines` tell whether the row has files and a definition."""

    index: int
    name: TableName
    partition: str
    incarnation: str
    event_id: int
    change: str
    files: bool
    defines: bool


@dataclass(slots=True)
class PartitionContent:
    """The rows that tell of one partition, or of the table itself: the newest one with its files, the newest one with
    its definition, and its renames in `history`."""

    files: LedgerLine | None = None
    definition: LedgerLine | None = None
    history: list[LedgerLine] = field(default_factory=list)

    def lines(self) -> Iterator[LedgerLine]:
        yield from self.history
        for line in (self.files, self.definition):
            if line is not None:
                yield line


@dataclass(slots=True)
class Content:
    """The rows that tell of one table and its partitions. `is_complete`: they tell all that the table has."""

    incarnation: str
    is_complete: bool
    table: PartitionContent = field(default_factory=PartitionContent)
    partitions: dict[str, PartitionContent] = field(default_factory=dict)
    between_names: dict[tuple[str, int], PartitionContent] = field(default_factory=dict)
    """Partitions that were renamed away and have no other name yet."""

    def lines(self) -> Iterator[LedgerLine]:
        for part in (self.table, *self.partitions.values(), *self.between_names.values()):
            yield from part.lines()


def line_of(index: int, row: ObjectRow) -> LedgerLine:
    return LedgerLine(
        index,
        TableName(row.database, row.table),
        row.partition,
        row.incarnation,
        row.event_id,
        row.change,
        carries_files(row),
        bool(row.definition),
    )


def contents(lines: Iterable[LedgerLine]) -> dict[TableName, Content]:
    """Return the tables that exist after these lines, with their contents. `lines` are in the order of epoch and
    step."""
    tables: dict[TableName, Content] = {}
    renamed_away: dict[tuple[str, int], tuple[Content, LedgerLine]] = {}
    for line in lines:
        if line.partition:
            of_partition(tables.setdefault(line.name, Content("", is_complete=False)), line)
        elif line.change == "drop_table":
            tables.pop(line.name, None)
        elif line.change == "rename_away":
            if line.name in tables:
                renamed_away[line.incarnation, line.event_id] = tables.pop(line.name), line
        elif line.change == UNSURE:
            content = tables.setdefault(line.name, Content("", is_complete=False))
            content.is_complete = False
            content.table.history.append(line)
        else:
            tables[line.name] = of_table(tables.get(line.name), renamed_away, line)
    return tables


def of_table(
    before: Content | None, renamed_away: dict[tuple[str, int], tuple[Content, LedgerLine]], line: LedgerLine
) -> Content:
    """Return the table's content after `line`, a row of the table itself that neither drops nor renames it away. The
    content begins anew, goes on from `before`, or comes out of `renamed_away` with its partitions."""
    if line.change in BEGINNINGS:
        content = Content(line.incarnation, line.defines, PartitionContent(history=[line]))
    elif before is not None and before.incarnation == line.incarnation:
        content = before
    elif (renamed := renamed_away.pop((line.incarnation, line.event_id), None)) is not None:
        content, rename = renamed
        content.table.history += [rename, line]
    else:
        content = Content(line.incarnation, is_complete=False, table=PartitionContent(history=[line]))
    put(content.table, line)
    return content


def of_partition(content: Content, line: LedgerLine) -> None:
    """Bring the content of a table up to date with `line`, a row of one of its partitions."""
    link = (line.incarnation, line.event_id)
    if line.change == "drop_partition":
        content.partitions.pop(line.partition, None)
    elif line.change == "rename_away":
        part = content.partitions.pop(line.partition, None)
        if part is not None:
            part.history.append(line)
            content.between_names[link] = part
    else:
        if line.change == "rename_partition" and link in content.between_names:
            part = content.partitions[line.partition] = content.between_names.pop(link)
            part.history.append(line)
        put(content.partitions.setdefault(line.partition, PartitionContent()), line)


def put(part: PartitionContent, line: LedgerLine) -> None:
    if line.files:
        part.files = line
    if line.defines:
        part.definition = line


def needed(lines: Iterable[LedgerLine]) -> set[int]:
    """Return the lines, by `LedgerLine.index`, that `contents` needs: without one of them, `contents` of these and
    later lines would differ."""
    return {line.index for content in contents(lines).values() for line in content.lines()}
