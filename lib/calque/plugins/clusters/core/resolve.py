"""The cluster that processes a statement, or why none can: the rules of the multi-cluster document, in its order.

1. After `USE CLUSTER c`, and with `use_default` (then c is the default), that cluster or none.
2. Else an output that exists says which: its primary cluster. Outputs of several primaries fail.
3. Else the primaries of the inputs are tried one by one, in the order of their appearance.
4. A statement without tables, and one that makes a table of none, runs on the default cluster.

A cluster can process a statement if it is the primary of all outputs that exist, and each input is its own, or all
partitions that the statement can read are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calque.core.policy.predicates import holds, keys_of_partition, misfit, names_in
from calque.model.names import TableName
from calque.model.predicate import Predicate
from calque.plugins.clusters.model import ClusteredTable, Clusters, Considered, Input, Resolution, StatementTables

Tables = Mapping[TableName, ClusteredTable]


def resolve(statement: StatementTables, tables: Tables, clusters: Clusters, used: str | None = None) -> Resolution:
    """Return the cluster that processes the statement, with every cluster that was considered and why. `used` is the
    cluster of `USE CLUSTER`. A table that is not among `tables` does not exist."""
    if not clusters.enabled:
        reason = "clusters are disabled: all statements run on the default cluster"
        return Resolution(clusters.default, (Considered(clusters.default, True, reason),))
    outputs = {name: tables[name] for name in statement.outputs if name in tables}
    for name in (*outputs, *(one.name for one in statement.inputs)):
        if name in tables and len(tables[name].primaries) > 1:
            owners = tables[name].primaries
            refusal = f"{name} has originals at {_listed(owners)}"
            return Resolution(None, tuple(Considered(owner, False, refusal) for owner in owners), refusal)
    forced = used if used is not None else clusters.default if clusters.use_default else None
    if forced is not None:
        how = "USE CLUSTER names it" if used is not None else "use_default names it"
        return _tried([forced], lambda _: how, statement, outputs, tables, clusters)
    if outputs:
        primaries = list(dict.fromkeys(table.primaries[0] for table in outputs.values()))
        if len(primaries) > 1:
            considered = [
                Considered(one, False, "; ".join(obstacles_at(one, statement, outputs, tables, clusters.max_lag)))
                for one in primaries
            ]
            listed = ", ".join(f"{name} at {table.primaries[0]}" for name, table in outputs.items())
            refusal = f"its outputs have different primary clusters: {listed}"
            return Resolution(None, tuple(considered), refusal)
        named = ", ".join(map(str, outputs))
        return _tried(
            primaries, lambda _: f"it is the primary of the output {named}", statement, outputs, tables, clusters
        )
    first_inputs: dict[str, TableName] = {}
    for one in statement.inputs:
        if one.name in tables:
            first_inputs.setdefault(tables[one.name].primaries[0], one.name)
    if first_inputs:
        return _tried(
            list(first_inputs),
            lambda cluster: f"it is the primary of the input {first_inputs[cluster]}",
            statement,
            outputs,
            tables,
            clusters,
        )
    return _tried(
        [clusters.default],
        lambda _: "it is the default, and no table says another",
        statement,
        outputs,
        tables,
        clusters,
    )


def _tried(
    candidates: list[str],
    why: Callable[[str], str],
    statement: StatementTables,
    outputs: Tables,
    tables: Tables,
    clusters: Clusters,
) -> Resolution:
    considered: list[Considered] = []
    for cluster in candidates:
        obstacles = obstacles_at(cluster, statement, outputs, tables, clusters.max_lag)
        if not obstacles:
            reason = "; ".join([why(cluster), *pruned_at(cluster, statement, tables)])
            return Resolution(cluster, (*considered, Considered(cluster, True, reason)))
        considered.append(Considered(cluster, False, "; ".join(obstacles)))
    refusal = "; ".join(f"{one.cluster}: {one.reason}" for one in considered)
    return Resolution(None, tuple(considered), refusal)


def obstacles_at(
    cluster: str, statement: StatementTables, outputs: Tables, tables: Tables, max_lag: float
) -> list[str]:
    """Say why the cluster can't process the statement, one text for each table in the way; empty where it can."""
    obstacles = [
        f"the output {name} can be written at {table.primaries[0]} alone"
        for name, table in outputs.items()
        if table.primaries[0] != cluster
    ]
    for one in statement.inputs:
        table = tables.get(one.name)
        obstacle = f"{one.name} is at no cluster" if table is None else absence(one, table, cluster, max_lag)
        if obstacle:
            obstacles.append(obstacle if one.via is None else f"{obstacle} (read by the view {one.via})")
    return list(dict.fromkeys(obstacles))


def absence(one: Input, table: ClusteredTable, cluster: str, max_lag: float) -> str:
    """Say why the cluster lacks some of the input that the statement may read; empty where it has all of it."""
    if cluster in table.primaries:
        return ""
    replica = table.replicas.get(cluster)
    if replica is None:
        return f"{one.name} is not there"
    if replica.absent:
        return f"{one.name} counts as absent: {replica.absent}"
    if replica.lag_seconds is None:
        return f"nobody knows how far {one.name} lags there"
    if replica.lag_seconds > max_lag:
        return f"{one.name} lags {replica.lag_seconds:.0f} s there, more than {max_lag:.0f} s"
    missing = table.partitions - replica.partitions
    if missing and (predicate := pruning(one, table)) is not None:
        missing = frozenset(name for name in missing if may_read(predicate, name))
    if missing:
        return f"{len(missing)} partitions of {one.name} are not there, e.g. {min(missing)}"
    return ""


def pruned_at(cluster: str, statement: StatementTables, tables: Tables) -> list[str]:
    """Say which partitions the cluster lacks that the statement can't read, one text for each table. Call it only for a
    cluster that can process the statement."""
    reasons = []
    for one in statement.inputs:
        table = tables.get(one.name)
        if table is None or cluster in table.primaries or one.predicate is None:
            continue
        missing = table.partitions - table.replicas[cluster].partitions
        if missing:
            keys = ", ".join(sorted(names_in(one.predicate)))
            reasons.append(
                f"the {len(missing)} partitions of {one.name} that are not there can't be read: "
                f"its conditions on {keys} leave them out"
            )
    return list(dict.fromkeys(reasons))


def pruning(one: Input, table: ClusteredTable) -> Predicate | None:
    """Return the predicate that proves which partitions are not read; None where nothing is proven."""
    return one.predicate if one.predicate is not None and not misfit(one.predicate, table.keys) else None


def may_read(predicate: Predicate, partition: str) -> bool:
    try:
        return holds(predicate, keys_of_partition(partition)) is True
    except KeyError:
        return True


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)
