"""Which names a replication policy takes.

Regular expressions are Java's, match whole names, and don't tell upper from lower case, as in Hive. What Python would
read otherwise than Java is refused. The database itself and its functions are in the scope of every policy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.dumps.core.dump_metadata import PolicyLine

TEMPORARY = "values__tmp__table__"
"""How tables begin that Hive makes for VALUES; no policy takes one."""
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
"""What means the same to Java and Python. Sources: java.util.regex.Pattern, Python's re."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One database and the tables of it that match. No `include` means all tables, an empty one none."""

    database: str
    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    policy: PolicyLine

    def takes(self, name: TableName) -> bool:
        """Whether the table, or the database itself, is in the scope. Names are lower-case."""
        return name.database == self.database and (not name.table or self.takes_table(name.table))

    def takes_table(self, table: str) -> bool:
        if table.startswith(TEMPORARY) or (self.include is not None and not self.include.fullmatch(table)):
            return False
        return self.exclude is None or not self.exclude.fullmatch(table)

    @property
    def takes_all_tables(self) -> bool:
        return self.include is None and self.exclude is None


def scope_of(database: str, include: Sequence[str] | None, exclude: Sequence[str] | None) -> Scope:
    """Raises `Refused` for an expression that is none, or that Python reads otherwise than Java."""
    including = None if include is None else alternatives(include)
    excluding = alternatives(exclude) if exclude else None
    return Scope(
        database.lower(),
        None if including is None else compiled(including),
        None if excluding is None else compiled(excluding),
        PolicyLine(database.lower(), including, excluding),
    )


def scope_of_policy(policy: PolicyLine) -> Scope:
    """The scope of a dump, from its own words. Raises `Refused`."""
    include = None if policy.include is None else [policy.include]
    return scope_of(policy.database, include, None if policy.exclude is None else [policy.exclude])


def alternatives(expressions: Sequence[str]) -> str:
    """One expression for several, since Hive takes one. Each is checked by itself: what two make together may be
    another thing."""
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
    """Raises `Refused` at the first thing that is no Java, or not the same in Python."""
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
