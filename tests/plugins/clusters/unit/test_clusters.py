"""The examples of the multi-cluster document, in its words, and what it leaves open.

`C1` has T11 and T12, `C2` T21, `C3` T31.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.clusters.core.resolve import resolve
from calque.plugins.clusters.core.rewrite import rewritable, rewritten
from calque.plugins.clusters.core.statement_tables import tables_of
from calque.plugins.clusters.model import ClusteredTable, Clusters, Input, Replica, Resolution, StatementTables

T11, T12, T21, T31, T13 = (TableName("default", name) for name in ("t11", "t12", "t21", "t31", "t13"))
KEYS = {"ds": "string", "hr": "int"}
PARTITIONS = frozenset(f"ds=2024-01-0{day}/hr={hour}" for day in (1, 2, 3) for hour in (1, 2))
CLUSTERS = Clusters(("C1", "C2", "C3"), "C1")
WITHOUT_SECONDARIES = {
    T11: ClusteredTable(("C1",), KEYS, PARTITIONS),
    T12: ClusteredTable(("C1",)),
    T21: ClusteredTable(("C2",)),
    T31: ClusteredTable(("C3",)),
}
T11_AT_C2 = {**WITHOUT_SECONDARIES, T11: ClusteredTable(("C1",), KEYS, PARTITIONS, {"C2": Replica(PARTITIONS)})}
FAILS = None
Tables = Mapping[TableName, ClusteredTable]


def run(text: str, tables: Tables, clusters: Clusters = CLUSTERS, used: str | None = None) -> Resolution:
    return resolve(tables_of(text, "default", tables.get), tables, clusters, used)


@pytest.mark.parametrize(
    ("query", "processed_in"),
    [
        ("SELECT * FROM T11", "C1"),
        ("SELECT * FROM T11 JOIN T12 ON T11.x = T12.x", "C1"),
        ("SELECT * FROM T21", "C2"),
        ("SELECT * FROM T11 JOIN T21 ON T11.x = T21.x", FAILS),
        ("CREATE TABLE T13 AS SELECT * FROM T11", "C1"),
        ("INSERT INTO T13 SELECT * FROM T11", "C1"),
        ("INSERT INTO T21 SELECT * FROM T11", FAILS),
    ],
)
def test_tables_without_secondary_clusters(query: str, processed_in: str | None) -> None:
    assert run(query, WITHOUT_SECONDARIES).cluster == processed_in


@pytest.mark.parametrize(
    ("query", "processed_in"),
    [
        ("SELECT * FROM T11", "C1"),
        ("SELECT * FROM T11 JOIN T12 ON T11.x = T12.x", "C1"),
        ("SELECT * FROM T21", "C2"),
        ("SELECT * FROM T11 JOIN T21 ON T11.x = T21.x", "C2"),
        ("SELECT * FROM T11 JOIN T31 ON T11.x = T31.x", FAILS),
        ("CREATE TABLE T13 AS SELECT * FROM T11", "C1"),
        ("INSERT INTO T13 SELECT * FROM T11", "C1"),
        ("INSERT INTO T21 SELECT * FROM T11", "C2"),
    ],
)
def test_all_the_data_of_t11_is_also_present_in_c2(query: str, processed_in: str | None) -> None:
    assert run(query, T11_AT_C2).cluster == processed_in


def test_the_primary_clusters_of_the_inputs_are_tried_one_by_one_in_their_order() -> None:
    tables = {**T11_AT_C2, T21: ClusteredTable(("C2",), replicas={"C1": Replica()})}
    assert run("SELECT * FROM T11, T21", tables).cluster == "C1"
    assert run("SELECT * FROM T21, T11", tables).cluster == "C2"


def test_outputs_of_different_primary_clusters_always_fail() -> None:
    resolution = run("FROM T11 INSERT INTO T12 SELECT x INSERT INTO T21 SELECT y", T11_AT_C2)
    assert resolution.cluster is None
    assert resolution.refusal == ("its outputs have different primary clusters: default.t12 at C1, default.t21 at C2")


def test_after_use_cluster_a_statement_runs_there_or_fails() -> None:
    assert run("SELECT * FROM T11", T11_AT_C2, used="C2").cluster == "C2"
    assert run("SELECT * FROM T12", T11_AT_C2, used="C2").refusal == "C2: default.t12 is not there"
    assert run("INSERT INTO T11 SELECT 1", T11_AT_C2, used="C2").refusal == (
        "C2: the output default.t11 can be written at C1 alone"
    )
    assert run("CREATE TABLE T13 AS SELECT * FROM T11", T11_AT_C2, used="C2").cluster == "C2"


def test_use_default_is_as_use_cluster_default() -> None:
    clusters = replace(CLUSTERS, use_default=True)
    assert run("SELECT * FROM T11", T11_AT_C2, clusters).cluster == "C1"
    assert run("SELECT * FROM T21", T11_AT_C2, clusters).cluster is FAILS
    assert run("SELECT * FROM T21", T11_AT_C2, clusters, used="C2").cluster == "C2"


def test_disabled_clusters_send_everything_to_the_default() -> None:
    clusters = replace(CLUSTERS, enabled=False)
    assert run("SELECT * FROM T11 JOIN T31", WITHOUT_SECONDARIES, clusters).cluster == "C1"


@pytest.mark.parametrize("text", ["SELECT 1", "CREATE TABLE T13 (x INT)", "INSERT INTO T13 VALUES (1)"])
def test_statements_without_inputs_run_on_the_default(text: str) -> None:
    assert run(text, T11_AT_C2, replace(CLUSTERS, default="C3")).cluster == "C3"


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE T21 ADD COLUMNS (y INT)",
        "DROP TABLE IF EXISTS `T21`",
        "TRUNCATE TABLE T21",
        "ANALYZE TABLE default.T21 COMPUTE STATISTICS",
        "MSCK REPAIR TABLE T21",
        "DELETE FROM T21 WHERE x = 1",
        "DESCRIBE FORMATTED T21",
    ],
)
def test_definitions_of_a_table_are_its_primarys(text: str) -> None:
    assert run(text, T11_AT_C2).cluster == "C2"


# Partitions

SOME = frozenset(name for name in PARTITIONS if name.startswith("ds=2024-01-03"))
SOME_AT_C2 = {**WITHOUT_SECONDARIES, T11: ClusteredTable(("C1",), KEYS, PARTITIONS, {"C2": Replica(SOME)})}


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ("T11.ds = '2024-01-03'", True),
        ("T11.ds > '2024-01-02' AND T11.hr IN (1, 2) AND x > 3", True),
        ("'2024-01-03' = T11.ds", True),
        ("T11.ds = '2030-01-01'", True),
        ("T11.ds >= '2024-01-02'", False),
        ("T11.ds = '2024-01-03' OR x > 3", False),
        ("ds = '2024-01-03'", False),
        ("upper(T11.ds) = '2024-01-03'", False),
        ("T11.ds = 20240103", False),
        ("T11.hr = 1", False),
        ("T21.ds = '2024-01-03'", False),
    ],
)
def test_partitions_that_provably_are_not_read_need_not_be_there(condition: str, runs: bool) -> None:
    """Beside T21 an unqualified ds may be a column of that one."""
    resolution = run(f"SELECT * FROM T11 JOIN T21 ON T11.x = T21.x WHERE {condition}", SOME_AT_C2)
    assert (resolution.cluster == "C2") is runs
    if not runs:
        assert "partitions of default.t11 are not there, e.g. ds=2024-01-0" in resolution.refusal


def test_beside_an_outer_join_a_predicate_proves_something_where_a_missing_row_does_not_fulfil_it() -> None:
    query = "SELECT * FROM T21 LEFT JOIN T11 ON T11.x = T21.x WHERE "
    assert run(f"{query} T11.ds = '2024-01-03'", SOME_AT_C2).cluster == "C2"
    assert run(f"{query} (T11.ds = '2024-01-03' OR T11.ds IS NULL)", SOME_AT_C2).cluster is FAILS


def test_a_replica_that_lags_too_far_or_whose_lag_nobody_knows_counts_as_absent() -> None:
    for lag, reason in ((301.0, "lags 301 s there, more than 300 s"), (None, "nobody knows how far")):
        table = ClusteredTable(("C1",), KEYS, PARTITIONS, {"C2": Replica(PARTITIONS, lag)})
        assert reason in run("SELECT * FROM T11", {T11: table}, used="C2").refusal


def test_two_originals_of_one_name_are_refused_with_their_clusters() -> None:
    tables = {T11: ClusteredTable(("C1", "C2"))}
    assert run("SELECT * FROM T11", tables).refusal == "default.t11 has originals at C1 and C2"


def test_a_table_that_no_cluster_has_is_told() -> None:
    assert run("SELECT * FROM T99", WITHOUT_SECONDARIES).refusal == "C1: default.t99 is at no cluster"


# Statements

V, W = TableName("default", "v"), TableName("other", "w")
VIEWS = {
    **SOME_AT_C2,
    V: ClusteredTable(("C1",), replicas={"C2": Replica()}, view="SELECT * FROM default.T11 WHERE ds = '2024-01-03'"),
    W: ClusteredTable(("C2",), view="SELECT v.* FROM `default`.`v`"),
}


def test_views_are_read_with_the_tables_below_them() -> None:
    assert run("SELECT * FROM other.w", VIEWS).cluster == "C2"
    without = {**VIEWS, T11: replace(VIEWS[T11], replicas={})}
    assert run("SELECT * FROM other.w", without).refusal == (
        "C2: default.t11 is not there (read by the view default.v); C1: other.w is not there"
    )


def test_a_view_that_reads_itself_is_refused() -> None:
    tables = {V: ClusteredTable(("C1",), view="SELECT * FROM default.v")}
    with pytest.raises(Refused, match="can't be resolved"):
        run("SELECT * FROM v", tables)


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("WITH T11 AS (SELECT * FROM T12) SELECT * FROM T11", ["t12"], []),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a JOIN T12) SELECT * FROM b, default.a", ["t12", "a"], []),
        ("WITH T12 AS (SELECT * FROM T12) SELECT * FROM T12", ["t12"], []),
        ("SELECT * FROM (WITH T11 AS (SELECT 1) SELECT * FROM T11) q JOIN T11", ["t11"], []),
        ("SELECT * FROM T11 UNION ALL SELECT * FROM T12 EXCEPT SELECT * FROM T21", ["t11", "t12", "t21"], []),
        ("SELECT * FROM T11 LATERAL VIEW explode(xs) e AS x", ["t11"], []),
        ("SELECT * FROM T11 WHERE x IN (SELECT x FROM T12) AND EXISTS (SELECT 1 FROM T21)", ["t11", "t12", "t21"], []),
        ("SELECT (SELECT max(x) FROM T12) FROM T11 /* FROM T31 */ -- , T31", ["t12", "t11"], []),
        ("SELECT 'FROM T31' FROM `T11`", ["t11"], []),
        ("INSERT OVERWRITE TABLE T12 PARTITION (ds = '1') SELECT * FROM T11", ["t11"], ["t12"]),
        ("WITH a AS (SELECT * FROM T11) INSERT INTO T12 SELECT * FROM a", ["t11"], ["t12"]),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT * FROM T11", ["t11"], []),
        (
            "FROM (SELECT * FROM T11) q INSERT INTO T12 SELECT a WHERE b > 1 INSERT INTO T21 SELECT c",
            ["t11"],
            ["t12", "t21"],
        ),
        ("CREATE VIEW w AS SELECT * FROM T11", ["t11"], ["w"]),
        ("CREATE TABLE x LIKE T11", ["t11"], ["x"]),
        ("MERGE INTO T12 USING T11 ON T12.x = T11.x WHEN MATCHED THEN DELETE", ["t11"], ["t12"]),
    ],
)
def test_the_tables_of_a_statement(text: str, inputs: list[str], outputs: list[str]) -> None:
    tables = tables_of(text, "default", lambda _: None)
    assert [one.name.table for one in tables.inputs] == inputs
    assert [name.table for name in tables.outputs] == outputs


@pytest.mark.parametrize(
    "text", ["LOCK TABLE T11", "EXPLAIN SELECT 1", "SET x = 1", "SELECT FROM WHERE", "GRANT ALL ON T11 TO me", "("]
)
def test_a_statement_that_the_parser_does_not_know_is_told_so(text: str) -> None:
    with pytest.raises(Refused, match=r"tables can't be told.*USE CLUSTER"):
        tables_of(text, "default", lambda _: None)


def test_what_hive_does_not_know_may_be_spark_s() -> None:
    assert run("SELECT X'0a' FROM T21", T11_AT_C2).cluster == "C2"


@pytest.mark.parametrize("text", ["DESCRIBE FUNCTION abs", "DESC DATABASE EXTENDED default", "SHOW FUNCTIONS"])
def test_statements_that_speak_of_no_table_are_not_known(text: str) -> None:
    with pytest.raises(Refused, match="The parser does not know statements of this kind"):
        run(text, T11_AT_C2)


# Replicas under other names

ORDERS, ITEMS = TableName("sales", "orders"), TableName("sales", "items")
RENAMED = {ORDERS: TableName("sales_c2", "orders_c2"), ITEMS: TableName("sales_c2", "items")}


@pytest.mark.parametrize(
    ("text", "at_c2"),
    [
        (
            "SELECT orders.x FROM orders JOIN `Items` i ON orders.a = i.a -- orders",
            "SELECT orders.x FROM sales_c2.orders_c2 AS orders JOIN `sales_c2`.`items` i ON orders.a = i.a -- orders",
        ),
        ("SELECT * FROM sales . orders o, staff", "SELECT * FROM sales_c2.orders_c2 o, sales.staff"),
        (
            "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders, items",
            "WITH orders AS (SELECT * FROM sales_c2.orders_c2 AS orders) SELECT * FROM orders, sales_c2.items",
        ),
        (
            "INSERT INTO t SELECT * FROM `sales`.`orders` WHERE x = 'sales.orders'",
            "INSERT INTO t SELECT * FROM `sales_c2`.`orders_c2` AS `orders` WHERE x = 'sales.orders'",
        ),
        (
            "SELECT x FROM orders LATERAL VIEW explode(y) e AS z UNION SELECT x FROM hr.staff",
            "SELECT x FROM sales_c2.orders_c2 AS orders LATERAL VIEW explode(y) e AS z UNION SELECT x FROM hr.staff",
        ),
    ],
)
def test_names_of_replicas_are_put_in_and_nothing_else_changes(text: str, at_c2: str) -> None:
    assert rewritten(text, "sales", RENAMED) == at_c2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT sales.orders.x FROM sales.orders", "the column sales.orders.x is named with its database"),
        ("SELECT * FROM orders TABLESAMPLE (1 PERCENT)", "sales.orders would need an alias behind its name"),
        ("FROM orders INSERT INTO a SELECT x INSERT INTO b SELECT y", "statements of this kind in part alone"),
    ],
)
def test_a_replica_counts_as_absent_where_a_statement_can_t_be_rewritten(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        rewritten(text, "sales", RENAMED)
    tables = {
        ORDERS: ClusteredTable(("C1",), replicas={"C2": Replica(local_name=RENAMED[ORDERS])}),
        T21: ClusteredTable(("C2",)),
    }
    statement = StatementTables((Input(ORDERS), Input(T21)))
    usable = rewritable(text, "sales", statement, tables, CLUSTERS.names)
    refusal = resolve(statement, usable, CLUSTERS).refusal
    assert "it is called sales_c2.orders_c2 there, and the statement can't be rewritten" in refusal
    assert why in refusal
    assert usable[T21] == tables[T21]
