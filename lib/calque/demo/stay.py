"""A demo that stays: what its configuration has besides, and the time until an interrupt."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from calque.demo import configuration
from calque.demo.child import require_running
from calque.demo.writer import Writer
from calque.sandbox.processes import KeptProcess

PAUSE_SECONDS = 2.0
"""Seconds between two changes."""


def prepare_stay(directory: Path, source: str, targets: Mapping[str, str], broker: str) -> str:
    """Write the files that a stay needs besides its configuration: a token for the page, and a configuration for loads
    of dumps. Return the further sections of its own. The other arguments are addresses, as `configuration.write` has
    them. Links and loads lead to the metastore of the last target."""
    last = list(targets.values())[-1]
    token = directory / configuration.TOKEN_FILE
    token.touch(mode=0o600)
    token.write_text(secrets.token_urlsafe(16), encoding="utf-8")
    (directory / configuration.LOADS_FILE).write_text(configuration.of_loads(source, last), encoding="utf-8")
    return configuration.of_a_stay(last, broker)


def stay(writers: Sequence[Writer], child: KeptProcess) -> None:
    """Let the writers change their sources in turn, slowly, until an interrupt. Raises `Unavailable` when the
    replication ends by itself."""
    try:
        for writer in cycle(writers):
            require_running(child)
            writer.step()
            time.sleep(PAUSE_SECONDS)
    except KeyboardInterrupt:
        return
