"""Notices as subscribers get them: of sets of partitions that are done, and of everything a channel sends.

for mark in calque.notices.subscribe("calque.toml", "sales.orders", {"ds": "2024-01-01"}, at="dr", timeout=3600):
    ...                                 # the day is complete, and can be read at the target
"""

from calque.plugins.notices.api.subscribe import DoneNotices, subscribe

__all__ = ["DoneNotices", "subscribe"]
