"""The line numbers of keys in a TOML file, which `tomllib` does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]


class FileLines:
    """The line numbers of the keys in a file that `tomllib` accepts as a whole."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._line_numbers: dict[Path, int] = {}
        section: Path = ()
        for number, statement in _statements(self._lines):
            paths = list(_paths(tomllib.loads(statement)))
            if statement.lstrip().startswith("["):
                section = ()
            for path in paths:
                self._line_numbers.setdefault(section + path, number)
            if statement.lstrip().startswith("["):
                section = paths[-1]

    def find(self, path: Path, value: object = None) -> int | None:
        """Return the line of the key at `path`, else of the nearest key or section above it, else None.

        `value`, a text inside a list or table of several lines, is looked for from there on.
        """
        for length in range(len(path), 0, -1):
            line = self._line_numbers.get(path[:length])
            if line is not None:
                return line if length == len(path) else self._inside(line, value)
        return None

    def _inside(self, line: int, value: object) -> int:
        later_keys = [number for number in self._line_numbers.values() if number > line]
        end = min(later_keys) - 1 if later_keys else len(self._lines)
        quoted_values = (f'"{value}"', f"'{value}'")
        matching_lines = (
            number for number in range(line, end + 1) if any(text in self._lines[number - 1] for text in quoted_values)
        )
        return next(matching_lines, line)


def _statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield headers and assignments, each with the number of its first line. An assignment goes on until it parses."""
    start, pending = 0, ""
    for number, line in enumerate(lines, 1):
        start, pending = (start, f"{pending}\n{line}") if pending else (number, line)
        if not line.strip() and "\n" not in pending:
            pending = ""
            continue
        try:
            tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        yield start, pending
        pending = ""


def _paths(value: object) -> Iterator[Path]:
    """Yield every path in a parsed statement, outer ones first."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield (key,)
            yield from ((key, *path) for path in _paths(inner))
