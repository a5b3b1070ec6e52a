"""Statements on clusters: which there are, who has a table, where a statement would run."""

from __future__ import annotations

from typing import assert_never

from calque.errors import Refused
from calque.plugins.clusters.api.matching import reachable
from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.api.secondaries import Secondaries
from calque.statements.forms import CLUSTER_COLUMNS, EXPLAIN_COLUMNS, PLACEMENT_COLUMNS
from calque.statements.result import NO_RESULT, Result, StreamedResult, result_of
from calque.statements.session import Session, named
from calque.statements.statement import (
    AddSecondaryCluster,
    DropSecondaryCluster,
    EngineStatement,
    ExplainCluster,
    ShowClustersOfTable,
    UseCluster,
)
from calque.wiring.wiring import Wiring


def use_cluster(statement: UseCluster, session: Session) -> Result:
    """Raises `Refused` for an unknown cluster, and where clusters are disabled."""
    config = session.wiring.config
    clusters = config.require_clusters()
    if statement.cluster is None:
        session.cluster = None
        return NO_RESULT
    if not clusters.enabled:
        why = f"All statements run on the default, {clusters.default}"
        raise Refused("Clusters are disabled", why, "Write enabled = true below [clusters]")
    session.cluster = config.cluster(statement.cluster).name
    return NO_RESULT


def show_clusters(session: Session) -> Result:
    clusters = session.wiring.config.require_clusters()
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
            for name, cluster in session.wiring.clusters.items()
        ),
    )


def show_clusters_of_table(statement: ShowClustersOfTable, session: Session) -> Result:
    """Raises `Refused` for a table that no cluster has, and `Unavailable` where one that is away may have it."""
    placements = opened(session).look(named(statement.table, session)).placements
    return Result(
        PLACEMENT_COLUMNS,
        tuple(tuple(getattr(placement, column) for column in PLACEMENT_COLUMNS) for placement in placements),
    )


def explain_cluster(statement: ExplainCluster, session: Session) -> Result:
    """A row for each cluster that was looked at; where none had to be, one that says why the statement is refused.
    Raises `Unavailable`."""
    try:
        text = statement.statement.rstrip().rstrip(";")
        resolution = opened(session).resolve(text, used=session.cluster, database=session.database or "default")
    except Refused as refused:
        return Result(EXPLAIN_COLUMNS, ((None, False, " ".join(f"{refused.what}: {refused.why}".split())),))
    if not resolution.considered:
        return Result(EXPLAIN_COLUMNS, ((None, False, resolution.refusal),))
    return Result(EXPLAIN_COLUMNS, tuple((one.cluster, one.chosen, one.reason) for one in resolution.considered))


def alter_secondary(statement: AddSecondaryCluster | DropSecondaryCluster, session: Session) -> Result:
    """Returns when it is recorded, and taken over by a `run` that there is. Raises `Refused` and `Unavailable`."""
    cluster = session.wiring.config.cluster(statement.cluster).name
    secondaries = Secondaries(session.wiring, opened(session).matching)
    name, predicate = named(statement.table, session), statement.predicate
    match statement:
        case AddSecondaryCluster():
            secondaries.add(name, cluster, predicate)
        case DropSecondaryCluster():
            secondaries.drop(name, cluster, predicate)
        case _:
            assert_never(statement)
    session.wiring, session.clusters = Wiring(session.wiring.config, session.wiring.runtime), None
    return NO_RESULT


def run_on_cluster(statement: EngineStatement, session: Session) -> StreamedResult:
    """Raises `Refused` where no cluster can process the statement, where the one that can has no engine, and with the
    engine's words; `Unavailable` where something does not answer."""
    route = opened(session).route(statement.text, session.cluster, session.database)
    resolution = route.resolution
    if resolution.cluster is None:
        todo = "Say EXPLAIN CLUSTER and the statement, or change what is where"
        raise Refused("No cluster can process the statement", resolution.refusal, todo)
    session.report(f"{resolution.cluster}: {statement.text}")
    given = session.engine(resolution.cluster).run(route.text, route.database, statement.parameters)
    return StreamedResult(given.columns, given.rows)


def opened(session: Session) -> OpenClusters:
    """The session's, made when it is first asked for. Raises `Refused` where the configuration has no clusters."""
    session.wiring.config.require_clusters()
    if session.clusters is None:
        session.clusters = OpenClusters(session.wiring)
    return session.clusters
