"""The beginnings and ends of the statements of a text. A semicolon in a string, a quoted name or a comment does not end
a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<end>;)
      | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)
      | (?P<unclosed>['"`]|/\*)
      | (?P<text>[^\s;'"`/-]+|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement's text without the blanks and comments around it. `start` is its place in the whole text."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Unclosed:
    """A quote or a comment that begins at `start`, by `mark`, and does not end."""

    mark: str
    start: int


def split(text: str) -> tuple[tuple[Piece, ...], Unclosed | None]:
    """Return the statements of the text, empty ones left out, and the quote or comment that keeps the last one from
    ending, None for none."""
    pieces = []
    for piece in split_lazily(text):
        match piece:
            case Piece():
                pieces.append(piece)
            case Unclosed():
                return tuple(pieces), piece
            case _:
                assert_never(piece)
    return tuple(pieces), None


def split_lazily(text: str) -> Iterator[Piece | Unclosed]:
    start, end = -1, -1
    for token in TOKEN.finditer(text):
        match token.lastgroup:
            case "blank":
                continue
            case "unclosed":
                yield Unclosed(token.group(), token.start())
                return
            case "end":
                if start >= 0:
                    yield Piece(text[start:end], start)
                start = -1
            case _:
                start, end = token.start() if start < 0 else start, token.end()
    if start >= 0:
        yield Piece(text[start:end], start)


def count_placeholders(text: str) -> int:
    """Return the number of `?` in the text that stand for values; those in strings, quoted names and comments do not
    count."""
    return sum(token.group().count("?") for token in TOKEN.finditer(text) if token.lastgroup == "text")


def is_complete(text: str) -> bool:
    """Tell whether a semicolon ends the last statement, as a shell needs it to know whether to read another line."""
    pieces, unclosed = split(text)
    # An x behind the text becomes a part of the last statement, unless a semicolon has ended that one.
    return unclosed is None and len(split(f"{text}\nx")[0]) > len(pieces)
