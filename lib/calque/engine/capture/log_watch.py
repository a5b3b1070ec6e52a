"""Look at the log again and again while it is idle: a second event of a known id, or another log, wakes nobody."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from calque.engine.capture.continuity import Continuity
from calque.errors import CalqueError

LOG = logging.getLogger(__name__)
SECONDS = 5.0


def watch(
    seam: Continuity, noticed: Callable[[str], None], stopping: threading.Event, seconds: float = SECONDS
) -> None:
    """Until `stopping`, or until `noticed` was called with what is wrong."""
    while not stopping.wait(seconds):
        try:
            log_break = seam.look()
        except CalqueError as error:
            LOG.info("the log is not looked at: %s", error)
        else:
            if log_break is not None and not stopping.is_set():
                noticed(log_break.what)
                return
