"""The rewriting of a statement to the names that its tables have at one cluster.

Only the places where tables are named change, found by the parser; quoting, comments and everything else stay. A table
that gets another name gets its old one as an alias, so that columns are found by it. A statement that can't be
rewritten safely is refused, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.clusters.core.statement_tables import named_tables
from calque.plugins.clusters.model import ClusteredTable, StatementTables

Tables = Mapping[TableName, ClusteredTable]
Names = Mapping[TableName, TableName]
PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
BEHIND_THE_NAME = ("sample", "pivots", "when", "version", "only", "partition", "hints", "laterals", "joins")
"""Arguments of sqlglot's table node that may stand behind the name and before the alias, or in the alias's place."""


def names_at(cluster: str, statement: StatementTables, tables: Tables) -> Names:
    """Return the inputs that have another name at the cluster, with that name. Tables below a view are left out,
    because the view's own text at the cluster names them."""
    names = {}
    for one in statement.inputs:
        replica = tables[one.name].replicas.get(cluster) if one.name in tables else None
        if one.via is None and replica is not None and replica.local_name not in (None, one.name):
            assert replica.local_name is not None
            names[one.name] = replica.local_name
    return names


def rewritable(text: str, database: str, statement: StatementTables, tables: Tables, clusters: Sequence[str]) -> Tables:
    """Return the tables, with each replica marked as absent whose cluster has other names that the statement can't be
    rewritten to."""
    changed = dict(tables)
    for cluster in clusters:
        names = names_at(cluster, statement, tables)
        try:
            rewritten(text, database, names)
        except Refused as refused:
            for name, local_name in names.items():
                replicas = dict(changed[name].replicas)
                why = f"it is called {local_name} there, and the statement can't be rewritten: {refused.why}"
                replicas[cluster] = replace(replicas[cluster], absent=replicas[cluster].absent or why)
                changed[name] = replace(changed[name], replicas=replicas)
    return changed


def rewritten(text: str, database: str, names: Names) -> str:
    """Return the statement with these names in place of its own, each table with its database. The result is parsed
    again, to see that it names the right tables. Raises `Refused` where the statement can't be rewritten safely."""
    if not names:
        return text
    tree, nodes = named_tables(text, database)
    changed_names = {(name.database, name.table) for name in names}
    for column in tree.find_all(exp.Column):
        if column.db and (column.db.lower(), column.table.lower()) in changed_names:
            raise unsafe(f"the column {column.sql(dialect='hive')} is named with its database")
    edits = [edit for name, node in nodes if (edit := edit_of(name, names.get(name, name), node)) is not None]
    for start, end, replacement in sorted(edits, reverse=True):
        text = f"{text[:start]}{replacement}{text[end:]}"
    _, nodes_after = named_tables(text, database)
    if [name for name, _ in nodes_after] != [names.get(name, name) for name, _ in nodes]:
        raise unsafe("its tables would be others then")
    return text


def edit_of(name: TableName, local_name: TableName, node: exp.Table) -> tuple[int, int, str] | None:
    """Return the edit that renames this place of the text: the offsets of its begin and of its end, and the new text.
    None where the place stays. Raises `Refused` where the place is not known, or the table would need an alias that
    can't stand there."""
    if local_name == name and node.db:
        return None
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    places = [(part.meta.get("start"), part.meta.get("end")) for part in parts]
    start, end = places[0][0], places[-1][1]
    if len(parts) != len(node.parts) or len(parts) > 2 or start is None or end is None:
        raise unsafe(f"the place of {name} in it is not known")
    is_quoted = bool(parts[-1].args.get("quoted"))
    replacement = f"{quoted(local_name.database, is_quoted)}.{quoted(local_name.table, is_quoted)}"
    if local_name.table != name.table and not node.alias:
        if any(node.args.get(key) for key in BEHIND_THE_NAME):
            raise unsafe(f"{name} would need an alias behind its name")
        replacement += f" AS {quoted(parts[-1].name, is_quoted)}"
    return start, end + 1, replacement


def quoted(name: str, is_quoted: bool) -> str:
    return name if not is_quoted and PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def unsafe(why: str) -> Refused:
    return Refused("The statement can't be rewritten", why, "Name tables as at the cluster after USE CLUSTER")
