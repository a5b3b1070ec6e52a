"""Functions by which processes that Spark starts open the log. The module imports little, because each query starts
several such processes.

Arguments are shown in plans. Secrets among them are references, which those processes read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.adapters.metastore.first_seen import FirstSeen
    from calque.model.access import MetastoreAccess
    from calque.ports import EventLog


def open_log(uris: str, access: MetastoreAccess, max_message: int, first_seen: FirstSeen | None = None) -> EventLog:
    """Return the notification log behind `uris`, a comma-separated list of addresses. Messages longer than
    `max_message` bytes are not decoded."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris, access, first_seen=first_seen), max_message=max_message)
