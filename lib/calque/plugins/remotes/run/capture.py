"""Capture of a remote catalog that links made a source: its log, or what looks at it find."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from calque.control.status_records import UNREAD
from calque.errors import Refused, Unavailable
from calque.plugins.remotes.engine.looker import Looker
from calque.plugins.remotes.wiring.looked_catalog import LookedCatalog
from calque.plugins.remotes.wiring.remotes import remotes_at
from calque.ports.records import Json
from calque.streams.capture import BackgroundWork, CaptureAddition, CapturePart
from calque.streams.kinds import CaptureKind
from calque.streams.shared import RunForParts, SourceStream

LOG = logging.getLogger(__name__)
MOST_TOLD = 1000
"""Tables that can't be looked at and are told of one by one."""


@dataclass(slots=True)
class RemoteCatalogCapture:
    """What looks at a catalog, and how that went."""

    looker: Looker | None = None
    look_problem: str | None = None
    """Why a catalog without a log can't be looked at."""

    def before(self, part: CapturePart) -> None:
        """Look at a catalog without a log. Raises `Refused` where the remote catalog is the local one, whatever its
        address, and what a look raises: links show what they showed, and nobody waits for a catalog that is away."""
        source = part.source.side()
        identity = source.catalog.identity()
        if identity and identity == remotes_at(part.wiring).catalog().identity():
            todo = "Name another metastore, or make a view"
            raise Refused("The link leads to the local metastore itself", "Both have one id", todo)
        catalog = part.source.plug.catalog
        if isinstance(catalog, LookedCatalog):
            log = catalog.log(part.source.own_log)
            self.looker = self.looker or Looker(catalog.connect(), log, part.links.now, source.clock)
            self.looker.look(part.supervisor.stopped)

    def beside(self, part: CapturePart) -> Mapping[str, BackgroundWork]:
        return {} if self.looker is None else {"looks": partial(self.look_again, part, self.looker)}

    def look_again(self, part: CapturePart, looker: Looker, stopping: threading.Event) -> None:
        """Look at the catalog at its interval; what does not answer is asked again."""
        catalog = part.source.plug.catalog
        assert isinstance(catalog, LookedCatalog)
        looks = catalog.log(part.source.own_log)
        while not stopping.wait(catalog.interval):
            try:
                looker.look(stopping.is_set)
                looks.forget(part.committed)
            except (Refused, Unavailable) as error:
                if self.look_problem != str(error):
                    LOG.warning("%s can't be looked at: %s", part.name, error)
                self.look_problem = str(error)
            else:
                self.look_problem = None

    def problem(self) -> str | None:
        return self.look_problem

    def told(self) -> Mapping[str, Json]:
        unread = dict(self.looker.refused) if self.looker is not None else {}
        return {UNREAD: {str(name): unread[name] for name in sorted(unread)[:MOST_TOLD]}}

    def end(self) -> None:
        if self.looker is not None:
            self.looker.catalog.close()


def capture(run: RunForParts, stream: SourceStream) -> CapturePart:
    """What is wrong with a remote catalog is no business of the others."""
    own = RemoteCatalogCapture()
    addition = CaptureAddition(before=own.before, beside=own.beside, problem=own.problem, told=own.told, end=own.end)
    return CapturePart(run, stream, addition, is_vital=False)


CAPTURE = CaptureKind(takes=lambda source: source.is_linked, make=capture)
