"""What tables consist of at an epoch: the rows of a ledger, up to that epoch, put together.

Rows say what was done, in the order of epoch and step. A table's content is known as a whole from a row on that begins
one (`BEGINNINGS`); a rename takes it along under another name without a row for each partition. What is known only in
part (a target that was taken as it is, a ledger that an earlier version wrote) says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from calque.core.records.continuity import carries_files
from calque.model.ledger import ObjectRow
from calque.model.names import TableName

BEGINNINGS = frozenset({"create_table", "replace", "read", "adopt"})
"""Changes of a table after which its rows say all that it has."""
ENDINGS = BEGINNINGS | {"drop_table", "drop_partition", "rename_away"}
"""Changes after which rows before them may mean nothing any more."""
FOUND = "found"
"""The change of what was seen at the target and had not been recorded."""
UNSURE = "unsure"
"""The change of a table of which something may not have been recorded."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row without what it carries. `index` is its place in the caller's list."""

    index: int
    name: TableName
    partition: str
    incarnation: str
    event_id: int
    change: str
    files: bool
    defines: bool


@dataclass(slots=True)
class Part:
    """A partition, or the table itself: the lines that say its files and its definition, and its renames."""

    files: Line | None = None
    definition: Line | None = None
    history: list[Line] = field(default_factory=list)

    def lines(self) -> Iterator[Line]:
        yield from self.history
        for line in (self.files, self.definition):
            if line is not None:
                yield line


@dataclass(slots=True)
class Content:
    """One table. `is_complete`: everything in it is known."""

    incarnation: str
    is_complete: bool
    table: Part = field(default_factory=Part)
    partitions: dict[str, Part] = field(default_factory=dict)
    between_names: dict[tuple[str, int], Part] = field(default_factory=dict)
    """Partitions that were renamed away and have no other name yet."""

    def lines(self) -> Iterator[Line]:
        for part in (self.table, *self.partitions.values(), *self.between_names.values()):
            yield from part.lines()


def line_of(index: int, row: ObjectRow) -> Line:
    return Line(
        index,
        TableName(row.database, row.table),
        row.partition,
        row.incarnation,
        row.event_id,
        row.change,
        carries_files(row),
        bool(row.definition),
    )


def contents(lines: Iterable[Line]) -> dict[TableName, Content]:
    """The tables that are there after these lines, which are in the order of epoch and step."""
    tables: dict[TableName, Content] = {}
    renamed_away: dict[tuple[str, int], tuple[Content, Line]] = {}
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


def of_table(before: Content | None, renamed_away: dict[tuple[str, int], tuple[Content, Line]], line: Line) -> Content:
    if line.change in BEGINNINGS:
        content = Content(line.incarnation, line.defines, Part(history=[line]))
    elif before is not None and before.incarnation == line.incarnation:
        content = before
    elif (renamed := renamed_away.pop((line.incarnation, line.event_id), None)) is not None:
        content, rename = renamed
        content.table.history += [rename, line]
    else:
        content = Content(line.incarnation, is_complete=False, table=Part(history=[line]))
    put(content.table, line)
    return content


def of_partition(content: Content, line: Line) -> None:
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
        put(content.partitions.setdefault(line.partition, Part()), line)


def put(part: Part, line: Line) -> None:
    if line.files:
        part.files = line
    if line.defines:
        part.definition = line


def needed(lines: Iterable[Line]) -> set[int]:
    """The lines, by index, without which `contents` of these and later lines would be others."""
    return {line.index for content in contents(lines).values() for line in content.lines()}
