"""Forty queries of TPC-DS over three clusters: which tables each of them reads, and where it runs.

Each channel of sales has a cluster, with the tables of its own and replicas of those that all need, whose originals are
at `STORE`. What a query reads, and where it runs, was written down by hand.
"""

from __future__ import annotations

import re

import pytest

from calque.model.names import TableName
from calque.plugins.clusters.core.resolve import resolve
from calque.plugins.clusters.core.rewrite import rewritten
from calque.plugins.clusters.core.statement_tables import tables_of
from calque.plugins.clusters.model import ClusteredTable, Clusters, Replica
from support.places import GOLDEN

STORE, CATALOG, WEB, NOWHERE = "store", "catalog", "web", None
OWN = {
    STORE: "store_sales store_returns store reason",
    CATALOG: "catalog_sales catalog_returns catalog_page call_center warehouse inventory ship_mode",
    WEB: "web_sales web_returns web_page web_site",
}
SHARED = (
    "customer customer_address customer_demographics date_dim household_demographics income_band item promotion "
    "time_dim"
)
EXPECTED = {
    1: ("store_returns date_dim store customer", STORE),
    3: ("date_dim store_sales item", STORE),
    6: ("customer_address customer store_sales date_dim item", STORE),
    7: ("store_sales customer_demographics date_dim item promotion", STORE),
    12: ("web_sales item date_dim", WEB),
    15: ("catalog_sales customer customer_address date_dim", CATALOG),
    18: ("catalog_sales customer_demographics customer customer_address date_dim item", CATALOG),
    19: ("date_dim store_sales item customer customer_address store", STORE),
    20: ("catalog_sales item date_dim", CATALOG),
    22: ("inventory date_dim item warehouse", CATALOG),
    25: ("store_sales store_returns catalog_sales date_dim store item", NOWHERE),
    26: ("catalog_sales customer_demographics date_dim item promotion", CATALOG),
    27: ("store_sales customer_demographics date_dim store item", STORE),
    29: ("store_sales store_returns catalog_sales date_dim store item", NOWHERE),
    32: ("catalog_sales item date_dim", CATALOG),
    36: ("store_sales date_dim item store", STORE),
    37: ("item inventory date_dim catalog_sales", CATALOG),
    38: ("store_sales date_dim customer catalog_sales web_sales", NOWHERE),
    40: ("catalog_sales catalog_returns warehouse item date_dim", CATALOG),
    42: ("date_dim store_sales item", STORE),
    45: ("web_sales customer customer_address date_dim item", WEB),
    52: ("date_dim store_sales item", STORE),
    55: ("date_dim store_sales item", STORE),
    65: ("store item store_sales date_dim", STORE),
    67: ("store_sales date_dim store item", STORE),
    73: ("store_sales date_dim store household_demographics customer", STORE),
    79: ("store_sales date_dim store household_demographics customer", STORE),
    82: ("item inventory date_dim store_sales", NOWHERE),
    84: ("customer customer_address customer_demographics household_demographics income_band store_returns", STORE),
    86: ("web_sales date_dim item", WEB),
    87: ("store_sales date_dim customer catalog_sales web_sales", NOWHERE),
    89: ("item store_sales date_dim store", STORE),
    90: ("web_sales household_demographics time_dim web_page", WEB),
    91: (
        "call_center catalog_returns date_dim customer customer_address customer_demographics household_demographics",
        CATALOG,
    ),
    92: ("web_sales item date_dim", WEB),
    93: ("store_sales store_returns reason", STORE),
    94: ("web_sales date_dim customer_address web_site web_returns", WEB),
    95: ("web_sales date_dim customer_address web_site web_returns", WEB),
    96: ("store_sales household_demographics time_dim store", STORE),
    98: ("store_sales item date_dim", STORE),
}
FILE = GOLDEN / "tpcds.sql"
QUERIES = {
    int(number): text
    for number, text in re.findall(r"^-- query (\d+)\n(.*?);$", FILE.read_text(), re.DOTALL | re.MULTILINE)
}
CLUSTERS = Clusters((STORE, CATALOG, WEB), STORE)
TABLES = {
    **{TableName("tpcds", name): ClusteredTable((at,)) for at, names in OWN.items() for name in names.split()},
    **{
        TableName("tpcds", name): ClusteredTable((STORE,), replicas={CATALOG: Replica(), WEB: Replica()})
        for name in SHARED.split()
    },
}


@pytest.mark.parametrize("number", EXPECTED)
def test_a_query_reads_its_tables_and_runs_where_all_of_them_are(number: int) -> None:
    names, cluster = EXPECTED[number]
    statement = tables_of(QUERIES[number], "tpcds", TABLES.get)
    assert {one.name.table for one in statement.inputs} == set(names.split())
    assert statement.outputs == ()
    assert resolve(statement, TABLES, CLUSTERS).cluster == cluster


@pytest.mark.parametrize("number", EXPECTED)
def test_a_query_reads_the_same_tables_under_other_names(number: int) -> None:
    renames = {TableName("tpcds", name): TableName("ds", f"{name}_r") for name in EXPECTED[number][0].split()}
    text = rewritten(QUERIES[number], "tpcds", renames)
    assert {one.name for one in tables_of(text, "tpcds", lambda _: None).inputs} == set(renames.values())


def test_there_are_forty() -> None:
    assert (len(EXPECTED), EXPECTED.keys()) == (40, QUERIES.keys())
