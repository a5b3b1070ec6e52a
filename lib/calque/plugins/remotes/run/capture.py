"""Capture of a remote catalog that links made a source: its log, or what looks at it find."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from calque.control.status_records import UNREAD
from calque.errors import CalqueError, Refused, Unavailable
from calque.plugins.remotes.engine.looker import Looker
from calque.plugins.remotes.wiring.looked_catalog import LookedCatalog
from calque.plugins.remotes.wiring.remotes import remotes_at
from calque.ports.records import Json
from calque.streams.capture import CapturePart
from calque.streams.kinds import CaptureKind
from calque.streams.shared import RunForParts, SourceStream

if TYPE_CHECKING:
    from calque.engine.sides.sides import SourceSide

LOG = logging.getLogger(__name__)
AGAIN_SECONDS, LONGEST_SECONDS = 2.0, 60.0
"""After which a remote catalog that was refused is tried again: first, and in the end."""
MOST_TOLD = 1000
"""Tables that can't be looked at and are told of one by one."""


class RemoteCapturePart(CapturePart):
    """As of any source; what is wrong with a remote catalog is no business of the others."""

    def __init__(self, run: RunForParts, stream: SourceStream) -> None:
        super().__init__(run, stream)
        self.over = False
        """This attempt has failed."""
        self.looker: Looker | None = None
        self.look_problem: str | None = None
        """Why a catalog without a log can't be looked at."""

    def problem(self) -> str | None:
        return super().problem() or self.look_problem

    def told(self) -> dict[str, Json]:
        unread = dict(self.looker.refused) if self.looker is not None else {}
        return super().told() | {UNREAD: {str(name): unread[name] for name in sorted(unread)[:MOST_TOLD]}}

    def keep_up(self) -> None:
        """What was refused is tried again: somebody may have mended it."""
        delay = AGAIN_SECONDS
        try:
            while True:
                super().keep_up()
                if super().stopped() or not self.over:
                    return
                self.sleep(delay)
                if super().stopped():
                    return
                delay, self.over = min(2 * delay, LONGEST_SECONDS), False
        finally:
            if self.looker is not None:
                self.looker.catalog.close()

    def stopped(self) -> bool:
        return super().stopped() or self.over

    def failed(self, error: CalqueError) -> None:
        if not self.stopped():
            self.over, self.state, self.last_error = True, "failed", str(error)
            LOG.warning("%s failed: %s", self.name, error)
            self.stream.looked.set()

    def once(self) -> None:
        try:
            self.look_first()
        except CalqueError:
            # Links show what they showed: nobody waits for a catalog that is away.
            self.stream.looked.set()
            raise
        super().once()

    def look_first(self) -> None:
        """Raises `Refused` where the remote catalog is the local one, whatever its address, and what a look raises."""
        identity = self.source.side().catalog.identity()
        if identity and identity == remotes_at(self.wiring).catalog().identity():
            todo = "Name another metastore, or make a view"
            raise Refused("The link leads to the local metastore itself", "Both have one id", todo)
        catalog = self.source.plug.catalog
        if isinstance(catalog, LookedCatalog):
            source, log = self.source.side(), catalog.log(self.source.own_log)
            self.looker = self.looker or Looker(catalog.connect(), log, self.linked, source.clock)
            self.looker.look(self.stopped)

    def keep(self, source: SourceSide) -> None:
        super().keep(source)
        if self.looker is not None:
            self.go_on("looks", self.look_again)

    def look_again(self, stopping: threading.Event) -> None:
        """Look at the catalog at its interval; what does not answer is asked again."""
        catalog = self.source.plug.catalog
        assert isinstance(catalog, LookedCatalog)
        assert self.looker is not None
        looks = catalog.log(self.source.own_log)
        while not stopping.wait(catalog.interval):
            try:
                self.looker.look(stopping.is_set)
                looks.forget(self.committed)
            except (Refused, Unavailable) as error:
                if self.look_problem != str(error):
                    LOG.warning("%s can't be looked at: %s", self.name, error)
                self.look_problem = str(error)
            else:
                self.look_problem = None


CAPTURE = CaptureKind(takes=lambda source: source.is_linked, make=RemoteCapturePart)
