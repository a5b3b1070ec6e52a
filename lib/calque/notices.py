"""Notices as subscribers get them: of sets of partitions that are done, and of everything a channel sends.

for mark in calque.notices.subscribe("calque.toml", "sales.orders", {"ds": "2024-01-01"}, at="dr", timeout=3600):
    ...                                 # the day is complete, and can be read at the target
"""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from calque.config.plugs import AT_SOURCE
from calque.core.policy.patterns import named_table
from calque.plugins.marks.api.functions import Partition, texts
from calque.plugins.notices.api.subscribe import DoneNotices, subscribed

__all__ = ["DoneNotices", "subscribe"]


def subscribe(
    config: str | Path,
    table: str,
    /,
    condition: Partition | None = None,
    *,
    at: str = AT_SOURCE,
    timeout: float | None = None,
) -> DoneNotices:
    """Subscribe to the marks that say that all partitions of the table which match `condition` are done, at the source
    or at the target that `at` names. Without a condition all marks of the table count.

    The iteration gives the marks that exist, then those that come, each once. It ends when none has come for `timeout`
    seconds. The subscription holds when this returns, and the store of marks is read only then, so that no mark is
    missed between the two. A channel there has to send `done` of the table. Raises `calque.errors.Refused` and
    `Unavailable`.
    """
    wiring, name = APP.wiring(APP.load(config)), named_table(table)
    return subscribed(wiring, name, texts(condition, {}) if condition else {}, at, timeout)
