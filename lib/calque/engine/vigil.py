"""Look at the log again and again while it is idle: a second event of a known id, or another log, wakes nobody."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from calque.engine.gaps import Continuity
from calque.errors import CalqueError

LOG = logging.getLogger(__name__)
SECONDS = 5.0


class Vigil:
    """Beside capture, until `stop`, or until `noticed` was called with what is wrong."""

    def __init__(self, seam: Continuity, noticed: Callable[[str], None], seconds: float = SECONDS) -> None:
        self.seam, self.noticed, self.seconds = seam, noticed, seconds
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name="vigil", daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(timeout=30)

    def run(self) -> None:
        while not self.stopping.wait(self.seconds):
            try:
                found = self.seam.look()
            except CalqueError as error:
                LOG.info("the log is not looked at: %s", error)
            else:
                if found is not None and not self.stopping.is_set():
                    self.noticed(found.what)
                    return
