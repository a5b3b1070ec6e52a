"""The executors of the statements about clusters: which there are, which have a table, where a statement would run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.clusters.api.matching import reachable
from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.api.secondaries import Secondaries
from calque.plugins.clusters.config.sections import cluster_of, clusters_of, require_clusters
from calque.plugins.clusters.ports import Engine
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
from calque.plugins.clusters.wiring.cluster import cluster_wirings
from calque.plugins.clusters.wiring.secondary_tables import as_statements_have_it
from calque.statements.result import NO_RESULT, Result, StreamedResult, result_of
from calque.statements.session import Session, named
from calque.statements.statement import EngineStatement
from calque.wiring.wiring import Wiring


@dataclass(slots=True)
class ClusterSession:
    """The part of a session that belongs to clusters. `used` is the cluster of `USE CLUSTER`; with None each
    statement's cluster is resolved. `clusters` is None until it is asked for. `engines` has the session at the engine
    of each cluster on which a statement ran."""

    used: str | None = None
    clusters: OpenClusters | None = None
    engines: dict[str, Engine] = field(default_factory=dict)

    def engine(self, cluster: str, wiring: Wiring) -> Engine:
        """Return the session at the cluster's engine, the same for all statements. Raises `Refused` where the cluster
        has no engine."""
        if cluster not in self.engines:
            self.engines[cluster] = cluster_wirings(wiring)[cluster].engine()
        return self.engines[cluster]

    def close(self) -> None:
        while self.engines:
            self.engines.popitem()[1].close()


def use_cluster(statement: UseCluster, session: Session) -> Result:
    """Send the statements that follow to one cluster; without a name, to the one that is resolved for each. Raises
    `Refused` for an unknown cluster, and where clusters are disabled."""
    config = session.wiring.config
    clusters = require_clusters(config)
    kept = session.kept(ClusterSession)
    if statement.cluster is None:
        kept.used = None
        return NO_RESULT
    if not clusters.enabled:
        why = f"All statements run on the default, {clusters.default}"
        raise Refused("Clusters are disabled", why, "Write enabled = true below [clusters]")
    kept.used = cluster_of(config, statement.cluster).name
    return NO_RESULT


def show_clusters(_: ShowClusters, session: Session) -> Result:
    clusters = require_clusters(session.wiring.config)
    answers = reachable(session.wiring)
    return result_of(
        CLUSTER_COLUMNS,
        (
            {
                "cluster": name,
                "metastore": ",".join(cluster.plug.keys.metastore),
                "engine": cluster.plug.engine or None,
                "default": name == clusters.default,
                "reachable": answers[name],
            }
            for name, cluster in cluster_wirings(session.wiring).items()
        ),
    )


def show_clusters_of_table(statement: ShowClustersOfTable, session: Session) -> Result:
    """Return a row for each cluster that has, or is to have, the table. Raises `Refused` for a table that no cluster
    has, and `Unavailable` where a cluster that may have it does not answer."""
    placements = opened(session).look(named(statement.table, session)).placements
    return Result(
        PLACEMENT_COLUMNS,
        tuple(tuple(getattr(placement, column) for column in PLACEMENT_COLUMNS) for placement in placements),
    )


def explain_cluster(statement: ExplainCluster, session: Session) -> Result:
    """Return a row for each cluster that was considered for the statement; where none was, one row that says why the
    statement is refused. Raises `Unavailable`."""
    try:
        text = statement.statement.rstrip().rstrip(";")
        resolution = opened(session).resolve(
            text, used=session.kept(ClusterSession).used, database=session.database or "default"
        )
    except Refused as refused:
        return Result(EXPLAIN_COLUMNS, ((None, False, " ".join(f"{refused.what}: {refused.why}".split())),))
    if not resolution.considered:
        return Result(EXPLAIN_COLUMNS, ((None, False, resolution.refusal),))
    return Result(EXPLAIN_COLUMNS, tuple((one.cluster, one.chosen, one.reason) for one in resolution.considered))


def add_secondary(statement: AddSecondaryCluster, session: Session) -> Result:
    """Have a table, or partitions of it, replicated to a cluster. Returns when the change is recorded, and taken over
    by a `run` if there is one. Raises `Refused` where the statement can't be carried out on this table and cluster, and
    `Unavailable` where a metastore or that `run` does not answer."""
    return alter(Secondaries.add, statement, session)


def drop_secondary(statement: DropSecondaryCluster, session: Session) -> Result:
    """End the replication of a table, or of partitions of it, to a cluster. Returns when the change is recorded, and
    taken over by a `run` if there is one. Raises as `add_secondary` does."""
    return alter(Secondaries.drop, statement, session)


def alter(
    change: Callable[[Secondaries, TableName, str, str | None], None],
    statement: AddSecondaryCluster | DropSecondaryCluster,
    session: Session,
) -> Result:
    cluster = cluster_of(session.wiring.config, statement.cluster).name
    secondaries = Secondaries(session.wiring, opened(session).matching)
    change(secondaries, named(statement.table, session), cluster, statement.predicate)
    session.wiring = Wiring(as_statements_have_it(session.wiring.config), session.wiring.runtime)
    session.kept(ClusterSession).clusters = None
    return NO_RESULT


def run_on_cluster(statement: EngineStatement, session: Session) -> StreamedResult | None:
    """Run the statement on the cluster that is chosen for it, and return its rows as they come; None where the
    configuration has no clusters. Raises `Refused` where no cluster can process the statement, where the chosen one has
    no engine, and with the engine's words; `Unavailable` where a metastore or the engine does not answer."""
    if not clusters_of(session.wiring.config):
        return None
    kept = session.kept(ClusterSession)
    route = opened(session).route(statement.text, kept.used, session.database)
    resolution = route.resolution
    if resolution.cluster is None:
        todo = "Say EXPLAIN CLUSTER and the statement, or change what is where"
        raise Refused("No cluster can process the statement", resolution.refusal, todo)
    session.report(f"{resolution.cluster}: {statement.text}")
    given = kept.engine(resolution.cluster, session.wiring).run(route.text, route.database, statement.parameters)
    return StreamedResult(given.columns, given.rows)


def opened(session: Session) -> OpenClusters:
    """Return the session's open clusters, made when they are first asked for. Raises `Refused` where the configuration
    has no clusters."""
    require_clusters(session.wiring.config)
    kept = session.kept(ClusterSession)
    if kept.clusters is None:
        kept.clusters = OpenClusters(session.wiring)
    return kept.clusters
