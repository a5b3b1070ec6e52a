"""The capture of a remote catalog that links made a source: its log, or the log of the looks at it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from calque.control.status_records import UNREAD
from calque.errors import Refused, Unavailable
from calque.plugins.remotes.engine.catalog_poller import CatalogPoller
from calque.plugins.remotes.wiring.polled_catalog import PolledCatalog
from calque.plugins.remotes.wiring.remotes import remotes_at
from calque.ports.records import Json
from calque.streams.background import BackgroundWork
from calque.streams.capture import CaptureAddition, SourceCapture
from calque.streams.kinds import CaptureKind
from calque.streams.shared import ProcessContext, SourceStream

LOG = logging.getLogger(__name__)
MOST_TOLD = 1000
"""The most tables that the status names of those that can't be looked at."""


@dataclass(slots=True)
class RemoteCatalogCapture:
    """The additions to the capture of one remote catalog: the looks at a catalog without a log, and what went wrong
    with them."""

    poller: CatalogPoller | None = None
    poll_problem: str | None = None
    """The reason why the last look at the catalog failed; None where it did not."""

    def before(self, part: SourceCapture) -> None:
        """Look at a catalog without a log once, before its capture begins. Raises `Refused` where the remote catalog is
        the local one under another address, and all that `CatalogPoller.poll` raises. An error concerns this capture
        alone: its links show what they showed, and no other source waits for a catalog that does not answer."""
        source = part.source.side()
        identity = source.catalog.identity()
        if identity and identity == remotes_at(part.wiring).catalog().identity():
            todo = "Name another metastore, or make a view"
            raise Refused("The link leads to the local metastore itself", "Both have one id", todo)
        catalog = part.source.plug.catalog
        if isinstance(catalog, PolledCatalog):
            log = catalog.log(part.source.own_log)
            self.poller = self.poller or CatalogPoller(catalog.connect(), log, part.links.now, source.clock)
            self.poller.poll(part.supervisor.stopped)

    def background(self, part: SourceCapture) -> Mapping[str, BackgroundWork]:
        return {} if self.poller is None else {"looks": partial(self.poll_again, part, self.poller)}

    def poll_again(self, part: SourceCapture, poller: CatalogPoller, stopping: threading.Event) -> None:
        """Look at the catalog at its interval, until `stopping` is set. Where the catalog does not answer or refuses,
        the error is logged and kept as `poll_problem`, and the next look tries again."""
        catalog = part.source.plug.catalog
        assert isinstance(catalog, PolledCatalog)
        polled_log = catalog.log(part.source.own_log)
        while not stopping.wait(catalog.interval):
            try:
                poller.poll(stopping.is_set)
                polled_log.forget(part.committed)
            except (Refused, Unavailable) as error:
                if self.poll_problem != str(error):
                    LOG.warning("%s can't be looked at: %s", part.name, error)
                self.poll_problem = str(error)
            else:
                self.poll_problem = None

    def problem(self) -> str | None:
        return self.poll_problem

    def status_keys(self) -> Mapping[str, Json]:
        unread = dict(self.poller.refused) if self.poller is not None else {}
        return {UNREAD: {str(name): unread[name] for name in sorted(unread)[:MOST_TOLD]}}

    def end(self) -> None:
        if self.poller is not None:
            self.poller.catalog.close()


def capture(run: ProcessContext, stream: SourceStream) -> SourceCapture:
    """Return the part that captures a remote catalog. The part is not vital: an error of one remote catalog does not
    end the process, which captures the others."""
    own = RemoteCatalogCapture()
    addition = CaptureAddition(
        before=own.before, background=own.background, problem=own.problem, status_keys=own.status_keys, end=own.end
    )
    return SourceCapture(run, stream, addition, is_vital=False)


CAPTURE = CaptureKind(takes=lambda source: source.is_linked, make=capture)
