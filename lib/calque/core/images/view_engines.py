"""Forms in which engines keep a view beside its text: the database that unqualified names belong to, and other
encodings.

| engine | form | under `rename` |
|---|---|---|
| Hive | a text in which all names are qualified | the text is rewritten |
| Spark 3, 4 | the text as written, the current database in `view.catalogAndNamespace.part.N` | both are rewritten |
| Spark 2 | the same, in `view.default.database` | both are rewritten |
| Presto, Trino | JSON in Base64 in a comment, `/* Presto View: … */`, with a dialect of its own | refused |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calque.errors import Refused
from calque.model.hive import Table
from calque.model.names import TableName, table_name

OUR_CATALOGS = frozenset({"hive", "spark_catalog"})
SPARK_2 = "view.default.database"
SPARK_PARTS = "view.catalogAndNamespace.numParts"
SPARK_CATALOG, SPARK_DATABASE = (f"view.catalogAndNamespace.part.{number}" for number in (0, 1))
ENCODED = ("/* Presto View: ", "/* Presto Materialized View: ")


def current_database(view: Table) -> str:
    """Return the database that unqualified names in the view's text belong to, in lower case."""
    parameters = view.parameters or {}
    return next((parameters[key] for key in database_keys(parameters)), view.database).lower()


def database_keys(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the view's parameters that name a database of this metastore."""
    keys: tuple[str, ...] = (SPARK_2,)
    if parameters.get(SPARK_PARTS) == "2" and not one_catalog(parameters.get(SPARK_CATALOG, "")):
        keys = (SPARK_DATABASE, SPARK_2)
    return tuple(key for key in keys if parameters.get(key))


def with_databases_at_target(
    parameters: Mapping[str, str], name_at_target: Callable[[TableName], TableName]
) -> dict[str, str]:
    """Return a view's parameters with the databases in them under their names at the target."""
    names = {key: name_at_target(table_name(parameters[key])).database for key in database_keys(parameters)}
    return {**parameters, **names}


ENCODED_TEXT = "Presto and Trino keep its text encoded, in a dialect in which names are not rewritten"
BY_HAND = "Make such a view at the target by hand, or leave it out of the policy"


def is_rewritable(view: Table) -> bool:
    """Tell whether names in the view's text can be rewritten, as `rename` needs it."""
    return not (view.view_original_text or "").startswith(ENCODED)


def require_rewritable(view: Table) -> None:
    """Raise `Refused` where names in the view's text can't be rewritten."""
    if not is_rewritable(view):
        raise Refused(f"The view {view.database}.{view.name} can't be shown under `rename`", ENCODED_TEXT, BY_HAND)


def one_catalog(name: str) -> str:
    """Return a catalog's name in lower case; empty for each of the names of the metastore's own."""
    return "" if name.lower() in OUR_CATALOGS else name.lower()
