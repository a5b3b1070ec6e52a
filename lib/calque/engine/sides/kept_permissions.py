"""Warnings about permissions of the source that files at a target can't get, each logged once."""

from __future__ import annotations

import logging
from threading import Lock

LOG = logging.getLogger(__name__)
MOST = 100
"""Reasons that are logged at most, because a source may have any number of owners that the target does not know."""


class KeptPermissions:
    """The warnings of one target about permissions. Safe from several threads."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = Lock()
        self._reasons: set[str] = set()

    def note(self, reason: str) -> None:
        """Log the `reason` why a file or directory did not get all of the source's permissions, unless it was logged
        before."""
        with self._lock:
            if reason in self._reasons or len(self._reasons) >= MOST:
                return
            self._reasons.add(reason)
        LOG.warning("%s: files or directories lack permissions of the source: %s", self._target, reason)
