"""Events around objects of the model: built, gzipped, recorded."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping

from calque.core.events.encode import tjson
from calque.model.journal import Event

__all__ = ["event", "gzipped", "recorded", "tjson"]


def event(
    event_type: str,
    message: Mapping[str, object],
    *,
    database: str = "d1",
    table: str = "",
    catalog: str = "hive",
    event_id: int = 1,
) -> Event:
    """An event with a plain message."""
    body = json.dumps({"server": "", "servicePrincipal": "", **message, "timestamp": 0}, ensure_ascii=False)
    return Event(event_id, 0, event_type, catalog, database, table, "json-0.2", body)


def gzipped(plain: Event) -> Event:
    """The same event as 4.x writes it by default."""
    packed = base64.b64encode(gzip.compress(plain.message.encode(), mtime=0)).decode()
    return Event(
        plain.event_id,
        plain.event_time,
        plain.event_type,
        plain.catalog,
        plain.database,
        plain.table,
        "gzip(json-2.0)",
        packed,
    )


def recorded(line: str) -> Event:
    """The event in one line of `golden/events`; absent names are null there."""
    row = json.loads(line)
    return Event(
        event_id=row["event_id"],
        event_time=row["event_time"],
        event_type=row["event_type"],
        catalog=row["cat_name"] or "",
        database=row["db_name"] or "",
        table=row["table_name"] or "",
        message_format=row["message_format"],
        message=row["message"],
    )
