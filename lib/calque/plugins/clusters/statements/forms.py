"""The table of statements over clusters."""

from __future__ import annotations

from importlib.resources import files

from calque.plugins.clusters.statements.kinds import (
    CLUSTER_COLUMNS,
    EXPLAIN_COLUMNS,
    PLACEMENT_COLUMNS,
    AddSecondaryCluster,
    DropSecondaryCluster,
    ExplainCluster,
    ShowClusters,
    ShowClustersOfTable,
    UseCluster,
)
from calque.statements.forms import Executors, Form, Statements


def executors() -> Executors:
    from calque.plugins.clusters.statements.execute import (
        add_secondary,
        drop_secondary,
        explain_cluster,
        run_on_cluster,
        show_clusters,
        show_clusters_of_table,
        use_cluster,
    )

    return Executors(
        {
            UseCluster: use_cluster,
            ShowClusters: show_clusters,
            ShowClustersOfTable: show_clusters_of_table,
            ExplainCluster: explain_cluster,
            AddSecondaryCluster: add_secondary,
            DropSecondaryCluster: drop_secondary,
        },
        foreign=(run_on_cluster,),
    )


STATEMENTS = Statements(
    grammar=files("calque.plugins.clusters").joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="use_cluster",
            kind=UseCluster,
            syntax="USE CLUSTER [c]",
            does="sends every statement to one cluster; without a name, to the one that is resolved for it",
            columns=(),
            example="USE CLUSTER c1",
        ),
        Form(
            rule="show_clusters",
            kind=ShowClusters,
            syntax="SHOW CLUSTERS",
            does="the clusters of the configuration",
            columns=CLUSTER_COLUMNS,
            example="SHOW CLUSTERS",
        ),
        Form(
            rule="show_clusters_of_table",
            kind=ShowClustersOfTable,
            syntax="SHOW CLUSTERS FOR t",
            does="where a table is, and as of which event",
            columns=PLACEMENT_COLUMNS,
            example="SHOW CLUSTERS FOR sales.orders",
        ),
        Form(
            rule="explain_cluster",
            kind=ExplainCluster,
            syntax="EXPLAIN CLUSTER statement",
            does="the cluster that a statement would run on, and why",
            columns=EXPLAIN_COLUMNS,
            example="EXPLAIN CLUSTER SELECT count(*) FROM sales.orders",
        ),
        Form(
            rule="add_secondary_cluster",
            kind=AddSecondaryCluster,
            syntax="ALTER TABLE t ADD SECONDARY CLUSTER c [WHERE predicate]",
            does="has a table, or partitions of it, replicated to a cluster",
            columns=(),
            example="ALTER TABLE sales.orders ADD SECONDARY CLUSTER c2 WHERE ds >= '2024-01-01'",
        ),
        Form(
            rule="drop_secondary_cluster",
            kind=DropSecondaryCluster,
            syntax="ALTER TABLE t DROP SECONDARY CLUSTER c [WHERE predicate]",
            does="ends that, for the whole table or for partitions of it",
            columns=(),
            example="ALTER TABLE sales.orders DROP SECONDARY CLUSTER c2",
        ),
    ),
    executors=executors,
)
