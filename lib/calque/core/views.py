"""Names of tables inside view texts: rewritten where a SQL parser found them; nothing else of the text moves."""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.model.names import TableName, table_name


def rewrite_names(text: str, database: str, name_at_target: Callable[[TableName], TableName]) -> str:
    """`text` with each table replaced by its name at the target. Unqualified names belong to `database`.

    Names of common table expressions are no tables. A text that does not parse is returned as it is.
    """
    try:
        tree = sqlglot.parse_one(text, read="hive")
    except SqlglotError:
        return text
    edits: list[tuple[int, int, str]] = []
    for table in tree.find_all(exp.Table):
        edits += edits_of(text, table, database, name_at_target)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def edits_of(
    text: str, table: exp.Table, database: str, name_at_target: Callable[[TableName], TableName]
) -> list[tuple[int, int, str]]:
    """(start, end, replacement) for the identifiers of one table reference that change."""
    if not isinstance(table.this, exp.Identifier) or (not table.db and is_local_name(table)):
        return []
    name = table_name(table.db or database, table.name)
    to = name_at_target(name)
    edits = []
    for identifier, old, new in (
        (table.this, name.table, to.table),
        (table.args.get("db"), name.database, to.database),
    ):
        if identifier is not None and old != new:
            start, end = identifier.meta["start"], identifier.meta["end"] + 1
            edits.append((start, end, f"`{new}`" if text[start] == "`" else new))
    return edits


def is_local_name(table: exp.Table) -> bool:
    """Whether an unqualified name is that of a common table expression in scope."""
    scope: exp.Expr | None = table
    while scope is not None:
        clause = scope.args.get("with") or scope.args.get("with_")
        if isinstance(clause, exp.With) and any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        scope = scope.parent
    return False
