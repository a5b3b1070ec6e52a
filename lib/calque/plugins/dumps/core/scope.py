"""The tables that a replication policy takes.

Regular expressions are Java's, match whole names, and ignore case, as in Hive. An expression that Python would read
otherwise than Java is refused. The database itself and its functions are in the scope of every policy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.dumps.core.dump_metadata import PolicyLine

TEMPORARY = "values__tmp__table__"
"""The beginning of the names of tables that Hive makes for VALUES; no policy takes such a table."""
NO_TABLE = "(?!)"
"""A regular expression that matches nothing, in Java as in Python."""

TOKEN = re.compile(
    r"""
      (?P<escape> \\(?: x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | [1-9] | [dDsSwWbBAanrtf] | [^A-Za-z0-9] ) )
    | (?P<group> \( (?: \?(?: : | = | ! | > | <= | <! ) )? (?!\?) )
    | (?P<class> \[ \^? (?: \\(?: x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | [dDsSwWnrtfa] | [^A-Za-z0-9] )
                          | (?! && | -- | \|\| | ~~ ) [^\[\]\\] )+ \] )
    | (?P<count> \{ \d+ (?: , \d* )? \} )
    | (?P<plain> [^\\()\[\]{}] | \) )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The parts of expressions that mean the same to Java and Python. Sources: java.util.regex.Pattern, Python's re."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One database, and the tables of it that a policy takes. Without `include` (None) the policy takes all tables; an
    `include` that matches nothing takes none."""

    database: str
    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    policy: PolicyLine

    def takes(self, name: TableName) -> bool:
        """Tell whether the table, or the database itself, is in the scope. Names are lower-case."""
        return name.database == self.database and (not name.table or self.takes_table(name.table))

    def takes_table(self, table: str) -> bool:
        if table.startswith(TEMPORARY) or (self.include is not None and not self.include.fullmatch(table)):
            return False
        return self.exclude is None or not self.exclude.fullmatch(table)

    @property
    def takes_all_tables(self) -> bool:
        return self.include is None and self.exclude is None


def scope_of(database: str, include: Sequence[str] | None, exclude: Sequence[str] | None) -> Scope:
    """Return the scope of a database with the tables that one of `include` matches (None: all) and none of `exclude`.
    Raises `Refused` for an invalid expression, and for one that Python reads otherwise than Java."""
    including = None if include is None else alternatives(include)
    excluding = alternatives(exclude) if exclude else None
    return Scope(
        database.lower(),
        None if including is None else compiled(including),
        None if excluding is None else compiled(excluding),
        PolicyLine(database.lower(), including, excluding),
    )


def scope_of_policy(policy: PolicyLine) -> Scope:
    """Return the scope of a dump whose metadata has this policy. Raises `Refused` as `scope_of`."""
    include = None if policy.include is None else [policy.include]
    return scope_of(policy.database, include, None if policy.exclude is None else [policy.exclude])


def alternatives(expressions: Sequence[str]) -> str:
    """Return one expression that matches where any of the expressions does, because Hive takes only one. Each
    expression is checked by itself, because several may mean another thing together than alone. Raises `Refused` for
    one that is no regular expression, or that means another thing to Java."""
    for expression in expressions:
        compiled(expression)
    match list(expressions):
        case []:
            return NO_TABLE
        case [expression]:
            return expression
        case several:
            return "|".join(f"(?:{expression})" for expression in several)


def compiled(expression: str) -> re.Pattern[str]:
    check_java(expression)
    try:
        return re.compile(expression, re.IGNORECASE | re.ASCII)
    except (re.error, OverflowError) as error:
        raise Refused(
            f'"{expression}" is no regular expression', str(error).capitalize(), "Mend it, or write names in full"
        ) from None


def check_java(expression: str) -> None:
    """Raise `Refused` at the first character that is no Java, or that means another thing in Python."""
    place = 0
    while place < len(expression):
        token = TOKEN.match(expression, place)
        if token is None:
            raise Refused(
                f'"{expression}" can\'t be read as Hive reads it',
                f"At character {place + 1}, {expression[place : place + 12]!r} means another thing in Java or nothing",
                "Write it with characters, ., [a-z], (a|b), *, +, ? and {n,m}",
            )
        place = token.end()
