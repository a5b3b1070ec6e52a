"""The recognition of statements over the audit: which relations of the schema `calque` does a statement read?"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.errors import Refused, nearest

SCHEMA = "calque"
RELATIONS = ("epochs", "events", "hops", "lag", "tables")
NAMES_IT = re.compile(rf'(?:\b|"|`){SCHEMA}(?:"|`)?\s*\.', re.IGNORECASE)
READ_ONLY = "The audit is only read"
TODO = "Write a SELECT over calque." + ", calque.".join(RELATIONS)


def audit_relations(text: str, database: str | None) -> frozenset[str] | None:
    """Return the relations of the audit that the statement reads; None for a statement of another engine. Names without
    a schema are in `database`.

    Raises `Refused` for a statement that mixes relations with other tables, does more than read, or names an unknown
    relation.
    """
    if not NAMES_IT.search(text) and database != SCHEMA:
        return None
    try:
        trees = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    except (SqlglotError, RecursionError):
        # The audit's engine says what is wrong; a statement for another engine may only hold the word.
        return frozenset(RELATIONS) if database == SCHEMA or is_named_after_from(text) else None
    tables = [table for tree in trees for table in tables_of(tree)]
    own = {table.name.lower() for table in tables if schema_of(table, database) == SCHEMA}
    if not own:
        return None
    others = sorted(table.sql() for table in tables if schema_of(table, database) != SCHEMA)
    if others:
        why = f"{others[0]} is no relation of the audit, and no engine has both"
        raise Refused("The statement mixes the audit with other tables", why, "Ask for them one after the other")
    if not all(isinstance(tree, exp.Query | exp.Describe) for tree in trees):
        raise Refused("The statement would change the audit", READ_ONLY, TODO)
    for name in sorted(own - set(RELATIONS)):
        raise Refused(f'The audit has no relation "{name}"', "", nearest(name, RELATIONS))
    return frozenset(own)


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables that the statement names, without those that it defines by WITH, and without functions that
    make rows."""
    defined = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not (not table.db and table.name.lower() in defined)
    ]


def schema_of(table: exp.Table, database: str | None) -> str:
    return (f"{table.catalog}." if table.catalog else "") + (table.db or database or "").lower()


def is_named_after_from(text: str) -> bool:
    pattern = rf'\b(?:FROM|JOIN|DESCRIBE)\s+["`]?{SCHEMA}["`]?\s*\.\s*["`]?({"|".join(RELATIONS)})\b'
    return re.search(pattern, text, re.IGNORECASE) is not None
