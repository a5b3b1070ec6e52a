"""The presence of a table at each cluster: the original by the metastores, replicas by ledgers and marks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from calque.control.pause_rules import is_paused
from calque.control.status_records import is_running, position_of
from calque.core.images.image import EVENT, SOURCE
from calque.core.records.contents import contents, line_of
from calque.errors import AccessRefused, CalqueError, Unavailable
from calque.model.hive import Table, is_partitioned, is_view, location_of
from calque.model.names import OURS, EventId, TableName
from calque.plugins.clusters.api.lag import lag_seconds
from calque.plugins.clusters.api.matching import PATIENCE_SECONDS, Matching, Stream
from calque.plugins.clusters.model import ClusteredTable, Replica
from calque.plugins.clusters.wiring.cluster import cluster_wirings
from calque.plugins.marks.core import TargetView
from calque.plugins.marks.engine.target_view import target_view
from calque.ports import CatalogReader, EventLog
from calque.wiring.wiring import Wiring

Role = Literal["primary", "secondary"]


@dataclass(frozen=True, slots=True)
class Placement:
    """A table at one cluster, under the name `table`. `partitions` is the number of partitions that the primary has,
    `partitions_present` how many of them are whole here; both are None for a table without partitions, and where they
    are not known. `event_id` is the event of the primary's source as of which the table is shown here; None where it is
    not shown yet. `absent` says why the table counts as absent here; empty where it does not."""

    cluster: str
    role: Role
    partitions_present: int | None
    partitions: int | None
    event_id: EventId | None
    lag_seconds: float | None
    location: str | None
    table: TableName
    absent: str = ""


@dataclass(frozen=True, slots=True)
class TableLook:
    """A table as it was found at the clusters: `table` for the resolution of statements, `placements` for people,
    primaries first."""

    table: ClusteredTable
    placements: tuple[Placement, ...]


@dataclass(slots=True)
class Presence:
    """The presence of tables at one moment. What was looked at once is not looked at again, so a new question needs a
    new object."""

    wiring: Wiring
    matching: Matching
    _views: dict[tuple[str, str], TargetView] = field(default_factory=dict)
    _looks: dict[TableName, TableLook | None] = field(default_factory=dict)

    def table(self, name: TableName) -> ClusteredTable | None:
        """Return the table as the resolution of statements needs it; None where no cluster has it. Raises `Unavailable`
        as `look` does."""
        look = self.look(name)
        return look.table if look is not None else None

    def look(self, name: TableName) -> TableLook | None:
        """Return the table and its places; None where no cluster has it. Raises `Unavailable` or `AccessRefused` where
        a cluster that may have it does not answer."""
        if name not in self._looks:
            self._looks[name] = self._look(name)
        return self._looks[name]

    def _look(self, name: TableName) -> TableLook | None:
        if name.database.startswith(OURS) or name.table.startswith(OURS):
            return None
        headers, away = self.headers(name)
        originals = [cluster for cluster, table in headers.items() if SOURCE not in (table.parameters or {})]
        followers = [
            stream
            for stream in self.matching.streams()
            if is_between_clusters(stream)
            and (stream.source_cluster in originals if originals else stream.source_cluster in away)
            and self.follows(stream, name, headers)
        ]
        # Where the original's metastore does not answer, the replicas tell which cluster is the primary.
        primaries = originals or list(dict.fromkeys(filter(None, (one.source_cluster for one in followers))))
        if not primaries:
            if away:
                raise next(iter(away.values()))
            return None
        original = headers.get(primaries[0])
        names = partition_names(cluster_wirings(self.wiring)[primaries[0]].catalog(), name, original)
        placements = [
            Placement(
                cluster,
                "primary",
                len(names) if names is not None else None,
                len(names) if names is not None else None,
                newest_event(cluster_wirings(self.wiring)[cluster].log()) if cluster not in away else None,
                0.0 if cluster not in away else None,
                location_of(headers[cluster]) if cluster in headers else None,
                name,
            )
            for cluster in primaries
        ]
        replicas: dict[str, Replica] = {}
        definition = original
        for stream in followers:
            replica, placement, header = self.replica(stream, name, names)
            replicas[placement.cluster] = replica
            placements.append(placement)
            definition = definition or header
        return TableLook(clustered_table(primaries, definition, names, replicas), tuple(placements))

    def headers(self, name: TableName) -> tuple[Mapping[str, Table], Mapping[str, CalqueError]]:
        """Return the definitions under the name, by cluster, and the error of each cluster that does not answer."""
        headers: dict[str, Table] = {}
        away: dict[str, CalqueError] = {}
        for cluster, wiring in cluster_wirings(self.wiring).items():
            try:
                table = wiring.catalog().table(name)
            except (Unavailable, AccessRefused) as error:
                away[cluster] = error
            else:
                if table is not None:
                    headers[cluster] = table
        return headers, away

    def follows(self, stream: Stream, name: TableName, headers: Mapping[str, Table]) -> bool:
        """Tell whether the stream's target has the table, or its policy takes it."""
        admission = stream.target.admission()
        original = headers.get(stream.source_cluster or "")
        is_taken = admission.takes(name) and (original is None or admission.subset.has_table(original))
        return is_taken or name in self.view(stream).rows

    def view(self, stream: Stream) -> TargetView:
        """Return what the ledger of the stream's target says."""
        deployment, target = stream.deployment, stream.target
        key = str(deployment.config.path), target.plug.name
        if key not in self._views:
            self._views[key] = target_view(
                target.ledger(),
                stream.source.gaps(),
                target.admission(),
                lambda epoch: position_of(deployment, target.plug.name, epoch),
                is_paused=is_paused(deployment.control, target.plug.name),
            )
        return self._views[key]

    def replica(
        self, stream: Stream, name: TableName, names: frozenset[str] | None
    ) -> tuple[Replica, Placement, Table | None]:
        """Look at the replica at the stream's target, and return it for resolution, for people, and its definition.
        `names` are the partitions that the primary has; None where the table has none, or where they are not known."""
        cluster, admission, view = stream.target_cluster or "", stream.target.admission(), self.view(stream)
        local_name, shows = admission.name_at_target(name), view.shows(name)
        catalog = cluster_wirings(self.wiring)[cluster].catalog()
        present: frozenset[str] | None = frozenset()
        header, lag = None, None
        try:
            header = catalog.table(local_name)
            absent = self.why_absent(stream, name, header, shows)
            if header is not None and shows is not None and not absent:
                whole = whole_partitions(stream, catalog, name, local_name, header)
                present = whole if names is None or whole is None else whole & names
                with closing(stream.source.impatient_log(PATIENCE_SECONDS)) as log:
                    is_kept = is_running(stream.deployment, stream.target.plug.name)
                    lag = lag_seconds(stream.source, log, name, shows, is_running=is_kept)
            elif names is None:
                present = None
        except (Unavailable, AccessRefused) as error:
            absent = f"{error.what}"
        if not absent and names is None and header is not None and is_partitioned(header):
            absent = f"which partitions {stream.source_cluster} has is not known"
        placement = Placement(
            cluster,
            "secondary",
            len(present) if present is not None and names is not None else None,
            len(names) if names is not None else None,
            shows,
            lag,
            location_of(header) if header is not None else None,
            local_name,
            absent,
        )
        other_name = local_name if local_name != name else None
        return Replica(present or frozenset(), lag, absent, other_name), placement, header

    def why_absent(self, stream: Stream, name: TableName, header: Table | None, shows: EventId | None) -> str:
        """Say why the replica can't be counted upon at all; empty where its partitions can be looked at."""
        view, row = self.view(stream), self.view(stream).rows.get(name)
        target = f"target {stream.target.plug.name}"
        if view.behind_gap:
            return f"events are lost that {target} has not dealt with"
        if row is not None and shows is None:
            return f"it is {row.state.value} at {target}" + (f": {row.reason}" if row.reason else "")
        if shows is None or header is None:
            return f"{target} does not have it yet"
        if (header.parameters or {}).get(SOURCE) != f"{stream.source.plug.name}:{name}":
            return f"what has its name there is not written by {target}"
        if view.definitions_only(name) and not is_view(header):
            return f"its files stay at {stream.source_cluster}"
        if view.has_new_policy(name):
            return f"the policy of {target} has changed, and `run` has not taken it up"
        return ""


def is_between_clusters(stream: Stream) -> bool:
    return None not in (stream.source_cluster, stream.target_cluster) and stream.source_cluster != stream.target_cluster


def clustered_table(
    primaries: list[str], definition: Table | None, names: frozenset[str] | None, replicas: Mapping[str, Replica]
) -> ClusteredTable:
    keys = definition.partition_keys if definition is not None and is_partitioned(definition) else None
    text = (definition.view_expanded_text or definition.view_original_text or "") if definition is not None else ""
    return ClusteredTable(
        tuple(primaries),
        {column.name.lower(): column.type for column in keys or ()},
        names or frozenset(),
        replicas,
        text if definition is not None and is_view(definition) else "",
    )


def partition_names(catalog: CatalogReader, name: TableName, table: Table | None) -> frozenset[str] | None:
    """Return the table's partitions; None for a table without partitions, and for `table` None."""
    return frozenset(catalog.partition_names(name)) if table is not None and is_partitioned(table) else None


def whole_partitions(
    stream: Stream, catalog: CatalogReader, name: TableName, local_name: TableName, header: Table
) -> frozenset[str] | None:
    """Return the partitions at the target that calque wrote: those that the ledger has, and those that carry calque's
    mark, as the partitions of the next epoch do. Other partitions there are not known to be whole. None for a table
    without partitions."""
    names = partition_names(catalog, local_name, header)
    if names is None:
        return None
    ledger = stream.target.ledger()
    epoch = ledger.last_epoch()
    known: set[str] = set()
    if epoch is not None:
        tables = contents(line_of(index, row) for index, row in enumerate(ledger.headers(epoch.epoch)))
        names_before = {line.name for line in tables[name].table.history} if name in tables else set()
        rows = ledger.rows_of(names_before | {name}, epoch.epoch)
        content = contents(line_of(index, row) for index, row in enumerate(rows)).get(name)
        known = set(content.partitions) if content is not None else set()
    others = sorted(names - known)
    marked = {
        partition
        for partition, one in catalog.partitions(local_name, others).items()
        if EVENT in (one.parameters or {})
    }
    return names & (known | marked)


def newest_event(log: EventLog) -> EventId | None:
    """Return the newest event of the log; None where the metastore does not say it."""
    try:
        return log.current()
    except CalqueError:
        return None
