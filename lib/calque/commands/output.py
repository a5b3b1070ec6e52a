"""The output of commands: one JSON document, a table or a line on stdout; errors and a bar on stderr."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from calque.errors import printable
from calque.model.names import TableName

UNWRAPPED = 4096
"""The width in characters of a table that goes into a pipe or a file, so that no cell is broken there."""


@dataclasses.dataclass(slots=True)
class Printed:
    """A note of what a command has printed so far."""

    document: bool = False
    """True once the command has printed its JSON document, so that an error does not print another one."""


PRINTED = Printed()


def print_json(document: object) -> None:
    """Print one JSON document on stdout; dataclasses become objects. Raises TypeError or ValueError for values that
    JSON does not have."""
    text = json.dumps(document, indent=2, default=_plain, allow_nan=False)
    PRINTED.document = True
    click.echo(text)


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table on stdout, its cells without markup. None is shown as "-", a list as its length, and characters
    that would steer a terminal as escapes."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else UNWRAPPED)
    console.print(table)


def with_content(
    headings: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the headings and the rows without the columns that have nothing in any row: None, no text, an empty
    list."""
    kept = [number for number in range(len(headings)) if any(row[number] not in (None, "", (), []) for row in rows)]
    return tuple(headings[number] for number in kept), [tuple(row[number] for number in kept) for row in rows]


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; where it is wider than the terminal, a table of names and values for each row."""
    from shutil import get_terminal_size

    if not sys.stdout.isatty() or width(headings, rows) <= get_terminal_size().columns:
        print_table(headings, rows)
        return
    for number, row in enumerate(rows, 1):
        print_table((f"row {number} of {len(rows)}", ""), zip(headings, row, strict=True))


def width(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Return how many columns of the terminal the table takes, with a blank between its own columns."""
    from rich.cells import cell_len

    lines = [headings, *([shown(cell) for cell in row] for row in rows)]
    return sum(max(map(cell_len, column)) + 1 for column in zip(*lines, strict=True)) - 1


def print_csv(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print CSV on stdout. None is empty, and a list is JSON. On a terminal texts are shown as in a table."""
    import csv

    def text(cell: object) -> object:
        plain = json.dumps(cell) if isinstance(cell, list | tuple) else cell
        return printable(plain) if isinstance(plain, str) and sys.stdout.isatty() else plain

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([text(cell) for cell in row] for row in rows)


def shown(cell: object) -> str:
    if cell is None:
        return "-"
    return printable(str(len(cell) if isinstance(cell, list | tuple) and not isinstance(cell, TableName) else cell))


def counted(number: int, noun: str) -> str:
    """Return the number with the noun, which gets an s where it is not 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def tallied(counts: Mapping[str, int]) -> str:
    """Return the words, each with the number of times that it comes where that is not 1: `add_partition (3)`."""
    return ", ".join(f"{word} ({count})" if count != 1 else word for word, count in counts.items())


def print_line(text: str) -> None:
    """Print one line on stdout; characters that would steer a terminal are shown as escapes."""
    click.echo(printable(text))


def print_text(text: str) -> None:
    """Print one sentence or several as one line on stdout. On a terminal the line ends between words where it is too
    long, and goes on indented, because a terminal would cut a word."""
    from shutil import get_terminal_size
    from textwrap import fill

    line = printable(text)
    if sys.stdout.isatty():
        width = get_terminal_size().columns
        line = fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    click.echo(line)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"JSON can't say {type(value).__name__}")


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr for work that takes long, and yield the function that moves it, of (done, all). Where stderr
    is no terminal nothing is shown."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
