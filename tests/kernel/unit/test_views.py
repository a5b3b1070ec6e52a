"""`core.images.views`: tables' new names in view texts, and nothing else."""

from __future__ import annotations

import pytest

from calque.core.images.views import rewrite_names
from calque.model.names import TableName

DATABASES = {"d1": "x1"}
TABLES = {TableName("d1", "old"): TableName("x1", "new"), TableName("d1", "gone"): TableName("x2", "gone")}
TABLES |= {TableName("d1", "odd"): TableName("x1", "2nd")}


def name_at_target(name: TableName) -> TableName:
    """d1 is x1 at the target, its table old is called new, gone is in x2, odd has a name that must be quoted."""
    return TABLES.get(name) or TableName(DATABASES.get(name.database, name.database), name.table)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Where a table is read from
        ("SELECT a FROM d1.t", "SELECT a FROM x1.t"),
        ("SELECT a FROM d1.old", "SELECT a FROM x1.new"),
        ("SELECT a FROM D1.Old", "SELECT a FROM x1.new"),
        ("SELECT a FROM d1 . old", "SELECT a FROM x1 . new"),
        ("select `a`\n  from `d1`.`old`", "select `a`\n  from `x1`.`new`"),
        ("SELECT a FROM `d1`.old", "SELECT a FROM `x1`.new"),
        ("SELECT a FROM d2.old", "SELECT a FROM d2.old"),
        ("SELECT a FROM d1.odd", "SELECT a FROM x1.`2nd`"),
        # The view's own database needs no name, another one does
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT a FROM old", "SELECT a FROM new"),
        ("SELECT a FROM gone", "SELECT a FROM x2.gone"),
        ("SELECT a FROM `gone`", "SELECT a FROM `x2`.`gone`"),
        # Catalogs
        ("SELECT a FROM spark_catalog.d1.old", "SELECT a FROM spark_catalog.x1.new"),
        ("SELECT a FROM lake.d1.old", "SELECT a FROM lake.d1.old"),
        # Aliases
        ("SELECT old.a FROM d1.t old", "SELECT old.a FROM x1.t old"),
        ("SELECT o.a FROM d1.old AS o", "SELECT o.a FROM x1.new AS o"),
        ("SELECT d1.a FROM d1.old AS d1", "SELECT d1.a FROM x1.new AS d1"),
        ("SELECT a AS old FROM d1.old", "SELECT a AS old FROM x1.new"),
        ("SELECT old.a FROM (SELECT a FROM d1.old) old", "SELECT old.a FROM (SELECT a FROM x1.new) old"),
        # Strings and comments
        ("SELECT 'd1.old', \"d1.old\" FROM d1.old", "SELECT 'd1.old', \"d1.old\" FROM x1.new"),
        ("SELECT a -- of d1.old\nFROM d1.old /* d1.old */", "SELECT a -- of d1.old\nFROM x1.new /* d1.old */"),
        ("SELECT '日本 😀' FROM d1.old", "SELECT '日本 😀' FROM x1.new"),
        # Qualified columns
        ("SELECT d1.old.a FROM d1.old", "SELECT x1.new.a FROM x1.new"),
        ("SELECT d1.t.a FROM d1.t", "SELECT x1.t.a FROM x1.t"),
        ("SELECT `old`.`a` FROM `d1`.`old`", "SELECT `new`.`a` FROM `x1`.`new`"),
        ("SELECT old.a FROM old", "SELECT new.a FROM new"),
        ("SELECT d1.old.a FROM old", "SELECT x1.new.a FROM new"),
        ("SELECT gone.a FROM gone", "SELECT gone.a FROM x2.gone"),
        ("SELECT old.*, d1.old.* FROM d1.old", "SELECT new.*, x1.new.* FROM x1.new"),
        ("SELECT spark_catalog.d1.old.a FROM d1.old", "SELECT spark_catalog.x1.new.a FROM x1.new"),
        ("SELECT d1.old.a FROM spark_catalog.d1.old", "SELECT x1.new.a FROM spark_catalog.x1.new"),
        ("SELECT d1.old.a, lake.d1.old.a FROM lake.d1.old", "SELECT d1.old.a, lake.d1.old.a FROM lake.d1.old"),
        ("SELECT d2.old.a, d1.old.a FROM d2.old, d1.old", "SELECT d2.old.a, x1.new.a FROM d2.old, x1.new"),
        # Fields of structs
        ("SELECT old.x.y FROM d1.old", "SELECT new.x.y FROM x1.new"),
        ("SELECT old.x.y.z.w FROM d1.old", "SELECT new.x.y.z.w FROM x1.new"),
        ("SELECT old.x FROM d1.t", "SELECT old.x FROM x1.t"),
        ("SELECT d1.old.x.y FROM d1.old", "SELECT x1.new.x.y FROM x1.new"),
        # Functions of a database
        ("SELECT d1.f(a), `d1`.`f`(b), f(c) FROM d2.t", "SELECT x1.f(a), `x1`.`f`(b), f(c) FROM d2.t"),
        # Joins
        (
            "SELECT a.x FROM d1.old a JOIN d1.t ON a.x = t.x LEFT JOIN old ON old.y = d1.t.y",
            "SELECT a.x FROM x1.new a JOIN x1.t ON a.x = t.x LEFT JOIN new ON new.y = x1.t.y",
        ),
        (
            "SELECT * FROM (d1.old JOIN d1.t ON old.a = t.a)",
            "SELECT * FROM (x1.new JOIN x1.t ON new.a = t.a)",
        ),
        (
            "SELECT a FROM d1.old LEFT SEMI JOIN d1.t ON old.a = t.a",
            "SELECT a FROM x1.new LEFT SEMI JOIN x1.t ON new.a = t.a",
        ),
        ("SELECT a FROM d1.old LEFT ANTI JOIN d1.t USING (a)", "SELECT a FROM x1.new LEFT ANTI JOIN x1.t USING (a)"),
        # Subqueries
        (
            "SELECT a FROM d1.t WHERE EXISTS (SELECT 1 FROM d2.t WHERE d1.t.a = d2.t.a)",
            "SELECT a FROM x1.t WHERE EXISTS (SELECT 1 FROM d2.t WHERE x1.t.a = d2.t.a)",
        ),
        (
            "SELECT a FROM d1.old WHERE a IN (SELECT b FROM d1.t old WHERE old.b > 1) AND old.c = 2",
            "SELECT a FROM x1.new WHERE a IN (SELECT b FROM x1.t old WHERE old.b > 1) AND new.c = 2",
        ),
        (
            "SELECT (SELECT max(b) FROM d1.t WHERE t.a = old.a) FROM d1.old",
            "SELECT (SELECT max(b) FROM x1.t WHERE t.a = new.a) FROM x1.new",
        ),
        # Lateral views
        (
            "SELECT e.x FROM d1.old LATERAL VIEW explode(old.xs) e AS x",
            "SELECT e.x FROM x1.new LATERAL VIEW explode(new.xs) e AS x",
        ),
        (
            "SELECT old.x FROM d1.t LATERAL VIEW explode(t.xs) old AS x",
            "SELECT old.x FROM x1.t LATERAL VIEW explode(t.xs) old AS x",
        ),
        # Unions
        (
            "SELECT old.a FROM d1.old UNION ALL SELECT old.a FROM d2.old UNION SELECT a FROM d1.t",
            "SELECT new.a FROM x1.new UNION ALL SELECT old.a FROM d2.old UNION SELECT a FROM x1.t",
        ),
        # Hive's own order
        ("FROM d1.old SELECT a", "FROM x1.new SELECT a"),
        ("SELECT a FROM d1.old TABLESAMPLE (10 PERCENT) s", "SELECT a FROM x1.new TABLESAMPLE (10 PERCENT) s"),
    ],
)
def test_tables_get_their_new_names_and_nothing_else_moves(text: str, expected: str) -> None:
    assert rewrite_names(text, "d1", name_at_target) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH old AS (SELECT 1 a) SELECT old.a FROM old", "WITH old AS (SELECT 1 a) SELECT old.a FROM old"),
        ("WITH OLD AS (SELECT 1 a) SELECT a FROM old", "WITH OLD AS (SELECT 1 a) SELECT a FROM old"),
        # A qualified name is never one of them
        ("WITH old AS (SELECT 1 a) SELECT a FROM d1.old", "WITH old AS (SELECT 1 a) SELECT a FROM x1.new"),
        # One that is named like the table it reads
        ("WITH old AS (SELECT a FROM old) SELECT a FROM old", "WITH old AS (SELECT a FROM new) SELECT a FROM old"),
        (
            "WITH old AS (SELECT old.a FROM d1.old) SELECT old.a FROM old",
            "WITH old AS (SELECT new.a FROM x1.new) SELECT old.a FROM old",
        ),
        (
            "WITH RECURSIVE old AS (SELECT 1 a UNION ALL SELECT a + 1 FROM old) SELECT a FROM old",
            "WITH RECURSIVE old AS (SELECT 1 a UNION ALL SELECT a + 1 FROM old) SELECT a FROM old",
        ),
        # Later ones see earlier ones, and not the reverse
        (
            "WITH old AS (SELECT 1 a), b AS (SELECT a FROM old) SELECT a FROM b",
            "WITH old AS (SELECT 1 a), b AS (SELECT a FROM old) SELECT a FROM b",
        ),
        (
            "WITH b AS (SELECT a FROM old), old AS (SELECT 1 a) SELECT a FROM b",
            "WITH b AS (SELECT a FROM new), old AS (SELECT 1 a) SELECT a FROM b",
        ),
        # Nested scopes
        (
            "SELECT x.a FROM (WITH old AS (SELECT 1 a) SELECT a FROM old) x JOIN old ON x.a = old.a",
            "SELECT x.a FROM (WITH old AS (SELECT 1 a) SELECT a FROM old) x JOIN new ON x.a = new.a",
        ),
        (
            "WITH old AS (SELECT 1 a) SELECT a FROM (SELECT a FROM old WHERE a IN (SELECT a FROM old)) x",
            "WITH old AS (SELECT 1 a) SELECT a FROM (SELECT a FROM old WHERE a IN (SELECT a FROM old)) x",
        ),
        (
            "WITH b AS (WITH old AS (SELECT 1 a) SELECT a FROM old) SELECT b.a FROM b, old",
            "WITH b AS (WITH old AS (SELECT 1 a) SELECT a FROM old) SELECT b.a FROM b, new",
        ),
    ],
)
def test_common_table_expressions_hide_tables_of_their_name_where_they_are_in_scope(text: str, expected: str) -> None:
    assert rewrite_names(text, "d1", name_at_target) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELEC a FRM d1.old",
        "SELECT a FROM d1.old WHERE (",
        "SELECT 'd1.old",
        "",
        "SELECT a FROM d1.old" + " UNION ALL SELECT (((a))) FROM d1.old" * 3 + " ((",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM d1.old",
    ],
)
def test_a_text_that_does_not_parse_is_left_alone(text: str) -> None:
    assert rewrite_names(text, "d1", name_at_target) == text


def test_names_that_stay_leave_the_text_alone() -> None:
    text = "SELECT `t`.`a` FROM `d9`.`t` LATERAL VIEW explode(t.xs) e AS x"
    assert rewrite_names(text, "d9", name_at_target) == text
