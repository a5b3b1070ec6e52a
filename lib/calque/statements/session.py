"""What statements are carried out with: the configured world, and what earlier statements said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from calque.errors import Refused
from calque.model.names import TableName, table_name
from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.ports import Engine
from calque.statements.statement import QualifiedTable
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)


def say_nothing(_text: str) -> None:
    pass


def log_note(text: str) -> None:
    LOG.warning("%s", text)


@dataclass(slots=True)
class Session:
    """One person's, or one connection's. `target` is what statements mean that name none; `database` is the one of
    names without one, from `USE`."""

    wiring: Wiring
    target: str | None = None
    database: str | None = None
    cluster: str | None = None
    """Where every statement runs, from `USE CLUSTER`; None where each statement's cluster is resolved."""
    clusters: OpenClusters | None = None
    """Made when a statement first asks for them."""
    engines: dict[str, Engine] = field(default_factory=dict)
    """A session at the engine of each cluster on which a statement ran."""
    report: Callable[[str], None] = field(default=say_nothing)
    """Shows how far a long statement is, in place of what it showed before."""
    note: Callable[[str], None] = field(default=log_note)
    """Takes what a person should know of a statement that was carried out, such as a key that changed nothing."""

    def engine(self, cluster: str) -> Engine:
        """The session there, the same for all statements. Raises `Refused` where the cluster has no engine."""
        if cluster not in self.engines:
            self.engines[cluster] = self.wiring.clusters[cluster].engine()
        return self.engines[cluster]

    def close(self) -> None:
        """End the sessions at engines."""
        while self.engines:
            self.engines.popitem()[1].close()

    def only_target(self, name: str | None) -> str:
        """The named target, else the session's, else the only one. Raises `Refused`."""
        config = self.wiring.config
        config.require_source()
        chosen = name or self.target
        targets = config.select([chosen]) if chosen else config.own_targets()
        if len(targets) == 1:
            return targets[0]
        why = f"There are {', '.join(targets)}" if targets else "The configuration has none"
        raise Refused("No target is named", why, "Write AT and one of them")


def named(table: QualifiedTable, session: Session) -> TableName:
    """Without a database it is in the session's, else in `default`, as for Hive."""
    return table_name(table.database or session.database or "default", table.table)
