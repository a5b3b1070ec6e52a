"""The clusters as the page shows them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.plugins.clusters.api.matching import reachable
from calque.plugins.clusters.config.sections import require_clusters
from calque.plugins.clusters.wiring.cluster import cluster_wirings
from calque.ports.records import Json
from calque.wiring.wiring import Wiring

AGAIN_SECONDS = 10.0


@dataclass(slots=True)
class ClusterLooks:
    """A memory of which clusters answer. A thread of its own asks them, at most every `AGAIN_SECONDS` and only while
    the page asks for the document, so a silent metastore holds up no answer of the page."""

    answers: Mapping[str, bool] = field(default_factory=dict)
    thread: threading.Thread | None = None
    again: float = 0.0

    def document(self, wiring: Wiring) -> Json:
        """Return the clusters as JSON, and begin to ask them again where the last answers are old. `reachable` is None
        of a cluster that was not asked yet."""
        if not cluster_wirings(wiring):
            return []
        if time.monotonic() >= self.again and (self.thread is None or not self.thread.is_alive()):
            self.again = time.monotonic() + AGAIN_SECONDS
            self.thread = threading.Thread(target=self.ask, args=(wiring,), name="page-clusters", daemon=True)
            self.thread.start()
        default = require_clusters(wiring.config).default
        return [
            {
                "name": name,
                "metastore": ",".join(cluster.plug.keys.metastore),
                "engine": cluster.plug.engine or None,
                "default": name == default,
                "reachable": self.answers.get(name),
            }
            for name, cluster in cluster_wirings(wiring).items()
        ]

    def ask(self, wiring: Wiring) -> None:
        self.answers = reachable(wiring)
