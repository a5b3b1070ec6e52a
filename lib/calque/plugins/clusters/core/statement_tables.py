"""The tables that a statement reads and writes, and the partitions that it can read, by a SQL parser (Hive's dialect).

Names of common table expressions hide tables. Views are read with the tables below them. A predicate over partition
keys proves that a table's other partitions are not read when it stands in the WHERE of the query that names the table,
joined by AND to the rest, over columns that can only be that table's. Beside an outer join it must also be one that a
missing row does not fulfil.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from calque.core.policy.predicate_parser import predicate_of
from calque.core.policy.predicates import holds, names_in
from calque.errors import Refused
from calque.model.names import TableName, table_name
from calque.model.predicate import AllOf, Predicate
from calque.plugins.clusters.model import ClusteredTable, Input, StatementTables

Tables = Mapping[TableName, ClusteredTable]
Hidden = frozenset[str]
"""The names of common table expressions that hide tables of the same name, in lower case."""
DEPTH = 50
"""The most views over views."""
WRITES = (exp.Insert, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Update, exp.Delete, exp.Merge)
TODO = "Say USE CLUSTER and the cluster that is to run it"


def tables_of(text: str, database: str, lookup: Callable[[TableName], ClusteredTable | None]) -> StatementTables:
    """Return the tables that the statement reads and writes. Names without a database belong to `database`; `lookup`
    returns what is known of a table, above all a view's text and the partition keys. Raises `Refused` for a statement
    that the parser does not know."""
    definition = DEFINITION.match(text)
    if definition is not None:
        name = table_name(*_named(definition["name"], database))
        return StatementTables((Input(name),)) if definition["reads"] else StatementTables((), (name,))
    statements = [_parsed(part) for part in _parts(text)]
    found = StatementTables()
    for tree in statements:
        tables = _Reading(database, lookup).statement(tree)
        found = StatementTables((*found.inputs, *tables.inputs), (*found.outputs, *tables.outputs))
    return StatementTables(tuple(dict.fromkeys(found.inputs)), tuple(dict.fromkeys(found.outputs)))


def named_tables(text: str, database: str) -> tuple[exp.Expr, Sequence[tuple[TableName, exp.Table]]]:
    """Return the parsed statement, and each place in it that names a table which it reads, with the table's full name.
    Raises `Refused` where the parser knows only a part of the statement."""
    if DEFINITION.match(text) or list(_parts(text)) != [text]:
        why = "the parser knows statements of this kind in part alone"
        raise Refused("The places of the statement's tables can't be told", why, TODO)
    tree = _parsed(text)
    reading = _Reading(database, lambda _: None)
    reading.statement(tree)
    return tree, reading.nodes


NAME = r"(?:`[^`]+`|\w+)"
DEFINITION = re.compile(
    rf"""\s*(?:ALTER\s+TABLE|DROP\s+(?:TABLE|VIEW)(?:\s+IF\s+EXISTS)?|TRUNCATE(?:\s+TABLE)?|MSCK(?:\s+REPAIR)?\s+TABLE
      |ANALYZE\s+TABLE|(?P<reads>DESC(?:RIBE)?(?:\s+(?:EXTENDED|FORMATTED|TABLE))*))
      \s+(?!(?:FUNCTION|DATABASE|SCHEMA|NAMESPACE|CATALOG|QUERY)\s)(?P<name>{NAME}(?:\s*\.\s*{NAME})?)(?!.*\bEXCHANGE\s+PARTITION\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Statements about one table of which the parser understands only a part. This pattern finds the table's name
instead."""
FIRST_WORDS = frozenset(
    {"select", "with", "from", "insert", "create", "update", "delete", "merge", "truncate", "values", "(", "alter"}
)
"""The first words of statements that the parser knows."""


ALTER_TABLE = re.compile(r"\s*ALTER\s+TABLE\b", re.IGNORECASE)


def _named(text: str, database: str) -> tuple[str, str]:
    names = [name.strip("`") for name in re.findall(NAME, text)]
    return (names[0], names[1]) if len(names) == 2 else (database, names[0])


def _parsed(text: str) -> exp.Expr:
    first = next(iter(re.findall(r"\(|\w+", text)), "").lower()
    if first not in FIRST_WORDS or ALTER_TABLE.match(text):
        raise Refused("The statement's tables can't be told", "The parser does not know statements of this kind", TODO)
    trees = _trees(text)
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, *WRITES)):
        raise Refused("The statement's tables can't be told", "The parser does not know statements of this kind", TODO)
    return trees[0]


DIALECTS = ("hive", "spark")
"""The parser's dialects in the order in which they are tried: a statement that Hive does not know may be Spark's."""


def _trees(text: str) -> list[exp.Expr]:
    why = ""
    for dialect in DIALECTS:
        try:
            return [tree for tree in sqlglot.parse(text, read=dialect) if tree is not None]
        except (SqlglotError, RecursionError) as error:
            why = why or (str(error).splitlines()[0] if str(error) else type(error).__name__)
    raise Refused("The statement's tables can't be told", why, TODO)


def _parts(text: str) -> Iterator[str]:
    """Yield the statement as it is, or the parts of a multi-insert (`FROM t INSERT … SELECT … INSERT … SELECT …`): each
    insert with the source that all share."""
    try:
        tokens = sqlglot.tokenize(text, read="hive")
    except (SqlglotError, RecursionError):
        yield text
        return
    inserts = [token for token in _top_level(tokens) if token.token_type is TokenType.INSERT]
    begin = next((token for token in _top_level(tokens) if token.token_type is TokenType.FROM), None)
    if not inserts or begin is None or begin.start > inserts[0].start or tokens[0].token_type not in PREFIXES:
        yield text
        return
    source, before = text[begin.start : inserts[0].start], text[: begin.start]
    for token, following in zip(inserts, [*inserts[1:], None], strict=True):
        insert = text[token.start : following.start if following is not None else len(text)].rstrip().rstrip(";")
        yield f"{before}{_with_source(insert, source)}"


PREFIXES = (TokenType.FROM, TokenType.WITH)


def _top_level(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens outside all parentheses."""
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            yield token


ENDS = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SORT_BY)
ENDS_TOO = (TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT, TokenType.LATERAL)


def _with_source(insert: str, source: str) -> str:
    """Return the insert with the shared source put before its WHERE, or before whichever clause comes first after the
    SELECT list."""
    for token in _top_level(sqlglot.tokenize(insert, read="hive")):
        if token.token_type in (*ENDS, *ENDS_TOO):
            return f"{insert[: token.start]} {source} {insert[token.start :]}"
    return f"{insert} {source}"


class _Reading:
    def __init__(self, database: str, lookup: Callable[[TableName], ClusteredTable | None]) -> None:
        self.database, self.lookup = database, lookup
        self.inputs: list[Input] = []
        self.outputs: list[TableName] = []
        self.nodes: list[tuple[TableName, exp.Table]] = []
        """The places where inputs are named, in the order of reading."""

    def statement(self, tree: exp.Expr) -> StatementTables:
        target: exp.Expr | None = None
        if isinstance(tree, WRITES):
            targets = tree.expressions if isinstance(tree, exp.TruncateTable) else [tree.this]
            for target in targets:
                table = target.find(exp.Table) if isinstance(target, exp.Expr) else None
                if table is not None and table.name:
                    self.outputs.append(self.name(table))
                elif isinstance(tree, (exp.Insert, exp.Create)) and not isinstance(target, exp.Directory):
                    raise Refused("The statement's tables can't be told", "It does not say what it writes", TODO)
            hidden = self.expressions(tree, frozenset(), 0)
            for key, value in tree.args.items():
                if key not in ("this", "expressions", "with", "with_") or (
                    key == "expressions" and isinstance(tree, exp.Update)
                ):
                    self.walk(value, hidden, 0)
        else:
            self.walk(tree, frozenset(), 0)
        return StatementTables(tuple(self.inputs), tuple(self.outputs))

    def expressions(self, tree: exp.Expr, hidden: Hidden, depth: int) -> Hidden:
        """Read the common table expressions of the query, and return all names that are hidden in it."""
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is None:
            return hidden
        for expression in with_.expressions:
            own = {expression.alias.lower()}
            self.walk(expression.this, hidden | own if with_.args.get("recursive") else hidden, depth)
            hidden = hidden | own
        return hidden

    def walk(self, node: object, hidden: Hidden, depth: int) -> None:
        if isinstance(node, list):
            for item in node:
                self.walk(item, hidden, depth)
        if not isinstance(node, exp.Expr):
            return
        if isinstance(node, exp.Table) and node.name:
            self.table(node, hidden, depth)
        hidden = self.expressions(node, hidden, depth)
        for key, value in node.args.items():
            if key not in ("with", "with_"):
                self.walk(value, hidden, depth)

    def table(self, table: exp.Table, hidden: Hidden, depth: int) -> None:
        if isinstance(table.this, exp.Func) or (not table.db and table.name.lower() in hidden):
            return
        name = self.name(table)
        clustered = self.lookup(name)
        predicate = predicate_on(table, clustered) if clustered is not None and clustered.keys else None
        self.inputs.append(Input(name, predicate))
        self.nodes.append((name, table))
        if clustered is not None and clustered.view:
            if depth >= DEPTH:
                raise Refused(f"The view {name} can't be resolved", "It reads itself, or too many others", TODO)
            below = _Reading(name.database, self.lookup)
            below.walk(_parsed(clustered.view), frozenset(), depth + 1)
            self.inputs.extend(replace(one, via=one.via or name) for one in below.inputs)

    def name(self, table: exp.Table) -> TableName:
        return table_name(table.db or self.database, table.name)


def predicate_on(table: exp.Table, clustered: ClusteredTable) -> Predicate | None:
    """Return what the query that names the table demands of the table's partition keys; None where nothing can be
    proven."""
    select = table.parent_select
    if select is None or not isinstance(select, exp.Select) or not _is_source(table, select):
        return None
    where = select.args.get("where")
    if where is None:
        return None
    alias, joins = table.alias_or_name.lower(), select.args.get("joins") or []
    is_alone = not joins and not select.args.get("laterals")
    is_outer = any(join.args.get("side") for join in joins)

    def key(operand: exp.Expr) -> str | None:
        if not isinstance(operand, exp.Column) or operand.name.lower() not in clustered.keys:
            return None
        if operand.table.lower() == alias and not operand.db:
            return operand.name.lower()
        return operand.name.lower() if is_alone and not operand.table else None

    conditions = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    predicates = [predicate for condition in conditions if (predicate := predicate_of(condition, key)) is not None]
    if is_outer:
        predicates = [one for one in predicates if holds(one, dict.fromkeys(names_in(one))) is not True]
    if not predicates:
        return None
    return predicates[0] if len(predicates) == 1 else AllOf(tuple(predicates))


def _is_source(table: exp.Table, select: exp.Select) -> bool:
    """Tell whether the table stands in the query's own FROM or in one of its joins."""
    from_ = select.args.get("from_") or select.args.get("from")
    sources = [from_.this if from_ is not None else None, *(join.this for join in select.args.get("joins") or [])]
    return any(table is source for source in sources)
