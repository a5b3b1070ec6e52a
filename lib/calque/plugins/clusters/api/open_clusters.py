"""The clusters of a configuration for programs: where a table is, where a statement runs, and a table's definition at
one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from calque.core.policy.patterns import named_table
from calque.errors import CalqueError, Refused, nearest
from calque.model.hive import Table
from calque.model.names import TableName
from calque.plugins.clusters.api.matching import Matching
from calque.plugins.clusters.api.presence import Placement, Presence, TableLook
from calque.plugins.clusters.config.sections import cluster_of, require_clusters
from calque.plugins.clusters.core.resolve import resolve
from calque.plugins.clusters.core.rewrite import names_at, rewritable, rewritten
from calque.plugins.clusters.core.statement_tables import tables_of
from calque.plugins.clusters.model import ClusteredTable, Clusters, Considered, Resolution, StatementTables
from calque.plugins.clusters.wiring.cluster import cluster_wirings
from calque.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Route:
    """A statement's cluster, and the statement as that cluster needs it. `text` has the names that the tables have
    there. `database` is that of names without one; None where no name needs it."""

    resolution: Resolution
    text: str
    database: str | None


@dataclass(slots=True)
class OpenClusters:
    """The clusters of `wiring`, open for questions. A table is named as at its primary, `database.table`. Each question
    looks at the clusters anew. Every method may raise `Refused` and `Unavailable`."""

    wiring: Wiring
    matching: Matching = field(init=False)

    def __post_init__(self) -> None:
        self.matching = Matching(self.wiring)

    @property
    def clusters(self) -> Clusters:
        return require_clusters(self.wiring.config)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections to the clusters' metastores."""
        for cluster in cluster_wirings(self.wiring).values():
            cluster.client().close()

    def locate(self, table: str) -> tuple[Placement, ...]:
        """Return the places of the table, its primary first. Raises `Refused` where no cluster has it."""
        return self.look(named_table(table)).placements

    def resolve(self, statement: str, *, used: str | None = None, database: str = "default") -> Resolution:
        """Return the cluster that the statement runs on, or why there is none. `used` is the cluster of `USE CLUSTER`;
        `database` is that of names without one. Raises `Refused` for a statement whose tables can't be told, unless a
        cluster is forced by `used` or by `use_default`."""
        return self.route(statement, used, database).resolution

    def route(self, statement: str, used: str | None, database: str | None) -> Route:
        """Return what `resolve` returns, together with the statement as it has to be sent to that cluster."""
        clusters, session_database = self.clusters, database or "default"
        used = cluster_of(self.wiring.config, used).name if used is not None else None
        if not clusters.enabled:
            return Route(resolve(StatementTables(), {}, clusters, used), statement, database)
        presence = Presence(self.wiring, self.matching)
        tables: dict[TableName, ClusteredTable] = {}

        def looked_up(name: TableName) -> ClusteredTable | None:
            table = presence.table(name)
            if table is not None:
                tables[name] = table
            return table

        try:
            statement_tables = tables_of(statement, session_database, looked_up)
        except Refused as refused:
            forced = used if used is not None else clusters.default if clusters.use_default else None
            if forced is None:
                raise
            reason = f"its tables are not known: {refused.why}"
            return Route(Resolution(forced, (Considered(forced, True, reason),)), statement, database)
        for name in statement_tables.outputs:
            looked_up(name)
        usable = rewritable(statement, session_database, statement_tables, tables, clusters.names)
        resolution = resolve(statement_tables, usable, clusters, used)
        names = names_at(resolution.cluster, statement_tables, tables) if resolution.cluster is not None else {}
        if not names:
            return Route(resolution, statement, database)
        text = rewritten(statement, session_database, names)
        # The rewritten inputs name their databases. Only outputs still need the session's, which may have another name
        # at that cluster, or be missing there.
        return Route(resolution, text, database if statement_tables.outputs else None)

    def table(self, table: str, *, cluster: str | None = None) -> Table:
        """Return the table's definition at `cluster`, else at the default one, under the name that it has there. Raises
        `Refused` where the table is not there, or counts as absent."""
        chosen = cluster_of(self.wiring.config, cluster if cluster is not None else self.clusters.default).name
        name = named_table(table)
        placement = next((one for one in self.look(name).placements if one.cluster == chosen), None)
        why = "No target that follows its primary takes it there" if placement is None else placement.absent
        definition = None
        if placement is not None and not why:
            definition = cluster_wirings(self.wiring)[chosen].catalog().table(placement.table)
        if definition is None:
            todo = f"It is at {', '.join(one.cluster for one in self.look(name).placements if not one.absent)}"
            raise Refused(f"{name} is not at {chosen}", why or "It was dropped just now", todo)
        return definition

    def look(self, name: TableName) -> TableLook:
        """Return the table and its places. Raises `Refused`, with the nearest name, where no cluster has the table."""
        look = Presence(self.wiring, self.matching).look(name)
        if look is None:
            raise Refused(f"There is no table {name}", nearest(str(name), self.tables(name.database)), "Name one")
        return look

    def tables(self, database: str) -> Sequence[str]:
        """Return the tables of the database, `database.table` and sorted, over all clusters that answer."""
        names: set[str] = set()
        for cluster in cluster_wirings(self.wiring).values():
            try:
                names.update(f"{database}.{table}" for table in cluster.catalog().tables(database))
            except CalqueError:
                continue
        return sorted(names)
