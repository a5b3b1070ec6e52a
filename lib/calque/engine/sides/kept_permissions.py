"""What of the source's permissions a target's files can't be given, told once."""

from __future__ import annotations

import logging
from threading import Lock

LOG = logging.getLogger(__name__)
MOST = 100
"""Reasons that are told: a source may have any number of owners whom the target does not know."""


class KeptPermissions:
    """Of one target, from any thread."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = Lock()
        self._reasons: set[str] = set()

    def note(self, reason: str) -> None:
        """Of a file or directory that has some of the source's permissions only."""
        with self._lock:
            if reason in self._reasons or len(self._reasons) >= MOST:
                return
            self._reasons.add(reason)
        LOG.warning("%s: files or directories lack permissions of the source: %s", self._target, reason)
