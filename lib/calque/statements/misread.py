"""The error for a statement that can't be parsed: what is wrong, and at which place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from calque.errors import StatementSyntaxError
from calque.statements.split import Piece, Unclosed

ENGINE_WORDS = frozenset(
    {
        "ABORT",
        "ADD",
        "ALTER",
        "ANALYZE",
        "CACHE",
        "CALL",
        "CLEAR",
        "COMMENT",
        "CREATE",
        "DECLARE",
        "DELETE",
        "DESC",
        "DESCRIBE",
        "DROP",
        "EXECUTE",
        "EXPLAIN",
        "FROM",
        "GRANT",
        "INSERT",
        "KILL",
        "LIST",
        "LOAD",
        "LOCK",
        "MERGE",
        "MSCK",
        "OPTIMIZE",
        "REFRESH",
        "RELOAD",
        "REPAIR",
        "RESET",
        "RESTORE",
        "REVOKE",
        "SELECT",
        "SET",
        "SHOW",
        "TABLE",
        "TRUNCATE",
        "UNCACHE",
        "UNLOCK",
        "UPDATE",
        "VACUUM",
        "VALUES",
        "WITH",
    }
)
"""The first words of statements of Hive and Spark."""
ENGINE_SHOWS = frozenset(
    {
        "CATALOGS",
        "COLUMNS",
        "COMPACTIONS",
        "CONF",
        "CREATE",
        "CURRENT",
        "DATABASES",
        "EXTENDED",
        "FUNCTIONS",
        "GRANT",
        "INDEX",
        "INDEXES",
        "LOCKS",
        "MATERIALIZED",
        "NAMESPACES",
        "PARTITIONS",
        "PRINCIPALS",
        "RESOURCE",
        "ROLE",
        "ROLES",
        "SCHEMAS",
        "TABLE",
        "TABLES",
        "TBLPROPERTIES",
        "TRANSACTIONS",
        "USER",
        "VIEWS",
    }
)
"""The words that follow SHOW in statements of Hive and Spark."""
OWN_WORDS = frozenset({"AT", "CLUSTER", "CLUSTERS", "EPOCHS", "REMOTE", "SECONDARY", "SETS", "TARGETS", "VERSIONS"})
"""Keywords that make a statement calque's own, although an engine knows how it begins."""
FIRST_WORDS = re.compile(r"[(\s]*([A-Za-z]+)(?:\s+([A-Za-z]+))?")
SYMBOLS = {
    "LPAR": '"("',
    "RPAR": '")"',
    "LSQB": '"["',
    "RSQB": '"]"',
    "EQUAL": '"="',
    "COMMA": '","',
    "DOT": '"."',
    "NAME": "a name",
    "QUOTED": "",
    "STRING": "a string",
    "NUMBER": "a number",
    "PARAMETER": "",
    "REST": "more text",
    "$END": "the end of the statement",
}
"""The names of the grammar's terminals in errors. Keywords are not here, because they are called as they are
written."""
CLOSING = {"/*": "*/"}
SHOWN = 40
"""The most characters of a word that errors show, and of a line on either side of the place."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The point up to which a statement can be understood: `position` in its text. `understood` are the terminals
    before it, and one of `expected` belongs there."""

    position: int
    understood: frozenset[str]
    expected: frozenset[str]


def misread(piece: Piece, text: str, expectation: Expectation) -> StatementSyntaxError | None:
    """Return the error for a statement of calque's own that can't be parsed; None where the statement is an engine's.
    `text` is the whole text that the piece is a part of."""
    if is_for_engine(piece.text) and not expectation.understood & OWN_WORDS:
        return None
    words = expected_words(expectation.expected)
    position = piece.start + expectation.position
    if expectation.position == len(piece.text):
        return error_at(position, text, "The statement ends too early", f"Expected {joined(words)}", "Go on there")
    word = word_at(text, position)
    hint = todo(word, words if expectation.understood else [*words, *ENGINE_WORDS])
    return error_at(position, text, f'"{shortened(word)}" does not belong here', f"Expected {joined(words)}", hint)


def is_for_engine(statement: str) -> bool:
    """Tell whether the statement begins as statements of an engine do."""
    match = FIRST_WORDS.match(statement)
    if match is None:
        return False
    first, second = match[1].upper(), (match[2] or "").upper()
    return first in ENGINE_WORDS and (first != "SHOW" or second in ENGINE_SHOWS)


def unclosed_error(unclosed: Unclosed, text: str) -> StatementSyntaxError:
    end = CLOSING.get(unclosed.mark, unclosed.mark)
    return error_at(unclosed.start, text, f"{unclosed.mark} has no end", f"Expected {end} behind it", f"Write {end}")


def error_at(position: int, text: str, what: str, why: str, todo: str) -> StatementSyntaxError:
    before = text[:position]
    line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
    excerpt = line_with_mark(text.split("\n")[line - 1], column)
    return StatementSyntaxError(f"Line {line}, column {column}: {what}", why, todo, excerpt)


def line_with_mark(line: str, column: int) -> str:
    """Return the line, shortened where it is long, and below it a mark under the column, which counts from 1."""
    start = max(column - 1 - SHOWN, 0)
    before, after = line[start : column - 1], line[column - 1 : column - 1 + SHOWN]
    shown = printable(f"{'…' if start else ''}{before}")
    mark = re.sub(r"[^\t]", " ", shown)
    return f"  {shown}{printable(after)}{'…' if len(line) > column - 1 + SHOWN else ''}\n  {mark}^"


def printable(text: str) -> str:
    """Replace the characters that would steer a terminal."""
    return "".join(character if character.isprintable() or character == "\t" else "?" for character in text)


def expected_words(terminals: frozenset[str]) -> Sequence[str]:
    """Return the terminals by the names that people know: keywords first, then kinds of values."""
    # A number may stand for a name, so it is not mentioned beside a name.
    hidden = {"NUMBER"} if "NAME" in terminals else set()
    keywords = sorted(terminals - SYMBOLS.keys())
    return [*keywords, *(text for name, text in SYMBOLS.items() if text and name in terminals - hidden)]


def joined(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def todo(word: str, words: Sequence[str]) -> str:
    """Return the advice for a wrong word: the nearest of the words, if one is near."""
    matches = get_close_matches(word.upper(), words, n=1)
    return f"The nearest is {matches[0]}" if matches else "Write HELP to see all statements"


def word_at(text: str, position: int) -> str:
    match = re.compile(r"\w+|.", re.DOTALL).match(text, position)
    return match.group() if match else ""


def shortened(text: str) -> str:
    return printable(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
