"""Names of tables inside view texts, rewritten where a SQL parser found them; the rest of the text stays as it is.

A table is named where a query reads from it, and again where a column or a star is qualified with it
(`database.table.column`, `table.column`, `table.*`). Aliases and common table expressions hide tables of their name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.core.images.view_engines import one_catalog
from calque.model.names import TableName, table_name

DIALECTS = ("hive", "spark")
LONGEST = 1 << 20
"""Characters of a text that is parsed: parsing takes a second for every few ten thousand of them."""
PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")

Edit = tuple[int, int, str]
"""The start, the end and the replacement of one identifier in a text."""


def rewrite_names(text: str, database: str, name_at_target: Callable[[TableName], TableName]) -> str:
    """Return `text` with each table replaced by its name at the target. Unqualified names belong to `database`.

    A text that parses neither in Hive's dialect nor in Spark's is returned as it is.
    """
    tree = parsed(text)
    if tree is None:
        return text
    rewriting = QueryRewrite(text, database, name_at_target)
    edits = {
        *(edit for table in tree.find_all(exp.Table) for edit in rewriting.table(table)),
        *(edit for column in tree.find_all(exp.Column) for edit in rewriting.column(column)),
        *(edit for dot in tree.find_all(exp.Dot) for edit in rewriting.function(dot)),
    }
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def names_in(text: str, database: str) -> frozenset[TableName]:
    """Return the tables from which the text reads. Unqualified names belong to `database`. Empty for a text that does
    not parse."""
    found: set[TableName] = set()

    def note(name: TableName) -> TableName:
        found.add(name)
        return name

    rewrite_names(text, database, note)
    return frozenset(found)


def parsed(text: str) -> exp.Expr | None:
    """Parse the text as Hive's SQL, else as Spark's; None where it is neither, or is longer than `LONGEST`."""
    if len(text) > LONGEST:
        return None
    for dialect in DIALECTS:
        try:
            return sqlglot.parse_one(text, read=dialect)
        except (SqlglotError, RecursionError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class QueryRewrite:
    """The edits that one text needs, reference by reference."""

    text: str
    database: str
    name_at_target: Callable[[TableName], TableName]

    def table(self, table: exp.Table) -> Iterator[Edit]:
        """Yield the edits of a table from which a query reads."""
        name = self.name_of(table)
        if name is None:
            return
        to = self.name_at_target(name)
        if table.args.get("db") is not None:
            yield from self.edit(table.args["db"], name.database, to.database)
            yield from self.edit(table.this, name.table, to.table)
        elif to.database == self.name_at_target(TableName(self.database)).database:
            yield from self.edit(table.this, name.table, to.table)
        else:
            start, end = place(table.this)
            yield start, end, f"{self.written(to.database, start)}.{self.written(to.table, start)}"

    def column(self, column: exp.Column) -> Iterator[Edit]:
        """Yield the edits of the table that qualifies a column. Fields of structs look like columns: the tables in
        scope decide."""
        *qualifiers, _ = column.parts
        while qualifiers and (table := self.qualifying(column, qualifiers)) is None:
            qualifiers.pop()
        if not qualifiers or table is None or (name := self.name_of(table)) is None:
            return
        to = self.name_at_target(name)
        yield from self.edit(qualifiers[-1], name.table, to.table)
        if len(qualifiers) > 1:
            yield from self.edit(qualifiers[-2], name.database, to.database)

    def function(self, dot: exp.Dot) -> Iterator[Edit]:
        """Yield the edit of the database of `database.function(…)`."""
        if isinstance(dot.this, exp.Identifier) and isinstance(dot.expression, exp.Func):
            database = table_name(dot.this.name)
            yield from self.edit(dot.this, database.database, self.name_at_target(database).database)

    def qualifying(self, column: exp.Column, qualifiers: list[exp.Expr]) -> exp.Table | None:
        """Return the table that stands, without an alias, under exactly this name in the nearest scope that knows the
        name; None where there is none."""
        words = [qualifier.name.lower() for qualifier in qualifiers]
        if len(words) == 3:
            words[0] = one_catalog(words[0])
        for select in enclosing_selects(column):
            for source in sources(select):
                if source.alias_or_name.lower() != words[-1]:
                    continue
                if isinstance(source, exp.Table) and not source.alias:
                    qualified_name = [one_catalog(source.catalog), source.db.lower() or self.database, words[-1]]
                    if qualified_name[-len(words) :] == words:
                        return source
                elif len(words) == 1:
                    return None
        return None

    def name_of(self, table: exp.Table) -> TableName | None:
        """Return the table that is read from; None for a function, a common table expression or another catalog's
        table."""
        if not isinstance(table.this, exp.Identifier) or one_catalog(table.catalog):
            return None
        if not table.db and is_common_expression(table):
            return None
        return table_name(table.db or self.database, table.name)

    def edit(self, identifier: exp.Expr, old: str, new: str) -> Iterator[Edit]:
        if old != new:
            start, end = place(identifier)
            yield start, end, self.written(new, start)

    def written(self, name: str, start: int) -> str:
        """Return `name` as an identifier, quoted like the identifier that starts at `start`."""
        return f"`{name}`" if self.text[start] == "`" or not PLAIN_NAME.fullmatch(name) else name


def place(identifier: exp.Expr) -> tuple[int, int]:
    return identifier.meta["start"], identifier.meta["end"] + 1


def enclosing_selects(node: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs around a node, from the innermost outwards."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the tables, named subqueries and lateral views from which a SELECT itself reads."""
    clauses = [select.args.get("from_"), *select.args.get("joins", ()), *select.args.get("laterals", ())]
    for clause in clauses:
        if clause is not None:
            for node in clause.walk(prune=lambda node: isinstance(node, exp.Select) or is_named_subquery(node)):
                if isinstance(node, exp.Table | exp.Lateral) or is_named_subquery(node):
                    yield node


def is_named_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and bool(node.alias)


def is_common_expression(table: exp.Table) -> bool:
    """Tell whether an unqualified name is that of a common table expression in scope."""
    node: exp.Expr = table
    while node.parent is not None:
        if any(common.alias.lower() == table.name.lower() for common in visible_from(node, node.parent)):
            return True
        node = node.parent
    return False


def visible_from(node: exp.Expr, parent: exp.Expr) -> list[exp.Expr]:
    """Return the common table expressions of `parent` that its child `node` sees. A common table expression sees those
    before it, and itself only where it is recursive; any other child sees all."""
    if isinstance(parent, exp.With):
        place_of = next(index for index, common in enumerate(parent.expressions) if common is node)
        return parent.expressions[: place_of + bool(parent.recursive)]
    clause = parent.args.get("with_")
    return clause.expressions if isinstance(clause, exp.With) and clause is not node else []
