"""The objects that all sources and targets of one process share: `Runtime`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.engine.failpoints import FailpointGuard, Hit, from_environment
from calque.ports import Storage
from calque.wiring.kinds import WiringKinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Runtime:
    """The objects that all sources and targets of one process share. With a `session` long copies and listings are
    spread over Spark. `hit` is called at each failpoint."""

    session: Callable[[], SparkSession] | None = None
    hit: Hit = field(default_factory=from_environment)
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when Spark is to give up the work that it does for sources."""
    kinds: WiringKinds = field(default_factory=WiringKinds)
    """The kinds that plugins add."""

    @property
    def guard(self) -> FailpointGuard:
        """The guard that has the effects of ports pass their failpoints; without a `hit` it leaves the ports as they
        are."""
        return FailpointGuard(self.hit)

    def storage(
        self,
        systems: FileSystemSet,
        terms: CopyTerms | None = None,
        ended: Callable[[], bool] = lambda: False,
        pool: str = "source",
        leaves: int = 0,
    ) -> Storage:
        """Return a storage over the file systems. With a session Spark does what takes long, in the fair scheduler's
        `pool`, and leaves `leaves` cores to others, until `ended` returns True."""
        files = FileStorage(systems, terms=terms)
        if self.session is None:
            return files
        from calque.adapters.files.spark import SparkStorage, SparkThresholds

        return SparkStorage(files, self.session, SparkThresholds(pool=pool, leaves=leaves), ended=ended)
