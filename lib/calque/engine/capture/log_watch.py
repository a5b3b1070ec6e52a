"""Repeated looks at the log while it is idle, because neither a second event of a known id nor another log at the same
address wakes capture."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from calque.engine.capture.continuity import Continuity
from calque.errors import CalqueError

LOG = logging.getLogger(__name__)
SECONDS = 5.0


def watch(
    continuity: Continuity, suspect: Callable[[str], None], stopping: threading.Event, seconds: float = SECONDS
) -> None:
    """Look at the log every `seconds`, until `stopping` is set or a break is found. `suspect` is called with the
    break."""
    while not stopping.wait(seconds):
        try:
            log_break = continuity.look()
        except CalqueError as error:
            LOG.info("the log is not looked at: %s", error)
        else:
            if log_break is not None and not stopping.is_set():
                suspect(log_break.what)
                return
