"""Patterns over `database.table`: their syntax, the tables that one matches, the databases that it covers or touches.

A glob has two parts, with `*`, `?` and `[abc]` in each. A regular expression (Python's) stands between slashes and must
match all of `database.table`. Case never counts.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.names import TableName, table_name

GLOB_PART = re.compile(r"(?:[\w*?/-]|\[!?[\w/-]+\])+", re.ASCII)
WILD = re.compile(r"[*?\[]")
OPAQUE = re.compile(r"\(\?(?!:)|(?<!\\)\$|\\[AbBZ1-9]")
"""Look-around, flags, anchors and references: a part of such an expression does not mean what it does in the whole."""
LITERAL = re.compile(r"[^.*+?{}()|^$\[\\]|\\(\W)|\[([^\^\\])\]")
"""A character that stands for itself: plain, escaped, or alone in a class."""
FORM = 'Write a glob such as "sales.*" or a regular expression such as "/sales_[0-9]+[.].*/"'


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob in lower case, with both of its parts compiled."""

    database: str
    table: str
    database_match: re.Pattern[str]
    table_match: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression: the text between the slashes, and the same compiled."""

    text: str
    match: re.Pattern[str]


Pattern = Glob | Expression


def parse_pattern(text: str) -> Pattern:
    """Parse `text` as a glob or a regular expression. Raises `Refused` with the nearest form that would do."""
    if text.startswith("/"):
        return _expression(text)
    database, dot, table = text.partition(".")
    if not dot and GLOB_PART.fullmatch(text):
        raise Refused(
            f'pattern "{text}" names no table', "A pattern is database.table", f'Write "{_with_tables(text)}"'
        )
    for part in (database, table):
        if not GLOB_PART.fullmatch(part):
            why = "A pattern is one database.table of letters, digits, _, *, ? and [abc]"
            raise Refused(f'"{text}" is no pattern', why, FORM)
    database, table = database.lower(), table.lower()
    return Glob(database, table, _compiled_glob(database), _compiled_glob(table))


def matches(pattern: Pattern, name: TableName) -> bool:
    """Tell whether `pattern` matches a table's name, which is in lower case and has a table."""
    match pattern:
        case Glob():
            return bool(pattern.table_match.fullmatch(name.table) and pattern.database_match.fullmatch(name.database))
        case Expression():
            return bool(pattern.match.fullmatch(f"{name.database}.{name.table}"))


def chosen(texts: Iterable[str]) -> Callable[[TableName], bool]:
    """Return a function that tells whether a pattern of `texts` matches a table's name. Without any pattern it is true
    of every name. Raises `Refused` for a text that is no pattern."""
    patterns = [parse_pattern(text) for text in texts]
    return lambda name: not patterns or any(matches(pattern, name) for pattern in patterns)


def covering(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a pattern of `texts` covers a database (`covers`). Without any pattern it is
    true of every database. Raises `Refused` for a text that is no pattern."""
    patterns = [parse_pattern(text) for text in texts]
    return lambda database: not patterns or any(covers(pattern, database) for pattern in patterns)


def covers(pattern: Pattern, database: str) -> bool:
    """Tell whether `pattern` plainly matches every table of the database, under any name.

    A regular expression covers a database when one of its alternatives ends in `.*` or `.+` and the text before that
    matches the beginning of `database.`: `/sales_[0-9]+[.].*/` covers `sales_7`. An expression with look-around, flags
    or anchors never counts as covering.
    """
    match pattern:
        case Glob():
            return not pattern.table.strip("*") and bool(pattern.database_match.fullmatch(database))
        case Expression():
            return any(_begins(head, f"{database}.") for head in _heads(pattern.text))


def may_touch(pattern: Pattern, database: str) -> bool:
    """Tell whether `pattern` may match a table of the database. False is certain, True is not."""
    match pattern:
        case Glob():
            return bool(pattern.database_match.fullmatch(database))
        case Expression() if OPAQUE.search(pattern.text):
            return True
        case Expression():
            prefixes = [_literal_prefix(text) for text in _alternatives(pattern.text)]
            return any(prefix.startswith(f"{database}.") or f"{database}.".startswith(prefix) for prefix in prefixes)


def literal_name(pattern: Pattern) -> TableName | None:
    """Return the one object that `pattern` names without wildcards: a table, or for `database.*` the database. None for
    every other pattern."""
    match pattern:
        case Glob() if not WILD.search(pattern.database):
            if not pattern.table.strip("*"):
                return TableName(pattern.database)
            return None if WILD.search(pattern.table) else TableName(pattern.database, pattern.table)
        case _:
            return None


def _expression(text: str) -> Expression:
    inner = text[1:-1]
    if len(text) < 3 or not text.endswith("/"):
        raise Refused(f'"{text}" is no pattern', "A regular expression stands between two slashes", FORM)
    try:
        return Expression(inner, re.compile(inner, re.IGNORECASE))
    except re.error as error:
        raise Refused(f'"{text}" is no regular expression', str(error).capitalize(), FORM) from None


def _with_tables(text: str) -> str:
    return "*.*" if text == "*" else f"{text}.*"


def _compiled_glob(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def _heads(expression: str) -> Iterator[re.Pattern[str]]:
    """Yield, for each alternative that ends in `.*` or `.+`, the compiled text before that ending."""
    expression = expression.removesuffix("$")
    for alternative in () if OPAQUE.search(expression) else _alternatives(expression):
        head = alternative[:-2]
        escaped = (len(head) - len(head.rstrip("\\"))) % 2 == 1
        if alternative.endswith((".*", ".+")) and not escaped:
            yield re.compile(head, re.IGNORECASE)


def _begins(head: re.Pattern[str], text: str) -> bool:
    return any(head.fullmatch(text, 0, end) for end in range(len(text) + 1))


def _alternatives(expression: str) -> list[str]:
    """Split the expression at each `|` that stands in no parentheses and no class. A leading `^` is dropped."""
    parts, depth, position = [""], 0, 0
    while position < len(expression):
        token = _token(expression, position)
        position += len(token)
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.removeprefix("^") for part in parts]


def _token(expression: str, position: int) -> str:
    """Return the token at `position`: one character, one escaped character, or one whole class."""
    if expression[position] == "\\":
        return expression[position : position + 2]
    if expression[position] != "[":
        return expression[position]
    end = position + 1 + expression.startswith("^", position + 1)
    end += expression.startswith("]", end)
    while expression[end] != "]":
        end += 2 if expression[end] == "\\" else 1
    return expression[position : end + 1]


def _literal_prefix(expression: str) -> str:
    """Return the lower-case characters that every match begins with."""
    prefix, position = "", 0
    while position < len(expression):
        token = _token(expression, position)
        position += len(token)
        literal = LITERAL.fullmatch(token)
        if not literal or expression.startswith(("*", "?", "{"), position):
            break
        prefix += literal[literal.lastindex or 0].lower()
        if expression.startswith("+", position):
            break
    return prefix


def named_table(text: str) -> TableName:
    """Parse a table's name `database.table`, with or without back-ticks. A name without a database is in `default`, as
    for Hive. Raises `Refused` for a text of another form."""
    database, dot, name = text.strip().replace("`", "").partition(".")
    if not (name if dot else database) or "." in name:
        raise Refused(f'"{text}" is no name of a table', "One is database.table", 'Write e.g. "sales.orders"')
    return table_name(database, name) if dot else table_name("default", database)
